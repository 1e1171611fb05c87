/* `cordon run` by a daemon: the client's end of wire.h, as a carrier of a run. */
#pragma once
#include "door/cli/run.h"

/* Connects and says what is to be run; opens the signals and the sinks of the run. False: there is no daemon, or none
 * for this; then the signals may be open. */
bool remote_open(struct run *run, const char *command, const struct options *options, char **words) must_check;
/* After the loop: the daemon does not want it. */
bool remote_declined(const struct run *run);
/* The command never began: the signals that were taken for it end this process. */
void remote_raise_kept(struct run *run);
/* After the loop: writes what is left, and may block. */
int remote_finish(struct run *run, int *ret_status, struct cordon_error *err) must_check;
void remote_close(struct run *run);

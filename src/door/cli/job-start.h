/* Starting a job from the command line. */
#pragma once
#include "door/cli/run.h"

/* `cordon job start`, without a daemon: returns the exit status once the job runs, or does not. */
int job_start_here(struct run *run, const struct options *options);

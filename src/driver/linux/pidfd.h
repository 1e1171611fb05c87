/* A process that is known by a pidfd. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* As /proc calls it; 0 where that is not to be found out, or it is gone. */
pid_t pidfd_number(int pidfd);
/* SIGKILL, also where pidfd_send_signal() is refused or missing: then by that number. False: it was not sent. */
bool pidfd_kill(int pidfd);
/* SIGCONT, likewise. */
void pidfd_continue(int pidfd);
/* Was it stopped, by SIGSTOP? */
bool pidfd_is_stopped(int pidfd);
#define STOPPED_LOOK_MS 1000            /* between two looks at a process that commands can stop */
/* The network that the process is in, and the user namespace that it belongs to. 0, or a negative errno. */
int pidfd_network(int pidfd, int *ret_user, int *ret_network) must_check;

/* A process that is known by a pidfd. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

/* As /proc calls it; 0 where that is not to be found out, or it is gone. */
pid_t pidfd_number(int pidfd);
/* SIGKILL, also where pidfd_send_signal() is refused or missing: then by that number. False: it was not sent. */
bool pidfd_kill(int pidfd);

/* A cordon-proxy that a test or a bench starts for itself, and what is said to it before it begins. */
#pragma once
#include <sys/types.h>

#include "net/proxy-message.h"

/* Starts the program with its end of a socket pair as PROXY_FD. `prepare` (may be NULL) runs in the new process before
 * the program, sharing the caller's memory: system calls only. Returns the supervisor's end, or -1 with errno. It is
 * killed when the caller dies. */
int proxy_process_start(const char *program, void (*prepare)(long arg), long arg, pid_t *ret_pid);
/* One message, with a descriptor or -1. 0, or -1 with errno. */
int proxy_process_tell(int socket, const struct proxy_message *message, int fd);

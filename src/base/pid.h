/* What the system tells about a process by its number, and where the running program lies. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Its parent, and when it started, in a unit of the system's own: another process of this number started later. False:
 * it is gone, or nothing is told about it. */
bool pid_parent(pid_t pid, pid_t *ret_parent, unsigned long long *ret_started);
/* The variables that it was started with, each ended by NUL. To be free()d; NULL: they cannot be read. Where the system
 * does not tell that from having none, so is that. */
char *pid_environment(pid_t pid, size_t *ret_length);
/* Its working directory, as text. 0 or -errno. */
int pid_directory(pid_t pid, char *ret_path, size_t size);

/* The path of the running program, without links. 0 or -errno. */
int pid_own_program(char *ret_path, size_t size);

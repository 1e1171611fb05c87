/* A descriptor's own path, and another descriptor of what it is of. fd.c is Linux's; other systems have files of their
 * own. */
#pragma once
#include <stddef.h>
#include <sys/types.h>

/* Where it is at this moment, without a link in it; not ended by NUL. Its length, or -1: too long, or there is none. */
ssize_t fd_path(int fd, char *ret_path, size_t size);
/* Opens what `fd` is of (O_PATH will do) once more, never what else has its name by now. -1 and errno. */
int fd_reopen(int fd, int flags);

/* The only place where a path string becomes a descriptor. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/place.h"

/* Opens an absolute path, links followed, as O_PATH, and tells what it really is. A missing path is an error that names
 * it. `ret_fd` may be NULL. */
int beneath_resolve(struct arena *arena, const char *path, struct place *ret_place, int *ret_fd,
                    struct cordon_error *err) must_check;

/* Opens `relative` without leaving `root_fd`: no "..", link or magic link leads out. A descriptor, or a negative
 * errno (-EXDEV where it would have left). */
int beneath_open(int root_fd, const char *relative, int flags);

/* The canonical path of an open descriptor. NULL when it cannot be told. */
char *beneath_path(struct arena *arena, int fd);

/* The directories of the symbolic links on the way of an absolute path to `end`, as they really are. 0, or a negative errno:
 * -ESTALE where it leads elsewhere by now. */
int beneath_links(struct arena *arena, const char *path, const char *end, struct strings *ret_directories) must_check;

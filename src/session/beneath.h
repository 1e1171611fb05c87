/* The only place where a path string becomes a descriptor. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/place.h"

/* Opens an absolute path, following links, as O_PATH, and returns its canonical path and identity. A missing path is
 * an error that names it. `ret_fd` may be NULL. */
int beneath_resolve(struct arena *arena, const char *path, struct place *ret_place, int *ret_fd,
                    struct cordon_error *err) must_check;

/* Opens `relative` without leaving `root_fd`: no "..", link or magic link leads out. A descriptor, or a negative
 * errno (-EXDEV where it would have left). */
int beneath_open(int root_fd, const char *relative, int flags);

/* The canonical path of an open descriptor. NULL when it cannot be told. */
char *beneath_path(struct arena *arena, int fd);

/* The directories of the symbolic links on the way of an absolute path to `end`, as they really are. 0, or a negative
 * errno: -ESTALE where it leads elsewhere by now. */
int beneath_links(struct arena *arena, const char *path, const char *end, struct strings *ret_directories) must_check;

/* Where a symbolic link leads that a command may have made, named by its directory's canonical path: nothing there is
 * opened but as a place. Mounts are entered in the directories of `roots` and on the way to these only, since elsewhere
 * one could make the caller wait, or come into being by being asked for. 0, or a negative errno: -EXDEV where another
 * mount would have been entered, -ETIME where the way is absurdly long. `ret_way` is what that depends on besides the
 * place's own path: each link, each directory that ".." leaves. */
int beneath_follow(struct arena *arena, const char *link, const struct strings *roots, struct place *ret_place,
                   struct strings *ret_way) must_check;

/* Where an absolute path leads, whatever is mounted on the way, and the same `ret_way`. 0, or a negative errno: there,
 * or on the way there, is nothing that can be passed, and `ret_end` is where it would be. */
int beneath_way(struct arena *arena, const char *path, const char **ret_end, struct strings *ret_way) must_check;

/* The home directory of a command whose workspace its caller named: a private one at the path of the caller's own, so
 * that `~` means what it means outside. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/place.h"

/* Where it is if the caller's cannot be covered: "/", a file, a system directory, a path that is not absolute. */
#define HOME_INSIDE "/home/cordon"
/* All of the host's tree is shown read-only there, so what is not on the host can only be in memory. */
#define HOME_IN_WHOLE_VIEW "/tmp/home"

/* `variable` is the caller's HOME, or NULL: then /etc/passwd has it for `uid`, or it is an error. *ret_path is
 * canonical, *ret_alias the caller's own spelling where that leads there by links, else NULL. */
int home_choose(struct arena *arena, const char *variable, unsigned uid, bool whole_view, const char **ret_path,
                const char **ret_alias, struct cordon_error *err) must_check;

/* Makes the mount points `points`, which lie beneath `home` inside (with an alias: a link of that text), in the
 * directory `home_fd`, which commands have written to: no link is followed, and what is of another kind than is needed
 * is renamed, with `.cordon-aside` and a number after its name. */
int home_make_points(int home_fd, const char *home, const struct places *points, struct cordon_error *err) must_check;

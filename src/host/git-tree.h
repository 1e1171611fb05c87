/* git working trees: which one a directory lies in, and where the repository of a linked worktree or a submodule is.
 * Reads, runs nothing, and trusts nothing that does not lead both ways. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/place.h"

/* The top of the working tree that the canonical path `here` lies in: the nearest directory, `here` included, with a
 * `.git`. The search goes no further up than a home (`home`, canonical, or NULL; one in /home; /root), a directory of
 * another owner than `here`, and the root of a mount. *ret_top is NULL where there is none. *ret_refused: NULL, or why
 * the top, which was found, is not to be used. -1 when memory is short. */
int git_tree_top(struct arena *arena, const char *here, const char *home, const char **ret_top,
                 const char **ret_refused) must_check;

/* The repository of the working tree `top` (canonical; `top_fd` is it), where its `.git` is a file and names one
 * outside: of a linked worktree the common directory, of a submodule its own. Only if that leads back here, belongs to
 * the caller as `top` does, and lies in a directory called `.git`, so that its hooks and configuration are protected.
 * *ret_place.path is NULL where there is none; then *ret_refused is NULL or why one that was named is not to be used,
 * to be put after `.git`. -1 when memory is short. */
int git_tree_common(struct arena *arena, int top_fd, const char *top, struct place *ret_place, const char **ret_refused)
	must_check;

/* The directory of the repository that is this working tree's own (its index lies there), where `.git` is a file that
 * names one, wherever, that leads back here and belongs to the caller: a descriptor, or -1. */
int git_tree_own(struct arena *arena, int top_fd, const char *top);

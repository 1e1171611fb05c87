/* The small files by which git finds a repository that is not where it looks first. Pure: bytes in, answer out. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* All paths are absolute, and no directory on the way to them is a link. */

/* Where the `.git` file at `path` with this text leads: false unless that is a place beneath a `.git/modules/` or
 * `.git/worktrees/`, written in the one way that means the same whatever links there are on the way. */
bool git_file_target(const char *text, size_t length, const char *path, char *ret_target, size_t size);

/* Where a path in the file at `path` leads, likewise: false unless it is relative. */
bool git_file_follow(const char *text, const char *path, char *ret_target, size_t size);

/* Whether a directory with this path is what `git worktree add` makes for a working tree. */
bool git_file_is_worktree(const char *path);

/* The text of a `commondir` that leads from there to the repository itself. */
bool git_file_is_up_two(const char *text, size_t length);

/* Whether git itself makes what has this path: directly in a `.git`, or in a directory there that git keeps things in,
 * such as the repositories of submodules. Other programs' directories in a `.git` are none of git's. */
bool git_file_is_gits_own(const char *path);
/* Whether a symbolic link at such a path is one that git, or an editor's lock, makes: it leads nowhere else. */
bool git_file_is_usual_link(const char *path, const char *text);

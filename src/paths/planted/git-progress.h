/* The files of a rebase, cherry-pick, `am` or bisection that is in progress: when a person continues it, git takes
 * commands and options from them. A command must be able to write them, so they are judged when it has ended. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct names_stat;

#define GIT_PROGRESS_SIZE_MAX (1024 * 1024)

/* Pure: why the file of this name, relative to a git directory (`rebase-merge/strategy`), is not harmless with this
 * text. NULL if it is harmless, or not one of the files that are judged. */
const char *git_progress_reason(const char *name, const char *text, size_t length);

/* Called for each file that is not harmless, changed or not: the caller compares `stat` with what it recorded. `name`
 * and `reason` are constants. A negative result ends the search. */
typedef int git_progress_fn(void *arg, const char *name, const struct names_stat *stat, const char *reason);

/* `git_dir_fd` is a git directory: a `.git`, or one of `.git/worktrees/` or `.git/modules/`. The same call before the
 * command says what was there. If no operation is in progress, it costs four calls of openat2() and one of statx().
 * After `deadline_us` (of names_now_us()) no file is read, and each that exists counts as not harmless. 0, or what
 * `take` returned, or -1 when memory is short. */
int git_progress_judge(int git_dir_fd, uint64_t deadline_us, git_progress_fn *take, void *arg) must_check;

/* Writing down what is there before a command runs (planted.h). All that can fail return 0, or -1 when memory is
 * short. */
#pragma once
#include "paths/planted/git-look.h"
#include "paths/planted/planted.h"

#define SEEN_MAX (1024 * 1024)

struct recording {
	struct arena *arena;
	struct git_look look;
	struct planted_before *before;
	uint64_t deadline_us;
};

/* A directory's entries; of hooks, those that could run. What could not is of no account until it can, and is new
 * then. */
int record_directory(struct recording *recording, const char *path, bool is_hooks) must_check;

/* A regular file. `path` is borrowed. */
typedef int record_fn(struct recording *recording, const char *path);
/* What a configuration has. */
record_fn record_config;
/* That a `.git` file led to a repository that is guarded. */
record_fn record_git_file;

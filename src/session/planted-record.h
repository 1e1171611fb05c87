/* Writing down what is there before a command runs (planted.h). All that can fail return 0, or -1 when memory is short. */
#pragma once
#include "session/git-look.h"
#include "session/planted.h"

#define SEEN_MAX (64 * 1024)

struct glob;
struct recording {
	struct arena *arena;
	struct git_look look;
	struct planted_before *before;
	uint64_t deadline_us;           /* for large configurations that nothing keeps from change */
	struct glob *globs;             /* of the rows in planted.c */
};

/* A directory's entries; of hooks, but for the samples. */
int record_directory(struct recording *recording, const char *path, bool is_hooks) must_check;

/* A regular file. `path` is borrowed. */
typedef int record_fn(struct recording *recording, const char *path);
/* What its owner had a configuration run. */
record_fn record_config;
/* That a `.git` file led to a repository that is guarded. */
record_fn record_git_file;

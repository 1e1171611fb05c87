/* Judging what a command left (planted.h): kept and named, or condemned, which by policy moves it to quarantine. All
 * return 0, or -1 when memory is short. */
#pragma once
#include "paths/planted/git-look.h"
#include "paths/planted/planted.h"

#define TOO_MUCH "too much to be judged"

struct check {
	struct arena *arena;
	struct git_look look;
	int quarantine_fd;
	const struct planted_before *before;
	uint64_t deadline_us;
	size_t room, owner_room;        /* that is left in quarantine, for what is new and for what was there before */
	int64_t older_ns;               /* hooks that did not change since then are the owner's; 0: nothing is for
	                                   that */
	bool of_owner;                  /* what is judged was there before */
	size_t judged;
	struct planted planted;
};

/* NULL for a text: memory was short. */
int keep(struct check *check, const char *path, const char *note) must_check;
/* `why` is why it is harmful. */
int condemn(struct check *check, const char *path, const char *why) must_check;
/* Those in a directory that would run and are not as they were. *ret_any: there were some. */
int condemn_hooks(struct check *check, const char *directory, bool *ret_any) must_check;
/* If it would do harm that its owner had not set up before. *ret_any: it would. */
int condemn_config(struct check *check, const char *path, bool *ret_any) must_check;

/* `old`: it was there before. */
typedef int judge_fn(struct check *check, const struct name *name, bool old);
judge_fn judge_hooks, judge_config, judge_common, judge_back, judge_git_file, judge_hgrc, judge_jj, judge_elsewhere;
judge_fn judge_link, judge_policy, judge_settings, judge_other;

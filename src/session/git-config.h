/* Would a git configuration make git run a program, or write where it should not? Pure: bytes in, verdict out. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GIT_CONFIG_SIZE_MAX (1024 * 1024)
#define GIT_CONFIG_DIGEST_SIZE 32
#define GIT_CONFIG_WORKTREE_SIZE 1024

#define GIT_CONFIG_ELSEWHERE "would make git write elsewhere"

struct git_config_verdict {
	char key[128];                  /* the first key that would, as git spells it; cut if long */
	const char *reason;             /* borrowed, for ever; NULL where nothing would */
	unsigned char digest[GIT_CONFIG_DIGEST_SIZE];   /* over all keys that would and their values; the same = nothing new */
	bool comparable;                /* the digest is over all of that */
	char worktree[GIT_CONFIG_WORKTREE_SIZE];        /* `core.worktree`, which is for the caller to judge; or "" */
};

/* `core.worktree` is what a submodule's configuration has and no other: `may_have_worktree` is whether it may be there at all.
 * The digest is over it as well. What git itself would refuse to parse counts as harmful: another version may think otherwise. */
void git_config_judge(const char *text, size_t length, bool may_have_worktree, struct git_config_verdict *ret_verdict);

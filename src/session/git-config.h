/* Would a git configuration make git run a program, or write where it should not? Pure: bytes in, verdict out. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GIT_CONFIG_SIZE_MAX (1024 * 1024)
#define GIT_CONFIG_DIGEST_SIZE 32

struct git_config_verdict {
	char key[128];                  /* the first key that would, as git spells it; cut if long */
	const char *reason;             /* borrowed, for ever; NULL where nothing would */
	unsigned char digest[GIT_CONFIG_DIGEST_SIZE];   /* over all keys that would and their values; the same = nothing new */
	bool comparable;                /* the digest is over all of that */
};

/* `core.worktree` is what a submodule's configuration has and no other: it may lead up `depth` directories, which is how
 * deep the file's own directory lies beneath the workspace; 0 = it may not be there at all. What git itself would refuse
 * to parse counts as harmful: another version may think otherwise. */
void git_config_judge(const char *text, size_t length, unsigned depth, struct git_config_verdict *ret_verdict);

/* Did a command put into a git configuration what would run a program, or lead git elsewhere? Pure: bytes in, verdict
 * out.
 *
 *     git_config_read(text, length, facts, &count)             before the command: what the configuration has
 *     git_config_judge(text, length, &context, &verdict)       after it, with those facts in context.before
 *
 * Settings that the configuration already had are never held against a command. Of the others, the table in
 * policy/git-settings.def says which are harmless. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/git-syntax.h"

#define GIT_CONFIG_SIZE_MAX GIT_SYNTAX_SIZE_MAX
#define GIT_CONFIG_WORKTREE_SIZE 1024
#define GIT_CONFIG_FACTS_MAX 8192       /* a setting comes to two at most */

/* Something that a configuration has, as a hash: a setting that is not harmless, by name and value; or a remote, a
 * branch and the like that it names. Plain bytes without pointers, to be copied or written to disk as they are. */
struct git_config_fact {
	unsigned char hash[16];
};

/* What a configuration had before a command. */
struct git_config_before {
	const struct git_config_fact *facts;    /* sorted by memcmp(), none twice */
	size_t count;
	bool known;                             /* false: it was there, but what it had could not be read */
};

/* `ret_facts` has room for GIT_CONFIG_FACTS_MAX. False: the text is no configuration that can be judged, or has more
 * facts. */
bool git_config_read(const char *text, size_t length, struct git_config_fact *ret_facts, size_t *ret_count);

struct git_config_context {
	const struct git_config_before *before; /* NULL: the file is new */
	bool may_have_worktree; /* `core.worktree` is in the configuration of submodules, and in no other */
	bool is_overlay;        /* a `config.worktree`: what it names may be defined in the `config` beside it */
};

struct git_config_verdict {
	char key[128]; /* the first setting that is to be condemned, as git prints it; cut if long */
	const char *reason;                     /* to be put after `key`; a constant; NULL: there is none */
	char worktree[GIT_CONFIG_WORKTREE_SIZE];        /* `core.worktree`, or "" */
	bool worktree_is_new;                   /* the caller must judge where it leads */
	char removed[128]; /* of a change: a setting of a remote that is gone, cut if long; or "" */
};
void git_config_judge(const char *text, size_t length, const struct git_config_context *context,
                      struct git_config_verdict *ret_verdict);
/* May a configuration that was `before` become `text`? The same, and what runs something or leads somewhere is neither
 * taken away nor put in another order: another command could put a setting of its own in its place. Taken away may be
 * which remote a branch has, and a whole remote that nothing names any more. */
void git_config_judge_change(const char *before, size_t before_length, const char *text, size_t length,
                             struct git_config_verdict *ret_verdict);

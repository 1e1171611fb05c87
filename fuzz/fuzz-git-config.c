/* Any bytes as two git configurations, split at the first NUL: one is never held against a command that did not change
 * it, and what is new in the second is judged. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "paths/planted/git-config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct git_config_fact facts[GIT_CONFIG_FACTS_MAX];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *split = size ? memchr(text, '\0', size) : NULL;
	size_t first = split ? (size_t)(split - text) : size, second = split ? size - first - 1 : 0;
	struct git_config_before before = { .facts = facts };
	struct git_config_verdict new, changed, same;
	before.known = git_config_read(text, first, facts, &before.count);
	for (size_t i = 1; before.known && i < before.count; i++)
		if (memcmp(&facts[i - 1], &facts[i], sizeof(*facts)) >= 0)
			abort();
	git_config_judge(text, first, &(struct git_config_context){ .before = &before }, &same);
	/* A value that is cut is never the same: it needs more than 4 KiB. */
	if (before.known && first < 4096 && (same.reason || same.worktree_is_new))
		abort();
	if (split) {
		git_config_judge(split + 1, second, &(struct git_config_context){ 0 }, &new);
		git_config_judge(split + 1, second,
				 &(struct git_config_context){ .before = &(struct git_config_before){ 0 } }, &changed);
		if (new.reason && !changed.reason)
			abort();
		/* A file may become what a command may leave, and no more. */
		struct git_config_verdict left, written;
		git_config_judge(split + 1, second, &(struct git_config_context){ .before = &before }, &left);
		git_config_judge_change(text, first, split + 1, second, &written);
		if (left.reason && !written.reason)
			abort();
	}
	return 0;
}

/* Any bytes as each file of an operation of git in progress, and as the configuration of Mercurial and Jujutsu. The
 * first line is the name of the file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "paths/planted/git-progress.h"
#include "paths/planted/vcs-config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *line_end = size ? memchr(text, '\n', size) : NULL;
	char name[64] = "";
	if (!line_end || line_end - text >= (int)sizeof(name))
		return 0;
	memcpy(name, text, (size_t)(line_end - text));
	size_t length = size - (size_t)(line_end + 1 - text);
	/* Of its exact length, so that a byte read past the end is found. */
	char *copy = malloc(length ? length : 1);
	if (!copy)
		abort();
	memcpy(copy, line_end + 1, length);
	const char *reason = git_progress_reason(name, copy, length);
	if (!strcmp(name, "rebase-merge/git-rebase-todo") && length >= 5 && !memcmp(copy, "exec ", 5) && !reason)
		abort();
	hg_config_reason(copy, length);
	jj_config_reason(copy, length);
	free(copy);
	return 0;
}

/* Any bytes as a git configuration: what comes out, written and read again, is the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/git-identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *without_control(struct arena *arena, const char *text)
{
	char *copy = arena_strdup(arena, text), *out = copy;
	if (!copy)
		abort();
	for (; *text; text++)
		if ((unsigned char)*text >= 0x20 && *text != 0x7f)
			*out++ = *text;
	*out = '\0';
	return copy;
}

static void same(struct arena *arena, const char *before, const char *after)
{
	if (!before != !after || (before && strcmp(without_control(arena, before), after)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	const char *name = NULL, *email = NULL, *name_again = NULL, *email_again = NULL;
	if (git_identity_parse(&arena, (const char *)data, size, &name, &email) < 0)
		abort();
	const char *text = git_identity_text(&arena, name, email);
	if (!text || git_identity_parse(&arena, text, strlen(text), &name_again, &email_again) < 0)
		abort();
	same(&arena, name, name_again);
	same(&arena, email, email_again);
	arena_free(&arena);
	return 0;
}

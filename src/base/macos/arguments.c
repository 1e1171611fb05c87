/* See arguments.h. */
#include "base/macos/arguments.h"

#include <string.h>

/* What follows the text at `at`; NULL: it does not end. */
static const char *behind(const char *at, const char *end)
{
	const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
	return nul ? nul + 1 : NULL;
}

const char *arguments_environment(const char *bytes, size_t length, size_t *ret_length)
{
	const char *end = bytes + length, *at = bytes + sizeof(int);
	int count;
	if (length < sizeof(count))
		return NULL;
	memcpy(&count, bytes, sizeof(count));
	at = behind(at, end);
	while (at && at < end && !*at)
		at++;
	for (; at && count > 0; count--)
		at = behind(at, end);
	/* An empty text ends them. */
	const char *from = at;
	for (const char *next; at && at < end && *at && (next = behind(at, end)); at = next)
		;
	if (!from || at == from)
		return NULL;
	*ret_length = (size_t)(at - from);
	return from;
}

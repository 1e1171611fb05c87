/* Resource limits as text: see ulimit.h. */
#include "base/ulimit.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

#define NUMBER_SIZE 24

static const char *const names[ULIMIT_COUNT] = {
	"cpu",     "fsize", "data",  "stack",      "core",     "rss",  "nproc",  "nofile",
	"memlock", "as",    "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime",
};

const char *ulimit_name(unsigned number)
{
	return names[number];
}

static bool parse(const char *text, size_t length, uint64_t *ret_number)
{
	char number[NUMBER_SIZE];
	if (length >= sizeof(number))
		return false;
	memcpy(number, text, length);
	number[length] = '\0';
	*ret_number = ULIMIT_UNLIMITED;
	return !strcmp(number, "unlimited") || text_parse_number(number, ULIMIT_UNLIMITED, ret_number);
}

const char *ulimit_add(struct ulimits *ulimits, const char *text)
{
	struct ulimit limit;
	unsigned number = 0;
	size_t length = strcspn(text, "=");
	while (number < ULIMIT_COUNT && (strlen(names[number]) != length || memcmp(names[number], text, length) != 0))
		number++;
	if (number == ULIMIT_COUNT || !text[length])
		return "must be NAME=SOFT or NAME=SOFT:HARD; NAME is cpu, fsize, data, stack, core, rss, nproc, "
		       "nofile, memlock, as, locks, sigpending, msgqueue, nice, rtprio or rttime";
	const char *soft = text + length + 1, *colon = strchr(soft, ':');
	if (!parse(soft, colon ? (size_t)(colon - soft) : strlen(soft), &limit.soft) ||
	    !parse(colon ? colon + 1 : soft, strlen(colon ? colon + 1 : soft), &limit.hard))
		return "a limit must be a number, of bytes where it is of memory, or unlimited";
	if (limit.soft > limit.hard)
		return "the first limit must not be above the second";
	ulimits->limits[number] = limit;
	ulimits->given |= 1u << number;
	return NULL;
}

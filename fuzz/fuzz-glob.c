/* Any bytes as a glob and as a path: matching agrees with a second matcher that tries everything, and the short cuts (a
 * name alone, a directory above) never leave out what matches. Input: a byte of options, the glob, NUL, the path. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/glob.h"
#include "base/text.h"
#include "cordon-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The second matcher is quadratic in both: what is longer is only matched by the first. */
enum { SHORT = 256, PARTS = SHORT / 2 + 1 };

struct part {
	const char *text;
	size_t length;
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static unsigned char folded(char byte, bool fold)
{
	return (unsigned char)(fold && byte >= 'A' && byte <= 'Z' ? byte + 32 : byte);
}

/* One element and one byte; *length is the element's. */
static bool takes(const char *element, const char *end, char byte, bool fold, size_t *length)
{
	*length = 1;
	if (*element == '[') {
		const char *first = element + 1 + (element + 1 < end && (element[1] == '!' || element[1] == '^'));
		const char *close = first < end ? memchr(first + 1, ']', (size_t)(end - first - 1)) : NULL;
		if (close) {
			bool found = false;
			for (const char *at = first; at < close; at++) {
				const char *high = at + 2 < close && at[1] == '-' ? at + 2 : at;
				found |= folded(*at, fold) <= folded(byte, fold) &&
				         folded(byte, fold) <= folded(*high, fold);
				at = high;
			}
			*length = (size_t)(close + 1 - element);
			return found != (first != element + 1);
		}
	}
	if (*element == '\\' && element + 1 < end) {
		*length = 2;
		return folded(element[1], fold) == folded(byte, fold);
	}
	return *element == '?' || folded(*element, fold) == folded(byte, fold);
}

static bool component_matches(struct part glob, struct part name, bool fold)
{
	static bool reached[SHORT + 1][SHORT + 1];
	memset(reached, 0, sizeof(reached));
	reached[0][0] = true;
	for (size_t at = 0; at < glob.length; at++)
		for (size_t in = 0; in <= name.length; in++) {
			size_t length;
			if (!reached[at][in])
				continue;
			if (glob.text[at] == '*') {
				for (size_t more = in; more <= name.length; more++)
					reached[at + 1][more] = true;
			} else if (in < name.length &&
			           takes(glob.text + at, glob.text + glob.length, name.text[in], fold, &length)) {
				reached[at + length][in + 1] = true;
			}
		}
	return reached[glob.length][name.length];
}

static size_t split(const char *text, struct part *parts)
{
	size_t count = 0;
	for (text += strspn(text, "/"); *text; text += strspn(text, "/")) {
		parts[count++] = (struct part){ text, strcspn(text, "/") };
		text += parts[count - 1].length;
	}
	return count;
}

static bool matches(const struct glob *glob, const char *path)
{
	static bool reached[PARTS + 1][PARTS + 1];
	struct part globs[PARTS], names[PARTS];
	size_t glob_count = split(glob->pattern, globs), name_count = split(path, names);
	memset(reached, 0, sizeof(reached));
	reached[0][0] = true;
	for (size_t at = 0; at < glob_count; at++)
		for (size_t in = 0; in <= name_count; in++) {
			bool any_depth = globs[at].length == 2 && !memcmp(globs[at].text, "**", 2);
			if (!reached[at][in])
				continue;
			/* What lies beneath is not the directory itself. */
			for (size_t more = in + (at + 1 == glob_count); any_depth && more <= name_count; more++)
				reached[at + 1][more] = true;
			if (!any_depth && in < name_count && component_matches(globs[at], names[in], glob->fold_case))
				reached[at + 1][in + 1] = true;
		}
	return reached[glob_count][name_count];
}

static void check(struct arena *arena, const struct glob *glob, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash + 1;
	bool match = glob_match(glob, path);
	if (strlen(glob->pattern) < SHORT && strlen(path) < SHORT)
		must(match == matches(glob, path));
	/* No components, no name. */
	if (!*name)
		return;
	bool by_name = glob_match_name(glob, name, strlen(name));
	must(glob->anywhere ? match == by_name : !match || by_name);
	if (match && slash != path)
		must(glob_reaches(glob, arena_strndup(arena, path, (size_t)(slash - path))));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct glob glob;
	struct cordon_error err;
	if (!size)
		return 0;
	const char *pattern = arena_strndup(&arena, (const char *)data + 1, size - 1);
	size_t length = strlen(pattern);
	const char *path = pattern + length + (length < size - 1);
	if (glob_compile(&arena, pattern, data[0] & 1 ? GLOB_FOLD_CASE : 0, &glob, &err) == 0) {
		must(*glob.pattern && *glob.pattern != '/' && !strstr(glob.pattern, "//"));
		(void)glob_match(&glob, path);
		(void)glob_reaches(&glob, path);
		check(&arena, &glob, path_normalise(&arena, arena_printf(&arena, "/%s", path)));
	} else {
		must(err.class == CORDON_E_CONFIG_INVALID);
	}
	arena_free(&arena);
	return 0;
}

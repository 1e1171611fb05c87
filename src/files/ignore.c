/* .gitignore: see ignore.h. */
#include "files/ignore.h"

#include <string.h>

#include "base/arena.h"

/* Trailing spaces do not count, unless the last is escaped. */
static size_t trim(const char *line, size_t length)
{
	if (length && line[length - 1] == '\r')
		length--;
	while (length && line[length - 1] == ' ' && !(length > 1 && line[length - 2] == '\\'))
		length--;
	return length;
}

/* 1: added; 0: not a pattern; -1 when memory is short. */
static int parse_line(struct arena *arena, const char *line, size_t length, struct ignore_pattern *ret_pattern)
{
	struct ignore_pattern pattern = { .negated = false };
	length = trim(line, length);
	if (!length || *line == '#' || length > GLOB_LENGTH_MAX || memchr(line, '\0', length))
		return 0;
	if (*line == '!') {
		pattern.negated = true;
		line++;
		length--;
	}
	/* A slash at the end says what kind it is, not where. */
	while (length && line[length - 1] == '/') {
		pattern.directories_only = true;
		length--;
	}
	if (!length)
		return 0;
	char *text = arena_strndup(arena, line, length);
	if (!text)
		return -1;
	if (glob_compile(arena, text, 0, &pattern.glob, NULL) < 0)
		return 0;
	*ret_pattern = pattern;
	return 1;
}

int ignore_parse(struct arena *arena, const char *text, size_t length, struct ignore *ret_ignore)
{
	struct ignore ignore = { .count = 0 };
	size_t lines = 1;
	if (length > IGNORE_BYTES_MAX)
		length = IGNORE_BYTES_MAX;
	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	if (lines > IGNORE_PATTERNS_MAX)
		lines = IGNORE_PATTERNS_MAX;
	ignore.patterns = arena_alloc(arena, lines * sizeof(*ignore.patterns));
	if (!ignore.patterns)
		return -1;
	for (const char *at = text, *end = text + length; at < end && ignore.count < lines;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		int added =
			parse_line(arena, at, (size_t)((newline ? newline : end) - at), &ignore.patterns[ignore.count]);
		if (added < 0)
			return -1;
		ignore.count += (size_t)added;
		at = newline ? newline + 1 : end;
	}
	*ret_ignore = ignore;
	return 0;
}

enum ignore_verdict ignore_judge(const struct ignore *ignore, const char *path, bool is_directory)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t length = strlen(name);
	for (size_t i = ignore->count; i-- > 0;) {
		const struct ignore_pattern *pattern = &ignore->patterns[i];
		if (pattern->directories_only && !is_directory)
			continue;
		if (glob_match_name(&pattern->glob, name, length) &&
		    (pattern->glob.anywhere || glob_match(&pattern->glob, path)))
			return pattern->negated ? IGNORE_KEPT : IGNORE_LEFT_OUT;
	}
	return IGNORE_UNDECIDED;
}

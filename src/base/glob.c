/* Path globs: see glob.h. Both levels, components with `**` and bytes with `*`, are matched greedily with a return to
 * the last star only: an earlier star never needs to take more, since what follows it has already matched as early as
 * it can. So there is no recursion and no exponential case. */
#include "base/glob.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/error.h"

static unsigned char fold(unsigned char byte, bool fold_case)
{
	return fold_case && byte >= 'A' && byte <= 'Z' ? byte + 32 : byte;
}

/* The length of the set that `text` begins with, or 0 where no `]` closes it: then `[` is a literal. */
static size_t set_length(const char *text, size_t length)
{
	size_t at = 1;
	if (at < length && (text[at] == '!' || text[at] == '^'))
		at++;
	if (at < length && text[at] == ']')
		at++;
	while (at < length && text[at] != ']')
		at++;
	return at < length ? at + 1 : 0;
}

static bool set_holds(const char *set, size_t length, unsigned char byte, bool fold_case)
{
	size_t at = 1, end = length - 1;
	bool negated = set[at] == '!' || set[at] == '^', found = false;
	for (at += negated; at < end; at++) {
		unsigned char low = fold((unsigned char)set[at], fold_case), high = low;
		if (at + 2 < end && set[at + 1] == '-') {
			high = fold((unsigned char)set[at + 2], fold_case);
			at += 2;
		}
		found |= byte >= low && byte <= high;
	}
	return found != negated;
}

/* Whether one element of the pattern takes `byte`; *ret_used tells how long the element is. */
static bool element_takes(const char *pattern, size_t length, unsigned char byte, bool fold_case, size_t *ret_used)
{
	size_t set = *pattern == '[' ? set_length(pattern, length) : 0;
	byte = fold(byte, fold_case);
	*ret_used = set ? set : 1;
	if (set)
		return set_holds(pattern, set, byte, fold_case);
	if (*pattern == '?')
		return true;
	if (*pattern == '\\' && length > 1) {
		*ret_used = 2;
		pattern++;
	}
	return fold((unsigned char)*pattern, fold_case) == byte;
}

static bool match_component(const char *pattern, size_t pattern_length, const char *name, size_t length, bool fold_case)
{
	size_t at = 0, in = 0, star = SIZE_MAX, star_in = 0, used;
	while (in < length) {
		if (at < pattern_length && pattern[at] == '*') {
			star = ++at;
			star_in = in;
		} else if (at < pattern_length && element_takes(pattern + at, pattern_length - at,
		                                                (unsigned char)name[in], fold_case, &used)) {
			at += used;
			in++;
		} else if (star != SIZE_MAX) {
			at = star;
			in = ++star_in;
		} else {
			return false;
		}
	}
	while (at < pattern_length && pattern[at] == '*')
		at++;
	return at == pattern_length;
}

bool glob_match_text(const char *pattern, const char *text)
{
	return match_component(pattern, strlen(pattern), text, strlen(text), false);
}

static bool is_any_depth(const char *component, size_t length)
{
	return length == 2 && component[0] == '*' && component[1] == '*';
}

bool glob_match(const struct glob *glob, const char *path)
{
	const char *at = glob->pattern, *star = NULL, *star_in = NULL, *in = path;
	while (*in == '/')
		in++;
	while (*in) {
		size_t length = strcspn(at, "/"), name_length = strcspn(in, "/");
		if (*at && is_any_depth(at, length)) {
			at += length + (at[length] == '/');
			/* A trailing `**` is what lies beneath, so it takes at least one component. */
			if (!*at)
				return true;
			star = at;
			star_in = in;
		} else if (*at && match_component(at, length, in, name_length, glob->fold_case)) {
			at += length + (at[length] == '/');
			in += name_length + (in[name_length] == '/');
		} else if (star) {
			at = star;
			star_in += strcspn(star_in, "/");
			star_in += *star_in == '/';
			in = star_in;
		} else {
			return false;
		}
	}
	return !*at;
}

bool glob_match_name(const struct glob *glob, const char *name, size_t length)
{
	size_t last = glob->last_length;
	int (*compare)(const char *, const char *, size_t) = glob->fold_case ? strncasecmp : strncmp;
	switch (glob->shape) {
	case GLOB_LITERAL:
		return length == last && !compare(name, glob->last, last);
	case GLOB_PREFIX:
		return length >= last && !compare(name, glob->last, last);
	case GLOB_SUFFIX:
		return length >= last && !compare(name + length - last, glob->last, last);
	case GLOB_ANY:
		return true;
	default:
		return match_component(glob->last, last, name, length, glob->fold_case);
	}
}

bool glob_reaches(const struct glob *glob, const char *root)
{
	const char *at = glob->pattern;
	if (!glob->absolute)
		return true;
	for (root += strspn(root, "/"); *at && *root; root += strspn(root, "/")) {
		size_t length = strcspn(at, "/"), name_length = strcspn(root, "/");
		if (is_any_depth(at, length))
			return true;
		if (!match_component(at, length, root, name_length, glob->fold_case))
			return false;
		at += length + (at[length] == '/');
		root += name_length;
	}
	return *at;
}

static void classify(struct glob *glob)
{
	const char *slash = strrchr(glob->pattern, '/'), *special;
	glob->last = slash ? slash + 1 : glob->pattern;
	glob->last_length = strlen(glob->last);
	glob->anywhere = slash && is_any_depth(glob->pattern, (size_t)(slash - glob->pattern)) &&
	                 !is_any_depth(glob->last, glob->last_length);
	special = strpbrk(glob->last, "*?[\\");
	glob->shape = GLOB_GENERAL;
	if (!special) {
		glob->shape = GLOB_LITERAL;
	} else if (is_any_depth(glob->last, glob->last_length) || !strcmp(glob->last, "*")) {
		glob->shape = GLOB_ANY;
	} else if (*special == '*' && !special[1]) {
		glob->shape = GLOB_PREFIX;
		glob->last_length--;
	} else if (special == glob->last && *special == '*' && !strpbrk(special + 1, "*?[\\")) {
		glob->shape = GLOB_SUFFIX;
		glob->last++;
		glob->last_length--;
	}
}

int glob_compile(struct arena *arena, const char *pattern, unsigned options, struct glob *ret_glob,
                 struct cordon_error *err)
{
	struct glob glob = { .absolute = pattern[0] == '/', .fold_case = options & GLOB_FOLD_CASE };
	size_t length = strlen(pattern), used = 0;
	glob.directory = length && pattern[length - 1] == '/';
	if (length > GLOB_LENGTH_MAX)
		return fail(err, CORDON_E_CONFIG_INVALID, 0, pattern, "the glob is longer than %d bytes",
		            GLOB_LENGTH_MAX);
	char *copy = arena_alloc(arena, length + sizeof("**/"));
	if (!copy)
		return fail_oom(err);
	if (!strchr(pattern, '/')) {
		memcpy(copy, "**/", 3);
		used = 3;
	}
	for (const char *at = pattern; *at; at += strspn(at, "/")) {
		size_t size = strcspn(at, "/");
		if (size == 2 && !memcmp(at, "..", 2))
			return fail(err, CORDON_E_CONFIG_INVALID, 0, pattern, "a glob cannot have a \"..\" component");
		if (size && !(size == 1 && *at == '.')) {
			if (used && copy[used - 1] != '/')
				copy[used++] = '/';
			memcpy(copy + used, at, size);
			used += size;
		}
		at += size;
	}
	if (!used || copy[used - 1] == '/')
		return fail(err, CORDON_E_CONFIG_INVALID, 0, pattern, "the glob names nothing");
	glob.pattern = copy;
	classify(&glob);
	*ret_glob = glob;
	return 0;
}

/* See login.h. */
#include <jansson.h>

#include "door/agent/login.h"

#include <string.h>

#include "base/text.h"

#define DEPTH_MAX 8
#define TEXT_LENGTH_MAX (16u << 10)

/* What a path of members is compared with: the words of a pattern, separated by dots. */
static bool is_named(const char *pattern, const char *const *path, size_t depth)
{
	for (size_t i = 0; i < depth; i++) {
		size_t length = strcspn(pattern, ".");
		bool last = !pattern[length];
		if (!(length == 1 && *pattern == '*') &&
		    (strlen(path[i]) != length || strncmp(path[i], pattern, length) != 0))
			return false;
		if (last != (i + 1 == depth))
			return false;
		pattern += length + !last;
	}
	return depth > 0;
}

static bool may_differ(const struct strings *changes, const char *const *path, size_t depth)
{
	for (size_t i = 0; i < changes->count; i++)
		if (is_named(changes->items[i], path, depth))
			return true;
	return false;
}

static bool is_plain(json_t *value, unsigned depth)
{
	const char *key;
	json_t *each;
	size_t index;
	if (depth > DEPTH_MAX)
		return false;
	if (json_is_string(value)) {
		const char *text = json_string_value(value);
		return json_string_length(value) <= TEXT_LENGTH_MAX && strlen(text) == json_string_length(value) &&
		       !text_has_control(text);
	}
	json_array_foreach(value, index, each)
		if (!is_plain(each, depth + 1))
			return false;
	json_object_foreach(value, key, each)
		if (text_has_control(key) || !is_plain(each, depth + 1))
			return false;
	return true;
}

static bool is_renewed(const struct strings *changes, json_t *before, json_t *after, const char **path, size_t depth)
{
	const char *key;
	json_t *each;
	if (may_differ(changes, path, depth))
		return !after || is_plain(after, 0);
	if (before && after && json_equal(before, after))
		return true;
	if (depth == DEPTH_MAX || (before && !json_is_object(before)) || (after && !json_is_object(after)) ||
	    (!before && !after))
		return false;
	json_object_foreach(after, key, each) {
		path[depth] = key;
		if (!is_renewed(changes, json_object_get(before, key), each, path, depth + 1))
			return false;
	}
	json_object_foreach(before, key, each) {
		path[depth] = key;
		if (!json_object_get(after, key) && !is_renewed(changes, each, NULL, path, depth + 1))
			return false;
	}
	/* An object that came or went says something by itself, unless all of it may. */
	return depth == 0 || (before && after) || json_object_size(before ? before : after) > 0;
}

bool login_is_renewed(const struct strings *changes, const char *before, size_t before_length, const char *after,
                      size_t after_length)
{
	const char *path[DEPTH_MAX + 1];
	if (before_length > LOGIN_SIZE_MAX || after_length > LOGIN_SIZE_MAX)
		return false;
	json_t *old = before ? json_loadb(before, before_length, JSON_REJECT_DUPLICATES, NULL) : json_object();
	json_t *new = json_loadb(after, after_length, JSON_REJECT_DUPLICATES, NULL);
	bool renewed = json_is_object(old) && json_is_object(new) && is_renewed(changes, old, new, path, 0);
	json_decref(old);
	json_decref(new);
	return renewed;
}

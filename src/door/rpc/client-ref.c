/* See client-ref.h. */
#include "door/rpc/client-ref.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define REF_MAX 1024    /* what the setting takes */

static bool is_plain(const char *text, size_t length)
{
	return strlen(text) == length && !text_has_control(text);
}

static bool is_short(json_t *value)
{
	return json_is_integer(value) ||
	       (json_is_string(value) && is_plain(json_string_value(value), json_string_length(value)));
}

static bool is_wanted(json_t *value)
{
	const char *name;
	json_t *each;
	if (!json_is_object(value))
		return is_short(value);
	json_object_foreach(value, name, each)
		if (!is_plain(name, strlen(name)) || !is_short(each))
			return false;
	return true;
}

char *client_ref_make(json_t *from, const char *const *names)
{
	json_t *ref = json_object();
	char *kept = NULL;
	for (; ref && *names; names++) {
		json_t *value = json_object_get(from, *names);
		if (!is_wanted(value) || json_object_set(ref, *names, value) < 0)
			continue;
		auto_free char *text = json_dumps(ref, JSON_COMPACT);
		if (!text || strlen(text) > REF_MAX) {
			json_object_del(ref, *names);
			continue;
		}
		char *before = kept;
		kept = text;
		text = before;
	}
	json_decref(ref);
	return kept;
}

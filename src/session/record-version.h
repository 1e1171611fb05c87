/* Which version a record on disk has: its members `version`, and `reader`, the least version of a reader that
 * understands it; without it, the same. A record without `reader` of our version, or an earlier one, has the members
 * that we write, and no others. One that names a reader may have more, at any depth, which change nothing for that
 * reader and are ignored. */
#pragma once
#include <jansson.h>

enum record_version { RECORD_EXACT, RECORD_OPEN, RECORD_NEWER, RECORD_NO_VERSION };

static inline enum record_version record_version_read(const json_t *object, json_int_t ours)
{
	const json_t *version = json_object_get(object, "version"), *reader = json_object_get(object, "reader");
	json_int_t least = json_integer_value(reader ? reader : version);
	if (!json_is_integer(version) || least < 1 || least > json_integer_value(version))
		return RECORD_NO_VERSION;
	return least > ours ? RECORD_NEWER : reader ? RECORD_OPEN : RECORD_EXACT;
}

/* Reading the library's own JSON: see json-read.h. */
#include "door/cli/json-read.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/visible.h"

json_t *json_read(const char *text)
{
	return json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

const char *json_read_string(const json_t *value)
{
	const char *text = json_string_value(value);
	return text ? text : "";
}

const char *json_read_text(const json_t *object, const char *key)
{
	return json_read_string(json_object_get(object, key));
}

long json_read_number(const json_t *object, const char *key)
{
	return (long)json_integer_value(json_object_get(object, key));
}

bool json_read_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

void json_read_say(const char *text, bool as_json, void (*print)(const json_t *value))
{
	auto_json json_t *value = as_json ? NULL : json_read(text);
	if (value)
		print(value);
	else
		puts(text);
}

void json_read_print(const char *text, bool one_line)
{
	auto_json json_t *value = json_read(text);
	auto_free char *laid = json_dumps(value, JSON_ENCODE_ANY | (one_line ? JSON_COMPACT : JSON_INDENT(2)));
	char *rest = laid;
	for (char *line; rest && (line = strsep(&rest, "\n"));) {
		auto_free char *safe = visible_json(line);
		puts(safe ? safe : "");
	}
}

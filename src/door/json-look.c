/* No tree is built: values are skipped over by their brackets and quotes. For a report of a few kilobytes that is less
 * code, and less to link into a program that should start fast, than a parser. */
#include "door/json-look.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_space(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

static const char *skip_string(const char *at)
{
	for (at++; *at && *at != '"'; at++)
		if (*at == '\\' && at[1])
			at++;
	return at + (*at == '"');
}

size_t json_look_length(const char *value)
{
	const char *at = value;
	for (unsigned depth = 0; *at && (depth || !strchr(",}] \t\r\n", *at));) {
		if (*at == '"') {
			at = skip_string(at);
			continue;
		}
		depth += *at == '{' || *at == '[';
		depth -= *at == '}' || *at == ']';
		at++;
	}
	return (size_t)(at - value);
}

static const char *skip_value(const char *at)
{
	return skip_space(at + json_look_length(at));
}

const char *json_look_member(const char *object, const char *key)
{
	size_t length = strlen(key);
	if (!object || *object != '{')
		return NULL;
	for (const char *at = skip_space(object + 1); *at == '"';) {
		bool is_it = !strncmp(at + 1, key, length) && at[1 + length] == '"';
		at = skip_space(skip_string(at));
		if (*at != ':')
			return NULL;
		at = skip_space(at + 1);
		if (is_it)
			return at;
		at = skip_value(at);
		if (*at == ',')
			at = skip_space(at + 1);
	}
	return NULL;
}

const char *json_look_first(const char *array)
{
	if (!array || *array != '[')
		return NULL;
	const char *at = skip_space(array + 1);
	return *at && *at != ']' ? at : NULL;
}

const char *json_look_next(const char *element)
{
	if (!element)
		return NULL;
	const char *at = skip_value(element);
	return *at == ',' ? skip_space(at + 1) : NULL;
}

bool json_look_true(const char *value)
{
	return value && !strncmp(value, "true", 4);
}

long json_look_number(const char *value)
{
	return value ? strtol(value, NULL, 10) : 0;
}

/* One character of a string; \u escapes beyond ASCII are not used by the library's writer and become "?". */
static char unescape(const char **at)
{
	static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
	if (**at != '\\' || !(*at)[1])
		return *(*at)++;
	char letter = (*at)[1];
	*at += 2;
	const char *found = strchr(letters, letter);
	if (found)
		return meanings[found - letters];
	if (letter != 'u')
		return letter;
	char digits[5] = { 0 };
	strncpy(digits, *at, 4);
	*at += strlen(digits);
	unsigned long code = strtoul(digits, NULL, 16);
	return code && code < 0x80 ? (char)code : '?';
}

const char *json_look_text(const char *value, char *text, size_t size)
{
	size_t length = 0;
	if (value && *value == '"')
		for (const char *at = value + 1; *at && *at != '"' && length + 1 < size;)
			text[length++] = unescape(&at);
	text[length] = '\0';
	return text;
}

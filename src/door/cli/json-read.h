/* Reading the library's own JSON to format it: jansson, and what the printers share. NULL, and members that are
 * missing or of another type, read as "", 0 and false. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* To be released with json_decref(); NULL when memory is short. */
json_t *json_read(const char *text);
static inline void json_read_free(json_t **value) { json_decref(*value); }
#define auto_json __attribute__((cleanup(json_read_free)))

/* A value itself, and members of an object. Texts are borrowed; one that has a NUL in it ends there. */
const char *json_read_string(const json_t *value);
const char *json_read_text(const json_t *object, const char *key);
long json_read_number(const json_t *object, const char *key);
bool json_read_true(const json_t *object, const char *key);
#define JSON_EACH(element, array)                                                                                      \
	(size_t element##_at = 0, element##_end = json_array_size(array); element##_at < element##_end;                \
	 element##_at++) for (const json_t *element = json_array_get(array, element##_at); element; element = NULL)

/* On standard output: the text as it is, with a newline; or what it says, by `print`, unless memory is short. */
void json_read_say(const char *text, bool as_json, void (*print)(const json_t *value));
/* The text on one line, or with a member a line; with a newline. Every character that is not plain is escaped. */
void json_read_print(const char *text, bool one_line);

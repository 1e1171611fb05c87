/* Writing JSON into one growing buffer. Commas are put in by the writer. Text need not be UTF-8: what is not becomes
 * U+FFFD. A failed allocation is remembered, and json_take() then returns NULL, so callers check once. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
	char *text;
	size_t length, capacity;
	bool need_comma, failed, after_key;
	unsigned depth;
	bool pretty;
};

void json_init(struct json *json);
void json_free(struct json *json);
/* The finished text, ended by NUL, to be free()d; NULL if memory was short. The writer is empty afterwards. */
char *json_take(struct json *json);

void json_object_begin(struct json *json);
void json_object_end(struct json *json);
void json_array_begin(struct json *json);
void json_array_end(struct json *json);
void json_key(struct json *json, const char *key);

/* NULL is written as null. Not "json_string" and "json_null": libjansson has functions of these names. */
void json_text(struct json *json, const char *text);
/* `bytes` may be NULL where `length` is 0. */
void json_bytes(struct json *json, const char *bytes, size_t length);
void json_int(struct json *json, int64_t number);
void json_uint(struct json *json, uint64_t number);
void json_bool(struct json *json, bool value);
void json_nil(struct json *json);
/* Writes a value that is JSON already. */
void json_verbatim(struct json *json, const char *text);

void json_key_string(struct json *json, const char *key, const char *text);
/* Bytes. Where they are not UTF-8, KEY_base64 beside it is exact; KEY itself then has the first
 * JSON_SHOWN_MAX of them. */
#define JSON_SHOWN_MAX ((size_t)64 << 10)
void json_key_bytes(struct json *json, const char *key, const void *data, size_t length);
/* A string: these bytes as base64. */
void json_base64(struct json *json, const void *data, size_t length);
void json_key_int(struct json *json, const char *key, int64_t number);
void json_key_uint(struct json *json, const char *key, uint64_t number);
void json_key_bool(struct json *json, const char *key, bool value);
/* An array of strings. */
void json_key_strings(struct json *json, const char *key, const char *const *items, size_t count);

/* Is JSON that comes from elsewhere nested no deeper than this? Parsers recurse. */
bool json_is_shallow(const char *text, size_t length, size_t most);

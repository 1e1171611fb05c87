/* A JSON writer: see json.h. */
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void json_init(struct json *json)
{
	memset(json, 0, sizeof(*json));
}

void json_free(struct json *json)
{
	free(json->text);
	json_init(json);
}

static void append(struct json *json, const char *bytes, size_t length)
{
	if (json->failed)
		return;
	if (length >= json->capacity - json->length) {
		size_t capacity = json->capacity ? json->capacity : 1024;
		while (capacity - json->length <= length)
			capacity *= 2;
		char *grown = realloc(json->text, capacity);
		if (!grown) {
			json->failed = true;
			return;
		}
		json->text = grown;
		json->capacity = capacity;
	}
	memcpy(json->text + json->length, bytes, length);
	json->length += length;
}

char *json_take(struct json *json)
{
	append(json, "", 1);
	char *text = json->failed ? NULL : json->text;
	if (json->failed)
		free(json->text);
	json_init(json);
	return text;
}

static void newline(struct json *json)
{
	if (!json->pretty)
		return;
	append(json, "\n", 1);
	for (unsigned i = 0; i < json->depth; i++)
		append(json, "  ", 2);
}

/* What comes before a value or a key: a comma after a sibling, nothing after a key. */
static void separate(struct json *json)
{
	if (json->after_key) {
		json->after_key = false;
		return;
	}
	if (json->need_comma)
		append(json, ",", 1);
	if (json->depth)
		newline(json);
}

static void begin(struct json *json, const char *bracket)
{
	separate(json);
	append(json, bracket, 1);
	json->depth++;
	json->need_comma = false;
}

static void end(struct json *json, const char *bracket)
{
	json->depth--;
	if (json->need_comma)
		newline(json);
	append(json, bracket, 1);
	json->need_comma = true;
}

void json_object_begin(struct json *json) { begin(json, "{"); }
void json_object_end(struct json *json) { end(json, "}"); }
void json_array_begin(struct json *json) { begin(json, "["); }
void json_array_end(struct json *json) { end(json, "]"); }

void json_key(struct json *json, const char *key)
{
	json_text(json, key);
	append(json, json->pretty ? ": " : ":", json->pretty ? 2 : 1);
	json->after_key = true;
}

/* Bytes that need no escape. */
static const bool plain_bytes[256] = { [0x20 ... 0x21] = true, [0x23 ... 0x5b] = true, [0x5d ... 0x7e] = true };

static void append_quoted(struct json *json, const char *bytes, size_t length)
{
	static const char escapes[32] = { ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't' };
	append(json, "\"", 1);
	for (size_t at = 0, plain = 0; at <= length;) {
		while (at < length && plain_bytes[(unsigned char)bytes[at]])
			at++;
		unsigned char byte = at < length ? (unsigned char)bytes[at] : '"';
		size_t sequence = at < length && byte >= 0x80 ? utf8_sequence(bytes + at, length - at) : 1;
		if (at < length && sequence && byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7f) {
			at += sequence;
			continue;
		}
		append(json, bytes + plain, at - plain);
		if (at == length)
			break;
		char text[8];
		if (!sequence)
			append(json, "\xef\xbf\xbd", 3);
		else if (byte < 0x20 && escapes[byte])
			append(json, (char[]){ '\\', escapes[byte] }, 2);
		else if (byte < 0x20 || byte == 0x7f)
			append(json, text, (size_t)snprintf(text, sizeof(text), "\\u%04x", byte));
		else
			append(json, (char[]){ '\\', (char)byte }, 2);
		plain = ++at;
	}
	append(json, "\"", 1);
}

void json_bytes(struct json *json, const char *bytes, size_t length)
{
	separate(json);
	append_quoted(json, length ? bytes : "", length);
	json->need_comma = true;
}

void json_text(struct json *json, const char *text)
{
	if (text)
		json_bytes(json, text, strlen(text));
	else
		json_nil(json);
}

static void word(struct json *json, const char *text)
{
	separate(json);
	append(json, text, strlen(text));
	json->need_comma = true;
}

void json_int(struct json *json, int64_t number)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRId64, number);
	word(json, text);
}

void json_uint(struct json *json, uint64_t number)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRIu64, number);
	word(json, text);
}

void json_bool(struct json *json, bool value) { word(json, value ? "true" : "false"); }
void json_nil(struct json *json) { word(json, "null"); }
void json_verbatim(struct json *json, const char *text) { word(json, text); }

void json_key_string(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_text(json, text);
}

void json_base64(struct json *json, const void *data, size_t length)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *bytes = data;
	char *text = malloc(length / 3 * 4 + 5), *at = text;
	if (!text) {
		json->failed = true;
		return;
	}
	for (size_t i = 0; i < length; i += 3) {
		size_t left = length - i;
		unsigned group = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0u) |
		                 (left > 2 ? bytes[i + 2] : 0u);
		*at++ = digits[group >> 18];
		*at++ = digits[group >> 12 & 63];
		*at++ = left > 1 ? digits[group >> 6 & 63] : '=';
		*at++ = left > 2 ? digits[group & 63] : '=';
	}
	json_bytes(json, text, (size_t)(at - text));
	free(text);
}

void json_key_bytes(struct json *json, const char *key, const void *data, size_t length)
{
	char beside[128];
	json_key(json, key);
	if (utf8_valid(data, length) || snprintf(beside, sizeof(beside), "%s_base64", key) >= (int)sizeof(beside))
		return json_bytes(json, data, length);
	json_bytes(json, data, length < JSON_SHOWN_MAX ? length : JSON_SHOWN_MAX);
	json_key(json, beside);
	json_base64(json, data, length);
}

void json_key_int(struct json *json, const char *key, int64_t number)
{
	json_key(json, key);
	json_int(json, number);
}

void json_key_uint(struct json *json, const char *key, uint64_t number)
{
	json_key(json, key);
	json_uint(json, number);
}

void json_key_bool(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	json_bool(json, value);
}

void json_key_strings(struct json *json, const char *key, const char *const *items, size_t count)
{
	json_key(json, key);
	json_array_begin(json);
	for (size_t i = 0; i < count; i++)
		json_text(json, items[i]);
	json_array_end(json);
}

/* Brackets in strings do not count. */
bool json_is_shallow(const char *text, size_t length, size_t most)
{
	size_t depth = 0;
	bool in_string = false;
	for (size_t i = 0; i < length; i++) {
		if (in_string && text[i] == '\\') {
			i++;
		} else if (in_string) {
			in_string = text[i] != '"';
		} else if (text[i] == '"') {
			in_string = true;
		} else if (text[i] == '{' || text[i] == '[') {
			if (++depth > most)
				return false;
		} else if ((text[i] == '}' || text[i] == ']') && depth) {
			depth--;
		}
	}
	return true;
}

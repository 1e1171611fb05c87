/* Values: what a call returns, read by path or as JSON. In JSON a text must be UTF-8. Bytes that are not have beside
 * them a member of the same name and `_base64` with what they are; in their own place what is not UTF-8 is U+FFFD. A
 * list with such texts has one beside it in which each text is base64. */
#include "api/value.h"

#include <sodium/utils.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"

#define BASE64_SUFFIX "_base64"
#define KEY_MAX 256

/* ---- making ---------------------------------------------------------------------------------------------------- */

int value_take(json_t *tree, struct cordon_value **ret_value, struct cordon_error *err)
{
	struct cordon_value *value = tree ? calloc(1, sizeof(*value)) : NULL;
	if (!value) {
		json_decref(tree);
		return fail_oom(err);
	}
	value->tree = tree;
	*ret_value = value;
	return 0;
}

json_t *value_parse(const char *text)
{
	return text ? json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
}

json_t *value_bytes(const void *data, size_t length)
{
	return json_stringn_nocheck(length ? data : "", length);
}

json_t *value_error(const struct cordon_error *err)
{
	struct json json;
	json_init(&json);
	error_write_json(&json, err);
	auto_free char *text = json_take(&json);
	return value_parse(text);
}

const char *value_member(const json_t *object, const char *key)
{
	const json_t *member = json_object_get(object, key);
	const char *text = json_string_value(member);
	return text && strlen(text) == json_string_length(member) ? text : NULL;
}

/* ---- as JSON --------------------------------------------------------------------------------------------------- */

static void write_tree(struct json *json, const json_t *tree);

static bool is_utf8(const json_t *text)
{
	return utf8_valid(json_string_value(text), json_string_length(text));
}

/* Of a list in which a text is not UTF-8: all its texts, exactly. */
static void write_exact_list(struct json *json, const char *key, const json_t *list)
{
	char beside[KEY_MAX + sizeof(BASE64_SUFFIX)];
	bool exact = strlen(key) <= KEY_MAX;
	size_t i;
	json_t *each;
	json_array_foreach(list, i, each)
		if (json_is_string(each) && !is_utf8(each))
			break;
	if (!exact || i == json_array_size(list))
		return;
	snprintf(beside, sizeof(beside), "%s" BASE64_SUFFIX, key);
	json_key(json, beside);
	json_array_begin(json);
	json_array_foreach(list, i, each)
		if (json_is_string(each))
			json_base64(json, json_string_value(each), json_string_length(each));
		else
			json_nil(json);
	json_array_end(json);
}

static void write_member(struct json *json, const char *key, const json_t *member)
{
	if (json_is_string(member))
		return json_key_bytes(json, key, json_string_value(member), json_string_length(member));
	json_key(json, key);
	write_tree(json, member);
	if (json_is_array(member))
		write_exact_list(json, key, member);
}

static void write_tree(struct json *json, const json_t *tree)
{
	json_t *object = (json_t *)(uintptr_t)tree;
	switch (json_typeof(tree)) {
	case JSON_OBJECT:
		json_object_begin(json);
		for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at))
			write_member(json, json_object_iter_key(at), json_object_iter_value(at));
		return json_object_end(json);
	case JSON_ARRAY:
		json_array_begin(json);
		for (size_t i = 0; i < json_array_size(tree); i++)
			write_tree(json, json_array_get(tree, i));
		return json_array_end(json);
	case JSON_STRING:
		return json_bytes(json, json_string_value(tree), json_string_length(tree));
	case JSON_INTEGER:
		return json_int(json, json_integer_value(tree));
	case JSON_REAL: {
		auto_free char *text = json_dumps(tree, JSON_ENCODE_ANY);
		json->failed |= !text;
		return json_verbatim(json, text ? text : "null");
	}
	case JSON_TRUE:
	case JSON_FALSE:
		return json_bool(json, json_is_true(tree));
	case JSON_NULL:
		return json_nil(json);
	}
}

char *value_write(const json_t *tree)
{
	struct json json;
	json_init(&json);
	write_tree(&json, tree);
	return json_take(&json);
}

/* ---- back from JSON -------------------------------------------------------------------------------------------- */

json_t *value_from_base64(const json_t *encoded)
{
	size_t length = json_string_length(encoded), size;
	auto_free unsigned char *data = encoded ? malloc(length + 1) : NULL;
	if (!data || sodium_base642bin(data, length, json_string_value(encoded), length, NULL, &size, NULL,
	                               sodium_base64_VARIANT_ORIGINAL) < 0)
		return NULL;
	return value_bytes(data, size);
}

void value_exact(json_t *tree)
{
	const char *key;
	json_t *member;
	void *next;
	size_t i;
	json_array_foreach(tree, i, member)
		value_exact(member);
	json_object_foreach_safe(tree, next, key, member) {
		size_t length = strlen(key), suffix = sizeof(BASE64_SUFFIX) - 1;
		char plain[KEY_MAX];
		value_exact(member);
		if (length <= suffix || length - suffix >= sizeof(plain) ||
		    strcmp(key + length - suffix, BASE64_SUFFIX) != 0)
			continue;
		snprintf(plain, sizeof(plain), "%.*s", (int)(length - suffix), key);
		json_t *exact = json_is_string(member) && json_is_string(json_object_get(tree, plain)) ?
		                value_from_base64(member) : NULL;
		if (exact && json_object_set_new_nocheck(tree, plain, exact) == 0)
			json_object_del(tree, key);
	}
}

/* ---- the public calls ------------------------------------------------------------------------------------------ */

/* The part at a path: names of members and places in lists, joined by dots; "" is the whole. */
static const json_t *at(const struct cordon_value *value, const char *path)
{
	const json_t *tree = value ? value->tree : NULL;
	while (tree && path && *path) {
		size_t length = strcspn(path, ".");
		if (json_is_array(tree)) {
			char *end;
			unsigned long long place = *path >= '0' && *path <= '9' ? strtoull(path, &end, 10) : 0;
			tree = *path >= '0' && *path <= '9' && end == path + length ? json_array_get(tree, place) :
			                                                              NULL;
		} else {
			tree = json_object_getn(tree, path, length);
		}
		path += length;
		path += *path == '.';
	}
	return path ? tree : NULL;
}

enum cordon_type cordon_value_type(const struct cordon_value *value, const char *path)
{
	static const enum cordon_type types[] = {
		[JSON_OBJECT] = CORDON_OBJECT, [JSON_ARRAY] = CORDON_LIST, [JSON_STRING] = CORDON_TEXT,
		[JSON_INTEGER] = CORDON_INT,   [JSON_REAL] = CORDON_REAL,  [JSON_TRUE] = CORDON_BOOL,
		[JSON_FALSE] = CORDON_BOOL,    [JSON_NULL] = CORDON_NULL,
	};
	const json_t *tree = at(value, path);
	return tree ? types[json_typeof(tree)] : CORDON_ABSENT;
}

int64_t cordon_value_int(const struct cordon_value *value, const char *path)
{
	const json_t *tree = at(value, path);
	return json_is_true(tree) ? 1 : json_integer_value(tree);
}

const char *cordon_value_text(const struct cordon_value *value, const char *path, size_t *ret_length)
{
	const json_t *tree = at(value, path);
	if (ret_length)
		*ret_length = json_string_length(tree);
	return json_string_value(tree);
}

size_t cordon_value_count(const struct cordon_value *value, const char *path)
{
	const json_t *tree = at(value, path);
	return json_is_object(tree) ? json_object_size(tree) : json_array_size(tree);
}

const char *cordon_value_key(const struct cordon_value *value, const char *path, size_t place)
{
	json_t *tree = (json_t *)(uintptr_t)at(value, path);
	for (void *member = json_object_iter(tree); member; member = json_object_iter_next(tree, member))
		if (!place--)
			return json_object_iter_key(member);
	return NULL;
}

char *cordon_value_json(const struct cordon_value *value, const char *path)
{
	const json_t *tree = at(value, path);
	return tree ? value_write(tree) : NULL;
}

void cordon_value_unref(struct cordon_value *value)
{
	if (!value)
		return;
	json_decref(value->tree);
	free(value);
}

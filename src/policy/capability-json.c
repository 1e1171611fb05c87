/* Capability sets as JSON, both ways: see capability-json.h. One row per list and per limit, as in the set itself. The
 * reader takes what the writer writes and nothing else: what it does not know might have been a restriction. */
#include "policy/capability-json.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/utf8.h"

#define UNLIMITED "unlimited"

static const struct field {
	const char *name;
	size_t offset;
} lists[] = {
#define LIST(list) { #list, offsetof(struct capability_set, list) }
	LIST(fs_read), LIST(fs_write), LIST(hosts), LIST(publish), LIST(programs), LIST(devices), LIST(sockets), LIST(deny), LIST(protect),
	LIST(exempt),
#undef LIST
}, limits[] = {
#define LIMIT(limit) { #limit, offsetof(struct capability_set, limits.limit) }
	LIMIT(memory_bytes), LIMIT(cpu_percent), LIMIT(processes), LIMIT(disk_bytes), LIMIT(wall_ms), LIMIT(stdout_bytes),
	LIMIT(stderr_bytes), LIMIT(open_files), LIMIT(tmp_bytes),
#undef LIMIT
};
_Static_assert(ARRAY_SIZE(limits) * sizeof(uint64_t) == sizeof(struct limits), "every limit has a row");

/* ---- paths and numbers ------------------------------------------------------------------------------------------ */

void path_write_json(struct json *json, const char *path)
{
	size_t length = strlen(path);
	if (utf8_valid(path, length)) {
		json_bytes(json, path, length);
		return;
	}
	json_object_begin(json);
	json_key(json, "hex");
	auto_free char *digits = malloc(2 * length + 1);
	for (size_t i = 0; digits && i < length; i++)
		snprintf(digits + 2 * i, 3, "%02x", (unsigned char)path[i]);
	json_text(json, digits);
	json->failed |= !digits;
	json_object_end(json);
}

void json_key_path(struct json *json, const char *key, const char *path)
{
	json_key(json, key);
	if (path)
		path_write_json(json, path);
	else
		json_nil(json);
}

static int hex_digit(char digit)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = digit ? strchr(digits, digit) : NULL;
	return at ? (int)(at - digits) : -1;
}

static const char *path_from_hex(struct arena *arena, const char *hex)
{
	size_t length = strlen(hex) / 2;
	char *path = hex[2 * length] ? NULL : arena_alloc(arena, length + 1);
	for (size_t i = 0; path && i < length; i++) {
		int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
		if (high < 0 || low < 0 || !(high | low))
			return NULL;
		path[i] = (char)(high << 4 | low);
	}
	/* One path, one form. */
	return path && !utf8_valid(path, length) ? path : NULL;
}

const char *path_read_json(struct arena *arena, const json_t *value)
{
	if (json_is_string(value))
		return arena_strdup(arena, json_string_value(value));
	const char *hex = json_object_size(value) == 1 ? json_string_value(json_object_get(value, "hex")) : NULL;
	return hex ? path_from_hex(arena, hex) : NULL;
}

void number_write_json(struct json *json, uint64_t number)
{
	char text[24];
	if (number <= INT64_MAX) {
		json_uint(json, number);
		return;
	}
	snprintf(text, sizeof(text), "%ju", (uintmax_t)number);
	json_text(json, text);
}

bool number_read_json(const json_t *value, uint64_t *ret_number)
{
	uint64_t number;
	if (json_is_integer(value) && json_integer_value(value) >= 0)
		number = (uint64_t)json_integer_value(value);
	else if (!json_is_string(value) || !text_parse_number(json_string_value(value), UINT64_MAX, &number) ||
	         number <= INT64_MAX)
		return false;
	*ret_number = number;
	return true;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void write_limits(struct json *json, const struct capability_set *set)
{
	json_key(json, "limits");
	json_object_begin(json);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		uint64_t limit = *(const uint64_t *)(const void *)((const char *)set + limits[i].offset);
		if (!limit)
			continue;
		json_key(json, limits[i].name);
		if (limit == UINT64_MAX)
			json_text(json, UNLIMITED);
		else
			number_write_json(json, limit);
	}
	json_object_end(json);
}

void capability_write_json(struct json *json, const struct capability_set *set)
{
	json_object_begin(json);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		const struct strings *list = (const void *)((const char *)set + lists[i].offset);
		if (!list->count)
			continue;
		json_key(json, lists[i].name);
		json_array_begin(json);
		for (size_t j = 0; j < list->count; j++)
			path_write_json(json, list->items[j]);
		json_array_end(json);
	}
	json_key_string(json, "network", network_mode_names[set->network]);
	json_key_bool(json, "spawn", set->spawn);
	write_limits(json, set);
	json_object_end(json);
}

bool capability_same(const struct capability_set *a, const struct capability_set *b)
{
	struct json json;
	json_init(&json);
	capability_write_json(&json, a);
	auto_free char *first = json_take(&json);
	capability_write_json(&json, b);
	auto_free char *second = json_take(&json);
	return first && second && !strcmp(first, second);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static const struct field *find(const struct field *fields, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(fields[i].name, name))
			return &fields[i];
	return NULL;
}

static int read_list(struct arena *arena, const json_t *array, struct strings *ret_list)
{
	struct strings list = { 0 };
	if (!json_array_size(array))
		return -1;
	for (size_t i = 0; i < json_array_size(array); i++)
		if (strings_add(arena, &list, path_read_json(arena, json_array_get(array, i))) < 0)
			return -1;
	*ret_list = list;
	return 0;
}

static int read_limits(json_t *object, bool open, struct capability_set *set)
{
	const char *name;
	json_t *value;
	if (!json_is_object(object))
		return -1;
	json_object_foreach(object, name, value) {
		const struct field *row = find(limits, ARRAY_SIZE(limits), name);
		if (!row && open)
			continue;
		uint64_t limit = UINT64_MAX;
		bool unlimited = json_is_string(value) && !strcmp(json_string_value(value), UNLIMITED);
		if (!row || (!unlimited && (!number_read_json(value, &limit) || !limit || limit == UINT64_MAX)))
			return -1;
		memcpy((char *)set + row->offset, &limit, sizeof(limit));
	}
	return 0;
}

static int read_network(const json_t *value, enum network_mode *ret_mode)
{
	for (int mode = 0; json_is_string(value) && mode < NETWORK_MODE_MAX; mode++)
		if (!strcmp(network_mode_names[mode], json_string_value(value))) {
			*ret_mode = mode;
			return 0;
		}
	return -1;
}

bool capability_knows(const char *name)
{
	return find(lists, ARRAY_SIZE(lists), name) || !strcmp(name, "network") || !strcmp(name, "spawn") ||
	       !strcmp(name, "limits");
}

int capability_read_json(struct arena *arena, const json_t *object, bool open, struct capability_set *ret_set)
{
	struct capability_set set = { 0 };
	size_t known = 3;
	json_t *spawn = json_object_get(object, "spawn");
	if (!json_is_boolean(spawn) || read_network(json_object_get(object, "network"), &set.network) < 0 ||
	    read_limits(json_object_get(object, "limits"), open, &set) < 0)
		return -1;
	set.spawn = json_is_true(spawn);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		const json_t *array = json_object_get(object, lists[i].name);
		if (!array)
			continue;
		if (read_list(arena, array, (void *)((char *)&set + lists[i].offset)) < 0)
			return -1;
		known++;
	}
	if (!open && json_object_size(object) != known)
		return -1;
	*ret_set = set;
	return 0;
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

static void write_place(struct json *json, const struct place *place)
{
	json_object_begin(json);
	json_key_path(json, "path", place->path);
	if (place->alias)
		json_key_path(json, "alias", place->alias);
	json_key(json, "device");
	number_write_json(json, place->device);
	json_key(json, "inode");
	number_write_json(json, place->inode);
	json_key_bool(json, "directory", place->is_directory);
	json_object_end(json);
}

void places_write_json(struct json *json, const struct places *places)
{
	json_array_begin(json);
	for (size_t i = 0; i < places->count; i++)
		write_place(json, &places->items[i]);
	json_array_end(json);
}

static int read_place(struct arena *arena, const json_t *object, struct place *place)
{
	const json_t *alias = json_object_get(object, "alias"), *directory = json_object_get(object, "directory");
	place->path = path_read_json(arena, json_object_get(object, "path"));
	place->alias = alias ? path_read_json(arena, alias) : NULL;
	place->is_directory = json_is_true(directory);
	return json_object_size(object) == (alias ? 5 : 4) && place->path && !alias == !place->alias &&
	       json_is_boolean(directory) && number_read_json(json_object_get(object, "device"), &place->device) &&
	       number_read_json(json_object_get(object, "inode"), &place->inode) ? 0 : -1;
}

int places_read_json(struct arena *arena, const json_t *array, struct places *ret_places)
{
	struct places places = { 0 };
	if (!json_is_array(array))
		return -1;
	for (size_t i = 0; i < json_array_size(array); i++) {
		struct place place;
		if (read_place(arena, json_array_get(array, i), &place) < 0 || places_add(arena, &places, &place) < 0)
			return -1;
	}
	*ret_places = places;
	return 0;
}

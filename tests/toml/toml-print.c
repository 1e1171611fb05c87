/* Reads documents, each after its length (four bytes, little-endian), and prints one line of JSON for each: a value is
 * [TYPE, VALUE], a table's members are [KEY, VALUE] in order, or {"refused": [SUBJECT, REASON]}. For compare-toml. */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/toml.h"

static void print_value(struct json *json, const struct toml_value *value)
{
	static const char *const names[TOML_TYPE_MAX] = { "string", "integer", "float", "boolean", "datetime", "array",
	                                                  "table" };
	char number[64];
	json_array_begin(json);
	json_text(json, names[value->type]);
	if (value->type == TOML_STRING || value->type == TOML_DATETIME)
		json_bytes(json, value->text, value->length);
	if (value->type == TOML_INTEGER)
		json_int(json, value->integer);
	if (value->type == TOML_BOOLEAN)
		json_bool(json, value->boolean);
	if (value->type == TOML_FLOAT) {
		snprintf(number, sizeof(number), "%a", value->number);
		json_text(json, number);
	}
	if (value->type == TOML_ARRAY || value->type == TOML_TABLE) {
		json_array_begin(json);
		for (size_t i = 0; i < value->count; i++) {
			json_array_begin(json);
			if (value->type == TOML_TABLE)
				json_bytes(json, value->items[i]->key, value->items[i]->key_length);
			json_int(json, value->items[i]->line);
			json_int(json, value->items[i]->column);
			print_value(json, value->items[i]);
			json_array_end(json);
		}
		json_array_end(json);
	}
	json_array_end(json);
}

static void print_document(const char *text, size_t length)
{
	struct arena arena = { 0 };
	struct cordon_error err;
	const struct toml_value *root;
	struct json json;
	json_init(&json);
	if (toml_parse(&arena, "FILE", text, length, &root, &err) < 0) {
		json_object_begin(&json);
		json_key(&json, "refused");
		json_array_begin(&json);
		json_text(&json, err.subject);
		json_text(&json, err.reason);
		json_array_end(&json);
		json_object_end(&json);
	} else {
		print_value(&json, root);
	}
	char *line = json_take(&json);
	if (!line)
		abort();
	puts(line);
	free(line);
	arena_free(&arena);
}

int main(void)
{
	unsigned char size[4];
	while (fread(size, 1, sizeof(size), stdin) == sizeof(size)) {
		size_t length = size[0] | size[1] << 8 | size[2] << 16 | (size_t)size[3] << 24;
		char *text = malloc(length ? length : 1); /* exactly, so that reading on is seen */
		if (!text || fread(text, 1, length, stdin) != length)
			return 1;
		print_document(text, length);
		free(text);
	}
	return 0;
}

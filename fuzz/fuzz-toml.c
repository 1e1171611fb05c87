/* Any bytes as TOML: read or refused at a place; what was read, written plainly and read again, is the same. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void write_text(FILE *out, const char *text, size_t length)
{
	fputc('"', out);
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)text[i];
		if (byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7f)
			fprintf(out, "\\u%04X", byte);
		else
			fputc(byte, out);
	}
	fputc('"', out);
}

static void write_value(FILE *out, const struct toml_value *value);

static void write_members(FILE *out, const struct toml_value *value, const char *after)
{
	for (size_t i = 0; i < value->count; i++) {
		if (value->type == TOML_TABLE) {
			write_text(out, value->items[i]->key, value->items[i]->key_length);
			fputc('=', out);
		}
		write_value(out, value->items[i]);
		if (*after == '\n' || i + 1 < value->count)
			fputs(after, out);
	}
}

static void write_value(FILE *out, const struct toml_value *value)
{
	switch (value->type) {
	case TOML_STRING: write_text(out, value->text, value->length); return;
	case TOML_INTEGER: fprintf(out, "%lld", (long long)value->integer); return;
	case TOML_FLOAT: fprintf(out, isfinite(value->number) ? "%.17e" : "%f", value->number); return;
	case TOML_BOOLEAN: fputs(value->boolean ? "true" : "false", out); return;
	case TOML_DATETIME: fwrite(value->text, 1, value->length, out); return;
	default: break;
	}
	fputc(value->type == TOML_ARRAY ? '[' : '{', out);
	write_members(out, value, ",");
	fputc(value->type == TOML_ARRAY ? ']' : '}', out);
}

static void same_text(const char *a, size_t a_length, const char *b, size_t b_length)
{
	require(!a == !b && a_length == b_length && (!a || (!memcmp(a, b, a_length) && b[b_length] == '\0')));
}

static void same(const struct toml_value *a, const struct toml_value *b)
{
	require(a->type == b->type && a->count == b->count && a->line && a->column);
	same_text(a->key, a->key_length, b->key, b->key_length);
	same_text(a->text, a->length, b->text, b->length);
	require(a->integer == b->integer && a->boolean == b->boolean);
	require(a->number == b->number || (isnan(a->number) && isnan(b->number)));
	for (size_t i = 0; i < a->count; i++)
		same(a->items[i], b->items[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct cordon_error err = { 0 };
	const struct toml_value *root, *again;
	unsigned line, column;
	char end;
	if (toml_parse(&arena, "FILE", (const char *)data, size, &root, &err) < 0) {
		require(err.class == CORDON_E_CONFIG_INVALID && *err.reason);
		require(sscanf(err.subject, "FILE:%u:%u%c", &line, &column, &end) == 2 && line && column);
	} else {
		char *text = NULL;
		size_t length = 0;
		FILE *out = open_memstream(&text, &length);
		require(out);
		write_members(out, root, "\n");
		require(fclose(out) == 0);
		/* Written plainly it may have become too large. */
		if (length <= TOML_SIZE_MAX) {
			require(toml_parse(&arena, "AGAIN", text, length, &again, &err) == 0);
			same(root, again);
		}
		free(text);
	}
	arena_free(&arena);
	return 0;
}

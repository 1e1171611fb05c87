/* Which characters are shown and which are spelt out: see visible.h. */
#include "base/visible.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static const struct {
	uint32_t first, last;
} deceiving[] = {
	{ 0x0000, 0x001f }, { 0x007f, 0x00a0 },         /* C0, DEL, C1, no-break space */
	{ 0x00ad, 0x00ad }, { 0x0300, 0x036f },         /* soft hyphen; marks that overlay what is before them */
	{ 0x061c, 0x061c }, { 0x115f, 0x1160 },         /* Arabic letter mark; Hangul fillers */
	{ 0x1680, 0x1680 }, { 0x17b4, 0x17b5 },         /* Ogham space; Khmer vowels that are not seen */
	{ 0x180b, 0x180f }, { 0x1ab0, 0x1aff },         /* Mongolian selectors; marks */
	{ 0x1dc0, 0x1dff }, { 0x2000, 0x200f },         /* marks; spaces, zero width, direction */
	{ 0x2028, 0x202f }, { 0x205f, 0x206f },         /* separators, embeddings, overrides; isolates, invisible operators */
	{ 0x20d0, 0x20ff }, { 0x2800, 0x2800 },         /* marks; a Braille pattern of no dots */
	{ 0x3000, 0x3000 }, { 0x3164, 0x3164 },         /* ideographic space; Hangul filler */
	{ 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f },         /* selectors; marks */
	{ 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 },         /* byte order mark; Hangul filler */
	{ 0xfff0, 0xfffb },                             /* annotations */
	{ 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },     /* controls of shorthand and of music */
	{ 0xe0000, 0xe0fff },                           /* tags, selectors */
};

static uint32_t decode(const unsigned char *bytes, size_t length)
{
	uint32_t code = length == 1 ? bytes[0] : bytes[0] & (0xffu >> (length + 1));
	for (size_t i = 1; i < length; i++)
		code = code << 6 | (bytes[i] & 0x3fu);
	return code;
}

static bool deceives(uint32_t code)
{
	for (size_t i = 0; i < ARRAY_SIZE(deceiving); i++)
		if (code >= deceiving[i].first && code <= deceiving[i].last)
			return true;
	return false;
}

struct visible visible_next(const char *text, size_t left)
{
	size_t length = utf8_sequence(text, left);
	struct visible seen = { .length = length ? length : 1, .is_utf8 = length != 0 };
	seen.code = decode((const unsigned char *)text, seen.length);
	seen.is_plain = seen.is_utf8 && !deceives(seen.code);
	return seen;
}

static void write_escaped(FILE *out, const struct visible *seen)
{
	static const char letters[32] = { ['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r' };
	if (seen->code < 0x20 && letters[seen->code])
		fprintf(out, "\\%c", letters[seen->code]);
	else if (!seen->is_utf8 || seen->code < 0x80)
		fprintf(out, "\\x%02x", (unsigned)seen->code);
	else if (seen->code <= 0xffff)
		fprintf(out, "\\u%04x", (unsigned)seen->code);
	else
		fprintf(out, "\\U%08x", (unsigned)seen->code);
}

void visible_quote(FILE *out, const char *text)
{
	static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
	size_t all = strlen(text);
	if (all && text[strspn(text, bare)] == '\0') {
		fputs(text, out);
		return;
	}
	/* Many spaces, where a terminal breaks the line, would begin a line of their own: of a run, all but the first are spelt. */
	bool escape = strchr(text, '\'') != NULL || strstr(text, "  ") != NULL;
	for (size_t at = 0; at < all && !escape;) {
		struct visible seen = visible_next(text + at, all - at);
		escape = !seen.is_plain;
		at += seen.length;
	}
	fputs(escape ? "$'" : "'", out);
	for (size_t at = 0; at < all;) {
		struct visible seen = visible_next(text + at, all - at);
		if (!seen.is_plain || (at && seen.code == ' ' && text[at - 1] == ' '))
			write_escaped(out, &seen);
		else if (escape && (seen.code == '\'' || seen.code == '\\'))
			fprintf(out, "\\%c", (char)seen.code);
		else
			fwrite(text + at, 1, seen.length, out);
		at += seen.length;
	}
	fputc('\'', out);
}

static void write_json(FILE *out, const char *json)
{
	for (size_t at = 0, all = strlen(json); at < all;) {
		struct visible seen = visible_next(json + at, all - at);
		uint32_t high = seen.code - 0x10000;
		if (seen.is_plain)
			fwrite(json + at, 1, seen.length, out);
		else if (seen.code <= 0xffff)
			fprintf(out, "\\u%04x", (unsigned)seen.code);
		else
			fprintf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + (high >> 10)), (unsigned)(0xdc00 + (high & 0x3ff)));
		at += seen.length;
	}
}

char *visible_json(const char *json)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	if (!out)
		return NULL;
	write_json(out, json);
	bool failed = ferror(out);
	if (fclose(out) == 0 && !failed)
		return text;
	free(text);
	return NULL;
}

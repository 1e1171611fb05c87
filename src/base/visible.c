/* Which characters are shown and which are spelt out: see visible.h.
 *
 * Plain are the characters of an allow-list: each is assigned, visible by itself, set from left to right, joined with
 * no neighbour, and the normal form of itself. Scripts that need more than that (right-to-left ones, those with
 * combining marks or reordering, as Hebrew, Arabic, Devanagari or Thai) are written as escapes, and so are signs that
 * look like one of ASCII's: quotation marks above all, which would seem to end a quoted word. Letters that look like
 * another script's are plain: see visible.h. */
#include "base/visible.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

struct range {
	uint32_t first, last;
};

static const struct range plain[] = {
	{ 0x0020, 0x007e },                                             /* ASCII */
	{ 0x00a1, 0x00a7 },   { 0x00a9, 0x00a9 },   { 0x00ab, 0x00ac }, /* Latin-1, without what has a twin in ASCII */
	{ 0x00ae, 0x00ae },   { 0x00b0, 0x00b1 },   { 0x00b6, 0x00b7 },
	{ 0x00bb, 0x00bb },   { 0x00bf, 0x0131 },   { 0x0134, 0x013e },
	{ 0x0141, 0x0148 },   { 0x014a, 0x017e }, /* Latin Extended, without ligatures */
	{ 0x0180, 0x0188 },   { 0x018a, 0x01bf },   { 0x01cd, 0x01f0 },
	{ 0x01f4, 0x024f },   { 0x1e00, 0x1e99 },   { 0x1e9e, 0x1eff },
	{ 0x0386, 0x0386 },   { 0x0388, 0x038a },   { 0x038c, 0x038c },
	{ 0x038e, 0x03a1 },   { 0x03a3, 0x03ce },                       /* Greek */
	{ 0x0400, 0x0471 },   { 0x0474, 0x0481 },   { 0x048a, 0x052f }, /* Cyrillic */
	{ 0x0531, 0x0556 },   { 0x0561, 0x0586 },   { 0x10d0, 0x10fa }, /* Armenian, Georgian */
	{ 0x20ac, 0x20ac },                                             /* euro */
	{ 0x3001, 0x3002 },   { 0x3005, 0x3011 },   { 0x3014, 0x301b }, /* CJK punctuation, without quotation marks */
	{ 0x3041, 0x3096 },   { 0x309d, 0x309e },   { 0x30a1, 0x30fe },
	{ 0x3105, 0x312f }, /* kana, bopomofo */
	{ 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },   { 0x20000, 0x2a6df },
	{ 0x2a700, 0x2b738 }, /* Han */
	{ 0x2b740, 0x2b81d }, { 0x2b820, 0x2cea1 }, { 0x2ceb0, 0x2ebe0 },
	{ 0x30000, 0x3134a }, { 0xac00, 0xd7a3 }, /* Hangul syllables */
	{ 0x1f300, 0x1f3fa }, { 0x1f400, 0x1f64f }, { 0x1f680, 0x1f6c5 },
	{ 0x1f900, 0x1f9ff }, /* emoji */
};

/* Of a program's own output: what a terminal might obey, what is not seen, what moves or overlays its neighbours. */
static const struct range disturbing[] = {
	{ 0x0000, 0x001f }, { 0x007f, 0x00a0 },         /* C0, DEL, C1, no-break space */
	{ 0x00ad, 0x00ad }, { 0x0300, 0x036f },         /* soft hyphen; marks that overlay what is before them */
	{ 0x061c, 0x061c }, { 0x115f, 0x1160 },         /* Arabic letter mark; Hangul fillers */
	{ 0x1680, 0x1680 }, { 0x17b4, 0x17b5 },         /* Ogham space; Khmer vowels that are not seen */
	{ 0x180b, 0x180f }, { 0x1ab0, 0x1aff },         /* Mongolian selectors; marks */
	{ 0x1dc0, 0x1dff }, { 0x2000, 0x200f },         /* marks; spaces, zero width, direction */
	{ 0x2028, 0x202f }, { 0x205f, 0x206f },         /* separators, embeddings, overrides; isolates, invisible
	                                                   operators */
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

static bool is_in(const struct range *ranges, size_t count, uint32_t code)
{
	for (size_t i = 0; i < count; i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

struct visible visible_next(const char *text, size_t left)
{
	size_t length = utf8_sequence(text, left);
	struct visible seen = { .length = length ? length : 1, .is_utf8 = length != 0 };
	seen.code = decode((const unsigned char *)text, seen.length);
	seen.is_plain = seen.is_utf8 && is_in(plain, ARRAY_SIZE(plain), seen.code);
	return seen;
}

bool visible_is_output(const struct visible *seen)
{
	return seen->is_utf8 && !is_in(disturbing, ARRAY_SIZE(disturbing), seen->code);
}

void visible_print(FILE *out, const char *text, size_t length)
{
	for (struct visible seen; length; text += seen.length, length -= seen.length) {
		seen = visible_next(text, length);
		if (visible_is_output(&seen) || *text == '\n' || *text == '\t')
			fwrite(text, 1, seen.length, out);
		else
			fprintf(out, !seen.is_utf8 || seen.code < 0x80 ? "\\x%02x" : "\\u{%x}", (unsigned)seen.code);
	}
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
	/* Many spaces, where a terminal breaks the line, would begin a line of their own: of a run, all but the first
	 * are spelt. */
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
			fprintf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + (high >> 10)),
			        (unsigned)(0xdc00 + (high & 0x3ff)));
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

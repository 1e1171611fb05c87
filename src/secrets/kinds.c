/* The table, and the check that most rows share: a prefix and a run of bytes. */
#include "secrets/kinds.h"

#include <string.h>

#include "base/cleanup.h"

#define ALNUM SECRET_ALNUM
#define WORD SECRET_WORD
#define TOKEN SECRET_TOKEN
#define DASHED SECRET_DASHED
#define UPPER SECRET_UPPER
#define SLASHED SECRET_SLASHED
#define EXACT SECRET_EXACT
#define LEFT SECRET_LEFT
#define RIGHT SECRET_RIGHT
#define DIGIT SECRET_DIGIT

const struct secret_row secret_rows[] = {
#define SECRET_ROW(name, prefix, anchor, back, body, min, max, flags, check, example)                                  \
	{ name, prefix, anchor, sizeof(prefix) - 1, back, body, min, max, flags, check, example },
#include "secrets/kinds.def"
#undef SECRET_ROW
};
const size_t secret_row_count = ARRAY_SIZE(secret_rows);
_Static_assert(ARRAY_SIZE(secret_rows) <= SECRET_ROWS, "one more row than there is space for");

/* A bit per body for each byte. */
#define BIT(body) (1u << (body))
#define LETTERS (BIT(SECRET_ALNUM) | BIT(SECRET_WORD) | BIT(SECRET_TOKEN) | BIT(SECRET_DASHED) | BIT(SECRET_SLASHED))
static const unsigned char bodies[256] = {
	['a' ... 'z'] = LETTERS,
	['A' ... 'Z'] = LETTERS | BIT(SECRET_UPPER),
	['0' ... '9'] = LETTERS | BIT(SECRET_UPPER),
	['_'] = BIT(SECRET_WORD) | BIT(SECRET_TOKEN),
	['-'] = BIT(SECRET_TOKEN) | BIT(SECRET_DASHED),
	['+'] = BIT(SECRET_SLASHED),
	['/'] = BIT(SECRET_SLASHED),
};
_Static_assert(SECRET_BODY_MAX <= 8, "a bit per body");

bool secret_in_body(enum secret_body body, unsigned char byte)
{
	return bodies[byte] & BIT(body);
}

size_t secret_run(const struct secret_text *text, size_t at, enum secret_body body, size_t max)
{
	struct secret_span *known = &text->memory->runs[body];
	bool is_known = at >= known->from && at < known->to;
	size_t end = is_known ? known->to : at, first = end;
	while (end - at < max && end < text->length && secret_in_body(body, text->bytes[end]))
		end++;
	text->memory->steps += end - first + 1;
	*known = (struct secret_span){ is_known ? known->from : at, end };
	return end - at < max ? end - at : max;
}

/* Does an escape sequence of a terminal, ESC [ digits and semicolons m, end before `at`? */
static bool follows_colour(const unsigned char *bytes, size_t at)
{
	size_t i = at - 1;
	if (bytes[i] != 'm')
		return false;
	for (size_t seen = 0; i > 0 && seen < 20; seen++) {
		i--;
		if (bytes[i] == '[')
			return i > 0 && bytes[i - 1] == 0x1b;
		if (bytes[i] != ';' && (bytes[i] < '0' || bytes[i] > '9'))
			return false;
	}
	return false;
}

bool secret_begins(const struct secret_text *text, size_t at)
{
	const unsigned char *bytes = text->bytes;
	if (!at || !secret_in_body(SECRET_WORD, bytes[at - 1]))
		return true;
	if (at > 1 && bytes[at - 2] == '\\' && (bytes[at - 1] == 'n' || bytes[at - 1] == 'r' || bytes[at - 1] == 't'))
		return true;
	return follows_colour(bytes, at);
}

bool secret_varies(const unsigned char *bytes, size_t length)
{
	/* In registers, and without a branch for each: this is where runs of near misses cost most. */
	uint64_t seen0 = 0, seen1 = 0, seen2 = 0, seen3 = 0;
	for (size_t i = 0; i < length && i < 64; i++) {
		uint64_t bit = UINT64_C(1) << (bytes[i] & 63);
		unsigned quarter = bytes[i] >> 6;
		seen0 |= quarter == 0 ? bit : 0;
		seen1 |= quarter == 1 ? bit : 0;
		seen2 |= quarter == 2 ? bit : 0;
		seen3 |= quarter == 3 ? bit : 0;
	}
	const uint64_t seen[] = { seen0, seen1, seen2, seen3 };
	int different = 0;
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
		for (uint64_t left = seen[i]; left && different < 8; left &= left - 1)
			different++;
	return different == 8;
}

static bool is_digit(unsigned char byte)
{
	return byte >= '0' && byte <= '9';
}

static bool has_digit(const unsigned char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (is_digit(bytes[i]))
			return true;
	return false;
}

enum secret_answer shape_run(const struct secret_row *row, const struct secret_text *text, size_t at, size_t *ret_start,
                             size_t *ret_end)
{
	size_t prefix = row->prefix_length;
	if (at < row->back)
		return SECRET_NO;
	size_t start = at - row->back, known = text->length - start;
	/* A few bytes: a call of memcmp() would take longer. */
	for (size_t i = 0; i < prefix && i < known; i++)
		if (text->bytes[start + i] != (unsigned char)row->prefix[i])
			return SECRET_NO;
	if ((row->flags & SECRET_LEFT) && !secret_begins(text, start))
		return SECRET_NO;
	*ret_start = start;
	if (known < prefix)
		return text->is_final ? SECRET_NO : SECRET_MORE;
	/* The first bytes say whether the others are worth a look. */
	size_t limit = row->flags & SECRET_EXACT ? row->max + 1 : row->max;
	size_t run = secret_run(text, start + prefix, row->body, row->min);
	if (run == row->min) {
		if (!secret_varies(text->bytes + start + prefix, run))
			return SECRET_NO;
		run += secret_run(text, start + prefix + run, row->body, limit - run);
	}
	size_t end = start + prefix + run;
	if (run < limit && end == text->length && !text->is_final)
		return SECRET_MORE;
	if (run < row->min || run > row->max)
		return SECRET_NO;
	if ((row->flags & SECRET_DIGIT) && !has_digit(text->bytes + start + prefix, run))
		return SECRET_NO;
	if ((row->flags & SECRET_RIGHT) && end < text->length && secret_in_body(SECRET_WORD, text->bytes[end]))
		return SECRET_NO;
	*ret_end = end;
	return SECRET_FOUND;
}

/* Is byte `byte` in the set or literal at `*pattern`? Moves behind it. */
static bool anchor_has(const char **pattern, unsigned char byte)
{
	const char *p = *pattern;
	bool is_in = false;
	if (*p != '[') {
		*pattern = p + 1;
		return (unsigned char)*p == byte;
	}
	for (p++; *p != ']'; p++) {
		if (p[1] == '-' && p[2] != ']') {
			is_in |= byte >= (unsigned char)p[0] && byte <= (unsigned char)p[2];
			p += 2;
		} else {
			is_in |= byte == (unsigned char)*p;
		}
	}
	*pattern = p + 1;
	return is_in;
}

/* Could the row's secret begin at `start`, as far as the bytes go? */
static bool may_begin(const struct secret_row *row, const struct secret_text *text, size_t start)
{
	size_t left = text->length - start;
	const char *pattern = row->anchor;
	if (*row->prefix && (unsigned char)*row->prefix != text->bytes[start])
		return false;
	if (*row->prefix && (left >= row->prefix_length || memcmp(text->bytes + start, row->prefix, left) != 0))
		return false;
	for (size_t i = 0; !*row->prefix && i < left; i++)
		if (i == 3 || !anchor_has(&pattern, text->bytes[start + i]))
			return false;
	return !(row->flags & SECRET_LEFT) || secret_begins(text, start);
}

#define LONGEST_PREFIX 24
#define BOT_DIGITS 12                   /* see shape_telegram() */

size_t secret_tail(const struct secret_text *text)
{
	size_t length = text->length, digits = 0;
	/* A bot's number, before the colon that its check begins at. */
	size_t colon = length;
	if (length > 1 && text->bytes[length - 1] == 'A' && text->bytes[length - 2] == ':')
		colon = length - 2;
	else if (length && text->bytes[length - 1] == ':')
		colon = length - 1;
	while (digits < BOT_DIGITS && digits < colon && is_digit(text->bytes[colon - 1 - digits]))
		digits++;
	size_t earliest = digits ? colon - digits : length;
	for (size_t start = length < LONGEST_PREFIX ? 0 : length - LONGEST_PREFIX; start < earliest; start++)
		for (size_t i = 0; i < secret_row_count; i++)
			if (may_begin(&secret_rows[i], text, start))
				return start;
	return earliest;
}

bool secret_kind_known(const char *name)
{
	for (size_t i = 0; i < secret_row_count; i++)
		if (!strcmp(secret_rows[i].name, name))
			return true;
	return false;
}

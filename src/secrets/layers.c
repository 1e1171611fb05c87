/* Undoing URL encoding, base64 and hexadecimal digits where bytes look like them.
 *
 * A region is a run of the base64 alphabet (standard and URL-safe alike, of which hexadecimal digits are a part), also
 * over line breaks. Which of its symbols begins a group is not known, so base64 is undone from each of four, and
 * digits from each of two. A region that reaches the end of the text may go on: then the symbols of a group that is
 * not complete are held. */
#include <stdlib.h>
#include <string.h>

#include "secrets/scan-level.h"

#define NONE 0xff
#define RUN RUN_LENGTH                  /* the shortest secret, 12 bytes, in base64 */
#define GROUPS 3                        /* so many whole groups of base64 it has, wherever it begins */
#define PAIRS SECRET_OWN_MIN

/* For each symbol of base64 its value and one more; 0 for other bytes. */
static const unsigned char alphabet[256] = {
#define AT(symbol, value) [symbol] = (value) + 1
	AT('A', 0),  AT('B', 1),  AT('C', 2),  AT('D', 3),  AT('E', 4),  AT('F', 5),  AT('G', 6),  AT('H', 7),
	AT('I', 8),  AT('J', 9),  AT('K', 10), AT('L', 11), AT('M', 12), AT('N', 13), AT('O', 14), AT('P', 15),
	AT('Q', 16), AT('R', 17), AT('S', 18), AT('T', 19), AT('U', 20), AT('V', 21), AT('W', 22), AT('X', 23),
	AT('Y', 24), AT('Z', 25), AT('a', 26), AT('b', 27), AT('c', 28), AT('d', 29), AT('e', 30), AT('f', 31),
	AT('g', 32), AT('h', 33), AT('i', 34), AT('j', 35), AT('k', 36), AT('l', 37), AT('m', 38), AT('n', 39),
	AT('o', 40), AT('p', 41), AT('q', 42), AT('r', 43), AT('s', 44), AT('t', 45), AT('u', 46), AT('v', 47),
	AT('w', 48), AT('x', 49), AT('y', 50), AT('z', 51), AT('0', 52), AT('1', 53), AT('2', 54), AT('3', 55),
	AT('4', 56), AT('5', 57), AT('6', 58), AT('7', 59), AT('8', 60), AT('9', 61), AT('+', 62), AT('-', 62),
	AT('/', 63), AT('_', 63),
#undef AT
};

static unsigned char hex_value(unsigned char byte)
{
	if (byte >= '0' && byte <= '9')
		return (unsigned char)(byte - '0');
	byte |= 0x20;
	return byte >= 'a' && byte <= 'f' ? (unsigned char)(byte - 'a' + 10) : NONE;
}

/* Grows the buffers of a level for a text of `length` bytes. */
static struct secret_scratch *scratch_for(struct secret_scanner *scanner, size_t depth, size_t length)
{
	struct secret_scratch *scratch = &scanner->scratch[depth];
	if (length + 1 <= scratch->capacity)
		return scratch;
	size_t capacity = (length + 1 + 4095) / 4096 * 4096;
	free(scratch->positions);
	free(scratch->values);
	free(scratch->decoded);
	scratch->positions = malloc(capacity * sizeof(*scratch->positions));
	scratch->values = malloc(capacity);
	scratch->decoded = malloc(capacity);
	scratch->capacity = capacity;
	if (scratch->positions && scratch->values && scratch->decoded)
		return scratch;
	free(scratch->positions);
	free(scratch->values);
	free(scratch->decoded);
	*scratch = (struct secret_scratch){ 0 };
	scanner->is_short_of_memory = true;
	return NULL;
}

/* A region's symbols, line breaks left out. */
struct region {
	struct secret_scanner *scanner;
	const struct scan_level *level;
	struct secret_scratch *scratch;
	const unsigned char *bytes;     /* of the level */
	size_t count;
	bool is_open;                   /* reaches the end of a text that may continue */
	bool is_any;                    /* an own secret is not ASCII: everything is decoded */
};

static void search(const struct region *region, enum secret_layer layer, size_t first, size_t length, bool is_final)
{
	const struct scan_level level = { region->level, layer, region->scratch->positions, first,
		                          region->level->depth + 1 };
	const struct secret_text text = { .bytes = region->scratch->decoded, .length = length, .is_final = is_final };
	scan_text(region->scanner, &level, &text);
}

/* The bytes of symbols `from` to `to`. */
static size_t decode_base64(const struct region *region, size_t from, size_t to)
{
	const unsigned char *v = region->scratch->values;
	unsigned char *out = region->scratch->decoded;
	size_t length = 0, i = from;
	for (; i + 4 <= to; i += 4) {
		out[length++] = (unsigned char)(v[i] << 2 | v[i + 1] >> 4);
		out[length++] = (unsigned char)(v[i + 1] << 4 | v[i + 2] >> 2);
		out[length++] = (unsigned char)(v[i + 2] << 6 | v[i + 3]);
	}
	if (to - i >= 2)
		out[length++] = (unsigned char)(v[i] << 2 | v[i + 1] >> 4);
	if (to - i == 3)
		out[length++] = (unsigned char)(v[i + 1] << 4 | v[i + 2] >> 2);
	return length;
}

/* Can the first `count` symbols of a group be ASCII? The topmost bit of each byte says so. */
static bool is_ascii_group(const unsigned char *values, size_t count)
{
	static const unsigned char top[4] = { 32, 8, 2, 0 };
	for (size_t i = 0; i < count; i++)
		if (values[i] & top[i])
			return false;
	return true;
}

static void search_phase(const struct region *region, size_t phase)
{
	const unsigned char *v = region->scratch->values;
	size_t groups = (region->count - phase) / 4, first = 0;
	for (size_t i = 0; i <= groups; i++) {
		const unsigned char *group = v + phase + 4 * i;
		if (i < groups && (region->is_any || !((group[0] & 32) | (group[1] & 8) | (group[2] & 2))))
			continue;
		bool reaches_end = i == groups;
		size_t partial = reaches_end ? region->count - phase - 4 * groups : 0;
		if (i - first >= GROUPS || (reaches_end && region->is_open && i > first)) {
			/* With a group more on each side: a secret need not begin or end with one. */
			size_t from = phase + 4 * (first ? first - 1 : 0);
			size_t to = phase + 4 * i + (reaches_end ? partial : 4);
			search(region, SECRET_BASE64, from, decode_base64(region, from, to),
			       !(reaches_end && region->is_open));
		}
		if (partial && region->is_open && (region->is_any || is_ascii_group(group, partial)))
			scan_hold(region->scanner, region->level, region->scratch->positions[phase + 4 * groups]);
		first = i + 1;
	}
}

static void search_base64(const struct region *region)
{
	for (size_t phase = 0; phase < 4 && phase < region->count; phase++)
		search_phase(region, phase);
}

static bool is_text(unsigned char byte)
{
	return (byte >= 0x20 && byte < 0x7f) || (byte >= '\t' && byte <= '\r');
}

/* Digits from symbol `from` to `to`, beginning with one of the first two. */
static void search_pairs(const struct region *region, size_t from, size_t to, bool is_open)
{
	const unsigned char *v = region->scratch->values;
	unsigned char *out = region->scratch->decoded;
	size_t length = 0;
	for (size_t i = from;; i += 2) {
		bool is_whole = i + 2 <= to;
		unsigned char byte = is_whole ? (unsigned char)(v[i] << 4 | v[i + 1]) : 0;
		if (is_whole && (region->is_any || is_text(byte))) {
			out[length++] = byte;
			continue;
		}
		if (length >= PAIRS || (length && !is_whole && is_open))
			search(region, SECRET_HEX, i - 2 * length, length, is_whole || !is_open);
		if (i < to && !is_whole && is_open)
			scan_hold(region->scanner, region->level, region->scratch->positions[i]);
		length = 0;
		if (!is_whole)
			return;
	}
}

/* After base64: the values become those of digits. */
static void search_hex(const struct region *region)
{
	unsigned char *v = region->scratch->values;
	size_t first = 0;
	for (size_t i = 0; i < region->count; i++)
		v[i] = hex_value(region->bytes[region->scratch->positions[i]]);
	for (size_t i = 0; i <= region->count; i++) {
		if (i < region->count && v[i] != NONE)
			continue;
		bool is_open = i == region->count && region->is_open;
		if (i - first >= 2 * PAIRS || (is_open && i > first)) {
			search_pairs(region, first, i, is_open);
			search_pairs(region, first + 1, i, is_open);
		}
		first = i + 1;
	}
}

/* The length of a line break and the indent after it, also as it is written in JSON; 0 if there is none. `ret_is_cut`:
 * the text ends within it. */
static size_t line_break(const struct secret_text *text, size_t at, bool *ret_is_cut)
{
	static const char *const breaks[] = { "\r\n", "\n", "\\r\\n", "\\n" };
	size_t left = text->length - at;
	for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
		size_t length = strlen(breaks[i]), known = length < left ? length : left;
		if (memcmp(text->bytes + at, breaks[i], known) != 0)
			continue;
		if (length > left) {
			*ret_is_cut = true;
			return left;
		}
		while (length < left && length < 64 &&
		       (text->bytes[at + length] == ' ' || text->bytes[at + length] == '\t'))
			length++;
		*ret_is_cut = length == left;
		return length;
	}
	return 0;
}

/* Puts together the region that begins at `at`, searches it, and returns its end. */
static size_t search_region(struct secret_scanner *scanner, const struct scan_level *level,
                            const struct secret_text *text, size_t at)
{
	struct secret_scratch *scratch = scratch_for(scanner, level->depth, text->length);
	bool is_cut = false;
	if (!scratch)
		return text->length;
	struct region region = { scanner, level, scratch, text->bytes, 0, false, !secret_set_is_ascii(scanner->set) };
	for (size_t line = at;;) {
		while (at < text->length && alphabet[text->bytes[at]]) {
			scratch->values[region.count] = (unsigned char)(alphabet[text->bytes[at]] - 1);
			scratch->positions[region.count++] = (uint32_t)at++;
		}
		if (at == text->length || at - line < RUN)
			break;
		size_t length = line_break(text, at, &is_cut);
		if (!length || (!is_cut && !alphabet[text->bytes[at + length]]))
			break;
		at += length;
		line = at;
		if (is_cut)
			break;
	}
	region.is_open = at == text->length && !text->is_final;
	search_base64(&region);
	search_hex(&region);
	return at;
}

/* The next run of RUN symbols, or one that reaches the end of the text and may continue. */
static size_t next_region(const struct secret_text *text, size_t from)
{
	size_t run = run_next(text->bytes, text->length, from), at = text->length;
	if (run < text->length || text->is_final)
		return run;
	while (at > from && alphabet[text->bytes[at - 1]])
		at--;
	return at;
}

static bool is_url_byte(unsigned char byte)
{
	return byte > ' ' && byte < 0x7f && !strchr("\"'<>`\\{}|^", byte);
}

/* Undoes URL encoding from `at` on and returns where it ends: at a byte that has no place in it, or at an escape of
 * which the text does not have all. */
static size_t decode_url(const struct secret_text *text, size_t at, bool plus_is_space, struct secret_scratch *scratch,
                         size_t *ret_count, bool *ret_has_plus)
{
	size_t count = 0;
	*ret_has_plus = false;
	while (at < text->length && is_url_byte(text->bytes[at])) {
		unsigned char byte = text->bytes[at];
		size_t width = 1;
		if (byte == '%' && at + 3 > text->length && !text->is_final)
			break;
		if (byte == '%' && at + 3 <= text->length) {
			unsigned char high = hex_value(text->bytes[at + 1]), low = hex_value(text->bytes[at + 2]);
			if (high != NONE && low != NONE) {
				byte = (unsigned char)(high << 4 | low);
				width = 3;
			}
		} else if (byte == '+') {
			*ret_has_plus = true;
			byte = plus_is_space ? ' ' : byte;
		}
		scratch->decoded[count] = byte;
		scratch->positions[count++] = (uint32_t)at;
		at += width;
	}
	scratch->positions[count] = (uint32_t)at;
	*ret_count = count;
	return at;
}

/* The region around the percent sign at `at`, not before `from`. Returns its end. */
static size_t search_url(struct secret_scanner *scanner, const struct scan_level *level, const struct secret_text *text,
                         size_t from, size_t at)
{
	struct secret_scratch *scratch = scratch_for(scanner, level->depth, text->length);
	size_t start = at, end = at, count = 0;
	bool has_plus = true;
	if (!scratch)
		return text->length;
	while (start > from && is_url_byte(text->bytes[start - 1]))
		start--;
	const struct region region = { scanner, level, scratch, text->bytes, 0, false, false };
	for (int plus_is_space = 1; plus_is_space >= 0 && has_plus; plus_is_space--) {
		end = decode_url(text, start, plus_is_space, scratch, &count, &has_plus);
		bool is_cut = end < text->length && text->bytes[end] == '%';
		bool is_open = (end == text->length || is_cut) && !text->is_final;
		if (is_open && is_cut)
			scan_hold(scanner, level, end);
		if (count)
			search(&region, SECRET_URL, 0, count, !is_open);
		if (is_cut)
			end = text->length;
	}
	return end;
}

void scan_encoded(struct secret_scanner *scanner, const struct scan_level *level, const struct secret_text *text)
{
	size_t at = 0;
	while ((at = next_region(text, at)) < text->length)
		at = search_region(scanner, level, text, at);
	size_t limit = 0;
	for (size_t from = 0; from < text->length;) {
		const unsigned char *percent = memchr(text->bytes + from, '%', text->length - from);
		if (!percent)
			break;
		at = (size_t)(percent - text->bytes);
		size_t left = text->length - at;
		bool is_escape =
			left >= 3 ? hex_value(percent[1]) != NONE && hex_value(percent[2]) != NONE : !text->is_final;
		from = at + 1;
		if (is_escape)
			from = limit = search_url(scanner, level, text, limit, at);
	}
}

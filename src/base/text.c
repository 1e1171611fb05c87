/* Text questions: see text.h. */
#include "base/text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/cleanup.h"

static bool parse_digits(const char **text, uint64_t *ret_number)
{
	const char *at = *text;
	uint64_t number = 0;
	if (*at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
			return false;
	*text = at;
	*ret_number = number;
	return true;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static bool parse_with_unit(const char *text, const struct unit *units, size_t count, uint64_t *ret_number)
{
	uint64_t number, product;
	if (!parse_digits(&text, &number))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (strcasecmp(text, units[i].name))
			continue;
		if (__builtin_mul_overflow(number, units[i].factor, &product))
			return false;
		*ret_number = product;
		return true;
	}
	return false;
}

bool text_parse_size(const char *text, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ "", 1 }, { "B", 1 },
		{ "k", 1ull << 10 }, { "kB", 1ull << 10 }, { "KiB", 1ull << 10 },
		{ "M", 1ull << 20 }, { "MB", 1ull << 20 }, { "MiB", 1ull << 20 },
		{ "G", 1ull << 30 }, { "GB", 1ull << 30 }, { "GiB", 1ull << 30 },
		{ "T", 1ull << 40 }, { "TB", 1ull << 40 }, { "TiB", 1ull << 40 },
	};
	return parse_with_unit(text, units, ARRAY_SIZE(units), ret_bytes);
}

bool text_parse_duration(const char *text, uint64_t *ret_ms)
{
	static const struct unit units[] = {
		{ "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "min", 60000 }, { "h", 3600000 },
	};
	return parse_with_unit(text, units, ARRAY_SIZE(units), ret_ms);
}

bool text_parse_percent(const char *text, uint64_t *ret_percent)
{
	static const struct unit units[] = { { "", 1 }, { "%", 1 } };
	return parse_with_unit(text, units, ARRAY_SIZE(units), ret_percent);
}

bool text_parse_number(const char *text, uint64_t max, uint64_t *ret_number)
{
	uint64_t number;
	if (!parse_digits(&text, &number) || *text || number > max)
		return false;
	*ret_number = number;
	return true;
}

static void format_with_unit(uint64_t number, const struct unit *units, size_t count, char ret_text[TEXT_AMOUNT_SIZE])
{
	size_t unit = 0;
	while (number && unit + 1 < count && number % units[unit + 1].factor == 0)
		unit++;
	snprintf(ret_text, TEXT_AMOUNT_SIZE, "%" PRIu64 "%s", number / units[unit].factor, units[unit].name);
}

void text_format_size(uint64_t bytes, char ret_text[TEXT_AMOUNT_SIZE])
{
	static const struct unit units[] = {
		{ "", 1 }, { "K", 1ull << 10 }, { "M", 1ull << 20 }, { "G", 1ull << 30 }, { "T", 1ull << 40 },
	};
	format_with_unit(bytes, units, ARRAY_SIZE(units), ret_text);
}

void text_format_duration(uint64_t ms, char ret_text[TEXT_AMOUNT_SIZE])
{
	static const struct unit units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 } };
	format_with_unit(ms, units, ARRAY_SIZE(units), ret_text);
}

/* Edit distance with transpositions, for words up to 63 bytes. */
static unsigned distance(const char *a, const char *b)
{
	size_t a_length = strlen(a), b_length = strlen(b);
	unsigned rows[3][64];
	if (a_length > 63 || b_length > 63)
		return UINT_MAX;
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];
	for (unsigned j = 0; j <= b_length; j++)
		last[j] = j;
	for (unsigned i = 1; i <= a_length; i++) {
		now[0] = i;
		for (unsigned j = 1; j <= b_length; j++) {
			unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);
			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
		unsigned *oldest = before;
		before = last;
		last = now;
		now = oldest;
	}
	return last[b_length];
}

const char *text_nearest(const char *word, const char *const *candidates, size_t count)
{
	const char *nearest = NULL;
	unsigned best = (unsigned)strlen(word) / 3 + 2;
	for (size_t i = 0; i < count; i++) {
		unsigned far = distance(word, candidates[i]);
		if (far < best && 2 * far <= strlen(word) && far < strlen(candidates[i])) {
			best = far;
			nearest = candidates[i];
		}
	}
	return nearest;
}

bool text_has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

char *path_normalise(struct arena *arena, const char *path)
{
	if (path[0] != '/')
		return NULL;
	char *out = arena_alloc(arena, strlen(path) + 2);
	if (!out)
		return NULL;
	size_t length = 0;
	while (*path) {
		size_t size = strcspn(path, "/");
		if (size == 2 && !memcmp(path, "..", 2)) {
			while (length && out[--length] != '/')
				;
		} else if (size && !(size == 1 && *path == '.')) {
			out[length++] = '/';
			memcpy(out + length, path, size);
			length += size;
		}
		path += size;
		path += strspn(path, "/");
	}
	if (!length)
		out[length++] = '/';
	out[length] = '\0';
	return out;
}

bool path_is_normal(const char *path)
{
	if (path[0] != '/')
		return false;
	if (!path[1])
		return true;
	while (*path == '/') {
		size_t size = strcspn(++path, "/");
		if (size == 0 || (size == 1 && path[0] == '.') || (size == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += size;
	}
	return true;
}

bool path_within(const char *path, const char *root)
{
	size_t length = strlen(root);
	if (!strcmp(root, "/"))
		return path[0] == '/';
	return length && !strncmp(path, root, length) && (path[length] == '/' || path[length] == '\0');
}

/* The search on one level, and what was found: see scan.h. */
#include "secrets/scan.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "secrets/scan-level.h"

void secret_scanner_init(struct secret_scanner *scanner, const struct secret_set *set, const unsigned char *key)
{
	memset(scanner, 0, sizeof(*scanner));
	scanner->set = set;
	scanner->depth = SECRET_DEPTH;
	if (key)
		memcpy(scanner->key, key, sizeof(scanner->key));
	else
		randombytes_buf(scanner->key, sizeof(scanner->key));
}

void secret_scanner_free(struct secret_scanner *scanner)
{
	for (size_t i = 0; i < SECRET_DEPTH; i++) {
		struct secret_scratch *scratch = &scanner->scratch[i];
		if (scratch->capacity) {
			sodium_memzero(scratch->values, scratch->capacity);
			sodium_memzero(scratch->decoded, scratch->capacity);
		}
		free(scratch->positions);
		free(scratch->values);
		free(scratch->decoded);
	}
	free(scanner->found);
	sodium_memzero(scanner, sizeof(*scanner));
}

/* The symbol of the encoding that byte `at` begins with, and the one after that in which byte `end - 1` ends. */
static size_t first_symbol(const struct scan_level *level, size_t at)
{
	switch (level->layer) {
	case SECRET_BASE64:
		return level->first + at * 4 / 3;
	case SECRET_HEX:
		return level->first + at * 2;
	default:
		return level->first + at;
	}
}

size_t scan_level_start(const struct scan_level *level, size_t at)
{
	for (; level->outer; level = level->outer)
		at = level->positions[first_symbol(level, at)];
	return at;
}

size_t scan_level_end(const struct scan_level *level, size_t end)
{
	for (; level->outer; level = level->outer) {
		if (level->layer == SECRET_BASE64)
			end = level->positions[level->first + (end * 4 + 2) / 3 - 1] + 1;
		else if (level->layer == SECRET_HEX)
			end = level->positions[level->first + end * 2 - 1] + 1;
		else
			end = level->positions[level->first + end];
	}
	return end;
}

void scan_hold(struct secret_scanner *scanner, const struct scan_level *level, size_t at)
{
	size_t start = scan_level_start(level, at);
	if (start < scanner->open)
		scanner->open = start;
}

static void keep(struct secret_scanner *scanner, const struct scan_level *level, const struct secret_text *text,
                 size_t member, size_t start, size_t end)
{
	if (scanner->found_count == scanner->found_capacity) {
		size_t capacity = scanner->found_capacity ? 2 * scanner->found_capacity : 16;
		struct secret_found *grown = realloc(scanner->found, capacity * sizeof(*grown));
		if (!grown) {
			scanner->is_short_of_memory = true;
			return;
		}
		scanner->found = grown;
		scanner->found_capacity = capacity;
	}
	if (scanner->load_key)
		scanner->load_key(scanner->load_key_arg, scanner->key);
	scanner->load_key = NULL;
	struct secret_found *found = &scanner->found[scanner->found_count++];
	unsigned char digest[crypto_generichash_BYTES_MIN];
	memset(found, 0, sizeof(*found));
	found->start = scan_level_start(level, start);
	found->end = scan_level_end(level, end);
	found->member = (uint16_t)member;
	for (; level->outer; level = level->outer)
		found->layers[level->depth - 1] = (uint8_t)level->layer;
	crypto_generichash(digest, sizeof(digest), text->bytes + start, end - start, scanner->key, sizeof(scanner->key));
	memcpy(found->fingerprint, digest, sizeof(found->fingerprint));
}

static enum secret_answer check_own(const struct secret_own *own, const struct secret_text *text, size_t at,
                                    size_t *ret_start, size_t *ret_end)
{
	if (at < own->anchor)
		return SECRET_NO;
	size_t start = at - own->anchor, known = text->length - start;
	*ret_start = start;
	*ret_end = start + own->length;
	if (memcmp(text->bytes + start, own->bytes, known < own->length ? known : own->length) != 0)
		return SECRET_NO;
	if (known >= own->length)
		return SECRET_FOUND;
	return text->is_final ? SECRET_NO : SECRET_MORE;
}

/* One place that the prefilter reported. Returns where the rows' search goes on: not inside of what a row matched, so that
 * a repeated near miss is read once; an own secret may begin there all the same. */
static size_t check_place(struct secret_scanner *scanner, const struct scan_level *level, const struct secret_text *text,
                          size_t at, uint8_t buckets, size_t rows_from)
{
	size_t next = rows_from;
	for (; buckets; buckets &= (uint8_t)(buckets - 1)) {
		const uint16_t *members;
		size_t count = secret_set_bucket(scanner->set, (unsigned)__builtin_ctz(buckets), &members);
		for (size_t i = 0; i < count; i++) {
			size_t start = 0, end = 0;
			bool is_row = members[i] < SECRET_ROWS;
			if (is_row && at < rows_from)
				continue;
			enum secret_answer answer =
				is_row ? secret_rows[members[i]].check(&secret_rows[members[i]], text, at, &start, &end)
				       : check_own(secret_set_own(scanner->set, members[i] - SECRET_ROWS), text, at, &start, &end);
			if (answer == SECRET_MORE)
				scan_hold(scanner, level, start);
			if (answer != SECRET_FOUND)
				continue;
			keep(scanner, level, text, members[i], start, end);
			if (is_row && end > next)
				next = end;
		}
	}
	return next;
}

void scan_text(struct secret_scanner *scanner, const struct scan_level *level, const struct secret_text *text)
{
	const struct prefilter *prefilter = secret_set_prefilter(scanner->set);
	uint8_t buckets = 0;
	size_t rows_from = 0;
	for (size_t at = 0; (at = prefilter_next(prefilter, text->bytes, text->length, at, &buckets)) < text->length; at++)
		rows_from = check_place(scanner, level, text, at, buckets, rows_from);
	if (!text->is_final) {
		size_t tail = secret_tail(text), own_tail = secret_set_tail(scanner->set, text);
		tail = own_tail < tail ? own_tail : tail;
		if (tail < text->length)
			scan_hold(scanner, level, tail);
	}
	if (level->depth < scanner->depth)
		scan_encoded(scanner, level, text);
}

static size_t depth_of(const struct secret_found *found)
{
	return (found->layers[0] != SECRET_RAW) + (found->layers[1] != SECRET_RAW);
}

/* By start, the longest first, the least encoded of the same length first, own secrets before kinds. */
static int compare(const void *left, const void *right)
{
	const struct secret_found *a = left, *b = right;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	if (depth_of(a) != depth_of(b))
		return depth_of(a) < depth_of(b) ? -1 : 1;
	return (int)b->member - (int)a->member;
}

/* What overlaps is hidden as one, named after the longest. */
static void merge(struct secret_scanner *scanner)
{
	size_t count = 0;
	if (scanner->found_count)
		qsort(scanner->found, scanner->found_count, sizeof(*scanner->found), compare);
	for (size_t i = 0; i < scanner->found_count; i++) {
		struct secret_found *last = count ? &scanner->found[count - 1] : NULL, *next = &scanner->found[i];
		if (!last || next->start >= last->end) {
			scanner->found[count++] = *next;
			continue;
		}
		size_t start = last->start, end = next->end > last->end ? next->end : last->end;
		if (next->end - next->start > last->end - last->start)
			*last = *next;
		last->start = start;
		last->end = end;
	}
	scanner->found_count = count;
}

int secret_scan(struct secret_scanner *scanner, const void *bytes, size_t length, bool is_final)
{
	const struct scan_level level = { 0 };
	const struct secret_text text = { bytes, length, is_final };
	scanner->found_count = 0;
	scanner->open = length;
	scanner->is_short_of_memory = false;
	if (length)
		scan_text(scanner, &level, &text);
	if (scanner->is_short_of_memory) {
		scanner->found_count = 0;
		return -1;
	}
	merge(scanner);
	return 0;
}

const char *secret_found_name(const struct secret_set *set, const struct secret_found *found)
{
	return found->member < SECRET_ROWS ? secret_rows[found->member].name
	                                   : secret_set_own(set, found->member - SECRET_ROWS)->name;
}

void secret_layer_text(const uint8_t layers[SECRET_DEPTH], char ret_text[SECRET_LAYER_TEXT])
{
	static const char *const names[SECRET_LAYER_MAX] = { "raw", "url", "base64", "hex" };
	snprintf(ret_text, SECRET_LAYER_TEXT, layers[1] ? "%s+%s" : "%s", names[layers[0]], names[layers[1]]);
}

/* The search on one level, and what was found: see scan.h. */
#include "secrets/scan.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "secrets/scan-level.h"

#define NEAR 32                 /* bytes from one place to the next */

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

/* Of an own secret as JSON writes it, too, the bytes that it stands for. */
static void take_fingerprint(const struct secret_scanner *scanner, const struct secret_text *text, size_t start,
                             size_t end, struct secret_found *found)
{
	unsigned char digest[crypto_generichash_BYTES_MIN];
	const unsigned char *bytes = text->bytes + start;
	size_t length = end - start;
	if (found->member >= SECRET_ROWS) {
		const struct secret_own *own = secret_set_plain(scanner->set, found->member - SECRET_ROWS);
		bytes = own->bytes;
		length = own->length;
	}
	crypto_generichash(digest, sizeof(digest), bytes, length, scanner->key, sizeof(scanner->key));
	memcpy(found->fingerprint, digest, sizeof(found->fingerprint));
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
	memset(found, 0, sizeof(*found));
	found->start = scan_level_start(level, start);
	found->end = scan_level_end(level, end);
	found->member = (uint16_t)member;
	for (; level->outer; level = level->outer)
		found->layers[level->depth - 1] = (uint8_t)level->layer;
	take_fingerprint(scanner, text, start, end, found);
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

/* `here`: the eight bytes from `at` on, if there are so many. */
static inline bool may_begin(const struct secret_beginning *beginning, const struct secret_text *text, size_t at,
                             uint64_t here)
{
	uint64_t bytes = here;
	if (at < beginning->back || text->length - (at - beginning->back) < sizeof(bytes))
		return true;
	if (beginning->back)
		memcpy(&bytes, text->bytes + at - beginning->back, sizeof(bytes));
	return !((bytes ^ beginning->bits) & beginning->mask);
}

/* Own secrets whose anchor may be here. */
static void check_owns(struct secret_scanner *scanner, const struct scan_level *level, const struct secret_text *text,
                       size_t at)
{
	for (size_t number = secret_set_first(scanner->set, text->bytes + at); number;) {
		const struct secret_own *own = secret_set_own(scanner->set, number - 1);
		size_t start = 0, end = 0;
		enum secret_answer answer = check_own(own, text, at, &start, &end);
		if (answer == SECRET_MORE)
			scan_hold(scanner, level, start);
		if (answer == SECRET_FOUND)
			keep(scanner, level, text, SECRET_ROWS + number - 1, start, end);
		number = own->next;
	}
}

/* One place that the prefilter reported. Returns where the rows' search goes on: behind the shortest secret of the row
 * that matched. What it took further may be the next one's already, where nothing is between the two. An own secret
 * may begin anywhere. */
static size_t check_place(struct secret_scanner *scanner, const struct scan_level *level,
                          const struct secret_text *text, size_t at, uint8_t buckets, size_t rows_from)
{
	const uint16_t *from;
	const struct secret_beginning *beginnings = secret_set_beginnings(scanner->set, &from);
	size_t next = rows_from;
	uint64_t here = 0;
	check_owns(scanner, level, text, at);
	if (at < rows_from)
		return rows_from;
	if (text->length - at >= sizeof(here))
		memcpy(&here, text->bytes + at, sizeof(here));
	for (; buckets; buckets &= (uint8_t)(buckets - 1)) {
		unsigned bucket = (unsigned)__builtin_ctz(buckets);
		for (size_t i = from[bucket]; i < from[bucket + 1]; i++) {
			const struct secret_row *row = &secret_rows[beginnings[i].row];
			size_t start = 0, end = 0;
			if (!may_begin(&beginnings[i], text, at, here))
				continue;
			enum secret_answer answer = row->check(row, text, at, &start, &end);
			if (answer == SECRET_MORE)
				scan_hold(scanner, level, start);
			if (answer != SECRET_FOUND)
				continue;
			keep(scanner, level, text, beginnings[i].row, start, end);
			size_t shortest = start + row->prefix_length + row->min;
			if (shortest > next)
				next = shortest;
		}
	}
	return next;
}

void scan_text(struct secret_scanner *scanner, const struct scan_level *level, const struct secret_text *text)
{
	const struct prefilter *prefilter = secret_set_prefilter(scanner->set);
	struct secret_memory memory = { .steps = 0 };
	const struct secret_text remembered = { text->bytes, text->length, text->is_final, &memory };
	uint8_t buckets = 0;
	size_t rows_from = 0;
	bool is_near = false;
	for (size_t from = 0, at;; from = at + 1) {
		at = prefilter_next(prefilter, text->bytes, text->length, from, is_near, &buckets);
		if (at == text->length)
			break;
		/* Where two places were close, there is often a third. */
		is_near = at - from < NEAR;
		rows_from = check_place(scanner, level, &remembered, at, buckets, rows_from);
	}
	scanner->steps += memory.steps;
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

/* ---- what overlaps ---------------------------------------------------------------------------------------------- */

static bool hides(const struct secret_found *found)
{
	return found->action == SECRET_REDACT || found->action == SECRET_BLOCK;
}

static bool is_own(const struct secret_found *found)
{
	return found->member >= SECRET_ROWS;
}

/* By start, the longest first; of the same length what is exempt, then the least encoded first, own secrets before
 * kinds. */
static int compare(const void *left, const void *right)
{
	const struct secret_found *a = left, *b = right;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	if ((a->action == SECRET_EXEMPT) != (b->action == SECRET_EXEMPT))
		return a->action == SECRET_EXEMPT ? -1 : 1;
	if (depth_of(a) != depth_of(b))
		return depth_of(a) < depth_of(b) ? -1 : 1;
	return (int)b->member - (int)a->member;
}

/* Which of two that overlap names both: the stricter one, an own secret before kinds, then the longer one. */
static bool is_stronger(const struct secret_found *a, const struct secret_found *b)
{
	if (a->action != b->action)
		return a->action == SECRET_BLOCK;
	return is_own(a) != is_own(b) ? is_own(a) : a->end - a->start > b->end - b->start;
}

static void join(struct secret_found *last, const struct secret_found *next)
{
	size_t start = last->start, end = next->end > last->end ? next->end : last->end;
	if (is_stronger(next, last))
		*last = *next;
	last->start = start;
	last->end = end;
}

/* What is reported takes nothing from what is hidden, and the other way round: each is merged by itself. */
static size_t merge(struct secret_found *found, size_t found_count)
{
	struct secret_found *last[2] = { NULL, NULL };
	size_t count = 0, exempt_to = 0;
	for (size_t i = 0; i < found_count; i++) {
		const struct secret_found next = found[i];
		struct secret_found **same = &last[hides(&next)];
		if (next.action == SECRET_EXEMPT && next.end > exempt_to)
			exempt_to = next.end;
		if (next.end <= exempt_to || next.action == SECRET_IGNORE)
			continue;
		if (*same && next.start < (*same)->end) {
			join(*same, &next);
			continue;
		}
		*same = &found[count++];
		**same = next;
	}
	return count;
}

static size_t drop_hidden_reports(struct secret_found *found, size_t found_count)
{
	size_t count = 0, hidden_to = 0;
	for (size_t i = 0; i < found_count; i++) {
		if (hides(&found[i]))
			hidden_to = found[i].end;
		else if (found[i].end <= hidden_to)
			continue;
		found[count++] = found[i];
	}
	return count;
}

static void settle(struct secret_scanner *scanner)
{
	struct secret_found *found = scanner->found;
	if (!scanner->found_count)
		return;
	for (size_t i = 0; scanner->judge && i < scanner->found_count; i++)
		found[i].action = (uint8_t)scanner->judge(scanner->judge_arg, &found[i]);
	qsort(found, scanner->found_count, sizeof(*found), compare);
	scanner->found_count = drop_hidden_reports(found, merge(found, scanner->found_count));
}

int secret_scan(struct secret_scanner *scanner, const void *bytes, size_t length, bool is_final)
{
	const struct scan_level level = { 0 };
	const struct secret_text text = { .bytes = bytes, .length = length, .is_final = is_final };
	scanner->found_count = 0;
	scanner->open = length;
	scanner->steps = 0;
	scanner->is_short_of_memory = false;
	if (length)
		scan_text(scanner, &level, &text);
	if (scanner->is_short_of_memory) {
		scanner->found_count = 0;
		return -1;
	}
	settle(scanner);
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

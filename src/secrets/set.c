/* See set.h. */
#include "secrets/set.h"

#include <ctype.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

struct secret_set {
	int references;
	struct prefilter prefilter;
	uint16_t members[PREFILTER_BUCKETS][SECRET_ROWS + SECRET_OWN_COUNT];
	uint16_t member_count[PREFILTER_BUCKETS];
	struct secret_own own[SECRET_OWN_COUNT];
	size_t own_count;
	bool is_ascii;
};

static void add_member(struct secret_set *set, unsigned bucket, size_t member)
{
	set->members[bucket][set->member_count[bucket]++] = (uint16_t)member;
}

/* A bucket is reported where each byte fits any of its rows, so rows share one with those that are like them: what the search
 * reports in ordinary text depends on it. Own secrets are spread over all. */
static unsigned row_bucket(const struct secret_row *row)
{
	static const char *const firsts[PREFILTER_BUCKETS] = { "sr", "B", "[", "g", "A", "xw", "e", "" };
	if (!strcmp(row->anchor, "retA"))
		return 7;
	if (row->check == shape_telegram)
		return 6;
	for (unsigned i = 0; i < PREFILTER_BUCKETS; i++)
		if (strchr(firsts[i], row->anchor[0]))
			return i;
	return PREFILTER_BUCKETS - 1;
}

struct secret_set *secret_set_new(void)
{
	struct secret_set *set = calloc(1, sizeof(*set));
	if (!set)
		return NULL;
	set->references = 1;
	set->is_ascii = true;
	for (size_t i = 0; i < secret_row_count; i++) {
		unsigned bucket = row_bucket(&secret_rows[i]);
		prefilter_add(&set->prefilter, secret_rows[i].anchor, bucket);
		add_member(set, bucket, i);
	}
	return set;
}

struct secret_set *secret_set_ref(struct secret_set *set)
{
	if (set)
		__atomic_add_fetch(&set->references, 1, __ATOMIC_RELAXED);
	return set;
}

void secret_set_unref(struct secret_set *set)
{
	if (!set || __atomic_sub_fetch(&set->references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	for (size_t i = 0; i < set->own_count; i++) {
		sodium_memzero(set->own[i].bytes, set->own[i].length);
		free(set->own[i].bytes);
		free(set->own[i].border);
		free(set->own[i].name);
	}
	sodium_memzero(set, sizeof(*set));
	free(set);
}

bool secret_is_plain(const char *value, size_t length)
{
	bool has_digit = false, has_letter = false, is_mixed = false;
	if (length < SECRET_OWN_MIN)
		return true;
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)value[i];
		has_digit |= isdigit(byte);
		has_letter |= isalpha(byte);
		/* A capital behind a small letter: camel case, or chance. */
		is_mixed |= i && isupper(byte) && islower((unsigned char)value[i - 1]);
		if (!isalnum(byte) && !strchr("-_./: ,", byte))
			return false;
	}
	return !has_letter || (!has_digit && !is_mixed) || !secret_varies((const unsigned char *)value, length);
}

/* How seldom a byte is in text, roughly. */
static int rarity(unsigned char byte)
{
	if (islower(byte) || byte == ' ')
		return 0;
	return isdigit(byte) || byte == '-' || byte == '_' || byte == '/' ? 1 : 2;
}

/* The four bytes that are least likely elsewhere, near the start: what comes before them is held back with them. */
static size_t choose_anchor(const unsigned char *bytes, size_t length)
{
	size_t best = 0;
	int most = -1;
	for (size_t i = 0; i + PREFILTER_BYTES <= length && i < 16; i++) {
		int sum = rarity(bytes[i]) + rarity(bytes[i + 1]) + rarity(bytes[i + 2]) + rarity(bytes[i + 3]);
		if (sum > most) {
			most = sum;
			best = i;
		}
	}
	return best;
}

/* Knuth, Morris and Pratt's table. */
static void find_borders(struct secret_own *own)
{
	size_t border = 0;
	own->border[0] = 0;
	for (size_t i = 1; i < own->length; i++) {
		while (border && own->bytes[i] != own->bytes[border])
			border = own->border[border - 1];
		border += own->bytes[i] == own->bytes[border];
		own->border[i] = (uint16_t)border;
	}
}

static bool is_known(const struct secret_set *set, const char *value, size_t length)
{
	for (size_t i = 0; i < set->own_count; i++)
		if (set->own[i].length == length && !memcmp(set->own[i].bytes, value, length))
			return true;
	return false;
}

static int add_own(struct secret_set *set, const char *name, const char *value, size_t length, bool is_exempt)
{
	for (; length && isspace((unsigned char)*value); value++)
		length--;
	while (length && isspace((unsigned char)value[length - 1]))
		length--;
	if (length > SECRET_OWN_MAX || secret_is_plain(value, length) || is_known(set, value, length) ||
	    set->own_count == SECRET_OWN_COUNT)
		return 0;

	struct secret_own own = { .name = strdup(name), .bytes = malloc(length), .length = length, .is_exempt = is_exempt,
	                          .border = calloc(length, sizeof(uint16_t)) };
	if (!own.name || !own.bytes || !own.border) {
		free(own.name);
		free(own.bytes);
		free(own.border);
		return -1;
	}
	memcpy(own.bytes, value, length);
	own.anchor = choose_anchor(own.bytes, length);
	find_borders(&own);
	for (size_t i = 0; i < length; i++)
		set->is_ascii &= own.bytes[i] < 0x80;
	unsigned bucket = (unsigned)(set->own_count % PREFILTER_BUCKETS);
	prefilter_add_bytes(&set->prefilter, own.bytes + own.anchor, bucket);
	add_member(set, bucket, SECRET_ROWS + set->own_count);
	set->own[set->own_count++] = own;
	return 1;
}

int secret_set_add(struct secret_set *set, const char *name, const char *value, size_t length)
{
	return add_own(set, name, value, length, false);
}

int secret_set_exempt(struct secret_set *set, const char *name, const char *value, size_t length)
{
	return add_own(set, name, value, length, true);
}

size_t secret_set_count(const struct secret_set *set)
{
	return set->own_count;
}

const struct prefilter *secret_set_prefilter(const struct secret_set *set)
{
	return &set->prefilter;
}

const struct secret_own *secret_set_own(const struct secret_set *set, size_t index)
{
	return &set->own[index];
}

size_t secret_set_bucket(const struct secret_set *set, unsigned bucket, const uint16_t **ret_members)
{
	*ret_members = set->members[bucket];
	return set->member_count[bucket];
}

bool secret_set_is_ascii(const struct secret_set *set)
{
	return set->is_ascii;
}

/* How many bytes at the end of `text` begin this secret: a search for it through as many bytes as it has, less one. */
static size_t overlap(const struct secret_own *own, const struct secret_text *text)
{
	size_t matched = 0, from = text->length < own->length ? 0 : text->length - (own->length - 1);
	for (size_t i = from; i < text->length; i++) {
		while (matched && text->bytes[i] != own->bytes[matched])
			matched = own->border[matched - 1];
		matched += text->bytes[i] == own->bytes[matched];
	}
	return matched;
}

size_t secret_set_tail(const struct secret_set *set, const struct secret_text *text)
{
	size_t longest = 0;
	for (size_t i = 0; i < set->own_count; i++) {
		size_t length = overlap(&set->own[i], text);
		longest = length > longest ? length : longest;
	}
	return text->length - longest;
}

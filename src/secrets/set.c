/* See set.h. */
#include "secrets/set.h"

#include <ctype.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_BITS 10

struct secret_set {
	int references;
	struct prefilter prefilter;
	struct secret_beginning beginnings[SECRET_ROWS];
	uint16_t from[PREFILTER_BUCKETS + 1];
	struct secret_own *own;
	size_t own_count, own_capacity, left_out;
	uint16_t first[1 << HASH_BITS];         /* of own secrets: the number, plus one, by the hash of the anchor */
	bool is_ascii;
};

static size_t hash(const unsigned char *bytes)
{
	uint32_t four;
	_Static_assert(sizeof(four) == PREFILTER_BYTES, "an anchor");
	memcpy(&four, bytes, sizeof(four));
	return (four * UINT32_C(2654435761)) >> (32 - HASH_BITS);
}

/* A bucket is reported where each byte fits any of its rows, so rows share one with those that are like them: what the
 * search reports in ordinary text depends on it. Own secrets are spread over all. */
static unsigned row_bucket(const struct secret_row *row)
{
	static const char *const firsts[PREFILTER_BUCKETS] = { "sr", "Bb", "[", "g", "A", "xw", "e", "" };
	if (!strcmp(row->anchor, "retA"))
		return 7;
	if (row->check == shape_telegram)
		return 6;
	for (unsigned i = 0; i < PREFILTER_BUCKETS; i++)
		if (strchr(firsts[i], row->anchor[0]))
			return i;
	return PREFILTER_BUCKETS - 1;
}

static void begin_row(struct secret_beginning *beginning, size_t number)
{
	const struct secret_row *row = &secret_rows[number];
	static const uint8_t every = 0xff;
	uint8_t bits[8] = { 0 }, mask[8] = { 0 };
	for (size_t i = 0; i < row->prefix_length && i < sizeof(bits); i++) {
		bits[i] = (uint8_t)row->prefix[i];
		mask[i] = every;
	}
	memcpy(&beginning->bits, bits, sizeof(bits));
	memcpy(&beginning->mask, mask, sizeof(mask));
	beginning->back = (uint8_t)row->back;
	beginning->row = (uint16_t)number;
}

const struct secret_beginning *secret_set_beginnings(const struct secret_set *set, const uint16_t **ret_from)
{
	*ret_from = set->from;
	return set->beginnings;
}

struct secret_set *secret_set_new(void)
{
	struct secret_set *set = calloc(1, sizeof(*set));
	if (!set)
		return NULL;
	set->references = 1;
	set->is_ascii = true;
	uint8_t buckets[SECRET_ROWS];
	for (size_t i = 0; i < secret_row_count; i++) {
		buckets[i] = (uint8_t)row_bucket(&secret_rows[i]);
		prefilter_add(&set->prefilter, secret_rows[i].anchor, buckets[i]);
	}
	uint16_t count = 0;
	for (unsigned bucket = 0; bucket < PREFILTER_BUCKETS; bucket++) {
		for (size_t i = 0; i < secret_row_count; i++)
			if (buckets[i] == bucket)
				begin_row(&set->beginnings[count++], i);
		set->from[bucket + 1] = count;
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
	free(set->own);
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

static struct secret_own *find_own(struct secret_set *set, const char *value, size_t length)
{
	for (size_t i = 0; i < set->own_count; i++)
		if (set->own[i].length == length && !memcmp(set->own[i].bytes, value, length))
			return &set->own[i];
	return NULL;
}

static bool has_room(struct secret_set *set)
{
	if (set->own_count < set->own_capacity)
		return true;
	size_t capacity = set->own_capacity ? 2 * set->own_capacity : 16;
	struct secret_own *grown = realloc(set->own, capacity * sizeof(*grown));
	if (!grown)
		return false;
	set->own = grown;
	set->own_capacity = capacity;
	return true;
}

static void add_flags(struct secret_own *own, const struct secret_own *how)
{
	own->is_secret |= how->is_secret;
	own->is_exempt |= how->is_exempt;
	own->is_withheld |= how->is_withheld;
}

/* Exactly these bytes. `how` has the flags. */
static int add_bytes(struct secret_set *set, const char *name, const char *value, size_t length,
                     const struct secret_own *how)
{
	struct secret_own *known = find_own(set, value, length);
	if (known)
		add_flags(known, how);
	if (known && known + 1 < set->own + set->own_count && known[1].is_escaped)
		add_flags(known + 1, how);
	set->left_out += !known && set->own_count == SECRET_OWN_COUNT;
	if (known || set->own_count == SECRET_OWN_COUNT)
		return 0;

	struct secret_own own = { .name = strdup(name),
		                  .bytes = malloc(length),
		                  .length = length,
		                  .is_exempt = how->is_exempt,
		                  .is_secret = how->is_secret,
		                  .is_withheld = how->is_withheld,
		                  .is_escaped = how->is_escaped,
		                  .border = calloc(length, sizeof(uint16_t)) };
	if (!own.name || !own.bytes || !own.border || !has_room(set)) {
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
	uint16_t *first = &set->first[hash(own.bytes + own.anchor)];
	own.next = *first;
	set->own[set->own_count++] = own;
	*first = (uint16_t)set->own_count;
	return 1;
}

/* As it stands in a JSON text. Returns the length; a character becomes six at most. */
static size_t escape(const char *value, size_t length, char *ret_text)
{
	static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	size_t used = 0;
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)value[i];
		const char *found = byte ? strchr(plain, byte) : NULL;
		if (found) {
			ret_text[used++] = '\\';
			ret_text[used++] = letters[found - plain];
		} else if (byte < 0x20) {
			used += (size_t)sprintf(ret_text + used, "\\u%04x", byte);
		} else {
			ret_text[used++] = (char)byte;
		}
	}
	return used;
}

/* The value, and where JSON writes it otherwise, that. */
static int add_own(struct secret_set *set, const char *name, const char *value, size_t length,
                   const struct secret_own *how)
{
	for (; length && isspace((unsigned char)*value); value++)
		length--;
	while (length && isspace((unsigned char)value[length - 1]))
		length--;
	if (length > SECRET_OWN_MAX || secret_is_plain(value, length))
		return 0;
	int status = add_bytes(set, name, value, length, how);
	char *escaped = status > 0 ? malloc(6 * length + 1) : NULL;
	if (status > 0 && !escaped)
		return -1;
	size_t size = escaped ? escape(value, length, escaped) : 0;
	struct secret_own other = *how;
	other.is_escaped = true;
	if (size > length && size <= SECRET_OWN_MAX && add_bytes(set, name, escaped, size, &other) < 0)
		status = -1;
	if (escaped)
		sodium_memzero(escaped, size);
	free(escaped);
	return status;
}

int secret_set_add(struct secret_set *set, const char *name, const char *value, size_t length)
{
	return add_own(set, name, value, length, &(struct secret_own){ .is_secret = true });
}

int secret_set_add_key(struct secret_set *set, const char *name, const char *value, size_t length)
{
	return add_own(set, name, value, length, &(struct secret_own){ .is_secret = true, .is_withheld = true });
}

int secret_set_exempt(struct secret_set *set, const char *name, const char *value, size_t length, bool is_secret)
{
	return add_own(set, name, value, length, &(struct secret_own){ .is_exempt = true, .is_secret = is_secret });
}

struct secret_set *secret_set_without_keys(struct secret_set *set)
{
	size_t keys = 0;
	for (size_t i = 0; i < set->own_count; i++)
		keys += secret_set_plain(set, i)->is_withheld;
	if (!keys)
		return secret_set_ref(set);
	struct secret_set *others = secret_set_new();
	for (size_t i = 0; others && i < set->own_count; i++) {
		const struct secret_own *own = &set->own[i];
		if (secret_set_plain(set, i)->is_withheld ||
		    add_bytes(others, own->name, (const char *)own->bytes, own->length, own) >= 0)
			continue;
		secret_set_unref(others);
		others = NULL;
	}
	return others;
}

size_t secret_set_left_out(const struct secret_set *set)
{
	return set->left_out;
}

size_t secret_set_first(const struct secret_set *set, const unsigned char *bytes)
{
	return set->first[hash(bytes)];
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

const struct secret_own *secret_set_plain(const struct secret_set *set, size_t index)
{
	return &set->own[index - set->own[index].is_escaped];
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

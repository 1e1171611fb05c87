/* DNS messages: see dns.h. */
#include "net/dns.h"

#include <string.h>

#include "base/text.h"

#define HEADER_SIZE 12
#define LABEL_MAX 63
#define POINTER 0xc0
#define POINTERS_MAX 64         /* in one name: it has at most 127 labels, and pointing costs its reader time */
#define CLASS_IN 1
#define ALIASES_MAX 16          /* a longer chain leads nowhere */

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* One label of `length` bytes, or the end with length 0. */
static int add_label(struct dns_name *name, const uint8_t *label, size_t length)
{
	if (length > LABEL_MAX || name->length + 1 + length > sizeof(name->bytes))
		return -1;
	name->bytes[name->length++] = (uint8_t)length;
	for (size_t i = 0; i < length; i++)
		name->bytes[name->length++] = (uint8_t)text_lower((char)label[i]);
	return 0;
}

int dns_name_from_text(const char *text, struct dns_name *ret_name)
{
	struct dns_name name = { .length = 0 };
	for (;; text++) {
		size_t length = strcspn(text, ".");
		if (!length || add_label(&name, (const uint8_t *)text, length) < 0)
			return -1;
		text += length;
		if (!*text)
			break;
	}
	if (add_label(&name, NULL, 0) < 0)
		return -1;
	*ret_name = name;
	return 0;
}

int dns_name_read(const uint8_t *message, size_t length, size_t *at, struct dns_name *ret_name)
{
	struct dns_name name = { .length = 0 };
	size_t from = *at, limit = *at, behind = 0;     /* `limit`: where this run of labels began */
	unsigned pointers = 0;
	for (;;) {
		if (from >= length)
			return -1;
		size_t label = message[from];
		if ((label & POINTER) == POINTER) {
			if (from + 2 > length || ++pointers > POINTERS_MAX)
				return -1;
			if (!behind)
				behind = from + 2;
			from = dns_get16(message + from) & 0x3fff;
			if (from >= limit)
				return -1;
			limit = from;
			continue;
		}
		if (label > LABEL_MAX || from + 1 + label > length || add_label(&name, message + from + 1, label) < 0)
			return -1;
		from += 1 + label;
		if (!label)
			break;
	}
	*at = behind ? behind : from;
	*ret_name = name;
	return 0;
}

static bool same_name(const struct dns_name *a, const struct dns_name *b)
{
	return a->length == b->length && !memcmp(a->bytes, b->bytes, a->length);
}

/* ---- replies ---------------------------------------------------------------------------------------------------- */

struct record {
	struct dns_name owner;
	unsigned type, class;
	size_t data, data_length;
};

static int read_record(const uint8_t *message, size_t length, size_t *at, struct record *ret_record)
{
	struct record record;
	size_t from = *at;
	if (dns_name_read(message, length, &from, &record.owner) < 0 || from + 10 > length)
		return -1;
	record.type = dns_get16(message + from);
	record.class = dns_get16(message + from + 2);
	record.data_length = dns_get16(message + from + 8);
	record.data = from + 10;
	if (record.data + record.data_length > length)
		return -1;
	*at = record.data + record.data_length;
	*ret_record = record;
	return 0;
}

/* Where the answers begin, behind the questions; 0 where there is no such place. */
static size_t answers_begin(const uint8_t *message, size_t length)
{
	struct dns_name question;
	size_t at = HEADER_SIZE;
	if (length < HEADER_SIZE)
		return 0;
	for (unsigned count = dns_get16(message + 4); count; count--) {
		if (dns_name_read(message, length, &at, &question) < 0 || at + 4 > length)
			return 0;
		at += 4;
	}
	return at;
}

/* Follows one alias of `name`: 1 where there was one, 0 where it has none, -1 where the reply is malformed. */
static int follow_alias(const uint8_t *message, size_t length, size_t begin, struct dns_name *name)
{
	struct record record;
	size_t at = begin;
	for (unsigned count = dns_get16(message + 6); count; count--) {
		if (read_record(message, length, &at, &record) < 0)
			return -1;
		size_t data = record.data;
		if (record.type == DNS_TYPE_CNAME && record.class == CLASS_IN && same_name(&record.owner, name))
			return dns_name_read(message, length, &data, name) == 0 && data == at ? 1 : -1;
	}
	return 0;
}

long dns_reply_addresses(const uint8_t *message, size_t length, const char *name, unsigned type,
                         struct address *ret_addresses, size_t max)
{
	struct dns_name owner;
	struct record record;
	size_t begin = answers_begin(message, length), at = begin, size = type == DNS_TYPE_A ? 4 : 16;
	long found = 0;
	int aliased = 1;
	if (!begin || dns_name_from_text(name, &owner) < 0)
		return -1;
	for (unsigned i = 0; aliased > 0; i++)
		if (i == ALIASES_MAX || (aliased = follow_alias(message, length, begin, &owner)) < 0)
			return -1;
	for (unsigned count = dns_get16(message + 6); count; count--) {
		if (read_record(message, length, &at, &record) < 0)
			return -1;
		if (record.type != type || record.class != CLASS_IN || !same_name(&record.owner, &owner))
			continue;
		if (record.data_length != size)
			return -1;
		if ((size_t)found < max) {
			ret_addresses[found] = (struct address){ .length = (uint8_t)size };
			memcpy(ret_addresses[found].bytes, message + record.data, size);
		}
		found++;
	}
	return found;
}

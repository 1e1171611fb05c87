/* DNS messages as bytes (RFC 1035). Data in, data out; every byte comes from someone else. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "policy/address.h"

enum { DNS_TYPE_A = 1, DNS_TYPE_CNAME = 5, DNS_TYPE_AAAA = 28 };

static inline unsigned dns_get16(const uint8_t *bytes)
{
	return (unsigned)bytes[0] << 8 | bytes[1];
}

/* A name as it is sent, in lower case and without compression: each label after its length, and a 0 at the end. */
#define DNS_NAME_SIZE 255
struct dns_name {
	uint8_t bytes[DNS_NAME_SIZE];
	size_t length;
};

/* "www.example.com", without a trailing dot. -1 where a label is empty or too long, or all of it is. */
int dns_name_from_text(const char *text, struct dns_name *ret_name) must_check;

/* The name at `*at`, which then points behind it. A compressed name may point only backwards, so there are no loops.
 * -1 if it is malformed. */
int dns_name_read(const uint8_t *message, size_t length, size_t *at, struct dns_name *ret_name) must_check;

/* The addresses in the answer to a question for `name`, of DNS_TYPE_A or DNS_TYPE_AAAA; aliases are followed, and what
 * belongs to another name is left out. How many there are, of which the first `max` are filled in; -1 where the reply
 * is malformed. */
long dns_reply_addresses(const uint8_t *message, size_t length, const char *name, unsigned type,
                         struct address *ret_addresses, size_t max) must_check;

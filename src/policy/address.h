/* Where a connection may go. Every address belongs to the narrowest range of one table (addresses.def) that holds it;
 * what may be dialled is what the table calls global, nothing else.
 *
 * An IPv6 address that carries an IPv4 address (mapped, compatible, 6to4, Teredo, NAT64) is judged by that one, too.
 * NAT64 by its well-known prefix is how machines without IPv4 reach all of it, so that is allowed where the carried
 * address is; the other forms have no use between a sandbox and the world, and are refused whatever they carry. A NAT64
 * prefix of an operator's own choice cannot be told from any other address. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "cordon-internal.h"

struct address {
	uint8_t bytes[16];      /* in network order; what is beyond `length` is zero */
	uint8_t length;         /* 4 or 16 */
};

struct address_range {
	struct address first;
	uint8_t bits;           /* of the prefix */
};

enum address_use {
	ADDRESS_GLOBAL,         /* may be dialled */
	ADDRESS_REFUSED,
	ADDRESS_AS_CARRIED,     /* may be dialled where the IPv4 address it carries may */
};

struct address_row {
	struct address_range range;
	enum address_use use;
	uint8_t carried_at;     /* where an IPv4 address is carried; 0: none is */
	bool is_site;           /* refused; a network of this site or machine, where services with names are */
	bool inverted;          /* every bit of the carried one is the other way round */
	const char *name;       /* one word: "private", "metadata", … */
	const char *why;        /* what it is, for display */
	const char *source;     /* the document that says so */
};

extern const struct address_row address_rows[];
extern const size_t address_row_count;

#define ADDRESS_TEXT_SIZE 46

/* Exactly `length` bytes: an IPv4 address as four decimal numbers without leading zeros, or an IPv6 address without
 * brackets and without a zone. Nothing else: not 127.1, 0x7f000001, 2130706433 or 010.0.0.1. */
bool address_parse(const char *text, size_t length, struct address *ret_address) must_check;
/* The one canonical spelling. */
void address_text(const struct address *address, char ret_text[ADDRESS_TEXT_SIZE]);

/* "10.1.0.0/16", or an address alone: a range that is to be reachable although the table refuses it. It must lie
 * within one range that is refused, and bits beyond the prefix must be zero; otherwise `config_invalid`, with what is
 * wrong. */
int address_exemption_parse(const char *text, struct address_range *ret_range, struct cordon_error *err) must_check;

struct address_verdict {
	bool allowed;
	const struct address_row *row;          /* the narrowest that holds the address */
	const struct address_row *carried;      /* that of the IPv4 address inside, where it is refused too; or NULL */
};

/* An exemption lifts a row only where it is no wider: 169.254.0.0/16 opens link-local addresses and still not the
 * metadata service in their midst, which has a row of its own; 169.254.169.254 does. */
struct address_verdict address_judge(const struct address *address, const struct address_range *exemptions,
                                     size_t count);

/* Of one that was refused: may a name lead there that a person allowed to (network.private_hosts)? */
bool address_is_at_site(const struct address_verdict *verdict);

/* Why it was refused, for display: "private: …". "" if it is allowed. */
#define ADDRESS_WHY_SIZE 256
void address_why(const struct address_verdict *verdict, char ret_text[ADDRESS_WHY_SIZE]);

/* A name that is refused whatever it resolves to: why, or NULL. In lower case, without a trailing dot. */
const char *address_name_refused(const char *name);

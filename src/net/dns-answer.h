/* The other side of DNS: questions of programs in a sandbox, and the answers they get. Data in, data out; the questions
 * are the attacker's. One question at a time, as every stub resolver asks. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "net/dns.h"
#include "policy/address.h"

enum dns_rcode {
	DNS_NOERROR = 0, DNS_FORMERR = 1, DNS_SERVFAIL = 2, DNS_NXDOMAIN = 3, DNS_NOTIMP = 4, DNS_REFUSED = 5,
};

#define DNS_QUESTION_SIZE (DNS_NAME_SIZE + 4)
#define DNS_TEXT_SIZE 256
#define DNS_UDP_MIN 512                 /* what every program takes over UDP; more only if it says so */
#define DNS_UDP_MAX 1232                /* what is never cut on its way */
#define DNS_TCP_MAX 65535

struct dns_query {
	uint16_t id;
	bool wants_recursion, has_edns;
	uint16_t udp_size;                      /* how much it takes over UDP */
	char name[DNS_TEXT_SIZE];               /* lower case, without a trailing dot; what is no text is "" */
	unsigned type;
	uint8_t question[DNS_QUESTION_SIZE];    /* as it was sent, for the answer: some compare even the case */
	size_t question_length;
};

/* Strict: one question of class IN, no compression, at most one further record, which is EDNS, and nothing behind it.
 * DNS_NOERROR, or what to answer: with the id, and with the question where it was understood. -1: it is no query (too
 * short, or a reply), and gets no answer at all. */
int dns_query_read(const uint8_t *message, size_t length, struct dns_query *ret_query) must_check;

/* The answer: those of the addresses that are of the type that was asked for. Over UDP what does not fit is left out
 * and the answer marked as cut, so that the asker comes again over TCP. How many bytes were written; `buffer` has
 * DNS_TCP_MAX. */
size_t dns_answer_write(const struct dns_query *query, enum dns_rcode rcode, const struct address *addresses,
                        size_t count, uint32_t ttl, bool is_udp, uint8_t *buffer);

/* Over TCP two bytes with the length precede each message. How long the first message in `bytes` is, or -1 while it is
 * not whole; it begins behind these two. */
long dns_tcp_message(const uint8_t *bytes, size_t length) must_check;

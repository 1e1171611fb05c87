/* Questions and answers: see dns-answer.h. */
#include "net/dns-answer.h"

#include <string.h>

#define HEADER_SIZE 12
#define CLASS_IN 1
#define TYPE_OPT 41
#define FLAG_REPLY 0x8000
#define FLAG_AUTHORITATIVE 0x0400
#define FLAG_CUT 0x0200
#define FLAG_RECURSION_DESIRED 0x0100
#define FLAG_RECURSION_AVAILABLE 0x0080
#define OPCODE(flags) ((flags) >> 11 & 15)

static size_t put16(uint8_t *bytes, unsigned value)
{
	bytes[0] = (uint8_t)(value >> 8);
	bytes[1] = (uint8_t)value;
	return 2;
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

/* A label may hold any byte; one with a dot or a NUL in it would be another name as text. */
static void name_text(const struct dns_name *name, char ret_text[DNS_TEXT_SIZE])
{
	size_t used = 0;
	for (size_t at = 0; name->bytes[at]; at += 1u + name->bytes[at]) {
		const uint8_t *label = name->bytes + at + 1;
		size_t length = name->bytes[at];
		if (memchr(label, '.', length) || memchr(label, '\0', length)) {
			used = 0;
			break;
		}
		if (used)
			ret_text[used++] = '.';
		memcpy(ret_text + used, label, length);
		used += length;
	}
	ret_text[used] = '\0';
}

/* EDNS (RFC 6891): a record at the root, whose class is the size and whose data is options. Returns what is behind it,
 * or 0. */
static size_t read_edns(const uint8_t *message, size_t length, size_t at, struct dns_query *query)
{
	if (at + 11 > length || message[at] != 0 || dns_get16(message + at + 1) != TYPE_OPT || message[at + 6] != 0)
		return 0;
	size_t end = at + 11 + dns_get16(message + at + 9), size = dns_get16(message + at + 3);
	query->has_edns = true;
	query->udp_size = (uint16_t)(size < DNS_UDP_MIN ? DNS_UDP_MIN : size > DNS_UDP_MAX ? DNS_UDP_MAX : size);
	return end;
}

static int read_question(const uint8_t *message, size_t length, struct dns_query *query)
{
	struct dns_name name;
	size_t at = HEADER_SIZE, extra = dns_get16(message + 10);
	if (dns_get16(message + 4) != 1 || dns_get16(message + 6) || dns_get16(message + 8) || extra > 1 ||
	    dns_name_read(message, length, &at, &name) < 0 || at != HEADER_SIZE + name.length || at + 4 > length)
		return DNS_FORMERR;
	query->type = dns_get16(message + at);
	query->question_length = name.length + 4;
	memcpy(query->question, message + HEADER_SIZE, query->question_length);
	name_text(&name, query->name);
	unsigned class = dns_get16(message + at + 2);
	at += 4;
	if (extra)
		at = read_edns(message, length, at, query);
	if (at != length)
		return DNS_FORMERR;
	return class == CLASS_IN ? DNS_NOERROR : DNS_NOTIMP;
}

int dns_query_read(const uint8_t *message, size_t length, struct dns_query *ret_query)
{
	struct dns_query query = { .udp_size = DNS_UDP_MIN };
	if (length < HEADER_SIZE || dns_get16(message + 2) & FLAG_REPLY)
		return -1;
	unsigned flags = dns_get16(message + 2);
	query.id = (uint16_t)dns_get16(message);
	query.wants_recursion = flags & FLAG_RECURSION_DESIRED;
	int rcode = OPCODE(flags) ? DNS_NOTIMP :
	            flags & FLAG_CUT ? DNS_FORMERR : read_question(message, length, &query);
	*ret_query = query;
	return rcode;
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

static size_t put_edns(uint8_t *bytes)
{
	static const uint8_t record[] = { 0, 0, TYPE_OPT, DNS_UDP_MAX >> 8, DNS_UDP_MAX & 0xff, 0, 0, 0, 0, 0, 0 };
	memcpy(bytes, record, sizeof(record));
	return sizeof(record);
}

static size_t put_address(uint8_t *bytes, unsigned type, uint32_t ttl, const struct address *address)
{
	size_t at = put16(bytes, 0xc000 | HEADER_SIZE); /* the name of the question */
	at += put16(bytes + at, type);
	at += put16(bytes + at, CLASS_IN);
	at += put16(bytes + at, ttl >> 16);
	at += put16(bytes + at, ttl & 0xffff);
	at += put16(bytes + at, address->length);
	memcpy(bytes + at, address->bytes, address->length);
	return at + address->length;
}

size_t dns_answer_write(const struct dns_query *query, enum dns_rcode rcode, const struct address *addresses,
                        size_t count, uint32_t ttl, bool is_udp, uint8_t *buffer)
{
	size_t limit = is_udp ? query->udp_size : DNS_TCP_MAX, edns = query->has_edns ? 11 : 0;
	size_t length = HEADER_SIZE + query->question_length;
	unsigned answers = 0, flags = FLAG_REPLY | FLAG_AUTHORITATIVE | FLAG_RECURSION_AVAILABLE | (unsigned)rcode |
	                              (query->wants_recursion ? FLAG_RECURSION_DESIRED : 0);
	uint8_t wanted = query->type == DNS_TYPE_A ? 4 : query->type == DNS_TYPE_AAAA ? 16 : 0;
	memcpy(buffer + HEADER_SIZE, query->question, query->question_length);
	for (size_t i = 0; wanted && rcode == DNS_NOERROR && i < count; i++) {
		if (addresses[i].length != wanted)
			continue;
		if (length + 12 + wanted + edns > limit) {
			flags |= FLAG_CUT;
			break;
		}
		length += put_address(buffer + length, query->type, ttl, &addresses[i]);
		answers++;
	}
	if (edns)
		length += put_edns(buffer + length);
	put16(buffer, query->id);
	put16(buffer + 2, flags);
	put16(buffer + 4, query->question_length ? 1 : 0);
	put16(buffer + 6, answers);
	put16(buffer + 8, 0);
	put16(buffer + 10, edns ? 1 : 0);
	return length;
}

long dns_tcp_message(const uint8_t *bytes, size_t length)
{
	return length < 2 || length - 2 < dns_get16(bytes) ? -1 : (long)dns_get16(bytes);
}

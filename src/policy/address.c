/* Addresses and their table: see address.h. Data in, data out. */
#include "policy/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

#define TWO(group) (uint8_t)((group) >> 8), (uint8_t)((group) & 0xff)
#define GLOBAL .use = ADDRESS_GLOBAL
#define REFUSED .use = ADDRESS_REFUSED
#define SITE .use = ADDRESS_REFUSED, .is_site = true
#define REFUSED_INVERTED .use = ADDRESS_REFUSED, .inverted = true
#define AS_CARRIED .use = ADDRESS_AS_CARRIED

const struct address_row address_rows[] = {
#define V4(a, b, c, d, prefix, use_, name_, why_, source_) \
	{ .range = { { { a, b, c, d }, 4 }, prefix }, use_, .name = name_, .why = why_, .source = source_ },
#define V6(a, b, c, d, e, f, g, h, prefix, at, use_, name_, why_, source_) \
	{ .range = { { { TWO(a), TWO(b), TWO(c), TWO(d), TWO(e), TWO(f), TWO(g), TWO(h) }, 16 }, prefix }, \
	  .carried_at = (at), use_, .name = name_, .why = why_, .source = source_ },
#include "policy/addresses.def"
};
const size_t address_row_count = ARRAY_SIZE(address_rows);

static const struct {
	const char *name, *why;
} names[] = {
#define NAME(name, why) { name, why },
#include "policy/addresses.def"
};

/* ---- text ------------------------------------------------------------------------------------------------------- */

bool address_parse(const char *text, size_t length, struct address *ret_address)
{
	struct address address = { 0 };
	char copy[ADDRESS_TEXT_SIZE];
	if (!length || length >= sizeof(copy) || memchr(text, '\0', length))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	/* Other than inet_aton() and getaddrinfo(), inet_pton() knows none of the old spellings. */
	bool is_v6 = strchr(copy, ':');
	if (inet_pton(is_v6 ? AF_INET6 : AF_INET, copy, address.bytes) != 1)
		return false;
	address.length = is_v6 ? 16 : 4;
	*ret_address = address;
	return true;
}

void address_text(const struct address *address, char ret_text[ADDRESS_TEXT_SIZE])
{
	if (!inet_ntop(address->length == 4 ? AF_INET : AF_INET6, address->bytes, ret_text, ADDRESS_TEXT_SIZE))
		ret_text[0] = '\0';
}

/* ---- ranges ----------------------------------------------------------------------------------------------------- */

static bool range_holds(const struct address_range *range, const struct address *address)
{
	size_t whole = range->bits / 8, rest = range->bits % 8;
	return range->first.length == address->length && !memcmp(range->first.bytes, address->bytes, whole) &&
	       (!rest || (range->first.bytes[whole] ^ address->bytes[whole]) >> (8 - rest) == 0);
}

/* The narrowest row that holds all of the range; there is one for each family that holds everything. */
static const struct address_row *row_around(const struct address_range *range)
{
	const struct address_row *found = NULL;
	for (size_t i = 0; i < address_row_count; i++) {
		const struct address_row *row = &address_rows[i];
		if (row->range.bits <= range->bits && range_holds(&row->range, &range->first) &&
		    (!found || row->range.bits > found->range.bits))
			found = row;
	}
	return found;
}

static int fail_exemption(struct cordon_error *err, const char *text, const char *reason)
{
	return fail(err, CORDON_E_CONFIG_INVALID, 0, text, "no range of addresses that could be exempted: %s", reason);
}

int address_exemption_parse(const char *text, struct address_range *ret_range, struct cordon_error *err)
{
	struct address_range range = { 0 };
	const char *slash = strchrnul(text, '/');
	uint64_t bits;
	if (!address_parse(text, (size_t)(slash - text), &range.first))
		return fail_exemption(err, text, "it begins with no address");
	bits = range.first.length * 8u;
	if (*slash && ((slash[1] == '0' && slash[2]) || !text_parse_number(slash + 1, bits, &bits)))
		return fail_exemption(err, text, "after the slash belongs the number of bits that are fixed");
	range.bits = (uint8_t)bits;
	for (size_t bit = bits; bit < range.first.length * 8u; bit++)
		if (range.first.bytes[bit / 8] & (0x80 >> bit % 8))
			return fail_exemption(err, text, "bits are set beyond the prefix");
	const struct address_row *row = row_around(&range);
	if (row->carried_at)
		return fail_exemption(err, text, "name the IPv4 address itself");
	if (row->use == ADDRESS_GLOBAL)
		return fail_exemption(err, text, bits == range.first.length * 8u ? "it is refused by nothing" :
		                      "it is wider than any range that is refused, or not refused at all");
	*ret_range = range;
	return 0;
}

/* ---- judging ---------------------------------------------------------------------------------------------------- */

static struct address carried_address(const struct address *address, size_t at, bool inverted)
{
	struct address carried = { .length = 4 };
	for (size_t i = 0; i < 4; i++)
		carried.bytes[i] = (uint8_t)(address->bytes[at + i] ^ (inverted ? 0xff : 0));
	return carried;
}

/* Whatever the prefix, this form of the last 64 bits asks a router of the site to unpack towards an IPv4 address
 * (ISATAP, RFC 5214). */
static bool is_isatap(const struct address *address)
{
	static const uint8_t mark[] = { 0x00, 0x5e, 0xfe };
	return address->length == 16 && (address->bytes[8] & 0xfd) == 0 &&
	       !memcmp(address->bytes + 9, mark, sizeof(mark));
}

static const struct address_row *row_of(const struct address *address)
{
	const struct address_range alone = { *address, (uint8_t)(address->length * 8) };
	return row_around(&alone);
}

struct address_verdict address_judge(const struct address *address, const struct address_range *exemptions,
                                     size_t count)
{
	struct address_verdict verdict = { .row = row_of(address) };
	size_t at = verdict.row->carried_at ? verdict.row->carried_at : is_isatap(address) ? 12 : 0;
	if (at) {
		struct address carried = carried_address(address, at, verdict.row->inverted);
		const struct address_row *row = row_of(&carried);
		verdict.carried = row->use == ADDRESS_GLOBAL ? NULL : row;
	}
	verdict.allowed = verdict.row->use != ADDRESS_REFUSED && !verdict.carried;
	for (size_t i = 0; i < count && !verdict.allowed; i++)
		verdict.allowed = exemptions[i].bits >= verdict.row->range.bits && range_holds(&exemptions[i], address);
	return verdict;
}

bool address_is_at_site(const struct address_verdict *verdict)
{
	return verdict->row->is_site && !verdict->carried;
}

void address_why(const struct address_verdict *verdict, char ret_text[ADDRESS_WHY_SIZE])
{
	const struct address_row *row = verdict->row, *carried = verdict->carried;
	if (verdict->allowed)
		ret_text[0] = '\0';
	else if (carried)
		snprintf(ret_text, ADDRESS_WHY_SIZE, "%s: %s (%s), inside an IPv6 address (%s)", carried->name,
		         carried->why, carried->source, row->name);
	else
		snprintf(ret_text, ADDRESS_WHY_SIZE, "%s: %s (%s)", row->name, row->why, row->source);
}

const char *address_name_refused(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i].name, name))
			return names[i].why;
	return NULL;
}

/* The table of addresses: every row at its edges, single addresses by name, exemptions. With the argument `judge` it
 * instead tells for each address on standard input whether it is allowed, for tests/unit/address-peer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/address.h"

static struct address read_address(const char *text)
{
	struct address address;
	if (!address_parse(text, strlen(text), &address))
		fail_msg("%s is no address", text);
	return address;
}

/* ---- the rows ---------------------------------------------------------------------------------------------------- */

static struct address last_of(const struct address_range *range)
{
	struct address last = range->first;
	for (size_t bit = range->bits; bit < last.length * 8u; bit++)
		last.bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	return last;
}

/* False where there is no neighbour. */
static bool step(struct address *address, int by)
{
	for (int i = address->length - 1; i >= 0; i--) {
		address->bytes[i] = (uint8_t)(address->bytes[i] + by);
		if (address->bytes[i] != (by > 0 ? 0 : 0xff))
			return true;
	}
	return false;
}

static bool same_range(const struct address_range *a, const struct address_range *b)
{
	return a->bits == b->bits && a->first.length == b->first.length && !memcmp(a->first.bytes, b->first.bytes, 16);
}

/* By the definition: the first bits, one by one. */
static bool plainly_holds(const struct address_range *range, const struct address *address)
{
	if (range->first.length != address->length)
		return false;
	for (size_t bit = 0; bit < range->bits; bit++)
		if ((range->first.bytes[bit / 8] ^ address->bytes[bit / 8]) & (0x80 >> bit % 8))
			return false;
	return true;
}

static const struct address_row *plainly_row(const struct address *address)
{
	for (int bits = 128; bits >= 0; bits--)
		for (size_t i = 0; i < address_row_count; i++)
			if (address_rows[i].range.bits == bits && plainly_holds(&address_rows[i].range, address))
				return &address_rows[i];
	return NULL;
}

static void check_row(const struct address *address)
{
	struct address_verdict verdict = address_judge(address, NULL, 0);
	char text[ADDRESS_TEXT_SIZE];
	address_text(address, text);
	if (verdict.row != plainly_row(address) || (verdict.row->use == ADDRESS_REFUSED && verdict.allowed))
		fail_msg("%s: %s", text, verdict.row->name);
}

static void rows_are_sound(void **state)
{
	(void)state;
	bool carries = false;
	for (size_t i = 0; i < address_row_count; i++) {
		const struct address_row *row = &address_rows[i];
		struct address last = last_of(&row->range);
		assert_true(*row->name && *row->why && *row->source);
		assert_true(row->range.first.length == 4 ? row->range.bits <= 32 && !row->carried_at
		                                         : row->range.bits <= 128);
		/* Nothing is set beyond the prefix: the first address is the range's own. */
		for (size_t bit = row->range.bits; bit < 128; bit++)
			assert_false(row->range.first.bytes[bit / 8] & (0x80 >> bit % 8));
		assert_true(plainly_holds(&row->range, &last));
		for (size_t other = 0; other < i; other++)
			assert_false(same_range(&row->range, &address_rows[other].range));
		assert_true(row->use != ADDRESS_AS_CARRIED || row->carried_at);
		/* What is carried lies beyond the prefix. */
		assert_true(!row->carried_at || (row->carried_at * 8u >= row->range.bits && row->carried_at <= 12));
		carries |= row->carried_at;
	}
	assert_true(carries && address_row_count > 40);
}

static void every_row_at_its_edges(void **state)
{
	(void)state;
	for (size_t i = 0; i < address_row_count; i++) {
		const struct address_row *row = &address_rows[i];
		struct address first = row->range.first, last = last_of(&row->range), before = first, after = last;
		check_row(&first);
		check_row(&last);
		assert_true(address_judge(&last, NULL, 0).row->range.bits >= row->range.bits);
		if (step(&before, -1)) {
			check_row(&before);
			assert_ptr_not_equal(address_judge(&before, NULL, 0).row, row);
		}
		if (step(&after, 1)) {
			check_row(&after);
			assert_ptr_not_equal(address_judge(&after, NULL, 0).row, row);
		}
		/* And in its midst. */
		srandom(7);
		for (int round = 0; round < 200; round++) {
			struct address inside = first;
			for (size_t bit = row->range.bits; bit < first.length * 8u; bit++)
				inside.bytes[bit / 8] |= random() % 2 ? (uint8_t)(0x80 >> bit % 8) : 0;
			check_row(&inside);
		}
	}
}

static const struct {
	const char *text, *name;        /* of the row; NULL: allowed */
	const char *carried;            /* of the row of the carried address, or NULL */
} judged[] = {
	{ "1.1.1.1", NULL, NULL },
	{ "8.8.8.8", NULL, NULL },
	{ "93.184.216.34", NULL, NULL },
	{ "223.255.255.255", NULL, NULL },
	{ "9.255.255.255", NULL, NULL },
	{ "11.0.0.0", NULL, NULL },
	{ "172.15.255.255", NULL, NULL },
	{ "172.32.0.0", NULL, NULL },
	{ "100.63.255.255", NULL, NULL },
	{ "100.128.0.0", NULL, NULL },
	{ "198.17.255.255", NULL, NULL },
	{ "198.20.0.0", NULL, NULL },
	{ "169.253.255.255", NULL, NULL },
	{ "0.0.0.0", "unspecified", NULL },
	{ "0.1.2.3", "unspecified", NULL },
	{ "10.0.0.1", "private", NULL },
	{ "172.16.0.1", "private", NULL },
	{ "172.31.255.255", "private", NULL },
	{ "192.168.1.1", "private", NULL },
	{ "100.64.0.1", "shared", NULL },
	{ "127.0.0.1", "loopback", NULL },
	{ "127.255.255.254", "loopback", NULL },
	{ "169.254.1.1", "link-local", NULL },
	{ "169.254.169.254", "metadata", NULL },
	{ "100.100.100.200", "metadata", NULL },
	{ "168.63.129.16", "metadata", NULL },
	{ "192.0.0.192", "metadata", NULL },
	{ "192.0.0.8", "protocol", NULL },
	{ "192.0.2.1", "documentation", NULL },
	{ "198.51.100.1", "documentation", NULL },
	{ "203.0.113.9", "documentation", NULL },
	{ "192.88.99.1", "6to4-relay", NULL },
	{ "198.18.0.1", "benchmarking", NULL },
	{ "198.19.255.255", "benchmarking", NULL },
	{ "224.0.0.1", "multicast", NULL },
	{ "239.255.255.255", "multicast", NULL },
	{ "240.0.0.1", "reserved", NULL },
	{ "255.255.255.255", "broadcast", NULL },

	{ "2606:4700:4700::1111", NULL, NULL },
	{ "2a00:1450:4001::1", NULL, NULL },
	{ "2001:4860:4860::8888", NULL, NULL },
	{ "2001:200::", NULL, NULL },
	{ "2003::1", NULL, NULL },
	{ "3ffe::1", NULL, NULL },
	{ "::", "unspecified", NULL },
	{ "::1", "loopback", NULL },
	{ "::2", "compatible", "unspecified" },
	{ "fc00::1", "private", NULL },
	{ "fdff::1", "private", NULL },
	{ "fd00:ec2::254", "metadata", NULL },
	{ "fd00:ec2::253", "private", NULL },
	{ "fd20:ce::254", "metadata", NULL },
	{ "fe80::1", "link-local", NULL },
	{ "febf::1", "link-local", NULL },
	{ "fec0::1", "site-local", NULL },
	{ "ff02::1", "multicast", NULL },
	{ "2001:db8::1", "documentation", NULL },
	{ "3fff:fff::1", "documentation", NULL },
	{ "3fff:1000::1", NULL, NULL },
	{ "100::1", "discard", NULL },
	{ "100:0:0:1::1", "dummy", NULL },
	{ "5f00::1", "segment", NULL },
	{ "4000::1", "reserved", NULL },
	{ "1fff::1", "reserved", NULL },
	{ "fe00::1", "reserved", NULL },
	{ "2001:2::1", "benchmarking", NULL },
	{ "2001:10::1", "protocol", NULL },
	{ "2001:1::1", "protocol", NULL },

	{ "::ffff:10.0.0.1", "mapped", "private" },
	{ "::ffff:127.0.0.1", "mapped", "loopback" },
	{ "::ffff:169.254.169.254", "mapped", "metadata" },
	{ "::ffff:8.8.8.8", "mapped", NULL },
	{ "::127.0.0.1", "compatible", "loopback" },
	{ "::8.8.8.8", "compatible", NULL },
	{ "::ffff:0:127.0.0.1", "translated", "loopback" },
	{ "64:ff9b::8.8.8.8", NULL, NULL },
	{ "64:ff9b::127.0.0.1", "nat64", "loopback" },
	{ "64:ff9b::a9fe:a9fe", "nat64", "metadata" },
	{ "64:ff9b::10.1.2.3", "nat64", "private" },
	{ "64:ff9b:1::8.8.8.8", "nat64-local", NULL },
	{ "2002:7f00:1::", "6to4", "loopback" },
	{ "2002:0a00:0001::1", "6to4", "private" },
	{ "2002:808:808::1", "6to4", NULL },
	/* Teredo carries the client's address with every bit turned: 80ff:fffe is 127.0.0.1 */
	{ "2001:0:1:2:3:4:80ff:fffe", "teredo", "loopback" },
	{ "2001:0:1:2:3:4:f7f7:f7f7", "teredo", NULL },
	{ "2606:4700::5efe:10.0.0.1", "global", "private" },
	{ "2606:4700::200:5efe:127.0.0.1", "global", "loopback" },
	{ "2606:4700::5efe:8.8.8.8", NULL, NULL },
	{ "2606:4700::5eff:10.0.0.1", NULL, NULL },
	{ "fe80::5efe:10.0.0.1", "link-local", "private" },
};

static void single_addresses(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(judged); i++) {
		struct address address = read_address(judged[i].text);
		struct address_verdict verdict = address_judge(&address, NULL, 0);
		char why[ADDRESS_WHY_SIZE];
		address_why(&verdict, why);
		if (verdict.allowed != !judged[i].name ||
		    (judged[i].name && strcmp(verdict.row->name, judged[i].name)) ||
		    !verdict.carried != !judged[i].carried ||
		    (judged[i].carried && strcmp(verdict.carried->name, judged[i].carried)))
			fail_msg("%s: %s", judged[i].text, why);
		const char *first = judged[i].carried ? judged[i].carried : judged[i].name;
		assert_int_equal(!*why, verdict.allowed);
		assert_true(verdict.allowed || !strncmp(why, first, strlen(first)));
	}
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void spellings(void **state)
{
	(void)state;
	static const char *const wrong[] = { "",
		                             "1",
		                             "1.2.3",
		                             "127.1",
		                             "1.2.3.4.5",
		                             "1.2.3.4.",
		                             "1.2.3.04",
		                             "01.2.3.4",
		                             "256.1.1.1",
		                             "0x7f.0.0.1",
		                             "2130706433",
		                             " 1.2.3.4",
		                             "1.2.3.4 ",
		                             "1.2.3.4/32",
		                             "[::1]",
		                             "::1%lo",
		                             "::g",
		                             ":::",
		                             "1::2::3",
		                             "::1/128",
		                             "1:2:3:4:5:6:7",
		                             "::ffff:1.2.3",
		                             "::ffff:1.2.3.04",
		                             "localhost",
		                             "::00001" };
	struct address address;
	char text[ADDRESS_TEXT_SIZE];
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (address_parse(wrong[i], strlen(wrong[i]), &address))
			fail_msg("%s was taken for an address", wrong[i]);
	assert_false(address_parse("1.2.3.4\0", 8, &address));
	assert_true(address_parse("1.2.3.45", 7, &address));
	address_text(&address, text);
	assert_string_equal(text, "1.2.3.4");
	address = read_address("2001:0DB8:0000::0001");
	address_text(&address, text);
	assert_string_equal(text, "2001:db8::1");
	address = read_address("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255");
	address_text(&address, text);
	assert_string_equal(text, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
}

/* ---- exemptions -------------------------------------------------------------------------------------------------- */

static bool allowed_with(const char *text, const char *const *exemptions)
{
	struct address_range ranges[4];
	size_t count = 0;
	struct cordon_error err = { 0 };
	for (; exemptions[count]; count++)
		if (address_exemption_parse(exemptions[count], &ranges[count], &err) < 0)
			fail_msg("%s: %s", exemptions[count], err.reason);
	struct address address = read_address(text);
	return address_judge(&address, ranges, count).allowed;
}

static void exemptions_lift_what_they_name(void **state)
{
	(void)state;
	const char *const office[] = { "192.168.7.0/24", "10.1.0.0/16", "fd12:3456::/32", NULL };
	assert_true(allowed_with("10.1.0.0", office));
	assert_true(allowed_with("10.1.255.255", office));
	assert_false(allowed_with("10.0.255.255", office));
	assert_false(allowed_with("10.2.0.0", office));
	assert_true(allowed_with("192.168.7.1", office));
	assert_false(allowed_with("192.168.8.1", office));
	assert_true(allowed_with("fd12:3456:1::1", office));
	assert_false(allowed_with("fd12:3457::1", office));
	assert_true(allowed_with("8.8.8.8", office));
	/* An address in disguise is not the one that was named. */
	assert_false(allowed_with("::ffff:10.1.0.1", office));
	assert_false(allowed_with("64:ff9b::10.1.0.1", office));
	assert_false(allowed_with("2002:a01:1::", office));

	const char *const local[] = { "127.0.0.1", "::1", NULL };
	assert_true(allowed_with("127.0.0.1", local));
	assert_false(allowed_with("127.0.0.2", local));
	assert_true(allowed_with("::1", local));
	const char *const all_loopback[] = { "127.0.0.0/8", NULL };
	assert_true(allowed_with("127.3.2.1", all_loopback));
	assert_false(allowed_with("10.0.0.1", all_loopback));
}

/* A name may be allowed to be on a network of this site, and never at a metadata service in its midst. */
static void what_is_of_this_site(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool is_at_site;
	} rows[] = {
		{ "10.1.2.3", true },          { "172.31.0.1", true },
		{ "192.168.1.1", true },       { "100.64.0.1", true },
		{ "127.0.0.1", true },         { "127.9.9.9", true },
		{ "169.254.1.1", true },       { "::1", true },
		{ "fd12::1", true },           { "fe80::1", true },
		{ "fec0::1", true },           { "169.254.169.254", false },
		{ "100.100.100.200", false },  { "fd00:ec2::254", false },
		{ "0.0.0.0", false },          { "::", false },
		{ "224.0.0.1", false },        { "255.255.255.255", false },
		{ "198.18.0.1", false },       { "192.0.2.1", false },
		{ "::ffff:10.0.0.1", false },  { "64:ff9b::10.0.0.1", false },
		{ "fe80::5efe:a00:1", false }, { "8.8.8.8", false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct address address;
		assert_true(address_parse(rows[i].text, strlen(rows[i].text), &address));
		struct address_verdict verdict = address_judge(&address, NULL, 0);
		if (address_is_at_site(&verdict) != rows[i].is_at_site)
			fail_msg("%s", rows[i].text);
	}
	for (size_t i = 0; i < address_row_count; i++)
		assert_true(!address_rows[i].is_site ||
		            (address_rows[i].use == ADDRESS_REFUSED && strcmp(address_rows[i].name, "metadata")));
}

static void metadata_is_lifted_by_its_own_address_only(void **state)
{
	(void)state;
	const char *const wide[] = { "169.254.0.0/16", "fc00::/7", "100.64.0.0/10", NULL };
	assert_true(allowed_with("169.254.1.1", wide));
	assert_true(allowed_with("fd00::1", wide));
	assert_true(allowed_with("100.100.100.201", wide));
	assert_false(allowed_with("169.254.169.254", wide));
	assert_false(allowed_with("fd00:ec2::254", wide));
	assert_false(allowed_with("100.100.100.200", wide));
	const char *const exact[] = { "169.254.169.254", NULL };
	assert_true(allowed_with("169.254.169.254", exact));
	assert_false(allowed_with("169.254.169.253", exact));
}

static void what_is_no_exemption(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"", "/", "/8", "10", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/08",
		"10.0.0.0/8 ", " 10.0.0.0/8", "10.0.0.0/8/8", "10.0.0.0/255.0.0.0", "10.1/16", "10.0.0.1/8",
		"fd00::1/8", "fd00::/129", "[fd00::]/8", "fe80::1%lo", "localhost", "*", "all",
		/* nothing there that is refused, or more than that */
		"8.8.8.8", "8.8.8.0/24", "0.0.0.0/0", "10.0.0.0/7", "2000::/3", "2606::/16", "192.168.0.0/15",
		/* in disguise */
		"::ffff:10.0.0.0/104", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "2002::/16", "::10.0.0.1"
	};
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct address_range range = { .bits = 77 };
		struct cordon_error err = { 0 };
		if (address_exemption_parse(wrong[i], &range, &err) == 0)
			fail_msg("%s was taken for an exemption", wrong[i]);
		assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
		assert_string_equal(err.subject, wrong[i]);
		assert_true(*err.reason && range.bits == 77);
	}
}

static void names_of_metadata_services(void **state)
{
	(void)state;
	assert_non_null(address_name_refused("metadata.google.internal"));
	assert_non_null(address_name_refused("metadata.aws.internal"));
	assert_null(address_name_refused("metadata.google.com"));
	assert_null(address_name_refused("x.metadata.google.internal"));
	assert_null(address_name_refused(""));
}

static int judge_lines(void)
{
	char line[64];
	struct address address;
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!address_parse(line, strlen(line), &address))
			return 1;
		struct address_verdict verdict = address_judge(&address, NULL, 0);
		printf("%s %s\n", verdict.allowed ? "allowed" : "refused", verdict.row->name);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "judge"))
		return judge_lines();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_sound),
		cmocka_unit_test(every_row_at_its_edges),
		cmocka_unit_test(single_addresses),
		cmocka_unit_test(spellings),
		cmocka_unit_test(exemptions_lift_what_they_name),
		cmocka_unit_test(metadata_is_lifted_by_its_own_address_only),
		cmocka_unit_test(what_is_of_this_site),
		cmocka_unit_test(what_is_no_exemption),
		cmocka_unit_test(names_of_metadata_services),
	};
	return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}

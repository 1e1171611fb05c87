/* What is a host and what is not, and that hosts in their one form are compared as the definition says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "arena-ground.h"
#include "policy/cover.h"
#include "policy/host.h"

#define L63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define N251 L63 "." L63 "." L63 "." "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static const struct {
	const char *text, *canonical;   /* NULL: not a host */
	enum host_form form;
} hosts[] = {
	{ "example.com:443", "example.com:443", HOST_NAME },
	{ "EXAMPLE.Com.:443", "example.com:443", HOST_NAME },
	{ "localhost:1", "localhost:1", HOST_NAME },
	{ "a:65535", "a:65535", HOST_NAME },
	{ "my_service.internal:80", "my_service.internal:80", HOST_NAME },
	{ "xn--bcher-kva.example:80", "xn--bcher-kva.example:80", HOST_NAME },
	{ "127.0.0.1.nip.io:80", "127.0.0.1.nip.io:80", HOST_NAME },
	{ "1.2.3.com:80", "1.2.3.com:80", HOST_NAME },
	{ L63 ".com:80", L63 ".com:80", HOST_NAME },
	{ N251 ":80", N251 ":80", HOST_NAME },
	{ "c." N251 ".:80", "c." N251 ":80", HOST_NAME },
	{ "*.example.com:443", "*.example.com:443", HOST_WILDCARD },
	{ "*.COM.:443", "*.com:443", HOST_WILDCARD },
	{ "127.0.0.1:80", "127.0.0.1:80", HOST_ADDRESS },
	{ "127.0.0.1.:80", "127.0.0.1:80", HOST_ADDRESS },
	{ "255.255.255.255:80", "255.255.255.255:80", HOST_ADDRESS },
	{ "[::1]:80", "[::1]:80", HOST_ADDRESS },
	{ "[2001:DB8:0:0:0:0:0:1]:80", "[2001:db8::1]:80", HOST_ADDRESS },
	{ "[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]:80", HOST_ADDRESS },
	{ "[::FFFF:7f00:1]:80", "[::ffff:127.0.0.1]:80", HOST_ADDRESS },
	{ "[0000:0000:0000:0000:0000:0000:0000:0000]:80", "[::]:80", HOST_ADDRESS },
	/* ports */
	{ "", NULL, 0 },
	{ ":", NULL, 0 },
	{ "a.com", NULL, 0 },
	{ "a.com:", NULL, 0 },
	{ "a.com:0", NULL, 0 },
	{ "a.com:65536", NULL, 0 },
	{ "a.com:99999999999999999999", NULL, 0 },
	{ "a.com:080", NULL, 0 },
	{ "a.com:+80", NULL, 0 },
	{ "a.com:-1", NULL, 0 },
	{ "a.com: 80", NULL, 0 },
	{ "a.com:80 ", NULL, 0 },
	{ "a.com:http", NULL, 0 },
	{ "a.com:0x50", NULL, 0 },
	{ "[::1]", NULL, 0 },
	{ "[::1]80", NULL, 0 },
	/* names */
	{ ":80", NULL, 0 },
	{ ".:80", NULL, 0 },
	{ "..:80", NULL, 0 },
	{ ".a.com:80", NULL, 0 },
	{ "a..com:80", NULL, 0 },
	{ "a.com..:80", NULL, 0 },
	{ "-a.com:80", NULL, 0 },
	{ "a-.com:80", NULL, 0 },
	{ "a.-b.com:80", NULL, 0 },
	{ "a.com-:80", NULL, 0 },
	{ "-:80", NULL, 0 },
	{ "a b.com:80", NULL, 0 },
	{ "a.com\t:80", NULL, 0 },
	{ "a\r\n.com:80", NULL, 0 },
	{ "user@a.com:80", NULL, 0 },
	{ "user:word@a.com:80", NULL, 0 },
	{ "a%2ecom:80", NULL, 0 },
	{ "a.com/:80", NULL, 0 },
	{ "a.com\\:80", NULL, 0 },
	{ "http://a.com:80", NULL, 0 },
	{ "b\xc3\xbc"
	  "cher.de:80",
	  NULL, 0 },
	{ "a\xe3\x80\x82"
	  "com:80",
	  NULL, 0 },
	{ "a\xff.com:80", NULL, 0 },
	{ "a,b:80", NULL, 0 },
	{ "a;b:80", NULL, 0 },
	{ "$a:80", NULL, 0 },
	{ "a?b:80", NULL, 0 },
	{ "a#b:80", NULL, 0 },
	{ L63 "a.com:80", NULL, 0 },
	{ "ccc." N251 ":80", NULL, 0 },
	{ "ccccc." N251 ":80", NULL, 0 },
	/* wildcards */
	{ "*:443", NULL, 0 },
	{ "*.:443", NULL, 0 },
	{ "*..com:443", NULL, 0 },
	{ "a.*.com:443", NULL, 0 },
	{ "*a.com:443", NULL, 0 },
	{ "**.com:443", NULL, 0 },
	{ "*.*.com:443", NULL, 0 },
	{ "*.3.4:443", NULL, 0 },
	{ "*.[::1]:443", NULL, 0 },
	{ "*.0x1:443", NULL, 0 },
	/* what some resolver takes for an address */
	{ "127.1:80", NULL, 0 },
	{ "2130706433:80", NULL, 0 },
	{ "0x7f000001:80", NULL, 0 },
	{ "0x7f.1:80", NULL, 0 },
	{ "0X7F.0.0.1:80", NULL, 0 },
	{ "017700000001:80", NULL, 0 },
	{ "010.0.0.1:80", NULL, 0 },
	{ "127.0.0.01:80", NULL, 0 },
	{ "127.0.1:80", NULL, 0 },
	{ "0:80", NULL, 0 },
	{ "1.2.3.4.5:80", NULL, 0 },
	{ "1.2.3.256:80", NULL, 0 },
	{ "1.2.3:80", NULL, 0 },
	{ "1.2.3.4..:80", NULL, 0 },
	{ "1.2.3.4a:80", NULL, 0 },
	{ "a.com.1:80", NULL, 0 },
	{ "256.256.256.256:80", NULL, 0 },
	{ "1..2.3:80", NULL, 0 },
	{ "0xffffffffff:80", NULL, 0 },
	{ "127.0.0.0x1:80", NULL, 0 },
	{ "127.0.0.1%lo:80", NULL, 0 },
	/* brackets */
	{ "::1:80", NULL, 0 },
	{ "[]:80", NULL, 0 },
	{ "[:80", NULL, 0 },
	{ "]:80", NULL, 0 },
	{ "[::1:80", NULL, 0 },
	{ "[::1].:80", NULL, 0 },
	{ "[::1%lo]:80", NULL, 0 },
	{ "[::1%25lo]:80", NULL, 0 },
	{ "[127.0.0.1]:80", NULL, 0 },
	{ "[a.com]:80", NULL, 0 },
	{ "[::g]:80", NULL, 0 },
	{ "[1::2::3]:80", NULL, 0 },
	{ "[::12345]:80", NULL, 0 },
	{ "[1:2:3:4:5:6:7:8:9]:80", NULL, 0 },
	{ "[::ffff:127.1]:80", NULL, 0 },
	{ "[::ffff:0177.0.0.1]:80", NULL, 0 },
	{ "[v1.a]:80", NULL, 0 },
	{ "[::1]]:80", NULL, 0 },
	{ "[[::1]]:80", NULL, 0 },
	{ "x[::1]:80", NULL, 0 },
	{ "[ ::1]:80", NULL, 0 },
	{ "[::1/128]:80", NULL, 0 },
};

static void what_is_a_host(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		struct host host = { .port = 7 }, alone;
		char text[HOST_TEXT_SIZE];
		const char *why = host_parse_rule(hosts[i].text, strlen(hosts[i].text), &host);
		if (!hosts[i].canonical) {
			if (!why || !*why || host.port != 7)
				fail_msg("%s was taken for a host", hosts[i].text);
			continue;
		}
		if (why)
			fail_msg("%s: %s", hosts[i].text, why);
		host_text(&host, text);
		assert_string_equal(text, hosts[i].canonical);
		assert_int_equal(host.form, hosts[i].form);
		/* Only a list may have a star, and without its port it is the same host. */
		why = host_parse_port(hosts[i].text, strlen(hosts[i].text), &host);
		assert_int_equal(!why, hosts[i].form != HOST_WILDCARD);
		why = host_parse(hosts[i].text, (size_t)(strrchr(hosts[i].text, ':') - hosts[i].text), &alone);
		assert_int_equal(!why, hosts[i].form != HOST_WILDCARD);
		if (!why) {
			assert_string_equal(alone.name, host.name);
			assert_int_equal(alone.port, 0);
		}
	}
}

static void a_nul_is_no_end(void **state)
{
	(void)state;
	struct host host;
	assert_non_null(host_parse("a.com\0.evil.org", 15, &host));
	assert_non_null(host_parse_port("a.com\0.evil.org:80", 18, &host));
	assert_non_null(host_parse_port("a.com:80\0", 9, &host));
	assert_non_null(host_parse("127.0.0.1\0", 10, &host));
	assert_non_null(host_parse("[::1\0]", 6, &host));
	assert_non_null(host_parse("\0", 1, &host));
	assert_non_null(host_parse("", 0, &host));
	/* Nothing beyond the length is looked at. */
	assert_null(host_parse("a.com:80", 5, &host));
	assert_null(host_parse("1.2.3.4:80", 7, &host));
}

static void what_is_wrong_is_said(void **state)
{
	(void)state;
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "me@a.com:80", "user" },  { "a%41.com:80", "percent" }, { "b\xc3\xbc.de:80", "xn--" },
		{ "127.1:80", "number" },   { "a.com", "port" },          { "[::1%eth0]:80", "zone" },
		{ "a\\b:80", "backslash" }, { "::1:80", "brackets" },     { "a..b:80", "empty label" },
		{ "a b:80", "space" },      { "*:80", "star" },           { "a\x01:80", "control" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct host host;
		const char *why = host_parse_rule(rows[i].text, strlen(rows[i].text), &host);
		if (!why || !strstr(why, rows[i].why))
			fail_msg("%s: %s", rows[i].text, why ? why : "taken for a host");
	}
}

/* ---- comparing: by the definition, and by cover_host() ----------------------------------------------------------- */

static bool plainly_covers(const struct host *rule, const struct host *host)
{
	if (rule->port != host->port)
		return false;
	if (rule->form != HOST_WILDCARD || host->form == HOST_ADDRESS)
		return rule->form == host->form && !strcmp(rule->name, host->name);
	/* The names' labels from the right: those of the rule after its star, and at least one more. */
	const char *suffix = rule->name + 1;
	size_t length = strlen(host->name), need = strlen(suffix);
	return length > need && !strcmp(host->name + length - need, suffix);
}

static const char *some_host(bool rule)
{
	static const char *const labels[] = { "a", "B", "com", "a-b", "1", "0x1", "*", "", "xn--a", "co", "-" };
	static const char *const literals[] = { "1.2.3.4", "1.2.3.4.", "[::1]",  "[::ffff:1.2.3.4]", "[::A]",
		                                "[a::]",   "1.1",      "[::1].", "127.0.0.1" };
	static const char *const ports[] = { ":443", ":80", ":443", ":0", "" };
	char text[128] = "";
	if (random() % 5 == 0) {
		strcat(text, literals[random() % (long)ARRAY_SIZE(literals)]);
	} else {
		strcat(text, rule && random() % 2 ? "*." : "");
		for (long count = 1 + random() % 4, i = 0; i < count; i++) {
			strcat(text, i ? "." : "");
			strcat(text, labels[random() % (random() % 3 ? 4 : (long)ARRAY_SIZE(labels))]);
		}
		strcat(text, random() % 4 ? "" : ".");
	}
	strcat(text, ports[random() % (random() % 9 ? 3 : (long)ARRAY_SIZE(ports))]);
	return arena_strdup(&arena, text);
}

static void comparing_is_as_capabilities_are_compared(void **state)
{
	(void)state;
	long covered = 0, not_covered = 0;
	srandom(6);
	for (int round = 0; round < 300000; round++) {
		const char *rule_text = some_host(true), *text = some_host(false);
		struct host rule, host;
		char canonical[2][HOST_TEXT_SIZE];
		if (!host_parse_rule(rule_text, strlen(rule_text), &rule) &&
		    !host_parse_port(text, strlen(text), &host)) {
			host_text(&rule, canonical[0]);
			host_text(&host, canonical[1]);
			bool wanted = plainly_covers(&rule, &host);
			struct strings written = { 0 }, normal = { 0 };
			assert_int_equal(strings_add(&arena, &written, rule_text), 0);
			assert_int_equal(strings_add(&arena, &normal, canonical[0]), 0);
			if (cover_host(&normal, canonical[1], false) != wanted ||
			    cover_host(&written, text, false) != wanted || cover_host(&normal, text, false) != wanted ||
			    cover_host(&written, canonical[1], false) != wanted)
				fail_msg("%s, %s", rule_text, text);
			assert_string_equal(cover_host_normalise(&arena, text), canonical[1]);
			assert_string_equal(cover_host_normalise(&arena, rule_text), canonical[0]);
			covered += wanted;
			not_covered += !wanted;
		}
		arena_free(&arena);
	}
	assert_true(covered > 2000 && not_covered > 2000);
}

static void which_hosts_are_loopback(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool is_loopback;
	} rows[] = {
		{ "localhost:80", true },          { "LOCALHOST.:80", true },    { "127.0.0.1:80", true },
		{ "[::1]:80", true },              { "[0:0::1]:80", true },      { "127.0.0.2:80", false },
		{ "a.localhost:80", false },       { "*.localhost:80", false },  { "[::]:80", false },
		{ "[::ffff:127.0.0.1]:80", false },{ "0.0.0.0:80", false },      { "localhost.example:80", false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct host host;
		assert_null(host_parse_rule(rows[i].text, strlen(rows[i].text), &host));
		if (host_is_loopback(&host) != rows[i].is_loopback)
			fail_msg("%s", rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_is_a_host, free_arena),
		cmocka_unit_test(a_nul_is_no_end),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(which_hosts_are_loopback),
		cmocka_unit_test_teardown(comparing_is_as_capabilities_are_compared, free_arena),
	};
	return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}

/* Where URLs lead, and which are refused by their text alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/url.h"

static const struct {
	const char *url, *host;         /* host:port */
	const char *why;                /* where it is none */
} urls[] = {
	{ "http://example.com", "example.com:80", NULL },
	{ "https://example.com", "example.com:443", NULL },
	{ "HTTPS://EXAMPLE.com./a?b=c", "example.com:443", NULL },
	{ "http://example.com:8080/", "example.com:8080", NULL },
	{ "http://example.com?q", "example.com:80", NULL },
	{ "http://example.com/@b:80", "example.com:80", NULL },
	{ "http://example.com/a@evil.org", "example.com:80", NULL },
	{ "http://example.com?@evil.org/", "example.com:80", NULL },
	{ "http://example.com/http://evil.org", "example.com:80", NULL },
	{ "http://example.com//evil.org", "example.com:80", NULL },
	{ "http://example.com/%00%0d%0a%23", "example.com:80", NULL },
	{ "http://xn--bcher-kva.example/", "xn--bcher-kva.example:80", NULL },
	{ "http://127.0.0.1/", "127.0.0.1:80", NULL },
	{ "http://[::1]/", "[::1]:80", NULL },
	{ "https://[2001:DB8::1]:8443/", "[2001:db8::1]:8443", NULL },
	{ "http://localhost:3000", "localhost:3000", NULL },

	{ "", NULL, "only http" },
	{ "http", NULL, "only http" },
	{ "example.com", NULL, "only http" },
	{ "//example.com", NULL, "only http" },
	{ "ftp://example.com", NULL, "only http" },
	{ "file:///etc/passwd", NULL, "only http" },
	{ "gopher://example.com", NULL, "only http" },
	{ "javascript:alert(1)", NULL, "only http" },
	{ "data:text/html,a", NULL, "only http" },
	{ "ws://example.com", NULL, "only http" },
	{ "httpx://example.com", NULL, "only http" },
	{ "shttp://example.com", NULL, "only http" },
	{ "http+unix://example.com", NULL, "only http" },
	{ "http:", NULL, "slashes" },
	{ "http:/", NULL, "slashes" },
	{ "http:example.com", NULL, "slashes" },
	{ "http:/example.com", NULL, "slashes" },
	{ "http://", NULL, "no host" },
	{ "http:///example.com", NULL, "no host" },
	{ "http://?a", NULL, "no host" },
	{ "http:////example.com", NULL, "no host" },
	{ " http://example.com", NULL, "space" },
	{ "http://example.com ", NULL, "space" },
	{ "http://exa mple.com", NULL, "space" },
	{ "http://example.com/a b", NULL, "space" },
	{ "http://example.com/\n", NULL, "control" },
	{ "http://exam\tple.com/", NULL, "control" },
	{ "ht\ttp://example.com/", NULL, "control" },
	{ "http://example.com/\x7f", NULL, "control" },
	{ "http://example.com\\@evil.org/", NULL, "backslash" },
	{ "http:\\\\example.com", NULL, "backslash" },
	{ "http://example.com/a\\b", NULL, "backslash" },
	{ "http://example.com#@evil.org/", NULL, "fragment" },
	{ "http://example.com/#a", NULL, "fragment" },
	{ "http://user@example.com/", NULL, "user" },
	{ "http://user:word@example.com/", NULL, "user" },
	{ "http://@example.com/", NULL, "user" },
	{ "http://example.com@evil.org/", NULL, "user" },
	{ "http://a:80@b:90/", NULL, "user" },
	{ "http://exa%6dple.com/", NULL, "percent" },
	{ "http://example.com%2f@evil.org/", NULL, "user" },
	{ "http://%31%32%37.0.0.1/", NULL, "percent" },
	{ "http://[fe80::1%25eth0]/", NULL, "zone" },
	{ "http://b\xc3\xbc" "cher.example/", NULL, "xn--" },
	{ "http://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1/", NULL, "ASCII" },
	{ "http://example.com/\xc3\xbc", NULL, "percent-encode" },
	{ "http://127.1/", NULL, "number" },
	{ "http://0x7f000001/", NULL, "number" },
	{ "http://2130706433/", NULL, "number" },
	{ "http://0177.0.0.1/", NULL, "number" },
	{ "http://010.0.0.1:80/", NULL, "number" },
	{ "http://[127.0.0.1]/", NULL, "brackets" },
	{ "http://[::1/", NULL, "brackets" },
	{ "http://::1/", NULL, "brackets" },
	{ "http://[::1]a/", NULL, "brackets" },
	{ "http://[::1].evil.org/", NULL, "brackets" },
	{ "http://[::1]:/", NULL, "port" },
	{ "http://example.com:/", NULL, "port" },
	{ "http://example.com:0/", NULL, "port" },
	{ "http://example.com:65536/", NULL, "port" },
	{ "http://example.com:080/", NULL, "port" },
	{ "http://example.com:80:90/", NULL, "brackets" },
	{ "http://example.com:http/", NULL, "port" },
	{ "http://*.example.com/", NULL, "star" },
	{ "http://example..com/", NULL, "empty label" },
	{ "http://example.com../", NULL, "empty label" },
	{ "http://./", NULL, "empty label" },
	{ "http://-oProxyCommand=x/", NULL, "character" },
	{ "http://-a/", NULL, "hyphen" },
};

static void where_urls_lead(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		struct host host = { .port = 7 };
		char text[HOST_TEXT_SIZE];
		size_t length = strlen(urls[i].url);
		/* Of a copy without an end. */
		char *copy = malloc(length ? length : 1);
		assert_non_null(copy);
		memcpy(copy, urls[i].url, length);
		const char *why = url_parse(copy, length, &host);
		free(copy);
		if (!why != !urls[i].why || (why && !strstr(why, urls[i].why)))
			fail_msg("%s: %s", urls[i].url, why ? why : "was taken for a URL");
		if (why) {
			assert_int_equal(host.port, 7);
			continue;
		}
		host_text(&host, text);
		assert_string_equal(text, urls[i].host);
	}
}

static void lengths_and_nul(void **state)
{
	(void)state;
	struct host host;
	char url[URL_LENGTH_MAX + 1];
	memset(url, 'a', sizeof(url));
	memcpy(url, "http://a/", 9);
	assert_null(url_parse(url, URL_LENGTH_MAX, &host));
	assert_non_null(url_parse(url, URL_LENGTH_MAX + 1, &host));
	assert_non_null(url_parse("http://a.com\0.evil.org/", 23, &host));
	assert_non_null(url_parse("http://a.com/\0", 14, &host));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(where_urls_lead), cmocka_unit_test(lengths_and_nul) };
	return cmocka_run_group_tests_name("url", tests, NULL, NULL);
}

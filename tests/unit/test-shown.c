/* What counts as a private key. What is shown of a tree is tested with real repositories: tests/e2e/test_shown.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "paths/index/contents.h"

#include <cmocka.h>

static void private_keys(void **state)
{
	static const char *const with[] = {
		"-----BEGIN PRIVATE KEY-----",
		"-----BEGIN RSA PRIVATE KEY-----",
		"-----BEGIN OPENSSH PRIVATE KEY-----",
		"-----BEGIN ENCRYPTED PRIVATE KEY-----",
		"-----BEGIN PGP PRIVATE KEY BLOCK-----",
		"-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n-----BEGIN EC PRIVATE KEY-----",
		"-----begin private key-----",
		"AGE-SECRET-KEY-1XYZ",
		"a short secret",
		"0\x82\x04",
		"{\"private_key\": \"x\"}",
	};
	static const char *const without[] = {
		"",
		"-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n",
		"-----BEGIN PUBLIC KEY-----\nMFk\n-----END PUBLIC KEY-----\n",
		"-----BEGIN DH PARAMETERS-----\n",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
		if (!content_has_private_key(with[i], strlen(with[i])))
			fail_msg("%s", with[i]);
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
		if (content_has_private_key(without[i], strlen(without[i])))
			fail_msg("%s", without[i]);
	assert_true(content_has_private_key("-----BEGIN \0", 12));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(private_keys) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

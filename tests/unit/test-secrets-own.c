/* What of an environment is the caller's own secret: by the names of variables, and by their values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "secrets/own.h"

#define VALUE "Zk3vQ8mT1xB7nR5"

static const struct {
	const char *name;
	bool is_secret;
} names[] = {
	{ "GITHUB_TOKEN", true },
	{ "MY_API_KEY", true },
	{ "DB_PASSWORD", true },
	{ "db_password", true },
	{ "MYTOKEN", true },
	{ "dbpassword", true },
	{ "TOKEN", true },
	{ "AWS_SECRET_ACCESS_KEY", true },
	{ "SENTRY_DSN", true },
	{ "SLACK_WEBHOOK", true },
	{ "APIKEY", true },
	{ "SSH_AUTH_SOCK", false },
	{ "KEY_FILE", false },
	{ "TOKEN_PATH", false },
	{ "AWS_ACCESS_KEY_ID", false },
	{ "DB_USER", false },
	{ "PWD", false },
	{ "OLDPWD", false },
	{ "MONKEY", false },
	{ "KEYBOARD", false },
	{ "AUTHOR", false },
	{ "HOME", false },
	{ "", false },
	{ "_", false },
	/* For everybody. */
	{ "NEXT_PUBLIC_ALGOLIA_SEARCH_API_KEY", false },
	{ "NEXT_PUBLIC_MAPBOX_TOKEN", false },
	{ "ALGOLIA_SEARCH_API_KEY", false },
	{ "DOCSEARCH_API_KEY", false },
	{ "VITE_FIREBASE_API_KEY", false },
	{ "REACT_APP_MAPS_KEY", false },
	{ "EXPO_PUBLIC_SUPABASE_ANON_KEY", false },
	{ "SUPABASE_ANON_KEY", false },
	{ "STRIPE_PUBLISHABLE_KEY", false },
	{ "SSH_PUBLIC_KEY", false },
	{ "SSH_PUB_KEY", false },
	{ "SIGNING_KEY_FINGERPRINT", false },
	{ "GPG_KEY", false },
	/* Not so. */
	{ "ALGOLIA_ADMIN_API_KEY", true },
	{ "ALGOLIA_API_KEY", true },
	{ "STRIPE_SECRET_KEY", true },
	{ "VITE_DB_PASSWORD", true },
	{ "REACT_APP_CLIENT_SECRET", true },
	{ "PUBLIC_PRIVATE_KEY", true },
	{ "PUB_TOKEN", true },
	{ "REPUBLIC_TOKEN", true },
	{ "GPG_KEY_PASSPHRASE", true },
	{ "MY_GPG_KEY", true },
	{ "VITE_", false },
};

static void a_name_tells_of_a_secret(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (own_is_secret_name(names[i].name, strlen(names[i].name)) != names[i].is_secret)
			fail_msg("%s", names[i].name);
	/* It need not be ended where its name is. */
	assert_true(own_is_secret_name("MY_TOKEN=x", 8));
	assert_false(own_is_secret_name("MY_TOKEN", 2));
	assert_false(own_is_secret_name("X_PUB_KEY", 4));
}

/* A variable, and what of it is looked for; NULL: nothing. */
static const struct {
	const char *variable, *secret;
} variables[] = {
	{ "MY_TOKEN=" VALUE, VALUE },
	{ "MY_TOKEN= " VALUE "\n", VALUE },
	{ "MY_TOKEN=short7Q", NULL },
	{ "MY_TOKEN=just-plain-words", NULL },
	{ "MY_TOKEN=", NULL },
	{ "MY_TOKEN", NULL },
	{ "=" VALUE, NULL },
	{ "EDITOR=" VALUE, NULL },
	{ "SSH_PUBLIC_KEY=" VALUE, NULL },
	/* Where something lies; and what is only written like that. */
	{ "MY_KEY=/usr/bin/env", NULL },
	{ "MY_KEY=/no-such" VALUE, "/no-such" VALUE },
	/* Of an address only the password, whatever the variable's name. */
	{ "DATABASE_URL=postgres://me:" VALUE "@db.example/x", VALUE },
	{ "MY_TOKEN=https://me:" VALUE "@example.com/" VALUE VALUE, VALUE },
	{ "MY_TOKEN=https://example.com/" VALUE, NULL },
	{ "HTTP_PROXY=http://" VALUE "@proxy:3128", NULL },
	{ "DATABASE_URL=postgres://me:p@ss" VALUE "@db", "p@ss" VALUE },
	{ "DATABASE_URL=postgres://me:" VALUE "/x@db", NULL },
	{ "DATABASE_URL=postgres://:" VALUE "@", VALUE },
	{ "DATABASE_URL=://", NULL },
	{ "DATABASE_URL=://:", NULL },
	{ "DATABASE_URL=://:@", NULL },
};

static void of_a_variable_its_value_or_the_password_in_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		char *environment[] = { (char *)(uintptr_t)variables[i].variable, NULL };
		struct secret_set *set = secret_set_new();
		const char *secret = variables[i].secret;
		assert_int_equal(own_add_environment(set, environment, NULL), 0);
		if (secret_set_count(set) != (secret ? 1 : 0))
			fail_msg("%s: %zu", variables[i].variable, secret_set_count(set));
		if (secret) {
			const struct secret_own *own = secret_set_own(set, 0);
			assert_int_equal(own->length, strlen(secret));
			assert_memory_equal(own->bytes, secret, own->length);
			assert_false(own->is_exempt);
		}
		secret_set_unref(set);
	}
}

static void what_is_passed_by_name_is_exempt(void **state)
{
	char *environment[] = { (char *)(uintptr_t) "MY_TOKEN=" VALUE, (char *)(uintptr_t) "AWS_SECRET_KEY=" VALUE "2",
		                (char *)(uintptr_t) "OTHER_TOKEN=" VALUE "3", (char *)(uintptr_t) "SAME_TOKEN=" VALUE,
		                NULL };
	const char *names_passed[] = { "MY_TOKEN", "AWS_*", NULL };
	const char *pair = "ANY=" VALUE "4";
	const struct strings passed = { .items = names_passed, .count = 2 }, given = { .items = &pair, .count = 1 };
	struct secret_set *set = secret_set_new();
	(void)state;
	assert_int_equal(own_exempt(set, &given), 0);
	assert_int_equal(own_add_environment(set, environment, &passed), 0);
	assert_int_equal(secret_set_count(set), 4);
	for (size_t i = 0; i < secret_set_count(set); i++) {
		const struct secret_own *own = secret_set_own(set, i);
		assert_int_equal(own->is_exempt, strcmp(own->name, "OTHER_TOKEN") != 0);
		assert_int_equal(own->is_secret, strcmp(own->name, "ANY") != 0);
	}
	secret_set_unref(set);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_tells_of_a_secret),
		cmocka_unit_test(of_a_variable_its_value_or_the_password_in_it),
		cmocka_unit_test(what_is_passed_by_name_is_exempt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

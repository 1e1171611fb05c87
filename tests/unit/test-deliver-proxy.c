/* The token of a proxy at this machine's loopback, in the command's environment: in the variables that stand for it,
 * and in nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/egress.h"
#include "secrets/credential.h"
#include "secrets/guard.h"
#include "session/beneath.h"
#include "walk.h"

/* ---- what the file calls besides --------------------------------------------------------------------------------- */

int beneath_resolve(struct arena *arena, const char *path, struct place *ret_place, int *ret_fd,
                    struct cordon_error *err)
{
	(void)arena, (void)path, (void)ret_place, (void)ret_fd, (void)err;
	return -1;
}

int credential_load(const struct credential *credential, char *const *environment, const struct credential_reach *reach,
                    struct credential_value *ret_value, struct cordon_error *err)
{
	(void)credential, (void)environment, (void)reach, (void)ret_value, (void)err;
	return -1;
}

int credential_check_reach(const struct credential *credential, const struct credential_reach *reach,
                           struct cordon_error *err)
{
	(void)credential, (void)reach, (void)err;
	return -1;
}

void credential_wipe(struct credential_value *value)
{
	(void)value;
}

int secret_guard_add_own(struct secret_guard *guard, const char *name, const char *value, size_t length,
                         enum secret_use use)
{
	(void)guard, (void)name, (void)value, (void)length, (void)use;
	return -1;
}

char *const *request_environment(const struct cordon_request *request)
{
	(void)request;
	return NULL;
}

#include <cmocka.h>

#define TOKEN "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void where_it_is_put(void **state)
{
	static const char *const before[] = {
		"PATH=/usr/bin",
		"HTTP_PROXY=" EGRESS_LOOPBACK_URL,
		"https_proxy=" EGRESS_LOOPBACK_URL,
		"ALL_PROXY=http://caller:1",
		"OTHER=see " EGRESS_LOOPBACK_URL,
		"MORE=" EGRESS_LOOPBACK_URL "/",
		"ODD",
	};
	static const char *const after[] = {
		"PATH=/usr/bin",
		"HTTP_PROXY=http://cordon:" TOKEN "@127.0.0.1:65535",
		"https_proxy=http://cordon:" TOKEN "@127.0.0.1:65535",
		"ALL_PROXY=http://caller:1",
		"OTHER=see " EGRESS_LOOPBACK_URL,
		"MORE=" EGRESS_LOOPBACK_URL "/",
		"ODD",
	};
	struct execution *execution = calloc(1, sizeof(*execution));
	struct strings *environment = &execution->run.environment, *profile = &execution->verdict.profile.environment;
	struct cordon_error err;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(before); i++)
		assert_int_equal(strings_add(&execution->arena, profile, before[i]), 0);
	assert_int_equal(strings_add_all(&execution->arena, environment, profile), 0);
	assert_int_equal(credentials_deliver_proxy(execution, TOKEN, 65535, &err), 0);
	assert_int_equal(environment->count, ARRAY_SIZE(after));
	for (size_t i = 0; i < ARRAY_SIZE(after); i++) {
		assert_string_equal(environment->items[i], after[i]);
		/* What is kept and shown has none. */
		assert_string_equal(profile->items[i], before[i]);
	}
	credentials_wipe(execution);
	assert_int_equal(environment->count, 0);
	arena_free(&execution->arena);
	free(execution);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(where_it_is_put) };
	return cmocka_run_group_tests_name("deliver-proxy", tests, NULL, NULL);
}

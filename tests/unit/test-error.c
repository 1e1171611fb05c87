/* The error value: what fills it, what it looks like outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#undef fail     /* cmocka's own; ours is what is tested */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/utf8.h"

static void an_error_is_filled_in_one_line(void **state)
{
	(void)state;
	struct cordon_error err;
	memset(&err, 'x', sizeof(err));
	errno = EINTR;
	assert_int_equal(fail(&err, CORDON_E_AUDIT_UNAVAILABLE, ENOSPC, "/data", "row %d", 7), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(err.class, CORDON_E_AUDIT_UNAVAILABLE);
	assert_int_equal(err.os_errno, ENOSPC);
	assert_int_equal(err.retriable, 1);
	assert_int_equal(err.step, CORDON_STEP_NONE);
	assert_string_equal(err.subject, "/data");
	assert_string_equal(err.reason, "row 7: No space left on device");
	assert_string_equal(err.remediation, "");
	assert_string_equal(err.boundary, "");
	assert_string_equal(err.audit_id, "");
	/* Nothing was denied where there was no descriptor. */
	assert_int_equal(fail(&err, CORDON_E_CAPABILITY_DENIED, EMFILE, NULL, "it is not there"), -1);
	assert_true(err.class == CORDON_E_RESOURCE_EXHAUSTED && err.retriable);
	assert_int_equal(fail(&err, CORDON_E_AUDIT_UNAVAILABLE, ENFILE, NULL, "it cannot be written"), -1);
	assert_true(err.class == CORDON_E_AUDIT_UNAVAILABLE && err.retriable);
	assert_int_equal(fail(&err, CORDON_E_AUDIT_UNAVAILABLE, ENOSPC, NULL, "it cannot be written"), -1);
	assert_int_equal(fail_remedy(&err, "free %s", "space"), -1);
	assert_int_equal(fail_boundary(&err, "ledger"), -1);
	assert_string_equal(err.remediation, "free space");
	assert_string_equal(err.boundary, "ledger");

	assert_int_equal(fail(&err, CORDON_E_INVALID_REQUEST, 0, NULL, "no"), -1);
	assert_string_equal(err.subject, "");
	assert_string_equal(err.reason, "no");
	assert_string_equal(err.remediation, "");
	assert_int_equal(err.retriable, 0);
	fail(&err, CORDON_E_INTERNAL, 99999, NULL, "no");
	assert_string_equal(err.reason, "no: unknown error");
	assert_int_equal(fail_oom(&err), -1);
	assert_int_equal(err.os_errno, ENOMEM);
	assert_int_equal(fail(NULL, CORDON_E_INTERNAL, 0, NULL, "no"), -1);
	assert_int_equal(fail_remedy(NULL, "no"), -1);
	assert_int_equal(fail_boundary(NULL, "no"), -1);
}

static void context_is_added_from_the_error_itself(void **state)
{
	(void)state;
	struct cordon_error err;
	fail(&err, CORDON_E_INVALID_REQUEST, 0, "key", "inner");
	fail_remedy(&err, "first");
	fail_remedy(&err, "%s, then", err.remediation);
	assert_string_equal(err.remediation, "first, then");
	fail(&err, CORDON_E_CONFIG_INVALID, 0, err.subject, "outer: %s", err.reason);
	assert_string_equal(err.subject, "key");
	assert_string_equal(err.reason, "outer: inner");
}

static void long_text_is_cut_between_characters(void **state)
{
	(void)state;
	struct cordon_error err;
	char text[2000] = "";
	for (size_t start = 0; start < 3; start++) {
		memset(text, 'a', start);
		for (size_t at = start; at + 3 < sizeof(text); at += 3)
			memcpy(text + at, "\xe2\x82\xac", 4);
		fail(&err, CORDON_E_INTERNAL, EIO, text, "%s", text);
		fail_remedy(&err, "%s", text);
		fail_boundary(&err, text);
		const char *fields[] = { err.subject, err.reason, err.remediation, err.boundary };
		size_t sizes[] = { sizeof(err.subject), sizeof(err.reason), sizeof(err.remediation),
			           sizeof(err.boundary) };
		for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
			size_t length = strlen(fields[i]);
			assert_in_range(length, sizes[i] - 3, sizes[i] - 1);
			for (size_t at = 0; at < length; at += utf8_sequence(fields[i] + at, length - at))
				assert_int_not_equal(utf8_sequence(fields[i] + at, length - at), 0);
		}
	}
}

static void want_of_descriptors_has_one_remedy(void **state)
{
	(void)state;
	struct cordon_error err;
	fail(&err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, EMFILE, "/", "cannot mount");
	fail_remedy(&err, "use another kernel");
	assert_int_equal(err.class, CORDON_E_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(err.remediation, "open files"));
	fail_oom(&err);
	assert_true(err.class == CORDON_E_RESOURCE_EXHAUSTED && err.retriable);
	fail(&err, CORDON_E_AUDIT_UNAVAILABLE, ENFILE, "/", "cannot open");
	fail_remedy(&err, "free some space");
	assert_int_equal(err.class, CORDON_E_AUDIT_UNAVAILABLE);
	assert_non_null(strstr(err.remediation, "open files"));
}

static void names_are_fixed(void **state)
{
	(void)state;
	static const char *const wire[] = { "ok", "invalid_request", "capability_denied", "approval_timeout",
		"spawn_sandbox_unavailable", "sandbox_disabled", "session_paused", "session_ended", "session_busy",
		"program_not_found", "program_not_allowed", "network_unreachable", "limit_exceeded", "leak_blocked",
		"audit_unavailable", "config_invalid", "internal", "resource_exhausted", "not_found", "cancelled" };
	assert_int_equal(ARRAY_SIZE(wire), CORDON_CLASS_MAX);
	for (int class = 0; class < CORDON_CLASS_MAX; class++)
		assert_string_equal(cordon_class_name(class), wire[class]);
	assert_string_equal(cordon_class_name(CORDON_CLASS_MAX), "internal");
	assert_string_equal(cordon_class_name(-1), "internal");
	static const char *const steps[] = { "none", "session", "cwd", "capability", "profile", "run", "audit" };
	for (int step = 0; step < CORDON_STEP_MAX; step++)
		assert_string_equal(cordon_step_name(step), steps[step]);
	assert_string_equal(cordon_step_name(99), "none");
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++) {
		assert_string_not_equal(cordon_wall_name(wall), "unknown");
		for (int other = 0; other < wall; other++)
			assert_string_not_equal(cordon_wall_name(wall), cordon_wall_name(other));
	}
	assert_string_equal(cordon_wall_name(CORDON_WALL_MAX), "unknown");
	struct cordon_error err;
	fail(&err, 1000, 0, NULL, "no such class");
	assert_int_equal(err.class, CORDON_E_INTERNAL);
}

static void json_has_its_keys(void **state)
{
	(void)state;
	struct cordon_error err;
	fail(&err, CORDON_E_CAPABILITY_DENIED, 0, "/a\xff\"", "line\nbreak");
	err.step = CORDON_STEP_CAPABILITY;
	strcpy(err.audit_id, "01ARZ");
	fail_grant(&err, "read", "/a b");
	char *text = cordon_error_json(&err);
	assert_string_equal(text,
	                    "{\"error\":{\"class\":\"capability_denied\",\"boundary\":\"\",\"step\":\"capability\","
	                    "\"reason\":\"line\\nbreak\",\"subject\":\"/a\xef\xbf\xbd\\\"\",\"remediation\":\"\","
	                    "\"grant\":\"--read /a b\",\"setting\":{\"key\":\"read\",\"value\":\"/a b\"},"
	                    "\"platform\":\"" SYSTEM_NAME "\",\"retriable\":false,\"audit_id\":\"01ARZ\"}}");
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_int_equal(json_object_size(json_object_get(root, "error")), 11);
	json_decref(root);
	free(text);
}

/* What names no single value is a sentence for people. */
static void a_grant_is_a_key_and_a_value(void **state)
{
	static const char *const none[] = {
		"",          "--disk, more than 4M",      "--memory SIZE", "--net a.test:PORT",
		"ask first", "--secrets report, or more", "--read"
	};
	char key[32];
	struct cordon_error err;
	char path[sizeof(err.grant)];
	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		assert_null(error_grant(none[i], key, sizeof(key)));
	assert_null(error_grant(NULL, key, sizeof(key)));
	assert_string_equal(error_grant("--net-private a.test:443", key, sizeof(key)), "a.test:443");
	assert_string_equal(key, "net-private");
	fail(&err, CORDON_E_CAPABILITY_DENIED, 0, NULL, "too long");
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(fail_grant(&err, "read", path), -1);
	assert_string_equal(err.grant, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_is_filled_in_one_line),
		cmocka_unit_test(context_is_added_from_the_error_itself),
		cmocka_unit_test(long_text_is_cut_between_characters),
		cmocka_unit_test(want_of_descriptors_has_one_remedy),
		cmocka_unit_test(names_are_fixed),
		cmocka_unit_test(json_has_its_keys),
		cmocka_unit_test(a_grant_is_a_key_and_a_value),
	};
	return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}

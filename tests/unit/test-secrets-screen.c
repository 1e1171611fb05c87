/* Texts that are shown in parts, and JSON, without the secrets in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "secrets/screen.h"

#define OWN "correct7\"horse\nbattery"
#define GIVEN "given-Horse9battery"

static size_t noted;

static void note(void *arg, const struct secret_finding *finding)
{
	(void)arg;
	assert_string_equal(finding->name, "MY_TOKEN");
	assert_int_equal(finding->offset, 103);
	noted++;
}

static void begin(struct secret_screen *screen, enum secret_action action)
{
	struct secret_set *set = secret_set_new();
	struct secret_policy policy;
	assert_int_equal(secret_set_exempt(set, "GIVEN_KEY", GIVEN, strlen(GIVEN), true), 1);
	assert_int_equal(secret_set_exempt(set, "MODE", "Given-but-1-mode", 16, false), 1);
	assert_int_equal(secret_set_add(set, "MY_TOKEN", OWN, strlen(OWN)), 1);
	secret_policy_set(&policy, action);
	secret_screen_init(screen, set, &policy);
	secret_set_unref(set);
	screen->note = note;
	noted = 0;
}

static void expect(struct secret_screen *screen, size_t from, size_t to, bool keep_lines, const char *expected)
{
	auto_free char *shown = NULL;
	size_t length = 0;
	assert_int_equal(secret_screen_show(screen, from, to, keep_lines, &shown, &length), 0);
	if (!expected) {
		assert_null(shown);
		return;
	}
	assert_non_null(shown);
	assert_string_equal(shown, expected);
	assert_int_equal(length, strlen(expected));
}

static void parts_show_nothing_of_a_secret(void **state)
{
	static const char text[] = "ab " OWN " cd";
	const size_t end = 3 + strlen(OWN);
	struct secret_screen screen;
	(void)state;
	begin(&screen, SECRET_REDACT);
	assert_int_equal(secret_screen_look(&screen, text, strlen(text), 100), 0);
	expect(&screen, 0, 3, true, NULL);
	expect(&screen, end, strlen(text), true, NULL);
	assert_int_equal(noted, 0);
	expect(&screen, 0, strlen(text), false, "ab [REDACTED:MY_TOKEN] cd");
	expect(&screen, 0, strlen(text), true, "ab [REDACTED:MY_TOKEN]\n cd");
	for (size_t from = 3; from < end; from++)
		for (size_t to = from + 1; to <= end; to++)
			expect(&screen, from, to, false, "[REDACTED:MY_TOKEN]");
	expect(&screen, end - 1, end + 2, false, "[REDACTED:MY_TOKEN] c");
	assert_int_equal(noted, 1);
	secret_screen_free(&screen);
}

static void a_report_changes_nothing(void **state)
{
	static const char text[] = "ab " OWN " cd";
	struct secret_screen screen;
	(void)state;
	begin(&screen, SECRET_REPORT);
	assert_int_equal(secret_screen_look(&screen, text, strlen(text), 100), 0);
	expect(&screen, 0, strlen(text), true, NULL);
	assert_int_equal(noted, 1);
	secret_screen_free(&screen);
}

static char *screened(struct secret_screen *screen)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_string(&json, "a " OWN, "x " OWN " \\y");
	json_key_string(&json, "given", GIVEN);
	json_key_string(&json, "mode", "Given-but-1-mode");
	json_key_uint(&json, "number", 7);
	json_object_end(&json);
	assert_int_equal(secret_screen_json(screen, &json), 0);
	return json_take(&json);
}

static void strings_of_json_are_looked_at_unescaped(void **state)
{
	struct secret_screen screen;
	(void)state;
	begin(&screen, SECRET_REDACT);
	screen.note = NULL;
	auto_free char *text = screened(&screen);
	assert_string_equal(text, "{\"a [REDACTED:MY_TOKEN]\":\"x [REDACTED:MY_TOKEN] \\\\y\",\"given\":\"" GIVEN
	                          "\",\"mode\":\"Given-but-1-mode\",\"number\":7}");
	screen.with_given = true;
	auto_free char *row = screened(&screen);
	assert_non_null(strstr(row, "\"given\":\"[REDACTED:GIVEN_KEY]\",\"mode\":\"Given-but-1-mode\""));
	secret_screen_free(&screen);
}

static void an_array_is_never_overrun(void **state)
{
	struct secret_screen screen;
	char text[32] = GIVEN;
	(void)state;
	begin(&screen, SECRET_REDACT);
	screen.with_given = true;
	screen.note = NULL;
	assert_int_equal(secret_screen_array(&screen, text, 20), 0);
	assert_string_equal(text, "[REDACTED:GIVEN_KEY");
	secret_screen_free(&screen);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_show_nothing_of_a_secret),
		cmocka_unit_test(a_report_changes_nothing),
		cmocka_unit_test(strings_of_json_are_looked_at_unescaped),
		cmocka_unit_test(an_array_is_never_overrun),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Whether a row is in the ledger: whole rows of that kind and id alone, wherever they stand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/find.h"
#include "audit/ledger.h"
#include "base/remove.h"

#include <cmocka.h>

static char data[64];

static int set_up(void **state)
{
	(void)state;
	strcpy(data, "/tmp/cordon-find-XXXXXX");
	return mkdtemp(data) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return remove_tree(AT_FDCWD, data);
}

/* `text`, spaces, `rest`. */
static void add(const char *file, const char *text, size_t padding, const char *rest)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/ledger", data);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/ledger/%s", data, file);
	FILE *out = fopen(path, "a");
	assert_non_null(out);
	fprintf(out, "%s%*s%s", text, (int)padding, "", rest);
	assert_int_equal(fclose(out), 0);
}

static bool found(const char *id)
{
	struct cordon_error err;
	bool is_found = false;
	assert_int_equal(ledger_find(data, "approval", id, &is_found, &err), 0);
	return is_found;
}

static void test_find(void **state)
{
	(void)state;
	assert_false(found("A"));
	add("2026-01-30.jsonl", "{\"prev\":\"x\",\"row\":\"approval\",\"id\":\"A\",\"more\":{}}\n", 0, "");
	add("2026-01-31.jsonl", "{\"row\":\"intent\",\"id\":\"B\"}\n", 0, "");
	add("2026-01-31.jsonl", "{\"row\":\"approval\",\"id\":\"C\",\"by\":{}\n", 0, "");
	add("2026-01-31.jsonl", "{\"row\":\"approval\",\"id\":\"D\",\"pad\":\"", LEDGER_LINE_MAX / 2, "\"}\n");
	add("2026-01-31.jsonl", "{\"row\":\"approval\",\"id\":\"E\",\"pad\":\"", 2 * LEDGER_LINE_MAX, "\"}\n");
	add("2026-01-31.jsonl", "{\"row\":\"approval\",\"id\":\"F\"}\n", 0, "");
	add("2026-01-31.jsonl", "{\"row\":\"approval\",\"id\":\"G\"}", 0, "");
	add("2026-02-01.jsonl", "", 0, "");
	add("notes", "{\"row\":\"approval\",\"id\":\"H\"}\n", 0, "");
	assert_true(found("A"));
	assert_false(found("B"));       /* another kind */
	assert_false(found("C"));       /* torn, and ended by a repair */
	assert_true(found("D"));
	assert_false(found("E"));
	assert_true(found("F"));
	assert_false(found("G"));       /* torn */
	assert_false(found("H"));       /* no file of the ledger */
}

static void test_no_ledger(void **state)
{
	(void)state;
	char path[128];
	struct cordon_error err;
	bool is_found;
	snprintf(path, sizeof(path), "%s/ledger", data);
	FILE *out = fopen(path, "w");
	assert_int_equal(fclose(out), 0);
	assert_int_equal(ledger_find(data, "approval", "A", &is_found, &err), -1);
	assert_int_equal(err.class, CORDON_E_AUDIT_UNAVAILABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(test_find, set_up, tear_down),
		                            cmocka_unit_test_setup_teardown(test_no_ledger, set_up, tear_down) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Records of sessions that are damaged, other things in their place, and what a process that was killed left: refused
 * or mended, never taken for a session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "registry-ground.h"
#include "system-has.h"

#include <cmocka.h>     /* after ours: it has a macro fail() */

static void must_refuse(struct ground *ground, const char *what)
{
	struct session_record record;
	struct cordon_error err;
	bool flag;
	int write_it = 0;
	memset(&err, 0, sizeof(err));
	if (registry_read(&ground->arena, ground->data, "s", &record, &flag, &err) == 0)
		fail_msg("read in spite of: %s", what);
	assert_true(*err.reason && *err.subject && *err.remediation && err.class == CORDON_E_INTERNAL);
	assert_int_equal(registry_open(&ground->arena, ground->data, "s", NULL, &record, &flag, &err), -1);
	assert_int_equal(registry_change(&ground->arena, ground->data, "s", ground_answer, &write_it, &record, &err),
	                 -1);
}

static void damaged_records(void **state)
{
	struct ground *ground = *state;
	struct cordon_error err;
	size_t length, now;
	ground_open(ground, "s", true);
	ground_open(ground, "other", true);
	MUST(registry_change(&ground->arena, ground->data, "s", ground_fill, NULL, NULL, &err));
	const char *path = ground_path(ground, "s", "session.json");
	char *good = ground_get(ground, path, &length), *text = arena_alloc(&ground->arena, length + 100);
	assert_true(length > 200);
	/* Cut anywhere; what is refused stays as it is. */
	for (size_t cut = 0; cut < length; cut += EACH) {
		ground_put(path, good, cut);
		must_refuse(ground, "a cut");
		ground_get(ground, path, &now);
		assert_int_equal(now, cut);
	}
	/* One byte more, and one that is a NUL. */
	memcpy(text, good, length);
	text[length] = 'x';
	ground_put(path, text, length + 1);
	must_refuse(ground, "a byte more");
	text[length / 2] = '\0';
	ground_put(path, text, length);
	must_refuse(ground, "a NUL");
	static const char *const other[] = {
		"{}", "[]", "null", "\xff\xfe", "{\"version\":2}", "{\"version\":1}", "{\"version\":\"1\"}"
	};
	for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
		ground_put(path, other[i], strlen(other[i]));
		must_refuse(ground, other[i]);
	}
	/* A key more, a key twice. */
	snprintf(text, length + 100, "{\"more\":1,%s", good + 1);
	ground_put(path, text, strlen(text));
	must_refuse(ground, "a key more");
	snprintf(text, length + 100, "{\"version\":1,%s", good + 1);
	ground_put(path, text, strlen(text));
	must_refuse(ground, "a key twice");
	char *others = ground_get(ground, ground_path(ground, "other", "session.json"), &now);
	ground_put(path, others, now);
	must_refuse(ground, "the record of another");
	ground_put(path, good, length);
	assert_string_equal(ground_open(ground, "s", false).denials[0].hash, "HASH");
}

static void other_things_in_its_place(void **state)
{
	struct ground *ground = *state;
	struct session_record record;
	struct cordon_error err;
	bool found;
	ground_open(ground, "s", true);
	const char *path = ground_path(ground, "s", "session.json"), *aside = ground_path(ground, "s", "aside");
	assert_int_equal(chmod(path, 0620), 0);
	must_refuse(ground, "others may write");
	assert_int_equal(chmod(path, 0600), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 0), 0);
		must_refuse(ground, "another owner");
		assert_int_equal(chown(path, 0, 0), 0);
	}
	assert_int_equal(rename(path, aside), 0);
	if (HAS_LINKS) {
		assert_int_equal(symlink("aside", path), 0);
		must_refuse(ground, "a link");
		assert_int_equal(unlink(path), 0);
	}
	if (HAS_SPECIAL_FILES) {
		assert_int_equal(mkfifo(path, 0600), 0);
		must_refuse(ground, "a pipe");
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(mkdir(path, 0700), 0);
	must_refuse(ground, "a directory");
	assert_int_equal(rmdir(path), 0);
	ground_put(path, "", 0);
	assert_int_equal(truncate(path, (off_t)1 << 40), 0);
	must_refuse(ground, "a huge file");
	assert_int_equal(rename(aside, path), 0);
	ground_open(ground, "s", false);
	/* The directory itself. */
	const char *directory = ground_path(ground, "s", ""),
		   *moved = arena_printf(&ground->arena, "%s/moved", ground->data);
	char *trimmed = arena_strndup(&ground->arena, directory, strlen(directory) - 1);
	assert_int_equal(rename(trimmed, moved), 0);
	if (HAS_LINKS) {
		assert_int_equal(symlink("../moved", trimmed), 0);
		must_refuse(ground, "a linked directory");
		assert_int_equal(unlink(trimmed), 0);
	}
	ground_put(trimmed, "", 0);
	must_refuse(ground, "a file for a directory");
	assert_int_equal(unlink(trimmed), 0);
	assert_int_equal(rename(moved, trimmed), 0);
	assert_int_equal(chmod(trimmed, 0770), 0);
	must_refuse(ground, "a directory others may write to");
	assert_int_equal(chmod(trimmed, 0700), 0);
	MUST(registry_read(&ground->arena, ground->data, "s", &record, &found, &err));
	assert_true(found);
}

static void what_the_dead_left(void **state)
{
	struct ground *ground = *state;
	struct session_record record;
	struct cordon_error err;
	int write_it = 0;
	/* A writer that was killed. */
	ground_open(ground, "s", true);
	ground_put(ground_path(ground, "s", "session.json.new"), "{\"ver", 5);
	ground_open(ground, "s", false);
	MUST(registry_change(&ground->arena, ground->data, "s", ground_answer, &write_it, &record, &err));
	assert_int_equal(access(ground_path(ground, "s", "session.json.new"), F_OK), -1);
	/* A remover that was killed after the record was gone. */
	ground_put(ground_path(ground, "s", "approval"), "old", 3);
	assert_int_equal(unlink(ground_path(ground, "s", "session.json")), 0);
	assert_null(ground_open(ground, "s", true).why);
	assert_int_equal(access(ground_path(ground, "s", "approval"), F_OK), -1);
}

int main(void)
{
#define WITH_GROUND(test) cmocka_unit_test_setup_teardown(test, ground_setup, ground_teardown)
	const struct CMUnitTest tests[] = {
		WITH_GROUND(damaged_records), WITH_GROUND(other_things_in_its_place), WITH_GROUND(what_the_dead_left),
	};
	return cmocka_run_group_tests_name("registry-damage", tests, NULL, NULL);
}

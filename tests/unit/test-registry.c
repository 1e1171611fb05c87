/* Sessions on disk: what is kept, who may use one and who remove it, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "registry-ground.h"
#include "session/registry-json.h"

#include <cmocka.h>     /* after ours: it has a macro fail() */

/* ---- ids --------------------------------------------------------------------------------------------------------- */

static void ids(void **state)
{
	(void)state;
	char *longest = malloc(SESSION_ID_MAX + 2);
	memset(longest, 'x', SESSION_ID_MAX + 1);
	longest[SESSION_ID_MAX + 1] = '\0';
	struct cordon_error err;
	assert_int_equal(registry_check_id(longest, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	longest[SESSION_ID_MAX] = '\0';
	assert_int_equal(registry_check_id(longest, &err), 0);
	free(longest);
	static const char *const good[] = {
		"a", "/",   "..",      ".",        "../../etc/passwd", "-c",       "--",
		" ", "a b", "\"'\\$`", "\xc3\xbc", "\xf0\x9f\x92\xa9", "\xc2\xa0", "\xe2\x80\xae"
	};
	static const char *const bad[] = { "",         "\n",       "a\tb",     "\x1b[31m",     "\x7f",
		                           "\xff",     "a\xc3",    "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
		                           "\xc2\x80", "x\xc2\x9f" };
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(registry_check_id(good[i], NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(registry_check_id(bad[i], NULL), -1);
	/* Every byte by itself: a printable one of ASCII is an id. */
	for (int byte = 1; byte < 256; byte++) {
		char id[] = { (char)byte, '\0' };
		assert_int_equal(registry_check_id(id, NULL) == 0, byte >= 0x20 && byte < 0x7f);
	}
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

static void making_and_reading(void **state)
{
	struct ground *ground = *state;
	struct session_record record;
	struct cordon_error err;
	struct stat info;
	bool found = true;
	MUST(registry_read(&ground->arena, ground->data, "../x", &record, &found, &err));
	assert_false(found);
	/* Asking makes nothing. */
	assert_int_equal(rmdir(ground->data), 0);
	assert_int_equal(mkdir(ground->data, 0700), 0);
	record = ground_open(ground, "../x", true);
	assert_string_equal(record.id, "../x");
	assert_int_equal(record.state, SESSION_ACTIVE);
	assert_true(!record.why && !record.workspace && !record.has_baseline && !record.grant_count &&
	            !record.denial_count);
	assert_string_equal(record.created, record.changed);
	struct session_record again = ground_open(ground, "../x", false);
	assert_string_equal(again.created, record.created);
	assert_int_equal(stat(ground_path(ground, "../x", "session.json"), &info), 0);
	assert_int_equal(info.st_mode & 07777, 0600);
	assert_int_equal(stat(ground_path(ground, "../x", ""), &info), 0);
	assert_int_equal(info.st_mode & 07777, 0700);
}

static void everything_is_kept(void **state)
{
	struct ground *ground = *state;
	struct session_record record,
		first = { .workspace = "/some/\xfe/where", .own_root = "/r\xff", .has_baseline = true }, changed;
	struct cordon_error err;
	bool made, found;
	assert_int_equal(capability_baseline(&ground->arena, false, &first.baseline), 0);
	MUST(registry_open(&ground->arena, ground->data, "s", &first, &record, &made, &err));
	assert_true(made && record.workspace != first.workspace);
	MUST(registry_change(&ground->arena, ground->data, "s", ground_fill, NULL, &changed, &err));
	MUST(registry_read(&ground->arena, ground->data, "s", &record, &found, &err));
	char *before = record_write(&changed), *after = record_write(&record);
	assert_string_equal(before, after);
	free(before);
	free(after);
	assert_string_equal(record.workspace, "/some/\xfe/where");
	assert_string_equal(record.own_root, "/r\xff");
	assert_true(record.has_baseline && !record.baseline.spawn && record.baseline.deny.count > 3);
	assert_int_equal(record.state, SESSION_PAUSED);
	assert_string_equal(record.why, "three denials\n\"so\"");
	assert_int_equal(record.denied_in_a_row, 3);
	assert_int_equal(record.grant_count, 2);
	assert_string_equal(record.grants[0].set.fs_read.items[1], "/\xff");
	const struct place *place = &record.grants[0].places.items[0];
	assert_string_equal(place->alias, "/link\xff");
	assert_true(place->device == UINT64_MAX && place->inode == (uint64_t)INT64_MAX + 1 && place->is_directory);
	assert_true(!record.grants[0].places.items[1].alias && !record.grants[0].places.items[1].is_directory);
	assert_string_equal(record.denials[0].hash, "HASH");
	assert_null(record.denials[0].reason);
}

/* As a look again and again sees it. */
static void what_becomes_of_it(void **state)
{
	struct ground *ground = *state;
	struct session_look look = { 0 }, other = { 0 };
	struct session_record record;
	struct cordon_error err;
	assert_int_equal(registry_look(ground->data, "none", &other), SESSION_ENDED);
	ground_open(ground, "s", true);
	assert_int_equal(registry_look(ground->data, "s", &look), SESSION_ACTIVE);
	struct session_look before = look;
	/* What is not another file is not read. */
	look.state = SESSION_ENDED;
	assert_int_equal(registry_look(ground->data, "s", &look), SESSION_ENDED);
	look = before;
	MUST(registry_change(&ground->arena, ground->data, "s", ground_fill, NULL, &record, &err));
	assert_int_equal(registry_look(ground->data, "s", &look), SESSION_PAUSED);
	/* One that cannot be read says nothing. */
	int fd = open(ground_path(ground, "s", "session.json"), O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_true(fd >= 0 && write(fd, "{", 1) == 1);
	close(fd);
	assert_int_equal(registry_look(ground->data, "s", &look), SESSION_PAUSED);
	assert_int_equal(unlink(ground_path(ground, "s", "session.json")), 0);
	assert_int_equal(registry_look(ground->data, "s", &look), SESSION_ENDED);
}

static void what_contradicts(void **state)
{
	struct ground *ground = *state;
	struct session_record record, first = { .workspace = "/a" }, other = { .workspace = "/b" };
	struct session_record strict = { .has_baseline = true }, plain = { .has_baseline = false };
	struct cordon_error err;
	bool made;
	assert_int_equal(capability_baseline(&ground->arena, false, &strict.baseline), 0);
	MUST(registry_open(&ground->arena, ground->data, "s", &first, &record, &made, &err));
	MUST(registry_open(&ground->arena, ground->data, "s", &first, &record, &made, &err));
	MUST(registry_open(&ground->arena, ground->data, "s", &plain, &record, &made, &err));
	assert_string_equal(record.workspace, "/a");
	assert_int_equal(registry_open(&ground->arena, ground->data, "s", &other, &record, &made, &err), -1);
	assert_true(err.class == CORDON_E_INVALID_REQUEST && strstr(err.reason, "workspace"));
	assert_int_equal(registry_open(&ground->arena, ground->data, "s", &strict, &record, &made, &err), -1);
	assert_true(err.class == CORDON_E_INVALID_REQUEST && strstr(err.reason, "capabilities"));
	MUST(registry_open(&ground->arena, ground->data, "t", &strict, &record, &made, &err));
	MUST(registry_open(&ground->arena, ground->data, "t", &strict, &record, &made, &err));
	assert_false(made);
	assert_int_equal(registry_open(&ground->arena, ground->data, "t", &first, &record, &made, &err), -1);
	assert_int_equal(capability_baseline(&ground->arena, true, &strict.baseline), 0);
	assert_int_equal(registry_open(&ground->arena, ground->data, "t", &strict, &record, &made, &err), -1);
}

static void changing(void **state)
{
	struct ground *ground = *state;
	struct session_record record;
	struct cordon_error err;
	int answers[] = { 1, -1, 0 };
	assert_int_equal(registry_change(&ground->arena, ground->data, "s", ground_answer, &answers[2], &record, &err),
	                 -1);
	assert_int_equal(err.class, CORDON_E_NOT_FOUND);
	ground_open(ground, "s", true);
	MUST(registry_change(&ground->arena, ground->data, "s", ground_answer, &answers[0], &record, &err));
	assert_int_equal(registry_change(&ground->arena, ground->data, "s", ground_answer, &answers[1], &record, &err),
	                 -1);
	assert_int_equal(err.class, CORDON_E_SESSION_ENDED);
	assert_null(ground_open(ground, "s", false).why);
	MUST(registry_change(&ground->arena, ground->data, "s", ground_answer, &answers[2], NULL, &err));
	assert_string_equal(ground_open(ground, "s", false).why, "changed");
}

static int refuse_making(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arena, (void)arg;
	assert_string_equal(record->id, "s");
	err->class = CORDON_E_AUDIT_UNAVAILABLE;
	return -1;
}

static void a_say_in_the_making(void **state)
{
	struct ground *ground = *state;
	struct session_record record;
	struct cordon_error err;
	bool made, found;
	assert_int_equal(
		registry_make(&ground->arena, ground->data, "s", NULL, refuse_making, NULL, &record, &made, &err), -1);
	assert_int_equal(err.class, CORDON_E_AUDIT_UNAVAILABLE);
	MUST(registry_read(&ground->arena, ground->data, "s", &record, &found, &err));
	assert_false(found);
	/* Only the maker is asked. */
	ground_open(ground, "s", true);
	MUST(registry_make(&ground->arena, ground->data, "s", NULL, refuse_making, NULL, &record, &made, &err));
	assert_false(made);
}

/* ---- listing, using, removing ------------------------------------------------------------------------------------ */

struct listed {
	size_t whole, damaged;
	bool stop;
};

static int count(void *arg, const struct session_record *record, const char *name)
{
	struct listed *listed = arg;
	assert_int_equal(strlen(name), 32);
	*(record ? &listed->whole : &listed->damaged) += 1;
	return listed->stop;
}

static void listing(void **state)
{
	struct ground *ground = *state;
	struct cordon_error err;
	struct listed none = { 0 }, all = { 0 }, one = { .stop = true };
	int fd;
	MUST(registry_list(ground->data, count, &none, &err));
	assert_true(!none.whole && !none.damaged);
	for (int i = 0; i < 20; i++)
		ground_open(ground, arena_printf(&ground->arena, "s%d", i), true);
	ground_put(ground_path(ground, "s3", "session.json"), "x", 1);
	size_t length;
	char *text = ground_get(ground, ground_path(ground, "s4", "session.json"), &length);
	ground_put(ground_path(ground, "s5", "session.json"), text, length);
	/* In the making. */
	fd = ground_use(ground, "half", false);
	close(fd);
	ground_put(arena_printf(&ground->arena, "%s/sessions/stray", ground->data), "", 0);
	MUST(registry_list(ground->data, count, &all, &err));
	assert_int_equal(all.whole, 18);
	assert_int_equal(all.damaged, 2);
	MUST(registry_list(ground->data, count, &one, &err));
	assert_int_equal(one.whole + one.damaged, 1);
}

static void using_and_removing(void **state)
{
	struct ground *ground = *state;
	struct cordon_error err;
	int first, second, alone;
	assert_int_equal(registry_exclude(ground->data, "s", &alone, &err), -1);
	assert_int_equal(err.class, CORDON_E_NOT_FOUND);
	assert_int_equal(registry_remove(ground->data, "s", &err), -1);
	assert_int_equal(err.class, CORDON_E_NOT_FOUND);
	first = ground_use(ground, "s", false);
	ground_open(ground, "s", true);
	second = ground_use(ground, "s", true);
	close(first);
	assert_int_equal(registry_exclude(ground->data, "s", &alone, &err), -1);
	assert_int_equal(err.class, CORDON_E_SESSION_BUSY);
	close(second);
	MUST(registry_exclude(ground->data, "s", &alone, &err));
	MUST(registry_remove(ground->data, "s", &err));
	close(alone);
	assert_int_equal(access(ground_path(ground, "s", ""), F_OK), -1);
	ground_open(ground, "s", true);
}

static void using_says_what_disagrees(void **state)
{
	struct ground *ground = *state;
	struct session_record record = { 0 };
	const struct session_record first = { .workspace = "/elsewhere" };
	struct cordon_error err;
	bool found = false;
	int fd = -1, alone = -1;
	ground_open(ground, "s", true);
	assert_int_equal(registry_use(&ground->arena, ground->data, "s", &first, &fd, &record, &found, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	ground_put(ground_path(ground, "s", "session.json"), "x", 1);
	assert_int_equal(registry_use(&ground->arena, ground->data, "s", NULL, &fd, &record, &found, &err), -1);
	/* Neither holds it. */
	assert_int_equal(fd, -1);
	MUST(registry_exclude(ground->data, "s", &alone, &err));
	close(alone);
}

int main(void)
{
#define WITH_GROUND(test) cmocka_unit_test_setup_teardown(test, ground_setup, ground_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids),
		WITH_GROUND(making_and_reading),
		WITH_GROUND(everything_is_kept),
		WITH_GROUND(what_becomes_of_it),
		WITH_GROUND(what_contradicts),
		WITH_GROUND(changing),
		WITH_GROUND(a_say_in_the_making),
		WITH_GROUND(listing),
		WITH_GROUND(using_and_removing),
		WITH_GROUND(using_says_what_disagrees),
	};
	return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}

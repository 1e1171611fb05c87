/* What is kept of a session says the same as its file, after every change; and the lock holds for as long as anybody has it. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "session/registry-kept.h"

#include <cmocka.h>

#include "base/remove.h"
#include "local-ground.h"
#include "session/registry-file.h"

struct ground {
	char top[PATH_MAX];
	struct arena arena;
	struct vigil *vigil;
	struct registry_kept *kept;
	struct cordon_error err;
};

static int make(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	assert_non_null(ground);
	snprintf(ground->top, sizeof(ground->top), "%s/test-registry-kept-XXXXXX", local_ground());
	assert_non_null(mkdtemp(ground->top));
	ground->vigil = vigil_new();
	assert_non_null(ground->vigil);
	ground->kept = registry_kept_new(ground->vigil, ground->top);
	assert_non_null(ground->kept);
	*state = ground;
	return 0;
}

static int clean(void **state)
{
	struct ground *ground = *state;
	registry_kept_free(ground->kept);
	vigil_free(ground->vigil);
	remove_tree(AT_FDCWD, ground->top);
	arena_free(&ground->arena);
	free(ground);
	return 0;
}

static void begin(struct ground *ground, const char *id)
{
	struct session_record record;
	bool made;
	assert_int_equal(registry_open(&ground->arena, ground->top, id, NULL, &record, &made, &ground->err), 0);
	assert_true(made);
}

static struct session_hold use(struct ground *ground, const char *id, struct session_record *ret_record, bool *ret_found)
{
	struct session_hold hold = SESSION_HOLD_NONE;
	if (registry_kept_use(ground->kept, &ground->arena, id, NULL, 1, &hold, ret_record, ret_found, &ground->err) < 0)
		fail_msg("%s", ground->err.reason);
	return hold;
}

/* What is used is what the file says; and whether it was kept. */
static bool check(struct ground *ground, const char *id)
{
	struct session_record record, file;
	bool found, there;
	struct session_hold hold = use(ground, id, &record, &found);
	bool kept = hold.kept;
	assert_int_equal(registry_read(&ground->arena, ground->top, id, &file, &there, &ground->err), 0);
	assert_int_equal(found, there);
	if (found) {
		assert_string_equal(record.id, file.id);
		assert_string_equal(record.changed, file.changed);
		assert_int_equal(record.state, file.state);
		assert_int_equal(record.grant_count, file.grant_count);
		assert_string_equal(record.why ? record.why : "", file.why ? file.why : "");
	}
	registry_kept_release(ground->kept, &hold);
	return kept;
}

static int set_why(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arena, (void)err;
	record->state = SESSION_PAUSED;
	record->why = arg;
	return 0;
}

static void change(struct ground *ground, const char *id, const char *why)
{
	assert_int_equal(registry_change(&ground->arena, ground->top, id, set_why, (void *)(uintptr_t)why, NULL, &ground->err), 0);
}

static int try_exclude(struct ground *ground, const char *id)
{
	auto_close int lock = -1;
	return registry_exclude(ground->top, id, &lock, &ground->err);
}

static void a_change_is_seen_at_once(void **state)
{
	struct ground *ground = *state;
	char why[32];
	begin(ground, "s");
	assert_false(check(ground, "s"));
	assert_true(check(ground, "s"));
	for (int i = 0; i < 50; i++) {
		snprintf(why, sizeof(why), "reason %d", i);
		change(ground, "s", why);
		assert_true(check(ground, "s"));
		assert_true(check(ground, "s"));
	}
}

/* By somebody who does not replace the file, and has it the same size. */
static void so_is_one_by_hand(void **state)
{
	struct ground *ground = *state;
	struct session_record record;
	struct where where = { 0 };
	char path[PATH_MAX + 32], text[4096];
	bool found;
	begin(ground, "s");
	change(ground, "s", "reason 1");
	check(ground, "s");
	assert_true(check(ground, "s"));
	assert_int_equal(where_find(ground->top, "s", &where, &ground->err), 0);
	snprintf(path, sizeof(path), "%s/" REGISTRY_RECORD, where.path);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	ssize_t length = read(fd, text, sizeof(text) - 1);
	assert_true(length > 0);
	text[length] = '\0';
	char *at = strstr(text, "reason 1");
	assert_non_null(at);
	assert_int_equal(pwrite(fd, "reason 2", 8, at - text), 8);
	close(fd);
	struct session_hold hold = use(ground, "s", &record, &found);
	assert_string_equal(record.why, "reason 2");
	registry_kept_release(ground->kept, &hold);
	/* What others can write is not believed. */
	snprintf(text, sizeof(text), "chmod g+w %s", path);
	assert_int_equal(system(text), 0);
	assert_int_equal(registry_kept_use(ground->kept, &ground->arena, "s", NULL, 1, &hold, &record, &found, &ground->err), -1);
	snprintf(text, sizeof(text), "chmod g-w %s; chmod o+w %s", path, where.path);
	assert_int_equal(system(text), 0);
	assert_int_equal(registry_kept_use(ground->kept, &ground->arena, "s", NULL, 1, &hold, &record, &found, &ground->err), -1);
}

static void what_is_held_is_not_removed(void **state)
{
	struct ground *ground = *state;
	struct session_record one, two;
	bool found;
	begin(ground, "s");
	check(ground, "s");
	struct session_hold a = use(ground, "s", &one, &found), b = use(ground, "s", &two, &found);
	assert_true(a.kept && a.kept == b.kept);
	assert_int_equal(try_exclude(ground, "s"), -1);
	registry_kept_release(ground->kept, &a);
	assert_int_equal(try_exclude(ground, "s"), -1);
	assert_int_equal(ground->err.class, CORDON_E_SESSION_BUSY);
	/* Changed while it is in use: who comes now has another record, and what the first one has stays. */
	change(ground, "s", "meanwhile");
	a = use(ground, "s", &one, &found);
	assert_true(!a.kept && a.lock_fd >= 0);
	assert_string_equal(one.why, "meanwhile");
	assert_true(!two.why && two.state == SESSION_ACTIVE);
	registry_kept_release(ground->kept, &b);
	assert_int_equal(try_exclude(ground, "s"), -1);
	registry_kept_release(ground->kept, &a);
	assert_int_equal(try_exclude(ground, "s"), 0);
	assert_true(check(ground, "s"));
}

static void what_was_removed_is_gone(void **state)
{
	struct ground *ground = *state;
	for (int time = 0; time < 5; time++) {
		begin(ground, "s");
		check(ground, "s");
		assert_true(check(ground, "s") || time == 0);
		assert_int_equal(try_exclude(ground, "s"), 0);
		assert_int_equal(registry_remove(ground->top, "s", &ground->err), 0);
		assert_false(check(ground, "s"));
	}
}

static void a_forked_child_does_not_let_go(void **state)
{
	struct ground *ground = *state;
	struct session_record record;
	bool found;
	begin(ground, "s");
	check(ground, "s");
	struct session_hold hold = use(ground, "s", &record, &found);
	assert_non_null(hold.kept);
	pid_t child = fork();
	if (!child) {
		registry_kept_release(ground->kept, &hold);
		_exit(check(ground, "s"));
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(try_exclude(ground, "s"), -1);
	registry_kept_release(ground->kept, &hold);
	assert_int_equal(try_exclude(ground, "s"), 0);
}

static void there_is_room_for_some(void **state)
{
	struct ground *ground = *state;
	char id[32];
	struct session_record record;
	struct session_hold holds[70];
	bool found;
	for (int i = 0; i < 70; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		begin(ground, id);
	}
	for (int time = 0; time < 3; time++)
		for (int i = 0; i < 70; i++) {
			snprintf(id, sizeof(id), "s%d", i);
			if (time == 2)
				holds[i] = use(ground, id, &record, &found);
			else
				check(ground, id);
			check(ground, id);
		}
	for (int i = 0; i < 70; i++)
		registry_kept_release(ground->kept, &holds[i]);
	for (int i = 0; i < 70; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		assert_int_equal(try_exclude(ground, id), 0);
	}
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, make, clean)
	const struct CMUnitTest tests[] = {
		ROW(a_change_is_seen_at_once), ROW(so_is_one_by_hand), ROW(what_is_held_is_not_removed),
		ROW(what_was_removed_is_gone), ROW(a_forked_child_does_not_let_go), ROW(there_is_room_for_some),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The base view and the caller's name: what is kept says the same as what is looked at anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "host/view.h"
#include "host/host.h"

#include <cmocka.h>

#include "arena-ground.h"

static struct host_watch *host_watch;
static const struct strings none;

static int setup(void **state)
{
	host_watch = host_watch_new();
	assert_non_null(host_watch);
	*state = host_view_new(host_watch);
	assert_non_null(*state);
	return 0;
}

static int teardown(void **state)
{
	host_view_free(*state);
	host_watch_free(host_watch);
	return free_arena(state);
}

static void assert_same(const char *a, const char *b)
{
	assert_int_equal(!a, !b);
	if (a)
		assert_string_equal(a, b);
}

static void kept_is_as_found(void **state)
{
	struct host_view *view = *state;
	struct cordon_error err;
	struct host_entries first;
	assert_int_equal(host_base_view(&arena, view, &none, 1, &first, &err), 0);
	assert_true(first.count > 0);
	for (int time = 0; time < 3; time++) {
		struct host_entries again;
		assert_int_equal(host_base_view(&arena, view, &none, 1, &again, &err), 0);
		assert_int_equal(again.count, first.count);
		for (size_t i = 0; i < first.count; i++) {
			assert_string_equal(again.items[i].path, first.items[i].path);
			assert_same(again.items[i].source, first.items[i].source);
			assert_same(again.items[i].link, first.items[i].link);
			assert_int_equal(again.items[i].kind, first.items[i].kind);
			assert_int_equal(again.items[i].stamp, first.items[i].stamp);
		}
	}
}

static bool has(const struct host_entries *entries, const char *path)
{
	for (size_t i = 0; i < entries->count; i++)
		if (!strcmp(entries->items[i].path, path))
			return true;
	return false;
}

/* What one configuration adds is not there for the next, although answers are kept. */
static void another_configuration_has_another_view(void **state)
{
	struct host_view *view = *state;
	struct cordon_error err;
	const char *items[] = { "/etc/fstab", "/etc/shado*", NULL };
	const struct strings extra = { items, 2, 2, true };
	for (int time = 0; time < 6; time++) {
		struct host_entries with, without;
		assert_int_equal(host_base_view(&arena, view, &extra, 1, &with, &err), 0);
		assert_int_equal(host_base_view(&arena, view, &none, 1, &without, &err), 0);
		assert_int_equal(has(&with, "/etc/fstab"), access("/etc/fstab", F_OK) == 0);
		assert_false(has(&without, "/etc/fstab"));
		assert_false(has(&with, "/etc/shadow"));
		assert_true(has(&with, "/etc/hosts"));
	}
}

static void each_user_has_their_own_name(void **state)
{
	struct host_view *view = *state;
	const unsigned users[] = { 0, 1, 1, 0, 4000000000, 0, 4000000000, 4000000000, geteuid() };
	for (size_t i = 0; i < ARRAY_SIZE(users); i++)
		assert_string_equal(host_view_user(&arena, view, 1, users[i]), host_user_name(&arena, users[i]));
	assert_string_equal(host_view_user(&arena, view, 1, 0), "root");
	assert_string_equal(host_view_user(&arena, view, 1, 4000000000), "user");
}

/* A program that runs one command and ends is not to pay for what only the next would have of it. */
static void one_command_watches_nothing(void **state)
{
	struct host_view *view = *state;
	struct cordon_error err;
	struct host_entries entries;
	for (int command = 0; command < 2; command++) {
		assert_int_equal(host_watch_poll(host_watch), false);
		assert_non_null(host_view_user(&arena, view, 1, geteuid()));
		assert_int_equal(host_base_view(&arena, view, &none, 1, &entries, &err), 0);
	}
	assert_int_equal(host_watch_poll(host_watch), true);
	for (int command = 0; command < 3; command++)
		assert_string_equal(host_view_user(&arena, view, 1, geteuid()), host_user_name(&arena, geteuid()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kept_is_as_found, setup, teardown),
		cmocka_unit_test_setup_teardown(another_configuration_has_another_view, setup, teardown),
		cmocka_unit_test_setup_teardown(each_user_has_their_own_name, setup, teardown),
		cmocka_unit_test_setup_teardown(one_command_watches_nothing, setup, teardown),
	};
	return cmocka_run_group_tests_name("host-view", tests, NULL, NULL);
}

/* The configuration without any file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include <cmocka.h>

#include "cordon.h"
#include "policy/config-read.h"
#include "policy/config-store.h"
#include "config-ground.h"

static void expect_same_list(const struct strings *a, const struct strings *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++)
		assert_string_equal(a->items[i], b->items[i]);
}

/* What is in force without any file is made twice: quickly, and from the rows. */
static void test_plain(void **state)
{
	(void)state;
	struct cordon_error err;
	struct arena arena = { 0 };
	struct config plain;
	const struct config *whole, *taken;
	assert_int_equal(config_plain(&arena, &plain), 0);
	assert_int_equal(config_builtin(&whole, &err), 0);
	const struct capability_set *a = &plain.baseline, *b = &whole->baseline;
	const struct strings *const lists[][2] = {
		{ &a->fs_read, &b->fs_read }, { &a->fs_write, &b->fs_write }, { &a->hosts, &b->hosts },
		{ &a->programs, &b->programs }, { &a->devices, &b->devices }, { &a->sockets, &b->sockets },
		{ &a->deny, &b->deny }, { &a->protect, &b->protect }, { &a->exempt, &b->exempt },
		{ &plain.toolchains, &whole->toolchains }, { &plain.read_only, &whole->read_only },
		{ &plain.env_pass, &whole->env_pass }, { &plain.env_set, &whole->env_set },
		{ &plain.rules.allowed_paths, &whole->rules.allowed_paths },
		{ &plain.rules.denied_paths, &whole->rules.denied_paths },
	};
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		expect_same_list(lists[i][0], lists[i][1]);
	assert_memory_equal(&a->limits, &b->limits, sizeof(a->limits));
	assert_true(a->network == b->network && a->spawn == b->spawn);
	assert_memory_equal(&plain.usual, &whole->usual, sizeof(plain.usual));
	assert_true(plain.enabled == whole->enabled && plain.degrade == whole->degrade &&
	            plain.choose_toolchains == whole->choose_toolchains && plain.sync_disk == whole->sync_disk &&
	            plain.required_limits == whole->required_limits && plain.rules.count == whole->rules.count &&
	            plain.network.exempt_count == whole->network.exempt_count &&
	            plain.network.name_count == whole->network.name_count &&
	            plain.network.connections == whole->network.connections &&
	            plain.network.total_connections == whole->network.total_connections &&
	            plain.network.connect_ms == whole->network.connect_ms &&
	            plain.network.idle_ms == whole->network.idle_ms &&
	            plain.network.header_bytes == whole->network.header_bytes &&
	            plain.network.bytes == whole->network.bytes);
	assert_true(!plain.driver && !whole->driver && !plain.view && !whole->view && !plain.workspace_root &&
	            !whole->workspace_root && !plain.tools_dir && !whole->tools_dir && !plain.cgroup && !whole->cgroup);
	assert_true(plain.approval.timeout_ms == whole->approval.timeout_ms && plain.approval.queue == whole->approval.queue &&
	            plain.approval.denials_to_pause == whole->approval.denials_to_pause);
	/* A file, wherever it comes, is read; and so is none where one was. */
	assert_int_equal(config_store_take(store, NULL, NULL, workspace_fd, workspace, false, ground_hear(), &taken, &err), 0);
	assert_int_equal(taken->baseline.limits.processes, a->limits.processes);
	config_unref(taken);
	config_unref(whole);
	arena_free(&arena);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_setup, ground_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_plain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

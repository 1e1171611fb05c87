/* Capability sets: single cases. The laws they follow are in test-capability-laws.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena-ground.h"
#include "policy/capability.h"

#define LIST(...) { .items = (const char *[]){ __VA_ARGS__, NULL }, \
	.count = sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *) }

#define NOTHING { .spawn = false }

static void the_baseline(void **state)
{
	(void)state;
	struct capability_set set;
	assert_int_equal(capability_baseline(&arena, true, &set), 0);
	assert_true(set.spawn);
	assert_int_equal(set.network, NETWORK_NONE);
	assert_int_equal(set.fs_read.count + set.fs_write.count + set.hosts.count + set.programs.count +
	                 set.devices.count + set.sockets.count, 0);
	const struct limits limits = { 2147483648u, 100, 64, 1073741824, 60000, 1048576, 262144, 1024, 268435456 };
	assert_memory_equal(&set.limits, &limits, sizeof(limits));
	static const char *const deny[] = { "**/.env",        "**/.env.*", "**/*.pem", "**/*.key",  "**/id_rsa*",
		                            "**/id_ed25519*", "**/.ssh",   "**/.aws",  "**/.gnupg", "**/.netrc" };
	assert_int_equal(set.deny.count, ARRAY_SIZE(deny));
	for (size_t i = 0; i < ARRAY_SIZE(deny); i++)
		assert_true(strings_find(&set.deny, deny[i]) >= 0);
	assert_true(set.exempt.count > 0);
	assert_true(strings_find(&set.protect, ".git/hooks") >= 0);
	assert_true(strings_find(&set.protect, ".git/config") >= 0);
	assert_true(strings_find(&set.protect, ".cordon.toml") >= 0);
	assert_true(strings_find(&set.protect, ".git") >= 0);
	assert_true(strings_find(&set.exempt, ".git/") >= 0);

	struct capability_set strict;
	const char *excess = NULL, *subject = NULL;
	assert_int_equal(capability_baseline(&arena, false, &strict), 0);
	assert_true(capability_within(&strict, &set, NULL, NULL));
	assert_false(capability_within(&set, &strict, &excess, &subject));
	assert_string_equal(excess, "spawn");
	for (int mode = 0; mode < NETWORK_MODE_MAX; mode++)
		assert_string_equal(network_mode_names[mode], ((const char *[]){ "none", "hosts", "all" })[mode]);
}

static const struct row {
	struct capability_set set, ceiling;
	const char *excess, *subject;           /* NULL: it is within */
} rows[] = {
	{ NOTHING, NOTHING, NULL, NULL },
	{ { .fs_read = LIST("/data/a") }, { .fs_read = LIST("/data/a") }, NULL, NULL },
	{ { .fs_read = LIST("/data/a/b") }, { .fs_read = LIST("/data/a") }, NULL, NULL },
	{ { .fs_read = LIST("/data/ab") }, { .fs_read = LIST("/data/a") }, "fs_read", "/data/ab" },
	{ { .fs_read = LIST("/data") }, { .fs_read = LIST("/data/a") }, "fs_read", "/data" },
	{ { .fs_read = LIST("/x", "/") }, { .fs_read = LIST("/x") }, "fs_read", "/" },
	{ { .fs_read = LIST("/x") }, { .fs_read = LIST("/") }, NULL, NULL },
	{ { .fs_read = LIST("/data/a") }, { .fs_write = LIST("/data") }, NULL, NULL },
	{ { .fs_write = LIST("/data/a") }, { .fs_read = LIST("/data") }, "fs_write", "/data/a" },
	/* Not normalised: covered by nothing, and covering nothing. */
	{ { .fs_read = LIST("/data/a/../b") }, { .fs_read = LIST("/data/a") }, "fs_read", "/data/a/../b" },
	{ { .fs_read = LIST("/data/a/..") }, { .fs_read = LIST("/") }, "fs_read", "/data/a/.." },
	{ { .fs_read = LIST("/data/a/") }, { .fs_read = LIST("/data/a") }, "fs_read", "/data/a/" },
	{ { .fs_read = LIST("/data//a") }, { .fs_read = LIST("/data") }, "fs_read", "/data//a" },
	{ { .fs_read = LIST("/data/./a") }, { .fs_read = LIST("/data") }, "fs_read", "/data/./a" },
	{ { .fs_read = LIST("/data/a") }, { .fs_read = LIST("/data/") }, "fs_read", "/data/a" },
	{ { .fs_read = LIST("/data/a") }, { .fs_read = LIST("") }, "fs_read", "/data/a" },
	{ { .fs_read = LIST("/data/a") }, { .fs_read = LIST(".") }, "fs_read", "/data/a" },
	{ { .fs_read = LIST("/data/a") }, { .fs_read = LIST("..") }, "fs_read", "/data/a" },
	{ { .fs_read = LIST("data") }, { .fs_read = LIST("/") }, "fs_read", "data" },
	{ { .fs_read = LIST("/a/...") }, { .fs_read = LIST("/a") }, NULL, NULL },
	{ { .fs_read = LIST("/") }, { .fs_read = LIST("/") }, NULL, NULL },
	{ { .fs_read = LIST("//") }, { .fs_read = LIST("/") }, "fs_read", "//" },
	{ { .fs_read = LIST("/a") }, { .fs_read = LIST("//") }, "fs_read", "/a" },
	{ { .fs_read = LIST("/a") }, { .fs_read = LIST("/..") }, "fs_read", "/a" },
	{ { .fs_read = LIST("/data/a") }, { .fs_read = LIST("/data/A") }, "fs_read", "/data/a" },
	{ { .fs_read = LIST("/a/..b/.c") }, { .fs_read = LIST("/a/..b") }, NULL, NULL },
	{ { .network = NETWORK_ALL }, { .network = NETWORK_ALL }, NULL, NULL },
	{ { .network = NETWORK_ALL }, { .network = NETWORK_HOSTS, .hosts = LIST("*.a:1") }, "network", "all" },
	{ { .network = NETWORK_HOSTS, .hosts = LIST("a.com:443") }, NOTHING, "network", "a.com:443" },
	{ { .network = NETWORK_HOSTS }, NOTHING, NULL, NULL },
	{ NOTHING, { .network = NETWORK_HOSTS }, NULL, NULL },
	/* Hosts that are not in force are not asked for. */
	{ { .hosts = LIST("a.com:443") }, NOTHING, NULL, NULL },
	{ { .network = NETWORK_ALL, .hosts = LIST("a.com:443") },
	  { .network = NETWORK_HOSTS, .hosts = LIST("a.com:443") },
	  "network",
	  "all" },
	{ { .network = NETWORK_HOSTS, .hosts = LIST("a.com:443") },
	  { .network = NETWORK_HOSTS },
	  "network",
	  "a.com:443" },
	{ { .network = NETWORK_HOSTS, .hosts = LIST("a.com:443") }, { .network = NETWORK_ALL }, NULL, NULL },
#define HOSTS(entry, root, excess) { { .network = NETWORK_HOSTS, .hosts = LIST(entry) }, \
	{ .network = NETWORK_HOSTS, .hosts = LIST("x.org:1", root) }, excess ? "network" : NULL, excess }
	HOSTS("a.com:443", "a.com:443", NULL),
	HOSTS("A.com:443", "a.COM:443", NULL),
	HOSTS("a.com:80", "a.com:443", "a.com:80"),
	HOSTS("b.a.com:443", "*.a.com:443", NULL),
	HOSTS("c.b.a.com:443", "*.a.com:443", NULL),
	HOSTS("*.b.a.com:443", "*.a.com:443", NULL),
	HOSTS("a.com:443", "*.a.com:443", "a.com:443"),
	HOSTS("ba.com:443", "*.a.com:443", "ba.com:443"),
	HOSTS(".a.com:443", "*.a.com:443", ".a.com:443"),
	HOSTS("..a.com:443", "*.a.com:443", "..a.com:443"),
	HOSTS("b.a.com:80", "*.a.com:443", "b.a.com:80"),
	HOSTS("*.a.com:443", "b.a.com:443", "*.a.com:443"),
	HOSTS("*.a.com:443", "*.b.a.com:443", "*.a.com:443"),
	HOSTS("1.2.3.4:443", "*.2.3.4:443", "1.2.3.4:443"),
	HOSTS("1.2.3.0x4:443", "*.2.3.0x4:443", "1.2.3.0x4:443"),
	HOSTS("[::1]:443", "*.:443", "[::1]:443"),
	HOSTS("1.2.3.4:443", "1.2.3.4:443", NULL),
	HOSTS("[::1]:443", "[::1]:443", NULL),
	HOSTS("[::1]:443", "[::1]:80", "[::1]:443"),
	HOSTS("a.com.:443", "a.com:443", NULL),
	HOSTS("b.a.com:443", "*.A.com.:443", NULL),
	HOSTS("a.com..:443", "a.com:443", "a.com..:443"),
	{ { .programs = LIST("/bin/ls") }, NOTHING, NULL, NULL },
	{ NOTHING, { .programs = LIST("/bin/ls") }, "programs", "any" },
	{ { .programs = LIST("/bin/ls", "/bin/rm") }, { .programs = LIST("/bin/ls") }, "programs", "/bin/rm" },
	{ { .programs = LIST("/usr/bin/ls") }, { .programs = LIST("/usr/bin") }, NULL, NULL },
	{ { .devices = LIST("/dev/dri/card0") }, { .devices = LIST("/dev/dri") }, NULL, NULL },
	{ { .devices = LIST("/dev/kvm") }, NOTHING, "devices", "/dev/kvm" },
	{ { .sockets = LIST("/run/a.sock") }, { .sockets = LIST("/run/b.sock") }, "sockets", "/run/a.sock" },
	{ { .spawn = true }, NOTHING, "spawn", "true" },
	{ NOTHING, { .spawn = true }, NULL, NULL },
	{ { .limits.memory_bytes = 10 }, { .limits.memory_bytes = 10 }, NULL, NULL },
	{ { .limits.memory_bytes = 11 }, { .limits.memory_bytes = 10 }, "limits", "memory" },
	{ NOTHING, { .limits.memory_bytes = 10 }, "limits", "memory" },
	{ { .limits.wall_ms = 10 }, NOTHING, NULL, NULL },
	{ { .limits.tmp_bytes = UINT64_MAX }, { .limits.tmp_bytes = UINT64_MAX - 1 }, "limits", "tmp" },
	{ NOTHING, { .limits.tmp_bytes = UINT64_MAX }, NULL, NULL },
	/* What is denied holds anyhow. */
	{ NOTHING, { .deny = LIST("**/.env"), .protect = LIST("x") }, NULL, NULL },
};

static void single_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *excess = NULL, *subject = NULL;
		bool within = capability_within(&rows[i].set, &rows[i].ceiling, &excess, &subject);
		if (within != !rows[i].excess)
			fail_msg("row %zu: %d, %s %s", i, within, excess, subject);
		if (within) {
			assert_null(excess);
			continue;
		}
		assert_string_equal(excess, rows[i].excess);
		assert_string_equal(subject, rows[i].subject);
		assert_false(capability_within(&rows[i].set, &rows[i].ceiling, NULL, NULL));
	}
}

/* Each limit counts, and each by itself. */
static void every_limit_is_compared(void **state)
{
	(void)state;
	const char *names[sizeof(struct limits) / sizeof(uint64_t)] = { NULL };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct capability_set set = NOTHING, ceiling = NOTHING;
		const char *excess;
		((uint64_t *)&set.limits)[i] = 2;
		((uint64_t *)&ceiling.limits)[i] = 1;
		assert_false(capability_within(&set, &ceiling, &excess, &names[i]));
		assert_string_equal(excess, "limits");
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(names[i], names[j]);
	}
}

static void what_merging_does_not_loosen(void **state)
{
	(void)state;
	struct capability_set base,
		grant = { .deny = LIST("**/x", "**/.env"),
		          .exempt = LIST(".git/hooks"),
		          .limits.memory_bytes = 1,
		          .limits.processes = 1000 },
		made;
	assert_int_equal(capability_baseline(&arena, true, &base), 0);
	assert_int_equal(capability_merge(&arena, &base, &grant, &made), 0);
	assert_int_equal(made.deny.count, base.deny.count + 1);
	assert_int_equal(made.protect.count, base.protect.count);
	assert_int_equal(strings_find(&made.exempt, ".git/hooks"), -1);
	assert_int_equal(made.limits.memory_bytes, 1);
	assert_int_equal(made.limits.processes, 1000);
	assert_int_equal(made.limits.wall_ms, 60000);
	const char *excess, *subject;
	assert_false(capability_within(&made, &base, &excess, &subject));
	assert_string_equal(subject, "processes");

	struct capability_set only = { .programs = LIST("/bin/ls") }, other = { .programs = LIST("/bin/rm") },
			      none = NOTHING;
	assert_int_equal(capability_merge(&arena, &only, &none, &made), 0);
	assert_int_equal(made.programs.count, 1);
	assert_int_equal(capability_merge(&arena, &none, &only, &made), 0);
	assert_int_equal(made.programs.count, 1);
	assert_int_equal(capability_merge(&arena, &only, &other, &made), 0);
	assert_int_equal(made.programs.count, 2);

	/* Hosts that a set does not use are not picked up by a merge that does. */
	struct capability_set unused = { .network = NETWORK_NONE, .hosts = LIST("a.com:1") };
	struct capability_set used = { .network = NETWORK_HOSTS, .hosts = LIST("b.com:1") };
	assert_int_equal(capability_merge(&arena, &unused, &used, &made), 0);
	assert_int_equal(made.network, NETWORK_HOSTS);
	assert_int_equal(made.hosts.count, 1);
	assert_string_equal(made.hosts.items[0], "b.com:1");
}

static void normalising(void **state)
{
	(void)state;
	struct capability_set set = { .fs_read = LIST("/b//c/", "/a/../b", "/b/./c/d", "/w/x"),
		                      .fs_write = LIST("/w/", "/w"),
		                      .network = NETWORK_HOSTS,
		                      .hosts = LIST("X.a.com:1", "*.A.com.:1", "[::A]:1") },
			      made;
	assert_int_equal(capability_normalise(&arena, &set, &made, NULL), 0);
	assert_int_equal(made.fs_read.count, 1);
	assert_string_equal(made.fs_read.items[0], "/b");
	assert_int_equal(made.fs_write.count, 1);
	assert_string_equal(made.fs_write.items[0], "/w");
	assert_int_equal(made.hosts.count, 2);
	assert_string_equal(made.hosts.items[0], "*.a.com:1");
	assert_string_equal(made.hosts.items[1], "[::a]:1");
	struct capability_set bad = { .sockets = LIST("/ok", "rel/ative") };
	const char *subject = NULL;
	made.spawn = true;
	assert_int_equal(capability_normalise(&arena, &bad, &made, &subject), -1);
	assert_string_equal(subject, "rel/ative");
	assert_true(made.spawn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_baseline, free_arena),
		cmocka_unit_test(single_cases),
		cmocka_unit_test(every_limit_is_compared),
		cmocka_unit_test_teardown(what_merging_does_not_loosen, free_arena),
		cmocka_unit_test_teardown(normalising, free_arena),
	};
	return cmocka_run_group_tests_name("capability", tests, NULL, NULL);
}

/* Finding names: what is found, what a warm cache may and may not miss, and that a hostile tree or file does no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compat.h"
#include "base/vigil.h"
#include "cordon.h"
#include "session/names-cache.h"
#include "session/names-look.h"
#include "session/names-walk.h"
#include "session/names.h"
#include "local-ground.h"

#define BUDGET_US 60000000 /* more than any machine needs */

struct place_under_test {
	char root[64], cache[64];
	int root_fd, cache_fd;
	struct arena arena;
	struct names names;
	struct strings deny, protect, exempt;
	struct vigil *vigil;            /* or NULL: nothing is kept in memory */
	struct names_memory *memory;
};

static const char *const deny[] = { "**/.env", "**/.env.*", "**/*.pem", "**/id_rsa*", "**/.ssh" };
static const char *const protect[] = { ".git/hooks", ".git/config", ".cordon.toml" };

static int setup(void **state)
{
	struct place_under_test *test = calloc(1, sizeof(*test));
	assert_non_null(test);
	snprintf(test->root, sizeof(test->root), "%s/cordon-names-XXXXXX", local_ground());
	snprintf(test->cache, sizeof(test->cache), "%s/cordon-names-XXXXXX", local_ground());
	assert_non_null(mkdtemp(test->root));
	assert_non_null(mkdtemp(test->cache));
	test->root_fd = open(test->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	test->cache_fd = open(test->cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(deny); i++)
		assert_int_equal(strings_add(&test->arena, &test->deny, deny[i]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(protect); i++)
		assert_int_equal(strings_add(&test->arena, &test->protect, protect[i]), 0);
	*state = test;
	return 0;
}

static int setup_memory(void **state)
{
	setup(state);
	struct place_under_test *test = *state;
	test->vigil = vigil_new();
	assert_non_null(test->vigil);
	test->memory = names_memory_new(test->vigil);
	assert_non_null(test->memory);
	return 0;
}

static int teardown(void **state)
{
	struct place_under_test *test = *state;
	char command[256];
	names_memory_free(test->memory);
	vigil_free(test->vigil);
	snprintf(command, sizeof(command), "chmod -R u+rwX %s; rm -rf %s %s", test->root, test->root, test->cache);
	int status = system(command);
	close(test->root_fd);
	close(test->cache_fd);
	arena_free(&test->arena);
	free(test);
	return status;
}

static void make_directory(const struct place_under_test *test, const char *path)
{
	char part[4096];
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		assert_true(mkdirat(test->root_fd, part, 0755) == 0 || errno == EEXIST);
	}
	assert_true(mkdirat(test->root_fd, path, 0755) == 0 || errno == EEXIST);
}

static void make_file(const struct place_under_test *test, const char *path)
{
	char part[4096];
	const char *slash = strrchr(path, '/');
	if (slash) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		make_directory(test, part);
	}
	int fd = openat(test->root_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
}

/* Out of the time within which a directory is not trusted to be unchanged. */
static void settle(void)
{
	assert_int_equal(usleep(30000), 0);
}

static const struct names *find(struct place_under_test *test, bool cached, uint64_t budget_us)
{
	struct name_rules rules = { &test->deny, &test->protect, &test->exempt };
	struct cordon_error err = { 0 };
	struct names_place place = { .tried = true, .fd = test->cache_fd };
	const struct names_keep keep = { .place = cached ? &place : NULL, .memory = cached ? test->memory : NULL };
	if (test->vigil)
		vigil_hear(test->vigil);
	if (names_find(&test->arena, test->root_fd, test->root, &rules, &keep, budget_us, &test->names, &err) < 0)
		fail_msg("%s", err.reason);
	return &test->names;
}

static bool has(const struct place_under_test *test, enum name_kind kind, const char *path)
{
	return names_get(&test->names, kind, path);
}

/* Enough directories for the cache to be worth it. */
static void make_many(const struct place_under_test *test, unsigned count)
{
	char path[64];
	for (unsigned i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "many/d%u/sub/leaf", i);
		make_directory(test, path);
	}
}

static bool is_cached(const struct place_under_test *test, struct names_cache_key *ret_key)
{
	struct name_rules rules = { &test->deny, &test->protect, &test->exempt };
	struct names_stat stat;
	assert_true(names_stat(test->root_fd, "", &stat));
	names_cache_key_make(stat.device, stat.inode, test->root, &rules, ret_key);
	return faccessat(test->cache_fd, ret_key->name, F_OK, 0) == 0;
}

static void warm(struct place_under_test *test)
{
	struct names_cache_key key;
	settle();
	find(test, true, BUDGET_US);
	assert_true(is_cached(test, &key));
}

static void make_socket(const struct place_under_test *test, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", test->root, name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

static void test_kinds(void **state)
{
	struct place_under_test *test = *state;
	make_file(test, ".env");
	make_file(test, "a/b/.env.local");
	make_file(test, "a/plain");
	make_file(test, "home/.ssh/id_rsa");
	make_file(test, ".git/config");
	make_file(test, "sub/.GIT/Config");
	make_directory(test, "sub/.git/hooks");
	make_file(test, "config");
	make_file(test, ".cordon.toml");
	make_file(test, "new\nline/\xff.pem");
	assert_int_equal(mkfifoat(test->root_fd, "a/fifo", 0600), 0);
	assert_int_equal(symlinkat("/etc", test->root_fd, "a/link"), 0);
	assert_int_equal(symlinkat("elsewhere", test->root_fd, "a/x.pem"), 0);
	make_socket(test, "a/sock");
	for (int round = 0; round < 2; round++) {
		const struct names *names = find(test, round, BUDGET_US);
		assert_int_equal(names->count, 10);
		assert_true(has(test, NAME_MASKED, ".env"));
		assert_true(has(test, NAME_MASKED, "a/b/.env.local"));
		assert_true(has(test, NAME_MASKED, "new\nline/\xff.pem"));
		assert_true(names_get(names, NAME_MASKED, "home/.ssh")->is_directory);
		assert_true(names_get(names, NAME_MASKED, "a/x.pem")->is_link);
		assert_false(has(test, NAME_MASKED, "home/.ssh/id_rsa"));
		assert_true(has(test, NAME_PROTECTED, ".git/config"));
		assert_true(has(test, NAME_PROTECTED, "sub/.GIT/Config"));
		assert_true(names_get(names, NAME_PROTECTED, "sub/.git/hooks")->is_directory);
		assert_true(names_get(names, NAME_PROTECTED, ".cordon.toml")->inode != 0);
		assert_true(has(test, NAME_SOCKET, "a/sock"));
		assert_null(names->note);
		assert_int_equal(names->unchecked, 0);
	}
}

static void test_absolute_glob(void **state)
{
	struct place_under_test *test = *state;
	char inside[128];
	snprintf(inside, sizeof(inside), "%s/data/**", test->root);
	assert_int_equal(strings_add(&test->arena, &test->deny, inside), 0);
	assert_int_equal(strings_add(&test->arena, &test->deny, "/elsewhere/**"), 0);
	assert_int_equal(strings_add(&test->arena, &test->deny, "top/secret"), 0);
	make_file(test, "data/x/y");
	make_file(test, "data/z");
	make_file(test, "other/data/z");
	make_file(test, "top/secret");
	make_file(test, "deep/top/secret");
	find(test, false, BUDGET_US);
	assert_int_equal(test->names.count, 3);
	assert_true(has(test, NAME_MASKED, "data/x"));
	assert_true(has(test, NAME_MASKED, "data/z"));
	assert_true(has(test, NAME_MASKED, "top/secret"));
	struct strings bad = { 0 };
	struct cordon_error err = { 0 };
	assert_int_equal(strings_add(&test->arena, &bad, "a/../b"), 0);
	struct name_rules rules = { &bad, NULL, NULL };
	assert_int_equal(names_find(&test->arena, test->root_fd, test->root, &rules, &(struct names_keep){ 0 }, 0, &test->names, &err), -1);
	assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
}

static void test_small_is_not_cached(void **state)
{
	struct place_under_test *test = *state;
	struct names_cache_key key;
	make_file(test, "a/.env");
	settle();
	find(test, true, BUDGET_US);
	assert_false(is_cached(test, &key));
	assert_true(has(test, NAME_MASKED, "a/.env"));
}

static void test_changes_are_seen(void **state)
{
	struct place_under_test *test = *state;
	struct stat stat;
	make_many(test, 40);
	make_file(test, "many/d1/.env");
	warm(test);
	assert_true(has(test, NAME_MASKED, "many/d1/.env"));
	/* planted, and the directory's mtime put back */
	assert_int_equal(fstatat(test->root_fd, "many/d7/sub/leaf", &stat, 0), 0);
	make_file(test, "many/d7/sub/leaf/key.pem");
	const struct timespec forged[2] = { stat.st_atim, stat.st_mtim };
	assert_int_equal(utimensat(test->root_fd, "many/d7/sub/leaf", forged, 0), 0);
	find(test, true, BUDGET_US);
	assert_true(has(test, NAME_MASKED, "many/d7/sub/leaf/key.pem"));
	/* a new directory, with more beneath */
	make_file(test, "many/new/er/.git/config");
	find(test, true, BUDGET_US);
	assert_true(has(test, NAME_PROTECTED, "many/new/er/.git/config"));
	/* moved away */
	settle();
	find(test, true, BUDGET_US);
	assert_int_equal(renameat(test->root_fd, "many/d1", test->root_fd, "many/d2/sub/moved"), 0);
	find(test, true, BUDGET_US);
	assert_false(has(test, NAME_MASKED, "many/d1/.env"));
	assert_true(has(test, NAME_MASKED, "many/d2/sub/moved/.env"));
	assert_true(has(test, NAME_PROTECTED, "many/new/er/.git/config"));
	/* two directories change places */
	settle();
	find(test, true, BUDGET_US);
	assert_int_equal(renameat2(test->root_fd, "many/d2", test->root_fd, "many/d3", RENAME_EXCHANGE), 0);
	find(test, true, BUDGET_US);
	assert_false(has(test, NAME_MASKED, "many/d2/sub/moved/.env"));
	assert_true(has(test, NAME_MASKED, "many/d3/sub/moved/.env"));
	/* gone */
	assert_int_equal(unlinkat(test->root_fd, "many/d3/sub/moved/.env", 0), 0);
	find(test, true, BUDGET_US);
	assert_false(has(test, NAME_MASKED, "many/d3/sub/moved/.env"));
	assert_true(has(test, NAME_MASKED, "many/d7/sub/leaf/key.pem"));
	/* a link in place of a known directory is not followed */
	assert_int_equal(renameat(test->root_fd, "many/d7", test->root_fd, "aside"), 0);
	assert_int_equal(symlinkat("../aside", test->root_fd, "many/d7"), 0);
	find(test, true, BUDGET_US);
	assert_false(has(test, NAME_MASKED, "many/d7/sub/leaf/key.pem"));
	assert_true(has(test, NAME_MASKED, "aside/sub/leaf/key.pem"));
}

/* A change within the same tick of the clock as the reading has the very time stamp that was stored. */
static void test_racily_clean(void **state)
{
	struct place_under_test *test = *state;
	struct names_cache_key key;
	struct names_table table;
	uint32_t cursor;
	char path[64];
	make_many(test, 500);
	/* Newer kernels make the stamps fine enough for this never to happen, so look at what is stored, too. On a slow
	 * machine the directory may no longer be new when it is read. */
	size_t never = 0;
	for (int try = 0; try < 20 && !never; try++) {
		settle();
		if (is_cached(test, &key))
			assert_int_equal(unlinkat(test->cache_fd, key.name, 0), 0);
		snprintf(path, sizeof(path), "many/d1/just-now-%d", try);
		make_file(test, path);
		find(test, true, BUDGET_US);
		assert_true(is_cached(test, &key));
		close(names_cache_load(test->cache_fd, &key, &table, &cursor));
		for (size_t i = 0; i < table.directory_count; i++)
			never += table.directories[i].ctime_ns == NAMES_CTIME_NEVER;
		names_table_free(&table);
	}
	assert_int_equal(never, 1);
	/* and it does not wait for its turn */
	make_file(test, "many/d1/.env");
	find(test, true, 0);
	assert_true(has(test, NAME_MASKED, "many/d1/.env"));
	for (int i = 0; i < 60; i++) {
		snprintf(path, sizeof(path), "many/d%d/sub/x%d", i % 40, i);
		make_file(test, path);
		find(test, true, BUDGET_US);
		snprintf(path, sizeof(path), "many/d%d/sub/%d.pem", i % 40, i);
		make_file(test, path);
		find(test, true, BUDGET_US);
		assert_true(has(test, NAME_MASKED, path));
	}
}

static void test_budget_and_turns(void **state)
{
	struct place_under_test *test = *state;
	make_many(test, 500);
	warm(test);
	find(test, true, 0);
	assert_true(test->names.unchecked > 0);
	assert_non_null(strstr(test->names.note, "not looked at again"));
	make_file(test, "many/d250/sub/leaf/.env");
	int rounds = 0;
	while (!has(test, NAME_MASKED, "many/d250/sub/leaf/.env")) {
		assert_true(++rounds < 20);
		find(test, true, 0);
	}
	assert_true(rounds > 0);
	/* Shallow places are looked at each time, however small the budget. */
	make_file(test, "many/.env");
	make_file(test, ".cordon.toml");
	find(test, true, 0);
	assert_true(has(test, NAME_MASKED, "many/.env"));
	assert_true(has(test, NAME_PROTECTED, ".cordon.toml"));
}

/* Where a masked name's directory is moved to is looked for at once, budget or not. */
static void test_moved_secret(void **state)
{
	struct place_under_test *test = *state;
	make_many(test, 500);
	make_file(test, "many/d9/sub/leaf/private/deep/.env");
	warm(test);
	assert_int_equal(renameat(test->root_fd, "many/d9/sub/leaf/private", test->root_fd, "many/d400/sub/leaf/public"), 0);
	find(test, true, 0);
	assert_true(has(test, NAME_MASKED, "many/d400/sub/leaf/public/deep/.env"));
	assert_false(has(test, NAME_MASKED, "many/d9/sub/leaf/private/deep/.env"));
	assert_int_equal(test->names.unchecked, 0);
	/* nor does something of the same name in its place deceive */
	assert_int_equal(renameat(test->root_fd, "many/d400/sub/leaf/public", test->root_fd, "many/d200/sub/leaf/p"), 0);
	make_file(test, "many/d400/sub/leaf/public/deep/.env");
	make_file(test, "many/d9/sub/leaf/private/deep/.env");
	find(test, true, 0);
	assert_true(has(test, NAME_MASKED, "many/d200/sub/leaf/p/deep/.env"));
}

/* A directory replaced by another is walked as new, even where it has subdirectories of the same names. */
static void test_replaced(void **state)
{
	struct place_under_test *test = *state;
	char other[128];
	make_many(test, 500);
	make_file(test, "many/d300/.env");
	make_file(test, "many/d300/other/leaf/.env");
	snprintf(other, sizeof(other), "%s/other", test->cache);
	assert_int_equal(renameat(test->root_fd, "many/d300/other", AT_FDCWD, other), 0);
	warm(test);
	assert_int_equal(test->names.count, 1);
	snprintf(other, sizeof(other), "%s/sub", test->cache);
	assert_int_equal(renameat(test->root_fd, "many/d300/sub", AT_FDCWD, other), 0);
	snprintf(other, sizeof(other), "%s/other", test->cache);
	assert_int_equal(renameat(AT_FDCWD, other, test->root_fd, "many/d300/sub"), 0);
	find(test, true, 0);
	assert_true(has(test, NAME_MASKED, "many/d300/sub/leaf/.env"));
	assert_true(test->names.unchecked > 0);
}

static void test_closed_directory(void **state)
{
	struct place_under_test *test = *state;
	make_many(test, 40);
	make_file(test, "many/d5/.env");
	warm(test);
	assert_int_equal(fchmodat(test->root_fd, "many/d5", 0, 0), 0);
	for (int round = 0; round < 2; round++) {
		find(test, true, 0);
		if (geteuid() == 0) {
			assert_true(has(test, NAME_MASKED, "many/d5/.env"));
		} else {
			assert_true(names_get(&test->names, NAME_MASKED, "many/d5")->is_closed);
			assert_false(has(test, NAME_MASKED, "many/d5/.env"));
		}
		settle();
	}
	/* to be listed, but not entered */
	assert_int_equal(fchmodat(test->root_fd, "many/d5", 0600, 0), 0);
	find(test, true, 0);
	assert_true(has(test, NAME_MASKED, geteuid() == 0 ? "many/d5/.env" : "many/d5"));
	assert_int_equal(fchmodat(test->root_fd, "many/d5", 0755, 0), 0);
	find(test, true, 0);
	assert_true(has(test, NAME_MASKED, "many/d5/.env"));
	assert_false(has(test, NAME_MASKED, "many/d5"));
}

static void test_depth_bomb(void **state)
{
	struct place_under_test *test = *state;
	char name[201];
	int at = dup(test->root_fd);
	for (int i = 0; i < 4096; i++) {
		assert_int_equal(mkdirat(at, "d", 0755), 0);
		int next = openat(at, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(at);
		at = next;
		if (i == NAMES_DEPTH_MAX / 2)
			close(openat(at, "x.pem", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	close(at);
	/* few levels, but a path that is too long */
	memset(name, 'n', 200);
	name[200] = '\0';
	at = dup(test->root_fd);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(mkdirat(at, name, 0755), 0);
		int next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = next;
	}
	close(at);
	settle();
	for (int round = 0; round < 3; round++) {
		find(test, true, BUDGET_US);
		assert_int_equal(test->names.count, 1);
		assert_non_null(strstr(test->names.note, "2 directories looked into in part only"));
	}
}

static void test_unusable_root(void **state)
{
	struct place_under_test *test = *state;
	struct name_rules rules = { &test->deny, &test->protect, &test->exempt };
	struct cordon_error err = { 0 };
	if (geteuid()) {
		assert_int_equal(chmod(test->root, 0300), 0);
		assert_int_equal(names_find(&test->arena, test->root_fd, test->root, &rules, &(struct names_keep){ 0 }, 0, &test->names, &err), -1);
		assert_int_equal(err.class, CORDON_E_CAPABILITY_DENIED);
		assert_int_equal(chmod(test->root, 0700), 0);
	}
	int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(names_find(&test->arena, proc, "/proc", &rules, &(struct names_keep){ 0 }, 0, &test->names, &err), 0);
	assert_int_equal(test->names.directories, 1);
	close(proc);
}

/* Every single byte of the cache file changed: a match that is there is always found. */
static void test_corrupt_cache(void **state)
{
	struct place_under_test *test = *state;
	struct names_cache_key key;
	struct stat stat;
	make_many(test, 9);
	make_file(test, "many/d3/sub/leaf/.env");
	make_file(test, "many/d4/.git/config");
	warm(test);
	assert_true(is_cached(test, &key));
	int fd = openat(test->cache_fd, key.name, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &stat), 0);
	size_t size = (size_t)stat.st_size;
	char *bytes = malloc(size);
	assert_int_equal(read(fd, bytes, size), size);
	close(fd);
	for (size_t i = 0; i <= size; i++) {
		unlinkat(test->cache_fd, key.name, 0);
		fd = openat(test->cache_fd, key.name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (i < size)
			bytes[i] ^= (char)(1 << i % 8);
		/* at last: a file cut short */
		size_t length = i < size ? size : size - 1;
		assert_int_equal(write(fd, bytes, length), length);
		close(fd);
		find(test, true, BUDGET_US);
		assert_true(has(test, NAME_MASKED, "many/d3/sub/leaf/.env"));
		assert_true(has(test, NAME_PROTECTED, "many/d4/.git/config"));
		assert_int_equal(test->names.count, 2);
		if (i < size)
			bytes[i] ^= (char)(1 << i % 8);
	}
	free(bytes);
	assert_int_equal(unlinkat(test->cache_fd, key.name, 0), 0);
	assert_int_equal(mkfifoat(test->cache_fd, key.name, 0600), 0);
	find(test, true, BUDGET_US);
	assert_int_equal(test->names.count, 2);
}

/* Damage with a checksum that is right: refused, or at least of no harm to memory. */
static void test_sealed_corruption(void **state)
{
	struct place_under_test *test = *state;
	struct names_cache_key key;
	struct names_table table;
	uint32_t cursor;
	make_many(test, 9);
	make_file(test, "many/d3/sub/leaf/.env");
	warm(test);
	assert_true(is_cached(test, &key));
	int fd = names_cache_load(test->cache_fd, &key, &table, &cursor);
	assert_true(fd >= 0);
	close(fd);
	size_t size = names_cache_size(&table), sound = 0;
	for (size_t i = 0; i < size * 8; i++) {
		struct names_table again;
		char path[NAMES_PATH_MAX + 1];
		char *bytes = malloc(size);
		names_cache_write(bytes, &key, &table, cursor);
		bytes[i / 8] ^= (char)(1 << i % 8);
		names_cache_seal(bytes, size);
		if (!names_cache_parse(bytes, size, &key, &again, &cursor)) {
			free(bytes);
			continue;
		}
		for (uint32_t j = 0; j < again.directory_count; j++)
			names_table_path(&again, j, path);
		names_table_free(&again);
		sound++;
	}
	assert_true(sound > 0);
	names_table_free(&table);
}

static bool opens_safely(const struct place_under_test *test)
{
	int fd = names_open(test->root_fd, "a/b/c", O_RDONLY), root = names_open(test->root_fd, "", O_RDONLY | O_DIRECTORY);
	bool opened = fd >= 0 && root >= 0;
	close(fd);
	close(root);
	return opened && names_open(test->root_fd, "a/link/c", O_RDONLY) < 0 && names_open(test->root_fd, "a/last", O_RDONLY) < 0 &&
	       names_open(test->root_fd, "a/../a/b/c", O_RDONLY | O_DIRECTORY) < 0 &&
	       names_open(test->root_fd, "..", O_RDONLY) < 0 && names_open(test->root_fd, "a/b/none", O_RDONLY) < 0;
}

static void test_open(void **state)
{
	struct place_under_test *test = *state;
	make_file(test, "a/b/c");
	assert_int_equal(symlinkat("b", test->root_fd, "a/link"), 0);
	assert_int_equal(symlinkat("b/c", test->root_fd, "a/last"), 0);
	assert_true(opens_safely(test));
	/* the same where there is no openat2() */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), code };
	pid_t child = fork();
	if (child == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
			_exit(2);
		_exit(opens_safely(test) ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* What is exempt is not protected: by what it is called, or by what it is. */
static void test_exempt(void **state)
{
	struct place_under_test *test = *state;
	static const char *const exempt[] = { ".git/", ".git/**/config/", ".git/**/refs/**" };
	for (size_t i = 0; i < ARRAY_SIZE(exempt); i++)
		assert_int_equal(strings_add(&test->arena, &test->exempt, exempt[i]), 0);
	assert_int_equal(strings_add(&test->arena, &test->protect, ".git"), 0);
	assert_int_equal(strings_add(&test->arena, &test->protect, ".git/modules/**/config"), 0);
	make_file(test, ".git/config");
	make_file(test, "sub/.git");
	make_file(test, ".git/modules/config/config");
	make_file(test, ".git/modules/config/refs/heads/config");
	make_directory(test, "config");
	assert_int_equal(symlinkat("elsewhere", test->root_fd, "config/.git"), 0);
	assert_int_equal(find(test, false, BUDGET_US)->count, 4);
	assert_true(has(test, NAME_PROTECTED, ".git/config"));
	assert_true(has(test, NAME_PROTECTED, "sub/.git"));
	assert_true(has(test, NAME_PROTECTED, ".git/modules/config/config"));
	assert_true(has(test, NAME_PROTECTED, "config/.git"));
	assert_int_equal(names_get(&test->names, NAME_PROTECTED, "sub/.git")->links, 1);
}

/* ---- in memory ---------------------------------------------------------------------------------------------------- */

/* The names as one who never saw the tree finds them are the names that are remembered. */
static void compare_with_afresh(struct place_under_test *test, const char *about)
{
	struct arena arena = { 0 };
	struct names afresh;
	const struct name_rules rules = { &test->deny, &test->protect, &test->exempt };
	struct cordon_error err = { 0 };
	find(test, true, BUDGET_US);
	assert_int_equal(names_find(&arena, test->root_fd, test->root, &rules, &(struct names_keep){ 0 }, BUDGET_US, &afresh, &err),
	                 0);
	if (test->names.count != afresh.count || test->names.directories != afresh.directories)
		fail_msg("%s: %zu names in %zu directories, not %zu in %zu", about, test->names.count, test->names.directories,
		         afresh.count, afresh.directories);
	for (size_t i = 0; i < afresh.count; i++) {
		const struct name *a = &test->names.items[i], *b = &afresh.items[i];
		if (strcmp(a->path, b->path) || a->kind != b->kind || a->is_directory != b->is_directory || a->inode != b->inode ||
		    a->ctime_ns != b->ctime_ns || a->is_closed != b->is_closed || a->is_link != b->is_link)
			fail_msg("%s: %s is %s", about, a->path, b->path);
	}
	arena_free(&arena);
}

/* Nothing is read and nothing is compared: a budget of nothing reaches everything. */
static void test_remembers(void **state)
{
	struct place_under_test *test = *state;
	make_many(test, 200);
	make_file(test, "many/d7/sub/.env");
	for (int time = 0; time < 3; time++)
		find(test, true, BUDGET_US);
	for (int time = 0; time < 3; time++) {
		find(test, true, 0);
		assert_int_equal(test->names.unchecked, 0);
		assert_true(has(test, NAME_MASKED, "many/d7/sub/.env"));
	}
	/* Of a change, no more than it. */
	make_file(test, "many/d150/sub/leaf/.env");
	assert_int_equal(unlinkat(test->root_fd, "many/d7/sub/.env", 0), 0);
	find(test, true, 0);
	assert_int_equal(test->names.unchecked, 0);
	assert_int_equal(test->names.count, 1);
	assert_true(has(test, NAME_MASKED, "many/d150/sub/leaf/.env"));
	compare_with_afresh(test, "after");
}

static void change_something(const struct place_under_test *test, unsigned *seed, char *about, size_t size)
{
	static const char *const names[] = { ".env", "x.pem", "plain", "a", "b", ".git", "config", "hooks", ".ssh" };
	char path[2][256] = { "", "" };
	for (int i = 0; i < 2; i++)
		for (int depth = rand_r(seed) % 4; depth >= 0; depth--)
			snprintf(path[i] + strlen(path[i]), sizeof(path[i]) - strlen(path[i]), "%s%s", *path[i] ? "/" : "",
			         names[(size_t)rand_r(seed) % ARRAY_SIZE(names)]);
	unsigned what = (unsigned)rand_r(seed) % 9;
	snprintf(about, size, "%u %s %s", what, path[0], path[1]);
	int fd;
	switch (what) {
	case 0:
		fd = openat(test->root_fd, path[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd >= 0)
			close(fd);
		break;
	case 1: case 2: case 3:
		mkdirat(test->root_fd, path[0], 0755);
		break;
	case 4:
		renameat(test->root_fd, path[0], test->root_fd, path[1]);
		break;
	case 5:
		syscall(SYS_renameat2, test->root_fd, path[0], test->root_fd, path[1], 2u /* RENAME_EXCHANGE */);
		break;
	case 6:
		unlinkat(test->root_fd, path[0], rand_r(seed) % 2 ? AT_REMOVEDIR : 0);
		break;
	case 7:
		(void)!fchmodat(test->root_fd, path[0], rand_r(seed) % 3 ? 0755 : 0, 0);
		break;
	default:
		(void)!symlinkat(path[1], test->root_fd, path[0]);
	}
}

static void test_any_change(void **state)
{
	struct place_under_test *test = *state;
	char about[640];
	for (unsigned round = 0; round < 600; round++) {
		unsigned seed = round;
		for (unsigned i = 0; i < 1 + round % 3; i++)
			change_something(test, &seed, about, sizeof(about));
		compare_with_afresh(test, about);
	}
}

/* More than are kept, each with another rule; and one that many take at once. */
static void test_many_trees(void **state)
{
	struct place_under_test *test = *state;
	make_file(test, "a/name-140");
	for (int time = 0; time < 2; time++)
		for (unsigned i = 0; i < 150; i++) {
			char rule[32];
			snprintf(rule, sizeof(rule), "**/name-%u", i);
			test->deny = (struct strings){ 0 };
			assert_int_equal(strings_add(&test->arena, &test->deny, rule), 0);
			find(test, true, BUDGET_US);
			assert_int_equal(test->names.count, i == 140);
		}
}

/* Between the first look, which watches nothing, and the second. */
static void test_told_before_it_was_watched(void **state)
{
	struct place_under_test *test = *state;
	make_many(test, 20);
	settle();
	find(test, true, BUDGET_US);
	make_file(test, "many/d3/sub/.env");
	compare_with_afresh(test, "not watched yet");
	make_file(test, "many/d4/sub/.env");
	compare_with_afresh(test, "watched");
	/* More than are counted one by one. */
	for (unsigned i = 0; i < 300; i++) {
		char path[64];
		snprintf(path, sizeof(path), "many/e%u/sub/.env", i);
		make_file(test, path);
	}
	compare_with_afresh(test, "many");
	for (unsigned i = 0; i < 300; i++) {
		char path[64];
		snprintf(path, sizeof(path), "many/e%u/sub/.env", i);
		assert_int_equal(unlinkat(test->root_fd, path, 0), 0);
	}
	compare_with_afresh(test, "many gone");
	find(test, true, 0);
	assert_int_equal(test->names.unchecked, 0);
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define ROW_MEMORY(name) { #name " (in memory)", name, setup_memory, teardown, NULL }
	const struct CMUnitTest tests[] = {
		ROW(test_kinds),          ROW(test_absolute_glob),     ROW(test_small_is_not_cached), ROW(test_changes_are_seen),
		ROW(test_racily_clean),   ROW(test_budget_and_turns),  ROW(test_moved_secret),        ROW(test_closed_directory),
		ROW(test_depth_bomb),     ROW(test_unusable_root),     ROW(test_corrupt_cache),       ROW(test_sealed_corruption),
		ROW(test_open),           ROW(test_replaced),        ROW(test_exempt),
		ROW_MEMORY(test_kinds),   ROW_MEMORY(test_absolute_glob), ROW_MEMORY(test_changes_are_seen),
		ROW_MEMORY(test_racily_clean), ROW_MEMORY(test_moved_secret), ROW_MEMORY(test_closed_directory),
		ROW_MEMORY(test_unusable_root), ROW_MEMORY(test_replaced), ROW_MEMORY(test_exempt),
		ROW_MEMORY(test_remembers), ROW_MEMORY(test_any_change), ROW_MEMORY(test_many_trees),
		ROW_MEMORY(test_told_before_it_was_watched),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

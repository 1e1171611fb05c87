/* What is known of a tree from before: what it may miss and what never, and that a damaged file of it does no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compat.h"
#include "base/error.h"

#include <cmocka.h>

#include "names-ground.h"
#include "system-has.h"
#include "paths/index/walk.h"

static void test_small_is_not_cached(void **state)
{
	struct ground *ground = *state;
	struct names_cache_key key;
	ground_file(ground, "a/.env");
	ground_settle();
	ground_find(ground, true, BUDGET_US);
	assert_false(ground_is_cached(ground, &key));
	assert_true(ground_has(ground, NAME_MASKED, "a/.env"));
}

static void test_changes_are_seen(void **state)
{
	struct ground *ground = *state;
	struct stat stat;
	ground_many(ground, 40);
	ground_file(ground, "many/d1/.env");
	ground_warm(ground);
	assert_true(ground_has(ground, NAME_MASKED, "many/d1/.env"));
	/* planted, and the directory's mtime put back */
	assert_int_equal(fstatat(ground->root_fd, "many/d7/sub/leaf", &stat, 0), 0);
	ground_file(ground, "many/d7/sub/leaf/key.pem");
	const struct timespec forged[2] = { stat.st_atim, stat.st_mtim };
	assert_int_equal(utimensat(ground->root_fd, "many/d7/sub/leaf", forged, 0), 0);
	ground_find(ground, true, BUDGET_US);
	assert_true(ground_has(ground, NAME_MASKED, "many/d7/sub/leaf/key.pem"));
	/* a new directory, with more beneath */
	ground_file(ground, "many/new/er/.git/config");
	ground_find(ground, true, BUDGET_US);
	assert_true(ground_has(ground, NAME_PROTECTED, "many/new/er/.git/config"));
	/* moved away */
	ground_settle();
	ground_find(ground, true, BUDGET_US);
	assert_int_equal(renameat(ground->root_fd, "many/d1", ground->root_fd, "many/d2/sub/moved"), 0);
	ground_find(ground, true, BUDGET_US);
	assert_false(ground_has(ground, NAME_MASKED, "many/d1/.env"));
	assert_true(ground_has(ground, NAME_MASKED, "many/d2/sub/moved/.env"));
	assert_true(ground_has(ground, NAME_PROTECTED, "many/new/er/.git/config"));
	/* two directories change places */
	ground_settle();
	ground_find(ground, true, BUDGET_US);
	ground_exchange(ground, "many/d2", "many/d3");
	ground_find(ground, true, BUDGET_US);
	assert_false(ground_has(ground, NAME_MASKED, "many/d2/sub/moved/.env"));
	assert_true(ground_has(ground, NAME_MASKED, "many/d3/sub/moved/.env"));
	/* gone */
	assert_int_equal(unlinkat(ground->root_fd, "many/d3/sub/moved/.env", 0), 0);
	ground_find(ground, true, BUDGET_US);
	assert_false(ground_has(ground, NAME_MASKED, "many/d3/sub/moved/.env"));
	assert_true(ground_has(ground, NAME_MASKED, "many/d7/sub/leaf/key.pem"));
	/* a link in place of a known directory is not followed */
	assert_int_equal(renameat(ground->root_fd, "many/d7", ground->root_fd, "aside"), 0);
	assert_true(!HAS_LINKS || symlinkat("../aside", ground->root_fd, "many/d7") == 0);
	ground_find(ground, true, BUDGET_US);
	assert_false(ground_has(ground, NAME_MASKED, "many/d7/sub/leaf/key.pem"));
	assert_true(ground_has(ground, NAME_MASKED, "aside/sub/leaf/key.pem"));
}

/* A change within the same tick of the clock as the reading has the very time stamp that was stored. */
static void test_racily_clean(void **state)
{
	struct ground *ground = *state;
	struct names_cache_key key;
	struct names_table table;
	struct names_progress progress;
	char path[64];
	ground_many(ground, 500);
	/* Newer kernels make the stamps fine enough for this never to happen, so look at what is stored, too. On a slow
	 * machine the directory may no longer be new when it is read. */
	size_t never = 0;
	for (int try = 0; try < 20 && !never; try++) {
		ground_settle();
		if (ground_is_cached(ground, &key))
			assert_int_equal(unlinkat(ground->cache_fd, key.name, 0), 0);
		snprintf(path, sizeof(path), "many/d1/just-now-%d", try);
		ground_file(ground, path);
		ground_find(ground, true, BUDGET_US);
		assert_true(ground_is_cached(ground, &key));
		close(names_cache_load(ground->cache_fd, &key, &table, &progress));
		for (size_t i = 0; i < table.directory_count; i++)
			never += table.directories[i].ctime_ns == NAMES_CTIME_NEVER;
		names_table_free(&table);
	}
	assert_int_equal(never, 1);
	/* and it does not wait for its turn */
	ground_file(ground, "many/d1/.env");
	ground_find(ground, true, 0);
	assert_true(ground_has(ground, NAME_MASKED, "many/d1/.env"));
	for (int i = 0; i < 60; i++) {
		snprintf(path, sizeof(path), "many/d%d/sub/x%d", i % 40, i);
		ground_file(ground, path);
		ground_find(ground, true, BUDGET_US);
		snprintf(path, sizeof(path), "many/d%d/sub/%d.pem", i % 40, i);
		ground_file(ground, path);
		ground_find(ground, true, BUDGET_US);
		assert_true(ground_has(ground, NAME_MASKED, path));
	}
}

static void test_budget_and_turns(void **state)
{
	struct ground *ground = *state;
	ground_many(ground, 500);
	ground_warm(ground);
	ground_find(ground, true, 0);
	assert_true(ground->names.unchecked > 0);
	assert_non_null(strstr(ground->names.note, "not searched again"));
	ground_file(ground, "many/d250/sub/leaf/.env");
	int rounds = 0;
	while (!ground_has(ground, NAME_MASKED, "many/d250/sub/leaf/.env")) {
		assert_true(++rounds < 20);
		ground_find(ground, true, 0);
	}
	assert_true(rounds > 0);
	/* Shallow places are looked at each time, however small the budget. */
	ground_file(ground, "many/.env");
	ground_file(ground, ".cordon.toml");
	ground_find(ground, true, 0);
	assert_true(ground_has(ground, NAME_MASKED, "many/.env"));
	assert_true(ground_has(ground, NAME_PROTECTED, ".cordon.toml"));
}

/* Where a masked name's directory is moved to is looked for at once, budget or not. */
/* A search with time for the whole tree may be followed by one with time for a part of it. */
static void test_what_a_complete_search_found_is_kept(void **state)
{
	struct ground *ground = *state;
	ground_many(ground, 400);
	ground_warm(ground);
	ground_file(ground, "many/d399/sub/leaf/.env");
	ground_settle();
	ground_find(ground, true, BUDGET_US);
	assert_true(ground_has(ground, NAME_MASKED, "many/d399/sub/leaf/.env"));
	for (unsigned i = 0; i < 3; i++) {
		ground_find(ground, true, 0);
		assert_non_null(ground->names.note);
		assert_true(ground_has(ground, NAME_MASKED, "many/d399/sub/leaf/.env"));
	}
}

static void load(struct ground *ground, struct names_walk *walk, struct names_progress *ret_progress)
{
	struct name_rules rules = { &ground->deny, &ground->protect, &ground->exempt };
	struct names_cache_key key;
	struct cordon_error err;
	assert_true(ground_is_cached(ground, &key));
	assert_int_equal(names_walk_init(walk, ground->root_fd, ground->root, &err), 0);
	assert_int_equal(names_globs_compile(&ground->arena, ground->root, &rules, &walk->globs, &err), 0);
	int fd = names_cache_load(ground->cache_fd, &key, &walk->table, ret_progress);
	assert_true(fd >= 0);
	close(fd);
}

static uint32_t directory_of(const struct names_table *table, const char *path)
{
	char buffer[NAMES_PATH_MAX + 1];
	for (uint32_t i = 0; i < table->directory_count; i++) {
		names_table_path(table, i, buffer);
		if (!strcmp(buffer, path))
			return i;
	}
	fail_msg("%s is not known", path);
	return 0;
}

/* The directories and matches that count beneath `top`. */
static size_t count_known(const struct names_table *table, const char *top)
{
	char buffer[NAMES_PATH_MAX + 1];
	size_t count = 0, length = strlen(top);
	for (uint32_t i = 0; i < table->directory_count; i++) {
		names_table_path(table, i, buffer);
		count += !(table->directories[i].flags & NAMES_DEAD) && !strncmp(buffer, top, length);
	}
	for (size_t i = 0; i < table->match_count; i++) {
		names_table_path(table, table->matches[i].directory, buffer);
		count += names_table_match_counts(table, i) && !strncmp(buffer, top, length);
	}
	return count;
}

/* A directory of so many entries that the deadline ends its reading halfway keeps the matches and subdirectories it
 * had. */
static void test_a_directory_read_in_part_forgets_nothing(void **state)
{
	struct ground *ground = *state;
	struct names_progress progress;
	struct names_walk walk;
	char name[64];
	ground_many(ground, 40);
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "many/%s-%u", i % 2 ? ".env.of" : "an-ordinary-file", i);
		ground_file(ground, name);
	}
	ground_warm(ground);
	load(ground, &walk, &progress);
	uint32_t many = directory_of(&walk.table, "many");
	size_t known = count_known(&walk.table, "many");
	assert_int_equal(known, 1 + 40 * 3 + 1500);
	ground_file(ground, "many/another");
	walk.deadline_us = 0;
	assert_int_equal(names_walk_check(&walk, many), 0);
	assert_true(walk.stopped);
	names_table_bury(&walk.table);
	assert_int_equal(count_known(&walk.table, "many"), known);
	assert_true(walk.table.directories[many].flags & NAMES_PARTIAL);
	assert_int_equal(walk.table.directories[many].ctime_ns, NAMES_CTIME_NEVER);
	names_walk_free(&walk);
}

/* No descriptor is left to open it with. */
static void test_a_directory_that_cannot_be_opened_forgets_nothing(void **state)
{
	struct ground *ground = *state;
	struct names_progress progress;
	struct names_walk walk;
	struct rlimit limit;
	ground_many(ground, 40);
	ground_file(ground, "many/d1/.env");
	ground_warm(ground);
	load(ground, &walk, &progress);
	uint32_t one = directory_of(&walk.table, "many/d1");
	size_t known = count_known(&walk.table, "many/d1");
	ground_file(ground, "many/d1/another");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	const struct rlimit none = { 0, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	int status = names_walk_check(&walk, one);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(status, 0);
	names_table_bury(&walk.table);
	assert_int_equal(count_known(&walk.table, "many/d1"), known);
	names_walk_free(&walk);
}

static void test_moved_secret(void **state)
{
	struct ground *ground = *state;
	ground_many(ground, 500);
	ground_file(ground, "many/d9/sub/leaf/private/deep/.env");
	ground_warm(ground);
	assert_int_equal(
		renameat(ground->root_fd, "many/d9/sub/leaf/private", ground->root_fd, "many/d400/sub/leaf/public"), 0);
	ground_find(ground, true, 0);
	assert_true(ground_has(ground, NAME_MASKED, "many/d400/sub/leaf/public/deep/.env"));
	assert_false(ground_has(ground, NAME_MASKED, "many/d9/sub/leaf/private/deep/.env"));
	assert_int_equal(ground->names.unchecked, 0);
	/* nor does something of the same name in its place deceive */
	assert_int_equal(
		renameat(ground->root_fd, "many/d400/sub/leaf/public", ground->root_fd, "many/d200/sub/leaf/p"), 0);
	ground_file(ground, "many/d400/sub/leaf/public/deep/.env");
	ground_file(ground, "many/d9/sub/leaf/private/deep/.env");
	ground_find(ground, true, 0);
	assert_true(ground_has(ground, NAME_MASKED, "many/d200/sub/leaf/p/deep/.env"));
}

/* A directory replaced by another is walked as new, even where it has subdirectories of the same names. */
static void test_replaced(void **state)
{
	struct ground *ground = *state;
	char other[128];
	ground_many(ground, 500);
	ground_file(ground, "many/d300/.env");
	ground_file(ground, "many/d300/other/leaf/.env");
	snprintf(other, sizeof(other), "%s/other", ground->cache);
	assert_int_equal(renameat(ground->root_fd, "many/d300/other", AT_FDCWD, other), 0);
	ground_warm(ground);
	assert_int_equal(ground->names.count, 1);
	snprintf(other, sizeof(other), "%s/sub", ground->cache);
	assert_int_equal(renameat(ground->root_fd, "many/d300/sub", AT_FDCWD, other), 0);
	snprintf(other, sizeof(other), "%s/other", ground->cache);
	assert_int_equal(renameat(AT_FDCWD, other, ground->root_fd, "many/d300/sub"), 0);
	ground_find(ground, true, 0);
	assert_true(ground_has(ground, NAME_MASKED, "many/d300/sub/leaf/.env"));
	assert_true(ground->names.unchecked > 0);
}

/* Every single byte of the cache file changed: a match that is there is always found. */
static void test_corrupt_cache(void **state)
{
	struct ground *ground = *state;
	struct names_cache_key key;
	struct stat stat;
	ground_many(ground, 9);
	ground_file(ground, "many/d3/sub/leaf/.env");
	ground_file(ground, "many/d4/.git/config");
	ground_warm(ground);
	assert_true(ground_is_cached(ground, &key));
	int fd = openat(ground->cache_fd, key.name, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &stat), 0);
	size_t size = (size_t)stat.st_size;
	char *bytes = malloc(size);
	assert_int_equal(read(fd, bytes, size), size);
	close(fd);
	for (size_t i = 0; i <= size; i++) {
		unlinkat(ground->cache_fd, key.name, 0);
		fd = openat(ground->cache_fd, key.name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (i < size)
			bytes[i] ^= (char)(1 << i % 8);
		/* at last: a file cut short */
		size_t length = i < size ? size : size - 1;
		assert_int_equal(write(fd, bytes, length), length);
		close(fd);
		ground_find(ground, true, BUDGET_US);
		assert_true(ground_has(ground, NAME_MASKED, "many/d3/sub/leaf/.env"));
		assert_true(ground_has(ground, NAME_PROTECTED, "many/d4/.git/config"));
		assert_int_equal(ground->names.count, 2);
		if (i < size)
			bytes[i] ^= (char)(1 << i % 8);
	}
	free(bytes);
	assert_int_equal(unlinkat(ground->cache_fd, key.name, 0), 0);
	assert_true(!HAS_SPECIAL_FILES || mkfifoat(ground->cache_fd, key.name, 0600) == 0);
	ground_find(ground, true, BUDGET_US);
	assert_int_equal(ground->names.count, 2);
}

/* Damage with a checksum that is right: refused, or at least of no harm to memory. */
static void test_sealed_corruption(void **state)
{
	struct ground *ground = *state;
	struct names_cache_key key;
	struct names_table table;
	struct names_progress progress;
	ground_many(ground, 9);
	ground_file(ground, "many/d3/sub/leaf/.env");
	ground_warm(ground);
	assert_true(ground_is_cached(ground, &key));
	int fd = names_cache_load(ground->cache_fd, &key, &table, &progress);
	assert_true(fd >= 0);
	close(fd);
	size_t size = names_cache_size(&table), sound = 0;
	for (size_t i = 0; i < size * 8; i++) {
		struct names_table again;
		char path[NAMES_PATH_MAX + 1];
		char *bytes = malloc(size);
		names_cache_write(bytes, &key, &table, &progress);
		bytes[i / 8] ^= (char)(1 << i % 8);
		names_cache_seal(bytes, size);
		if (!names_cache_parse(bytes, size, &key, &again, &progress)) {
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(test_small_is_not_cached), ROW(test_changes_are_seen), ROW(test_racily_clean),
		ROW(test_budget_and_turns), ROW(test_moved_secret), ROW(test_what_a_complete_search_found_is_kept),
		ROW(test_a_directory_read_in_part_forgets_nothing),
		ROW(test_a_directory_that_cannot_be_opened_forgets_nothing), ROW(test_replaced),
		ROW(test_corrupt_cache), ROW(test_sealed_corruption), ROW_MEMORY(test_changes_are_seen),
		ROW_MEMORY(test_racily_clean), ROW_MEMORY(test_moved_secret), ROW_MEMORY(test_replaced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

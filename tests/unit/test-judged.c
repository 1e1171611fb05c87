/* The record of a tree: what it says comes back, damage is noticed, and who runs and what is pending is known to all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cordon-internal.h"
#include "base/remove.h"
#include "paths/planted/judged.h"

struct place {
	char data[64], tree[64];
	int tree_fd;
	struct arena arena;
};

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	assert_non_null(place);
	strcpy(place->data, "/tmp/cordon-judged-XXXXXX");
	strcpy(place->tree, "/tmp/cordon-judged-XXXXXX");
	assert_true(mkdtemp(place->data) && mkdtemp(place->tree));
	place->tree_fd = open(place->tree, O_PATH | O_DIRECTORY | O_CLOEXEC);
	*state = place;
	return 0;
}

static int teardown(void **state)
{
	struct place *place = *state;
	assert_int_equal(remove_tree(AT_FDCWD, place->data), 0);
	assert_int_equal(remove_tree(AT_FDCWD, place->tree), 0);
	close(place->tree_fd);
	arena_free(&place->arena);
	free(place);
	return 0;
}

static struct judged *open_locked(struct place *place)
{
	struct judged *judged;
	struct cordon_error err;
	assert_int_equal(judged_open(place->data, place->tree_fd, place->tree, &judged, &err), 0);
	assert_int_equal(judged_lock(judged, &err), 0);
	return judged;
}

static struct judged_record sample(void)
{
	static struct name names[] = {
		{ .kind = NAME_MASKED, .path = ".env" },
		{ .kind = NAME_PROTECTED,
		  .path = ".git/config",
		  .device = 1,
		  .inode = 2,
		  .ctime_ns = 3,
		  .born_ns = 4,
		  .links = 5 },
		{ .kind = NAME_PROTECTED, .path = ".git/hooks", .is_directory = true },
		{ .kind = NAME_JUDGED, .path = "x", .is_link = true },
	};
	static const struct git_config_fact facts[] = { { "0123456789abcde" }, { "1123456789abcde" } };
	static const struct git_config_before known = { facts, 2, true }, unknown = { NULL, 0, false };
	static struct planted_seen seen[] = {
		{ .path = ".git/config", .config = &known },
		{ .path = ".git/hooks/a", .device = 6, .inode = 7, .size = 8, .ctime_ns = 9 },
		{ .path = "b/.git/config", .config = &unknown },
	};
	static uint64_t made[] = { 1, 17, UINT64_MAX }, told[] = { 5 };
	return (struct judged_record){ .names = { .items = names, .count = 4 }, .planted = { .seen = seen, .count = 3 },
	                               .made = made, .made_count = 3, .told = told, .told_count = 1 };
}

static void assert_sample(const struct judged_record *record)
{
	assert_int_equal(record->names.count, 3);
	const struct name *config = names_get(&record->names, NAME_PROTECTED, ".git/config");
	assert_non_null(config);
	assert_true(config->device == 1 && config->inode == 2 && config->ctime_ns == 3 && config->born_ns == 4 &&
	            config->links == 5);
	assert_true(names_get(&record->names, NAME_PROTECTED, ".git/hooks")->is_directory);
	assert_true(names_get(&record->names, NAME_JUDGED, "x")->is_link);
	assert_int_equal(record->planted.count, 3);
	const struct planted_seen *seen = record->planted.seen;
	assert_true(seen[0].config->known && seen[0].config->count == 2 && seen[0].config->facts[1].hash[0] == '1');
	assert_true(!seen[1].config && seen[1].device == 6 && seen[1].inode == 7 && seen[1].size == 8 &&
	            seen[1].ctime_ns == 9);
	assert_true(seen[2].config && !seen[2].config->known && !seen[2].config->count);
	assert_true(record->made_count == 3 && record->made[1] == 17);
	assert_true(record->told_count == 1 && record->told[0] == 5);
}

static void test_round_trip(void **state)
{
	struct place *place = *state;
	struct judged *judged = open_locked(place);
	struct judged_record record = sample(), read;
	struct cordon_error err;
	assert_false(judged_load(judged, &place->arena, &read));
	assert_int_equal(judged_store(judged, &record, &err), 0);
	assert_true(judged_load(judged, &place->arena, &read));
	assert_sample(&read);
	judged_free(judged);
	judged = open_locked(place);
	assert_true(judged_load(judged, &place->arena, &read));
	assert_sample(&read);
	judged_free(judged);
}

/* Each byte that is changed, and each length that is cut, is noticed. */
static void test_damage(void **state)
{
	struct place *place = *state;
	struct judged_record record = sample(), read;
	size_t size;
	unsigned char *bytes = judged_write(&record, &size);
	assert_non_null(bytes);
	assert_true(judged_parse(&place->arena, bytes, size, &read));
	for (size_t i = 0; i < size; i++) {
		bytes[i] ^= 0x40;
		assert_false(judged_parse(&place->arena, bytes, size, &read));
		bytes[i] ^= 0x40;
		assert_false(judged_parse(&place->arena, bytes, i, &read));
	}
	free(bytes);
}

static void test_who_runs(void **state)
{
	struct place *place = *state;
	struct cordon_error err;
	struct judged *one = open_locked(place);
	assert_true(judged_is_alone(one) && !judged_is_pending(one));
	assert_int_equal(judged_begin(one, &err), 0);
	assert_true(judged_is_alone(one));
	judged_unlock(one);
	struct judged *two = open_locked(place);
	assert_int_equal(judged_compare(one, two), 0);
	assert_true(!judged_is_alone(two) && judged_is_pending(two));
	assert_int_equal(judged_begin(two, &err), 0);
	judged_end(two, true);
	judged_free(two);
	/* The other still runs. */
	assert_int_equal(judged_lock(one, &err), 0);
	assert_true(judged_is_pending(one) && judged_is_alone(one));
	judged_end(one, true);
	judged_free(one);
	one = open_locked(place);
	assert_true(judged_is_alone(one) && !judged_is_pending(one));
	/* One that did not judge all. */
	assert_int_equal(judged_begin(one, &err), 0);
	judged_end(one, false);
	judged_free(one);
	one = open_locked(place);
	assert_true(judged_is_alone(one) && judged_is_pending(one));
	judged_free(one);
}

static void test_one_that_died(void **state)
{
	struct place *place = *state;
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct cordon_error err;
		_exit(judged_begin(open_locked(place), &err) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	struct judged *judged = open_locked(place);
	assert_true(judged_is_alone(judged) && judged_is_pending(judged));
	judged_free(judged);
}

/* A directory in the same place is another tree. */
static void test_another_tree(void **state)
{
	struct place *place = *state;
	struct judged_record record = sample(), read;
	struct cordon_error err;
	struct judged *judged = open_locked(place);
	assert_int_equal(judged_store(judged, &record, &err), 0);
	judged_free(judged);
	assert_int_equal(rmdir(place->tree), 0);
	assert_int_equal(mkdir(place->tree, 0700), 0);
	close(place->tree_fd);
	place->tree_fd = open(place->tree, O_PATH | O_DIRECTORY | O_CLOEXEC);
	judged = open_locked(place);
	assert_false(judged_load(judged, &place->arena, &read));
	judged_free(judged);
}

static void test_made(void **state)
{
	struct place *place = *state;
	const struct name name = { .kind = NAME_MASKED, .path = "some/.env" },
			  other = { .kind = NAME_MASKED, .path = "other/.env" };
	uint64_t made[] = { judged_hash(place->tree_fd, &name) }, told[] = { judged_hash_path("x") };
	const struct judged_record record = { .made = made, .made_count = 1, .told = told, .told_count = 1 };
	assert_true(judged_is_made(&record, place->tree_fd, &name));
	assert_false(judged_is_made(&record, place->tree_fd, &other));
	assert_false(judged_is_made(&(struct judged_record){ 0 }, place->tree_fd, &name));
	assert_true(judged_is_told(&record, "x") && !judged_is_told(&record, "y"));
	/* Another file by that name. */
	int fd = openat(place->tree_fd, "some", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	const struct name some = { .kind = NAME_MASKED, .path = "some" };
	made[0] = judged_hash(place->tree_fd, &some);
	assert_true(judged_is_made(&record, place->tree_fd, &some));
	assert_int_equal(mkdirat(place->tree_fd, "d", 0700), 0);
	assert_int_equal(renameat(place->tree_fd, "d", place->tree_fd, "e"), 0);
	assert_int_equal(unlinkat(place->tree_fd, "some", 0), 0);
	assert_int_equal(renameat(place->tree_fd, "e", place->tree_fd, "some"), 0);
	assert_false(judged_is_made(&record, place->tree_fd, &some));
}

#define ROW(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(test_round_trip),    ROW(test_damage),       ROW(test_who_runs),
		ROW(test_one_that_died), ROW(test_another_tree), ROW(test_made),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

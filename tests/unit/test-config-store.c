/* The configuration's files, changed and broken; what of them is shared, and remembered by the next process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cordon-internal.h"
#include "config/read.h"
#include "config/store.h"
#include "config-ground.h"

static void nothing_there_is_the_default(void **state)
{
	(void)state;
	ground_expect(2048, NULL);
	assert_int_equal(ground_kept_files(), 0);
	assert_int_equal(access(data, F_OK), 0);
}

/* A command takes its configuration before its workspace is known and again with it: both look at every file. */
static void a_command_looks_twice(void **state)
{
	(void)state;
	const struct config *config;
	struct cordon_error err = { 0 };
	ground_put(project_file, "limits.memory = \"32M\"\n");
	for (uint64_t memory = 64; memory < 66; memory++) {
		char text[64];
		assert_int_equal(config_store_take(store, NULL, -1, workspace, true, ground_hear(), &config, &err), 0);
		assert_int_equal(config->baseline.limits.memory_bytes >> 20, memory == 64 ? 2048 : 64);
		config_unref(config);
		snprintf(text, sizeof(text), "limits.memory = \"%dM\"\n", (int)memory);
		ground_put(user_file, text);
		ground_expect(32, NULL);
	}
	unlink(project_file);
	ground_expect(65, NULL);
}

static void changes_are_seen_at_once(void **state)
{
	(void)state;
	/* Same length, same moment: the time stamps of many file systems cannot tell these apart. */
	for (int i = 0; i < 200; i++) {
		char text[64];
		snprintf(text, sizeof(text), "limits.memory = \"%dM\"\n", 100 + i);
		ground_put(user_file, text);
		ground_expect(100 + (uint64_t)i, NULL);
	}
	ground_put(project_file, "limits.memory = \"10M\"\n");
	ground_expect(10, NULL);
	unlink(project_file);
	ground_expect(299, NULL);
	ground_put(system_file, "limits.memory = \"300M\"\n");
	ground_expect(299, NULL);
	unlink(user_file);
	ground_expect(300, NULL);
	unlink(system_file);
	ground_expect(2048, NULL);
}

static void recent_stamps_are_not_trusted(void **state)
{
	(void)state;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	int64_t ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec, second = 1000000000;
	assert_true(config_stamp_is_fresh(&(struct config_stamp){ .modified_ns = ns, .changed_ns = ns }));
	assert_true(config_stamp_is_fresh(&(struct config_stamp){ .modified_ns = 0, .changed_ns = ns }));
	assert_false(config_stamp_is_fresh(&(struct config_stamp){ .modified_ns = 0, .changed_ns = ns - second }));
	/* A clock that was set back: what changes now has another time. */
	assert_false(
		config_stamp_is_fresh(&(struct config_stamp){ .modified_ns = ns + 3600 * second, .changed_ns = ns }));
	assert_false(config_stamp_is_fresh(&(struct config_stamp){ .problem = ENOENT }));
}

static void unchanged_is_shared(void **state)
{
	(void)state;
	ground_put(user_file, "limits.memory = \"5M\"\n[[session]]\nmatch = \"a*\"\nlimits.memory = \"6M\"\n");
	const struct config *one = ground_take(NULL, false), *two = ground_take("b", false),
			    *three = ground_take("ab", false);
	const struct config *four = ground_take("ac", true);
	assert_ptr_equal(one, two);
	assert_ptr_not_equal(one, three);
	assert_ptr_equal(three, four);
	assert_int_equal(three->baseline.limits.memory_bytes, 6 << 20);
	/* A snapshot outlives the change of its file, and the store. */
	ground_put(user_file, "limits.memory = \"7M\"\n");
	ground_expect(7, NULL);
	ground_open_store();
	assert_int_equal(one->baseline.limits.memory_bytes, 5 << 20);
	assert_true(strings_find(&one->baseline.deny, "**/.env") >= 0);
	const struct config *const all[] = { one, two, three, four };
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		config_unref(all[i]);
}

static void the_last_good_stays(void **state)
{
	(void)state;
	char other[96];
	snprintf(other, sizeof(other), "%s/elsewhere", root);
	ground_put(user_file, "limits.memory = \"5M\"\n");
	ground_expect(5, NULL);
	ground_put(user_file, "limits.memory = \"6M\"\nlimits.memroy = 3\n");
	ground_expect(5, "user.toml:2:8: there is no key \"memroy\" in [limits]: did you mean memory?");
	ground_expect(5, NULL);
	/* Not even where nobody could have written it down. */
	assert_int_equal(rename(data, other), 0);
	ground_expect(5, NULL);
	assert_int_equal(rename(other, data), 0);
	/* Another process: it knows what was good, and that it was told. */
	ground_open_store();
	ground_expect(5, NULL);
	/* Another mistake is told again, once. */
	ground_put(user_file, "[limits\n");
	ground_expect(5, "user.toml:1:8");
	ground_open_store();
	ground_expect(5, NULL);
	/* Good, and then the same mistake again. */
	ground_put(user_file, "limits.memory = \"8M\"\n");
	ground_expect(8, NULL);
	ground_put(user_file, "[limits\n");
	ground_expect(8, "user.toml:1:8");
	ground_open_store();
	ground_expect(8, NULL);
	/* What was removed is not fallen back to. */
	unlink(user_file);
	ground_expect(2048, NULL);
	ground_put(user_file, "[limits\n");
	ground_expect_refused("user.toml:1:8", "");
	ground_open_store();
	ground_expect_refused("user.toml:1:8", "");
}

static void dry_keeps_nothing(void **state)
{
	(void)state;
	const struct config *config;
	ground_put(user_file, "limits.memory = \"5M\"\n");
	config_unref(ground_take(NULL, true));
	assert_int_equal(ground_kept_files(), 0);
	config_unref(ground_take(NULL, false));
	assert_int_equal(ground_kept_files(), 1);
	ground_put(user_file, "x");
	for (int i = 0; i < 2; i++) {
		config = ground_take(NULL, true);
		assert_non_null(config->note);
		config_unref(config);
	}
	ground_expect(5, "user.toml:1:");
	config = ground_take(NULL, true);
	assert_null(config->note);
	config_unref(config);
}

static void kept_texts_are_private(void **state)
{
	(void)state;
	char path[160];
	struct stat info;
	ground_put(user_file, "env.set = { TOKEN = \"hunter2\" }\n");
	config_unref(ground_take(NULL, false));
	snprintf(path, sizeof(path), "%s/config", data);
	DIR *directory = opendir(path);
	assert_non_null(directory);
	for (struct dirent *entry; (entry = readdir(directory));)
		if (entry->d_name[0] != '.') {
			assert_int_equal(fstatat(dirfd(directory), entry->d_name, &info, 0), 0);
			assert_int_equal(info.st_mode & 07777, 0600);
		}
	assert_int_equal(fstat(dirfd(directory), &info), 0);
	assert_int_equal(info.st_mode & 07777, 0700);
	closedir(directory);
}

/* A tighter system binds at once: the user's file that was good is not any more, whatever is kept. */
static void a_tighter_system_wins(void **state)
{
	(void)state;
	ground_put(user_file, "limits.memory = \"500M\"\n");
	ground_expect(500, NULL);
	ground_put(system_file, "limits.memory = \"100M\"\n");
	ground_expect_refused("user.toml:1:8", "system.toml:1:8");
	ground_open_store();
	ground_expect_refused("user.toml:1:8", "system.toml:1:8");
	ground_put(user_file, "limits.memory = \"50M\"\n");
	ground_expect(50, NULL);
	/* Widening is a mistake like any other: the last good one stays. */
	ground_put(user_file, "limits.memory = \"200M\"\n");
	ground_expect(50, "user.toml:1:8: limits.memory can only be narrowed");
	ground_expect(50, NULL);
	ground_put(system_file, "limits.memory = \"1G\"\n");
	ground_expect(200, NULL);
}

static void projects_fall_back_too(void **state)
{
	(void)state;
	ground_put(project_file, "limits.memory = \"50M\"\n");
	ground_expect(50, NULL);
	ground_put(project_file, "limits.memory = \"50G\"\n");
	ground_expect(50, ".cordon.toml:1:8");
	ground_expect(50, NULL);
	ground_open_store();
	ground_expect(50, NULL);
	unlink(project_file);
	ground_expect(2048, NULL);
	ground_put(project_file, "capabilities.network = \"all\"\n");
	ground_expect_refused(".cordon.toml:1:14", "can only be narrowed");
}

/* More workspaces and more combinations than are remembered. */
static void many_workspaces(void **state)
{
	(void)state;
	const struct config *held[100];
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 100; i++) {
			char path[96], file[112], text[64];
			struct cordon_error err = { 0 };
			const struct config *config;
			snprintf(path, sizeof(path), "%s/w%d", root, i);
			snprintf(file, sizeof(file), "%s/.cordon.toml", path);
			snprintf(text, sizeof(text), "limits.memory = \"%dM\"\n", i + 1);
			if (!round) {
				assert_int_equal(mkdir(path, 0700), 0);
				ground_put(file, text);
			}
			auto_close int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
			assert_int_equal(config_store_take(store, NULL, fd, path, false, ground_hear(), &config, &err),
			                 0);
			assert_int_equal(config->baseline.limits.memory_bytes >> 20, (uint64_t)i + 1);
			if (round)
				config_unref(held[i]);
			held[i] = config;
		}
	for (int i = 0; i < 100; i++)
		config_unref(held[i]);
}

#define THREADS 8
static void *take_many(void *counter)
{
	unsigned *notes = counter;
	for (int i = 0; i < 200; i++) {
		const struct config *config = ground_take(i % 2 ? "a" : NULL, false);
		*notes += config->note != NULL;
		config_unref(config);
	}
	return NULL;
}

/* Versions come and go while others use them. */
static void threads_meet_changes(void **state)
{
	(void)state;
	pthread_t threads[THREADS];
	unsigned notes[THREADS] = { 0 };
	ground_put(user_file, "limits.memory = \"5M\"\n[[session]]\nmatch = \"a\"\nlimits.cpu = 5\n");
	ground_expect(5, NULL);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_many, &notes[i]), 0);
	for (int i = 0; i < 300; i++) {
		char text[96], temporary[96];
		snprintf(temporary, sizeof(temporary), "%s/new", root);
		snprintf(text, sizeof(text), "limits.memory = \"%dM\"\n[[session]]\nmatch = \"a\"\nlimits.cpu = %d\n",
		         i + 1, i + 1);
		ground_put(temporary, text);
		assert_int_equal(rename(temporary, user_file), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ground_expect(300, NULL);
}

static void threads_share_it(void **state)
{
	(void)state;
	pthread_t threads[THREADS];
	unsigned notes[THREADS] = { 0 }, all = 0;
	ground_put(user_file, "limits.memory = \"5M\"\n[[session]]\nmatch = \"a\"\nlimits.cpu = 5\n");
	ground_expect(5, NULL);
	ground_put(user_file, "broken");
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_many, &notes[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		all += notes[i];
	}
	assert_int_equal(all, 1);
}

/* Of many processes that meet the same mistake, one tells. */
static void processes_tell_once(void **state)
{
	(void)state;
	int children = 12, told = 0;
	ground_put(user_file, "limits.memory = \"5M\"\n");
	ground_expect(5, NULL);
	ground_put(user_file, "broken");
	for (int i = 0; i < children; i++)
		if (fork() == 0) {
			ground_open_store();
			const struct config *config = ground_take(NULL, false);
			_exit(config->note ? 1 : 0);
		}
	for (int i = 0; i < children; i++) {
		int status;
		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status));
		told += WEXITSTATUS(status);
	}
	assert_int_equal(told, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_setup, ground_teardown)
#define WATCHED(name) { #name " (watched)", name, ground_setup_watched, ground_teardown, NULL }
	const struct CMUnitTest tests[] = {
		TEST(nothing_there_is_the_default),
		TEST(a_command_looks_twice),
		TEST(changes_are_seen_at_once),
		TEST(recent_stamps_are_not_trusted),
		TEST(unchanged_is_shared),
		TEST(the_last_good_stays),
		TEST(dry_keeps_nothing),
		TEST(kept_texts_are_private),
		TEST(a_tighter_system_wins),
		TEST(projects_fall_back_too),
		TEST(many_workspaces),
		TEST(threads_share_it),
		TEST(threads_meet_changes),
		TEST(processes_tell_once),
		WATCHED(nothing_there_is_the_default),
		WATCHED(a_command_looks_twice),
		WATCHED(changes_are_seen_at_once),
		WATCHED(unchanged_is_shared),
		WATCHED(the_last_good_stays),
		WATCHED(dry_keeps_nothing),
		WATCHED(kept_texts_are_private),
		WATCHED(a_tighter_system_wins),
		WATCHED(projects_fall_back_too),
		WATCHED(many_workspaces),
		WATCHED(threads_share_it),
		WATCHED(threads_meet_changes),
		WATCHED(processes_tell_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

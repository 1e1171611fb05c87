/* The configuration's files: changed, broken, planted; and what of them is remembered by the next process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/remove.h"
#include "cordon.h"
#include "policy/config-read.h"
#include "policy/config-store.h"
#include "skip.h"

static char root[64], data[80], system_file[80], user_file[80], workspace[80], project_file[96];
static int workspace_fd = -1;
static struct config_store *store;

static void open_store(void)
{
	struct cordon_error err = { 0 };
	const struct config_files files = { .system = system_file, .user = user_file, .home = "/home/me" };
	config_store_unref(store);
	store = NULL;
	if (config_store_open_files(data, &files, &store, &err) < 0)
		fail_msg("%s", err.reason);
}

static int setup(void **state)
{
	(void)state;
	strcpy(root, "/tmp/test-config-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(data, sizeof(data), "%s/data", root);
	snprintf(system_file, sizeof(system_file), "%s/system.toml", root);
	snprintf(user_file, sizeof(user_file), "%s/user.toml", root);
	snprintf(workspace, sizeof(workspace), "%s/work", root);
	snprintf(project_file, sizeof(project_file), "%s/.cordon.toml", workspace);
	assert_int_equal(mkdir(data, 0700), 0);
	assert_int_equal(mkdir(workspace, 0700), 0);
	workspace_fd = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
	open_store();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	config_store_unref(store);
	store = NULL;
	close(workspace_fd);
	remove_tree(AT_FDCWD, root);
	return 0;
}

static void put(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static const struct config *take_as(const char *session, bool dry)
{
	const struct config *config;
	struct cordon_error err = { 0 };
	if (config_store_take(store, session, NULL, workspace_fd, workspace, dry, &config, &err) < 0)
		fail_msg("%s: %s", err.subject, err.reason);
	return config;
}

/* The memory limit in MiB, and whether there was a note that contains `note` (NULL: none at all). */
static void expect(uint64_t memory, const char *note)
{
	const struct config *config = take_as(NULL, false);
	assert_int_equal(config->baseline.limits.memory_bytes >> 20, memory);
	if (!note && config->note)
		fail_msg("note: %s", config->note);
	if (note && (!config->note || !strstr(config->note, note)))
		fail_msg("note: %s", config->note ? config->note : "none");
	config_unref(config);
}

static void expect_refused(const char *subject, const char *part)
{
	const struct config *config = NULL;
	struct cordon_error err = { 0 };
	assert_true(config_store_take(store, NULL, NULL, workspace_fd, workspace, false, &config, &err) < 0);
	assert_null(config);
	assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
	assert_string_equal(err.boundary, "configuration");
	if (!strstr(err.subject, subject) || !strstr(err.reason, part))
		fail_msg("%s: %s", err.subject, err.reason);
}

static size_t kept_files(void)
{
	char path[96];
	size_t count = 0;
	snprintf(path, sizeof(path), "%s/config", data);
	DIR *directory = opendir(path);
	for (struct dirent *entry; directory && (entry = readdir(directory));)
		count += entry->d_name[0] != '.';
	if (directory)
		closedir(directory);
	return count;
}

static void nothing_there_is_the_default(void **state)
{
	(void)state;
	expect(2048, NULL);
	assert_int_equal(kept_files(), 0);
	assert_int_equal(access(data, F_OK), 0);
}

static const struct config *take_after(const struct config *earlier, int directory)
{
	const struct config *config;
	struct cordon_error err = { 0 };
	if (config_store_take(store, NULL, earlier, directory, workspace, true, &config, &err) < 0)
		fail_msg("%s: %s", err.subject, err.reason);
	return config;
}

/* One command looks once for the files of the system and the user; for the project's as soon as it can. The next command
 * looks for all of them again. */
static void a_command_looks_once(void **state)
{
	(void)state;
	const struct config *earlier = take_after(NULL, -1), *config;
	put(user_file, "limits.memory = \"64M\"\n");
	config = take_after(earlier, workspace_fd);
	assert_ptr_equal(config, earlier);
	config_unref(config);
	put(project_file, "limits.memory = \"32M\"\n");
	config = take_after(earlier, workspace_fd);
	assert_int_equal(config->baseline.limits.memory_bytes >> 20, 32);
	config_unref(config);
	config_unref(earlier);
	unlink(project_file);
	expect(64, NULL);
	/* What was there is looked at both times. */
	earlier = take_after(NULL, -1);
	put(user_file, "limits.memory = \"65M\"\n");
	config = take_after(earlier, workspace_fd);
	assert_int_equal(config->baseline.limits.memory_bytes >> 20, 65);
	config_unref(config);
	config_unref(earlier);
}

static void changes_are_seen_at_once(void **state)
{
	(void)state;
	/* Same length, same moment: the time stamps of many file systems cannot tell these apart. */
	for (int i = 0; i < 200; i++) {
		char text[64];
		snprintf(text, sizeof(text), "limits.memory = \"%dM\"\n", 100 + i);
		put(user_file, text);
		expect(100 + (uint64_t)i, NULL);
	}
	put(project_file, "limits.memory = \"10M\"\n");
	expect(10, NULL);
	unlink(project_file);
	expect(299, NULL);
	put(system_file, "limits.memory = \"300M\"\n");
	expect(299, NULL);
	unlink(user_file);
	expect(300, NULL);
	unlink(system_file);
	expect(2048, NULL);
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
	assert_false(config_stamp_is_fresh(&(struct config_stamp){ .modified_ns = ns + 3600 * second, .changed_ns = ns }));
	assert_false(config_stamp_is_fresh(&(struct config_stamp){ .problem = ENOENT }));
}

static void unchanged_is_shared(void **state)
{
	(void)state;
	put(user_file, "limits.memory = \"5M\"\n[[session]]\nmatch = \"a*\"\nlimits.memory = \"6M\"\n");
	const struct config *one = take_as(NULL, false), *two = take_as("b", false), *three = take_as("ab", false);
	const struct config *four = take_as("ac", true);
	assert_ptr_equal(one, two);
	assert_ptr_not_equal(one, three);
	assert_ptr_equal(three, four);
	assert_int_equal(three->baseline.limits.memory_bytes, 6 << 20);
	/* A snapshot outlives the change of its file, and the store. */
	put(user_file, "limits.memory = \"7M\"\n");
	expect(7, NULL);
	open_store();
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
	put(user_file, "limits.memory = \"5M\"\n");
	expect(5, NULL);
	put(user_file, "limits.memory = \"6M\"\nlimits.memroy = 3\n");
	expect(5, "user.toml:2:8: there is no key \"memroy\" in [limits]: did you mean memory?");
	expect(5, NULL);
	/* Not even where nobody could have written it down. */
	assert_int_equal(rename(data, other), 0);
	expect(5, NULL);
	assert_int_equal(rename(other, data), 0);
	/* Another process: it knows what was good, and that it was told. */
	open_store();
	expect(5, NULL);
	/* Another mistake is told again, once. */
	put(user_file, "[limits\n");
	expect(5, "user.toml:1:8");
	open_store();
	expect(5, NULL);
	/* Good, and then the same mistake again. */
	put(user_file, "limits.memory = \"8M\"\n");
	expect(8, NULL);
	put(user_file, "[limits\n");
	expect(8, "user.toml:1:8");
	open_store();
	expect(8, NULL);
	/* What was removed is not fallen back to. */
	unlink(user_file);
	expect(2048, NULL);
	put(user_file, "[limits\n");
	expect_refused("user.toml:1:8", "");
	open_store();
	expect_refused("user.toml:1:8", "");
}

static void dry_keeps_nothing(void **state)
{
	(void)state;
	const struct config *config;
	put(user_file, "limits.memory = \"5M\"\n");
	config_unref(take_as(NULL, true));
	assert_int_equal(kept_files(), 0);
	config_unref(take_as(NULL, false));
	assert_int_equal(kept_files(), 1);
	put(user_file, "x");
	for (int i = 0; i < 2; i++) {
		config = take_as(NULL, true);
		assert_non_null(config->note);
		config_unref(config);
	}
	expect(5, "user.toml:1:");
	config = take_as(NULL, true);
	assert_null(config->note);
	config_unref(config);
}

static void kept_texts_are_private(void **state)
{
	(void)state;
	char path[160];
	struct stat info;
	put(user_file, "env.set = { TOKEN = \"hunter2\" }\n");
	config_unref(take_as(NULL, false));
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
	put(user_file, "limits.memory = \"500M\"\n");
	expect(500, NULL);
	put(system_file, "limits.memory = \"100M\"\n");
	expect_refused("user.toml:1:8", "system.toml:1:8");
	open_store();
	expect_refused("user.toml:1:8", "system.toml:1:8");
	put(user_file, "limits.memory = \"50M\"\n");
	expect(50, NULL);
	/* Widening is a mistake like any other: the last good one stays. */
	put(user_file, "limits.memory = \"200M\"\n");
	expect(50, "user.toml:1:8: limits.memory can only be narrowed");
	expect(50, NULL);
	put(system_file, "limits.memory = \"1G\"\n");
	expect(200, NULL);
}

static void projects_fall_back_too(void **state)
{
	(void)state;
	put(project_file, "limits.memory = \"50M\"\n");
	expect(50, NULL);
	put(project_file, "limits.memory = \"50G\"\n");
	expect(50, ".cordon.toml:1:8");
	expect(50, NULL);
	open_store();
	expect(50, NULL);
	unlink(project_file);
	expect(2048, NULL);
	put(project_file, "capabilities.network = \"all\"\n");
	expect_refused(".cordon.toml:1:14", "can only be narrowed");
}

static void planted_projects_are_refused(void **state)
{
	(void)state;
	char other[96];
	snprintf(other, sizeof(other), "%s/other", root);
	put(other, "limits.memory = \"50M\"\n");
	assert_int_equal(symlink(other, project_file), 0);
	expect_refused(".cordon.toml", "symbolic link");
	unlink(project_file);
	assert_int_equal(symlink("/nonexistent", project_file), 0);
	expect_refused(".cordon.toml", "symbolic link");
	unlink(project_file);
	assert_int_equal(mkfifo(project_file, 0644), 0);
	expect_refused(".cordon.toml", "not a regular file");
	unlink(project_file);
	assert_int_equal(mkdir(project_file, 0755), 0);
	expect_refused(".cordon.toml", "not a regular file");
	rmdir(project_file);
	put(project_file, "");
	assert_int_equal(truncate(project_file, 64 << 20), 0);
	expect_refused(".cordon.toml", "larger than");
	unlink(project_file);
	expect(2048, NULL);
}

static void foreign_files_are_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip_cannot("root", "only root can give files away");
	put(project_file, "limits.memory = \"50M\"\n");
	assert_int_equal(chown(project_file, 12345, 12345), 0);
	expect_refused(".cordon.toml", "another user");
	/* Where it is the workspace's owner's, it is the project's own. */
	assert_int_equal(chown(workspace, 12345, 12345), 0);
	open_store();
	expect(50, NULL);
	unlink(project_file);
	put(user_file, "limits.memory = \"50M\"\n");
	assert_int_equal(chown(user_file, 12345, 12345), 0);
	expect_refused("user.toml", "another user");
}

static void what_others_write_is_refused(void **state)
{
	(void)state;
	static const mode_t modes[] = { 0664, 0646, 0620 };
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		put(i ? user_file : system_file, "limits.memory = \"5M\"\n");
		assert_int_equal(chmod(i ? user_file : system_file, modes[i]), 0);
		expect_refused(i ? "user.toml" : "system.toml", "by others");
		unlink(i ? user_file : system_file);
	}
	/* And where it was good before, what was then good stays. */
	put(user_file, "limits.memory = \"5M\"\n");
	expect(5, NULL);
	put(user_file, "limits.memory = \"6M\"\n");
	assert_int_equal(chmod(user_file, 0666), 0);
	expect(5, "user.toml: the configuration can be written by others");
	expect(5, NULL);
	assert_int_equal(chmod(user_file, 0600), 0);
	expect(6, NULL);
}

static void links_to_a_users_own_file_are_followed(void **state)
{
	(void)state;
	char other[96];
	snprintf(other, sizeof(other), "%s/dotfiles", root);
	put(other, "limits.memory = \"50M\"\n");
	assert_int_equal(symlink(other, user_file), 0);
	expect(50, NULL);
	put(other, "limits.memory = \"51M\"\n");
	expect(51, NULL);
}

static void the_only_file_must_be_good(void **state)
{
	(void)state;
	struct cordon_error err = { 0 };
	char only[96];
	snprintf(only, sizeof(only), "%s/only.toml", root);
	const struct config_files files = { .system = system_file, .user = user_file, .only = only };
	put(system_file, "limits.memory = \"5M\"\n");
	put(user_file, "broken");
	config_store_unref(store);
	assert_int_equal(config_store_open_files(data, &files, &store, &err), 0);
	expect_refused("only.toml", "cannot read");
	put(only, "limits.memory = \"70M\"\n");
	expect(70, NULL);
	put(project_file, "limits.memory = \"7M\"\n");
	expect(7, NULL);
	put(only, "limits.memory = \"71M\"\nx");
	expect_refused("only.toml:2:", "");
	unlink(only);
	expect_refused("only.toml", "cannot read");
}

static void names_come_from_the_environment(void **state)
{
	(void)state;
	struct cordon_error err = { 0 };
	struct config_store *usual;
	setenv("HOME", "/home/x", 1);
	unsetenv("XDG_CONFIG_HOME");
	assert_int_equal(config_store_open(data, NULL, &usual, &err), 0);
	assert_string_equal(config_store_files(usual)->system, CONFIG_SYSTEM_FILE);
	assert_string_equal(config_store_files(usual)->user, "/home/x/.config/cordon/config.toml");
	assert_string_equal(config_store_files(usual)->home, "/home/x");
	config_store_unref(usual);
	setenv("XDG_CONFIG_HOME", "/xdg", 1);
	setenv("HOME", "relative", 1);
	assert_int_equal(config_store_open(data, "", &usual, &err), 0);
	assert_string_equal(config_store_files(usual)->user, "/xdg/cordon/config.toml");
	assert_null(config_store_files(usual)->home);
	assert_null(config_store_files(usual)->only);
	config_store_unref(usual);
	setenv("XDG_CONFIG_HOME", "relative", 1);
	assert_int_equal(config_store_open(data, NULL, &usual, &err), 0);
	assert_null(config_store_files(usual)->user);
	config_store_unref(usual);
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
				put(file, text);
			}
			auto_close int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
			assert_int_equal(config_store_take(store, NULL, NULL, fd, path, false, &config, &err), 0);
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
		const struct config *config = take_as(i % 2 ? "a" : NULL, false);
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
	put(user_file, "limits.memory = \"5M\"\n[[session]]\nmatch = \"a\"\nlimits.cpu = 5\n");
	expect(5, NULL);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_many, &notes[i]), 0);
	for (int i = 0; i < 300; i++) {
		char text[96], temporary[96];
		snprintf(temporary, sizeof(temporary), "%s/new", root);
		snprintf(text, sizeof(text), "limits.memory = \"%dM\"\n[[session]]\nmatch = \"a\"\nlimits.cpu = %d\n", i + 1, i + 1);
		put(temporary, text);
		assert_int_equal(rename(temporary, user_file), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	expect(300, NULL);
}

static void threads_share_it(void **state)
{
	(void)state;
	pthread_t threads[THREADS];
	unsigned notes[THREADS] = { 0 }, all = 0;
	put(user_file, "limits.memory = \"5M\"\n[[session]]\nmatch = \"a\"\nlimits.cpu = 5\n");
	expect(5, NULL);
	put(user_file, "broken");
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
	put(user_file, "limits.memory = \"5M\"\n");
	expect(5, NULL);
	put(user_file, "broken");
	for (int i = 0; i < children; i++)
		if (fork() == 0) {
			open_store();
			const struct config *config = take_as(NULL, false);
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

/* A damaged kept file is as good as none. */
static void what_is_kept_is_not_trusted(void **state)
{
	(void)state;
	char path[96], other[96], name[512] = "";
	snprintf(other, sizeof(other), "%s/other", root);
	put(user_file, "limits.memory = \"5M\"\n");
	expect(5, NULL);
	snprintf(path, sizeof(path), "%s/config", data);
	DIR *directory = opendir(path);
	for (struct dirent *entry; (entry = readdir(directory));)
		if (entry->d_name[0] != '.')
			snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
	closedir(directory);
	put(name, "limits.memory = \"5");
	put(user_file, "broken");
	open_store();
	expect_refused("user.toml:1:", "");
	unlink(name);
	put(other, "limits.memory = \"5M\"\n");
	assert_int_equal(symlink(other, name), 0);
	open_store();
	expect_refused("user.toml:1:", "");
	unlink(name);
	put(name, "limits.memory = \"5M\"\n");
	expect(5, "user.toml:1:");
}

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
	assert_int_equal(config_store_take(store, NULL, NULL, workspace_fd, workspace, false, &taken, &err), 0);
	assert_int_equal(taken->baseline.limits.processes, a->limits.processes);
	config_unref(taken);
	config_unref(whole);
	arena_free(&arena);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_plain),
		TEST(nothing_there_is_the_default),
		TEST(a_command_looks_once),
		TEST(changes_are_seen_at_once),
		TEST(recent_stamps_are_not_trusted),
		TEST(unchanged_is_shared),
		TEST(the_last_good_stays),
		TEST(dry_keeps_nothing),
		TEST(kept_texts_are_private),
		TEST(a_tighter_system_wins),
		TEST(projects_fall_back_too),
		TEST(planted_projects_are_refused),
		TEST(foreign_files_are_refused),
		TEST(what_others_write_is_refused),
		TEST(links_to_a_users_own_file_are_followed),
		TEST(the_only_file_must_be_good),
		TEST(names_come_from_the_environment),
		TEST(many_workspaces),
		TEST(threads_share_it),
		TEST(threads_meet_changes),
		TEST(processes_tell_once),
		TEST(what_is_kept_is_not_trusted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The ledger where it cannot be written: full disks, swapped files, what is not ours or is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "ledger-calls.h"
#include "skip.h"
#include "system-has.h"

static void put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(77);
	close(fd);
}

static void own_namespace(void)
{
	char map[64];
	unsigned uid = geteuid(), gid = getegid();
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		_exit(77);
	put_text("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	put_text("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	put_text("/proc/self/gid_map", map);
}

/* A file system of 64 KiB: rows until it is full, then refused, whole lines only, and room makes it work again. */
static int fill_disk(struct ground *ground)
{
	struct cordon_error err;
	char line[3000], extra[128];
	own_namespace();
	if (mount("none", ground->root, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=700"))
		return 77;
	snprintf(extra, sizeof(extra), "%s/extra", ground->root);
	ground_write(extra, "room to be made later");
	memset(line, 'x', sizeof(line));
	memcpy(line, "{\"pad\":\"", 8);
	memcpy(line + sizeof(line) - 2, "\"}", 2);
	int rows = 0;
	while (ledger_append(ground->ledger, line, sizeof(line), &err) == 0 && rows < 100)
		rows++;
	if (rows < 5 || rows == 100 || err.class != CORDON_E_AUDIT_UNAVAILABLE || err.os_errno != ENOSPC)
		return 1;
	struct tally tally = ground_read_all(ground->file);
	if (tally.rows != rows || tally.torn || tally.repairs)
		return 2;
	if (unlink(extra) || ledger_append(ground->ledger, line, sizeof(line), &err) < 0)
		return 3;
	ledger_unref(ground->ledger);
	if (mount("none", ground->root, NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, "size=64k"))
		return 4;
	struct ledger *fresh;
	if (ledger_open(ground->data, false, &fresh, &err) < 0 || ledger_append(fresh, "{\"a\":1}", 7, &err) == 0)
		return 5;
	return err.os_errno == EROFS && strstr(err.remediation, "read-write") ? 0 : 6;
}

static void in_child(struct ground *ground, int (*fn)(struct ground *))
{
	int status;
	fflush(NULL);
	pid_t pid = fork();
	if (!pid)
		_exit(fn(ground));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip_cannot("mount-namespace", "a small filesystem of its own is needed");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_full_disk(void **state)
{
	in_child(*state, fill_disk);
}

static int reach_file_size_limit(struct ground *ground)
{
	struct cordon_error err;
	struct rlimit limit = { 100, 100000 };
	/* SIGXFSZ is as it was: writing beyond the limit would end this process. */
	if (setrlimit(RLIMIT_FSIZE, &limit))
		return 1;
	if (ledger_append(ground->ledger, "{\"a\":1}", 7, &err) == 0 || err.os_errno != EFBIG)
		return 2;
	limit.rlim_cur = 2000;
	if (setrlimit(RLIMIT_FSIZE, &limit))
		return 3;
	int rows = 0;
	while (ledger_append(ground->ledger, "{\"a\":1}", 7, &err) == 0 && rows < 20)
		rows++;
	if (rows < 5 || rows > 15 || err.os_errno != EFBIG)
		return 4;
	return ground_read_all(ground->file).rows == rows ? 0 : 5;
}

static void a_file_size_limit(void **state)
{
	in_child(*state, reach_file_size_limit);
}

static int write_elsewhere(struct ground *ground)
{
	if (geteuid() == 0 && setresuid(65534, 65534, 65534))
		return 77;
	ground_must_refuse(ground->ledger, EACCES, "cannot be made");
	return 0;
}

static void no_permission(void **state)
{
	struct ground *ground = *state;
	assert_int_equal(chmod(ground->root, geteuid() == 0 ? 0755 : 0555), 0);
	in_child(ground, write_elsewhere);
	assert_int_equal(chmod(ground->root, 0700), 0);
	/* A file where a directory should be. */
	char share[80];
	snprintf(share, sizeof(share), "%s/share", ground->root);
	ground_write(share, "");
	ground_must_refuse(ground->ledger, ENOTDIR, "data directory");
}

static void what_is_not_ours(void **state)
{
	struct ground *ground = *state;
	char other[128];
	ground_append(ground->ledger, "{\"a\":1}");
	snprintf(other, sizeof(other), "%s/other", ground->root);

	assert_int_equal(rename(ground->file, other), 0);
	if (HAS_LINKS) {
		assert_int_equal(symlink(other, ground->file), 0);
		ground_must_refuse(ground->ledger, ELOOP, "cannot be opened");
		ground_holds(other, "{\"a\":1}\n");
		assert_int_equal(unlink(ground->file), 0);
	}

	assert_int_equal(mkdir(ground->file, 0700), 0);
	ground_must_refuse(ground->ledger, EISDIR, "cannot be opened");
	assert_int_equal(rmdir(ground->file), 0);

	if (HAS_SPECIAL_FILES) {
		assert_int_equal(mkfifo(ground->file, 0600), 0);
		ground_must_refuse(ground->ledger, 0, "not a regular file");
		assert_int_equal(unlink(ground->file), 0);
	}

	assert_int_equal(rename(other, ground->file), 0);
	assert_int_equal(chmod(ground->file, 0622), 0);
	struct ledger *fresh;
	struct cordon_error err;
	assert_int_equal(ledger_open(ground->data, false, &fresh, &err), 0);
	ground_must_refuse(fresh, EPERM, "written to by other users");
	assert_int_equal(chmod(ground->file, 0600), 0);
	ground_append(fresh, "{\"b\":2}");
	ledger_unref(fresh);

	if (geteuid() == 0) {
		assert_int_equal(ledger_open(ground->data, false, &fresh, &err), 0);
		assert_int_equal(chown(ground->file, 1, 1), 0);
		ground_must_refuse(fresh, EPERM, "another user");
		assert_int_equal(chown(ground->file, 0, 0), 0);
		assert_int_equal(chown(ground->directory, 1, 1), 0);
		ground_must_refuse(fresh, EPERM, "another user");
		assert_int_equal(chown(ground->directory, 0, 0), 0);
		ledger_unref(fresh);
	}

	if (!HAS_LINKS)
		return;
	assert_int_equal(rename(ground->directory, other), 0);
	assert_int_equal(symlink(other, ground->directory), 0);
	assert_int_equal(ledger_open(ground->data, false, &fresh, &err), 0);
	ground_must_refuse(fresh, ELOOP, "the ledger cannot be opened");
	ledger_unref(fresh);
}

/* Each is noted, and the ledger goes on. */
static void what_went_away(void **state)
{
	struct ground *ground = *state;
	char moved[192];
	snprintf(moved, sizeof(moved), "%s.old", ground->file);
	ground_append(ground->ledger, "{\"a\":1}");
	assert_int_equal(rename(ground->file, moved), 0);
	ground_append(ground->ledger, "{\"b\":2}");
	ground_holds(moved, "{\"a\":1}\n");
	ground_noted(ground, "repair", "rows are gone");
	assert_int_equal(unlink(ground->file), 0);
	ground_append(ground->ledger, "{\"c\":3}");
	ground_noted(ground, "repair", "rows are gone");
	snprintf(moved, sizeof(moved), "%s.old", ground->directory);
	assert_int_equal(rename(ground->directory, moved), 0);
	ground_append(ground->ledger, "{\"d\":4}");
	ground_noted(ground, "begin", "the ledger is gone");
	assert_int_equal(nftw(ground->data, ground_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	ground_append(ground->ledger, "{\"e\":5}");
	ground_noted(ground, "begin", "the ledger is gone");
	ground_intact(ground, false);
	/* Whoever never saw the one before begins a new one. */
	struct ledger *fresh;
	struct cordon_error err;
	assert_int_equal(nftw(ground->directory, ground_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	assert_int_equal(ledger_open(ground->data, false, &fresh, &err), 0);
	ground_append(fresh, "{\"f\":6}");
	ledger_unref(fresh);
	ground_holds(ground->file, "{\"f\":6}\n");
	ground_intact(ground, true);
}

/* One of the small files is gone or is not what it was. */
static void a_head_or_key_that_is_gone(void **state)
{
	static const struct {
		const char *name, *text, *kind, *reason;
	} rows[] = {
		{ "head", NULL, "repair", "the head is gone" }, { "head", "", "repair", "the head is gone" },
		{ "head", "{\"ledger\":1,\"rows\":0}\n", "repair", "the head is gone" },
		{ "key", NULL, NULL, NULL }, { "signed", NULL, NULL, NULL }, { "key.pub", NULL, NULL, NULL },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int again = 0; again < 2; again++) {
			struct ground *ground = ground_make();
			struct cordon_error err;
			char path[160];
			ground_append(ground->ledger, "{\"a\":1}");
			snprintf(path, sizeof(path), "%s/%s", ground->directory, rows[i].name);
			if (rows[i].text)
				ground_write(path, rows[i].text);
			else
				assert_int_equal(unlink(path), 0);
			if (again) {
				ledger_unref(ground->ledger);
				assert_int_equal(ledger_open(ground->data, false, &ground->ledger, &err), 0);
			}
			ground_append(ground->ledger, "{\"b\":2}");
			bool new_key = again && !strcmp(rows[i].name, "key");
			if (new_key)
				ground_noted(ground, "begin", "the key is gone");
			else if (rows[i].kind)
				ground_noted(ground, rows[i].kind, rows[i].reason);
			ground_append(ground->ledger, "{\"c\":3}");
			ground_intact(ground, false);
			ground_remove(ground);
		}
	(void)state;
}

static void a_key_that_is_none(void **state)
{
	struct ground *ground = *state;
	struct ledger *fresh;
	struct cordon_error err;
	char path[160];
	snprintf(path, sizeof(path), "%s/key", ground->directory);
	ground_append(ground->ledger, "{\"a\":1}");
	char *key = ground_slurp(path);
	assert_int_equal(ledger_open(ground->data, false, &fresh, &err), 0);
	ground_write(path, "no key\n");
	ground_must_refuse(fresh, EKEYREJECTED, "not a key");
	ground_write(path, key);
	if (HAS_MODES) {
		assert_int_equal(chmod(path, 0640), 0);
		ground_must_refuse(fresh, EPERM, "read by other users");
		assert_int_equal(chmod(path, 0600), 0);
	}
	ground_append(fresh, "{\"b\":2}");
	ground_intact(ground, true);
	ledger_unref(fresh);
	free(key);
}

static void a_head_that_is_set_back(void **state)
{
	struct ground *ground = *state;
	struct stat st;
	char path[160];
	snprintf(path, sizeof(path), "%s/head", ground->directory);
	ground_append(ground->ledger, "{\"a\":1}");
	char *head = ground_slurp(path);
	assert_int_equal(stat(ground->file, &st), 0);
	ground_append(ground->ledger, "{\"b\":2}");
	/* All of it as it was before: only whoever has seen more can tell. */
	ground_write(path, head);
	assert_int_equal(truncate(ground->file, st.st_size), 0);
	ground_intact(ground, true);
	ground_append(ground->ledger, "{\"c\":3}");
	ground_noted(ground, "repair", "the head was set back");
	ground_intact(ground, false);
	free(head);
}

static void *let_go(void *fd)
{
	usleep(50000);
	flock(*(int *)fd, LOCK_UN);
	return NULL;
}

static void a_lock_that_is_held(void **state)
{
	struct ground *ground = *state;
	ground_append(ground->ledger, "{\"a\":1}");
	char head[160];
	snprintf(head, sizeof(head), "%s/head", ground->directory);
	int fd = open(head, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	skip_sleep = true;
	ground_must_refuse(ground->ledger, EAGAIN, "locked by another process");
	close(fd);
}

static void a_lock_that_is_let_go(void **state)
{
	struct ground *ground = *state;
	ground_append(ground->ledger, "{\"a\":1}");
	char head[160];
	snprintf(head, sizeof(head), "%s/head", ground->directory);
	int fd = open(head, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, let_go, &fd), 0);
	ground_append(ground->ledger, "{\"b\":2}");
	pthread_join(thread, NULL);
	close(fd);
	ground_holds(ground->file, "{\"a\":1}\n{\"b\":2}\n");
}

static void to_the_disk(void **state)
{
	struct ground *ground = *state;
	struct ledger *synced;
	struct cordon_error err;
	syncs = 0;
	ground_append(ground->ledger, "{\"a\":1}");
	assert_int_equal(syncs, 0);
	assert_int_equal(ledger_open(ground->data, true, &synced, &err), 0);
	ground_append(synced, "{\"b\":2}");
	ground_append(synced, "{\"c\":3}");
	assert_int_equal(syncs, 2);
	fail_sync = true;
	ground_must_refuse(synced, EIO, "did not reach the disk");
	fail_sync = false;
	ground_append(synced, "{\"d\":4}");
	ledger_unref(synced);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, calls_setup, calls_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_full_disk), CASE(a_file_size_limit), CASE(no_permission), CASE(what_is_not_ours),
		CASE(what_went_away), CASE(a_head_or_key_that_is_gone), CASE(a_key_that_is_none),
		CASE(a_head_that_is_set_back), CASE(a_lock_that_is_held), CASE(a_lock_that_is_let_go),
		CASE(to_the_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

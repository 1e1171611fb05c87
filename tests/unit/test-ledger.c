/* The ledger under everything that can happen to it: many writers, killed writers, full disks, swapped files. The
 * system calls that fail on demand are this file's own; the linker prefers them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "ledger-ground.h"
#include "skip.h"

/* ---- System calls on demand -------------------------------------------------------------------------------------- */

static time_t clock_offset;
static size_t short_write;              /* the next writev() stops after so many bytes */
static bool fail_truncate, fail_sync, skip_sleep;
static int syncs;

time_t time(time_t *ret)
{
	struct timespec now;
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec + clock_offset;
	return now.tv_sec + clock_offset;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	size_t size = short_write;
	short_write = 0;
	for (int i = 0; size; i++)
		if (parts[i].iov_len)
			return syscall(SYS_write, fd, parts[i].iov_base, size);
	return syscall(SYS_writev, fd, parts, count);
}

int ftruncate(int fd, off_t length)
{
	if (fail_truncate) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_ftruncate, fd, length);
}

int fdatasync(int fd)
{
	syncs++;
	if (fail_sync) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
	return skip_sleep ? 0 : (int)syscall(SYS_nanosleep, wanted, left);
}

/* ---- The ground -------------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
	*state = ground_make();
	return 0;
}

static int teardown(void **state)
{
	clock_offset = 0;
	short_write = 0;
	fail_truncate = fail_sync = skip_sleep = false;
	ground_remove(*state);
	return 0;
}

static void must_refuse(struct ledger *ledger, int os_errno, const char *reason)
{
	struct cordon_error err;
	assert_int_equal(ledger_append(ledger, "{\"row\":\"refused\"}", 17, &err), -1);
	if (err.class != CORDON_E_AUDIT_UNAVAILABLE || err.os_errno != os_errno || !strstr(err.reason, reason))
		fail_msg("class %d errno %d: %s", err.class, err.os_errno, err.reason);
	assert_string_equal(err.boundary, "ledger");
	assert_true(*err.subject && *err.remediation);
}

/* The rows as they were given: without seals, and without the row that every ledger begins with. */
static void holds(const char *path, const char *expected)
{
	char *text = ground_slurp(path), *plain, *to, *line = text;
	assert_non_null(text);
	plain = to = calloc(1, strlen(text) + 1);
	for (char *end; (end = strchr(line, '\n')); line = end + 1) {
		char *seal = end - SEAL_LENGTH;
		if (!strncmp(line, "{\"row\":\"begin\"", 14))
			continue;
		assert_true(seal > line && !strncmp(seal, ",\"prev\":", 8));
		to = mempcpy(to, line, (size_t)(seal - line));
		to = mempcpy(to, "}\n", 2);
	}
	strcpy(to, line);
	assert_string_equal(plain, expected);
	free(plain);
	free(text);
}

/* Every line is a JSON object, but for those that a repair row right after accounts for. */
struct tally {
	int rows, repairs, torn;
};

static struct tally read_all(const char *path)
{
	struct tally tally = { 0 };
	char *text = ground_slurp(path), *line = text;
	assert_non_null(text);
	long long torn_at = -1, torn_bytes = 0;
	const char *last = text + strlen(text);
	for (char *end; (end = memchr(line, '\n', (size_t)(last - line))); line = end + 1) {
		*end = '\0';
		json_t *row = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		const char *kind = json_string_value(json_object_get(row, "row"));
		if (kind && !strcmp(kind, "repair")) {
			tally.repairs++;
			long long at = json_integer_value(json_object_get(row, "torn_at"));
			long long bytes = json_integer_value(json_object_get(row, "torn_bytes"));
			assert_int_equal(at + bytes + 1, line - text);
			assert_true(torn_at < 0 || (torn_at == at && torn_bytes == bytes));
			torn_at = -1;
			assert_int_equal(strlen(json_string_value(json_object_get(row, "id"))), 26);
			assert_int_equal(strlen(json_string_value(json_object_get(row, "time"))), 24);
		} else {
			assert_true(torn_at < 0);
			if (json_is_object(row)) {
				tally.rows += !kind || strcmp(kind, "begin");
			} else {
				tally.torn++;
				torn_at = line - text;
				torn_bytes = end - line;
			}
		}
		json_decref(row);
	}
	assert_true(torn_at < 0);
	assert_string_equal(line, "");
	free(text);
	return tally;
}

/* Today's file has a row of this kind with this reason. */
static void noted(const struct ground *ground, const char *kind, const char *reason)
{
	char *text = ground_slurp(ground->file), *save = NULL;
	bool found = false;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *row = json_loads(line, 0, NULL);
		const char *is = json_string_value(json_object_get(row, "row"));
		const char *why = json_string_value(json_object_get(row, "reason"));
		found |= is && why && !strcmp(is, kind) && !strcmp(why, reason) && json_object_get(row, "lost");
		json_decref(row);
	}
	free(text);
	if (!found)
		fail_msg("no %s row: %s", kind, reason);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void rows_are_lines_in_the_days_file(void **state)
{
	struct ground *ground = *state;
	struct stat st;
	assert_int_equal(access(ground->data, F_OK), -1);
	ground_append(ground->ledger, "{\"a\":1}");
	ground_append(ground->ledger, "{\"b\":2}");
	holds(ground->file, "{\"a\":1}\n{\"b\":2}\n");
	assert_int_equal(stat(ground->data, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(ground->directory, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(ground->file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	struct ledger *second;
	struct cordon_error err;
	assert_int_equal(ledger_open(ground->data, false, &second, &err), 0);
	ground_append(second, "{\"c\":3}");
	ground_append(ground->ledger, "{\"d\":4}");
	holds(ground->file, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n{\"d\":4}\n");
	ledger_unref(second);
	ledger_unref(NULL);
}

static void what_is_no_row(void **state)
{
	struct ground *ground = *state;
	struct cordon_error err;
	struct ledger *none = (struct ledger *)ground;
	char *large = malloc(LEDGER_LINE_MAX);
	static const char *const none_of_them[] = {
		"", "{", "{}", "a\nb", "{\"a\":\n1}", "{\"a\":1}\n", "[1]", "{\"a\":1", "\"a\":1}",
	};
	memset(large, 'x', LEDGER_LINE_MAX);
	memcpy(large, "{\"a\":\"", 6);
	memcpy(large + LEDGER_LINE_MAX - 2, "\"}", 2);
	for (size_t i = 0; i < ARRAY_SIZE(none_of_them); i++)
		assert_int_equal(ledger_append(ground->ledger, none_of_them[i], strlen(none_of_them[i]), &err), -1);
	assert_int_equal(ledger_append(ground->ledger, large, LEDGER_LINE_MAX, &err), -1);
	memcpy(large + LEDGER_LINE_MAX - 3, "\"}", 2);
	assert_int_equal(err.class, CORDON_E_AUDIT_UNAVAILABLE);
	assert_int_equal(access(ground->file, F_OK), -1);
	assert_int_equal(ledger_append(ground->ledger, large, LEDGER_LINE_MAX - 1, &err), 0);
	free(large);
	struct stat st;
	assert_int_equal(stat(ground->file, &st), 0);
	assert_true(st.st_size > (off_t)(LEDGER_LINE_MAX + SEAL_LENGTH));
	ground_intact(ground, true);
	assert_int_equal(ledger_open("relative", false, &none, &err), -1);
	assert_int_equal(ledger_open(NULL, false, &none, &err), -1);
	assert_ptr_equal(none, ground);
}

static void write_rows(struct ledger *ledger, int writer, int count, size_t padding)
{
	struct cordon_error err;
	char *line = malloc(padding + 128), *pad = calloc(1, padding + 1);
	memset(pad, 'p', padding);
	for (int i = 0; i < count; i++) {
		int length = sprintf(line, "{\"row\":\"test\",\"writer\":%d,\"number\":%d,\"pad\":\"%s\"}", writer, i, pad);
		if (ledger_append(ledger, line, (size_t)length, &err) < 0) {
			fprintf(stderr, "%s\n", err.reason);
			_exit(1);
		}
	}
	free(line);
	free(pad);
}

static void many_processes(void **state)
{
	struct ground *ground = *state;
	pid_t pids[32];
	for (int i = 0; i < 32; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		struct ledger *own = ground->ledger;
		struct cordon_error err;
		/* Half of them with the descriptor they inherited, if there were one. */
		if (i % 2 && ledger_open(ground->data, false, &own, &err) < 0)
			_exit(2);
		write_rows(own, i, 200, (size_t)(i * 97 % 3000));
		_exit(0);
	}
	for (int i = 0; i < 32; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	struct tally tally = read_all(ground->file);
	assert_int_equal(tally.rows, 32 * 200);
	assert_int_equal(tally.torn + tally.repairs, 0);
	ground_intact(ground, true);
}

static void *thread_main(void *arg)
{
	write_rows(arg, 0, 300, 50);
	return NULL;
}

static void many_threads(void **state)
{
	struct ground *ground = *state;
	pthread_t threads[8];
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread_main, ground->ledger), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	struct tally tally = read_all(ground->file);
	assert_int_equal(tally.rows, 8 * 300);
	assert_int_equal(tally.torn + tally.repairs, 0);
	ground_intact(ground, true);
}

/* After a fork the lock is no lock between the two: each must have its own. */
static void an_inherited_ledger(void **state)
{
	struct ground *ground = *state;
	ground_append(ground->ledger, "{\"row\":\"before\"}");
	for (int i = 0; i < 8; i++)
		if (!fork()) {
			write_rows(ground->ledger, i, 100, 500);
			_exit(0);
		}
	write_rows(ground->ledger, 99, 100, 500);
	for (int i = 0, status; i < 8; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(read_all(ground->file).rows, 901);
	ground_intact(ground, true);
}

static void killed_writers(void **state)
{
	struct ground *ground = *state;
	srandom(1);
	for (int round = 0; round < 12; round++) {
		pid_t pids[4];
		for (int i = 0; i < 4; i++) {
			pids[i] = fork();
			if (!pids[i]) {
				write_rows(ground->ledger, i, 8, 500000);
				_exit(0);
			}
		}
		usleep((useconds_t)(random() % 2500));
		for (int i = 0; i < 4; i++) {
			kill(pids[i], SIGKILL);
			assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		}
		ground_append(ground->ledger, "{\"row\":\"after\"}");
	}
	struct tally tally = read_all(ground->file);
	assert_true(tally.rows >= 12);
	assert_true(tally.torn <= tally.repairs);
	ground_intact(ground, true);
}

/* ---- Torn lines -------------------------------------------------------------------------------------------------- */

static void a_torn_line_is_ended_and_noted(void **state)
{
	struct ground *ground = *state;
	char large[10001];
	ground_append(ground->ledger, "{\"a\":1}");
	for (int i = 0; i < 3; i++) {
		FILE *file = fopen(ground->file, "ab");
		memset(large, 'x', sizeof(large));
		large[i == 2 ? 10000 : i] = '\0';
		fprintf(file, "{\"torn\":\"%s", large);
		fclose(file);
		ground_append(ground->ledger, "{\"b\":2}");
	}
	struct tally tally = read_all(ground->file);
	assert_int_equal(tally.rows, 4);
	assert_int_equal(tally.torn, 3);
	assert_int_equal(tally.repairs, 3);
	/* A check repairs as well, and once. */
	struct cordon_error err;
	FILE *file = fopen(ground->file, "ab");
	fputs("{\"torn", file);
	fclose(file);
	assert_int_equal(ledger_check(ground->ledger, &err), 0);
	assert_int_equal(ledger_check(ground->ledger, &err), 0);
	assert_int_equal(read_all(ground->file).repairs, 4);
	ground_intact(ground, true);
	/* Nothing but half a line, where there were rows: that is not the same. */
	ground_write(ground->file, "{\"half");
	ground_append(ground->ledger, "{\"c\":3}");
	ground_intact(ground, false);
}

static void yesterdays_torn_line(void **state)
{
	struct ground *ground = *state;
	char yesterday[160];
	ground_append(ground->ledger, "{\"a\":1}");
	strcpy(yesterday, ground->file);
	FILE *file = fopen(yesterday, "ab");
	fputs("{\"torn", file);
	fclose(file);
	char *before = ground_slurp(yesterday);
	clock_offset += 86400;
	ground_day(ground);
	assert_string_not_equal(ground->file, yesterday);
	ground_append(ground->ledger, "{\"b\":2}");
	ground_append(ground->ledger, "{\"c\":3}");
	/* It is noted today: a day that is over is not written to. */
	char *text = ground_slurp(ground->file), noted[64], *after = ground_slurp(yesterday);
	snprintf(noted, sizeof(noted), "\"torn_file\":\"%s\"", strrchr(yesterday, '/') + 1);
	assert_string_equal(before, after);
	assert_non_null(strstr(text, noted));
	free(before);
	free(after);
	free(text);
	ground_intact(ground, true);
}

static void a_clock_that_is_set_back(void **state)
{
	struct ground *ground = *state;
	struct ledger *fresh;
	struct cordon_error err;
	char first[160], newest[160];
	strcpy(first, ground->file);
	ground_append(ground->ledger, "{\"a\":1}");
	clock_offset += 3 * 86400;
	ground_day(ground);
	strcpy(newest, ground->file);
	ground_append(ground->ledger, "{\"b\":2}");
	for (int days = 1; days < 40; days += 13) {
		clock_offset -= days * 86400;
		ground_append(ground->ledger, "{\"c\":3}");
	}
	assert_int_equal(ledger_open(ground->data, false, &fresh, &err), 0);
	ground_append(fresh, "{\"d\":4}");
	ledger_unref(fresh);
	holds(first, "{\"a\":1}\n");
	holds(newest, "{\"b\":2}\n{\"c\":3}\n{\"c\":3}\n{\"c\":3}\n{\"d\":4}\n");
	ground_intact(ground, true);
	clock_offset = 4 * 86400;
	ground_day(ground);
	ground_append(ground->ledger, "{\"e\":5}");
	holds(ground->file, "{\"e\":5}\n");
	ground_intact(ground, true);
	/* A date that cannot be a file's name. */
	clock_offset = INT64_C(300000000000);
	must_refuse(ground->ledger, EOVERFLOW, "date");
}

static void a_short_write_is_taken_back(void **state)
{
	struct ground *ground = *state;
	ground_append(ground->ledger, "{\"a\":1}");
	short_write = 5;
	must_refuse(ground->ledger, ENOSPC, "taken back");
	holds(ground->file, "{\"a\":1}\n");
	short_write = 5;
	fail_truncate = true;
	must_refuse(ground->ledger, ENOSPC, "cannot be taken back");
	fail_truncate = false;
	/* The note of it comes out short as well: it is still to be made. */
	short_write = 5;
	must_refuse(ground->ledger, ENOSPC, "taken back");
	ground_append(ground->ledger, "{\"b\":2}");
	struct tally tally = read_all(ground->file);
	assert_true(tally.rows == 2 && tally.torn == 1 && tally.repairs == 1);
	ground_intact(ground, true);
}

/* ---- Where it cannot be written
 * ------------------------------------------------------------------------------------ */

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
	struct tally tally = read_all(ground->file);
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
	return read_all(ground->file).rows == rows ? 0 : 5;
}

static void a_file_size_limit(void **state)
{
	in_child(*state, reach_file_size_limit);
}

static int write_elsewhere(struct ground *ground)
{
	if (geteuid() == 0 && setresuid(65534, 65534, 65534))
		return 77;
	must_refuse(ground->ledger, EACCES, "cannot be made");
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
	must_refuse(ground->ledger, ENOTDIR, "data directory");
}

static void what_is_not_ours(void **state)
{
	struct ground *ground = *state;
	char other[128];
	ground_append(ground->ledger, "{\"a\":1}");
	snprintf(other, sizeof(other), "%s/other", ground->root);

	assert_int_equal(rename(ground->file, other), 0);
	assert_int_equal(symlink(other, ground->file), 0);
	must_refuse(ground->ledger, ELOOP, "cannot be opened");
	holds(other, "{\"a\":1}\n");
	assert_int_equal(unlink(ground->file), 0);

	assert_int_equal(mkdir(ground->file, 0700), 0);
	must_refuse(ground->ledger, EISDIR, "cannot be opened");
	assert_int_equal(rmdir(ground->file), 0);

	assert_int_equal(mkfifo(ground->file, 0600), 0);
	must_refuse(ground->ledger, 0, "not a regular file");
	assert_int_equal(unlink(ground->file), 0);

	assert_int_equal(rename(other, ground->file), 0);
	assert_int_equal(chmod(ground->file, 0622), 0);
	struct ledger *fresh;
	struct cordon_error err;
	assert_int_equal(ledger_open(ground->data, false, &fresh, &err), 0);
	must_refuse(fresh, EPERM, "written to by other users");
	assert_int_equal(chmod(ground->file, 0600), 0);
	ground_append(fresh, "{\"b\":2}");
	ledger_unref(fresh);

	if (geteuid() == 0) {
		assert_int_equal(ledger_open(ground->data, false, &fresh, &err), 0);
		assert_int_equal(chown(ground->file, 1, 1), 0);
		must_refuse(fresh, EPERM, "another user");
		assert_int_equal(chown(ground->file, 0, 0), 0);
		assert_int_equal(chown(ground->directory, 1, 1), 0);
		must_refuse(fresh, EPERM, "another user");
		assert_int_equal(chown(ground->directory, 0, 0), 0);
		ledger_unref(fresh);
	}

	assert_int_equal(rename(ground->directory, other), 0);
	assert_int_equal(symlink(other, ground->directory), 0);
	assert_int_equal(ledger_open(ground->data, false, &fresh, &err), 0);
	must_refuse(fresh, ELOOP, "the ledger cannot be opened");
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
	holds(moved, "{\"a\":1}\n");
	noted(ground, "repair", "rows are gone");
	assert_int_equal(unlink(ground->file), 0);
	ground_append(ground->ledger, "{\"c\":3}");
	noted(ground, "repair", "rows are gone");
	snprintf(moved, sizeof(moved), "%s.old", ground->directory);
	assert_int_equal(rename(ground->directory, moved), 0);
	ground_append(ground->ledger, "{\"d\":4}");
	noted(ground, "begin", "the ledger is gone");
	assert_int_equal(nftw(ground->data, ground_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	ground_append(ground->ledger, "{\"e\":5}");
	noted(ground, "begin", "the ledger is gone");
	ground_intact(ground, false);
	/* Whoever never saw the one before begins a new one. */
	struct ledger *fresh;
	struct cordon_error err;
	assert_int_equal(nftw(ground->directory, ground_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	assert_int_equal(ledger_open(ground->data, false, &fresh, &err), 0);
	ground_append(fresh, "{\"f\":6}");
	ledger_unref(fresh);
	holds(ground->file, "{\"f\":6}\n");
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
				noted(ground, "begin", "the key is gone");
			else if (rows[i].kind)
				noted(ground, rows[i].kind, rows[i].reason);
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
	must_refuse(fresh, EKEYREJECTED, "not a key");
	ground_write(path, key);
	assert_int_equal(chmod(path, 0640), 0);
	must_refuse(fresh, EPERM, "read by other users");
	assert_int_equal(chmod(path, 0600), 0);
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
	noted(ground, "repair", "the head was set back");
	ground_intact(ground, false);
	free(head);
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
	must_refuse(ground->ledger, EAGAIN, "locked by another process");
	skip_sleep = false;
	pid_t pid = fork();
	if (!pid) {
		usleep(50000);
		flock(fd, LOCK_UN);
		_exit(0);
	}
	ground_append(ground->ledger, "{\"b\":2}");
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(fd);
	holds(ground->file, "{\"a\":1}\n{\"b\":2}\n");
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
	must_refuse(synced, EIO, "did not reach the disk");
	fail_sync = false;
	ground_append(synced, "{\"d\":4}");
	ledger_unref(synced);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(rows_are_lines_in_the_days_file), CASE(what_is_no_row),
		CASE(many_processes), CASE(many_threads), CASE(an_inherited_ledger), CASE(killed_writers),
		CASE(a_torn_line_is_ended_and_noted), CASE(yesterdays_torn_line), CASE(a_short_write_is_taken_back),
		CASE(a_full_disk), CASE(a_file_size_limit), CASE(no_permission), CASE(what_is_not_ours),
		CASE(a_clock_that_is_set_back), CASE(what_went_away),
		CASE(a_head_or_key_that_is_gone), CASE(a_key_that_is_none),
		CASE(a_head_that_is_set_back), CASE(a_lock_that_is_held), CASE(to_the_disk),
	};
	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}

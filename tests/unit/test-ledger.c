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

#include "audit/ledger.h"
#include "base/cleanup.h"
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
	if (size)
		return syscall(SYS_write, fd, parts[0].iov_base, size);
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

struct ground {
	char root[64], data[80], directory[96], file[160];
	struct ledger *ledger;
};

static void day_file(struct ground *ground)
{
	struct tm utc;
	time_t now = time(NULL);
	char day[32];
	strftime(day, sizeof(day), "%Y-%m-%d", gmtime_r(&now, &utc));
	snprintf(ground->file, sizeof(ground->file), "%s/%s.jsonl", ground->directory, day);
}

static int setup(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	struct cordon_error err;
	strcpy(ground->root, "/tmp/cordon-test-ledger.XXXXXX");
	assert_non_null(mkdtemp(ground->root));
	snprintf(ground->data, sizeof(ground->data), "%s/share/cordon", ground->root);
	snprintf(ground->directory, sizeof(ground->directory), "%s/ledger", ground->data);
	day_file(ground);
	assert_int_equal(ledger_open(ground->data, false, &ground->ledger, &err), 0);
	*state = ground;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static int teardown(void **state)
{
	struct ground *ground = *state;
	clock_offset = 0;
	short_write = 0;
	fail_truncate = fail_sync = skip_sleep = false;
	ledger_unref(ground->ledger);
	nftw(ground->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(ground);
	return 0;
}

static int append(struct ledger *ledger, const char *line, struct cordon_error *err)
{
	memset(err, 0, sizeof(*err));
	return ledger_append(ledger, line, strlen(line), err);
}

static void must_append(struct ledger *ledger, const char *line)
{
	struct cordon_error err;
	if (append(ledger, line, &err) < 0)
		fail_msg("%s: %s", err.subject, err.reason);
}

static void must_refuse(struct ledger *ledger, int os_errno, const char *reason)
{
	struct cordon_error err;
	assert_int_equal(append(ledger, "{\"row\":\"refused\"}", &err), -1);
	if (err.class != CORDON_E_AUDIT_UNAVAILABLE || err.os_errno != os_errno || !strstr(err.reason, reason))
		fail_msg("class %d errno %d: %s", err.class, err.os_errno, err.reason);
	assert_string_equal(err.boundary, "ledger");
	assert_true(*err.subject && *err.remediation);
}

static char *slurp(const char *path)
{
	FILE *file = fopen(path, "rb");
	if (!file)
		return NULL;
	fseek(file, 0, SEEK_END);
	size_t size = (size_t)ftell(file);
	rewind(file);
	char *text = calloc(1, size + 1);
	assert_int_equal(fread(text, 1, size, file), size);
	fclose(file);
	return text;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void holds(const char *path, const char *expected)
{
	char *text = slurp(path);
	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
}

/* Every line is a JSON object, but for those that a repair row right after accounts for. */
struct tally {
	int rows, repairs, torn;
};

static struct tally read_all(const char *path)
{
	struct tally tally = { 0 };
	char *text = slurp(path), *line = text;
	assert_non_null(text);
	long long torn_at = -1, torn_bytes = 0;
	for (char *end; (end = strchr(line, '\n')); line = end + 1) {
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
				tally.rows++;
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

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void rows_are_lines_in_the_days_file(void **state)
{
	struct ground *ground = *state;
	struct stat st;
	assert_int_equal(access(ground->data, F_OK), -1);
	must_append(ground->ledger, "{\"a\":1}");
	must_append(ground->ledger, "{\"b\":2}");
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
	must_append(second, "{\"c\":3}");
	must_append(ground->ledger, "{\"d\":4}");
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
	memset(large, 'x', LEDGER_LINE_MAX);
	assert_int_equal(ledger_append(ground->ledger, "", 0, &err), -1);
	assert_int_equal(ledger_append(ground->ledger, "a\nb", 3, &err), -1);
	assert_int_equal(ledger_append(ground->ledger, "a\n", 2, &err), -1);
	assert_int_equal(ledger_append(ground->ledger, large, LEDGER_LINE_MAX, &err), -1);
	assert_int_equal(err.class, CORDON_E_AUDIT_UNAVAILABLE);
	assert_int_equal(access(ground->file, F_OK), -1);
	assert_int_equal(ledger_append(ground->ledger, large, LEDGER_LINE_MAX - 1, &err), 0);
	free(large);
	struct stat st;
	assert_int_equal(stat(ground->file, &st), 0);
	assert_int_equal(st.st_size, LEDGER_LINE_MAX);
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
}

/* After a fork the lock is no lock between the two: each must have its own. */
static void an_inherited_ledger(void **state)
{
	struct ground *ground = *state;
	must_append(ground->ledger, "{\"row\":\"before\"}");
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
		must_append(ground->ledger, "{\"row\":\"after\"}");
		struct tally tally = read_all(ground->file);
		assert_true(tally.rows >= 1);
		assert_true(tally.torn <= tally.repairs);
		assert_int_equal(unlink(ground->file), 0);
	}
}

/* ---- Torn lines -------------------------------------------------------------------------------------------------- */

static void a_torn_line_is_ended_and_noted(void **state)
{
	struct ground *ground = *state;
	char large[10001];
	must_append(ground->ledger, "{\"a\":1}");
	for (int i = 0; i < 3; i++) {
		FILE *file = fopen(ground->file, "ab");
		memset(large, 'x', sizeof(large));
		large[i == 2 ? 10000 : i] = '\0';
		fprintf(file, "{\"torn\":\"%s", large);
		fclose(file);
		must_append(ground->ledger, "{\"b\":2}");
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
	/* Nothing but half a line. */
	write_file(ground->file, "{\"half");
	must_append(ground->ledger, "{\"c\":3}");
	tally = read_all(ground->file);
	assert_true(tally.rows == 1 && tally.torn == 1 && tally.repairs == 1);
}

static void yesterdays_torn_line(void **state)
{
	struct ground *ground = *state;
	char yesterday[160], older[140];
	must_append(ground->ledger, "{\"a\":1}");
	strcpy(yesterday, ground->file);
	snprintf(older, sizeof(older), "%s/2001-01-01.jsonl", ground->directory);
	write_file(older, "{\"older");
	FILE *file = fopen(yesterday, "ab");
	fputs("{\"torn", file);
	fclose(file);
	clock_offset += 86400;
	day_file(ground);
	assert_string_not_equal(ground->file, yesterday);
	must_append(ground->ledger, "{\"b\":2}");
	must_append(ground->ledger, "{\"c\":3}");
	holds(ground->file, "{\"b\":2}\n{\"c\":3}\n");
	struct tally tally = read_all(yesterday);
	assert_true(tally.rows == 1 && tally.torn == 1 && tally.repairs == 1);
	holds(older, "{\"older");
	/* And back, when the clock is set. */
	clock_offset -= 86400;
	must_append(ground->ledger, "{\"d\":4}");
	assert_int_equal(read_all(yesterday).rows, 2);
}

static void a_short_write_is_taken_back(void **state)
{
	struct ground *ground = *state;
	must_append(ground->ledger, "{\"a\":1}");
	short_write = 5;
	must_refuse(ground->ledger, ENOSPC, "taken back");
	holds(ground->file, "{\"a\":1}\n");
	short_write = 5;
	fail_truncate = true;
	must_refuse(ground->ledger, ENOSPC, "cannot be taken back");
	fail_truncate = false;
	must_append(ground->ledger, "{\"b\":2}");
	struct tally tally = read_all(ground->file);
	assert_true(tally.rows == 2 && tally.torn == 1 && tally.repairs == 1);
}

/* ---- Where it cannot be written ------------------------------------------------------------------------------------ */

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
	write_file(extra, "room to be made later");
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
	if (ledger_open(ground->data, false, &fresh, &err) < 0 || ledger_append(fresh, "{}", 2, &err) == 0)
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
	struct rlimit limit = { 100, 100 };
	if (setrlimit(RLIMIT_FSIZE, &limit))
		return 1;
	/* SIGXFSZ is as it was: writing beyond the limit would end this process. */
	for (int i = 0; i < 12; i++)
		if (append(ground->ledger, "{\"a\":1}", &err) < 0)
			return 2;
	if (append(ground->ledger, "{\"a\":1}", &err) == 0 || err.os_errno != EFBIG)
		return 3;
	return read_all(ground->file).rows == 12 ? 0 : 4;
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
	write_file(share, "");
	must_refuse(ground->ledger, ENOTDIR, "data directory");
}

static void what_is_not_ours(void **state)
{
	struct ground *ground = *state;
	char other[128];
	must_append(ground->ledger, "{\"a\":1}");
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
	must_append(fresh, "{\"b\":2}");
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

static void a_file_that_went_away(void **state)
{
	struct ground *ground = *state;
	char moved[192];
	snprintf(moved, sizeof(moved), "%s.old", ground->file);
	must_append(ground->ledger, "{\"a\":1}");
	assert_int_equal(rename(ground->file, moved), 0);
	must_append(ground->ledger, "{\"b\":2}");
	holds(moved, "{\"a\":1}\n");
	holds(ground->file, "{\"b\":2}\n");
	assert_int_equal(unlink(ground->file), 0);
	must_append(ground->ledger, "{\"c\":3}");
	holds(ground->file, "{\"c\":3}\n");
	snprintf(moved, sizeof(moved), "%s.old", ground->directory);
	assert_int_equal(rename(ground->directory, moved), 0);
	must_append(ground->ledger, "{\"d\":4}");
	holds(ground->file, "{\"d\":4}\n");
	assert_int_equal(nftw(ground->data, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	must_append(ground->ledger, "{\"e\":5}");
	holds(ground->file, "{\"e\":5}\n");
}

static void a_lock_that_is_held(void **state)
{
	struct ground *ground = *state;
	must_append(ground->ledger, "{\"a\":1}");
	int fd = open(ground->file, O_RDWR | O_CLOEXEC);
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
	must_append(ground->ledger, "{\"b\":2}");
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
	must_append(ground->ledger, "{\"a\":1}");
	assert_int_equal(syncs, 0);
	assert_int_equal(ledger_open(ground->data, true, &synced, &err), 0);
	must_append(synced, "{\"b\":2}");
	must_append(synced, "{\"c\":3}");
	assert_int_equal(syncs, 2);
	fail_sync = true;
	must_refuse(synced, EIO, "did not reach the disk");
	fail_sync = false;
	must_append(synced, "{\"d\":4}");
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
		CASE(a_file_that_went_away), CASE(a_lock_that_is_held), CASE(to_the_disk),
	};
	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}

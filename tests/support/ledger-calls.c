/* See ledger-calls.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "ledger-calls.h"

size_t short_write;
bool fail_truncate, fail_sync, skip_sleep;
int syncs, allocations, fail_allocate;

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

int fallocate(int fd, int mode, off_t offset, off_t length)
{
	allocations++;
	if (fail_allocate) {
		errno = fail_allocate;
		return -1;
	}
	return (int)syscall(SYS_fallocate, fd, mode, offset, length);
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

int calls_setup(void **state)
{
	*state = ground_make();
	return 0;
}

int calls_teardown(void **state)
{
	clock_offset = 0;
	short_write = 0;
	fail_truncate = fail_sync = skip_sleep = false;
	fail_allocate = 0;
	ground_remove(*state);
	return 0;
}

void ground_must_refuse(struct ledger *ledger, int os_errno, const char *reason)
{
	struct cordon_error err;
	assert_int_equal(ledger_append(ledger, "{\"row\":\"refused\"}", 17, &err), -1);
	if (err.class != CORDON_E_AUDIT_UNAVAILABLE || err.os_errno != os_errno || !strstr(err.reason, reason))
		fail_msg("class %d errno %d: %s", err.class, err.os_errno, err.reason);
	assert_string_equal(err.boundary, "ledger");
	assert_true(*err.subject && *err.remediation);
}

void ground_holds(const char *path, const char *expected)
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

struct tally ground_read_all(const char *path)
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

void ground_noted(const struct ground *ground, const char *kind, const char *reason)
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

/* Every way in which a writer of the ledger can die is not taken for a broken chain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "ledger-clock.h"
#include "ledger-ground.h"

/* ---- System calls on demand -------------------------------------------------------------------------------------- */

static int calls_left = -1;             /* the process ends instead of the call after so many; -1: never */
static size_t torn_bytes;               /* and if that call is a row, this much of it is written */

static bool last_call(void)
{
	return calls_left >= 0 && calls_left-- == 0;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	if (!last_call())
		return syscall(SYS_writev, fd, parts, count);
	for (int i = 0; i < count && torn_bytes; i++) {
		size_t length = torn_bytes < parts[i].iov_len ? torn_bytes : parts[i].iov_len;
		if (syscall(SYS_write, fd, parts[i].iov_base, length) != (ssize_t)length)
			_exit(2);
		torn_bytes -= length;
	}
	_exit(0);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	if (last_call())
		_exit(0);
	return syscall(SYS_pwrite64, fd, bytes, size, offset);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	if (fd > 2 && last_call())
		_exit(0);
	return syscall(SYS_write, fd, bytes, size);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	if (last_call())
		_exit(0);
	return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

int fdatasync(int fd)
{
	if (last_call())
		_exit(0);
	return (int)syscall(SYS_fdatasync, fd);
}

/* ---- Killed writers ---------------------------------------------------------------------------------------------- */

/* A ledger's first rows and a new day's, ended before each of the calls that change something. */
static int write_some(struct ground *ground, bool sync)
{
	struct cordon_error err;
	ledger_set_sync(ground->ledger, sync);
	for (int i = 0; i < 4; i++) {
		if (i == 2)
			clock_offset += 86400;
		if (ledger_append(ground->ledger, "{\"row\":\"test\",\"note\":\"plain\"}", 29, &err) < 0)
			return 1;
	}
	return 9;
}

static bool crash_once(int calls, size_t torn, bool sync)
{
	struct ground *ground = ground_make();
	char key[160];
	int status;
	fflush(NULL);
	pid_t pid = fork();
	if (!pid) {
		calls_left = calls;
		torn_bytes = torn;
		_exit(write_some(ground, sync));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	snprintf(key, sizeof(key), "%s/key", ground->directory);
	if (!access(key, F_OK))
		ground_intact(ground, true);
	ground_append(ground->ledger, "{\"row\":\"after\"}");
	ground_intact(ground, true);
	clock_offset += 86400;
	ground_append(ground->ledger, "{\"row\":\"after\"}");
	ground_intact(ground, true);
	clock_offset = 0;
	ground_remove(ground);
	if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 9)
		fail_msg("call %d: %d", calls, WEXITSTATUS(status));
	return WEXITSTATUS(status) == 0;
}

static void killed_at_every_step(void **state)
{
	static const size_t torn[] = { 0, 1, 2, 60, 144, 145 };
	(void)state;
	for (int sync = 0; sync < 2; sync++)
		for (size_t i = 0; i < ARRAY_SIZE(torn); i++) {
			int calls = 0;
			while (crash_once(calls, torn[i], sync))
				calls++;
			assert_true(calls > 12);
		}
}

static void write_until_killed(struct ground *ground, int writer)
{
	struct cordon_error err;
	static char row[200001];
	ledger_set_sync(ground->ledger, writer == 0);
	memset(row, 'x', sizeof(row));
	memcpy(row, "{\"row\":\"test\",\"pad\":\"", 21);
	for (unsigned i = 0;; i++) {
		size_t length = 30 + (i * 7919u + (unsigned)writer) % (i % 4 ? 800 : 200000);
		char saved[2] = { row[length - 2], row[length - 1] };
		memcpy(row + length - 2, "\"}", 2);
		if (i % 16 == 0)
			clock_offset = random() % 3 * 86400;
		if (ledger_append(ground->ledger, row, length, &err) < 0)
			_exit(1);
		memcpy(row + length - 2, saved, 2);
	}
}

#define KILLS 200

static void killed_at_random(void **state)
{
	enum { WRITERS = 4 };
	struct ground *ground = ground_make();
	pid_t pids[WRITERS] = { 0 };
	(void)state;
	srandom(7);
	for (int kills = 0; kills < KILLS + WRITERS; kills++) {
		int victim = kills % WRITERS, status;
		if (pids[victim]) {
			kill(pids[victim], SIGKILL);
			assert_int_equal(waitpid(pids[victim], &status, 0), pids[victim]);
			assert_true(WIFSIGNALED(status));
		}
		pids[victim] = 0;
		if (kills < KILLS) {
			unsigned seed = (unsigned)random();
			pids[victim] = fork();
			if (!pids[victim]) {
				srandom(seed);
				write_until_killed(ground, victim);
			}
		}
		usleep((useconds_t)(random() % 6000));
	}
	ground_append(ground->ledger, "{\"row\":\"after\"}");
	json_t *report = ground_verify(ground);
	if (!json_is_true(json_object_get(report, "intact")))
		fail_msg("%s", json_dumps(report, JSON_INDENT(2)));
	json_int_t rows = json_integer_value(json_object_get(report, "rows"));
	json_int_t repairs = json_integer_value(json_object_get(report, "repairs"));
	print_message("# %lld rows, %lld repairs\n", (long long)rows, (long long)repairs);
	assert_true(rows > KILLS);
	json_decref(report);
	ground_remove(ground);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_every_step), cmocka_unit_test(killed_at_random),
	};
	return cmocka_run_group_tests_name("verify-killed", tests, NULL, NULL);
}

/* A parked shell is the shell: a line of tests/e2e/data/shell-lines does the same bare and parked, and what is no shell is not
 * parked. Without walls here; tests/e2e/test_shell.py has the same lines behind them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/shell-park.h"
#include "support/skip.h"

#define OUTPUT_MAX 65536
#define LINES_MAX 256

static const char input[] = "one\ntwo\nthree";
static const char *const environment[] = { "PATH=/usr/bin:/bin", "HOME=/", "LC_ALL=C.UTF-8", "VALUE=of some length", NULL };

struct outcome {
	int status;
	size_t size[2];
	char output[2][OUTPUT_MAX];
};

struct started {
	pid_t pid;
	FILE *streams[2];
};

/* What is written goes to files, so that nobody waits for anybody. */
static struct started start(const char *path, const char *const *argv, bool traced)
{
	struct started started;
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], input, sizeof(input) - 1), sizeof(input) - 1);
	for (int i = 0; i < 2; i++)
		assert_non_null(started.streams[i] = tmpfile());
	started.pid = fork();
	if (started.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (traced && ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(126);
		dup2(ends[0], 0);
		dup2(fileno(started.streams[0]), 1);
		dup2(fileno(started.streams[1]), 2);
		close_range(3, ~0U, 0);
		execve(path, (char **)(uintptr_t)argv, (char **)(uintptr_t)environment);
		_exit(127);
	}
	close(ends[0]);
	close(ends[1]);
	assert_true(started.pid > 0);
	return started;
}

static void finish(struct started *started, struct outcome *ret_outcome)
{
	assert_int_equal(waitpid(started->pid, &ret_outcome->status, 0), started->pid);
	for (int i = 0; i < 2; i++) {
		ssize_t size = pread(fileno(started->streams[i]), ret_outcome->output[i], OUTPUT_MAX, 0);
		assert_true(size >= 0);
		ret_outcome->size[i] = (size_t)size;
		fclose(started->streams[i]);
	}
}

static void run_bare(const char *path, const char *line, struct outcome *ret_outcome)
{
	const char *const argv[] = { strrchr(path, '/') + 1, "-c", line, NULL };
	struct started started = start(path, argv, false);
	finish(&started, ret_outcome);
}

/* A word that begins on a page when `path` is executed, but for so many bytes. */
static char *make_place(const char *path, size_t short_of)
{
	size_t size = shell_place_size(path, environment) - short_of;
	char *place = malloc(size);
	assert_non_null(place);
	memset(place, 'x', size - 1);
	place[size - 1] = '\0';
	return place;
}

static long park(const char *path, struct started *ret_started, struct parked_shell *ret_shell)
{
	char *place = make_place(path, 0);
	const char *const argv[] = { strrchr(path, '/') + 1, "-c", place, NULL };
	*ret_started = start(path, argv, true);
	free(place);
	return shell_park(ret_started->pid, false, NULL, ret_shell);
}

static void run_parked(const char *path, const char *line, struct outcome *ret_outcome)
{
	struct started started;
	struct parked_shell shell;
	assert_int_equal(park(path, &started, &shell), 0);
	assert_int_equal(shell_write(&shell, line, strlen(line)), 0);
	assert_int_equal(shell_go(&shell), 0);
	finish(&started, ret_outcome);
}

/* ---- the lines -------------------------------------------------------------------------------------------------- */

static size_t read_lines(char *text, size_t size, char *lines[LINES_MAX])
{
	FILE *file = fopen(SOURCE_DIR "/tests/e2e/data/shell-lines", "re");
	assert_non_null(file);
	size_t length = fread(text, 1, size - 1, file), count = 0;
	assert_true(length > 0 && length < size - 1);
	fclose(file);
	text[length] = '\0';
	for (char *at = text; at; count++) {
		char *end = strstr(at, "\n%%\n");
		assert_true(count < LINES_MAX);
		lines[count] = at;
		if (end)
			*end = '\0';
		at = end ? end + 4 : NULL;
	}
	return count;
}

static bool compare(const char *path, const char *line)
{
	static struct outcome bare, parked;
	run_bare(path, line, &bare);
	run_parked(path, line, &parked);
	bool same = bare.status == parked.status;
	for (int i = 0; i < 2; i++)
		same = same && bare.size[i] == parked.size[i] && !memcmp(bare.output[i], parked.output[i], bare.size[i]);
	if (!same)
		print_error("%s -c '%.200s'\nbare: %x [%.*s] [%.*s]\nparked: %x [%.*s] [%.*s]\n", path, line, bare.status,
		            (int)bare.size[0], bare.output[0], (int)bare.size[1], bare.output[1], parked.status,
		            (int)parked.size[0], parked.output[0], (int)parked.size[1], parked.output[1]);
	return same;
}

/* Each test asks first: a parent may be kept from tracing its child. */
static bool can_park(void)
{
	struct started started;
	struct parked_shell shell;
	static struct outcome outcome;
	if (park("/bin/dash", &started, &shell) < 0)
		return false;
	assert_int_equal(shell_write(&shell, ":", 1), 0);
	assert_int_equal(shell_go(&shell), 0);
	finish(&started, &outcome);
	return true;
}

#define NEED_PARKING() do { if (!can_park()) skip_cannot("traced", "a shell cannot be parked"); } while (0)

static const char *const shells[] = { "/bin/bash", "/bin/dash", "/bin/sh" };

static void test_lines(void **state)
{
	static char text[OUTPUT_MAX];
	char *lines[LINES_MAX];
	size_t count = read_lines(text, sizeof(text), lines);
	(void)state;
	NEED_PARKING();
	assert_true(count > 100);
	size_t differ = 0;
	/* Those that are left out here are run in tests/e2e/test_shell.py. */
	for (size_t shell = 0; shell < 3; shell++)
		for (size_t i = shell; i < count; i += 3)
			differ += !compare(shells[shell], lines[i]);
	assert_int_equal(differ, 0);
}

static void test_sizes(void **state)
{
	(void)state;
	NEED_PARKING();
	char *line = malloc(SHELL_LINE_MAX + 2);
	for (size_t shell = 0; shell < 2; shell++) {
		assert_true(compare(shells[shell], ""));
		for (size_t size = SHELL_LINE_MAX - 1; size <= SHELL_LINE_MAX; size++) {
			memset(line, 'y', size);
			memcpy(line, "printf %s ", 10);
			line[size] = '\0';
			assert_true(compare(shells[shell], line));
		}
		for (int byte = 1; byte < 256; byte++)
			line[byte - 1] = (char)byte;
		memcpy(line, "echo '", 6);
		line['\'' - 1] = ' ';
		memcpy(line + 255, "'", 2);
		assert_true(compare(shells[shell], line));
	}
	struct started started;
	struct parked_shell shell;
	assert_int_equal(park("/bin/dash", &started, &shell), 0);
	memset(line, ' ', SHELL_LINE_MAX + 1);
	assert_int_equal(shell_write(&shell, line, SHELL_LINE_MAX + 1), -E2BIG);
	assert_int_equal(waitpid(started.pid, NULL, 0), -1);
	for (int i = 0; i < 2; i++)
		fclose(started.streams[i]);
	free(line);
}

/* $SECONDS counts from when the line was given. */
static void test_clock(void **state)
{
	(void)state;
	NEED_PARKING();
	struct started started;
	struct parked_shell shell;
	static struct outcome outcome;
	const char line[] = "echo $SECONDS; [ $(($(date +%s) - $(printf '%(%s)T' -2))) -le 1 ] && echo now";
	assert_int_equal(park("/bin/bash", &started, &shell), 0);
	sleep(2);
	assert_int_equal(shell_write(&shell, line, strlen(line)), 0);
	assert_int_equal(shell_go(&shell), 0);
	finish(&started, &outcome);
	/* A second may just have begun. */
	assert_true(!memcmp(outcome.output[0], "0\nnow\n", 6) || !memcmp(outcome.output[0], "1\nnow\n", 6));
}

static char state_of(pid_t pid)
{
	char path[32], state = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
	fclose(file);
	return state;
}

/* Of the mapping by this name: what of it is in memory, and all of it, in kilobytes. */
static void read_mapping(pid_t pid, const char *name, unsigned *ret_there, unsigned *ret_size)
{
	char path[32], text[512];
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	*ret_there = *ret_size = 0;
	while (fgets(text, sizeof(text), file)) {
		if (strchr(text, '-') && strchr(text, '-') < strchr(text, ' '))
			found = strstr(text, name);
		if (found) {
			sscanf(text, "Size: %u", ret_size);
			sscanf(text, "Rss: %u", ret_there);
		}
	}
	fclose(file);
}

/* What it needs as soon as it goes on is there. */
static void test_memory(void **state)
{
	(void)state;
	NEED_PARKING();
	struct started started;
	struct parked_shell shell;
	static struct outcome outcome;
	unsigned there, size;
	/* Since Linux 5.14; asked for nothing at all. */
	bool fetched = madvise((void *)(uintptr_t)SHELL_PAGE, 0, MADV_POPULATE_WRITE) == 0;
	assert_int_equal(park("/bin/bash", &started, &shell), 0);
	read_mapping(started.pid, "[heap]", &there, &size);
	assert_true(size > 0 && (there == size || !fetched));
	assert_int_equal(shell_write(&shell, ":", 1), 0);
	assert_int_equal(shell_go(&shell), 0);
	finish(&started, &outcome);
}

/* It stands still with its line until it is let go, and is traced by nobody then. */
static void test_stands(void **state)
{
	(void)state;
	NEED_PARKING();
	struct started started;
	struct parked_shell shell;
	static struct outcome outcome;
	const char line[] = "grep TracerPid /proc/$$/status";
	assert_int_equal(park("/bin/dash", &started, &shell), 0);
	assert_int_equal(shell_write(&shell, line, strlen(line)), 0);
	assert_int_equal(state_of(started.pid), 't');
	assert_int_equal(pread(fileno(started.streams[0]), outcome.output[0], 1, 0), 0);
	assert_int_equal(shell_go(&shell), 0);
	finish(&started, &outcome);
	assert_true(outcome.status == 0 && outcome.size[0] == 13 && !memcmp(outcome.output[0], "TracerPid:\t0\n", 13));
}

/* ---- what is not parked ----------------------------------------------------------------------------------------- */

static long park_judged(const char *path, const char *const *argv, long (*judge)(long pid))
{
	struct started started = start(path, argv, true);
	struct parked_shell shell;
	long result = shell_park(started.pid, false, judge, &shell);
	for (int i = 0; i < 2; i++)
		fclose(started.streams[i]);
	/* Gone, and reaped. */
	assert_int_equal(waitpid(started.pid, NULL, 0), -1);
	assert_int_equal(errno, ECHILD);
	return result;
}

static long park_as(const char *path, const char *const *argv)
{
	return park_judged(path, argv, NULL);
}

static long refuse(long pid)
{
	char path[64], program[64];
	snprintf(path, sizeof(path), "/proc/%ld/exe", pid);
	ssize_t length = readlink(path, program, sizeof(program));
	return length > 4 && !memcmp(program + length - 4, "dash", 4) ? -EPERM : -EIO;
}

static void test_not_parked(void **state)
{
	(void)state;
	char *place = make_place("/bin/dash", 0), *shifted = make_place("/bin/dash", 1), *large = malloc(8 * SHELL_PAGE + strlen(place) + 1);
	assert_non_null(large);
	memset(large, 'x', 8 * SHELL_PAGE);
	strcpy(large + 8 * SHELL_PAGE, place);
	const char *const whole[] = { "x", "-c", place, NULL }, *const few[] = { "dash", place, NULL },
	           *const many[] = { "dash", "-c", place, "more", NULL }, *const moved[] = { "dash", "-c", shifted, NULL },
	           *const small[] = { "dash", "-c", ":", NULL }, *const long_one[] = { "dash", "-c", large, NULL },
	           /* Too little of it is left. */
	           *const page[] = { "dash", "-c", place + SHELL_PAGE, NULL };
	assert_int_equal(park_as("/no/such/program", whole), -ECHILD);
	/* Ends without its line. */
	assert_int_equal(park_as("/bin/true", whole), -ECHILD);
	assert_int_equal(park_judged("/bin/dash", whole, refuse), -EPERM);
	assert_int_equal(park_as("/bin/dash", few), -EPROTO);
	assert_int_equal(park_as("/bin/dash", many), -EPROTO);
	assert_int_equal(park_as("/bin/dash", moved), -EPROTO);
	assert_int_equal(park_as("/bin/dash", small), -EPROTO);
	assert_int_equal(park_as("/bin/dash", page), -EPROTO);
	assert_int_equal(park_as("/bin/dash", long_one), -EPROTO);
	free(place);
	free(shifted);
	free(large);
}

/* A script whose word is the place: it stands before it has read that, but what it made before would go on. */
static void test_makes_a_process(void **state)
{
	(void)state;
	NEED_PARKING();
	char name[] = "/tmp/cordon-test-park.XXXXXX", *place = make_place("/bin/dash", 0);
	const char script[] = "{ echo it goes on; exec sleep 30; } & : \"$1\"\n", *const argv[] = { "dash", name, place, NULL };
	struct parked_shell shell;
	int status, fd = mkostemp(name, O_CLOEXEC);
	assert_int_equal(write(fd, script, sizeof(script) - 1), sizeof(script) - 1);
	close(fd);
	struct started started = start("/bin/dash", argv, true);
	free(place);
	long result = shell_park(started.pid, false, NULL, &shell);
	unlink(name);
	assert_int_equal(result, -EPROTO);
	assert_int_equal(waitpid(started.pid, NULL, WNOHANG), -1);
	/* It stands before its first instruction, and is ours to end. */
	pid_t made = waitpid(-1, &status, __WALL);
	assert_true(made > 0 && made != started.pid && WIFSTOPPED(status));
	struct stat written;
	assert_int_equal(fstat(fileno(started.streams[0]), &written), 0);
	assert_int_equal(written.st_size, 0);
	assert_int_equal(kill(made, SIGKILL), 0);
	assert_int_equal(waitpid(made, &status, __WALL), made);
	assert_true(WIFSIGNALED(status));
	for (int i = 0; i < 2; i++)
		fclose(started.streams[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_stands),
		cmocka_unit_test(test_not_parked),
		cmocka_unit_test(test_makes_a_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

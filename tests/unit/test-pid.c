/* What the system tells about a process by its number: itself, a child, one that is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/pid.h"

static int held[2];

/* A shell with this environment, in /; it reads what never comes. */
static pid_t start(char *const *environment)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(held), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		static char name[] = "sh", flag[] = "-c", script[] = "cd /; echo; read line";
		char *const argv[] = { name, flag, script, NULL };
		dup2(held[0], STDIN_FILENO);
		dup2(ready[1], STDOUT_FILENO);
		execve("/bin/sh", argv, environment);
		_exit(127);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(held[0]);
	close(held[1]);
}

static bool has(const char *text, size_t length, const char *variable)
{
	for (const char *at = text; at < text + length; at += strlen(at) + 1)
		if (!strcmp(at, variable))
			return true;
	return false;
}

static void test_of_this_process(void **state)
{
	char here[PATH_MAX], told[PATH_MAX];
	unsigned long long started = 0, again = 0;
	pid_t parent = 0;
	(void)state;
	assert_true(pid_parent(getpid(), &parent, &started));
	assert_int_equal(parent, getppid());
	assert_true(started > 0);
	assert_true(pid_parent(getpid(), &parent, &again));
	assert_int_equal(started, again);
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(pid_directory(getpid(), told, sizeof(told)), 0);
	assert_string_equal(told, here);
}

static void test_of_a_child(void **state)
{
	static char one[] = "ONE=1", two[] = "TWO=a=b";
	char *const environment[] = { one, two, NULL };
	char told[PATH_MAX];
	unsigned long long started = 0, own = 0;
	size_t length = 0;
	pid_t parent = 0, pid = start(environment);
	(void)state;
	assert_true(pid_parent(pid, &parent, &started));
	assert_int_equal(parent, getpid());
	assert_true(pid_parent(getpid(), &parent, &own) && own <= started);
	assert_int_equal(pid_directory(pid, told, sizeof(told)), 0);
	assert_string_equal(told, "/");
	char *text = pid_environment(pid, &length);
	assert_non_null(text);
	assert_true(has(text, length, one) && has(text, length, two));
	assert_false(has(text, length, "ONE"));
	free(text);
	end(pid);
}

static void test_of_one_that_is_gone(void **state)
{
	char *const none[] = { NULL };
	char told[PATH_MAX];
	unsigned long long started;
	size_t length;
	pid_t parent, pid = start(none);
	(void)state;
	end(pid);
	assert_false(pid_parent(pid, &parent, &started));
	assert_null(pid_environment(pid, &length));
	assert_true(pid_directory(pid, told, sizeof(told)) < 0);
}

static void test_own_program(void **state)
{
	char path[PATH_MAX], small[4];
	(void)state;
	assert_int_equal(pid_own_program(path, sizeof(path)), 0);
	assert_int_equal(path[0], '/');
	assert_string_equal(strrchr(path, '/'), "/test-pid");
	assert_int_equal(pid_own_program(small, sizeof(small)), -ENAMETOOLONG);
	assert_int_equal(pid_directory(getpid(), small, 1), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_this_process),
		cmocka_unit_test(test_of_a_child),
		cmocka_unit_test(test_of_one_that_is_gone),
		cmocka_unit_test(test_own_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

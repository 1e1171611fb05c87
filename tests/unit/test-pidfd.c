/* A process that is known by a pidfd is ended, also where a filter around cordon refuses the call for that. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "driver/linux/pidfd.h"

static pid_t start(int *ret_pidfd)
{
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	*ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(pid > 0 && *ret_pidfd >= 0);
	return pid;
}

static void is_ended(void)
{
	int status;
	auto_close int pidfd = -1;
	pid_t pid = start(&pidfd);
	assert_int_equal(pidfd_number(pidfd), pid);
	assert_true(pidfd_kill(pidfd));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	/* Its number may be another's by now. */
	assert_int_equal(pidfd_number(pidfd), 0);
	assert_false(pidfd_kill(pidfd));
}

static void by_the_call(void **state)
{
	(void)state;
	is_ended();
}

static void is_stopped_and_goes_on(void **state)
{
	int status;
	auto_close int pidfd = -1;
	pid_t pid = start(&pidfd);
	(void)state;
	assert_false(pidfd_is_stopped(pidfd));
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(pidfd_is_stopped(pidfd));
	pidfd_continue(pidfd);
	assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
	assert_false(pidfd_is_stopped(pidfd));
	assert_true(pidfd_kill(pidfd));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_false(pidfd_is_stopped(pidfd));
}

static void refuse(unsigned error)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_send_signal, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { ARRAY_SIZE(rules), rules };
	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* A filter stays for ever: this is the last of them. */
static void by_its_number(void **state)
{
	(void)state;
	refuse(EPERM);
	assert_int_equal(syscall(SYS_pidfd_send_signal, -1, 0, NULL, 0), -1);
	assert_int_equal(errno, EPERM);
	is_ended();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_the_call),
		cmocka_unit_test(is_stopped_and_goes_on),
		cmocka_unit_test(by_its_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

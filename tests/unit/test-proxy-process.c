/* Starting and ending the proxy's process. This program is the proxy here: started by that name, it tells what it
 * finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/linux/cgroup.h"
#include "driver/linux/linger.h"
#include "driver/proxy.h"
/* After ours: it has a macro of the name of our fail(). */
#include <cmocka.h>

const unsigned char cordon_proxy_blob[] = { 1 };
const unsigned int cordon_proxy_blob_size = sizeof(cordon_proxy_blob);
const unsigned char cordon_gateway_blob[] = { 1 };
const unsigned int cordon_gateway_blob_size = sizeof(cordon_gateway_blob);

void cgroup_remove(struct cgroup *group)
{
	assert_null(group->ops);
}

/* ---- the stand-in ------------------------------------------------------------------------------------------------ */

static void list_descriptors(char *text)
{
	DIR *directory = opendir("/proc/self/fd");
	bool open_fds[16] = { 0 };
	for (struct dirent *entry; directory && (entry = readdir(directory));)
		if (atoi(entry->d_name) < 16 && entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(directory))
			open_fds[atoi(entry->d_name)] = true;
	for (int fd = 0; fd < 16; fd++)
		if (open_fds[fd])
			text += sprintf(text, "%d", fd);
}

static int stand_in(char **environment)
{
	char heard[64] = "", fds[64] = "", cwd[64] = "", nothing[64] = "", said[512];
	sigset_t mask;
	struct sigaction action;
	bool plain = true;
	if (recv(3, heard, sizeof(heard) - 1, 0) <= 0)
		return 1;
	list_descriptors(fds);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	/* Not those of a crash, which a sanitizer handles. */
	static const int asked[] = { SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGUSR1, SIGCHLD };
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++)
		plain &= sigaction(asked[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL;
	for (int i = 1; i < 32; i++)
		plain &= !sigismember(&mask, i);
	(void)!readlink("/proc/self/fd/1", nothing, sizeof(nothing) - 1);
	snprintf(said, sizeof(said), "heard %s, descriptors %s, 1 is %s, leads %d, cwd %s, environment %d, signals %d",
	         heard, fds, nothing, getsid(0) == getpid(), getcwd(cwd, sizeof(cwd)), environment[0] != NULL, plain);
	send(3, said, strlen(said), MSG_NOSIGNAL);
	/* Until the other end is closed, by whomever. */
	return recv(3, heard, sizeof(heard), 0) == 0 ? 0 : 1;
}

#define EXPECTED "heard hello, descriptors 0123, 1 is /dev/null, leads 1, cwd /, environment 0, signals 1"

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static int own_program(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void begin(struct proxy_process *process)
{
	struct cordon_error err;
	auto_close int program = own_program();
	assert_int_equal(proxy_open(process, &err), 0);
	assert_int_equal(send(process->fd, "hello", 5, 0), 5);
	assert_int_equal(proxy_start(process, program, &err), 0);
	assert_int_equal(process->child_fd, -1);
}

static void assert_told(const struct proxy_process *process)
{
	char said[512] = "";
	assert_true(recv(process->fd, said, sizeof(said) - 1, 0) > 0);
	assert_string_equal(said, EXPECTED);
}

static void assert_gone(int pidfd)
{
	struct pollfd ready = { .fd = pidfd, .events = POLLIN };
	assert_int_equal(poll(&ready, 1, 60000), 1);
	close(pidfd);
}

static void it_has_nothing_of_the_callers(void **state)
{
	(void)state;
	struct proxy_process process;
	signal(SIGUSR1, SIG_IGN);
	int kept = dup(1);
	begin(&process);
	assert_told(&process);
	int pidfd = dup(process.pidfd);
	proxy_end(&process);
	assert_true(process.fd == -1 && process.pidfd == -1);
	assert_gone(pidfd);
	linger_settle();
	close(kept);
	signal(SIGUSR1, SIG_DFL);
}

static void it_ends_with_the_socket(void **state)
{
	(void)state;
	struct proxy_process process;
	begin(&process);
	assert_told(&process);
	close(take_fd(&process.fd));
	assert_gone(dup(process.pidfd));
	proxy_end(&process);
	linger_settle();
}

static void *begin_and_end_thread(void *argument)
{
	begin(argument);
	return NULL;
}

/* Whatever becomes of the thread that started it. */
static void it_outlives_its_thread(void **state)
{
	(void)state;
	struct proxy_process process;
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, begin_and_end_thread, &process), 0);
	pthread_join(thread, NULL);
	assert_told(&process);
	proxy_end(&process);
	linger_settle();
}

/* A caller without standard streams has its files where they would be. */
static void low_descriptors(void **state)
{
	(void)state;
	pid_t child = fork();
	if (child == 0) {
		struct proxy_process process;
		char said[512] = "";
		close(0);
		close(1);
		close(3);
		begin(&process);
		_exit(recv(process.fd, said, sizeof(said) - 1, 0) > 0 && !strcmp(said, EXPECTED) ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void what_cannot_be_executed(void **state)
{
	(void)state;
	struct proxy_process process;
	struct cordon_error err;
	int program = proxy_program_fd(&err);
	assert_true(program >= 0 && proxy_program_fd(&err) == program);
	assert_int_equal(proxy_open(&process, &err), 0);
	assert_int_equal(proxy_start(&process, program, &err), -1);
	assert_int_equal(err.class, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE);
	assert_string_equal(err.boundary, "network");
	assert_true(process.fd == -1 && process.pidfd == -1 && process.child_fd == -1);
	proxy_end(&process);
	linger_settle();
}

int main(int count, char **words, char **environment)
{
	if (count && !strcmp(words[0], "cordon-proxy"))
		return stand_in(environment);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_has_nothing_of_the_callers), cmocka_unit_test(it_ends_with_the_socket),
		cmocka_unit_test(it_outlives_its_thread), cmocka_unit_test(low_descriptors),
		cmocka_unit_test(what_cannot_be_executed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

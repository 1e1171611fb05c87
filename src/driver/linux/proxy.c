/* The caller's half: see driver/proxy.h. */
#include "driver/proxy.h"

#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/compat.h"
#include "driver/linux/blob.h"
#include "driver/linux/cgroup.h"
#include "driver/linux/launch.h"
#include "driver/linux/linger.h"
#include "driver/linux/pidfd.h"
#include "driver/linux/proxy-blob.h"

#define STACK_SIZE (32 * 1024)

static pthread_once_t program_once = PTHREAD_ONCE_INIT;
static int program_fd = -1;
static pthread_once_t gateway_once = PTHREAD_ONCE_INIT;
static int gateway_fd = -1;

static int unavailable(struct cordon_error *err, int os_errno, const char *subject, const char *reason)
{
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, os_errno, subject, "%s", reason);
	fail_boundary(err, "network");
	return fail_remedy(err, "use --net none, or --net all for the host's whole network");
}

static void make_program(void)
{
	program_fd = blob_open("cordon-proxy", cordon_proxy_blob, cordon_proxy_blob_size);
}

int proxy_program_fd(struct cordon_error *err)
{
	pthread_once(&program_once, make_program);
	return program_fd < 0 ? unavailable(err, -program_fd, "memfd_create", "cannot keep the proxy in memory") :
	                        program_fd;
}

static void make_gateway(void)
{
	gateway_fd = blob_open("cordon-gateway", cordon_gateway_blob, cordon_gateway_blob_size);
}

int proxy_gateway_fd(struct cordon_error *err)
{
	pthread_once(&gateway_once, make_gateway);
	return gateway_fd < 0 ? unavailable(err, -gateway_fd, "memfd_create", "cannot keep the gateway in memory") :
	                        gateway_fd;
}

int proxy_open(struct proxy_process *ret_process, struct cordon_error *err)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "socketpair", "cannot make the proxy's socket");
	*ret_process = (struct proxy_process){ .fd = ends[0], .child_fd = ends[1], .pidfd = -1 };
	return 0;
}

int proxy_start(struct proxy_process *process, int program, struct cordon_error *err)
{
	struct proxy_launch launch = { .program_fd = program, .socket_fd = process->child_fd, .pidfd = -1 };
	char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return fail_oom(err);
	/* A handler of the caller's must not run in the child, which shares its memory. */
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	long pid = proxy_clone(&launch, stack, STACK_SIZE);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	munmap(stack, STACK_SIZE);
	if (pid < 0)
		return unavailable(err, (int)-pid, "clone", "cannot start a process");
	process->pidfd = launch.pidfd;
	close(take_fd(&process->child_fd));
	if (!launch.failure)
		return 0;
	proxy_end(process);
	return unavailable(err, (int)-launch.failure, "cordon-proxy", "cannot start the proxy");
}

void proxy_kill(const struct proxy_process *process)
{
	if (process->pidfd >= 0)
		pidfd_kill(process->pidfd);
}

void proxy_end(struct proxy_process *process)
{
	struct cgroup none = { 0 };
	proxy_kill(process);
	if (process->pidfd >= 0)
		linger_add(take_fd(&process->pidfd), &none);
	cleanup_close(&process->fd);
	cleanup_close(&process->child_fd);
	process->fd = process->child_fd = -1;
}

/* The process of cordon-proxy: see driver/proxy.h. The program lies beside cordon's own, and is started in the system's
 * sandbox. Its socket is a stream, since there are none of packets (net/proxy-socket-stream.c). In the place of a pidfd
 * there is its number, which nobody else has as long as it is not waited for. */
#include "driver/proxy.h"

#include <limits.h>
#include <mach-o/dyld.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "cordon.h"
#include "driver/macos/macos.h"
#include "profile/seatbelt.h"

#define PROXY_SOCKET 3          /* where it has its end: PROXY_FD */

static pthread_once_t program_once = PTHREAD_ONCE_INIT;
static struct arena arena;              /* of what follows; for as long as this process is there */
static struct strings arguments;        /* sandbox-exec, its own, the program, cordon's version */
static int program_fd = -1, program_error;

static int unavailable(struct cordon_error *err, int os_errno, const char *reason)
{
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, os_errno, "cordon-proxy", "%s", reason);
	fail_boundary(err, "network");
	return fail_remedy(err, "use --net none, or --net all for the host's whole network");
}

/* Where it lies; NULL and errno. */
static const char *find_program(void)
{
	char own[PATH_MAX], path[PATH_MAX];
	uint32_t size = sizeof(own);
	if (_NSGetExecutablePath(own, &size) != 0 || !realpath(own, path))
		return NULL;
	char *slash = strrchr(path, '/');
	return arena_printf(&arena, "%.*s/cordon-proxy", slash ? (int)(slash - path) : 0, path);
}

static int make_arguments(const char *path)
{
	struct seatbelt seatbelt;
	if (seatbelt_render_proxy(&arena, path, &seatbelt) < 0)
		return -1;
	int result = strings_add(&arena, &arguments, SANDBOX_EXEC) | strings_add(&arena, &arguments, "-p") |
	             strings_add(&arena, &arguments, seatbelt.text);
	for (size_t i = 0; result == 0 && i < seatbelt.count; i++)
		result = strings_add(&arena, &arguments, "-D") |
		         strings_add(&arena, &arguments,
		                     arena_printf(&arena, "%s=%s", seatbelt.parameters[i].name,
		                                  seatbelt.parameters[i].value));
	return result == 0 && strings_add(&arena, &arguments, path) == 0 ?
	               strings_add(&arena, &arguments, CORDON_VERSION) : -1;
}

static void make_program(void)
{
	struct stat info;
	const char *path = find_program();
	auto_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (fd < 0 || fstat(fd, &info) < 0)
		program_error = errno;
	else if (!S_ISREG(info.st_mode) || info.st_mode & (S_IWGRP | S_IWOTH))
		program_error = EPERM;
	else if (make_arguments(path) < 0)
		program_error = ENOMEM;
	else
		program_fd = take_fd(&fd);
}

int proxy_program_fd(struct cordon_error *err)
{
	pthread_once(&program_once, make_program);
	if (program_fd >= 0)
		return program_fd;
	if (program_error != ENOENT)
		return unavailable(err, program_error == EPERM ? 0 : program_error,
		                   program_error == EPERM ? "the program beside cordon can be changed by others" :
		                                            "the program beside cordon cannot be used");
	unavailable(err, 0, "the program that comes with cordon is not beside it");
	return fail_remedy(err, "put it there; or use --net none, or --net all for the host's whole network");
}

int proxy_gateway_fd(struct cordon_error *err)
{
	return unavailable(err, 0, "gateways are not built for macOS");
}

int proxy_open(struct proxy_process *ret_process, struct cordon_error *err)
{
	static const int on = 1;
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "socketpair", "cannot make the proxy's socket");
	for (int i = 0; i < 2; i++) {
		fcntl(ends[i], F_SETFD, FD_CLOEXEC);
		setsockopt(ends[i], SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
	}
	*ret_process = (struct proxy_process){ .fd = ends[0], .child_fd = ends[1], .pidfd = -1 };
	return 0;
}

/* An error number. Nothing of the caller's but the socket: no other descriptor, no signal, no directory. */
static int spawn(int socket_fd, pid_t *ret_pid)
{
	static char *const environment[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	if (posix_spawn_file_actions_init(&actions))
		return ENOMEM;
	if (posix_spawnattr_init(&attributes)) {
		posix_spawn_file_actions_destroy(&actions);
		return ENOMEM;
	}
	int error = 0;
	for (int fd = 0; fd < 3 && !error; fd++)
		error = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&actions, socket_fd, PROXY_SOCKET);
	if (!error)
		error = posix_spawn_file_actions_addchdir_np(&actions, "/");
	if (!error)
		error = posix_spawnattr_setsigmask(&attributes, &none);
	if (!error)
		error = posix_spawnattr_setsigdefault(&attributes, &all);
	if (!error)
		error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_CLOEXEC_DEFAULT | POSIX_SPAWN_SETSIGMASK |
		                                                      POSIX_SPAWN_SETSIGDEF);
	if (!error)
		error = posix_spawn(ret_pid, SANDBOX_EXEC, &actions, &attributes,
		                    (char *const *)(uintptr_t)arguments.items, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

int proxy_start(struct proxy_process *process, int program, struct cordon_error *err)
{
	pid_t pid;
	(void)program;
	int error = spawn(process->child_fd, &pid);
	close(take_fd(&process->child_fd));
	if (error)
		return unavailable(err, error, "cannot start the proxy");
	process->pidfd = pid;
	return 0;
}

void proxy_kill(const struct proxy_process *process)
{
	if (process->pidfd > 0)
		kill(process->pidfd, SIGKILL);
}

void proxy_end(struct proxy_process *process)
{
	proxy_kill(process);
	while (process->pidfd > 0 && waitpid(process->pidfd, NULL, 0) < 0 && errno == EINTR)
		;
	process->pidfd = -1;
	close_fd(&process->fd);
	close_fd(&process->child_fd);
}

/* See credential-command.h. */
#include "secrets/credential-command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* Signals as a program expects them; nothing of the caller's but 0, 1 and 2. */
static int start(const char *const *argv, char *const *environment, int output_fd, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	int result = posix_spawn_file_actions_init(&actions);
	if (result)
		return result;
	result = posix_spawnattr_init(&attributes);
	if (!result) {
		if ((result = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)) == 0 &&
		    (result = posix_spawn_file_actions_adddup2(&actions, output_fd, 1)) == 0 &&
		    (result = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)) == 0 &&
		    (result = posix_spawn_file_actions_addchdir_np(&actions, "/")) == 0 &&
		    (result = posix_spawn_file_actions_addclosefrom_np(&actions, 3)) == 0 &&
		    (result = posix_spawnattr_setsigmask(&attributes, &none)) == 0 &&
		    (result = posix_spawnattr_setsigdefault(&attributes, &all)) == 0 &&
		    (result = posix_spawnattr_setpgroup(&attributes, 0)) == 0 &&
		    (result = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
		                                                            POSIX_SPAWN_SETPGROUP)) == 0)
			result = posix_spawn(ret_pid, argv[0], &actions, &attributes, (char *const *)argv, environment);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return result;
}

/* Until its end of the pipe is closed by all who have it, the buffer is full, or the time is over. */
static enum credential_end take(int fd, int64_t deadline_ms, struct credential_output *output)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	while (output->length < output->size) {
		int64_t left = deadline_ms - clock_ms();
		if (left <= 0)
			return CREDENTIAL_TOO_LONG;
		int polled = poll(&ready, 1, (int)(left < 60000 ? left : 60000));
		if (polled <= 0)
			continue;
		ssize_t got = read(fd, output->bytes + output->length, output->size - output->length);
		if (got == 0)
			return CREDENTIAL_ENDED;
		output->length += got > 0 ? (size_t)got : 0;
	}
	return CREDENTIAL_TOO_MUCH;
}

/* It may have closed its output and go on. */
static enum credential_end wait_for(pid_t pid, int64_t deadline_ms, int *ret_status)
{
	siginfo_t info;
	for (;;) {
		info.si_pid = 0;
		if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno != EINTR)
			return CREDENTIAL_TOO_LONG;
		if (info.si_pid)
			break;
		if (clock_ms() >= deadline_ms)
			return CREDENTIAL_TOO_LONG;
		poll(NULL, 0, 2);
	}
	*ret_status = info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
	return CREDENTIAL_ENDED;
}

enum credential_end credential_execute(const char *const *argv, char *const *environment, uint64_t timeout_ms,
                                       struct credential_output *output)
{
	int pipe_fds[2];
	pid_t pid;
	int64_t deadline = clock_ms() + (int64_t)timeout_ms;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
		output->status = errno;
		return CREDENTIAL_NOT_STARTED;
	}
	output->status = start(argv, environment, pipe_fds[1], &pid);
	close(pipe_fds[1]);
	if (output->status) {
		close(pipe_fds[0]);
		return CREDENTIAL_NOT_STARTED;
	}
	enum credential_end end = take(pipe_fds[0], deadline, output);
	if (end == CREDENTIAL_ENDED)
		end = wait_for(pid, deadline, &output->status);
	/* It is not reaped yet, so that the number is still its group's. */
	kill(-pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(pipe_fds[0]);
	return end;
}

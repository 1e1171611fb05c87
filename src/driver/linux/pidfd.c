/* See pidfd.h. */
#include "driver/linux/pidfd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t pidfd_number(int pidfd)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", pidfd);
	FILE *file = fopen(name, "re");
	int pid = 0;
	for (char line[128]; file && fgets(line, sizeof(line), file) && sscanf(line, "Pid: %d", &pid) != 1;)
		;
	if (file)
		fclose(file);
	return pid > 0 ? pid : 0;
}

static bool send_signal(int pidfd, int signal)
{
	if (syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) == 0)
		return true;
	pid_t pid = errno == ESRCH ? 0 : pidfd_number(pidfd);
	return pid && kill(pid, signal) == 0;
}

bool pidfd_kill(int pidfd)
{
	return send_signal(pidfd, SIGKILL);
}

void pidfd_continue(int pidfd)
{
	(void)!send_signal(pidfd, SIGCONT);
}

/* 1234 (its name) T 1 ... */
bool pidfd_is_stopped(int pidfd)
{
	char text[256];
	pid_t pid = pidfd_number(pidfd);
	snprintf(text, sizeof(text), "/proc/%d/stat", (int)pid);
	FILE *file = pid ? fopen(text, "re") : NULL;
	if (!file)
		return false;
	const char *name_end = fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
	fclose(file);
	return name_end && !strncmp(name_end, ") T ", 4);
}

int pidfd_network(int pidfd, int *ret_user, int *ret_network)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pidfd_number(pidfd));
	auto_close int network = open(path, O_RDONLY | O_CLOEXEC);
	auto_close int user = network < 0 ? -1 : ioctl(network, NS_GET_USERNS);
	if (user < 0)
		return -errno;
	*ret_user = take_fd(&user);
	*ret_network = take_fd(&network);
	return 0;
}

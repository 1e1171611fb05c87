/* See pidfd.h. */
#include "driver/linux/pidfd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
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

bool pidfd_kill(int pidfd)
{
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0)
		return true;
	pid_t pid = errno == ESRCH ? 0 : pidfd_number(pidfd);
	return pid && kill(pid, SIGKILL) == 0;
}

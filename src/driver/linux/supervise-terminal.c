/* Ctrl-Z at a command with a terminal of its own. A shell there with job control takes the key for its jobs. A single
 * program cannot be stopped by it: its process group is orphaned, and the kernel stops no such group, because no
 * process inside would continue it. Then the caller, which can, stops the command as a whole. */
#include "driver/linux/supervise.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define STOP_KEY 0x1a

/* A program in the foreground that is not the first one was put there by a shell. One that reads keys, not lines, is a
 * shell at its prompt, or draws on the whole screen. */
static bool has_job_control(int fd, const struct termios *settings)
{
	pid_t foreground, leader;
	if (ioctl(fd, TIOCGPGRP, &foreground) < 0 || ioctl(fd, TIOCGSID, &leader) < 0)
		return true;
	return foreground != leader || !(settings->c_lflag & ICANON);
}

bool supervise_press_stop(struct supervision *supervision)
{
	struct termios settings;
	char key = STOP_KEY;
	if (!supervision->options.tty || supervision->stdin_fd < 0 || tcgetattr(supervision->stdin_fd, &settings) < 0)
		return true;
	if (settings.c_lflag & ISIG && settings.c_cc[VSUSP] == STOP_KEY &&
	    !has_job_control(supervision->stdin_fd, &settings))
		return true;
	(void)!write(supervision->stdin_fd, &key, 1);
	return false;
}

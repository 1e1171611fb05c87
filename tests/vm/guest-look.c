/* What the host of a sandbox sees of it: files, processes, and a terminal. */
#define _GNU_SOURCE
#include "guest.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* MODE and the beginning of the text in hexadecimal digits, or "none". */
int look(char **words)
{
	for (; *words; words++) {
		static unsigned char bytes[4096];
		struct stat info;
		int fd = open(*words, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
		if (lstat(*words, &info) < 0 || !S_ISREG(info.st_mode)) {
			puts("none");
			continue;
		}
		ssize_t length = read(fd, bytes, sizeof(bytes));
		printf("%o ", info.st_mode & 0777);
		for (ssize_t i = 0; i < length; i++)
			printf("%02x", bytes[i]);
		puts("");
		close(fd);
	}
	return 0;
}

int list(char **words)
{
	DIR *directory = opendir(words[0]);
	if (!directory)
		give_up(words[0]);
	for (struct dirent *entry; (entry = readdir(directory));)
		puts(entry->d_name);
	closedir(directory);
	return 0;
}

static bool is_alive(const char *pid)
{
	char path[300], text[512] = "";
	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	int fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = '\0';
	close(fd);
	const char *state = strrchr(text, ')');
	return state && state[1] == ' ' && !strchr("ZX", state[2]);
}

/* Was it started with this word, and not as cordon itself? */
static bool carries(const char *pid, const char *mark)
{
	char path[300], text[8192];
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	int fd = open(path, O_RDONLY);
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	close(fd);
	for (ssize_t at = 0; at < length; at += (ssize_t)strlen(text + at) + 1) {
		text[length] = '\0';
		found |= !strcmp(text + at, mark);
		if (!strcmp(text + at, "--driver") || !strcmp(text + at, "kill-when-marked") ||
		    !strcmp(text + at, "left"))
			return false;
	}
	return found && is_alive(pid);
}

/* How many there are; their numbers go to `text`. */
static int marked(const char *mark, bool end, char *text, size_t size)
{
	int count = 0;
	DIR *proc = opendir("/proc");
	for (struct dirent *entry; (entry = readdir(proc));) {
		if (atoi(entry->d_name) <= 1 || !carries(entry->d_name, mark))
			continue;
		size_t used = strlen(text);
		snprintf(text + used, size - used, " %s", entry->d_name);
		count++;
		if (end)
			kill(atoi(entry->d_name), SIGKILL);
	}
	closedir(proc);
	return count;
}

int left(char **words)
{
	for (; *words; words++) {
		char text[1000] = "";
		marked(*words, true, text, sizeof(text));
		printf("left%s\n", text);
	}
	return 0;
}

static bool wait_for(const char *mark, bool there, int seconds)
{
	for (int i = 0; i < seconds * 50; i++) {
		char text[1000] = "";
		if ((marked(mark, false, text, sizeof(text)) > 0) == there)
			return true;
		usleep(20000);
	}
	return false;
}

int kill_when_marked(char **words)
{
	pid_t pid = fork();
	if (pid == 0)
		become(words + 1);
	bool there = wait_for(words[0], true, 20);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	wait_for(words[0], false, 3);
	printf("%s\n", there ? "there" : "missing");
	words[1] = NULL;
	return left(words);
}

int terminal(char **words)
{
	int master, slave, status = 99;
	char bytes[4096];
	checked(openpty(&master, &slave, NULL, NULL, NULL), "openpty");
	pid_t pid = fork();
	if (pid == 0) {
		dup2(open("/dev/null", O_RDONLY), 0); /* cordon itself would read what is typed */
		setsid();
		checked(ioctl(slave, TIOCSCTTY, 0), "TIOCSCTTY");
		dup2(slave, 1);
		dup2(slave, 2);
		become(words);
	}
	struct pollfd output = { .fd = master, .events = POLLIN };
	for (bool over = false; !over || poll(&output, 1, 50) > 0;) {
		if (poll(&output, 1, 20) > 0) {
			ssize_t length = read(master, bytes, sizeof(bytes));
			if (length > 0)
				fwrite(bytes, 1, (size_t)length, stdout);
		} else if (!over) {
			over = waitpid(pid, &status, WNOHANG) == pid;
		}
	}
	fcntl(slave, F_SETFL, O_NONBLOCK);
	ssize_t typed = read(slave, bytes, sizeof(bytes));
	if (typed > 0)
		fwrite(bytes, 1, (size_t)typed, stderr);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Control files: see cgroup-file.h. */
#include "driver/linux/cgroup-file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define KILL_ROUNDS 100
#define KILL_PAUSE_NS 1000000

int cgroup_file_version(int fd)
{
	struct statfs info;
	if (fstatfs(fd, &info) < 0)
		return 0;
	return info.f_type == CGROUP2_SUPER_MAGIC ? 2 : info.f_type == CGROUP_SUPER_MAGIC ? 1 : 0;
}

long cgroup_file_read(int dir, const char *name, char *text, size_t size)
{
	auto_close int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t length = fd < 0 ? -1 : read(fd, text, size - 1);
	text[length > 0 ? length : 0] = '\0';
	return length;
}

int cgroup_file_write(int dir, const char *name, const char *text)
{
	auto_close int fd = openat(dir, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

int cgroup_file_write_number(int dir, const char *name, uint64_t number)
{
	char text[32];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	return cgroup_file_write(dir, name, text);
}

uint64_t cgroup_file_number(int fd, const char *key)
{
	uncleared char text[4096];
	ssize_t read = pread(fd, text, sizeof(text) - 1, 0);
	if (read <= 0)
		return 0;
	text[read] = '\0';
	size_t length = key ? strlen(key) : 0;
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (!key || (!strncmp(line, key, length) && line[length] == ' '))
			return strtoull(line + length, NULL, 10);
	return 0;
}

bool cgroup_file_has_word(const char *text, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = text; *at; at += strspn(at, " \n")) {
		size_t next = strcspn(at, " \n");
		if (next == length && !memcmp(at, word, length))
			return true;
		at += next;
	}
	return false;
}

const char *cgroup_file_own(const char *self, const char *controller)
{
	size_t length = strlen(controller);
	for (const char *line = self; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *list = line + strcspn(line, ":\n");
		for (const char *at = list; *at == ':' || *at == ','; at += 1 + strcspn(at + 1, ",:\n")) {
			if (at != list && *at == ':')
				break;
			if (!strncmp(at + 1, controller, length) && at[1 + length] && strchr(",:", at[1 + length]))
				return strchr(at + 1, ':') + 1;
		}
	}
	return NULL;
}

/* Kills what cgroup.procs lists, each once; returns how many, or -1 with errno. The pid of one that has ended since
 * cannot belong to another process yet: it is not reused until all other pids were used. */
static int kill_once(int dir)
{
	auto_close int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	FILE *list = fd < 0 ? NULL : fdopen(fd, "re");
	int count = 0, pid;
	if (!list)
		return -1;
	(void)take_fd(&fd);
	for (; fscanf(list, "%d", &pid) == 1; count++)
		if (pid > 1)
			kill(pid, SIGKILL);
	fclose(list);
	return count;
}

bool cgroup_file_kill_listed(int dir)
{
	for (int round = 0; round < KILL_ROUNDS; round++) {
		int killed = kill_once(dir);
		/* A list that cannot be read may be full. */
		if (killed == 0 || (killed < 0 && (errno == ENOENT || errno == ENODEV)))
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = KILL_PAUSE_NS }, NULL);
	}
	return false;
}

int cgroup_file_open_own(int dir, const char *name)
{
	struct stat info;
	auto_close int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &info) < 0)
		return -1;
	if (info.st_uid == geteuid())
		return take_fd(&fd);
	errno = EPERM;
	return -1;
}

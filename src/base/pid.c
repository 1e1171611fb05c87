/* Processes are read in /proc; see pid.h. */
#include "base/pid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define FILE_MAX (4u << 20)

/* A file of /proc, which has no size. The text is to be free()d; NULL: it cannot be read. */
static char *read_proc(pid_t pid, const char *name, size_t *ret_length)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0, capacity = 0;
	auto_free char *text = NULL;
	for (ssize_t got = 1; fd >= 0 && got != 0;) {
		if (capacity - length < 4096) {
			char *larger = capacity > FILE_MAX ? NULL : realloc(text, capacity = capacity * 2 + 8192);
			if (!larger)
				return NULL;
			text = larger;
		}
		got = read(fd, text + length, capacity - length - 1);
		if (got < 0 && errno != EINTR)
			return NULL;
		length += got > 0 ? (size_t)got : 0;
	}
	if (!text)
		return NULL;
	text[length] = '\0';
	*ret_length = length;
	char *taken = text;
	text = NULL;
	return taken;
}

bool pid_parent(pid_t pid, pid_t *ret_parent, unsigned long long *ret_started)
{
	size_t length;
	int parent;
	auto_free char *text = read_proc(pid, "stat", &length);
	/* The name of the program, which may hold anything, ends at the last bracket. */
	const char *rest = text ? strrchr(text, ')') : NULL;
	if (!rest || sscanf(rest, ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
	                    &parent, ret_started) != 2)
		return false;
	*ret_parent = parent;
	return true;
}

char *pid_environment(pid_t pid, size_t *ret_length)
{
	return read_proc(pid, "environ", ret_length);
}

static int read_link(const char *link, char *ret_path, size_t size)
{
	ssize_t length = readlink(link, ret_path, size);
	if (length < 0)
		return -errno;
	if (!length || (size_t)length == size)
		return -ENAMETOOLONG;
	ret_path[length] = '\0';
	return 0;
}

int pid_directory(pid_t pid, char *ret_path, size_t size)
{
	char link[64];
	snprintf(link, sizeof(link), "/proc/%d/cwd", (int)pid);
	return read_link(link, ret_path, size);
}

int pid_own_program(char *ret_path, size_t size)
{
	return read_link("/proc/self/exe", ret_path, size);
}

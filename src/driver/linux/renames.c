/* Answering notifications of renames: see renames.h. */
#include "driver/linux/renames.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/compat.h"
#include "driver/linux/sys.h"

#define PATH_SIZE 4096
#define PAGE 4096
#define NEW_NAME "config"
#define OLD_NAME "config.lock"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

void renames_begin(struct renames *renames, int listener_fd)
{
	close_fd(&renames->listener_fd);
	renames->listener_fd = listener_fd;
	/* From Linux 6.6 on: whoever waits for the other runs on its processor. */
	ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

void renames_end(struct renames *renames)
{
	close_fd(&renames->listener_fd);
}

/* Both names of a call, as its arguments say. */
struct call {
	int old_directory, new_directory;
	uint64_t old_path, new_path;
};

/* False: it is none that replaces a file. */
static bool read_call(const struct seccomp_data *data, struct call *ret)
{
	const uint64_t *args = (const uint64_t *)data->args;
	switch (data->nr) {
#ifdef SYS_rename
	case SYS_rename:
		*ret = (struct call){ AT_FDCWD, AT_FDCWD, args[0], args[1] };
		return true;
#endif
#ifdef SYS_renameat
	case SYS_renameat:
		*ret = (struct call){ (int)args[0], (int)args[2], args[1], args[3] };
		return true;
#endif
	case SYS_renameat2:
		*ret = (struct call){ (int)args[0], (int)args[2], args[1], args[3] };
		return !(unsigned)args[4];
	default:
		return false;
	}
}

static bool read_text(int memory, uint64_t address, char text[static PATH_SIZE])
{
	size_t length = 0;
	while (length < PATH_SIZE) {
		size_t part = PAGE - (address + length) % PAGE;
		part = part < PATH_SIZE - length ? part : PATH_SIZE - length;
		ssize_t got = pread(memory, text + length, part, (off_t)(address + length));
		if (got <= 0)
			return false;
		if (memchr(text + length, '\0', (size_t)got))
			return true;
		length += (size_t)got;
	}
	return false;
}

/* Cuts the last name off, if it is this one. */
static bool take_name(char *path, const char *name)
{
	char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
	if (strcmp(last, name))
		return false;
	*last = '\0';
	return true;
}

/* The place that the directory `path` is, as the process `pid` sees it; or -1. */
static long find_place(const struct renames *renames, int pid, int directory, const char *path)
{
	char base[64];
	struct stat info;
	bool absolute = *path == '/';
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
	                        .resolve = RESOLVE_NO_MAGICLINKS | (absolute ? RESOLVE_IN_ROOT : RESOLVE_NO_SYMLINKS) };
	if (!absolute && directory != AT_FDCWD)
		snprintf(base, sizeof(base), "/proc/%d/fd/%d", pid, directory);
	else
		snprintf(base, sizeof(base), "/proc/%d/%s", pid, absolute ? "root" : "cwd");
	auto_close int from = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int fd = from < 0 ? -1 : (int)syscall(SYS_openat2, from, *path ? path : ".", &how, sizeof(how));
	if (fd < 0 || fstat(fd, &info) < 0)
		return -1;
	for (size_t i = 0; i < renames->watch->count; i++)
		if (renames->watch->places[i].device == info.st_dev && renames->watch->places[i].inode == info.st_ino)
			return (long)i;
	return -1;
}

/* The place that is meant, or -1: the kernel decides. */
static long find_meant(const struct renames *renames, const struct seccomp_notif *notification)
{
	uncleared char path[PATH_SIZE];
	struct call call;
	int pid = (int)notification->pid;
	if (!read_call(&notification->data, &call))
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	auto_close int memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0 || !read_text(memory, call.new_path, path) || !take_name(path, NEW_NAME))
		return -1;
	long place = find_place(renames, pid, call.new_directory, path);
	if (place < 0 || !read_text(memory, call.old_path, path) || !take_name(path, OLD_NAME) ||
	    find_place(renames, pid, call.old_directory, path) != place)
		return -1;
	/* Else its number may be another's by now. */
	return ioctl(renames->listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &notification->id) < 0 ? -1 : place;
}

bool renames_serve(struct renames *renames)
{
	struct pollfd ready = { .fd = renames->listener_fd, .events = POLLIN };
	/* The kernel may know more of either than this header. */
	union {
		struct seccomp_notif notification;
		char space[512];
	} in;
	union {
		struct seccomp_notif_resp response;
		char space[512];
	} out;
	memset(&in, 0, sizeof(in));
	memset(&out, 0, sizeof(out));
	/* Before Linux 6.6 receiving waits for a notification, though there is no process left that could make one. */
	if (poll(&ready, 1, 0) > 0 && !(ready.revents & POLLIN))
		return false;
	if (!(ready.revents & POLLIN) || ioctl(renames->listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &in) < 0)
		return true;
	long place = find_meant(renames, &in.notification);
	out.response.id = in.notification.id;
	if (place < 0 || !renames->watch->take(renames->watch->arg, (size_t)place))
		out.response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	ioctl(renames->listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &out);
	return true;
}

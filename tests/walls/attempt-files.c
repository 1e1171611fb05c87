/* Attempts on files: reading, changing, and starting what should be out of reach. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "attempt.h"

static enum answer found(int fd, const char *wanted)
{
	bool there = fd >= 0 && fd_contains(fd, wanted);
	if (fd >= 0 && !there)
		note("opened, but without what was looked for");
	enum answer answer = fd < 0 || there ? escaped_if(there) : CONTAINED;
	if (fd >= 0)
		close(fd);
	return answer;
}

/* PATH TEXT: the file can be read and has the text in it. */
enum answer try_read(char **arguments)
{
	return found(open(arguments[0], O_RDONLY | O_NONBLOCK), arguments[1]);
}

/* PATH: it can be opened for reading at all. */
enum answer try_readable(char **arguments)
{
	return escaped_if_fd(open(arguments[0], O_RDONLY | O_NONBLOCK));
}

/* DIRECTORY RELATIVE TEXT: by way of an open directory. */
enum answer try_openat(char **arguments)
{
	int directory = open(arguments[0], O_PATH | O_DIRECTORY);
	if (directory < 0)
		return broken(arguments[0]);
	return found(openat(directory, arguments[1], O_RDONLY), arguments[2]);
}

/* The same with openat2, which could be told to follow anything. */
enum answer try_openat2(char **arguments)
{
	struct open_how how = { .flags = O_RDONLY };
	int directory = open(arguments[0], O_PATH | O_DIRECTORY);
	if (directory < 0)
		return broken(arguments[0]);
	return found((int)syscall(SYS_openat2, directory, arguments[1], &how, sizeof(how)), arguments[2]);
}

/* PATH TEXT: first only a handle on it, then the file by way of /proc/self/fd. */
enum answer try_reopen(char **arguments)
{
	char path[64];
	int handle = open(arguments[0], O_PATH);
	if (handle < 0)
		return escaped_if(false);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	return found(open(path, O_RDONLY), arguments[1]);
}

/* PATH [TEXT]: something can be added to it. */
enum answer try_append(char **arguments)
{
	const char *text = arguments[1] ? arguments[1] : "\n";
	int fd = open(arguments[0], O_WRONLY | O_APPEND);
	return escaped_if(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

/* PATH: it could be written to; nothing is. */
enum answer try_open_write(char **arguments)
{
	return escaped_if_fd(open(arguments[0], O_WRONLY | O_NONBLOCK));
}

enum answer try_create(char **arguments)
{
	return escaped_if_fd(open(arguments[0], O_WRONLY | O_CREAT | O_EXCL, 0644));
}

enum answer try_mkdir(char **arguments)
{
	return escaped_if(mkdir(arguments[0], 0755) == 0);
}

enum answer try_unlink(char **arguments)
{
	return escaped_if(unlink(arguments[0]) == 0);
}

enum answer try_truncate(char **arguments)
{
	return escaped_if(truncate(arguments[0], 1) == 0);
}

enum answer try_chmod(char **arguments)
{
	return escaped_if(chmod(arguments[0], 0750) == 0);
}

enum answer try_utime(char **arguments)
{
	const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	return escaped_if(utimensat(AT_FDCWD, arguments[0], times, 0) == 0);
}

enum answer try_setxattr(char **arguments)
{
	return escaped_if(setxattr(arguments[0], "user.cordon", "1", 1, 0) == 0);
}

enum answer try_rename(char **arguments)
{
	return escaped_if(rename(arguments[0], arguments[1]) == 0);
}

/* DIRECTORY NEW FILE TEXT: the directory under another name, then the file in it. */
enum answer try_rename_parent(char **arguments)
{
	char path[4096];
	const char *directory = rename(arguments[0], arguments[1]) == 0 ? arguments[1] : arguments[0];
	snprintf(path, sizeof(path), "%s/%s", directory, arguments[2]);
	return found(open(path, O_RDONLY), arguments[3]);
}

static void make_parents(const char *path)
{
	char parent[4096];
	snprintf(parent, sizeof(parent), "%s", path);
	for (char *slash = strchr(parent + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(parent, 0755);
		*slash = '/';
	}
}

/* DIRECTORY NEW FILE: the directory out of the way, one of our own in its place, with the file in it. */
enum answer try_rename_plant(char **arguments)
{
	char path[4096];
	if (rename(arguments[0], arguments[1]) < 0)
		return escaped_if(false);
	snprintf(path, sizeof(path), "%s/%s", arguments[0], arguments[2]);
	return try_plant((char *[]){ path, NULL });
}

/* A B: swapped in one step. */
enum answer try_exchange(char **arguments)
{
	return escaped_if(renameat2(AT_FDCWD, arguments[0], AT_FDCWD, arguments[1], RENAME_EXCHANGE) == 0);
}

/* PATH NEW TEXT: by another name. */
enum answer try_link(char **arguments)
{
	if (link(arguments[0], arguments[1]) < 0)
		return escaped_if(false);
	return found(open(arguments[1], O_RDONLY), arguments[2]);
}

/* PATH NEW [TEXT] */
enum answer try_link_append(char **arguments)
{
	if (link(arguments[0], arguments[1]) < 0)
		return escaped_if(false);
	return try_append(arguments + 1);
}

enum answer try_symlink_append(char **arguments)
{
	if (symlink(arguments[0], arguments[1]) < 0)
		return broken("symlink");
	return try_append(arguments + 1);
}

enum answer try_fifo(char **arguments)
{
	return escaped_if(mkfifo(arguments[0], 0644) == 0);
}

enum answer try_bind_socket(char **arguments)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", arguments[0]);
	return escaped_if(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
}

/* HERE THERE: a file without a name made here gets one there. */
enum answer try_tmpfile(char **arguments)
{
	char path[64];
	int fd = open(arguments[0], O_TMPFILE | O_WRONLY, 0644);
	if (fd < 0)
		return broken("O_TMPFILE");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return escaped_if(linkat(AT_FDCWD, path, AT_FDCWD, arguments[1], AT_SYMLINK_FOLLOW) == 0);
}

/* DIRECTORY NAME: listing shows the name. */
enum answer try_list(char **arguments)
{
	DIR *directory = opendir(arguments[0]);
	if (!directory)
		return escaped_if(false);
	for (struct dirent *entry; (entry = readdir(directory));)
		if (!strcmp(entry->d_name, arguments[1]))
			return ESCAPED;
	note("listed, but without that name");
	return CONTAINED;
}

enum answer try_stat(char **arguments)
{
	struct stat info;
	return escaped_if(stat(arguments[0], &info) == 0);
}

enum answer try_chdir(char **arguments)
{
	return escaped_if(chdir(arguments[0]) == 0);
}

enum answer try_watch(char **arguments)
{
	int fd = inotify_init1(0);
	if (fd < 0)
		return broken("inotify_init1");
	return escaped_if(inotify_add_watch(fd, arguments[0], IN_ALL_EVENTS) >= 0);
}

/* PATH [TEXT]: a file that would run later, with the directories that it needs. */
enum answer try_plant(char **arguments)
{
	const char *text = arguments[1] ? arguments[1] : "#!/bin/sh\necho evil\n";
	make_parents(arguments[0]);
	int fd = open(arguments[0], O_WRONLY | O_CREAT | O_TRUNC, 0755);
	return escaped_if(fd >= 0 && write(fd, text, strlen(text)) > 0 && fchmod(fd, 0755) == 0);
}

/* ---- starting programs ------------------------------------------------------------------------------------------ */

static int start(void *argument)
{
	char **words = argument;
	int null = open("/dev/null", O_RDWR);
	if (null >= 0)
		dup2(null, 1);
	execv(words[0], words);
	return errno == 0 ? 1 : errno & 0x7f;
}

/* PROGRAM ARGUMENT…: it runs, and ends with 0. */
enum answer try_execute(char **arguments)
{
	enum answer answer = run_child(start, arguments);
	if (answer == CONTAINED)
		note("did not run");
	return answer;
}

static bool copy(const char *from, const char *to)
{
	static char bytes[1 << 16];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	ssize_t length = 0;
	while (in >= 0 && out >= 0 && (length = read(in, bytes, sizeof(bytes))) > 0)
		if (write(out, bytes, (size_t)length) != length)
			return false;
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return in >= 0 && out >= 0 && length == 0;
}

/* PROGRAM COPY ARGUMENT…: a copy of it runs. */
enum answer try_copy_execute(char **arguments)
{
	if (!copy(arguments[0], arguments[1]))
		return escaped_if(false); /* where even that is refused, there is nothing to start */
	return try_execute(arguments + 1);
}

/* PATH INTERPRETER: a script of our own, run by the kernel's reading of its first line. */
enum answer try_script(char **arguments)
{
	int fd = open(arguments[0], O_WRONLY | O_CREAT | O_TRUNC, 0755);
	if (fd < 0 || dprintf(fd, "#!%s\nexit 0\n", arguments[1]) < 0)
		return broken("cannot write");
	close(fd);
	return try_execute((char *[]){ arguments[0], NULL });
}

enum answer try_symlink_execute(char **arguments)
{
	if (symlink(arguments[0], arguments[1]) < 0)
		return broken("symlink");
	return try_execute(arguments + 1);
}

static int start_descriptor(void *argument)
{
	char *words[] = { "hello", "hello", NULL }, *environment[] = { NULL };
	syscall(SYS_execveat, *(int *)argument, "", words, environment, AT_EMPTY_PATH);
	return 1;
}

/* PROGRAM: from a file that is in memory only. */
enum answer try_memfd_execute(char **arguments)
{
	static char bytes[1 << 16];
	int in = open(arguments[0], O_RDONLY), fd = memfd_create("hello", 0);
	if (in < 0)
		return broken(arguments[0]);
	if (fd < 0)
		return escaped_if(false);
	for (ssize_t length; (length = read(in, bytes, sizeof(bytes))) > 0;)
		if (write(fd, bytes, (size_t)length) != length)
			return broken("write");
	return run_child(start_descriptor, &fd);
}

/* PROGRAM: by a descriptor of it, through /proc/self/fd. */
enum answer try_fd_execute(char **arguments)
{
	char path[64];
	int fd = open(arguments[0], O_PATH);
	if (fd < 0)
		return broken(arguments[0]);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return try_execute((char *[]){ path, NULL });
}

/* PROGRAM: mapped as code, as a loader of one's own would. */
enum answer try_map_execute(char **arguments)
{
	int fd = open(arguments[0], O_RDONLY);
	if (fd < 0)
		return broken(arguments[0]);
	return escaped_if(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
}

/* PROGRAM COPY */
enum answer try_copy_map(char **arguments)
{
	return copy(arguments[0], arguments[1]) ? try_map_execute(arguments + 1) : escaped_if(false);
}

/* PATH MIBS MARK: a file that comes to have so many, not faster than it can be seen to; the mark is made then. */
enum answer try_fill(char **arguments)
{
	static char part[1 << 20];
	int fd = open(arguments[0], O_WRONLY | O_CREAT, 0644);
	if (fd < 0)
		return broken(arguments[0]);
	for (int left = atoi(arguments[1]); left; left--) {
		if (write(fd, part, sizeof(part)) != sizeof(part))
			return escaped_if(false);
		usleep(30000);
	}
	return escaped_if_fd(open(arguments[2], O_WRONLY | O_CREAT, 0644));
}

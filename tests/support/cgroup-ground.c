/* See cgroup-ground.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/remove.h"
#include "driver/linux/cgroup.h"
#include "driver/linux/launch.h"
#include "cgroup-ground.h"

#include <cmocka.h> /* last: it has a macro named fail */

char root[64], others[64];
const char *lacking;
const struct cgroup_bounds bounds = { .memory_bytes = 256 << 20, .cpu_percent = 50, .processes = 11, .at_birth = 1 };

const char *ground_path(int fd)
{
	static _Thread_local char path[4096];
	char link[64];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	return path;
}

bool ground_is_v2(const char *path)
{
	char v1[128];
	snprintf(v1, sizeof(v1), "%s/v1/", root);
	return !strncmp(path, root, strlen(root)) && (strncmp(path, v1, strlen(v1)) || strstr(path, "/unified"));
}

int fstatfs(int fd, struct statfs *info)
{
	const char *path = ground_path(fd);
	memset(info, 0, sizeof(*info));
	if (strncmp(path, root, strlen(root)) || strstr(path, "/plain") || !strcmp(path + strlen(root), "/v1"))
		info->f_type = TMPFS_MAGIC;
	else
		info->f_type = ground_is_v2(path) ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC;
	return 0;
}

void ground_put(const char *dir, const char *name, const char *text)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

const char *ground_get(const char *dir, const char *name)
{
	static _Thread_local char texts[8][4096];
	static _Thread_local unsigned next;
	char path[4096], *text = texts[next++ % ARRAY_SIZE(texts)];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *file = fopen(path, "re");
	size_t length = file ? fread(text, 1, sizeof(texts[0]) - 1, file) : 0;
	text[length] = '\0';
	if (file)
		fclose(file);
	return file ? text : "(missing)";
}

ssize_t write(int fd, const void *bytes, size_t length)
{
	const char *path = ground_path(fd);
	char text[256];
	if (!strncmp(path, root, strlen(root)) && *root) {
		snprintf(text, sizeof(text), "%.*s", (int)length, (const char *)bytes);
		if (strstr(path, "/cgroup.subtree_control")) {
			char directory[4096];
			snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(path, '/') - path), path);
			/* A single controller, and only one that was let down to here. */
			if (*text != '+' || strchr(text, ' ') ||
			    !strstr(ground_get(directory, "cgroup.controllers"), text + 1)) {
				errno = ENOENT;
				return -1;
			}
			snprintf(text, sizeof(text), "%s%.*s ", ground_get(directory, "cgroup.subtree_control"),
			         (int)length - 1, (const char *)bytes + 1);
		}
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(syscall(SYS_write, fd, text, strlen(text)), (long)strlen(text));
		return (ssize_t)length;
	}
	return syscall(SYS_write, fd, bytes, length);
}

/* What a new group has in it. */
static const struct {
	const char *controller, *name, *text;
} files[] = {
	{ "", "cgroup.procs", "" },
	{ "", "cgroup.subtree_control", "" },
	{ "", "cgroup.type", "domain\n" },
	{ "", "cgroup.kill", "" },
	{ "", "cgroup.freeze", "0\n" },
	{ "", "cpu.stat", "usage_usec 1234567\nuser_usec 1\n" },
	{ "memory", "memory.max", "max\n" },
	{ "memory", "memory.high", "max\n" },
	{ "memory", "memory.swap.max", "max\n" },
	{ "memory", "memory.peak", "1048576\n" },
	{ "memory", "memory.events", "low 0\nhigh 9\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n" },
	{ "pids", "pids.max", "max\n" },
	{ "pids", "pids.peak", "5\n" },
	{ "pids", "pids.events", "max 3\n" },
	{ "cpu", "cpu.max", "max 100000\n" },
	{ "cpu", "cpu.weight", "100\n" },
}, files_v1[] = {
	{ "", "cgroup.procs", "" },
	{ "", "tasks", "" },
	{ "memory", "memory.limit_in_bytes", "9223372036854771712\n" },
	{ "memory", "memory.memsw.limit_in_bytes", "9223372036854771712\n" },
	{ "memory", "memory.kmem.tcp.limit_in_bytes", "9223372036854771712\n" },
	{ "memory", "memory.max_usage_in_bytes", "2097152\n" },
	{ "memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n" },
	{ "pids", "pids.max", "max\n" },
	{ "pids", "pids.events", "max 6\n" },
	{ "cpu", "cpu.cfs_quota_us", "-1\n" },
	{ "cpu", "cpu.shares", "1024\n" },
	{ "cpu", "cpuacct.usage", "5000000\n" },
};

static void fill(const char *path, const char *controllers)
{
	bool v2 = ground_is_v2(path);
	size_t count = v2 ? ARRAY_SIZE(files) : ARRAY_SIZE(files_v1);
	for (size_t i = 0; i < count; i++) {
		const char *controller = v2 ? files[i].controller : files_v1[i].controller;
		const char *name = v2 ? files[i].name : files_v1[i].name;
		if (strstr(v2 ? controllers : path, controller) && !(lacking && strstr(name, lacking)))
			ground_put(path, name, v2 ? files[i].text : files_v1[i].text);
	}
	if (v2)
		ground_put(path, "cgroup.controllers", controllers);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
	char parent[4096], path[4096];
	if (syscall(SYS_mkdirat, dir, name, mode) < 0)
		return -1;
	snprintf(parent, sizeof(parent), "%s", ground_path(dir));
	if (!strncmp(name, "../", 3)) {
		*strrchr(parent, '/') = '\0';
		name += 3;
	}
	snprintf(path, sizeof(path), "%s/%s", parent, name);
	if (strstr(name, "cordon-") == name)
		fill(path, ground_get(parent, "cgroup.subtree_control"));
	return 0;
}

/* A directory that holds control files is removed, one with a process in it is not. */
int unlinkat(int dir, const char *name, int flags)
{
	const char *leaf = strncmp(name, "../", 3) ? name : name + 3;
	if ((flags & AT_REMOVEDIR) && !strncmp(leaf, "cordon-", 7)) {
		char path[4096];
		snprintf(path, sizeof(path), "%s%s%s", ground_path(dir), leaf == name ? "/" : "",
		         leaf == name ? name : "");
		if (*ground_get(path, "cgroup.procs") && strcmp(ground_get(path, "cgroup.procs"), "(missing)")) {
			errno = EBUSY;
			return -1;
		}
		DIR *listing = opendir(path);
		for (struct dirent *entry; listing && (entry = readdir(listing));)
			if (entry->d_name[0] != '.')
				syscall(SYS_unlinkat, dirfd(listing), entry->d_name, 0);
		if (listing)
			closedir(listing);
	}
	return (int)syscall(SYS_unlinkat, dir, name, flags);
}

int fstat(int fd, struct stat *info)
{
	int result = (int)syscall(SYS_newfstatat, fd, "", info, AT_EMPTY_PATH);
	if (result == 0 && *others && strstr(ground_path(fd), others))
		info->st_uid++;
	return result;
}

/* Also for root, who may everything. */
int faccessat(int dir, const char *name, int mode, int flags)
{
	(void)flags;
	bool whole = dir == AT_FDCWD; /* a directory, by its path */
	if (mode == W_OK && !strcmp(ground_get(whole ? name : ground_path(dir), "refused"), whole ? "." : name)) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_faccessat, dir, name, mode);
}

const char *ground_at(const char *path)
{
	static _Thread_local char full[8][4096];
	static _Thread_local unsigned next;
	char *text = full[next++ % ARRAY_SIZE(full)];
	snprintf(text, sizeof(full[0]), "%s%s", root, path);
	return text;
}

void ground_group(const char *path, const char *controllers, const char *subtree)
{
	assert_int_equal(syscall(SYS_mkdirat, AT_FDCWD, ground_at(path), 0755), 0);
	fill(ground_at(path), controllers);
	if (ground_is_v2(ground_at(path)))
		ground_put(ground_at(path), "cgroup.subtree_control", subtree);
}

int ground_setup(void **state)
{
	(void)state;
	strcpy(root, "/tmp/cordon-cgroup-XXXXXX");
	assert_non_null(mkdtemp(root));
	fill(root, "memory pids cpu io ");
	ground_put(root, "cgroup.subtree_control", "memory pids ");
	return 0;
}

int ground_teardown(void **state)
{
	(void)state;
	char removed[64];
	strcpy(removed, root);
	*root = '\0';
	remove_tree(AT_FDCWD, removed);
	return 0;
}

void ground_user_tree(void)
{
	ground_group("/user.slice", "memory pids cpu ", "memory pids cpu ");
	ground_put(ground_at("/user.slice"), "refused", ".");
	ground_group(USER, "memory pids cpu ", "memory pids ");
	ground_group(USER "/app.slice", "memory pids ", "memory pids ");
	ground_group(USER "/app.slice/term.scope", "memory pids ", "");
}

struct cgroup_search ground_search(const char *own)
{
	static char self[128];
	char text[512];
	snprintf(text, sizeof(text), "3:other:/x\n0::%s\n", own);
	ground_put(root, "self", text);
	snprintf(self, sizeof(self), "%s/self", root);
	return (struct cgroup_search){ .root = root, .self = self };
}

struct cgroup_place ground_look(const char *own)
{
	struct cgroup_place place;
	struct cgroup_search where = ground_search(own);
	cgroup_look(&where, &place);
	return place;
}

int ground_leaves(const char *path)
{
	int count = 0;
	DIR *listing = opendir(path);
	for (struct dirent *entry; listing && (entry = readdir(listing));)
		count += !strncmp(entry->d_name, "cordon-", 7);
	if (listing)
		closedir(listing);
	return count;
}

struct cgroup ground_make(const char *own)
{
	struct cgroup_search where = ground_search(own);
	struct cgroup made;
	cgroup_make(&where, &bounds, &made);
	return made;
}

pid_t ground_ended(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

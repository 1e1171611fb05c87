/* Control groups on a tree of plain files. What the kernel does when such a tree is changed is done here instead: the
 * functions of the C library that would reach it are this program's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "base/remove.h"
#include "run/cgroup-ahead.h"
#include "run/launch.h"

#include <cmocka.h> /* last: it has a macro named fail */

#define BIT(wall) (UINT32_C(1) << CORDON_WALL_##wall)
#define ALL (BIT(LIMIT_MEMORY) | BIT(LIMIT_PROCESSES) | BIT(LIMIT_CPU))
#define USER "/user.slice/user@7.service"

static char root[64];
static const struct cgroup_bounds bounds = { .memory_bytes = 256 << 20, .cpu_percent = 50, .processes = 11, .at_birth = 1 };

/* ---- the kernel's part ------------------------------------------------------------------------------------------ */

static const char *path_of(int fd)
{
	static _Thread_local char path[4096];
	char link[64];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	return path;
}

static bool is_v2(const char *path)
{
	char v1[128];
	snprintf(v1, sizeof(v1), "%s/v1/", root);
	return !strncmp(path, root, strlen(root)) && (strncmp(path, v1, strlen(v1)) || strstr(path, "/unified"));
}

int fstatfs(int fd, struct statfs *info)
{
	const char *path = path_of(fd);
	memset(info, 0, sizeof(*info));
	if (strncmp(path, root, strlen(root)) || strstr(path, "/plain") || !strcmp(path + strlen(root), "/v1"))
		info->f_type = TMPFS_MAGIC;
	else
		info->f_type = is_v2(path) ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC;
	return 0;
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static const char *get(const char *dir, const char *name)
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
	const char *path = path_of(fd);
	char text[256];
	if (!strncmp(path, root, strlen(root)) && *root) {
		snprintf(text, sizeof(text), "%.*s", (int)length, (const char *)bytes);
		if (strstr(path, "/cgroup.subtree_control")) {
			char directory[4096];
			snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(path, '/') - path), path);
			/* A single controller, and only one that was let down to here. */
			if (*text != '+' || strchr(text, ' ') || !strstr(get(directory, "cgroup.controllers"), text + 1)) {
				errno = ENOENT;
				return -1;
			}
			snprintf(text, sizeof(text), "%s%.*s ", get(directory, "cgroup.subtree_control"), (int)length - 1,
			         (const char *)bytes + 1);
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
	{ "cpu", "cpuacct.usage", "5000000\n" },
};

static void fill(const char *path, const char *controllers)
{
	bool v2 = is_v2(path);
	size_t count = v2 ? ARRAY_SIZE(files) : ARRAY_SIZE(files_v1);
	for (size_t i = 0; i < count; i++) {
		const char *controller = v2 ? files[i].controller : files_v1[i].controller;
		if (strstr(v2 ? controllers : path, controller))
			put(path, v2 ? files[i].name : files_v1[i].name, v2 ? files[i].text : files_v1[i].text);
	}
	if (v2)
		put(path, "cgroup.controllers", controllers);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
	char parent[4096], path[4096];
	if (syscall(SYS_mkdirat, dir, name, mode) < 0)
		return -1;
	snprintf(parent, sizeof(parent), "%s", path_of(dir));
	snprintf(path, sizeof(path), "%s/%s", parent, name);
	if (strstr(name, "cordon-") == name)
		fill(path, get(parent, "cgroup.subtree_control"));
	return 0;
}

/* A directory that holds control files is removed, one with a process in it is not. */
int unlinkat(int dir, const char *name, int flags)
{
	const char *leaf = strncmp(name, "../", 3) ? name : name + 3;
	if ((flags & AT_REMOVEDIR) && !strncmp(leaf, "cordon-", 7)) {
		char path[4096];
		snprintf(path, sizeof(path), "%s%s%s", path_of(dir), leaf == name ? "/" : "", leaf == name ? name : "");
		if (*get(path, "cgroup.procs") && strcmp(get(path, "cgroup.procs"), "(missing)")) {
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

/* Whose groups are another's. */
static char others[64];

int fstat(int fd, struct stat *info)
{
	int result = (int)syscall(SYS_newfstatat, fd, "", info, AT_EMPTY_PATH);
	if (result == 0 && *others && strstr(path_of(fd), others))
		info->st_uid++;
	return result;
}

/* Also for root, who may everything. */
int faccessat(int dir, const char *name, int mode, int flags)
{
	(void)flags;
	const char *path = path_of(dir);
	if (mode == W_OK && !strcmp(get(path, "refused"), name)) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_faccessat, dir, name, mode);
}

/* ---- a tree ----------------------------------------------------------------------------------------------------- */

static const char *at(const char *path)
{
	static _Thread_local char full[8][4096];
	static _Thread_local unsigned next;
	char *text = full[next++ % ARRAY_SIZE(full)];
	snprintf(text, sizeof(full[0]), "%s%s", root, path);
	return text;
}

static void group(const char *path, const char *controllers, const char *subtree)
{
	assert_int_equal(syscall(SYS_mkdirat, AT_FDCWD, at(path), 0755), 0);
	fill(at(path), controllers);
	if (is_v2(at(path)))
		put(at(path), "cgroup.subtree_control", subtree);
}

static int setup(void **state)
{
	(void)state;
	strcpy(root, "/tmp/cordon-cgroup-XXXXXX");
	assert_non_null(mkdtemp(root));
	fill(root, "memory pids cpu io ");
	put(root, "cgroup.subtree_control", "memory pids ");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	char removed[64];
	strcpy(removed, root);
	*root = '\0';
	remove_tree(AT_FDCWD, removed);
	return 0;
}

/* As systemd makes it: what a user has is below its manager, and not all of it is let down further. */
static void make_user_tree(void)
{
	group("/user.slice", "memory pids cpu ", "memory pids cpu ");
	put(at("/user.slice"), "refused", ".");
	group(USER, "memory pids cpu ", "memory pids ");
	group(USER "/app.slice", "memory pids ", "memory pids ");
	group(USER "/app.slice/term.scope", "memory pids ", "");
}

static struct cgroup_search search(const char *own)
{
	static char self[128];
	char text[512];
	snprintf(text, sizeof(text), "3:other:/x\n0::%s\n", own);
	put(root, "self", text);
	snprintf(self, sizeof(self), "%s/self", root);
	return (struct cgroup_search){ .root = root, .self = self };
}

static struct cgroup_place look(const char *own)
{
	struct cgroup_place place;
	struct cgroup_search where = search(own);
	cgroup_look(&where, &place);
	return place;
}

static int leaves_in(const char *path)
{
	int count = 0;
	DIR *listing = opendir(path);
	for (struct dirent *entry; listing && (entry = readdir(listing));)
		count += !strncmp(entry->d_name, "cordon-", 7);
	if (listing)
		closedir(listing);
	return count;
}

/* ---- where ------------------------------------------------------------------------------------------------------ */

static void test_nearest_that_can_all(void **state)
{
	(void)state;
	make_user_tree();
	struct cgroup_place place = look(USER "/app.slice/term.scope");
	assert_ptr_equal(place.ops, &cgroup_v2);
	assert_string_equal(place.path, at(USER));
	assert_int_equal(place.offers, ALL);
	assert_string_equal(get(at(USER), "cgroup.subtree_control"), "memory pids cpu ");
	assert_string_equal(get(at(USER "/app.slice"), "cgroup.subtree_control"), "memory pids ");
}

static void test_less_where_there_is_no_more(void **state)
{
	(void)state;
	make_user_tree();
	put(at(USER), "refused", ".");
	struct cgroup_place place = look(USER "/app.slice/term.scope");
	assert_string_equal(place.path, at(USER "/app.slice"));
	assert_int_equal(place.offers, BIT(LIMIT_MEMORY) | BIT(LIMIT_PROCESSES));
}

static void test_never_the_callers_own(void **state)
{
	(void)state;
	make_user_tree();
	put(at(USER "/app.slice"), "refused", "cgroup.procs");
	struct cgroup_place place = look(USER "/app.slice/term.scope");
	assert_null(place.ops);
	assert_non_null(strstr(place.why, "term.scope"));
}

static void test_none_split_by_threads(void **state)
{
	(void)state;
	make_user_tree();
	put(at(USER "/app.slice"), "cgroup.type", "domain threaded\n");
	assert_null(look(USER "/app.slice/term.scope").ops);
}

static void test_root_of_the_tree(void **state)
{
	(void)state;
	struct cgroup_place place = look("/");
	assert_string_equal(place.path, root);
	assert_int_equal(place.offers, ALL);
}

static void test_odd_views(void **state)
{
	(void)state;
	static const char *const odd[] = { "/../../x", "", "x", "/gone/too" };
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		assert_null(look(odd[i]).ops);
}

static void test_no_controllers(void **state)
{
	(void)state;
	put(root, "cgroup.controllers", "");
	put(root, "cgroup.subtree_control", "");
	struct cgroup_place place = look("/");
	assert_null(place.ops);
	assert_non_null(strstr(place.why, "no controller"));
}

static void test_named(void **state)
{
	(void)state;
	group("/mine", "memory ", "");
	struct cgroup_place place;
	struct cgroup_search where = { .directory = at("/mine"), .root = root, .self = "/nowhere" };
	cgroup_look(&where, &place);
	assert_ptr_equal(place.ops, &cgroup_v2);
	assert_int_equal(place.offers, BIT(LIMIT_MEMORY));
	assert_string_equal(place.path, at("/mine"));

	static const char *const wrong[] = { "/plain", "/missing" };
	mkdir(at("/plain"), 0755);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		where.directory = at(wrong[i]);
		cgroup_look(&where, &place);
		assert_null(place.ops);
		assert_non_null(strstr(place.why, where.directory));
	}
	put(at("/mine"), "refused", "cgroup.procs");
	where.directory = at("/mine");
	cgroup_look(&where, &place);
	assert_null(place.ops);
	where.directory = CGROUP_NONE;
	cgroup_look(&where, &place);
	assert_null(place.ops);
	assert_non_null(strstr(place.why, "configuration"));
}

/* ---- a leaf ----------------------------------------------------------------------------------------------------- */

static struct cgroup make(const char *own)
{
	struct cgroup_search where = search(own);
	struct cgroup made;
	cgroup_make(&where, &bounds, &made);
	return made;
}

static void test_limits(void **state)
{
	(void)state;
	struct cgroup made = make("/"), other = make("/");
	char leaf[512];
	assert_ptr_equal(made.ops, &cgroup_v2);
	assert_int_equal(made.held, ALL);
	assert_string_not_equal(made.name, other.name);
	snprintf(leaf, sizeof(leaf), "%s/%s", root, made.name);
	assert_string_equal(get(leaf, "memory.max"), "268435456");
	assert_string_equal(get(leaf, "pids.max"), "12");
	assert_string_equal(get(leaf, "cpu.max"), "50000 100000");
	/* What does no harm for a moment is set when the command is running. */
	cgroup_entered(&made);
	assert_string_equal(get(leaf, "pids.max"), "11");
	assert_string_equal(get(leaf, "memory.high"), "266338304");
	assert_string_equal(get(leaf, "memory.swap.max"), "0");
	cgroup_limit(&made, &(struct cgroup_bounds){ .processes = 12 });
	assert_string_equal(get(leaf, "pids.max"), "12");
	assert_true(cgroup_freeze(&made, true));
	assert_string_equal(get(leaf, "cgroup.freeze"), "1");
	assert_true(cgroup_freeze(&made, false));
	assert_true(cgroup_kill(&made));
	assert_string_equal(get(leaf, "cgroup.kill"), "1");
	cgroup_remove(&made);
	assert_null(made.ops);
	assert_int_equal(leaves_in(root), 1);
	cgroup_remove(&other);
	cgroup_remove(&other);
	assert_int_equal(leaves_in(root), 0);
}

/* What was not let down has no file, and is not said to be held. */
static void test_limits_that_are_not_there(void **state)
{
	(void)state;
	group("/slice", "memory ", "memory ");
	group("/slice/own", "memory ", "");
	put(root, "refused", ".");
	struct cgroup made = make("/slice/own");
	assert_int_equal(made.held, BIT(LIMIT_MEMORY));
	cgroup_remove(&made);
}

static void test_no_leaf(void **state)
{
	(void)state;
	struct cgroup_usage usage;
	put(root, "refused", ".");
	struct cgroup made = make("/");
	struct launch launch = { 0 };
	assert_null(made.ops);
	assert_true(*made.why);
	cgroup_enter(&made, &launch);
	assert_false(launch.in_group);
	cgroup_usage(&made, &usage);
	assert_int_equal(usage.oom_kills + usage.memory_peak_bytes, 0);
	assert_true(cgroup_kill(&made));
	cgroup_entered(&made);
	cgroup_remove(&made);
}

static void test_enter(void **state)
{
	(void)state;
	struct cgroup made = make("/");
	struct launch launch = { 0 };
	cgroup_enter(&made, &launch);
	assert_true(launch.in_group);
	assert_int_equal(launch.group_fd, made.parts[0]);
	assert_non_null(strstr(path_of(launch.group_joins[0]), "/cgroup.procs"));
	assert_int_equal(launch.group_joins[1], -1);
	cgroup_entered(&made);
	assert_int_equal(made.joins[0], -1);
	cgroup_remove(&made);
}

static void test_usage(void **state)
{
	(void)state;
	struct cgroup made = make("/");
	struct cgroup_usage usage;
	cgroup_entered(&made);
	cgroup_usage(&made, &usage);
	assert_int_equal(usage.memory_peak_bytes, 1048576);
	assert_int_equal(usage.process_peak, 5);
	assert_int_equal(usage.cpu_us, 1234567);
	assert_int_equal(usage.oom_kills, 1);
	assert_int_equal(usage.process_refusals, 0); /* 5 of 11: those were another's */
	char leaf[512];
	snprintf(leaf, sizeof(leaf), "%s/%s", root, made.name);
	put(leaf, "pids.peak", "6\n");
	cgroup_usage(&made, &usage);
	assert_int_equal(usage.process_refusals, 3);
	/* Older kernels lack some, and nothing is taken at its word. */
	put(leaf, "memory.events", "oom_killer 9\noom_kill\n\noom_kill x\n");
	put(leaf, "pids.events", "");
	cgroup_usage(&made, &usage);
	assert_int_equal(usage.oom_kills + usage.process_refusals, 0);
	cgroup_remove(&made);
	made = make("/");
	syscall(SYS_unlinkat, made.parts[0], "memory.peak", 0);
	syscall(SYS_unlinkat, made.parts[0], "pids.peak", 0);
	cgroup_entered(&made);
	cgroup_usage(&made, &usage);
	assert_int_equal(usage.memory_peak_bytes + usage.process_peak, 0);
	assert_int_equal(usage.process_refusals, 3);
	cgroup_remove(&made);
}

static void test_kill_without_the_file(void **state)
{
	(void)state;
	struct cgroup made = make("/");
	char leaf[512], pid_text[32];
	int status;
	snprintf(leaf, sizeof(leaf), "%s/%s", root, made.name);
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	syscall(SYS_unlinkat, made.parts[0], "cgroup.kill", 0);
	snprintf(pid_text, sizeof(pid_text), "%d\n", (int)pid);
	put(leaf, "cgroup.procs", pid_text);
	assert_false(cgroup_kill(&made)); /* nothing takes it off this list */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_string_equal(get(leaf, "pids.max"), "0");
	put(leaf, "cgroup.procs", "");
	assert_true(cgroup_kill(&made));
	cgroup_remove(&made);
}

static pid_t ended(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void test_sweep(void **state)
{
	(void)state;
	struct {
		char name[64];
		bool stays;
	} left[9] = { { .stays = false },      { .stays = true },      { "cordon-", true },
		      { "cordon-x-y", true }, { "cordon-1-A", true }, { .stays = true }, { .stays = true },
		      { .stays = false }, { "cordon-1-00000000ZZZZZZZZZZZZZZZZZZ", false } };
	char id[ID_SIZE];
	id_make(id);
	/* A pid that is somebody else's by now: too long ago for it not to be locked. */
	snprintf(left[6].name, sizeof(left[6].name), "cordon-%d-%s", (int)getpid(), id);
	id[0] = id[1] = id[2] = '0';
	snprintf(left[7].name, sizeof(left[7].name), "cordon-%d-%s", (int)getpid(), id);
	snprintf(left[0].name, sizeof(left[0].name), "cordon-%d-A", (int)ended());
	snprintf(left[1].name, sizeof(left[1].name), "cordon-%d-A", (int)getpid());
	snprintf(left[5].name, sizeof(left[5].name), "cordon-%d-B", (int)ended());
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), locked = -1;
	for (size_t i = 0; i < ARRAY_SIZE(left); i++)
		assert_int_equal(mkdirat(fd, left[i].name, 0755), 0);
	locked = openat(fd, left[5].name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(locked, LOCK_EX), 0);
	struct cgroup made = make("/");
	cgroup_entered(&made);
	for (size_t i = 0; i < ARRAY_SIZE(left); i++)
		assert_int_equal(syscall(SYS_faccessat, fd, left[i].name, F_OK) == 0, left[i].stays);
	cgroup_remove(&made);
	close(locked);
	close(fd);
}

/* Where others may write, too, a group may be put in the place of the one that was made. */
static void test_anothers(void **state)
{
	(void)state;
	struct cgroup made;
	struct cgroup_search where = search("/");
	char left[64];
	snprintf(left, sizeof(left), "cordon-%d-A", (int)ended());
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(fd, left, 0755), 0);
	strcpy(others, left);
	cgroup_make(&where, &bounds, &made);
	assert_non_null(made.ops);
	cgroup_entered(&made);
	assert_int_equal(leaves_in(root), 2);
	cgroup_remove(&made);
	strcpy(others, "/cordon-");
	cgroup_make(&where, &bounds, &made);
	*others = '\0';
	assert_null(made.ops);
	assert_non_null(strstr(made.why, strerror(EPERM)));
	close(fd);
}

/* Made by whoever comes first to it; what is not taken is removed. */
static void test_ahead(void **state)
{
	(void)state;
	struct cgroup_search where = search("/"), unwanted = { .directory = CGROUP_NONE };
	struct cgroup_bounds more = bounds;
	struct cgroup made;
	more.memory_bytes *= 2;
	for (int round = 0; round < 50; round++) {
		struct cgroup_ahead *ahead = cgroup_ahead_begin(&where, &bounds);
		assert_non_null(ahead);
		if (round % 2)
			cgroup_ahead_take(ahead, &where, round % 4 == 1 ? &bounds : &more, &made);
		cgroup_ahead_end(ahead);
		assert_int_equal(leaves_in(root), round % 2);
		if (round % 2) {
			assert_int_equal(made.held, ALL);
			assert_int_equal(made.bounds.memory_bytes, round % 4 == 1 ? bounds.memory_bytes : more.memory_bytes);
			cgroup_remove(&made);
		}
	}
	cgroup_ahead_take(NULL, &where, &bounds, &made);
	assert_non_null(made.ops);
	cgroup_remove(&made);
	cgroup_ahead_end(NULL);

	/* Without groups the place stays known; where there is none, no thread is needed to find that out again. */
	assert_true(cgroup_is_missing(&unwanted));
	assert_false(cgroup_is_missing(&where));
	cgroup_make(&unwanted, &bounds, &made);
	assert_null(made.ops);
	put(root, "refused", ".");
	cgroup_forget();
	made = make("/");
	assert_null(made.ops);
	assert_true(cgroup_is_missing(&where));
}

/* The subtree is removed and made again while a program runs. */
static void test_place_is_found_again(void **state)
{
	(void)state;
	make_user_tree();
	struct cgroup made = make(USER "/app.slice/term.scope");
	assert_non_null(made.ops);
	cgroup_remove(&made);
	remove_tree(AT_FDCWD, at("/user.slice"));
	struct cgroup missing = make(USER "/app.slice/term.scope");
	assert_null(missing.ops);
	/* What was not found is not looked for again, unless it is another search. */
	make_user_tree();
	struct cgroup_search where = search(USER "/app.slice/term.scope");
	put(root, "self-again", get(root, "self"));
	char self[128];
	snprintf(self, sizeof(self), "%s/self-again", root);
	where.self = self;
	cgroup_make(&where, &bounds, &made);
	assert_non_null(made.ops);
	remove_tree(AT_FDCWD, at("/user.slice"));
	make_user_tree();
	struct cgroup moved;
	cgroup_make(&where, &bounds, &moved);
	assert_non_null(moved.ops);
	cgroup_remove(&moved);
	cgroup_remove(&made);
}

/* ---- version 1 -------------------------------------------------------------------------------------------------- */

static struct cgroup_search make_v1(const char *lines)
{
	static char v1[128], self[128];
	snprintf(v1, sizeof(v1), "%s/v1", root);
	snprintf(self, sizeof(self), "%s/self", root);
	mkdir(v1, 0755);
	group("/v1/memory", "", "");
	group("/v1/memory/a", "", "");
	group("/v1/pids", "", "");
	group("/v1/cpu", "", "");
	group("/v1/unified", "", "");
	put(root, "self", lines);
	return (struct cgroup_search){ .root = v1, .self = self };
}

static void test_v1(void **state)
{
	(void)state;
	struct cgroup_search where = make_v1("9:pids:/\n5:cpu,cpuacct:/not/seen\n4:memory:/a\n1:name=systemd:/\n0::/\n");
	struct cgroup made;
	cgroup_make(&where, &bounds, &made);
	assert_ptr_equal(made.ops, &cgroup_v1);
	assert_int_equal(made.held, ALL);
	char memory[512], pids[512], cpu[512];
	snprintf(memory, sizeof(memory), "%s/memory/a/%s", where.root, made.name);
	snprintf(pids, sizeof(pids), "%s/pids/%s", where.root, made.name);
	snprintf(cpu, sizeof(cpu), "%s/cpu/%s", where.root, made.name);
	assert_string_equal(get(memory, "memory.limit_in_bytes"), "268435456");
	assert_string_equal(get(memory, "memory.kmem.tcp.limit_in_bytes"), "33554432");
	assert_string_equal(get(pids, "pids.max"), "11");
	assert_string_equal(get(cpu, "cpu.cfs_quota_us"), "50000");
	struct launch launch = { 0 };
	cgroup_enter(&made, &launch);
	assert_true(launch.in_group && launch.group_fd == -1);
	for (int i = 0; i < 3; i++)
		assert_non_null(strstr(path_of(launch.group_joins[i]), "/tasks"));
	cgroup_entered(&made);
	assert_int_equal(made.joins[0], -1);
	assert_string_equal(get(memory, "memory.memsw.limit_in_bytes"), "268435456");
	struct cgroup_usage usage;
	cgroup_usage(&made, &usage);
	assert_int_equal(usage.memory_peak_bytes, 2097152);
	assert_int_equal(usage.oom_kills, 4);
	assert_int_equal(usage.process_refusals, 6);
	assert_int_equal(usage.process_peak, 0);
	assert_int_equal(usage.cpu_us, 5000);
	assert_true(cgroup_kill(&made));
	assert_string_equal(get(pids, "pids.max"), "0");
	cgroup_remove(&made);
	assert_int_equal(leaves_in(at("/v1/memory/a")) + leaves_in(at("/v1/pids")) + leaves_in(at("/v1/cpu")), 0);
}

/* What is left of a leaf may be in some of the trees only, and its owner may hold it by another part than we see. */
static void test_v1_sweep(void **state)
{
	(void)state;
	struct cgroup_search where = make_v1("9:pids:/\n5:cpu,cpuacct:/\n4:memory:/a\n0::/\n");
	char dead[64], held[64];
	snprintf(dead, sizeof(dead), "cordon-%d-A", (int)ended());
	snprintf(held, sizeof(held), "cordon-%d-B", (int)ended());
	int pids = open(at("/v1/pids"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int cpu = open(at("/v1/cpu"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(cpu, dead, 0755) + mkdirat(pids, held, 0755) + mkdirat(cpu, held, 0755), 0);
	int locked = openat(cpu, held, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(locked, LOCK_EX), 0);
	struct cgroup made;
	cgroup_make(&where, &bounds, &made);
	cgroup_entered(&made);
	assert_int_equal(leaves_in(at("/v1/cpu")), 2);
	assert_int_equal(leaves_in(at("/v1/pids")), 2);
	cgroup_remove(&made);
	assert_int_equal(leaves_in(at("/v1/cpu")), 1);
	close(locked);
	close(pids);
	close(cpu);
}

static void test_v1_in_part(void **state)
{
	(void)state;
	struct cgroup_search where = make_v1("9:pids:/\n4:memory:/\n0::/\n3:xcpu,cpux:/\n");
	put(at("/v1/memory"), "refused", ".");
	struct cgroup_place place;
	cgroup_look(&where, &place);
	assert_ptr_equal(place.ops, &cgroup_v1);
	assert_int_equal(place.offers, BIT(LIMIT_PROCESSES));
	put(at("/v1/pids"), "refused", ".");
	cgroup_look(&where, &place);
	assert_null(place.ops);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_nearest_that_can_all), TEST(test_less_where_there_is_no_more), TEST(test_never_the_callers_own),
		TEST(test_none_split_by_threads), TEST(test_root_of_the_tree), TEST(test_odd_views), TEST(test_no_controllers),
		TEST(test_named), TEST(test_limits), TEST(test_limits_that_are_not_there), TEST(test_no_leaf), TEST(test_enter),
		TEST(test_usage), TEST(test_kill_without_the_file), TEST(test_sweep), TEST(test_anothers), TEST(test_ahead), TEST(test_place_is_found_again),
		TEST(test_v1), TEST(test_v1_sweep), TEST(test_v1_in_part),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

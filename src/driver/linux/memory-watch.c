/* Watching memory: see memory-watch.h. What is read is the kernel's text about processes that come and go: one that
 * cannot be read is gone, or counts by what else is known of it. */
#include "driver/linux/memory-watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/linux/await.h"
#include "driver/linux/cgroup-file.h"
#include "driver/linux/processes.h"

/* Descriptors of one process, and unlinked files of all processes; those beyond are not looked at. */
#define FILES_MAX 4096
#define LINE_MAX_SIZE 8192
#define ROOTS_MAX 8             /* processes by which the mounts are looked for */
#define SHARE_OF_CPU 20         /* looking takes no more than one part in so many */
#define FIRST_TO_KILL "1000"

struct nameless_file {
	uint64_t device, inode, bytes;
};

/* Files in memory that have no name, each once. */
struct nameless_files {
	struct nameless_file *items;
	size_t count, capacity;
};

struct look {
	uint64_t devices[MEMORY_WATCH_MOUNTS];          /* of the tmpfs mounts, and what they hold */
	size_t device_count;
	uint64_t mounts_used;
	struct processes processes;
	struct nameless_files files;
	uint64_t page_bytes;
};

/* ---- texts ------------------------------------------------------------------------------------------------------ */

uint64_t memory_resident_pages(const char *statm)
{
	uint64_t resident;
	return sscanf(statm, "%*u %" SCNu64, &resident) == 1 ? resident : 0;
}

/* The number after a key at the beginning of a line, in bytes: "Pss_Anon:      120 kB". */
static uint64_t amount_after(const char *text, const char *key)
{
	size_t length = strlen(key);
	for (const char *at = text; (at = strstr(at, key)); at += length)
		if (at == text || at[-1] == '\n')
			return strtoull(at + length, NULL, 10) << 10;
	return 0;
}

struct memory_shares memory_parse_rollup(const char *rollup)
{
	return (struct memory_shares){ amount_after(rollup, "Pss_Anon:") + amount_after(rollup, "SwapPss:"),
	                               amount_after(rollup, "Pss_Shmem:") };
}

static bool read_of(pid_t pid, const char *what, char *text, size_t size)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/%s", (int)pid, what);
	return cgroup_file_read(AT_FDCWD, name, text, size) > 0;
}

/* ---- tmpfs ------------------------------------------------------------------------------------------------------ */

/* Beneath the root of a process inside, which can change none of these mounts. */
static void look_at_mounts_of(struct look *look, const struct memory_watch *watch, pid_t pid)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | O_DIRECTORY,
	                        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	char name[64];
	struct stat info;
	struct statfs use;
	snprintf(name, sizeof(name), "/proc/%d/root", (int)pid);
	auto_close int root = open(name, O_PATH | O_CLOEXEC | O_DIRECTORY);
	for (size_t i = 0; root >= 0 && i < MEMORY_WATCH_MOUNTS && watch->targets[i]; i++) {
		auto_close int fd = (int)syscall(SYS_openat2, root, watch->targets[i], &how, sizeof(how));
		if (fd < 0 || fstatfs(fd, &use) < 0 || use.f_type != TMPFS_MAGIC || fstat(fd, &info) < 0)
			continue;
		look->devices[look->device_count++] = info.st_dev;
		look->mounts_used += (uint64_t)(use.f_blocks - use.f_bfree) * (uint64_t)use.f_bsize;
	}
}

/* Of an external driver, those that were started first are not inside. */
static void look_at_mounts(struct look *look, const struct memory_watch *watch)
{
	size_t count = look->processes.count;
	for (size_t i = 0; i < count && i < ROOTS_MAX && !look->device_count && watch->targets[0]; i++)
		look_at_mounts_of(look, watch, look->processes.pids[count - 1 - i]);
}

static bool is_in_mounts(const struct look *look, uint64_t device)
{
	for (size_t i = 0; i < look->device_count; i++)
		if (look->devices[i] == device)
			return true;
	return false;
}

/* ---- files without a name --------------------------------------------------------------------------------------- */

static const struct nameless_file *find_file(const struct nameless_files *files, uint64_t device, uint64_t inode)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->items[i].inode == inode && files->items[i].device == device)
			return &files->items[i];
	return NULL;
}

static void add_file(struct nameless_files *files, const struct stat *info)
{
	if (files->count == FILES_MAX || find_file(files, info->st_dev, info->st_ino))
		return;
	if (files->count == files->capacity) {
		size_t capacity = files->capacity ? files->capacity * 2 : 16;
		struct nameless_file *items = reallocarray(files->items, capacity, sizeof(*items));
		if (!items)
			return;
		files->items = items;
		files->capacity = capacity;
	}
	files->items[files->count++] =
		(struct nameless_file){ info->st_dev, info->st_ino, (uint64_t)info->st_blocks * 512 };
}

/* What a link of /proc/PID/fd reads as tells a memfd without opening anything. */
static void look_at_files(struct look *look, pid_t pid)
{
	char name[64], link[16];
	struct stat info;
	size_t seen = 0;
	snprintf(name, sizeof(name), "/proc/%d/fd", (int)pid);
	DIR *directory = opendir(name);
	for (struct dirent *entry; directory && seen < FILES_MAX && (entry = readdir(directory)); seen++) {
		ssize_t length = readlinkat(dirfd(directory), entry->d_name, link, sizeof(link));
		if (length < (ssize_t)strlen("/memfd:") || memcmp(link, "/memfd:", strlen("/memfd:")))
			continue;
		if (fstatat(dirfd(directory), entry->d_name, &info, 0) == 0 && S_ISREG(info.st_mode))
			add_file(&look->files, &info);
	}
	if (directory)
		closedir(directory);
}

static uint64_t files_used(const struct nameless_files *files)
{
	uint64_t used = 0;
	for (size_t i = 0; i < files->count; i++)
		used += files->items[i].bytes;
	return used;
}

/* ---- counting --------------------------------------------------------------------------------------------------- */

/* Is this the head of a mapping of memory that processes share and that counts nowhere else? */
static bool is_own_mapping(const struct look *look, const char *line)
{
	unsigned major, minor;
	uint64_t inode;
	int path = 0;
	if (sscanf(line, "%*x-%*x %*4s %*x %x:%x %" SCNu64 " %n", &major, &minor, &inode, &path) < 3 || !path || !inode)
		return false;
	uint64_t device = makedev(major, minor);
	if (is_in_mounts(look, device) || find_file(&look->files, device, inode))
		return false;
	line += path;
	return !strncmp(line, "/memfd:", 7) || !strncmp(line, "/dev/zero (deleted)", 19) || !strncmp(line, "/SYSV", 5);
}

/* The share of one process in mappings that are neither of a tmpfs mount nor of a memfd that it has open. */
static uint64_t own_mappings(const struct look *look, pid_t pid)
{
	char name[64], line[LINE_MAX_SIZE];
	uint64_t used = 0;
	bool counts = false;
	snprintf(name, sizeof(name), "/proc/%d/smaps", (int)pid);
	FILE *file = fopen(name, "re");
	while (file && fgets(line, sizeof(line), file)) {
		bool is_head = (*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f');
		if (is_head)
			counts = is_own_mapping(look, line);
		else if (counts && (!strncmp(line, "Pss:", 4) || !strncmp(line, "SwapPss:", 8)))
			used += strtoull(strchr(line, ':') + 1, NULL, 10) << 10;
	}
	if (file)
		fclose(file);
	return used;
}

static uint64_t resident_bytes(const struct look *look, pid_t pid)
{
	char text[128];
	return read_of(pid, "statm", text, sizeof(text)) ? memory_resident_pages(text) * look->page_bytes : 0;
}

static uint64_t count_process(const struct look *look, pid_t pid)
{
	char text[2048];
	if (!read_of(pid, "smaps_rollup", text, sizeof(text)))
		return resident_bytes(look, pid);
	struct memory_shares shares = memory_parse_rollup(text);
	return shares.anonymous + (shares.shared ? own_mappings(look, pid) : 0);
}

static uint64_t add_up(const struct look *look, uint64_t (*measure)(const struct look *look, pid_t pid))
{
	uint64_t used = look->mounts_used + files_used(&look->files);
	for (size_t i = 0; i < look->processes.count; i++)
		used += measure(look, look->processes.pids[i]);
	return used;
}

/* Those that are made later have it from these. */
static void make_first_to_kill(const struct look *look)
{
	for (size_t i = 0; i < look->processes.count; i++) {
		char name[64];
		snprintf(name, sizeof(name), "/proc/%d/oom_score_adj", (int)look->processes.pids[i]);
		auto_close int fd = open(name, O_WRONLY | O_CLOEXEC);
		if (fd >= 0)
			(void)!write(fd, FIRST_TO_KILL, strlen(FIRST_TO_KILL));
	}
}

void memory_watch_begin(struct memory_watch *watch, uint64_t most_bytes, const char *const *targets, size_t count)
{
	*watch = (struct memory_watch){ .most_bytes = most_bytes };
	for (size_t i = 0; i < MEMORY_WATCH_MOUNTS && i < count; i++)
		watch->targets[i] = targets[i];
}

int memory_watch_look(struct memory_watch *watch, pid_t first)
{
	uint64_t begun_us = await_now_us();
	struct look look = { .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE) };
	if (first <= 1)
		return MEMORY_WATCH_SLOW_MS;
	processes_list(first, &look.processes);
	look_at_mounts(&look, watch);
	if (!watch->is_begun)
		make_first_to_kill(&look);
	watch->is_begun = true;
	for (size_t i = 0; i < look.processes.count; i++)
		look_at_files(&look, look.processes.pids[i]);
	uint64_t used = add_up(&look, resident_bytes);
	if (used > watch->most_bytes)
		used = add_up(&look, count_process);
	watch->used_bytes = used;
	watch->peak_bytes = used > watch->peak_bytes ? used : watch->peak_bytes;
	processes_free(&look.processes);
	free(look.files.items);
	if (used > watch->most_bytes)
		return -1;
	uint64_t pause_ms = used > watch->most_bytes / 2 ? MEMORY_WATCH_FAST_MS : MEMORY_WATCH_SLOW_MS;
	uint64_t least_ms = (await_now_us() - begun_us) * SHARE_OF_CPU / 1000;
	return (int)(pause_ms > least_ms ? pause_ms : least_ms);
}

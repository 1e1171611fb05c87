/* Processes seen from outside: see processes.h. Everything read here is the kernel's text, but about processes that may
 * be hostile, and that come and go: what cannot be read is gone, or else what is known of them is not all. */
#include "driver/linux/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "driver/linux/cgroup-file.h"
#include "driver/linux/disk-walk.h"

/* Of one process: what is beyond is not looked at. */
#define FILES_MAX 4096
#define UNTOLD_BYTES (UINT64_C(1) << 40)

static DIR *open_of(pid_t pid, const char *what)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/%s", (int)pid, what);
	return opendir(name);
}

/* ---- which there are -------------------------------------------------------------------------------------------- */

/* A process or thread of which something could not be read: one that has ended has nothing to read. For a living one,
 * this kernel does not provide it. */
static bool is_gone(pid_t pid)
{
	return (errno == ENOENT || errno == ESRCH) && kill(pid, 0) < 0 && errno == ESRCH;
}

static void add(struct processes *processes, pid_t pid)
{
	if (processes->count == processes->capacity) {
		size_t capacity = processes->capacity ? processes->capacity * 2 : 16;
		pid_t *pids = capacity <= PROCESSES_MAX ? reallocarray(processes->pids, capacity, sizeof(*pids)) : NULL;
		if (!pids) {
			processes->partial = true;
			return;
		}
		processes->pids = pids;
		processes->capacity = capacity;
	}
	processes->pids[processes->count++] = pid;
}

/* A list of numbers, each followed by a space. False: errno tells why it is not known to be all of it. */
static bool add_listed(struct processes *processes, int fd)
{
	char part[4096];
	pid_t pid = 0;
	ssize_t length;
	while ((length = read(fd, part, sizeof(part))) > 0)
		for (ssize_t i = 0; i < length; i++) {
			if (part[i] >= '0' && part[i] <= '9') {
				pid = pid * 10 + (part[i] - '0');
				continue;
			}
			if (pid > 1)
				add(processes, pid);
			pid = 0;
		}
	return length == 0;
}

static uint64_t number_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* By calls, and by way of mapped files; once more where what a call wrote goes to a disk. */
static uint64_t written(const char *io)
{
	return number_after(io, "wchar: ") + number_after(io, "\nwrite_bytes: ");
}

static void look_at_thread(struct processes *processes, int tasks, const char *thread)
{
	char name[300], ran[128];
	snprintf(name, sizeof(name), "%s/children", thread);
	auto_close int fd = openat(tasks, name, O_RDONLY | O_CLOEXEC);
	if ((fd < 0 || !add_listed(processes, fd)) && !is_gone((pid_t)strtol(thread, NULL, 10)))
		processes->partial = true;
	snprintf(name, sizeof(name), "%s/schedstat", thread);
	processes->untold |= cgroup_file_read(tasks, name, ran, sizeof(ran)) <= 0;
	processes->ran = text_hash(processes->ran, ran, strlen(ran));
	processes->who = text_hash(processes->who, thread, strlen(thread) + 1);
}

/* It includes what children wrote that have ended. The first is init, which does not write and cannot be read; of the
 * others, one that cannot be read may have written if it ran. */
static void look_at_process(struct processes *processes, pid_t pid, bool is_first)
{
	char wrote[512];
	DIR *tasks = open_of(pid, "task");
	for (struct dirent *thread; tasks && (errno = 0, thread = readdir(tasks));)
		if (thread->d_name[0] != '.')
			look_at_thread(processes, dirfd(tasks), thread->d_name);
	if (errno && !is_gone(pid))
		processes->partial = true;
	bool told = tasks && cgroup_file_read(dirfd(tasks), "../io", wrote, sizeof(wrote)) > 0;
	uint64_t mark = told ? written(wrote) : processes->ran;
	processes->wrote = text_hash(processes->wrote, (const char *)&mark, sizeof(mark));
	if (!is_first)
		processes->written_bytes += told ? mark : UNTOLD_BYTES;
	if (tasks)
		closedir(tasks);
}

void processes_look(pid_t first, struct processes *ret_processes)
{
	struct processes processes = { .ran = TEXT_HASH, .wrote = TEXT_HASH, .who = TEXT_HASH };
	add(&processes, first);
	for (size_t i = 0; i < processes.count; i++)
		look_at_process(&processes, processes.pids[i], !i);
	*ret_processes = processes;
}

static void list_children(struct processes *processes, pid_t pid)
{
	char name[300];
	DIR *tasks = open_of(pid, "task");
	for (struct dirent *thread; tasks && (thread = readdir(tasks));) {
		snprintf(name, sizeof(name), "%s/children", thread->d_name);
		auto_close int fd = thread->d_name[0] != '.' ? openat(dirfd(tasks), name, O_RDONLY | O_CLOEXEC) : -1;
		if (fd >= 0)
			(void)!add_listed(processes, fd);
	}
	if (tasks)
		closedir(tasks);
}

void processes_list(pid_t first, struct processes *ret_processes)
{
	struct processes processes = { 0 };
	add(&processes, first);
	for (size_t i = 0; i < processes.count; i++)
		list_children(&processes, processes.pids[i]);
	*ret_processes = processes;
}

bool processes_have_our_numbers(void)
{
	char text[32];
	ssize_t length = readlink("/proc/self", text, sizeof(text) - 1);
	text[length < 0 ? 0 : length] = '\0';
	return length < 0 || atol(text) == getpid();
}

void processes_free(struct processes *processes)
{
	free(processes->pids);
	*processes = (struct processes){ 0 };
}

void processes_kill_below(pid_t first)
{
	struct processes processes;
	if (first <= 1)
		return;
	processes_look(first, &processes);
	for (size_t i = 1; i < processes.count; i++)
		kill(processes.pids[i], SIGKILL);
	processes_free(&processes);
}

/* ---- what they hold --------------------------------------------------------------------------------------------- */

static DIR *open_in(int directory, const char *name)
{
	auto_close int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
	if (stream)
		take_fd(&fd);
	return stream;
}

/* True: no more. */
typedef bool thread_fn(void *arg, int thread);

/* Threads may have files of their own, and the first may be gone while others continue: each thread whose files are
 * not those of the one before it is looked at. */
static bool each_thread(pid_t pid, thread_fn *look, void *arg)
{
	DIR *tasks = open_of(pid, "task");
	pid_t before = 0;
	bool done = false;
	for (struct dirent *entry; tasks && !done && (entry = readdir(tasks));) {
		pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
		if (thread <= 0 || (before && syscall(SYS_kcmp, before, thread, KCMP_FILES, 0, 0) == 0))
			continue;
		auto_close int fd = openat(dirfd(tasks), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		done = fd >= 0 && look(arg, fd);
		before = thread;
	}
	if (tasks)
		closedir(tasks);
	return done;
}

struct nameless {
	processes_file_fn *each;
	void *arg;
};

static bool tell_nameless(void *arg, int thread)
{
	const struct nameless *nameless = arg;
	DIR *files = open_in(thread, "fd");
	struct disk_stat stat;
	size_t seen = 0;
	for (struct dirent *entry; files && seen++ < FILES_MAX && (entry = readdir(files));)
		if (entry->d_name[0] != '.' && disk_stat(dirfd(files), entry->d_name, true, &stat) && !stat.links)
			nameless->each(nameless->arg, &stat);
	if (files)
		closedir(files);
	return false;
}

void processes_each_nameless(pid_t pid, processes_file_fn *each, void *arg)
{
	each_thread(pid, tell_nameless, &(struct nameless){ each, arg });
}

struct devices {
	const uint64_t *numbers;
	size_t count;
};

/* 7f0000-7f1000 r--p 00000000 fe:00 1234   /path (deleted)
 * However it is mapped, what was written to it is kept. */
static bool is_nameless(const char *line, const struct devices *devices)
{
	static const char gone[] = " (deleted)\n";
	unsigned major, minor;
	size_t length = strlen(line);
	if (length < sizeof(gone) || strcmp(line + length - (sizeof(gone) - 1), gone) ||
	    sscanf(line, "%*x-%*x %*s %*x %x:%x", &major, &minor) != 2)
		return false;
	for (size_t i = 0; i < devices->count; i++)
		if (devices->numbers[i] == disk_device(major, minor))
			return true;
	return false;
}

static bool maps_nameless(void *arg, int thread)
{
	char *line = NULL;
	size_t size = 0;
	bool found = false;
	auto_close int fd = openat(thread, "maps", O_RDONLY | O_CLOEXEC);
	FILE *maps = fd >= 0 ? fdopen(fd, "re") : NULL;
	if (maps)
		take_fd(&fd);
	while (maps && !found && getline(&line, &size, maps) > 0)
		found = is_nameless(line, arg);
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

static bool sends_files(int thread)
{
	DIR *files = open_in(thread, "fd");
	auto_close int about = openat(thread, "fdinfo", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct disk_stat stat;
	size_t seen = 0;
	bool found = false;
	for (struct dirent *entry; files && about >= 0 && !found && seen++ < FILES_MAX && (entry = readdir(files));)
		if (entry->d_name[0] != '.' && disk_stat(dirfd(files), entry->d_name, true, &stat) &&
		    S_ISSOCK(stat.mode)) {
			char text[1024];
			const char *number = cgroup_file_read(about, entry->d_name, text, sizeof(text)) > 0
			                             ? strstr(text, "scm_fds:") : NULL;
			found = number && strtoul(number + sizeof("scm_fds:") - 1, NULL, 10);
		}
	if (files)
		closedir(files);
	return found;
}

static bool hides(void *arg, int thread)
{
	return maps_nameless(arg, thread) || sends_files(thread);
}

bool processes_hides(pid_t pid, const uint64_t *devices, size_t count)
{
	return each_thread(pid, hides, &(struct devices){ devices, count });
}

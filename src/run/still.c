/* Standing still: see still.h. */
#include "run/still.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "run/cgroup-file.h"
#include "run/disk-walk.h"
#include "run/processes.h"

/* So long parents are waited for before their children are stopped: a row of them that is long enough would take too long.
 * Signals are taken when a process runs next, which takes longer on a busy machine. */
#define ORDERLY_US 50000
/* And so long, after that, all of them. */
#define PATIENCE_US 100000
#define PAUSE_US 200

enum { UNKNOWN = '?', GONE = 'X' };

/* Of what could not be read or reached, just now. */
static char unreached(void)
{
	return errno == ENOENT || errno == ESRCH ? GONE : UNKNOWN;
}

/* The state and the parent, of a process or a thread: 12 (name) S 1 ... */
static char state_of(int directory, const char *name, pid_t *ret_parent)
{
	char text[512], state = UNKNOWN;
	int parent = 0;
	if (cgroup_file_read(directory, name, text, sizeof(text)) < 0)
		return unreached();
	const char *at = strrchr(text, ')');
	if (!at || sscanf(at, ") %c %d", &state, &parent) != 2)
		return UNKNOWN;
	*ret_parent = parent;
	return state;
}

/* One that waits for a disk or for a vfork() stops before it does anything else, if it was told to. What cannot be looked at
 * goes on. */
static bool is_still(pid_t pid, bool told)
{
	const char *goes_on = told ? "RS?" : "RSD?";
	char name[300];
	bool still = true;
	pid_t parent;
	snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
	DIR *tasks = opendir(name);
	if (!tasks)
		return unreached() == GONE;
	for (struct dirent *thread; still && (errno = 0, thread = readdir(tasks));) {
		snprintf(name, sizeof(name), "%s/stat", thread->d_name);
		still = thread->d_name[0] == '.' || !strchr(goes_on, state_of(dirfd(tasks), name, &parent));
	}
	still = still && (!errno || unreached() == GONE);
	closedir(tasks);
	return still;
}

static bool is_listed(const struct still *still, pid_t pid)
{
	for (size_t i = 0; i < still->count; i++)
		if (still->list[i].pid == pid)
			return true;
	return false;
}

static bool is_among(const struct processes *processes, pid_t pid)
{
	for (size_t i = 0; i < processes->count; i++)
		if (processes->pids[i] == pid)
			return true;
	return false;
}

/* A parent that goes on may be told that its child was stopped: a shell would take that for its user's doing. init is not
 * told of stops. */
static bool may_be_told(const struct still *still, const struct processes *processes, pid_t parent)
{
	return parent != processes->pids[0] && !is_still(parent, is_listed(still, parent));
}

static bool make_room(struct still *still)
{
	if (still->count < still->capacity)
		return true;
	size_t capacity = still->capacity ? still->capacity * 2 : 16;
	struct still_process *list = reallocarray(still->list, capacity, sizeof(*list));
	if (!list)
		return false;
	still->list = list;
	still->capacity = capacity;
	return true;
}

/* The number may be somebody else's by now: it is one of ours if its parent is. False: it cannot be stopped. */
static bool stop(struct still *still, const struct processes *processes, pid_t pid, bool orderly)
{
	char name[64];
	pid_t parent = 0;
	auto_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return unreached() == GONE;
	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	char state = state_of(AT_FDCWD, name, &parent);
	if (strchr("TtX", state) || !is_among(processes, parent) || (orderly && may_be_told(still, processes, parent)))
		return state != UNKNOWN;
	if (!make_room(still))
		return false;
	if (syscall(SYS_pidfd_send_signal, fd, SIGSTOP, NULL, 0) < 0)
		return unreached() == GONE;
	still->list[still->count++] = (struct still_process){ pid, take_fd(&fd) };
	return true;
}

/* True: all of them do. */
static bool go_round(struct still *still, pid_t first, bool orderly, bool *ret_failed)
{
	struct processes processes;
	bool all = true;
	processes_look(first, &processes);
	*ret_failed = processes.partial;
	for (size_t i = 1; i < processes.count && !*ret_failed; i++) {
		bool told = is_listed(still, processes.pids[i]);
		if (is_still(processes.pids[i], told))
			continue;
		all = false;
		if (!told)
			*ret_failed = !stop(still, &processes, processes.pids[i], orderly);
	}
	processes_free(&processes);
	return all && !*ret_failed;
}

bool still_begin(struct still *still, pid_t first)
{
	uint64_t now_us = disk_now_us(), orderly_us = now_us + ORDERLY_US, end_us = 0;
	bool failed;
	*still = (struct still){ 0 };
	/* One that was starting another when the list was made may be still by now, and the other not in the list. So they are
	 * listed once more when all are: then nobody starts any. */
	for (int rounds = 0; rounds < 2; now_us = disk_now_us()) {
		if (!end_us && now_us >= orderly_us)
			end_us = now_us + PATIENCE_US;
		if (end_us && !rounds && now_us >= end_us)
			return false;
		rounds = go_round(still, first, !end_us, &failed) ? rounds + 1 : 0;
		if (failed)
			return false;
		if (!rounds)
			usleep(PAUSE_US);
	}
	return true;
}

void still_end(struct still *still)
{
	for (size_t i = still->count; i-- > 0;) {
		syscall(SYS_pidfd_send_signal, still->list[i].fd, SIGCONT, NULL, 0);
		close(still->list[i].fd);
	}
	free(still->list);
	*still = (struct still){ 0 };
}

/* Processes are read in /proc; see agent-process.h. */
#include "door/agent/agent-process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

#define ANCESTORS_MAX 32
#define ENVIRONMENT_MAX (4u << 20)

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
			char *larger =
				capacity > ENVIRONMENT_MAX ? NULL : realloc(text, capacity = capacity * 2 + 8192);
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

/* Its parent and when it started, in ticks since the machine did. False: it is gone. */
static bool read_stat(pid_t pid, pid_t *ret_parent, unsigned long long *ret_started)
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

/* Also true where it cannot be read: such a process is not the agent, which is the same user's. */
static bool is_marked(pid_t pid, const char *mark)
{
	size_t length, mark_length = strlen(mark);
	auto_free char *text = read_proc(pid, "environ", &length);
	for (const char *at = text; text && at < text + length; at += strlen(at) + 1)
		if (!strncmp(at, mark, mark_length) && at[mark_length] == '=')
			return true;
	return !text;
}

static bool is_agent(pid_t pid, const struct agent *agent)
{
	uint64_t own;
	const char *number = agent->pid_variable ? getenv(agent->pid_variable) : NULL;
	if (number && text_parse_number(number, INT_MAX, &own) && own == (uint64_t)pid)
		return true;
	return !agent->mark || !is_marked(pid, agent->mark);
}

static int describe(struct arena *arena, pid_t pid, unsigned long long started, struct agent_process *ret_process,
                    struct cordon_error *err)
{
	char link[64], cwd[PATH_MAX];
	snprintf(link, sizeof(link), "/proc/%d/cwd", (int)pid);
	ssize_t length = readlink(link, cwd, sizeof(cwd));
	if (length <= 0 || length == sizeof(cwd) || *cwd != '/')
		return fail(err, CORDON_E_INVALID_REQUEST, length < 0 ? errno : ENAMETOOLONG, link,
		            "cannot tell where the agent was started");
	ret_process->cwd = arena_strndup(arena, cwd, (size_t)length);
	ret_process->id = arena_printf(arena, "%d:%llu", (int)pid, started);
	return ret_process->cwd && ret_process->id ? 0 : fail_oom(err);
}

int agent_process(struct arena *arena, enum agent_id agent, struct agent_process *ret_process, struct cordon_error *err)
{
	pid_t pid = getppid(), parent;
	unsigned long long started;
	for (int i = 0; i < ANCESTORS_MAX && pid > 0 && read_stat(pid, &parent, &started); i++, pid = parent)
		if (is_agent(pid, &agents[agent]))
			return describe(arena, pid, started, ret_process, err) < 0 ?
			       fail_remedy(err, "name the workspace: cordon shell --workspace DIR") : 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, agents[agent].name, "cannot tell which process is the agent");
	return fail_remedy(err, "name the workspace and the conversation: cordon shell --workspace DIR --agent-id ID");
}

static bool has_repository(const char *directory)
{
	char path[PATH_MAX];
	struct stat st;
	return (size_t)snprintf(path, sizeof(path), "%s/.git", directory) < sizeof(path) && lstat(path, &st) == 0;
}

const char *agent_workspace(struct arena *arena, const char *directory)
{
	char *top = arena_strdup(arena, directory);
	const char *home = getenv("HOME");
	struct stat first, here;
	if (!top || stat(directory, &first) < 0)
		return directory;
	while (top[0] == '/' && top[1] && strcmp(top, home ? home : "") != 0) {
		if (stat(top, &here) < 0 || here.st_uid != first.st_uid || here.st_dev != first.st_dev)
			break;
		if (has_repository(top))
			return top;
		char *slash = strrchr(top, '/');
		slash[slash == top] = '\0';
	}
	return directory;
}

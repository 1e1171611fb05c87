/* See agent-process.h. */
#include "door/agent/agent-process.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/pid.h"
#include "base/text.h"

#define ANCESTORS_MAX 32

/* Also true where it cannot be read: such a process is not the agent, which is the same user's. */
static bool is_marked(pid_t pid, const char *mark)
{
	size_t length, mark_length = strlen(mark);
	auto_free char *text = pid_environment(pid, &length);
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
	char cwd[PATH_MAX];
	int number = -pid_directory(pid, cwd, sizeof(cwd));
	if (number || *cwd != '/')
		return fail(err, CORDON_E_INVALID_REQUEST, number, "", "cannot tell where the agent was started");
	ret_process->cwd = arena_strdup(arena, cwd);
	ret_process->id = arena_printf(arena, "%d:%llu", (int)pid, started);
	return ret_process->cwd && ret_process->id ? 0 : fail_oom(err);
}

int agent_process(struct arena *arena, enum agent_id agent, struct agent_process *ret_process, struct cordon_error *err)
{
	pid_t pid = getppid(), parent;
	unsigned long long started;
	for (int i = 0; i < ANCESTORS_MAX && pid > 0 && pid_parent(pid, &parent, &started); i++, pid = parent)
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

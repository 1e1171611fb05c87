/* Shells that are parked in places of their own: see warm.h.
 *
 * A command that is a shell and its line, whatever the line says, leaves a wish behind: the same shell in the same directory
 * with the same environment. A place of the mould then gets such a shell (run/shell-park.h). The one thing in its environment
 * that changes with every command is its id; so that is made when the shell is parked, and the execution which may take it
 * takes over the id first, after its session is known and before anything is decided or recorded. Where its own walk then
 * decides on another environment, directory, program or other walls, the shell is given up. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "run/pidfd.h"
#include "run/shell-park.h"
#include "warm.h"

static const char *const shells[] = { "bash", "dash", "sh" };
/* bash as some build it reads a file when it starts and finds one of these, which may be another one later. What always makes
 * a shell read one is in no command's environment (policy/env.c). */
static const char *const reading[] = { "SSH_CLIENT=", "SSH2_CLIENT=" };

bool warm_shell_is_for(const struct execution *execution)
{
	const struct strings *argv = &execution->request->argv;
	if (argv->count != 3 || strcmp(argv->items[1], "-c"))
		return false;
	const char *slash = strrchr(argv->items[0], '/'), *name = slash ? slash + 1 : argv->items[0], *line = argv->items[2];
	/* What looks like an option is one, and it is looked at when the shell starts. */
	if (*line == '-' || *line == '+' || strlen(line) > SHELL_LINE_MAX)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (!strcmp(name, shells[i]))
			return true;
	return false;
}

/* As it is, but for a value that is the id: that becomes `id`. */
static const char *copy_text(struct arena *arena, const char *text, const char *old_id, const char *id)
{
	const char *equals = old_id ? strchr(text, '=') : NULL;
	if (!equals || strcmp(equals + 1, old_id))
		return arena_strdup(arena, text);
	return arena_printf(arena, "%.*s=%s", (int)(equals - text), text, id);
}

int warm_copy_strings(struct arena *arena, const struct strings *from, const char *old_id, const char *id, struct strings *ret_to)
{
	struct strings to = { .items = arena_alloc(arena, (from->count + 1) * sizeof(*to.items)), .capacity = from->count + 1 };
	if (!to.items)
		return -1;
	for (; to.count < from->count; to.count++)
		if (!(to.items[to.count] = copy_text(arena, from->items[to.count], old_id, id)))
			return -1;
	*ret_to = to;
	return 0;
}

/* Which of the files is the program is known inside; another one or a changed one anywhere makes it another shell. */
static uint64_t stamp_of(const struct strings *candidates)
{
	uint64_t stamp = 0;
	for (size_t i = 0; i < candidates->count; i++) {
		struct stat info = { 0 };
		stat(candidates->items[i], &info);
		const uint64_t facts[] = { info.st_dev, info.st_ino, (uint64_t)info.st_size, (uint64_t)info.st_ctim.tv_sec,
		                           (uint64_t)info.st_ctim.tv_nsec };
		for (size_t j = 0; j < ARRAY_SIZE(facts); j++)
			stamp = (stamp ^ facts[j]) * 0x9e3779b97f4a7c15u;
	}
	return stamp;
}

/* While it is held, no other directory can be taken for it. */
static bool is_directory(int fd, int other)
{
	struct stat a, b;
	return fstat(fd, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static struct warm_shell *make(const char *id, const char *name, const char *cwd, int cwd_fd,
                               const struct strings *environment, const struct strings *candidates)
{
	struct warm_shell *shell = calloc(1, sizeof(*shell));
	if (!shell)
		return NULL;
	for (int i = 0; i < 3; i++)
		shell->stdio_fd[i] = -1;
	memcpy(shell->id, id, sizeof(shell->id));
	shell->cwd_fd = fcntl(cwd_fd, F_DUPFD_CLOEXEC, 3);
	shell->name = arena_strdup(&shell->arena, name);
	shell->cwd = arena_strdup(&shell->arena, cwd);
	if (shell->cwd_fd < 0 || !shell->name || !shell->cwd || warm_copy_strings(&shell->arena, environment, NULL, NULL, &shell->environment) < 0 ||
	    warm_copy_strings(&shell->arena, candidates, NULL, NULL, &shell->candidates) < 0) {
		warm_shell_free(shell);
		return NULL;
	}
	return shell;
}

/* Could a command have put it there? Then init would not let it begin ahead: run/init-shell.c. */
static bool is_commands_own(const struct execution *execution)
{
	const struct strings *candidates = &execution->profile.profile.candidates;
	for (size_t i = 0; i < candidates->count; i++)
		for (size_t j = 0; j < execution->profile.tree_count; j++)
			if (execution->profile.trees[j].writable &&
			    path_within(candidates->items[i], execution->profile.trees[j].place.path))
				return true;
	return false;
}

struct warm_shell *warm_shell_new(const struct execution *execution)
{
	const struct profile *profile = &execution->profile.profile;
	if (!warm_shell_is_for(execution) || is_commands_own(execution))
		return NULL;
	for (size_t i = 0; i < profile->environment.count; i++)
		for (size_t j = 0; j < ARRAY_SIZE(reading); j++)
			if (!strncmp(profile->environment.items[i], reading[j], strlen(reading[j])))
				return NULL;
	struct warm_shell *shell = make(execution->audit.id, profile->argv.items[0], profile->cwd, execution->cwd.fd,
	                                &profile->environment, &profile->candidates);
	if (!shell)
		return NULL;
	shell->judged = execution->capability.program.path;
	shell->device = execution->capability.program.device;
	shell->inode = execution->capability.program.inode;
	shell->stamp = stamp_of(&profile->candidates);
	return shell;
}

struct warm_shell *warm_shell_copy(const struct warm_shell *from)
{
	struct warm_shell *shell = make(from->id, from->name, from->cwd, from->cwd_fd, &from->environment, &from->candidates);
	if (!shell)
		return NULL;
	shell->judged = from->judged;
	shell->device = from->device;
	shell->inode = from->inode;
	shell->stamp = from->stamp;
	return shell;
}

void warm_shell_free(struct warm_shell *shell)
{
	if (!shell)
		return;
	for (int i = 0; i < 3; i++)
		if (shell->stdio_fd[i] >= 0)
			close(shell->stdio_fd[i]);
	if (shell->cwd_fd >= 0)
		close(shell->cwd_fd);
	arena_free(&shell->arena);
	free(shell);
}

bool warm_same_text(const char *a, const char *a_id, const char *b, const char *b_id)
{
	if (!strcmp(a, b))
		return true;
	const char *equals = strchr(a, '=');
	size_t length = equals ? (size_t)(equals - a) + 1 : 0;
	return length && !strncmp(a, b, length) && !strcmp(a + length, a_id) && !strcmp(b + length, b_id);
}

bool warm_shell_same(const struct warm_shell *shell, const struct execution *execution)
{
	const struct profile *profile = &execution->profile.profile;
	const struct place *program = &execution->capability.program;
	if (!warm_shell_is_for(execution) || strcmp(execution->request->argv.items[2], profile->argv.items[2]) ||
	    strcmp(shell->name, profile->argv.items[0]) || strcmp(shell->cwd, profile->cwd) ||
	    shell->environment.count != profile->environment.count || shell->candidates.count != profile->candidates.count ||
	    shell->judged != (program->path != NULL) ||
	    (shell->judged && (shell->device != program->device || shell->inode != program->inode)) ||
	    !is_directory(shell->cwd_fd, execution->cwd.fd) || shell->stamp != stamp_of(&profile->candidates))
		return false;
	for (size_t i = 0; i < shell->candidates.count; i++)
		if (strcmp(shell->candidates.items[i], profile->candidates.items[i]))
			return false;
	for (size_t i = 0; i < shell->environment.count; i++)
		if (!warm_same_text(shell->environment.items[i], shell->id, profile->environment.items[i], execution->audit.id))
			return false;
	return true;
}

static int rename_shell(struct warm_shell *shell)
{
	char id[ID_SIZE];
	id_make(id);
	if (warm_copy_strings(&shell->arena, &shell->environment, shell->id, id, &shell->environment) < 0)
		return -1;
	memcpy(shell->id, id, sizeof(id));
	return 0;
}

int warm_shell_park(struct warm_shell *shell, struct warm_place *place, struct cordon_error *err)
{
	int theirs[3] = { -1, -1, -1 };
	const char *const argv[] = { shell->name, "-c", NULL };
	if (rename_shell(shell) < 0)
		return fail_oom(err);
	int parked = supervise_pipes(shell->stdio_fd, theirs);
	if (parked < 0)
		fail(err, CORDON_E_INTERNAL, errno, "pipe", "cannot make pipes for a shell");
	const struct launch launch = {
		.cwd = shell->cwd, .cwd_fd = -1, .candidates = shell->candidates.items, .argv = argv,
		.environment = shell->environment.items, .program_judged = shell->judged,
		.program_device = shell->device, .program_inode = shell->inode,
		.stdio = { theirs[0], theirs[1], theirs[2] },
	};
	if (parked == 0)
		parked = slot_park(&place->slot, &launch, err);
	for (int i = 0; i < 3; i++)
		if (theirs[i] >= 0)
			close(theirs[i]);
	if (parked == 0)
		place->shell = shell;
	else if (place->slot.pidfd >= 0) /* Its init may be waiting for a shell that never stops. */
		pidfd_kill(place->slot.pidfd);
	return parked;
}

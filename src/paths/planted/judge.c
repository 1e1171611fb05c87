/* Judging what a command left: see judge.h. */
#include "paths/planted/judge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paths/planted/git-file.h"
#include "paths/index/look.h"
#include "paths/index/table.h"
#include "paths/planted/seen.h"
#include "paths/planted/quarantine.h"
#include "paths/planted/vcs-config.h"

/* More than this many hooks at once, or entries among which they could be, and their directory goes as a whole. */
#define HOOKS_MAX 1024
#define HOOKS_LOOKED_AT_MAX (10 * 1000)

/* ---- Reporting and moving --------------------------------------------------------------------------------------- */

static int report(struct check *check, const struct planted_file *file)
{
	struct planted *planted = &check->planted;
	if (!file->path || !file->note)
		return -1;
	if (planted->count == planted->capacity) {
		size_t capacity = planted->capacity ? planted->capacity * 2 : 16;
		struct planted_file *items = arena_alloc(check->arena, capacity * sizeof(*items));
		if (!items)
			return -1;
		if (planted->count)
			memcpy(items, planted->items, planted->count * sizeof(*items));
		planted->items = items;
		planted->capacity = capacity;
	}
	planted->items[planted->count++] = *file;
	planted->harmful += file->harmful;
	return 0;
}

int keep(struct check *check, const char *path, const char *note)
{
	return report(check, &(struct planted_file){ .path = path, .note = note });
}

static int keep_named(struct check *check, const struct name *name, bool old)
{
	/* Nothing would have kept it from being made or changed: it is not worth a word. */
	if (name->kind == NAME_JUDGED)
		return 0;
	return keep(check, name->path, old ? "changed by the command; kept" : "created by the command; kept");
}

/* The directory a path lies in, and its last component. */
static int open_parent(const struct check *check, const char *path, const char **ret_leaf)
{
	char parent[NAMES_ENTRY_SIZE];
	const char *slash = strrchr(path, '/');
	*ret_leaf = slash ? slash + 1 : path;
	if (snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 0, path) >= (int)sizeof(parent))
		return -1;
	return names_open(check->look.tree->root_fd, parent, O_RDONLY | O_DIRECTORY);
}

enum fate { FATE_LEFT, FATE_MOVED, FATE_CUT, FATE_REMOVED, FATE_STUCK, FATE_MAX };

/* `fd` is its directory, or -1 where that could not be opened. errno tells why it was not moved. */
static enum fate dispose(struct check *check, int fd, const char *leaf, const char **ret_as)
{
	if (check->quarantine_fd == PLANTED_LOOK)
		return FATE_LEFT;
	if (fd < 0)
		return FATE_STUCK;
	size_t *room = check->of_owner ? &check->owner_room : &check->room;
	if (check->quarantine_fd >= 0)
		*ret_as = quarantine_take(check->arena, fd, leaf, check->quarantine_fd, room);
	else
		errno = ENOSPC;
	if (*ret_as)
		return *room ? FATE_MOVED : FATE_CUT;
	int reason = errno;
	if (quarantine_disarm(fd, leaf) < 0)
		return FATE_STUCK;
	errno = reason;
	return FATE_REMOVED;
}

static int condemn_at(struct check *check, int fd, const char *leaf, const char *path, const char *why)
{
	static const struct {
		const char *text;
		bool with_reason;
	} fates[] = {
		[FATE_LEFT] = { "kept", false },
		[FATE_MOVED] = { "moved to quarantine", false },
		[FATE_CUT] = { "removed: quarantine had no room for all of it", false },
		[FATE_REMOVED] = { "removed, since it could not be moved to quarantine: ", true },
		[FATE_STUCK] = { "kept, since it could be neither moved nor removed: ", true },
	};
	_Static_assert(ARRAY_SIZE(fates) == FATE_MAX, "every fate has a text");
	struct planted_file file = { .path = path, .harmful = true };
	if (!why)
		return -1;
	enum fate fate = dispose(check, fd, leaf, &file.quarantined_as);
	file.note = arena_printf(check->arena, "%s; %s%s", why, fates[fate].text,
	                         fates[fate].with_reason ? strerror(errno) : "");
	file.remains = fate == FATE_LEFT || fate == FATE_STUCK;
	return report(check, &file);
}

int condemn(struct check *check, const char *path, const char *why)
{
	const char *leaf;
	auto_close int fd = open_parent(check, path, &leaf);
	return condemn_at(check, fd, leaf, path, why);
}

/* ---- Hooks ------------------------------------------------------------------------------------------------------- */

struct hooks {
	struct check *check;
	const char *directory;
	struct strings found;
};

/* What would run, or could be made to by its other name. */
static int judge_hook(void *arg, int fd, const char *leaf)
{
	struct hooks *hooks = arg;
	struct names_stat stat;
	char path[NAMES_ENTRY_SIZE];
	if (git_look_is_sample(leaf) || hooks->found.count > HOOKS_MAX || !names_stat(fd, leaf, &stat) ||
	    !git_look_could_run(leaf, &stat))
		return 0;
	snprintf(path, sizeof(path), "%s/%s", hooks->directory, leaf);
	if (stat.ctime_ns < hooks->check->older_ns || seen_is_same(hooks->check->before, path, &stat))
		return 0;
	return strings_add(hooks->check->arena, &hooks->found, arena_strdup(hooks->check->arena, path));
}

int condemn_hooks(struct check *check, const char *directory, bool *ret_any)
{
	struct hooks hooks = { .check = check, .directory = directory };
	int status = git_look_each(&check->look, directory, HOOKS_LOOKED_AT_MAX, judge_hook, &hooks);
	if (status < 0)
		return -1;
	*ret_any = status > 0 || hooks.found.count;
	if (status > 0 || hooks.found.count > HOOKS_MAX || (hooks.found.count && names_now_us() > check->deadline_us))
		return condemn(check, directory, "git hooks without number that could run");
	auto_close int fd =
		hooks.found.count ? names_open(check->look.tree->root_fd, directory, O_RDONLY | O_DIRECTORY) : -1;
	for (size_t i = 0; i < hooks.found.count; i++) {
		const char *path = hooks.found.items[i];
		if (condemn_at(check, fd, path + strlen(directory) + 1, path, "a git hook that would run") < 0)
			return -1;
	}
	return 0;
}

int judge_hooks(struct check *check, const struct name *name, bool old)
{
	bool any;
	if (name->is_link)
		return condemn(check, name->path, "a symbolic link in place of git's hooks");
	if (!name->is_directory)
		return keep_named(check, name, old);
	if (condemn_hooks(check, name->path, &any) < 0)
		return -1;
	return any || planted_is_repository(check->look.tree, name) ? 0 : keep_named(check, name, old);
}

/* ---- Configurations, and where they are to be found ------------------------------------------------------------- */

/* NULL: the configuration is new. */
static const struct git_config_before *config_before(const struct check *check, const char *path)
{
	static const struct git_config_before unknown = { .known = false };
	const struct planted_seen *seen = seen_find(check->before, path);
	const struct name *name = names_get(check->before->names, NAME_PROTECTED, path);
	if (!name)
		name = names_get(check->before->names, NAME_JUDGED, path);
	if (seen && seen->config)
		return seen->config;
	return seen || (name && !name->is_link) ? &unknown : NULL;
}

int condemn_config(struct check *check, const char *path, bool *ret_any)
{
	struct git_config_verdict verdict;
	bool readable = git_look_config(&check->look, path, config_before(check, path), &verdict);
	*ret_any = !readable || verdict.reason;
	if (!*ret_any)
		return 0;
	return condemn(check, path, readable ? arena_printf(check->arena, "%s %s", verdict.key, verdict.reason)
	                                     : "git's configuration, but it cannot be read");
}

int judge_config(struct check *check, const struct name *name, bool old)
{
	bool any;
	if (name->is_link)
		return condemn(check, name->path, "a symbolic link in place of git's configuration");
	if (name->is_directory)
		return keep_named(check, name, old);
	if (condemn_config(check, name->path, &any) < 0)
		return -1;
	return any ? 0 : keep_named(check, name, old);
}

/* Which repository a further working tree belongs to. */
int judge_common(struct check *check, const struct name *name, bool old)
{
	return !name->is_link && git_look_stays_inside(&check->look, name->path) ?
	               keep_named(check, name, old) :
	               condemn(check, name->path, "would make git use the configuration of another directory");
}

/* The location of a further working tree: git only displays it, and checks whether it still exists. */
int judge_back(struct check *check, const struct name *name, bool old)
{
	return name->is_link ? condemn(check, name->path, "a symbolic link in place of a working tree's address")
	                     : keep_named(check, name, old);
}

int judge_git_file(struct check *check, const struct name *name, bool old)
{
	if (name->is_directory)
		return 0;
	if (name->is_link)
		return condemn(check, name->path, "a symbolic link in place of a git repository");
	return git_look_leads_inside(&check->look, name->path) ?
	               keep_named(check, name, old) :
	               condemn(check, name->path, "would make git use a repository that is not guarded");
}

/* The configuration of another version control system, by its text alone. */
static int judge_text(struct check *check, const struct name *name, bool old,
                      const char *(*reason_of)(const char *text, size_t length))
{
	size_t length;
	if (name->is_directory)
		return keep_named(check, name, old);
	const char *text = name->is_link ? NULL : git_look_text(&check->look, name->path, &length);
	if (!text)
		return condemn(check, name->path, "a configuration that cannot be read");
	const char *reason = length > GIT_CONFIG_SIZE_MAX ? "a configuration that is too large to be judged" :
	                                                    reason_of(text, length);
	return reason ? condemn(check, name->path, reason) : keep_named(check, name, old);
}

int judge_hgrc(struct check *check, const struct name *name, bool old)
{
	return judge_text(check, name, old, hg_config_reason);
}

int judge_jj(struct check *check, const struct name *name, bool old)
{
	return judge_text(check, name, old, jj_config_reason);
}

/* A file that says where the repository is. */
int judge_elsewhere(struct check *check, const struct name *name, bool old)
{
	(void)old;
	return name->is_directory
	               ? 0 : condemn(check, name->path, "would make a version control system use another repository");
}

/* Then it was judged with them. */
static bool lies_in_hooks(const struct check *check, const char *path)
{
	char parent[NAMES_ENTRY_SIZE];
	const char *slash = strrchr(path, '/');
	if (!slash || snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path) >= (int)sizeof(parent))
		return false;
	const char *leaf = strrchr(parent, '/');
	return leaf && !strcasecmp(leaf + 1, "hooks") && names_get(check->look.tree->names, NAME_PROTECTED, parent);
}

static bool is_usual_link(const struct check *check, const char *path)
{
	char text[NAMES_ENTRY_SIZE];
	const char *leaf;
	auto_close int fd = open_parent(check, path, &leaf);
	ssize_t length = fd < 0 ? -1 : readlinkat(fd, leaf, text, sizeof(text));
	if (length < 0 || length == sizeof(text))
		return false;
	text[length] = '\0';
	return git_file_is_usual_link(path, text);
}

int judge_link(struct check *check, const struct name *name, bool old)
{
	char path[GIT_LOOK_PATH_SIZE];
	(void)old;
	git_look_whole_path(check->look.tree, name->path, path);
	if (!git_file_is_gits_own(path))
		return condemn(check, name->path, "a symbolic link in place of a directory that has protected names");
	return lies_in_hooks(check, name->path) || is_usual_link(check, name->path)
		? 0 : condemn(check, name->path, "a symbolic link by which git would read or write elsewhere");
}

/* A project's file could only narrow, but a policy is to be written by the owner: a new one takes effect with the next
 * command, and an invalid one, such as a directory, refuses it. One that existed and was changed stays: without it,
 * nothing would be narrowed. */
int judge_policy(struct check *check, const struct name *name, bool old)
{
	return old ? keep_named(check, name, old) :
	             condemn(check, name->path, "a policy that the command wrote for itself");
}

/* Of an agent or an editor, which keeps writing its own while a command runs: what was there before stays. */
int judge_settings(struct check *check, const struct name *name, bool old)
{
	return old ? keep_named(check, name, old) :
	             condemn(check, name->path, "settings by which an agent or editor would run programs outside");
}

int judge_other(struct check *check, const struct name *name, bool old)
{
	return keep_named(check, name, old);
}

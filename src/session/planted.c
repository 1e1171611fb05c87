/* Judging what a command planted: see planted.h.
 *
 * One table says how each protected name is judged. Whatever it leads to is opened by descriptor with no symbolic link
 * on the way; a link in place of the name itself is never followed, since where it leads can be changed later. */
#include "session/planted.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/glob.h"
#include "session/git-config.h"
#include "session/names-look.h"
#include "session/quarantine.h"

/* More than this many hooks at once, and their directory goes as a whole. */
#define HOOKS_MAX 1024
#define HOOKS_LOOKED_AT_MAX (1000 * 1000)

struct check {
	struct arena *arena;
	int root_fd, quarantine_fd;
	const struct planted_before *before;
	struct planted planted;
};

/* All return 0, or -1 when memory is short. `old`: it was there before. */
typedef int judge_fn(struct check *check, const struct name *name, bool old);
static judge_fn judge_hooks, judge_config, judge_policy, judge_other;

/* The first row that matches. */
static const struct {
	const char *glob;
	judge_fn *judge;
} rows[] = {
	{ "**/.git/**/hooks", judge_hooks },
	{ "**/.git/**/config", judge_config },
	{ "**/.git/**/config.worktree", judge_config },
	{ "**/.cordon.toml", judge_policy },
	{ "**", judge_other },
};

/* ---- Reporting and moving --------------------------------------------------------------------------------------- */

static int report(struct check *check, const char *path, const char *note, const char *quarantined_as)
{
	struct planted *planted = &check->planted;
	if (!path || !note)
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
	planted->items[planted->count++] = (struct planted_file){ path, note, quarantined_as };
	return 0;
}

static int keep(struct check *check, const char *path, bool old)
{
	return report(check, path, old ? "changed by the command; kept" : "created by the command; kept", NULL);
}

/* The directory a path lies in, and its last component. */
static int open_parent(const struct check *check, const char *path, const char **ret_leaf)
{
	const char *slash = strrchr(path, '/');
	char *parent = arena_strndup(check->arena, path, slash ? (size_t)(slash - path) : 0);
	*ret_leaf = slash ? slash + 1 : path;
	return parent ? names_open(check->root_fd, parent, O_RDONLY | O_DIRECTORY) : -1;
}

/* `why` is why it is harmful; `fd` its directory, or -1 where that could not be opened. */
static int condemn_at(struct check *check, int fd, const char *leaf, const char *path, const char *why)
{
	if (!why)
		return -1;
	if (check->quarantine_fd < 0)
		return report(check, path, arena_printf(check->arena, "%s; kept", why), NULL);
	const char *as = fd < 0 ? NULL : quarantine_take(check->arena, fd, leaf, check->quarantine_fd);
	if (!as)
		return report(check, path,
		              arena_printf(check->arena, "%s; kept, since it could not be moved: %s", why, strerror(errno)), NULL);
	return report(check, path, arena_printf(check->arena, "%s; moved to quarantine", why), as);
}

static int condemn(struct check *check, const char *path, const char *why)
{
	const char *leaf;
	auto_close int fd = open_parent(check, path, &leaf);
	return condemn_at(check, fd, leaf, path, why);
}

/* ---- What was there before -------------------------------------------------------------------------------------- */

static int compare_seen(const void *a, const void *b)
{
	return strcmp(((const struct planted_seen *)a)->path, ((const struct planted_seen *)b)->path);
}

static const struct planted_seen *find_seen(const struct planted_before *before, const char *path)
{
	const struct planted_seen key = { .path = path };
	return before->count ? bsearch(&key, before->seen, before->count, sizeof(key), compare_seen) : NULL;
}

static bool is_as_seen(const struct planted_before *before, const char *path, const struct names_stat *stat)
{
	const struct planted_seen *seen = find_seen(before, path);
	return seen && seen->device == stat->device && seen->inode == stat->inode && seen->size == stat->size &&
	       seen->ctime_ns == stat->ctime_ns;
}

/* `depth` as git_config_judge() wants it: of the directory that a submodule's configuration lies in. */
static unsigned config_depth(const char *path)
{
	unsigned depth = 0;
	if (!strcasestr(path, ".git/modules/"))
		return 0;
	for (; *path; path++)
		depth += *path == '/';
	return depth;
}

/* False: it cannot be read as a regular file. */
static bool read_config(struct arena *arena, int root_fd, const char *path, struct git_config_verdict *ret_verdict)
{
	struct names_stat stat;
	auto_close int fd = names_open(root_fd, path, O_RDONLY | O_NONBLOCK);
	if (fd < 0 || !names_stat(fd, "", &stat) || !S_ISREG(stat.mode))
		return false;
	/* One byte more than is judged, so that a larger one is seen to be. */
	size_t length = 0, room = stat.size < GIT_CONFIG_SIZE_MAX ? stat.size + 1 : GIT_CONFIG_SIZE_MAX + 1;
	char *text = arena_alloc(arena, room);
	for (ssize_t got; text && length < room; length += (size_t)got) {
		got = read(fd, text + length, room - length);
		if (got < 0)
			return false;
		if (!got)
			break;
	}
	if (!text)
		return false;
	git_config_judge(text, length, config_depth(path), ret_verdict);
	return true;
}

static int add_seen(struct arena *arena, struct planted_before *before, int fd, const char *leaf, const char *path)
{
	struct names_stat stat;
	if (!path)
		return -1;
	if (!names_stat(fd, leaf, &stat))
		return 0;
	if (before->count == before->capacity) {
		size_t capacity = before->capacity ? before->capacity * 2 : 64;
		struct planted_seen *seen = arena_alloc(arena, capacity * sizeof(*seen));
		if (!seen)
			return -1;
		if (before->count)
			memcpy(seen, before->seen, before->count * sizeof(*seen));
		before->seen = seen;
		before->capacity = capacity;
	}
	before->seen[before->count++] = (struct planted_seen){
		.path = path, .device = stat.device, .inode = stat.inode, .size = stat.size, .ctime_ns = stat.ctime_ns,
	};
	return 0;
}

/* Calls `take` for each entry. -1 when memory is short. */
static int each_entry(int root_fd, const char *path, int (*take)(void *arg, int fd, const char *leaf), void *arg)
{
	int fd = names_open(root_fd, path, O_RDONLY | O_DIRECTORY), status = 0;
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		cleanup_close(&fd);
		return 0;
	}
	struct dirent *entry;
	for (size_t i = 0; i < HOOKS_LOOKED_AT_MAX && status == 0 && (entry = readdir(directory)); i++)
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			status = take(arg, fd, entry->d_name);
	closedir(directory);
	return status;
}

struct recording {
	struct arena *arena;
	struct planted_before *before;
	const char *directory;
};

static int record_entry(void *arg, int fd, const char *leaf)
{
	struct recording *recording = arg;
	return add_seen(recording->arena, recording->before, fd, leaf,
	                arena_printf(recording->arena, "%s/%s", recording->directory, leaf));
}

int planted_record(struct arena *arena, int root_fd, const struct names *names, bool contents,
                   struct planted_before *ret_before, struct cordon_error *err)
{
	struct planted_before before = { .names = names, .contents = contents };
	for (size_t i = 0; contents && i < names->count; i++) {
		const struct name *name = &names->items[i];
		struct recording recording = { arena, &before, name->path };
		struct git_config_verdict verdict;
		if (name->kind != NAME_PROTECTED)
			continue;
		size_t count = before.count;
		if (add_seen(arena, &before, root_fd, name->path, name->path) < 0)
			return fail_oom(err);
		if (before.count > count && !name->is_directory && read_config(arena, root_fd, name->path, &verdict))
			before.seen[count].digest = verdict.digest;
		if (name->is_directory && each_entry(root_fd, name->path, record_entry, &recording) < 0)
			return fail_oom(err);
	}
	if (before.count)
		qsort(before.seen, before.count, sizeof(*before.seen), compare_seen);
	*ret_before = before;
	return 0;
}

bool planted_unlock(int root_fd, const struct names *before, const struct names *after)
{
	bool unlocked = false;
	for (size_t i = 0; i < after->count; i++) {
		const struct name *name = &after->items[i];
		char self[64];
		struct names_stat stat;
		if (!name->is_closed || names_get(before, NAME_MASKED, name->path))
			continue;
		auto_close int fd = names_open(root_fd, name->path, O_PATH | O_DIRECTORY);
		/* Where nothing can be reached either, nothing can run: a later command that opens it is judged then. */
		if (fd < 0 || !names_stat(fd, "", &stat) || !(stat.mode & S_IXUSR))
			continue;
		/* fchmod() refuses an O_PATH descriptor, and no other can be had */
		snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		unlocked |= chmod(self, (stat.mode & 07777) | S_IRWXU) == 0;
	}
	return unlocked;
}

/* ---- Judging ---------------------------------------------------------------------------------------------------- */

struct hooks {
	struct check *check;
	const char *directory;
	struct strings found;
};

static bool is_sample(const char *name)
{
	size_t length = strlen(name);
	return length >= 7 && !strcmp(name + length - 7, ".sample");
}

static int judge_hook(void *arg, int fd, const char *leaf)
{
	struct hooks *hooks = arg;
	struct arena *arena = hooks->check->arena;
	struct names_stat stat;
	if (is_sample(leaf) || !names_stat(fd, leaf, &stat) ||
	    !(S_ISLNK(stat.mode) || (S_ISREG(stat.mode) && stat.mode & 0111)) || hooks->found.count > HOOKS_MAX)
		return 0;
	char *path = arena_printf(arena, "%s/%s", hooks->directory, leaf);
	if (path && is_as_seen(hooks->check->before, path, &stat))
		return 0;
	return strings_add(arena, &hooks->found, path);
}

static int judge_hooks(struct check *check, const struct name *name, bool old)
{
	struct hooks hooks = { .check = check, .directory = name->path };
	if (name->is_link)
		return condemn(check, name->path, "a symbolic link in place of git's hooks");
	if (!name->is_directory)
		return keep(check, name->path, old);
	if (each_entry(check->root_fd, name->path, judge_hook, &hooks) < 0)
		return -1;
	if (hooks.found.count > HOOKS_MAX)
		return condemn(check, name->path, "git hooks without number that would run");
	auto_close int fd = hooks.found.count ? names_open(check->root_fd, name->path, O_RDONLY | O_DIRECTORY) : -1;
	for (size_t i = 0; i < hooks.found.count; i++) {
		const char *path = hooks.found.items[i];
		if (condemn_at(check, fd, path + strlen(name->path) + 1, path, "a git hook that would run") < 0)
			return -1;
	}
	return hooks.found.count ? 0 : keep(check, name->path, old);
}

static int judge_config(struct check *check, const struct name *name, bool old)
{
	struct git_config_verdict verdict;
	const struct planted_seen *seen = find_seen(check->before, name->path);
	if (name->is_link)
		return condemn(check, name->path, "a symbolic link in place of git's configuration");
	if (name->is_directory)
		return keep(check, name->path, old);
	if (!read_config(check->arena, check->root_fd, name->path, &verdict))
		return condemn(check, name->path, "git's configuration, but it cannot be read");
	/* What its owner had set up before is not the command's doing. */
	if (!verdict.reason || (seen && seen->digest == verdict.digest))
		return keep(check, name->path, old);
	return condemn(check, name->path, arena_printf(check->arena, "%s %s", verdict.key, verdict.reason));
}

/* It could only narrow, but a policy is for people to write: one that is new takes effect with the next command. One that
 * was there and is changed stays: without it, nothing would be narrowed at all. */
static int judge_policy(struct check *check, const struct name *name, bool old)
{
	return old || name->is_directory ? keep(check, name->path, old)
	                                 : condemn(check, name->path, "a policy that the command wrote for itself");
}

static int judge_other(struct check *check, const struct name *name, bool old)
{
	return keep(check, name->path, old);
}

/* Whether an existing name, or a file directly in it, is other than it was. */
struct comparison {
	const struct planted_before *before;
	struct arena *arena;
	const char *directory;
	bool changed;
};

static int compare_entry(void *arg, int fd, const char *leaf)
{
	struct comparison *comparison = arg;
	struct names_stat stat;
	char *path = arena_printf(comparison->arena, "%s/%s", comparison->directory, leaf);
	if (!path)
		return -1;
	comparison->changed |= names_stat(fd, leaf, &stat) && !is_as_seen(comparison->before, path, &stat);
	return 0;
}

static int judge(struct check *check, const struct name *name, struct cordon_error *err)
{
	bool old = names_get(check->before->names, NAME_PROTECTED, name->path);
	struct comparison comparison = { check->before, check->arena, name->path, false };
	struct names_stat stat;
	if (old && (!check->before->contents || !names_stat(check->root_fd, name->path, &stat)))
		return 0;
	if (old && name->is_directory && each_entry(check->root_fd, name->path, compare_entry, &comparison) < 0)
		return fail_oom(err);
	if (old && !comparison.changed && is_as_seen(check->before, name->path, &stat))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct glob glob;
		if (glob_compile(check->arena, rows[i].glob, GLOB_FOLD_CASE, &glob, err) < 0)
			return -1;
		if (glob_match(&glob, name->path))
			return rows[i].judge(check, name, old) < 0 ? fail_oom(err) : 0;
	}
	return 0;
}

int planted_check(struct arena *arena, int root_fd, const struct planted_before *before, const struct names *after,
                  int quarantine_fd, struct planted *ret_planted, struct cordon_error *err)
{
	struct check check = { .arena = arena, .root_fd = root_fd, .quarantine_fd = quarantine_fd, .before = before };
	for (size_t i = 0; i < after->count; i++)
		if (after->items[i].kind == NAME_PROTECTED && judge(&check, &after->items[i], err) < 0)
			return -1;
	*ret_planted = check.planted;
	return 0;
}

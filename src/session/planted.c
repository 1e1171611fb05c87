/* Judging what a command planted: see planted.h.
 *
 * One table says how each protected name is judged. Whatever it leads to is opened by descriptor with no symbolic link
 * on the way; a link in place of the name itself is never followed, since where it leads can be changed later.
 * A name that is the same inode with the same change time as before is not looked into, and names_find() has just asked
 * for both: an unchanged repository costs no call here but one for each hook in it, and those that tell whether it is one. */
#include "session/planted.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/glob.h"
#include "session/git-config.h"
#include "session/git-file.h"
#include "session/names-look.h"
#include "session/names-table.h"
#include "session/quarantine.h"

/* More than this many hooks at once, or entries among which they could be, and their directory goes as a whole. */
#define HOOKS_MAX 1024
#define HOOKS_LOOKED_AT_MAX (10 * 1000)

/* No command that means well leaves as much. */
#define JUDGED_MAX 10000
#define JUDGED_US (2 * 1000 * 1000)
#define SEEN_MAX (64 * 1024)
#define RECORDED_MAX (1000 * 1000)

#define PATH_SIZE (NAMES_PATH_MAX + NAMES_NAME_MAX + 2)

struct check {
	struct arena *arena;
	int root_fd, quarantine_fd;
	const struct planted_before *before;
	const struct names *names;      /* of now */
	uint64_t deadline_us;
	size_t judged;
	char *buffer;                   /* what a file is read into: GIT_CONFIG_SIZE_MAX + 1 bytes, one for all of them */
	struct glob *globs;             /* of the rows */
	struct planted planted;
};

/* All return 0, or -1 when memory is short. `old`: it was there before. */
typedef int judge_fn(struct check *check, const struct name *name, bool old);
static judge_fn judge_hooks, judge_config, judge_common, judge_back, judge_file, judge_policy, judge_other;

/* The first row that matches. */
static const struct row {
	const char *glob;
	judge_fn *judge;
} rows[] = {
	{ "**/.git/**/hooks", judge_hooks },
	{ "**/.git/**/config", judge_config },
	{ "**/.git/**/config.worktree", judge_config },
	{ "**/.git/**/commondir", judge_common },
	{ "**/.git/**/gitdir", judge_back },
	{ "**/.git", judge_file },
	{ "**/.cordon.toml", judge_policy },
	{ "**", judge_other },
};

static const struct row *find_row(struct check *check, const char *path, struct cordon_error *err)
{
	if (!check->globs) {
		struct glob *globs = arena_alloc(check->arena, ARRAY_SIZE(rows) * sizeof(*globs));
		for (size_t i = 0; globs && i < ARRAY_SIZE(rows); i++)
			if (glob_compile(check->arena, rows[i].glob, GLOB_FOLD_CASE, &globs[i], err) < 0)
				return NULL;
		if (!globs) {
			fail_oom(err);
			return NULL;
		}
		check->globs = globs;
	}
	size_t i = 0;
	while (i < ARRAY_SIZE(rows) - 1 && !glob_match(&check->globs[i], path))
		i++;
	return &rows[i];
}

/* ---- Reporting and moving --------------------------------------------------------------------------------------- */

static int report(struct check *check, const char *path, const char *note, const char *quarantined_as, bool harmful)
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
	planted->items[planted->count++] = (struct planted_file){ path, note, quarantined_as, harmful };
	planted->harmful += harmful;
	return 0;
}

static int keep(struct check *check, const char *path, bool old)
{
	return report(check, path, old ? "changed by the command; kept" : "created by the command; kept", NULL, false);
}

/* The directory a path lies in, and its last component. */
static int open_parent(const struct check *check, const char *path, const char **ret_leaf)
{
	char parent[PATH_SIZE];
	const char *slash = strrchr(path, '/');
	*ret_leaf = slash ? slash + 1 : path;
	if (snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 0, path) >= (int)sizeof(parent))
		return -1;
	return names_open(check->root_fd, parent, O_RDONLY | O_DIRECTORY);
}

/* `why` is why it is harmful; `fd` its directory, or -1 where that could not be opened. */
static int condemn_at(struct check *check, int fd, const char *leaf, const char *path, const char *why)
{
	if (!why)
		return -1;
	if (check->quarantine_fd < 0)
		return report(check, path, arena_printf(check->arena, "%s; kept", why), NULL, true);
	const char *as = fd < 0 ? NULL : quarantine_take(check->arena, fd, leaf, check->quarantine_fd);
	if (!as)
		return report(check, path,
		              arena_printf(check->arena, "%s; kept, since it could not be moved: %s", why, strerror(errno)),
		              NULL, true);
	return report(check, path, arena_printf(check->arena, "%s; moved to quarantine", why), as, true);
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

static bool is_as_seen(const struct planted_seen *seen, const struct names_stat *stat)
{
	return seen && seen->device == stat->device && seen->inode == stat->inode && seen->size == stat->size &&
	       seen->ctime_ns == stat->ctime_ns;
}

/* Whether a file in a directory that is itself unchanged, so that it has the same names in it, is other than it was. */
static bool entries_changed(const struct check *check, const char *directory)
{
	const struct planted_before *before = check->before;
	size_t low = 0, high = before->count, length = strlen(directory);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const char *path = before->seen[middle].path;
		int order = strncmp(path, directory, length);
		if (order < 0 || (order == 0 && (unsigned char)path[length] < '/'))
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < before->count; low++) {
		const struct planted_seen *seen = &before->seen[low];
		struct names_stat stat;
		if (strncmp(seen->path, directory, length) || seen->path[length] != '/')
			break;
		if (names_stat(check->root_fd, seen->path, &stat) && !is_as_seen(seen, &stat))
			return true;
	}
	return false;
}

/* False: it cannot be read as a regular file. What is longer than a configuration may be is cut one byte later. */
static bool read_file(struct check *check, const char *path, size_t *ret_length)
{
	struct names_stat stat;
	auto_close int fd = names_open(check->root_fd, path, O_RDONLY | O_NONBLOCK);
	if (fd < 0 || !names_stat(fd, "", &stat) || !S_ISREG(stat.mode))
		return false;
	if (!check->buffer && !(check->buffer = malloc(GIT_CONFIG_SIZE_MAX + 1)))
		return false;
	size_t length = 0;
	for (ssize_t got; length < GIT_CONFIG_SIZE_MAX + 1; length += (size_t)got) {
		got = read(fd, check->buffer + length, GIT_CONFIG_SIZE_MAX + 1 - length);
		if (got < 0)
			return false;
		if (!got)
			break;
	}
	*ret_length = length;
	return true;
}

/* Where a `.git` file leads. */
static bool read_git_file(struct check *check, const char *path, char *ret_target, size_t size)
{
	size_t length;
	return read_file(check, path, &length) &&
	       git_file_target(check->buffer, length, path, check->before->root_path, ret_target, size);
}

/* Whether what a submodule's configuration names is really, with no link on the way, the working tree that leads to it: its
 * `.git` is a protected name, by which it cannot be turned into a link later. */
static bool has_worktree(struct check *check, const char *path, const char *worktree)
{
	char tree[NAMES_PATH_MAX], file[NAMES_PATH_MAX + 8], target[NAMES_PATH_MAX];
	size_t length = (size_t)(strrchr(path, '/') - path);
	if (!git_file_follow(worktree, path, tree, sizeof(tree)))
		return false;
	snprintf(file, sizeof(file), "%s/.git", tree);
	return read_git_file(check, file, target, sizeof(target)) && strlen(target) == length && !memcmp(target, path, length);
}

static bool read_config(struct check *check, const char *path, struct git_config_verdict *ret_verdict)
{
	size_t length;
	bool is_module = strcasestr(path, ".git/modules/") || strcasestr(path, ".git/worktrees/");
	if (!read_file(check, path, &length))
		return false;
	git_config_judge(check->buffer, length, is_module, ret_verdict);
	if (*ret_verdict->worktree && !ret_verdict->reason && !has_worktree(check, path, ret_verdict->worktree)) {
		strcpy(ret_verdict->key, "core.worktree");
		ret_verdict->reason = GIT_CONFIG_ELSEWHERE;
	}
	return true;
}

/* Whether a repository that has a working tree has this one, the directory that `path` lies in. */
static bool is_worktree_of(struct check *check, const char *path, const char *config)
{
	char tree[NAMES_PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t length;
	struct git_config_verdict verdict;
	if (!read_file(check, config, &length))
		return false;
	git_config_judge(check->buffer, length, true, &verdict);
	if (!*verdict.worktree)
		return true;
	length = slash ? (size_t)(slash - path) : 0;
	return git_file_follow(verdict.worktree, config, tree, sizeof(tree)) && strlen(tree) == length && !memcmp(tree, path, length);
}

/* Whether a `.git` file leads to a repository whose configuration is a protected name itself, by which that directory
 * cannot be taken away or turned into a link either. */
static bool leads_inside(struct check *check, const char *path)
{
	char target[NAMES_PATH_MAX], file[NAMES_PATH_MAX + 32];
	struct names_stat stat;
	if (!read_git_file(check, path, target, sizeof(target)))
		return false;
	bool is_further = git_file_is_worktree(target);
	snprintf(file, sizeof(file), "%s/%s", target, is_further ? "commondir" : "config");
	const struct name *name = names_get(check->names, NAME_PROTECTED, file);
	auto_close int fd = name && !name->is_link ? names_open(check->root_fd, file, O_PATH) : -1;
	return fd >= 0 && names_stat(fd, "", &stat) && S_ISREG(stat.mode) && (is_further || is_worktree_of(check, path, file));
}

static int add_seen(struct arena *arena, struct planted_before *before, const struct planted_seen *seen)
{
	if (!seen->path)
		return -1;
	if (before->count == before->capacity) {
		size_t capacity = before->capacity ? before->capacity * 2 : 64;
		struct planted_seen *grown = arena_alloc(arena, capacity * sizeof(*grown));
		if (!grown)
			return -1;
		if (before->count)
			memcpy(grown, before->seen, before->count * sizeof(*grown));
		before->seen = grown;
		before->capacity = capacity;
	}
	before->seen[before->count++] = *seen;
	return 0;
}

/* Calls `take` for each entry. 1 when there are too many: then it was called for some of them. -1 when memory is short. */
static int each_entry(int root_fd, const char *path, size_t max, int (*take)(void *arg, int fd, const char *leaf), void *arg)
{
	int fd = names_open(root_fd, path, O_RDONLY | O_DIRECTORY), status = 0;
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		cleanup_close(&fd);
		return 0;
	}
	struct dirent *entry;
	for (size_t i = 0; status == 0 && (entry = readdir(directory)); i++)
		if (i >= max)
			status = 1;
		else if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			status = take(arg, fd, entry->d_name);
	closedir(directory);
	return status;
}

static bool is_sample(const char *name)
{
	size_t length = strlen(name);
	return length >= 7 && !strcmp(name + length - 7, ".sample");
}

/* ---- Grounds: where git looks for a repository if it finds none beneath ------------------------------------------ */

/* How much of a path lies above the first `.git` in it. */
static size_t above_git(const char *path)
{
	for (const char *at = path; (at = strcasestr(at, ".git")); at++)
		if (at > path && at[-1] == '/' && (!at[4] || at[4] == '/'))
			return (size_t)(at - path) - 1;
	return 0;
}

typedef int ground_fn(struct check *check, const char *ground, struct planted_before *before);

/* Calls `take` for the root, and for every directory that holds a repository that was known, or lies above one. */
static int each_ground(struct check *check, ground_fn *take, struct planted_before *before)
{
	const struct names *names = check->before->names;
	const char *last = "";
	size_t last_length = 0;
	int status = take(check, "", before);
	for (size_t i = 0; i < names->count && status == 0; i++) {
		const char *path = names->items[i].path;
		size_t length = names->items[i].kind == NAME_PROTECTED ? above_git(path) : 0;
		for (size_t end = 1; end <= length && status == 0; end++) {
			bool taken = end <= last_length && !strncmp(last, path, end) && last[end] == '/';
			if (path[end] != '/' || taken)
				continue;
			const char *ground = arena_strndup(check->arena, path, end);
			status = ground ? take(check, ground, before) : -1;
		}
		if (length) {
			last = path;
			last_length = length;
		}
	}
	return status;
}

static const char *in_ground(struct check *check, const char *ground, const char *leaf)
{
	return arena_printf(check->arena, "%s%s%s", ground, *ground ? "/" : "", leaf);
}

static bool has(const struct check *check, const char *ground, const char *leaf)
{
	char path[PATH_SIZE];
	struct names_stat stat;
	return snprintf(path, sizeof(path), "%s%s%s", ground, *ground ? "/" : "", leaf) < (int)sizeof(path) &&
	       names_stat(check->root_fd, path, &stat);
}

/* As git's is_git_directory() goes by. */
static bool is_repository(const struct check *check, const char *ground)
{
	return has(check, ground, "HEAD") &&
	       (has(check, ground, "commondir") || (has(check, ground, "objects") && has(check, ground, "refs")));
}

static bool holds_repository(const struct check *check, const char *ground)
{
	return has(check, ground, ".git/HEAD") && has(check, ground, ".git/objects") && has(check, ground, ".git/refs");
}

struct recording {
	struct arena *arena;
	struct planted_before *before;
	const char *directory;
	bool is_hooks;
};

static int record_entry(void *arg, int fd, const char *leaf)
{
	struct recording *recording = arg;
	struct names_stat stat;
	if ((recording->is_hooks && is_sample(leaf)) || !names_stat(fd, leaf, &stat))
		return 0;
	if (recording->before->count >= SEEN_MAX) {
		recording->before->complete = false;
		return 0;
	}
	return add_seen(recording->arena, recording->before, &(struct planted_seen){
		.path = arena_printf(recording->arena, "%s/%s", recording->directory, leaf),
		.device = stat.device, .inode = stat.inode, .size = stat.size, .ctime_ns = stat.ctime_ns,
	});
}

/* What its owner had a configuration run. */
static int record_config(struct check *check, const char *path, struct planted_before *before)
{
	struct git_config_verdict verdict;
	struct planted_seen seen = { .path = path };
	if (!read_config(check, path, &verdict) || !verdict.reason || !verdict.comparable)
		return 0;
	unsigned char *digest = arena_alloc(check->arena, sizeof(verdict.digest));
	if (!digest)
		return -1;
	seen.digest = memcpy(digest, verdict.digest, sizeof(verdict.digest));
	return add_seen(check->arena, before, &seen);
}

static int record_directory(struct check *check, const char *path, bool is_hooks, struct planted_before *before)
{
	struct recording recording = { check->arena, before, path, is_hooks };
	return each_entry(check->root_fd, path, RECORDED_MAX, record_entry, &recording) < 0 ? -1 : 0;
}

static int record_name(struct check *check, const struct name *name, struct planted_before *before,
                       struct cordon_error *err)
{
	const struct row *row = find_row(check, name->path, err);
	int status = 0;
	if (!row)
		return -1;
	/* Nothing keeps a repository as it is, nor where it is: what could run in it is never what was there before. */
	if (planted_is_repository(check->root_fd, name))
		return 0;
	if (name->is_directory)
		status = record_directory(check, name->path, row->judge == judge_hooks, before);
	else if (!name->is_link && row->judge == judge_config)
		status = record_config(check, name->path, before);
	else if (!name->is_link && row->judge == judge_file && leads_inside(check, name->path))
		status = add_seen(check->arena, before, &(struct planted_seen){ .path = name->path });
	return status < 0 ? fail_oom(err) : 0;
}

/* What makes a ground a repository itself, and that it holds one. */
static const char *const ground_files[] = { "config", "config.worktree", "commondir", "hooks" };
#define GROUND_CONFIGS 2

static int record_ground(struct check *check, const char *ground, struct planted_before *before)
{
	if (holds_repository(check, ground) &&
	    add_seen(check->arena, before, &(struct planted_seen){ .path = in_ground(check, ground, ".git/HEAD") }) < 0)
		return -1;
	for (size_t i = 0; is_repository(check, ground) && i < ARRAY_SIZE(ground_files); i++) {
		const char *path = in_ground(check, ground, ground_files[i]);
		struct names_stat stat;
		int status = 0;
		if (!path)
			return -1;
		if (!names_stat(check->root_fd, path, &stat))
			continue;
		if (S_ISDIR(stat.mode))
			status = record_directory(check, path, true, before);
		else if (S_ISREG(stat.mode) && i < GROUND_CONFIGS)
			status = record_config(check, path, before);
		else
			status = add_seen(check->arena, before, &(struct planted_seen){
				.path = path, .device = stat.device, .inode = stat.inode, .size = stat.size, .ctime_ns = stat.ctime_ns,
			});
		if (status < 0)
			return -1;
	}
	return 0;
}

int planted_record(struct arena *arena, int root_fd, const char *root_path, const struct names *names, uint64_t budget_us,
                   struct planted_before *ret_before, struct cordon_error *err)
{
	struct planted_before before = { .names = names, .root_path = root_path, .complete = true };
	struct check check = { .arena = arena, .root_fd = root_fd, .before = &before, .names = names };
	uint64_t start_us = names_now_us();
	int status = each_ground(&check, record_ground, &before) < 0 ? fail_oom(err) : 0;
	for (size_t i = 0; i < names->count && status == 0; i++) {
		if (names->items[i].kind != NAME_PROTECTED)
			continue;
		if (names_now_us() - start_us > budget_us || before.count >= SEEN_MAX) {
			before.complete = false;
			break;
		}
		status = record_name(&check, &names->items[i], &before, err);
	}
	free(check.buffer);
	if (status < 0)
		return -1;
	if (before.count)
		qsort(before.seen, before.count, sizeof(*before.seen), compare_seen);
	*ret_before = before;
	return 0;
}

bool planted_is_repository(int root_fd, const struct name *name)
{
	char path[PATH_SIZE];
	struct names_stat stat;
	return name->is_directory && strcasestr(name->path, ".git/modules/") &&
	       snprintf(path, sizeof(path), "%s/HEAD", name->path) < (int)sizeof(path) && names_stat(root_fd, path, &stat);
}

bool planted_was_covered(const struct names *before, const struct name *name)
{
	char part[PATH_SIZE], *slash;
	const struct name *was = names_get(before, NAME_MASKED, name->path);
	if (was && (!was->is_link || (name->is_link && was->inode == name->inode && was->ctime_ns == name->ctime_ns)))
		return true;
	snprintf(part, sizeof(part), "%s", name->path);
	while ((slash = strrchr(part, '/'))) {
		*slash = '\0';
		was = names_get(before, NAME_MASKED, part);
		if (was && !was->is_link)
			return true;
	}
	return false;
}

static bool open_up(int fd)
{
	const mode_t needed = S_IRUSR | S_IXUSR;
	struct names_stat stat;
	char self[64];
	if (!names_stat(fd, "", &stat) || (stat.mode & needed) == needed)
		return false;
	/* fchmod() refuses an O_PATH descriptor, and no other can be had */
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return chmod(self, (stat.mode & 07777) | S_IRWXU) == 0;
}

bool planted_unlock(int root_fd, const struct names *before, const struct names *after)
{
	bool unlocked = false;
	for (size_t i = 0; i < after->count; i++) {
		const struct name *name = &after->items[i];
		if (!name->is_closed || planted_was_covered(before, name))
			continue;
		auto_close int fd = names_open(root_fd, name->path, O_PATH | O_DIRECTORY);
		unlocked |= fd >= 0 && open_up(fd);
	}
	return unlocked;
}

void planted_unlock_root(int root_fd)
{
	if (geteuid())
		open_up(root_fd);
}

/* ---- Judging ---------------------------------------------------------------------------------------------------- */

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
	char path[PATH_SIZE];
	if (is_sample(leaf) || hooks->found.count > HOOKS_MAX || !names_stat(fd, leaf, &stat) ||
	    !(S_ISLNK(stat.mode) || (S_ISREG(stat.mode) && (stat.mode & 0111 || stat.links > 1))))
		return 0;
	snprintf(path, sizeof(path), "%s/%s", hooks->directory, leaf);
	if (is_as_seen(find_seen(hooks->check->before, path), &stat))
		return 0;
	return strings_add(hooks->check->arena, &hooks->found, arena_strdup(hooks->check->arena, path));
}

static int condemn_hooks(struct check *check, const char *directory, bool *ret_any)
{
	struct hooks hooks = { .check = check, .directory = directory };
	int status = each_entry(check->root_fd, directory, HOOKS_LOOKED_AT_MAX, judge_hook, &hooks);
	*ret_any = status > 0 || hooks.found.count;
	if (status < 0)
		return -1;
	if (status > 0 || hooks.found.count > HOOKS_MAX)
		return condemn(check, directory, "git hooks without number that could run");
	auto_close int fd = hooks.found.count ? names_open(check->root_fd, directory, O_RDONLY | O_DIRECTORY) : -1;
	for (size_t i = 0; i < hooks.found.count; i++) {
		const char *path = hooks.found.items[i];
		if (condemn_at(check, fd, path + strlen(directory) + 1, path, "a git hook that would run") < 0)
			return -1;
	}
	return 0;
}

static int judge_hooks(struct check *check, const struct name *name, bool old)
{
	bool any;
	if (name->is_link)
		return condemn(check, name->path, "a symbolic link in place of git's hooks");
	if (!name->is_directory)
		return keep(check, name->path, old);
	if (condemn_hooks(check, name->path, &any) < 0)
		return -1;
	return any || planted_is_repository(check->root_fd, name) ? 0 : keep(check, name->path, old);
}

/* What its owner had set up before is not the command's doing. */
static bool is_owners(const struct check *check, const char *path, const struct git_config_verdict *verdict)
{
	const struct planted_seen *seen = find_seen(check->before, path);
	return seen && seen->digest && verdict->comparable && !memcmp(seen->digest, verdict->digest, sizeof(verdict->digest));
}

static int condemn_config(struct check *check, const char *path, const struct git_config_verdict *verdict)
{
	return condemn(check, path, arena_printf(check->arena, "%s %s", verdict->key, verdict->reason));
}

static int judge_config(struct check *check, const struct name *name, bool old)
{
	struct git_config_verdict verdict;
	if (name->is_link)
		return condemn(check, name->path, "a symbolic link in place of git's configuration");
	if (name->is_directory)
		return keep(check, name->path, old);
	if (!read_config(check, name->path, &verdict))
		return condemn(check, name->path, "git's configuration, but it cannot be read");
	if (!verdict.reason || is_owners(check, name->path, &verdict))
		return keep(check, name->path, old);
	return condemn_config(check, name->path, &verdict);
}

/* Which repository a further working tree belongs to: `git worktree` writes the one value that stays inside it. */
static int judge_common(struct check *check, const struct name *name, bool old)
{
	char directory[PATH_SIZE];
	size_t length;
	snprintf(directory, sizeof(directory), "%.*s", (int)(strlen(name->path) - strlen("/commondir")), name->path);
	if (!name->is_link && git_file_is_worktree(directory) && read_file(check, name->path, &length) &&
	    git_file_is_up_two(check->buffer, length))
		return keep(check, name->path, old);
	return condemn(check, name->path, "would make git use the configuration of another directory");
}

/* Where a further working tree is: git only tells people, and looks whether it still exists. */
static int judge_back(struct check *check, const struct name *name, bool old)
{
	return name->is_link ? condemn(check, name->path, "a symbolic link in place of a working tree's address")
	                     : keep(check, name->path, old);
}

static int judge_file(struct check *check, const struct name *name, bool old)
{
	if (name->is_directory)
		return 0;
	if (name->is_link)
		return condemn(check, name->path, "a symbolic link in place of a git repository");
	return leads_inside(check, name->path) ? keep(check, name->path, old)
	                                       : condemn(check, name->path, "would make git use a repository that is not guarded");
}

/* It could only narrow, but a policy is for people to write: one that is new takes effect with the next command, and what is
 * none, such as a directory, refuses it. One that was there and is changed stays: without it, nothing would be narrowed at
 * all. */
static int judge_policy(struct check *check, const struct name *name, bool old)
{
	return old ? keep(check, name->path, old) : condemn(check, name->path, "a policy that the command wrote for itself");
}

static int judge_other(struct check *check, const struct name *name, bool old)
{
	return keep(check, name->path, old);
}

/* A file of a repository that is none of a `.git`: nothing keeps it from change, and what is harmless is not worth a word. */
static int judge_ground_file(struct check *check, const char *path, bool is_config)
{
	struct names_stat stat;
	struct git_config_verdict verdict;
	bool any;
	if (!names_stat(check->root_fd, path, &stat))
		return 0;
	if (S_ISDIR(stat.mode))
		return condemn_hooks(check, path, &any);
	if (!is_config || !S_ISREG(stat.mode))
		return is_as_seen(find_seen(check->before, path), &stat)
			? 0 : condemn(check, path, "would make git use the configuration of another directory");
	if (!read_config(check, path, &verdict))
		return condemn(check, path, "git's configuration, but it cannot be read");
	return !verdict.reason || is_owners(check, path, &verdict) ? 0 : condemn_config(check, path, &verdict);
}

static int judge_ground(struct check *check, const char *ground, struct planted_before *before)
{
	(void)before;
	const char *head = in_ground(check, ground, ".git/HEAD");
	if (!head)
		return -1;
	if (find_seen(check->before, head) && has(check, ground, ".git") && !holds_repository(check, ground) &&
	    report(check, in_ground(check, ground, ".git"), "was a git repository and is none any more; kept", NULL, false) < 0)
		return -1;
	for (size_t i = 0; is_repository(check, ground) && i < ARRAY_SIZE(ground_files); i++) {
		const char *path = in_ground(check, ground, ground_files[i]);
		if (!path || judge_ground_file(check, path, i < GROUND_CONFIGS) < 0)
			return -1;
	}
	return 0;
}

static int judge(struct check *check, const struct name *name, bool old, struct cordon_error *err)
{
	const struct row *row = find_row(check, name->path, err);
	bool is_file = !name->is_directory && !name->is_link;
	int status;
	if (!row)
		return -1;
	if (check->judged++ >= JUDGED_MAX || names_now_us() > check->deadline_us)
		status = condemn(check, name->path, "too much to be judged");
	else if (!old && is_file && name->links > 1)
		status = condemn(check, name->path, "has a second name by which it can be changed");
	else
		status = row->judge(check, name, old);
	return status < 0 ? fail_oom(err) : 0;
}

static bool is_git_file(const struct name *name)
{
	const char *slash = strrchr(name->path, '/');
	return !strcasecmp(slash ? slash + 1 : name->path, ".git");
}

/* One that is unchanged itself, and yet where it leads is no longer what it was. */
static int look_again(struct check *check, const struct name *name, struct cordon_error *err)
{
	if (name->is_link || !find_seen(check->before, name->path) || leads_inside(check, name->path))
		return 0;
	return condemn(check, name->path, "no longer leads to a repository that is guarded") < 0 ? fail_oom(err) : 0;
}

/* In turn: what was there before, which must not drown in what is new; then that; then, when all configurations that had
 * to go are gone, the files that lead to them. */
enum turn { TURN_OLD, TURN_NEW, TURN_GIT_FILES, TURN_MAX };

static int take_turn(struct check *check, enum turn turn, const struct name *name, struct cordon_error *err)
{
	const struct name *was = names_get(check->before->names, NAME_PROTECTED, name->path);
	if (turn != (is_git_file(name) ? TURN_GIT_FILES : was ? TURN_OLD : TURN_NEW))
		return 0;
	bool same = was && was->device == name->device && was->inode == name->inode && was->ctime_ns == name->ctime_ns;
	if (!same || planted_is_repository(check->root_fd, name) || (name->is_directory && entries_changed(check, name->path)))
		return judge(check, name, was, err);
	return turn == TURN_GIT_FILES ? look_again(check, name, err) : 0;
}

int planted_check(struct arena *arena, int root_fd, const struct planted_before *before, const struct names *after,
                  int quarantine_fd, struct planted *ret_planted, struct cordon_error *err)
{
	struct check check = { .arena = arena, .root_fd = root_fd, .quarantine_fd = quarantine_fd, .before = before,
	                       .names = after, .deadline_us = names_now_us() + JUDGED_US };
	int status = 0;
	for (enum turn turn = 0; turn < TURN_MAX; turn++)
		for (size_t i = 0; i < after->count && status == 0; i++)
			if (after->items[i].kind == NAME_PROTECTED)
				status = take_turn(&check, turn, &after->items[i], err);
	if (status == 0 && each_ground(&check, judge_ground, NULL) < 0)
		status = fail_oom(err);
	free(check.buffer);
	if (status == 0)
		*ret_planted = check.planted;
	return status;
}

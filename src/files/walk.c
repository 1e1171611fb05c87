/* Going through a tree: see walk.h. */
#include "files/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "files/ignore.h"
#include "files/read.h"

struct level {
	struct ignore ignore;
	size_t start;                   /* where its paths begin in that of an entry */
	struct arena arena;
};

struct walking {
	const struct files *files;
	const struct files_place *place;
	const struct files_walk *how;
	struct files_walked *walked;
	struct level *levels;           /* of directories, from the tree's root on */
	size_t level_count;
	char path[PATH_MAX];            /* absolute */
	size_t base;                    /* of it: where the walk began, with a slash */
	size_t seen;
	int64_t deadline;
};

/* ---- .gitignore ------------------------------------------------------------------------------------------------- */

static int read_ignore(struct level *level, int directory_fd, const char *name)
{
	struct stat info;
	auto_close int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
		return 0;
	auto_free char *text = malloc(IGNORE_BYTES_MAX);
	size_t length = 0;
	if (!text)
		return -1;
	for (ssize_t got; length < IGNORE_BYTES_MAX && (got = read(fd, text + length, IGNORE_BYTES_MAX - length)) > 0;)
		length += (size_t)got;
	return ignore_parse(&level->arena, text, length, &level->ignore);
}

static int push(struct walking *walking, int directory_fd, size_t start)
{
	struct level *level = &walking->levels[walking->level_count++];
	*level = (struct level){ .start = start };
	return walking->how->ignore ? read_ignore(level, directory_fd, ".gitignore") : 0;
}

static void pop(struct walking *walking)
{
	arena_free(&walking->levels[--walking->level_count].arena);
}

/* The nearest file that says something decides. */
static bool is_left_out(const struct walking *walking, const char *name, bool is_directory)
{
	if (!walking->how->ignore)
		return false;
	if (is_directory && !strcmp(name, ".git"))
		return true;
	for (size_t i = walking->level_count; i-- > 0;) {
		enum ignore_verdict verdict = ignore_judge(&walking->levels[i].ignore,
		                                           walking->path + walking->levels[i].start, is_directory);
		if (verdict != IGNORE_UNDECIDED)
			return verdict == IGNORE_LEFT_OUT;
	}
	return false;
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

static int by_name(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

/* The names in a directory, sorted. *ret_names is the arena's. */
static int read_names(struct walking *walking, struct arena *arena, int fd, struct strings *ret_names)
{
	struct strings names = { 0 };
	int opened = files_reopen(fd, O_RDONLY | O_DIRECTORY);
	DIR *directory = opened < 0 ? NULL : fdopendir(opened);
	if (!directory) {
		if (opened >= 0)
			close(opened);
		walking->walked->unreadable++;
		return 0;
	}
	int result = 0;
	for (struct dirent *entry; result == 0 && (entry = readdir(directory));) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (walking->seen == FILES_ENTRIES_MAX) {
			walking->walked->too_many = true;
			break;
		}
		walking->seen++;
		result = strings_add(arena, &names, arena_strdup(arena, entry->d_name));
	}
	closedir(directory);
	if (names.count)
		qsort(names.items, names.count, sizeof(*names.items), by_name);
	*ret_names = names;
	return result;
}

bool files_hides(const struct files *files, const struct files_root *root, const char *path)
{
	struct arena arena = { 0 };
	struct rule_verdict verdict = { .decision = RULE_ALLOW };
	if (files_is_hidden(files, root, path))
		return true;
	if (!files->rules ||
	    (!files->rules->count && !files->rules->denied_paths.count && !files->rules->allowed_paths.count))
		return false;
	bool known = rules_judge(&arena, files->rules, files->tool, path, true, true, &verdict) == 0;
	arena_free(&arena);
	return !known || verdict.decision != RULE_ALLOW;
}

static int enter(struct walking *walking, int fd, size_t length, struct cordon_error *err);

static size_t depth_of(const char *path)
{
	size_t depth = 1;
	while ((path = strchr(path, '/'))) {
		depth++;
		path++;
	}
	return depth;
}

static int visit(struct walking *walking, int directory_fd, const char *name, size_t length, struct cordon_error *err)
{
	struct files_entry entry = { .path = walking->path + walking->base, .name = name, .absolute = walking->path,
	                             .directory_fd = directory_fd };
	size_t name_length = strlen(name);
	if (length + 1 + name_length >= sizeof(walking->path)) {
		walking->walked->too_deep = true;
		return 0;
	}
	walking->path[length] = '/';
	memcpy(walking->path + length + 1, name, name_length + 1);
	/* Gone meanwhile, or not to be seen. */
	if (fstatat(directory_fd, name, &entry.info, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	bool is_directory = S_ISDIR(entry.info.st_mode);
	if (is_left_out(walking, name, is_directory))
		return 0;
	entry.hidden = files_hides(walking->files, walking->place->root, walking->path);
	walking->walked->hidden += entry.hidden && !walking->how->hidden && !walking->files->untold;
	if (entry.hidden && !walking->how->hidden)
		return 0;
	int result = walking->how->visit(walking->how->arg, &entry, err);
	if (result != 0 || !is_directory || entry.hidden ||
	    (walking->how->depth && depth_of(entry.path) >= walking->how->depth))
		return result;
	if (walking->level_count == FILES_DEPTH_MAX) {
		walking->walked->too_deep = true;
		return 0;
	}
	auto_close int fd = openat(directory_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? 0 : enter(walking, fd, length + 1 + name_length, err);
}

/* `length` is that of the directory's path. */
static int enter(struct walking *walking, int fd, size_t length, struct cordon_error *err)
{
	struct strings names = { 0 };
	int result = push(walking, fd, length + 1) < 0 ? fail_oom(err) : 0;
	struct arena *arena = &walking->levels[walking->level_count - 1].arena;
	if (result == 0 && read_names(walking, arena, fd, &names) < 0)
		result = fail_oom(err);
	for (size_t i = 0; result == 0 && i < names.count; i++) {
		if (clock_ms() > walking->deadline) {
			walking->walked->too_long = true;
			result = 1;
			break;
		}
		result = visit(walking, fd, names.items[i], length, err);
		walking->path[length] = '\0';
	}
	pop(walking);
	return result;
}

/* What the directories above say, from the root of the tree on. */
static int push_above(struct walking *walking, struct cordon_error *err)
{
	const struct files_root *root = walking->place->root;
	size_t start = strcmp(root->path, "/") ? strlen(root->path) : 0;
	int at = files_reopen(root->fd, O_PATH | O_DIRECTORY);
	for (const char *rest = walking->place->path + start;
	     walking->how->ignore && at >= 0 && *rest == '/' && walking->level_count < FILES_DEPTH_MAX / 2;) {
		if (push(walking, at, (size_t)(rest - walking->place->path) + 1) < 0) {
			close(at);
			return fail_oom(err);
		}
		char name[NAME_MAX + 1];
		size_t length = strcspn(++rest, "/");
		snprintf(name, sizeof(name), "%.*s", (int)length, rest);
		int next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
		rest += length;
	}
	if (at >= 0)
		close(at);
	return 0;
}

int files_walk(const struct files *files, const struct files_place *place, const struct files_walk *walk,
               struct files_walked *ret_walked, struct cordon_error *err)
{
	if (files_require_directory(place, err) < 0)
		return -1;
	*ret_walked = (struct files_walked){ .too_deep = false };
	size_t length = strcmp(place->path, "/") ? strlen(place->path) : 0;
	auto_free struct walking *walking = calloc(1, sizeof(*walking));
	auto_free struct level *levels = calloc(FILES_DEPTH_MAX + 1, sizeof(*levels));
	if (!walking || !levels || length >= sizeof(walking->path))
		return fail_oom(err);
	walking->files = files;
	walking->place = place;
	walking->how = walk;
	walking->walked = ret_walked;
	walking->levels = levels;
	walking->base = length + 1;
	walking->deadline = clock_ms() + FILES_TIME_MS;
	memcpy(walking->path, place->path, length);
	int result = push_above(walking, err);
	if (result == 0)
		result = enter(walking, place->fd, length, err);
	while (walking->level_count)
		pop(walking);
	return result < 0 ? -1 : 0;
}

void files_walked_write(struct json *json, const struct files_walked *walked)
{
	const struct {
		bool is;
		const char *note;
	} rows[] = {
		{ walked->too_deep,
		  "directories deeper than 128 levels, or paths longer than the system takes, were left out" },
		{ walked->too_many, "more than 200000 entries: the rest was left out" },
		{ walked->too_long, "more than 10 seconds: the rest was left out" },
		{ walked->unreadable > 0, "directories that this user cannot read were left out" },
	};
	char hidden[96];
	json_key(json, "notes");
	json_array_begin(json);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].is)
			json_text(json, rows[i].note);
	snprintf(hidden, sizeof(hidden), "%zu %s hidden by a deny glob or a tool rule, and left out", walked->hidden,
	         walked->hidden == 1 ? "name is" : "names are");
	if (walked->hidden)
		json_text(json, hidden);
	json_array_end(json);
}

/* ---- what must stay --------------------------------------------------------------------------------------------- */

struct keeping {
	const struct files *files;
	const char *becomes;
	char found[PATH_MAX];
};

static int find_kept(void *arg, const struct files_entry *entry, struct cordon_error *err)
{
	struct keeping *keeping = arg;
	char other[PATH_MAX];
	bool is_directory = S_ISDIR(entry->info.st_mode);
	(void)err;
	bool kept = entry->hidden || files_is_protected(keeping->files, entry->absolute, is_directory);
	if (!kept && keeping->becomes)
		kept = snprintf(other, sizeof(other), "%s/%s", keeping->becomes, entry->path) >= (int)sizeof(other) ||
		       files_is_protected(keeping->files, other, is_directory);
	if (kept)
		snprintf(keeping->found, sizeof(keeping->found), "%s", entry->path);
	return kept;
}

int files_refuse_kept(const struct files *files, const struct files_place *place, const char *becomes,
                      struct cordon_error *err)
{
	struct keeping *keeping = arena_alloc(files->arena, sizeof(*keeping));
	struct files_walked walked;
	if (!keeping)
		return fail_oom(err);
	*keeping = (struct keeping){ .files = files, .becomes = becomes };
	const struct files_walk walk = { .hidden = true, .visit = find_kept, .arg = keeping };
	if (files_walk(files, place, &walk, &walked, err) < 0)
		return -1;
	if (*keeping->found) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, place->given, "a hidden or protected name lies in it: %s",
		     keeping->found);
		fail_boundary(err, "filesystem");
		return fail_remedy(err, "a person can do this outside");
	}
	if (walked.too_deep || walked.too_many || walked.too_long || walked.unreadable) {
		fail(err, CORDON_E_LIMIT_EXCEEDED, 0, place->given,
		     "it is too large, too deep or not readable: protected names in it cannot be excluded");
		fail_boundary(err, "filesystem");
		return fail_remedy(err, "do it in parts, or with a command");
	}
	return 0;
}

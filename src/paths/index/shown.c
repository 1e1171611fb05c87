/* Masked names that are shown nevertheless: see shown.h. */
#include "paths/index/shown.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/glob.h"
#include "host/git-tree.h"
#include "paths/index/contents.h"
#include "paths/index/git-index.h"
#include "paths/index/look.h"

#define JUDGED_US 250000                /* for reading files of a tree that are not known; later starts read more */

enum lifted { BY_CONTENT_ALONE = 0, BY_NAME = 1 << 0, WITHOUT_KEY = 1 << 1 };

/* The default globs, and what lifts each besides the git index. */
static const struct {
	const char *glob;
	unsigned lifted;
} rows[] = {
	{ "**/.env", BY_CONTENT_ALONE },        { "**/.env.*", BY_NAME },
	{ "**/*.pem", WITHOUT_KEY },            { "**/*.key", WITHOUT_KEY },
	{ "**/id_rsa*", BY_CONTENT_ALONE },     { "**/id_ed25519*", BY_CONTENT_ALONE },
	{ "**/.netrc", BY_CONTENT_ALONE },
};

struct candidate {
	struct name *name;
	unsigned lifted;                        /* by every glob that means it */
	const char *repository;                 /* the directory with `.git` in it, relative to the root, "" for
	                                           that; or NULL */
	bool has_content;                       /* to be compared */
	struct content content;
};

struct judging {
	struct arena *arena;
	int root_fd;
	const char *linked;                     /* the last linked worktree or submodule, as `repository`; or NULL */
	int linked_fd;                          /* what has its index; or -1 */
	const char *root_path;
	struct glob *globs;                     /* of `deny` */
	const unsigned **lifts;                 /* of each: which row; NULL: not one of the default globs */
	size_t glob_count;
	struct contents *contents;
	uint64_t deadline_us;                   /* for reading */
	size_t late;                            /* files that there was no time to read */
};

/* ---- by name ---------------------------------------------------------------------------------------------------- */

static int compile(struct judging *judging, const struct strings *deny)
{
	judging->globs = arena_alloc(judging->arena, (deny->count + 1) * sizeof(*judging->globs));
	judging->lifts = arena_alloc(judging->arena, (deny->count + 1) * sizeof(*judging->lifts));
	if (!judging->globs || !judging->lifts)
		return -1;
	for (size_t i = 0; i < deny->count; i++) {
		if (glob_compile(judging->arena, deny->items[i], 0, &judging->globs[i], NULL) < 0)
			return -1;
		for (size_t j = 0; j < ARRAY_SIZE(rows); j++)
			if (!strcmp(rows[j].glob, deny->items[i]))
				judging->lifts[i] = &rows[j].lifted;
	}
	judging->glob_count = deny->count;
	return 0;
}

/* Do only default globs mean it? *ret_lifted is what lifts all of these. */
static bool is_meant_by_default(const struct judging *judging, const char *path, unsigned *ret_lifted)
{
	char absolute[PATH_MAX];
	bool meant = false;
	unsigned lifted = ~0u;
	if (snprintf(absolute, sizeof(absolute), "%s/%s", judging->root_path, path) >= (int)sizeof(absolute))
		return false;
	for (size_t i = 0; i < judging->glob_count; i++) {
		if (!glob_match(&judging->globs[i], judging->globs[i].absolute ? absolute : path))
			continue;
		if (!judging->lifts[i])
			return false;
		meant = true;
		lifted &= *judging->lifts[i];
	}
	*ret_lifted = lifted;
	return meant;
}

static bool is_example(const char *path)
{
	static const char *const endings[] = { "example", "sample", "template", "dist", "defaults", "schema" };
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
		if (dot > name && !strcmp(dot + 1, endings[i]))
			return true;
	return false;
}

/* ---- by content ------------------------------------------------------------------------------------------------- */

/* By what it is and has in it; the index is asked later, for all of a repository at once. */
static void judge_file(struct judging *judging, struct candidate *candidate)
{
	struct stat info;
	auto_close int fd = contents_open(judging->root_fd, candidate->name->path, &info);
	if (fd < 0) {
		/* A file tool may make it. */
		candidate->name->is_shown =
			errno == ENOENT && candidate->lifted & BY_NAME && is_example(candidate->name->path);
		return;
	}
	if (candidate->lifted & BY_NAME && info.st_nlink == 1 && is_example(candidate->name->path)) {
		candidate->name->is_shown = true;
		return;
	}
	size_t max = candidate->lifted & WITHOUT_KEY ? CONTENT_MAX : SHOWN_CONTENT_MAX;
	enum content_found found =
		contents_find(judging->contents, fd, &info, max, judging->deadline_us, &candidate->content);
	judging->late += found == CONTENT_LATE;
	if (found != CONTENT_FOUND)
		return;
	if (candidate->lifted & WITHOUT_KEY && !candidate->content.has_key)
		candidate->name->is_shown = true;
	else
		candidate->has_content = info.st_size <= SHOWN_CONTENT_MAX;
}

/* ---- by the index ----------------------------------------------------------------------------------------------- */

/* Is the directory a linked worktree or a submodule, whose index is elsewhere? A command could have made both that
 * index and `.git`, and gains no more than by an index of its own making: the content must be known to write its hash.
 */
static bool is_linked(struct judging *judging, const char *directory)
{
	if (judging->linked && !strcmp(judging->linked, directory))
		return judging->linked_fd >= 0;
	const char *top = *directory ? arena_printf(judging->arena, "%s/%.*s", judging->root_path,
	                                            (int)strlen(directory) - 1, directory)
	                             : judging->root_path;
	auto_close int fd = top ? names_open(judging->root_fd, directory, O_PATH | O_DIRECTORY) : -1;
	close_fd(&judging->linked_fd);
	judging->linked = arena_strdup(judging->arena, directory);
	judging->linked_fd = fd < 0 || !judging->linked ? -1 : git_tree_own(judging->arena, fd, top);
	return judging->linked_fd >= 0;
}

/* The nearest directory above it that has a repository in it, or a `.git` file that leads to its own. */
static int find_repository(struct judging *judging, struct candidate *candidate)
{
	char path[PATH_MAX];
	struct stat info;
	size_t length = strlen(candidate->name->path);
	while (length) {
		while (length && candidate->name->path[length - 1] != '/')
			length--;
		if (snprintf(path, sizeof(path), "%.*s.git", (int)length, candidate->name->path) >= (int)sizeof(path))
			return 0;
		auto_close int fd = names_open(judging->root_fd, path, O_PATH);
		const char *directory = fd < 0 ? NULL : arena_strndup(judging->arena, candidate->name->path, length);
		if (fd >= 0 && !directory)
			return -1;
		if (fd >= 0 && fstat(fd, &info) == 0 &&
		    (S_ISDIR(info.st_mode) || (S_ISREG(info.st_mode) && is_linked(judging, directory)))) {
			candidate->repository = directory;
			return 0;
		}
		length -= length > 0;
	}
	return 0;
}

static int by_path(const void *one, const void *other)
{
	const struct git_index_entry *a = one, *b = other;
	return strcmp(a->path, b->path);
}

static bool is_same_blob(const struct candidate *candidate, const struct git_index_entry *entry, size_t hash_size)
{
	return entry->found &&
	       !memcmp(entry->hash, hash_size == SHA1_BYTES ? candidate->content.sha1 : candidate->content.sha256,
	               hash_size);
}

/* Compares those of one repository with its index. */
static void compare(const char *index, size_t length, const char *repository, struct candidate *candidates,
                    size_t count, struct git_index_entry *entries)
{
	static const size_t hash_sizes[] = { SHA1_BYTES, CONTENT_SHA256_BYTES };
	for (size_t i = 0; i < ARRAY_SIZE(hash_sizes); i++) {
		size_t entry_count = 0;
		for (size_t j = 0; j < count; j++)
			if (candidates[j].has_content && candidates[j].repository &&
			    !strcmp(candidates[j].repository, repository))
				entries[entry_count++] = (struct git_index_entry){ .path = candidates[j].name->path +
					                                                   strlen(repository) };
		qsort(entries, entry_count, sizeof(*entries), by_path);
		git_index_find((const unsigned char *)index, length, hash_sizes[i], entries, entry_count);
		for (size_t j = 0; j < count; j++) {
			if (!candidates[j].has_content || !candidates[j].repository ||
			    strcmp(candidates[j].repository, repository) != 0)
				continue;
			const struct git_index_entry key = { .path = candidates[j].name->path + strlen(repository) };
			const struct git_index_entry *entry =
				bsearch(&key, entries, entry_count, sizeof(*entries), by_path);
			if (entry && is_same_blob(&candidates[j], entry, hash_sizes[i]))
				candidates[j].name->is_shown = true;
		}
	}
}

static int judge_repository(struct judging *judging, const char *repository, struct candidate *candidates, size_t count)
{
	char path[PATH_MAX];
	struct stat info;
	size_t length;
	if (snprintf(path, sizeof(path), "%s.git/index", repository) >= (int)sizeof(path))
		return 0;
	auto_close int place = contents_open(judging->root_fd, path, &info);
	if (place < 0 && is_linked(judging, repository))
		place = contents_open(judging->linked_fd, "index", &info);
	if (place < 0 || info.st_size > GIT_INDEX_BYTES_MAX)
		return 0;
	auto_free char *index = malloc((size_t)info.st_size + 1);
	auto_free struct git_index_entry *entries = calloc(count, sizeof(*entries));
	if (!index || !entries)
		return -1;
	if (contents_read(place, index, (size_t)info.st_size, &length))
		compare(index, length, repository, candidates, count, entries);
	return 0;
}

static int judge_repositories(struct judging *judging, struct candidate *candidates, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (candidates[i].has_content && find_repository(judging, &candidates[i]) < 0)
			return -1;
	for (size_t i = 0; i < count; i++) {
		const char *repository = candidates[i].has_content ? candidates[i].repository : NULL;
		bool done = !repository;
		for (size_t j = 0; j < i && !done; j++)
			done = candidates[j].has_content && candidates[j].repository &&
			       !strcmp(candidates[j].repository, repository);
		if (!done && judge_repository(judging, repository, candidates, count) < 0)
			return -1;
	}
	return 0;
}

static const char *line_of(struct arena *arena, const struct content *content, const char *path)
{
	char hex[2 * sizeof(content->sha256) + 1];
	return arena_printf(arena, "%s %s",
	                    sodium_bin2hex(hex, sizeof(hex), content->sha256, sizeof(content->sha256)), path);
}

const char *shown_line(struct arena *arena, int root_fd, const char *path, struct contents *contents)
{
	struct content content;
	struct stat info;
	auto_close int fd = contents_open(root_fd, path, &info);
	if (fd < 0 || contents_find(contents, fd, &info, SHOWN_CONTENT_MAX, UINT64_MAX, &content) != CONTENT_FOUND)
		return NULL;
	return line_of(arena, &content, path);
}

static int judge_kept(struct judging *judging, const struct strings *kept, struct candidate *candidates, size_t count)
{
	for (size_t i = 0; kept && kept->count && i < count; i++) {
		if (!candidates[i].has_content || candidates[i].name->is_shown)
			continue;
		const char *line = line_of(judging->arena, &candidates[i].content, candidates[i].name->path);
		if (!line)
			return -1;
		candidates[i].name->is_shown = strings_find(kept, line) >= 0;
	}
	return 0;
}

int shown_judge(struct arena *arena, int root_fd, const char *root_path, const struct strings *deny,
                const struct strings *kept, struct contents *contents, struct names *names)
{
	struct judging judging = { .arena = arena,
		                   .contents = contents,
		                   .root_fd = root_fd,
		                   .linked_fd = -1,
		                   .root_path = strcmp(root_path, "/") ? root_path : "",
		                   .deadline_us = names_now_us() + JUDGED_US };
	size_t count = 0, most = 0;
	for (size_t i = 0; i < names->count; i++)
		most += names->items[i].kind == NAME_MASKED && !names->items[i].is_directory &&
		        !names->items[i].is_link && !names->items[i].is_fifo;
	if (!most)
		return 0;
	auto_free struct candidate *candidates = calloc(most, sizeof(*candidates));
	if (!candidates || compile(&judging, deny) < 0)
		return -1;
	for (size_t i = 0; i < names->count && count < most; i++) {
		struct name *name = &names->items[i];
		if (name->kind != NAME_MASKED || name->is_directory || name->is_link || name->is_fifo ||
		    !is_meant_by_default(&judging, name->path, &candidates[count].lifted))
			continue;
		candidates[count].name = name;
		judge_file(&judging, &candidates[count++]);
	}
	names->late = judging.late;
	int result = judge_repositories(&judging, candidates, count);
	close_fd(&judging.linked_fd);
	return result < 0 ? -1 : judge_kept(&judging, kept, candidates, count);
}

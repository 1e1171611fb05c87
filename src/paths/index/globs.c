/* Compiled rules: see globs.h. */
#include "paths/index/globs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "paths/index/look.h"

/* The pattern with two stars and a slash before it. */
static const char *at_any_depth(struct arena *arena, const char *text)
{
	size_t length = strlen(text);
	char *pattern = arena_alloc(arena, length + 4);
	if (pattern)
		memcpy(mempcpy(pattern, "**/", 3), text, length);
	return pattern;
}

static int compile(struct arena *arena, const struct strings *from, bool at_all_depths, unsigned options,
                   const char *root_path, struct glob **ret_globs, size_t *ret_count, struct cordon_error *err)
{
	size_t count = 0;
	if (!from || !from->count)
		return 0;
	struct glob *globs = arena_alloc(arena, from->count * sizeof(*globs));
	if (!globs)
		return fail_oom(err);
	for (size_t i = 0; i < from->count; i++) {
		const char *text = from->items[i];
		if (at_all_depths && *text != '/' && !(text = at_any_depth(arena, text)))
			return fail_oom(err);
		if (glob_compile(arena, text, options, &globs[count], err) < 0)
			return -1;
		count += glob_reaches(&globs[count], root_path);
	}
	*ret_globs = globs;
	*ret_count = count;
	return 0;
}

int names_globs_compile(struct arena *arena, const char *root_path, const struct name_rules *rules,
                        struct names_globs *ret_globs, struct cordon_error *err)
{
	struct names_globs globs = { .compiled = true };
	if (compile(arena, rules->deny, false, 0, root_path, &globs.deny, &globs.deny_count, err) < 0 ||
	    compile(arena, rules->protect, true, GLOB_FOLD_CASE, root_path, &globs.protect, &globs.protect_count, err) <
	            0 ||
	    compile(arena, rules->exempt, true, GLOB_FOLD_CASE, root_path, &globs.exempt, &globs.exempt_count, err) < 0)
		return -1;
	*ret_globs = globs;
	return 0;
}

void names_globs_fold_deny(struct names_globs *globs)
{
	for (size_t i = 0; i < globs->deny_count; i++)
		globs->deny[i].fold_case = true;
}

/* `relative` is what a glob that is not absolute is matched against. */
static bool any_means(const struct glob *globs, size_t count, const char *path, const char *relative)
{
	const char *name = strrchr(path, '/') + 1;
	for (size_t i = 0; i < count; i++)
		if (glob_match_name(&globs[i], name, strlen(name)) &&
		    (globs[i].anywhere || glob_match(&globs[i], globs[i].absolute ? path : relative)))
			return true;
	return false;
}

bool names_globs_hide(const struct names_globs *globs, const char *root_path, const char *path)
{
	size_t length = strcmp(root_path, "/") ? strlen(root_path) : 0;
	return path_within(path, root_path) && path[length] &&
	       any_means(globs->deny, globs->deny_count, path, path + length + 1);
}

/* As a walk tells it: in a repository, nothing is called as branches are. */
static bool is_in_repository(const char *path)
{
	static const char *const parts[] = { "objects", "commondir" };
	int parent = (int)(strrchr(path, '/') - path);
	char part[PATH_MAX];
	struct names_stat stat;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (snprintf(part, sizeof(part), "%.*s/%s", parent, path, parts[i]) < (int)sizeof(part) &&
		    names_stat(AT_FDCWD, part, &stat))
			return true;
	return false;
}

static bool is_exempt(const struct names_globs *globs, const char *path, bool is_directory)
{
	for (size_t i = 0; i < globs->exempt_count; i++) {
		const struct glob *glob = &globs->exempt[i];
		if ((is_directory || !glob->directory) && any_means(glob, 1, path, path) &&
		    (glob->directory || !is_in_repository(path)))
			return true;
	}
	return false;
}

bool names_globs_keep_link(const struct names_globs *globs, const char *name, size_t length)
{
	for (size_t i = 0; i < globs->protect_count; i++) {
		const char *directory = globs->protect[i].pattern;
		while (!strncmp(directory, "**/", 3))
			directory += 3;
		if (!strncasecmp(directory, name, length) && directory[length] == '/' &&
		    !strchr(directory + length + 1, '/'))
			return true;
	}
	return false;
}

bool names_globs_keep(const struct names_globs *globs, const char *path, bool is_directory)
{
	char above[PATH_MAX];
	for (size_t length = 0; path[length];) {
		length += 1 + strcspn(path + length + 1, "/");
		if (length >= sizeof(above))
			return true;
		memcpy(mempcpy(above, path, length), "", 1);
		if (any_means(globs->protect, globs->protect_count, above, above) &&
		    !is_exempt(globs, above, path[length] || is_directory))
			return true;
	}
	return false;
}

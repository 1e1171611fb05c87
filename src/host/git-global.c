/* See git-global.h, and git-config(1): core.excludesFile, "Conditional includes". Of the conditions only `gitdir:` and
 * `gitdir/i:` are known; a working tree whose repository is elsewhere counts as where it is itself. */
#include "host/git-global.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/glob.h"
#include "base/text.h"
#include "host/git-files.h"
#include "host/git-identity.h"
#include "policy/git-syntax.h"

struct reading {
	struct arena *arena;
	const struct git_global *global;
	const char *directory;                  /* of the file that is read */
	const char *ignore;                     /* filled: a path, as it is written */
	struct strings included;                /* filled: paths */
	bool failed;                            /* memory is short */
};

typedef void reading_fn(void *reading, const char *name, const struct git_setting *setting);

/* `~/x` is the home's; what is relative is relative to `directory`, if there is one. NULL: it is nobody's. */
static const char *expand(struct reading *reading, const char *path, const char *directory)
{
	const char *home = reading->global->home, *whole = path;
	if (!strncmp(path, "~/", 2))
		whole = home && *home == '/' ? arena_printf(reading->arena, "%s%s", home, path + 1) : NULL;
	else if (*path != '/')
		whole = directory && *path != '~' ? arena_printf(reading->arena, "%s/%s", directory, path) : NULL;
	return whole;
}

/* The text of a file, or NULL. What is shown as it is must not be a link: that could lead to a secret. */
static char *read_text(struct arena *arena, const char *path, struct host_watch_set *watches, bool follow, size_t max,
                       size_t *ret_length)
{
	auto_free char *text = NULL, *real = NULL;
	if (!path || *path != '/')
		return NULL;
	host_watch_path(watches, path);
	if (follow && !(real = realpath(path, NULL)))
		return NULL;
	if (file_read(AT_FDCWD, follow ? real : path, max, &text, ret_length) < 0 || strlen(text) != *ret_length)
		return NULL;
	return arena_strndup(arena, text, *ret_length);
}

static void read_one(struct reading *reading, const char *path, reading_fn *take)
{
	size_t length;
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *text = slash ? read_text(reading->arena, path, reading->global->watches, true, GIT_SYNTAX_SIZE_MAX,
		                                   &length) : NULL;
	if (!text)
		return;
	reading->directory = arena_strndup(reading->arena, path, (size_t)(slash - path));
	reading->failed |= !reading->directory;
	if (reading->directory)
		(void)!git_syntax_read(text, length, take, reading);
}

static const char *in_configuration(struct reading *reading, const char *name)
{
	const struct git_global *global = reading->global;
	if (global->xdg_config_home && *global->xdg_config_home)
		return arena_printf(reading->arena, "%s/git/%s", global->xdg_config_home, name);
	return global->home ? arena_printf(reading->arena, "%s/.config/git/%s", global->home, name) : NULL;
}

static void read_all(struct reading *reading, reading_fn *take)
{
	const struct git_global *global = reading->global;
	const char *files[GIT_FILES_MAX];
	const int count = git_files(reading->arena, global->home, global->xdg_config_home, global->environment, files);
	reading->failed |= count < 0;
	for (int i = 0; i < count; i++)
		read_one(reading, files[i], take);
}

/* ---- what is ignored -------------------------------------------------------------------------------------------- */

static void take_ignore(void *arg, const char *name, const struct git_setting *setting)
{
	struct reading *reading = arg;
	if (strcmp(name, "core.excludesfile") != 0 || !setting->value || setting->cut)
		return;
	reading->ignore = arena_strdup(reading->arena, setting->value);
	reading->failed |= !reading->ignore;
}

int git_global_ignored(struct arena *arena, const struct git_global *global, const char **ret_text)
{
	struct reading reading = { .arena = arena, .global = global };
	size_t length;
	read_all(&reading, take_ignore);
	const char *path =
		reading.ignore ? expand(&reading, reading.ignore, NULL) : in_configuration(&reading, "ignore");
	*ret_text = read_text(arena, path, global->watches, false, GIT_IGNORE_MAX, &length);
	return reading.failed ? -1 : 0;
}

/* ---- who commits ------------------------------------------------------------------------------------------------ */

/* git completes a pattern at both ends. */
static bool is_here(struct reading *reading, const char *pattern, unsigned options)
{
	struct glob glob;
	const char *path = arena_printf(reading->arena, "%s/.git", reading->global->workspace);
	const char *end = *pattern && pattern[strlen(pattern) - 1] == '/' ? "**" : "";
	const char *start = !strncmp(pattern, "./", 2) ? reading->directory : NULL;
	if (start)
		pattern = arena_printf(reading->arena, "%s%s%s", start, pattern + 1, end);
	else if (*pattern == '/' || !strncmp(pattern, "~/", 2))
		pattern = arena_printf(reading->arena, "%s%s", expand(reading, pattern, NULL), end);
	else
		pattern = arena_printf(reading->arena, "**/%s%s", pattern, end);
	if (!path || !pattern || glob_compile(reading->arena, pattern, options, &glob, NULL) < 0)
		return false;
	return glob_match(&glob, glob.absolute ? path : path + 1);
}

static void take_include(void *arg, const char *name, const struct git_setting *setting)
{
	static const struct {
		const char *condition;
		unsigned options;
	} rows[] = { { "gitdir:", 0 }, { "gitdir/i:", GLOB_FOLD_CASE } };
	struct reading *reading = arg;
	(void)name;
	if (strcmp(setting->section, "includeif") != 0 || strcmp(setting->key, "path") != 0 || !setting->subsection ||
	    !setting->value || setting->cut)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t length = strlen(rows[i].condition);
		if (strncmp(setting->subsection, rows[i].condition, length) != 0 ||
		    !is_here(reading, setting->subsection + length, rows[i].options))
			continue;
		const char *path = expand(reading, setting->value, reading->directory);
		if (path && strings_add(reading->arena, &reading->included, arena_strdup(reading->arena, path)) < 0)
			reading->failed = true;
	}
}

int git_global_identity(struct arena *arena, const struct git_global *global, const char **name, const char **email)
{
	struct reading reading = { .arena = arena, .global = global };
	size_t length;
	if (!global->workspace)
		return 0;
	read_all(&reading, take_include);
	for (size_t i = 0; i < reading.included.count && !reading.failed; i++) {
		const char *path = reading.included.items[i];
		const char *text = read_text(arena, path, global->watches, true, GIT_SYNTAX_SIZE_MAX, &length);
		if (text && git_identity_parse(arena, text, length, name, email) < 0)
			return -1;
	}
	return reading.failed ? -1 : 0;
}

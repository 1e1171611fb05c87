/* See git-user.h. Inside, a program that a setting names is mostly not there, a helper has no credentials, and a file
 * that one includes is not shown: such settings would only break git. What is kept is written anew, each setting in a
 * section of its own. */
#include "host/git-user.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "host/git-files.h"
#include "policy/git-syntax.h"

#define KEPT_MAX (64 * 1024)
#define LEFT_MAX 4096
#define VALUE_MAX 1024

/* Who commits, and what is ignored, is found by git-identity.h and git-global.h. */
static bool is_known_otherwise(const struct git_setting *setting)
{
	return !strcmp(setting->key, "excludesfile") ||
	       ((!strcmp(setting->section, "user") || !strcmp(setting->section, "author") ||
	         !strcmp(setting->section, "committer")) &&
	        (!strcmp(setting->key, "name") || !strcmp(setting->key, "email")));
}

/* The keys to sign with are not inside. */
static bool is_about_signing(const struct git_setting *setting)
{
	return !strcmp(setting->key, "signingkey") ||
	       (!strcmp(setting->key, "gpgsign") && (!setting->value || !git_setting_is_false(setting->value)));
}

/* What `git lfs install` writes. Only git's own words for these programs: anything else there is a program like any. */
static const struct {
	const char *key, *value;
	enum git_user_lfs line;
} lfs_lines[] = {
	{ "clean", "git-lfs clean -- %f", GIT_USER_LFS_CLEAN },
	{ "clean", "git-lfs clean %f", GIT_USER_LFS_CLEAN },
	{ "smudge", "git-lfs smudge -- %f", GIT_USER_LFS_SMUDGE },
	{ "smudge", "git-lfs smudge %f", GIT_USER_LFS_SMUDGE },
	{ "smudge", "git-lfs smudge --skip -- %f", GIT_USER_LFS_SMUDGE },
	{ "smudge", "git-lfs smudge --skip %f", GIT_USER_LFS_SMUDGE },
	{ "process", "git-lfs filter-process", GIT_USER_LFS_PROCESS },
	{ "process", "git-lfs filter-process --skip", GIT_USER_LFS_PROCESS },
};
static const char *const lfs_keys[GIT_USER_LFS_MAX] = { "clean", "smudge", "process", "required" };

static bool is_filter(const struct git_setting *setting, const char *key)
{
	return !strcmp(setting->section, "filter") && !strcmp(setting->key, key);
}

/* An alias is a command of git's, or with an exclamation mark one for the shell. */
static bool is_plain_alias(const struct git_setting *setting)
{
	return !strcmp(setting->section, "alias") && setting->value &&
	       setting->value[strspn(setting->value, " \t")] != '!';
}

static bool has_control(const char *text)
{
	for (; text && *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

static bool is_kept(const struct git_setting *setting)
{
	if (is_about_signing(setting) || setting->cut || has_control(setting->value) ||
	    has_control(setting->subsection) || (setting->value && strlen(setting->value) > VALUE_MAX))
		return false;
	return git_setting_find(setting)->class == GIT_SETTING_HARMLESS || is_plain_alias(setting);
}

static bool make_room(struct git_user *user, char **text, size_t size)
{
	if (!*text && !(*text = arena_alloc(user->arena, size)))
		user->failed = true;
	return !user->failed;
}

/* Quoted: nothing in it is special then but these two. */
static size_t put_quoted(char *at, const char *text)
{
	char *out = at;
	*out++ = '"';
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			*out++ = '\\';
		*out++ = *text;
	}
	*out++ = '"';
	return (size_t)(out - at);
}

static void keep(struct git_user *user, const struct git_setting *setting)
{
	size_t most = strlen(setting->section) + 2 * (setting->subsection ? strlen(setting->subsection) : 0) +
	              strlen(setting->key) + 2 * (setting->value ? strlen(setting->value) : 0) + 32;
	if (!make_room(user, &user->kept, KEPT_MAX) || user->kept_length + most >= KEPT_MAX)
		return;
	char *at = user->kept + user->kept_length;
	at = stpcpy(stpcpy(at, "["), setting->section);
	if (setting->subsection) {
		*at++ = ' ';
		at += put_quoted(at, setting->subsection);
	}
	at = stpcpy(stpcpy(at, "]\n\t"), setting->key);
	if (setting->value) {
		at = stpcpy(at, " = ");
		at += put_quoted(at, setting->value);
	}
	*at++ = '\n';
	user->kept_length = (size_t)(at - user->kept);
}

/* By section and key alone: a subsection may be an address with a password in it. */
static void leave_out(struct git_user *user, const struct git_setting *setting)
{
	char name[128];
	int length = snprintf(name, sizeof(name), " %s.%s", setting->section, setting->key);
	if (length <= 0 || (size_t)length >= sizeof(name) || !make_room(user, &user->left, LEFT_MAX) ||
	    strstr(user->left, name) || user->left_length + (size_t)length + 1 >= LEFT_MAX)
		return;
	memcpy(user->left + user->left_length, name, (size_t)length + 1);
	user->left_length += (size_t)length;
}

/* Without the programs of a filter, git refuses every file that it is required for. */
static bool is_required(const struct git_setting *setting)
{
	return is_filter(setting, "required") && (!setting->value || !git_setting_is_false(setting->value));
}

/* Whether it is a line of git-lfs's: those are kept or left out together, at the end. */
static bool take_lfs(struct git_user *user, const struct git_setting *setting)
{
	if (strcmp(setting->section, "filter") != 0 || !setting->subsection ||
	    strcmp(setting->subsection, "lfs") != 0 || setting->cut)
		return false;
	if (is_required(setting)) {
		user->lfs[GIT_USER_LFS_REQUIRED] = "true";
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(lfs_lines); i++)
		if (setting->value && !strcmp(setting->key, lfs_lines[i].key) &&
		    !strcmp(setting->value, lfs_lines[i].value)) {
			user->lfs[lfs_lines[i].line] = lfs_lines[i].value;
			return true;
		}
	return false;
}

static void take(void *arg, const char *name, const struct git_setting *setting)
{
	(void)name;
	struct git_user *user = arg;
	if (is_known_otherwise(setting) || user->failed || take_lfs(user, setting))
		return;
	if (is_kept(setting) && !is_required(setting))
		keep(user, setting);
	else
		leave_out(user, setting);
}

void git_user_parse(struct git_user *user, const char *bytes, size_t length)
{
	/* Settings before a syntax error count, as they do for the identity. */
	(void)!git_syntax_read(bytes, length, take, user);
}

/* `has_lfs`: commands find git-lfs. The filter is complete with its process, or with the other two. */
void git_user_end(struct git_user *user, bool has_lfs)
{
	const bool is_whole = has_lfs && (user->lfs[GIT_USER_LFS_PROCESS] ||
	                                  (user->lfs[GIT_USER_LFS_CLEAN] && user->lfs[GIT_USER_LFS_SMUDGE]));
	for (size_t i = 0; i < GIT_USER_LFS_MAX && !user->failed; i++) {
		const struct git_setting setting = { "filter", "lfs", lfs_keys[i], user->lfs[i], false };
		if (user->lfs[i] && is_whole)
			keep(user, &setting);
		else if (user->lfs[i])
			leave_out(user, &setting);
	}
}

static void read_file(struct git_user *user, const char *path, struct host_watch_set *watches)
{
	struct stat info;
	host_watch_path(watches, path);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_size <= 0 ||
	    info.st_size > GIT_SYNTAX_SIZE_MAX)
		return;
	char *text = arena_alloc(user->arena, (size_t)info.st_size);
	ssize_t length = text ? read(fd, text, (size_t)info.st_size) : 0;
	if (length > 0)
		git_user_parse(user, text, (size_t)length);
	user->failed = user->failed || !text;
}

/* A program of the system's, or of a toolchain that is shown. */
static bool is_shown(const char *path, const struct strings *shown)
{
	static const char *const system[] = { "/usr", "/bin", "/sbin", "/opt", "/nix/store" };
	uncleared char real[PATH_MAX];
	if (access(path, X_OK) < 0 || !realpath(path, real))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(system); i++)
		if (path_within(real, system[i]))
			return true;
	for (size_t i = 0; shown && i < shown->count; i++)
		if (path_within(path, shown->items[i]))
			return true;
	return false;
}

static bool finds_lfs(const struct git_user_search *search)
{
	const char *path = NULL;
	for (const char *const *at = search->environment; at && *at; at++)
		if (!strncmp(*at, "PATH=", strlen("PATH=")))
			path = *at + strlen("PATH=");
	while (path && *path) {
		uncleared char name[PATH_MAX];
		int size = (int)strcspn(path, ":"), length = snprintf(name, sizeof(name), "%.*s/git-lfs", size, path);
		path += size + (path[size] == ':');
		if (*name != '/' || length < 0 || (size_t)length >= sizeof(name))
			continue;
		host_watch_path(search->watches, name);
		if (is_shown(name, search->shown))
			return true;
	}
	return false;
}

static int read_files(struct git_user *user, const struct git_user_search *search)
{
	const char *files[GIT_FILES_MAX];
	const int count = git_files(user->arena, search->home, search->xdg_config_home, search->environment, files);
	for (int i = 0; i < count; i++)
		read_file(user, files[i], search->watches);
	bool asks = false;
	for (size_t i = 0; i < GIT_USER_LFS_MAX; i++)
		asks |= user->lfs[i] != NULL;
	git_user_end(user, asks && finds_lfs(search));
	return user->failed || count < 0 ? -1 : 0;
}

int git_user_left_out(struct arena *arena, const struct git_user_search *search, const char **ret_names)
{
	struct git_user user = { .arena = arena };
	if (read_files(&user, search) < 0)
		return -1;
	*ret_names = user.left ? user.left + strspn(user.left, " ") : NULL;
	return 0;
}

int git_user_settings(struct arena *arena, const struct git_user_search *search, const char **ret_text)
{
	struct git_user user = { .arena = arena };
	*ret_text = NULL;
	if (read_files(&user, search) < 0)
		return -1;
	if (!user.kept && !user.left)
		return 0;
	*ret_text = arena_printf(
		arena, "%s%s%s%s",
		user.left ? "# Not taken from the configuration of the user and the host, since they would run or "
			    "redirect something, or read files or keys that are not here:\n#"
			  : "",
		user.left ? user.left : "", user.left ? "\n" : "", user.kept ? user.kept : "");
	return *ret_text ? 0 : -1;
}

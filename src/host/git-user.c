/* See git-user.h. Inside, a program that a setting names is mostly not there, a helper has no credentials, and a file that one
 * includes is not shown: such settings would only break git. What is kept is written anew, each setting in a section of its own. */
#include "host/git-user.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/git-syntax.h"

#define KEPT_MAX (64 * 1024)
#define LEFT_MAX 4096
#define VALUE_MAX 1024

/* Harmless, and still not for here: the keys to sign with are not there; who commits is found by git-identity.h. */
static bool is_unwanted(const struct git_setting *setting)
{
	return !strcmp(setting->key, "gpgsign") || !strcmp(setting->section, "user") || !strcmp(setting->section, "author") ||
	       !strcmp(setting->section, "committer");
}

/* An alias is a command of git's, or with an exclamation mark one for the shell. */
static bool is_plain_alias(const struct git_setting *setting)
{
	return !strcmp(setting->section, "alias") && setting->value && setting->value[strspn(setting->value, " \t")] != '!';
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
	if (setting->cut || has_control(setting->value) || has_control(setting->subsection) ||
	    (setting->value && strlen(setting->value) > VALUE_MAX))
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
	size_t most = strlen(setting->section) + 2 * (setting->subsection ? strlen(setting->subsection) : 0) + strlen(setting->key) +
	              2 * (setting->value ? strlen(setting->value) : 0) + 32;
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
	if (length <= 0 || (size_t)length >= sizeof(name) || !make_room(user, &user->left, LEFT_MAX) || strstr(user->left, name) ||
	    user->left_length + (size_t)length + 1 >= LEFT_MAX)
		return;
	memcpy(user->left + user->left_length, name, (size_t)length + 1);
	user->left_length += (size_t)length;
}

static void take(void *arg, const char *name, const struct git_setting *setting)
{
	(void)name;
	struct git_user *user = arg;
	if (is_unwanted(setting) || user->failed)
		return;
	if (is_kept(setting))
		keep(user, setting);
	else
		leave_out(user, setting);
}

void git_user_parse(struct git_user *user, const char *bytes, size_t length)
{
	/* What came before a mistake counts, as it does for who commits. */
	(void)!git_syntax_read(bytes, length, take, user);
}

static void read_file(struct git_user *user, const char *path, struct host_watch_set *watches)
{
	struct stat info;
	host_watch_path(watches, path);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_size <= 0 || info.st_size > GIT_SYNTAX_SIZE_MAX)
		return;
	char *text = arena_alloc(user->arena, (size_t)info.st_size);
	ssize_t length = text ? read(fd, text, (size_t)info.st_size) : 0;
	if (length > 0)
		git_user_parse(user, text, (size_t)length);
	user->failed = user->failed || !text;
}

static void read_beneath(struct git_user *user, const char *directory, const char *name, struct host_watch_set *watches)
{
	uncleared char path[PATH_MAX];
	int length = directory && *directory == '/' ? snprintf(path, sizeof(path), "%s/%s", directory, name) : 0;
	if (length > 0 && (size_t)length < sizeof(path))
		read_file(user, path, watches);
}

static const char *variable(const char *const *environment, const char *name)
{
	size_t length = strlen(name);
	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

int git_user_settings(struct arena *arena, const char *home, const char *xdg_config_home, const char *const *environment,
                      struct host_watch_set *watches, const char **ret_text)
{
	const char *file = variable(environment, "GIT_CONFIG_GLOBAL");
	bool has_xdg = xdg_config_home && *xdg_config_home;
	struct git_user user = { .arena = arena };
	*ret_text = NULL;
	if (file && *file) {
		if (*file == '/')
			read_file(&user, file, watches);
	} else {
		read_beneath(&user, has_xdg ? xdg_config_home : home, has_xdg ? "git/config" : ".config/git/config", watches);
		read_beneath(&user, home, ".gitconfig", watches);
	}
	if (user.failed)
		return -1;
	if (!user.kept && !user.left)
		return 0;
	*ret_text = arena_printf(arena, "%s%s%s%s", user.left ? "# Not taken from the user's own configuration, since they would run or redirect "
	                         "something, or read other files:\n#" : "", user.left ? user.left : "", user.left ? "\n" : "",
	                         user.kept ? user.kept : "");
	return *ret_text ? 0 : -1;
}

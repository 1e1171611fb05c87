/* The environment, in UTF-8 and with cordon's paths: see system.h. */
#undef getenv
#include <pthread.h>
#include <windows.h>

#include "base/windows/path.h"
#include "base/windows/wide.h"

#define VALUE_MAX 32768

/* As getenv(): what it returns stays, so each answer is kept; a program asks for a few names. */
static char *keep(char *text)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct kept {
		struct kept *next;
		char *text;
	} * first;
	pthread_mutex_lock(&lock);
	struct kept *found = first;
	while (found && strcmp(found->text, text))
		found = found->next;
	if (!found && (found = malloc(sizeof(*found)))) {
		*found = (struct kept){ first, text };
		first = found;
		text = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(text);
	return found ? found->text : NULL;
}

/* What can be no path stays as it is. */
static void map_path(char *text)
{
	char mapped[PATH_MAX];
	if (text[0] && text[1] == ':' && !windows_path_read(text, mapped, sizeof(mapped)))
		strcpy(text, mapped);
}

/* From "C:\\a;D:\\b" to "/c/a:/d/b", without what can be no path. */
static void map_list(char *text)
{
	char *to = text;
	for (char *at = text, *next; at; at = next) {
		char mapped[PATH_MAX];
		next = strchr(at, ';');
		if (next)
			*next++ = '\0';
		size_t length = strlen(at);
		if (length > 1 && at[0] == '"' && at[length - 1] == '"') {
			at[length - 1] = '\0';
			at++;
		}
		/* A path becomes no longer by being mapped. */
		if (windows_path_read(at, mapped, sizeof(mapped)))
			continue;
		length = strlen(mapped);
		if (length > 2 && mapped[length - 1] == '/')
			mapped[--length] = '\0';
		if (to != text)
			*to++ = ':';
		memmove(to, mapped, length);
		to += length;
	}
	*to = '\0';
}

static char *read_variable(const char *name)
{
	WCHAR wide_name[256], *value = malloc(VALUE_MAX * sizeof(*value));
	char *text = malloc(3 * VALUE_MAX);
	bool there = text && value && text_to_wide(name, wide_name, 256) == 0 &&
		     GetEnvironmentVariableW(wide_name, value, VALUE_MAX) &&
		     wide_to_text(value, text, 3 * VALUE_MAX) == 0;
	free(value);
	if (!there) {
		free(text);
		return NULL;
	}
	if (_stricmp(name, "PATH"))
		map_path(text);
	else
		map_list(text);
	return text;
}

char *system_getenv(const char *name)
{
	char *text = read_variable(name);
	if (!text && !strcmp(name, "HOME"))
		text = read_variable("USERPROFILE");
	return text ? keep(text) : NULL;
}

int setenv(const char *name, const char *value, int replace)
{
	WCHAR wide_name[256], wide_value[VALUE_MAX];
	if (text_to_wide(name, wide_name, 256) < 0 || text_to_wide(value, wide_value, VALUE_MAX) < 0)
		return -1;
	if (!replace && (GetEnvironmentVariableW(wide_name, NULL, 0) || GetLastError() != ERROR_ENVVAR_NOT_FOUND))
		return 0;
	if (SetEnvironmentVariableW(wide_name, wide_value))
		return 0;
	errno = EINVAL;
	return -1;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool is_path(const char *name, size_t length)
{
	static const char *const names[] = { "HOME",           "USERPROFILE",      "TMPDIR",
					     "XDG_DATA_HOME",  "XDG_CONFIG_HOME",  "XDG_CACHE_HOME",
					     "XDG_STATE_HOME", "GIT_CONFIG_GLOBAL" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == length && !memcmp(names[i], name, length))
			return true;
	return false;
}

/* NAME=VALUE; NULL where it is no text. Windows keeps the directories of drives under names that begin with '='. */
static char *pair_of(const WCHAR *wide)
{
	size_t size = 3 * wcslen(wide) + 1;
	char *pair = *wide == L'=' ? NULL : malloc(size);
	if (!pair || wide_to_text(wide, pair, size) < 0) {
		free(pair);
		return NULL;
	}
	size_t length = strcspn(pair, "=");
	for (size_t i = 0; i < length; i++)
		if (pair[i] >= 'a' && pair[i] <= 'z')
			pair[i] = (char)(pair[i] - 'a' + 'A');
	if (length == 4 && !memcmp(pair, "PATH", 4) && pair[length])
		map_list(pair + length + 1);
	else if (pair[length] && is_path(pair, length))
		map_path(pair + length + 1);
	return pair;
}

static char *home_pair(void)
{
	char *home = system_getenv("HOME"), *pair = home ? malloc(strlen(home) + 6) : NULL;
	if (pair)
		sprintf(pair, "HOME=%s", home);
	return pair;
}

static char **read_environment(void)
{
	WCHAR *block = GetEnvironmentStringsW();
	size_t count = 0, kept = 0;
	bool has_home = false;
	for (const WCHAR *at = block; at && *at; at += wcslen(at) + 1)
		count++;
	char **list = calloc(count + 2, sizeof(*list));
	for (const WCHAR *at = block; list && at && *at; at += wcslen(at) + 1)
		if ((list[kept] = pair_of(at)))
			has_home |= !strncmp(list[kept++], "HOME=", 5);
	if (list && !has_home)
		list[kept] = home_pair();
	FreeEnvironmentStringsW(block);
	return list;
}

char **system_environment(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char **known, *none[1];
	pthread_mutex_lock(&lock);
	if (!known)
		known = read_environment();
	char **list = known ? known : none;
	pthread_mutex_unlock(&lock);
	return list;
}

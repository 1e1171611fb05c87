/* A command's environment as Windows programs expect it: see windows.h. */
#include "driver/windows/windows.h"

#include "base/windows/path.h"
#include "base/windows/wide.h"

/* What the walk sets as paths of cordon's; and what Windows calls the same. */
static const struct {
	const char *name;
	bool is_list;
	struct {
		const char *name, *beneath;
	} also[3];
} paths[] = {
	{ "PATH", true, { { NULL, NULL } } },
	{ "HOME",
	  false,
	  { { "USERPROFILE", "" }, { "APPDATA", "/AppData/Roaming" }, { "LOCALAPPDATA", "/AppData/Local" } } },
	{ "TMPDIR", false, { { "TEMP", "" }, { "TMP", "" } } },
	{ "CORDON_WORKSPACE", false, { { NULL, NULL } } },
};

static bool is_called(const char *pair, const char *name)
{
	size_t length = strlen(name);
	return !strncasecmp(pair, name, length) && pair[length] == '=';
}

static bool is_there(const struct strings *environment, const char *name)
{
	for (size_t i = 0; i < environment->count; i++)
		if (is_called(environment->items[i], name))
			return true;
	return false;
}

/* "NAME=C:\\a"; what can be no path of Windows stays as it is. */
static char *native_pair(struct arena *arena, const char *name, const char *path)
{
	char native[PATH_MAX];
	return arena_printf(arena, "%s=%s", name, windows_path_native(path, native, sizeof(native)) ? path : native);
}

/* Of a list what can be no path is left out: it would be looked for in the working directory. */
static char *native_list(struct arena *arena, const char *name, const char *list)
{
	char *text = arena_printf(arena, "%s=", name), *part, native[PATH_MAX];
	const char *separator = "";
	for (size_t length; text && *list; list += length + (list[length] == ':')) {
		length = strcspn(list, ":");
		if (!(part = arena_strndup(arena, list, length)))
			return NULL;
		if (*part != '/' || windows_path_native(part, native, sizeof(native)))
			continue;
		text = arena_printf(arena, "%s%s%s", text, separator, native);
		separator = ";";
	}
	return text;
}

static int add_others(struct arena *arena, const struct strings *environment, size_t row, const char *path,
                      struct strings *list)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths[row].also) && paths[row].also[i].name; i++) {
		const char *name = paths[row].also[i].name;
		const char *whole = arena_printf(arena, "%s%s", path, paths[row].also[i].beneath);
		if (!whole ||
		    (!is_there(environment, name) && strings_add(arena, list, native_pair(arena, name, whole)) < 0))
			return -1;
	}
	return 0;
}

int windows_environment(struct arena *arena, const struct strings *environment, struct strings *ret_environment)
{
	struct strings list = { 0 };
	for (size_t i = 0; i < environment->count; i++) {
		const char *pair = environment->items[i], *value = strchr(pair, '=');
		size_t row = 0;
		while (row < ARRAY_SIZE(paths) && !is_called(pair, paths[row].name))
			row++;
		if (row == ARRAY_SIZE(paths) || !value) {
			if (strings_add(arena, &list, pair) < 0)
				return -1;
			continue;
		}
		const char *mapped = paths[row].is_list ? native_list(arena, paths[row].name, value + 1)
							: native_pair(arena, paths[row].name, value + 1);
		if (strings_add(arena, &list, mapped) < 0 || add_others(arena, environment, row, value + 1, &list) < 0)
			return -1;
	}
	*ret_environment = list;
	return 0;
}

/* "A=1\0B=2\0\0", sorted as Windows wants it. */
static int by_name(const void *a, const void *b)
{
	return _wcsicmp(*(wchar_t *const *)a, *(wchar_t *const *)b);
}

wchar_t *windows_environment_block(const struct strings *environment)
{
	size_t size = 2;
	for (size_t i = 0; i < environment->count; i++)
		size += strlen(environment->items[i]) + 1;
	wchar_t *room = calloc(size, sizeof(*room)), *block = calloc(size, sizeof(*block)), *at = room, *to = block;
	wchar_t **items = calloc(environment->count + 1, sizeof(*items));
	size_t count = 0;
	for (size_t i = 0; room && items && i < environment->count; i++)
		if (text_to_wide(environment->items[i], at, size - (size_t)(at - room)) == 0) {
			items[count++] = at;
			at += wcslen(at) + 1;
		}
	if (items)
		qsort(items, count, sizeof(*items), by_name);
	for (size_t i = 0; block && items && i < count; i++) {
		wcscpy(to, items[i]);
		to += wcslen(to) + 1;
	}
	free(items);
	free(room);
	return block;
}

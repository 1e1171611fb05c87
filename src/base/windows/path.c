/* See path.h. */
#include "base/windows/path.h"

#include <string.h>
#include <strings.h>

static const char too_long[] = "the path is too long";

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_device(const char *name, size_t length)
{
	static const char *const devices[] = { "con", "prn", "aux", "nul", "conin$", "conout$" };
	size_t stem = strcspn(name, ".");
	if (stem > length)
		stem = length;
	while (stem && name[stem - 1] == ' ')
		stem--;
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (stem == strlen(devices[i]) && !strncasecmp(name, devices[i], stem))
			return true;
	if (stem < 4 || (strncasecmp(name, "com", 3) && strncasecmp(name, "lpt", 3)))
		return false;
	/* Superscript one, two and three count as digits. */
	return (stem == 4 && name[3] >= '0' && name[3] <= '9') ||
	       (stem == 5 && (unsigned char)name[3] == 0xc2 && strchr("\xb9\xb2\xb3", name[4]));
}

const char *windows_name_check(const char *name, size_t length)
{
	if ((length == 1 && name[0] == '.') || (length == 2 && name[0] == '.' && name[1] == '.'))
		return NULL;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)name[i] < ' ' || strchr("<>\"|?*\\", name[i]))
			return "a name on Windows has no control characters and none of < > \" | ? * \\";
	if (memchr(name, ':', length))
		return "a colon in a name means a stream of a file on Windows";
	if (length && (name[length - 1] == '.' || name[length - 1] == ' '))
		return "Windows drops a dot or space at the end of a name";
	return length && is_device(name, length) ? "Windows takes this name for a device" : NULL;
}

static const char *check_names(const char *path)
{
	while (*path) {
		size_t length = strcspn(path, "/");
		const char *why = windows_name_check(path, length);
		if (why)
			return why;
		path += length;
		path += strspn(path, "/");
	}
	return NULL;
}

const char *windows_path_read(const char *text, char *ret_path, size_t size)
{
	size_t at = 0, length = strlen(text);
	bool drive = is_letter(text[0]) && text[1] == ':';
	if ((text[0] == '\\' || text[0] == '/') && (text[1] == '\\' || text[1] == '/'))
		return "a path to another machine or device has no drive; only drives can be granted";
	if (drive && text[2] != '\\' && text[2] != '/')
		return "a drive without a slash means a directory of that drive's own; write C:\\ and the whole path";
	if (!drive && text[0] == '\\')
		return "the path names no drive";
	if (!drive && (text[0] != '/' || !is_letter(text[1]) || (text[2] && text[2] != '/')))
		return text[0] == '/' ? "the path names no drive; write C:\\… or /c/…" : "the path must be absolute";
	if (length + 2 > size)
		return too_long;
	if (drive) {
		ret_path[at++] = '/';
		ret_path[at++] = lower(text[0]);
		text += 2;
	}
	for (; *text; text++)
		ret_path[at++] = *text == '\\' ? '/' : *text;
	ret_path[at] = '\0';
	ret_path[1] = lower(ret_path[1]);
	return check_names(ret_path + 1);
}

const char *windows_path_native(const char *path, char *ret_native, size_t size)
{
	size_t at = 0;
	const char *why = check_names(path);
	if (why)
		return why;
	if (strlen(path) + 3 > size)
		return too_long;
	if (*path == '/') {
		if (!is_letter(path[1]) || (path[2] && path[2] != '/'))
			return "the path names no drive; write C:\\… or /c/…";
		ret_native[at++] = (char)(lower(path[1]) - 'a' + 'A');
		ret_native[at++] = ':';
		ret_native[at++] = '\\';
		path += 2;
		path += strspn(path, "/");
	}
	while (*path) {
		if (*path == '/') {
			path += strspn(path, "/");
			if (*path)
				ret_native[at++] = '\\';
		} else {
			ret_native[at++] = *path++;
		}
	}
	ret_native[at] = '\0';
	return NULL;
}

const char *windows_path_turn(const char *text, char *ret_path, size_t size)
{
	bool drive = is_letter(text[0]) && text[1] == ':';
	if (drive || text[0] == '/' || text[0] == '\\')
		return windows_path_read(text, ret_path, size);
	size_t length = strlen(text);
	if (length >= size)
		return too_long;
	memcpy(ret_path, text, length + 1);
	for (char *at = ret_path; *at; at++)
		*at = *at == '\\' ? '/' : *at;
	return check_names(ret_path);
}

/* See windows.h. */
#include "driver/windows/windows.h"

#include <string.h>

#include "base/cleanup.h"

static bool needs_quotes(const char *word)
{
	return !*word || strpbrk(word, " \t\n\v\"");
}

/* Backslashes count only before a quote: there each is written twice. */
static size_t add_word(char *to, const char *word)
{
	size_t at = 0;
	if (!needs_quotes(word)) {
		memcpy(to, word, strlen(word));
		return strlen(word);
	}
	to[at++] = '"';
	for (;; word++) {
		size_t slashes = strspn(word, "\\");
		bool end = !word[slashes], quote = word[slashes] == '"';
		for (size_t i = 0; i < slashes * (end || quote ? 2 : 1); i++)
			to[at++] = '\\';
		word += slashes;
		if (end)
			break;
		if (quote)
			to[at++] = '\\';
		to[at++] = *word;
	}
	to[at++] = '"';
	return at;
}

char *windows_command_line(struct arena *arena, const char *const *argv, size_t count)
{
	size_t size = 1, at = 0;
	for (size_t i = 0; i < count; i++)
		size += 2 * strlen(argv[i]) + 3;
	char *line = arena_alloc(arena, size);
	if (!line)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		if (i)
			line[at++] = ' ';
		at += add_word(line + at, argv[i]);
	}
	line[at] = '\0';
	return line;
}

/* By its name, wherever a copy of it lies: it asks a service to start what then runs outside of the job. bash.exe is
 * one where Windows keeps its own programs, and a shell of Windows elsewhere. */
static bool is_linux_door(const char *path, const char *name)
{
	static const char *const doors[] = { "wsl.exe", "wslg.exe", "wslconfig.exe", "wslhost.exe", "wslrelay.exe",
		                             "wslservice.exe", "lxrun.exe" };
	static const char *const places[] = { "/system32/", "/sysnative/", "/syswow64/", "/winsxs/" };
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++)
		if (!strcasecmp(name, doors[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (!strcasecmp(name, "bash.exe") && strcasestr(path, places[i]))
			return true;
	return false;
}

const char *windows_program_refused(const char *path)
{
	size_t length = strlen(path);
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	const char *extension = length > 4 ? path + length - 4 : "";
	if (!strcasecmp(extension, ".bat") || !strcasecmp(extension, ".cmd"))
		return "a batch file reads its arguments anew; start cmd.exe with it, if that is what is meant";
	if (is_linux_door(path, name))
		return "this is the door to the Linux subsystem, where none of these walls hold; choose --driver wsl";
	if (strcasestr(path, "/microsoft/windowsapps/"))
		return "an alias of a packaged app, or of a distro of Linux, is started by a service; name the program "
		       "itself";
	return NULL;
}

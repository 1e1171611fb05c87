/* Facts about the host: see host.h. */
#include "host/host.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "host/loader.h"

/* ---- programs --------------------------------------------------------------------------------------------------- */

static int add_real(struct arena *arena, struct strings *list, const char *path)
{
	char real[PATH_MAX];
	if (!realpath(path, real) || strings_find(list, real) >= 0)
		return 0;
	return strings_add(arena, list, arena_strdup(arena, real));
}

static void script_interpreter(const unsigned char *head, size_t length, char interpreter[PATH_MAX])
{
	size_t at = 2, used = 0;
	while (at < length && (head[at] == ' ' || head[at] == '\t'))
		at++;
	while (at < length && head[at] > ' ' && used + 1 < PATH_MAX)
		interpreter[used++] = (char)head[at++];
	interpreter[used] = '\0';
}

int host_program_parts(struct arena *arena, const char *program, struct places *interpreters, struct cordon_error *err)
{
	char interpreter[PATH_MAX];
	const char *path = program;
	/* A script's interpreter has a loader of its own, and may be a script itself; the kernel allows four. */
	for (int depth = 0; depth < 5; depth++) {
		unsigned char head[512];
		auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		ssize_t length = fd < 0 ? -1 : read(fd, head, sizeof(head));
		if (length < 2)
			return 0;
		if (head[0] == '#' && head[1] == '!')
			script_interpreter(head, (size_t)length, interpreter);
		else
			loader_of(fd, head, (size_t)length, interpreter);
		if (interpreter[0] != '/')
			return 0;
		struct place place;
		if (beneath_resolve(arena, interpreter, &place, NULL, NULL) < 0)
			return 0;
		if (places_add(arena, interpreters, &place) < 0 || !(path = arena_strdup(arena, interpreter)))
			return fail_oom(err);
	}
	return 0;
}

int host_library_directories(struct arena *arena, struct strings *ret_directories, struct cordon_error *err)
{
	/* Where loaders look, and where languages keep what they load at run time; none of them holds programs as
	 * such. */
	static const char *const directories[] = {
		"/usr/lib/x86_64-linux-gnu",
		"/usr/lib/aarch64-linux-gnu",
		"/usr/lib64",
		"/usr/local/lib",
		"/usr/lib/python3",
		"/usr/lib/python3.11",
		"/usr/lib/python3.12",
		"/usr/lib/python3.13",
		"/usr/share/perl",
		"/usr/lib/ruby",
		"/usr/lib/locale",
	};
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		if (add_real(arena, ret_directories, directories[i]) < 0)
			return fail_oom(err);
	return 0;
}

/* ---- users ------------------------------------------------------------------------------------------------------ */

/* NAME:PASSWORD:UID:… with a name that is safe to show; its length, or 0. */
static size_t name_of_line(const char *line, unsigned uid)
{
	size_t length = strspn(line, "abcdefghijklmnopqrstuvwxyz0123456789_.-");
	char *end;
	if (!length || length > HOST_USER_MAX || line[length] != ':')
		return 0;
	const char *password = line + length + 1, *number = password + strcspn(password, ":\n");
	if (*number != ':' || number[1] < '0' || number[1] > '9')
		return 0;
	return strtoul(number + 1, &end, 10) == uid && *end == ':' ? length : 0;
}

const char *host_user_name(struct arena *arena, unsigned uid)
{
	uncleared char text[4096];
	auto_close int fd = open(HOST_PASSWD, O_RDONLY | O_CLOEXEC);
	size_t rest = 0;
	/* Up to the first line that is longer than any of a user. */
	for (bool end = fd < 0; !end && rest < sizeof(text) - 1;) {
		ssize_t got = read(fd, text + rest, sizeof(text) - 1 - rest);
		const char *line = text;
		end = got <= 0;
		text[rest + (end ? 0 : (size_t)got)] = '\0';
		for (size_t size; size = strcspn(line, "\n"), line[size] || (end && size);
		     line += size + (line[size] == '\n')) {
			size_t length = name_of_line(line, uid);
			if (length)
				return arena_strndup(arena, line, length);
		}
		rest = strlen(line);
		memmove(text, line, rest);
	}
	return "user";
}

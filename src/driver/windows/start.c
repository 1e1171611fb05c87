/* From a command to what Windows starts: see windows.h. */
#include "driver/windows/windows.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/windows/path.h"
#include "base/windows/wide.h"

/* The first candidate that is a file; *ret_path as Windows writes it. */
static int find_program(const struct command *command, wchar_t ret_path[PATH_MAX], struct cordon_error *err)
{
	static const char *const endings[] = { SYSTEM_PROGRAM_ENDINGS };
	const struct profile *profile = command->profile;
	for (size_t i = 0; i < profile->candidates.count; i++)
		for (size_t e = 0; e < ARRAY_SIZE(endings); e++) {
			char path[PATH_MAX], native[PATH_MAX];
			struct stat info;
			const char *named = profile->candidates.items[i];
			bool whole = *named == '/';
			if (!(named = path_normalise(command->arena,
			                             arena_printf(command->arena, "%s%s%s", whole ? "" : profile->cwd,
			                                          whole ? "" : "/", named))))
				return fail_oom(err);
			if (snprintf(path, sizeof(path), "%s%s", named, endings[e]) >= (int)sizeof(path) ||
			    stat(path, &info) < 0 || !S_ISREG(info.st_mode))
				continue;
			const char *why = windows_program_refused(path);
			if (why)
				return fail(err, CORDON_E_PROGRAM_NOT_ALLOWED, 0, path, "%s", why);
			/* Longer ones only by this prefix. */
			wcscpy(ret_path, strlen(path) < 240 ? L"" : L"\\\\?\\");
			size_t prefix = wcslen(ret_path);
			if (windows_path_native(path, native, sizeof(native)) ||
			    text_to_wide(native, ret_path + prefix, PATH_MAX - prefix) < 0)
				continue;
			return 0;
		}
	return fail(err, CORDON_E_PROGRAM_NOT_FOUND, 0, profile->program, "there is no such program");
}

/* Of its arguments the first, the program as it was named, is told as Windows writes it. */
static char *command_line(const struct command *command)
{
	const struct strings *argv = &command->profile->argv;
	const char **words = arena_alloc(command->arena, (argv->count + 1) * sizeof(*words));
	char native[PATH_MAX];
	if (!words)
		return NULL;
	memcpy(words, argv->items, argv->count * sizeof(*words));
	if (argv->count && argv->items[0][0] == '/' && !windows_path_native(argv->items[0], native, sizeof(native)) &&
	    !(words[0] = arena_strdup(command->arena, native)))
		return NULL;
	return windows_command_line(command->arena, words, argv->count);
}

static int refuse_terminal(struct cordon_error *err)
{
	return fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "tty", "this driver gives a command no terminal");
}

int windows_start(struct sandbox *sandbox, const struct command *command, struct running **ret_running,
                  struct cordon_error *err)
{
	const struct windows_sandbox *windows = (const struct windows_sandbox *)sandbox;
	const struct profile *profile = command->profile;
	wchar_t program[PATH_MAX], cwd[PATH_MAX];
	char native[PATH_MAX];
	if (command->tty)
		return refuse_terminal(err);
	if (find_program(command, program, err) < 0)
		return -1;
	char *line = command_line(command);
	auto_free wchar_t *wide_line = line ? calloc(strlen(line) + 1, sizeof(*wide_line)) : NULL;
	struct strings environment;
	auto_free wchar_t *block = NULL;
	if (windows_environment(command->arena, command->environment, &environment) == 0)
		block = windows_environment_block(&environment);
	if (!wide_line || !block || text_to_wide(line, wide_line, strlen(line) + 1) < 0)
		return fail(err, CORDON_E_INVALID_REQUEST, EILSEQ, profile->program,
		            "the arguments are no text, or memory is short");
	if (wcslen(wide_line) > 32766)
		return fail(err, CORDON_E_LIMIT_EXCEEDED, E2BIG, profile->program,
		            "the arguments are too long for Windows");
	if (windows_path_native(profile->cwd, native, sizeof(native)) || text_to_wide(native, cwd, PATH_MAX) < 0)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, profile->cwd,
		            "this cannot be a working directory on Windows");
	const struct windows_launch launch = { .token = windows->token, .job = windows->job,
		                               .low = windows->held & WALL_BIT(FILESYSTEM), .program = program,
		                               .line = wide_line, .environment = block, .cwd = cwd };
	return windows_follow(&launch, command, ret_running, err);
}

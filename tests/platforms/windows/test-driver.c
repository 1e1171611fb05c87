/* The Windows driver, as wine lets it be tried: jobs, trees, handles, streams and refusals for real. Integrity levels,
 * restricted tokens and limits on memory are accepted by wine and do not hold there, and what a job was set to is not
 * told again: these are what the refusals are about. Where commands are run, those walls are named as optional by this
 * test alone. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "driver/windows/windows.h"
#include "ran.h"

#include <shellapi.h>

#include <cmocka.h>

#define OF_WINE                                                                                                        \
	(WALL_BIT(FILESYSTEM) | WALL_BIT(PRIVILEGES) | WALL_BIT(LIMIT_MEMORY) | WALL_BIT(LIMIT_PROCESSES) |            \
	 WALL_BIT(LIMIT_CPU) | WALL_BIT(IPC) | WALL_BIT(SPAWN) | WALL_BIT(LIFETIME))
#define EVERY_JOB_WALL (WALL_BIT(FILESYSTEM) | WALL_BIT(PRIVILEGES) | WALL_BIT(LIFETIME) | WALL_BIT(DESCRIPTORS))

static char here[PATH_MAX], data[PATH_MAX + 8], child[PATH_MAX + 16];

static struct ran ran;

static void prepare(const char *program, const char *const *arguments)
{
	static const char *environment[] = { "SystemRoot=C:\\windows", "CORDON_SESSION_ID=s",
		                             "caf\xc3\xa9=na\xc3\xafve" };
	ran = (struct ran){ 0 };
	assert_int_equal(strings_add(&ran.arena, &ran.profile.argv, program), 0);
	for (; arguments && *arguments; arguments++)
		assert_int_equal(strings_add(&ran.arena, &ran.profile.argv, *arguments), 0);
	assert_int_equal(strings_add(&ran.arena, &ran.profile.candidates, program), 0);
	ran.profile.environment = (struct strings){ .items = environment, .count = ARRAY_SIZE(environment) };
	ran.profile.driver = "windows";
	ran.profile.cwd = ran.profile.workspace = here;
	ran.profile.program = program;
	ran.profile.network = NETWORK_ALL;
	ran.profile.spawn = true;
	ran.profile.walls = EVERY_JOB_WALL;
	ran_prepare(&ran);
}

static int raise_with(uint32_t optional)
{
	const struct walls walls = { .arena = &ran.arena, .profile = &ran.profile, .cwd_fd = -1, .data_dir = data };
	return windows_raise(&driver_windows, &walls, optional, &ran.sandbox, &ran.err);
}

static int begin(void)
{
	if (raise_with(OF_WINE) < 0)
		fail_msg("%s: %s", ran.err.subject, ran.err.reason);
	return driver_windows.start(ran.sandbox, &ran.command, &ran.running, &ran.err);
}

static void finish(void)
{
	ran_finish(&ran);
}

static void run(const char *const *arguments)
{
	prepare(child, arguments);
	if (begin() < 0)
		fail_msg("%s: %s", ran.err.subject, ran.err.reason);
	finish();
}

static void clear(void)
{
	ran_clear(&ran, &driver_windows);
}

#define ARGUMENTS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const char *out(void)
{
	return ran.outcome.streams[CORDON_STDOUT].data;
}

/* ---- a command --------------------------------------------------------------------------------------------------- */

static void exit_codes(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int code;
	} rows[] = { { "0", 0 }, { "7", 7 }, { "255", 255 }, { "259", 259 }, { "-1", -1 } };
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		run(ARGUMENTS("exit", rows[i].text));
		assert_int_equal(ran.outcome.exit_code, rows[i].code);
		assert_false(ran.outcome.timed_out);
		clear();
	}
}

static void arguments_and_streams(void **state)
{
	(void)state;
	run(ARGUMENTS("say", "two words", "\"quoted\" \\", "", "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac", "a\\\"b",
	              "%PATH%", "trailing\\\\"));
	assert_string_equal(out(), "two words\r\n\"quoted\" \\\r\n\r\ncaf\xc3\xa9 "
	                           "\xe6\x97\xa5\xe6\x9c\xac\r\na\\\"b\r\n%PATH%\r\ntrailing\\\\\r\n");
	assert_string_equal(ran.outcome.streams[CORDON_STDERR].data, "on stderr\r\n");
	clear();
}

/* As Windows takes a line apart again. */
static void command_lines(void **state)
{
	(void)state;
	static const char letters[] = "a \"\\\t%^&";
	srand(7);
	for (int turn = 0; turn < 500; turn++) {
		struct arena arena = { 0 };
		char words[4][12];
		const char *argv[5] = { "x" };
		for (int i = 0; i < 4; i++) {
			int length = rand() % 11;
			for (int c = 0; c < length; c++)
				words[i][c] = letters[rand() % 8];
			words[i][length] = '\0';
			argv[i + 1] = words[i];
		}
		char *line = windows_command_line(&arena, argv, 5);
		wchar_t wide[512];
		int count;
		assert_non_null(line);
		assert_true(MultiByteToWideChar(CP_UTF8, 0, line, -1, wide, 512) > 0);
		wchar_t **parts = CommandLineToArgvW(wide, &count);
		assert_int_equal(count, 5);
		for (int i = 1; i < 5; i++) {
			char text[64];
			WideCharToMultiByte(CP_UTF8, 0, parts[i], -1, text, sizeof(text), NULL, NULL);
			assert_string_equal(text, argv[i]);
		}
		LocalFree(parts);
		arena_free(&arena);
	}
}

static void input_comes_and_ends(void **state)
{
	(void)state;
	char path[PATH_MAX + 16];
	snprintf(path, sizeof(path), "%s/input", here);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(write(fd, "0123456789", 10), 10);
	lseek(fd, 0, SEEK_SET);
	prepare(child, ARGUMENTS("copy"));
	ran.command.stdin_fd = fd;
	assert_int_equal(begin(), 0);
	finish();
	assert_int_equal(ran.outcome.streams[CORDON_STDOUT].total, 50000);
	assert_int_equal(ran.outcome.stdin_bytes, 50000);
	clear();
	close(fd);
	unlink(path);
	run(ARGUMENTS("copy"));
	assert_int_equal(ran.outcome.streams[CORDON_STDOUT].total, 0);
	clear();
}

static void a_flood_is_counted_and_cut(void **state)
{
	(void)state;
	prepare(child, ARGUMENTS("flood"));
	ran.command.stdout_cap = 1000;
	assert_int_equal(begin(), 0);
	finish();
	assert_int_equal(ran.outcome.streams[CORDON_STDOUT].total, 1000000);
	assert_true(ran.outcome.streams[CORDON_STDOUT].truncated);
	assert_true(ran.outcome.streams[CORDON_STDOUT].length < 1100);
	clear();
}

static void environment_and_directory(void **state)
{
	(void)state;
	run(ARGUMENTS("variable", "caf\xc3\xa9"));
	assert_string_equal(out(), "na\xc3\xafve");
	clear();
	run(ARGUMENTS("variable", "WINEPREFIX"));
	assert_string_equal(out(), "");
	clear();
	run(ARGUMENTS("where"));
	assert_non_null(strstr(out(), strrchr(here, '/') + 1));
	clear();
}

/* wine itself starts no program by a longer path than 260. */
static void unicode_and_long_paths(void **state)
{
	(void)state;
	char path[PATH_MAX], text[8] = "";
	snprintf(path, sizeof(path), "%s/%s", here, "\xc3\xa4 \xe6\x97\xa5");
	assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
	size_t length = strlen(path);
	strcat(path, "/child.exe");
	assert_true(linkat(AT_FDCWD, child, AT_FDCWD, path, 0) == 0 || errno == EEXIST);
	prepare(path, ARGUMENTS("exit", "5"));
	assert_int_equal(begin(), 0);
	finish();
	assert_int_equal(ran.outcome.exit_code, 5);
	clear();
	path[length] = '\0';
	for (int i = 0; i < 8; i++) {
		strcat(path, "/a-directory-with-a-rather-long-name-0123456789");
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
	}
	assert_true(strlen(path) > 300);
	auto_close int directory = open(path, O_RDONLY | O_DIRECTORY);
	auto_close int fd = openat(directory, "\xe6\x9c\xac.txt", O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(directory >= 0 && fd >= 0);
	assert_int_equal(write(fd, "deep", 4), 4);
	strcat(path, "/\xe6\x9c\xac.txt");
	auto_close int again = open(path, O_RDONLY);
	assert_int_equal(read(again, text, 4), 4);
	assert_string_equal(text, "deep");
}

/* ---- output on its way ------------------------------------------------------------------------------------------- */

static struct {
	char kept[64], given[64];
	unsigned releases;
	struct running **running;
} holding;

static void hold_some(void *arg, enum cordon_stream stream, const void *bytes, size_t length)
{
	(void)arg, (void)stream;
	strncat(holding.kept, bytes, length);
}

static uint64_t held_for(void *arg)
{
	(void)arg;
	return *holding.kept ? 100 : 0;
}

static void let_go(void *arg)
{
	(void)arg;
	holding.releases++;
	(*holding.running)->ops->deliver(*holding.running, CORDON_STDOUT, holding.kept, strlen(holding.kept));
	holding.kept[0] = '\0';
}

static void take_output(void *arg, enum cordon_stream stream, const void *bytes, size_t length)
{
	(void)arg, (void)stream;
	strncat(holding.given, bytes, length);
}

/* A secret may begin so: it is handed on in time, and not when the command ends. */
static void what_is_held_is_let_go_in_time(void **state)
{
	bool finished = false;
	(void)state;
	memset(&holding, 0, sizeof(holding));
	holding.running = &ran.running;
	prepare(child, ARGUMENTS("tree", "stay"));
	ran.profile.limits.wall_ms = 30000;
	ran.command.output = take_output;
	ran.command.filter = (struct output_filter){ .add = hold_some, .held_ms = held_for, .release = let_go };
	assert_int_equal(begin(), 0);
	for (int turn = 0; turn < 2000 && !*holding.given && !finished; turn++)
		assert_int_equal(ran.running->ops->step(ran.running, 10, &finished, &ran.err), 0);
	assert_false(finished);
	assert_int_equal(holding.releases, 1);
	assert_true(strtoul(holding.given, NULL, 10) > 0);
	ran.command.filter = (struct output_filter){ 0 };
	clear();
}

static void errors_can_go_where_output_goes(void **state)
{
	(void)state;
	prepare(child, ARGUMENTS("say", "one"));
	ran.command.one_stream = true;
	assert_int_equal(begin(), 0);
	finish();
	assert_non_null(strstr(out(), "on stderr"));
	assert_non_null(strstr(out(), "one"));
	assert_int_equal(ran.outcome.streams[CORDON_STDERR].total, 0);
	clear();
}

static unsigned seen;

static void note_watched(void *arg)
{
	char byte;
	seen += read(*(int *)arg, &byte, 1) == 1;
}

static void what_is_watched_is_handled(void **state)
{
	int ends[2];
	(void)state;
	assert_int_equal(_pipe(ends, 256, O_BINARY), 0);
	prepare(child, ARGUMENTS("exit", "0"));
	ran.command.watched[0] = (struct watched){ .fd = ends[0], .handle = note_watched, .arg = &ends[0] };
	ran.command.watched_count = 1;
	assert_int_equal(write(ends[1], "xy", 2), 2);
	assert_int_equal(begin(), 0);
	seen = 0;
	bool finished = false;
	for (int turn = 0; turn < 2000 && (seen < 2 || !finished); turn++)
		assert_int_equal(ran.running->ops->step(ran.running, 10, &finished, &ran.err), 0);
	assert_int_equal(seen, 2);
	clear();
	close(ends[0]);
	close(ends[1]);
}

/* ---- what it starts ---------------------------------------------------------------------------------------------- */

static bool is_alive(DWORD pid)
{
	HANDLE process = OpenProcess(SYNCHRONIZE, FALSE, pid);
	bool alive = process && WaitForSingleObject(process, 0) == WAIT_TIMEOUT;
	if (process)
		CloseHandle(process);
	return alive;
}

static void what_it_started_ends_with_it(void **state)
{
	(void)state;
	run(ARGUMENTS("tree"));
	assert_int_equal(ran.outcome.exit_code, 0);
	DWORD pid = (DWORD)strtoul(out(), NULL, 10);
	assert_true(pid != 0);
	assert_false(is_alive(pid));
	clear();
}

static void a_timeout_ends_the_tree(void **state)
{
	(void)state;
	prepare(child, ARGUMENTS("tree", "stay"));
	ran.profile.limits.wall_ms = 3000;
	assert_int_equal(begin(), 0);
	finish();
	assert_true(ran.outcome.timed_out);
	DWORD pid = (DWORD)strtoul(out(), NULL, 10);
	assert_true(pid != 0);
	assert_false(is_alive(pid));
	clear();
}

static void lowering_ends_everything(void **state)
{
	(void)state;
	prepare(child, ARGUMENTS("tree", "stay"));
	assert_int_equal(begin(), 0);
	bool finished = false;
	while (!ran.running->finished && windows_job_count(((struct windows_sandbox *)ran.sandbox)->job) < 2)
		assert_int_equal(ran.running->ops->step(ran.running, 50, &finished, &ran.err), 0);
	assert_false(finished);
	HANDLE job = ((struct windows_sandbox *)ran.sandbox)->job, copy;
	assert_true(
		DuplicateHandle(GetCurrentProcess(), job, GetCurrentProcess(), &copy, 0, FALSE, DUPLICATE_SAME_ACCESS));
	clear();
	for (int i = 0; i < 500 && windows_job_count(copy); i++)
		Sleep(10);
	assert_int_equal(windows_job_count(copy), 0);
	CloseHandle(copy);
}

static void the_job_cannot_be_left(void **state)
{
	(void)state;
	run(ARGUMENTS("escape"));
	assert_int_equal(ran.outcome.exit_code, 0);
	clear();
}

/* ---- what is handed in ------------------------------------------------------------------------------------------- */

static void no_handle_but_three_is_handed_in(void **state)
{
	(void)state;
	SECURITY_ATTRIBUTES inherit = { .nLength = sizeof(inherit), .bInheritHandle = TRUE };
	HANDLE event = CreateEventW(&inherit, TRUE, FALSE, NULL);
	char number[32];
	snprintf(number, sizeof(number), "%llu", (unsigned long long)(ULONG_PTR)event);
	run(ARGUMENTS("handle", number));
	assert_int_equal(ran.outcome.exit_code, 0);
	clear();
	/* Without the list of handles it is there. */
	struct arena arena = { 0 };
	wchar_t line[PATH_MAX], program[PATH_MAX];
	char native[PATH_MAX];
	STARTUPINFOW startup = { .cb = sizeof(startup) };
	PROCESS_INFORMATION made;
	DWORD code = 9;
	snprintf(native, sizeof(native), "Z:%s", child + 2);
	MultiByteToWideChar(CP_UTF8, 0, native, -1, program, PATH_MAX);
	MultiByteToWideChar(CP_UTF8, 0, windows_command_line(&arena, (const char *[]){ "child", "handle", number }, 3),
	                    -1, line, PATH_MAX);
	assert_true(CreateProcessW(program, line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &made));
	WaitForSingleObject(made.hProcess, INFINITE);
	GetExitCodeProcess(made.hProcess, &code);
	assert_int_equal(code, 1);
	CloseHandle(made.hProcess);
	CloseHandle(made.hThread);
	CloseHandle(event);
	arena_free(&arena);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void programs_that_are_not_started(void **state)
{
	(void)state;
	assert_non_null(windows_program_refused("/c/tools/build.BAT"));
	assert_non_null(windows_program_refused("/c/tools/build.cmd"));
	assert_non_null(windows_program_refused("/c/Windows/System32/bash.exe"));
	assert_non_null(windows_program_refused("/c/windows/system32/wsl.exe"));
	assert_non_null(windows_program_refused("/c/Windows/Sysnative/bash.exe"));
	assert_non_null(windows_program_refused("/c/Windows/SysWOW64/Bash.EXE"));
	assert_non_null(windows_program_refused("/c/Windows/WinSxS/amd64_x/bash.exe"));
	assert_non_null(windows_program_refused("/c/Program Files/WSL/wsl.exe"));
	assert_non_null(windows_program_refused("/c/Program Files/WSL/wslg.exe"));
	assert_non_null(windows_program_refused("/c/work/WSL.exe"));
	assert_non_null(windows_program_refused("/c/Users/ada/AppData/Local/Microsoft/WindowsApps/ubuntu.exe"));
	assert_non_null(windows_program_refused("/c/Users/ada/AppData/Local/Microsoft/WindowsApps/bash.exe"));
	assert_null(windows_program_refused("/c/Program Files/Git/bin/bash.exe"));
	assert_null(windows_program_refused("/c/Windows/System32/cmd.exe"));
	assert_null(windows_program_refused("/c/tools/wsl-notes.exe"));
	prepare("/c/no/such/program", NULL);
	assert_int_equal(begin(), -1);
	assert_int_equal(ran.err.class, CORDON_E_PROGRAM_NOT_FOUND);
	clear();
}

/* wine says yes to each of these settings. Each is read back, and is a wall by whose name nothing is raised. */
static void a_setting_that_does_not_read_back_refuses(void **state)
{
	(void)state;
	static const struct {
		enum cordon_wall wall;
		uint64_t memory, processes, percent;
		bool spawn;
	} rows[] = {
		{ CORDON_WALL_FILESYSTEM, 0, 0, 0, true },
		{ CORDON_WALL_PRIVILEGES, 0, 0, 0, true },
		{ CORDON_WALL_LIFETIME, 0, 0, 0, true },
		{ CORDON_WALL_IPC, 0, 0, 0, true },
		{ CORDON_WALL_LIMIT_MEMORY, 64 << 20, 0, 0, true },
		{ CORDON_WALL_LIMIT_PROCESSES, 0, 8, 0, true },
		{ CORDON_WALL_LIMIT_CPU, 0, 0, 50, true },
		{ CORDON_WALL_SPAWN, 0, 0, 0, false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const uint32_t wall = UINT32_C(1) << rows[i].wall;
		prepare(child, ARGUMENTS("exit", "0"));
		ran.profile.walls = EVERY_JOB_WALL | wall;
		ran.profile.limits.memory_bytes = rows[i].memory;
		ran.profile.limits.processes = rows[i].processes;
		ran.profile.limits.cpu_percent = rows[i].percent;
		ran.profile.spawn = rows[i].spawn;
		assert_int_equal(raise_with(OF_WINE & ~wall), -1);
		assert_int_equal(ran.err.class, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE);
		assert_string_equal(ran.err.boundary, cordon_wall_name(rows[i].wall));
		assert_true(*ran.err.remediation);
		clear();
	}
	/* As a person's command would be: nothing optional. */
	prepare(child, ARGUMENTS("exit", "0"));
	const struct walls walls = { .arena = &ran.arena, .profile = &ran.profile, .cwd_fd = -1, .data_dir = data };
	assert_int_equal(driver_windows.raise(&driver_windows, &walls, &ran.sandbox, &ran.err), -1);
	assert_int_equal(ran.err.class, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE);
	clear();
}

static void what_cannot_be_held_is_refused(void **state)
{
	(void)state;
	prepare(child, ARGUMENTS("exit", "0"));
	ran.profile.network = NETWORK_NONE;
	ran.profile.walls |= WALL_BIT(NETWORK);
	assert_int_equal(raise_with(OF_WINE), -1);
	assert_string_equal(ran.err.boundary, "network");
	clear();
	prepare(child, ARGUMENTS("exit", "0"));
	ran.profile.walls |= WALL_BIT(PROGRAMS);
	assert_int_equal(raise_with(OF_WINE), -1);
	assert_string_equal(ran.err.boundary, "programs");
	clear();
	/* A limit that nothing holds is refused only where the policy requires it. */
	for (int wall = CORDON_WALL_LIMIT_DISK; wall <= CORDON_WALL_LIMIT_FILES;
	     wall += CORDON_WALL_LIMIT_FILES - CORDON_WALL_LIMIT_DISK) {
		prepare(child, ARGUMENTS("exit", "0"));
		ran.profile.walls |= UINT32_C(1) << wall;
		assert_int_equal(raise_with(OF_WINE), 0);
		clear();
		prepare(child, ARGUMENTS("exit", "0"));
		ran.profile.walls |= UINT32_C(1) << wall;
		ran.profile.required = UINT32_C(1) << wall;
		assert_int_equal(raise_with(OF_WINE), -1);
		assert_string_equal(ran.err.boundary, cordon_wall_name((enum cordon_wall)wall));
		clear();
	}
	prepare(child, ARGUMENTS("exit", "0"));
	ran.command.tty = true;
	assert_int_equal(begin(), -1);
	assert_int_equal(ran.err.class, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE);
	clear();
}

static void what_holds_is_said(void **state)
{
	(void)state;
	const char *isolation[CORDON_WALL_MAX];
	prepare(child, ARGUMENTS("exit", "0"));
	ran.profile.walls |= WALL_BIT(MASKED) | WALL_BIT(LIMIT_MEMORY);
	ran.profile.limits.memory_bytes = 64 << 20;
	assert_int_equal(raise_with(OF_WINE), 0);
	driver_windows.describe(ran.sandbox, &ran.arena, &ran.profile, isolation);
	assert_string_equal(isolation[CORDON_WALL_LIFETIME], "none");
	assert_string_equal(isolation[CORDON_WALL_DESCRIPTORS], "handle list, pipes");
	assert_string_equal(isolation[CORDON_WALL_MASKED], "none");
	assert_string_equal(isolation[CORDON_WALL_LIMIT_MEMORY], "none");
	assert_null(isolation[CORDON_WALL_KEYRING]);
	clear();
	/* Of what it cannot hold, "none"; and for each of these, what to do. */
	struct windows_sandbox all = { .sandbox = { &driver_windows }, .held = WALLS_ALL };
	ran.profile.walls = WALLS_ALL;
	driver_windows.describe(&all.sandbox, &ran.arena, &ran.profile, isolation);
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++) {
		bool none = !strcmp(isolation[wall], "none");
		assert_int_equal(none, (driver_windows.cannot >> wall) & 1);
		assert_true(!none || *driver_windows.fix((enum cordon_wall)wall));
	}
}

/* No window asks what to do, and none is waited for. */
static void a_crash_is_an_end(void **state)
{
	(void)state;
	prepare(child, ARGUMENTS("crash"));
	ran.profile.limits.wall_ms = 30000;
	assert_int_equal(begin(), 0);
	finish();
	assert_false(ran.outcome.timed_out);
	assert_int_equal((uint32_t)ran.outcome.exit_code, 0xC0000005);
	clear();
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

static int count_journals(void)
{
	char path[PATH_MAX + 16];
	int count = 0;
	snprintf(path, sizeof(path), "%s/labels", data);
	DIR *directory = opendir(path);
	for (struct dirent *entry; directory && (entry = readdir(directory));)
		count += entry->d_name[0] != '.';
	if (directory)
		closedir(directory);
	return count;
}

static void labels_that_cannot_be_set_refuse(void **state)
{
	(void)state;
	struct landlock_rule rule = { .path = here, .access = LANDLOCK_SEE | LANDLOCK_CHANGE };
	struct windows_labels labels = WINDOWS_LABELS_NONE;
	prepare(child, NULL);
	ran.profile.landlock = (struct landlock_plan){ .rules = &rule, .count = 1 };
	assert_int_equal(windows_labels_set(&ran.arena, data, &ran.profile, &labels, &ran.err), -1);
	assert_int_equal(ran.err.class, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE);
	assert_string_equal(ran.err.boundary, "filesystem");
	clear();
}

static void a_journal_of_the_dead_is_swept(void **state)
{
	(void)state;
	char path[PATH_MAX + 64];
	snprintf(path, sizeof(path), "%s/labels", data);
	assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
	while (windows_labels_sweep(data))
		;
	int before = count_journals();
	strcat(path, "/00000000000000000000000001");
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_true(write(fd, "Z:\\no\\such\\directory\t-\n", 23) == 23);
	/* While its writer lives, it is left alone. */
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(windows_labels_sweep(data), 0);
	assert_int_equal(count_journals(), before + 1);
	close(fd);
	assert_int_equal(windows_labels_sweep(data), 1);
	assert_int_equal(count_journals(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_codes),
		cmocka_unit_test(arguments_and_streams),
		cmocka_unit_test(command_lines),
		cmocka_unit_test(input_comes_and_ends),
		cmocka_unit_test(a_flood_is_counted_and_cut),
		cmocka_unit_test(environment_and_directory),
		cmocka_unit_test(unicode_and_long_paths),
		cmocka_unit_test(what_is_held_is_let_go_in_time),
		cmocka_unit_test(errors_can_go_where_output_goes),
		cmocka_unit_test(what_is_watched_is_handled),
		cmocka_unit_test(what_it_started_ends_with_it),
		cmocka_unit_test(a_timeout_ends_the_tree),
		cmocka_unit_test(lowering_ends_everything),
		cmocka_unit_test(the_job_cannot_be_left),
		cmocka_unit_test(no_handle_but_three_is_handed_in),
		cmocka_unit_test(programs_that_are_not_started),
		cmocka_unit_test(a_setting_that_does_not_read_back_refuses),
		cmocka_unit_test(what_cannot_be_held_is_refused),
		cmocka_unit_test(what_holds_is_said),
		cmocka_unit_test(a_crash_is_an_end),
		cmocka_unit_test(labels_that_cannot_be_set_refuse),
		cmocka_unit_test(a_journal_of_the_dead_is_swept),
	};
	if (!getcwd(here, sizeof(here)))
		return 1;
	snprintf(data, sizeof(data), "%s/data", here);
	snprintf(child, sizeof(child), "%s/child.exe", here);
	mkdir(data, 0700);
	return cmocka_run_group_tests_name("driver", tests, NULL, NULL);
}

/* The driver: see wsl.h. Its sandbox is the workspace, mounted in the distro, and a text for sh; the walls are those
 * that cordon raises there, and what holds each of them is what its doctor says there. */
#include <dirent.h>
#include <string.h>
#include <sys/file.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/id.h"
#include "base/windows/path.h"
#include "base/windows/wide.h"
#include "driver/windows/windows.h"
#include "driver/wsl/inside.h"

struct wsl_sandbox {
	struct sandbox sandbox;
	char id[ID_SIZE];
	int directory_fd, note_fd;              /* "wsl" in cordon's data, and in it the note with its id, locked; is
	                                           it there, something is to be taken down in the distro */
	HANDLE job;
	const char *mechanisms[CORDON_WALL_MAX];        /* the arena's of raise() */
};
_Static_assert(ID_SIZE == WSL_ID_SIZE, "an id fits into a record");

static int refuse(enum cordon_wall wall, const char *subject, const char *what, struct cordon_error *err)
{
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, subject, "%s", what);
	fail_boundary(err, cordon_wall_name(wall));
	return fail_remedy(err, "see `cordon wsl status`");
}

static int require_distro(const struct walls *walls, struct wsl_sandbox *sandbox, struct cordon_error *err)
{
	struct wsl_status status;
	if (wsl_status(walls->arena, walls->data_dir, &status, err) < 0)
		return -1;
	for (size_t i = 0; i < status.count; i++)
		if (!status.checks[i].holds)
			return refuse(CORDON_WALL_FILESYSTEM, status.checks[i].name, status.checks[i].found, err);
	memcpy(sandbox->mechanisms, status.mechanisms, sizeof(sandbox->mechanisms));
	return 0;
}

/* Ends it, and with it wsl.exe, where the last handle is closed. */
static int make_job(struct wsl_sandbox *sandbox, struct cordon_error *err)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = { 0 };
	limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
	sandbox->job = CreateJobObjectW(NULL, NULL);
	if (!sandbox->job ||
	    !SetInformationJobObject(sandbox->job, JobObjectExtendedLimitInformation, &limits, sizeof(limits)))
		return refuse(CORDON_WALL_LIFETIME, "wsl.exe", "a job object cannot be made", err);
	return 0;
}

/* ---- notes: what is up in the distro, for when this process is killed -----------------------------------------------
 */

static int open_notes(const char *data_dir)
{
	char path[PATH_MAX];
	return snprintf(path, sizeof(path), "%s/wsl", data_dir) < (int)sizeof(path)
	               ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
}

static int write_note(const char *data_dir, struct wsl_sandbox *sandbox, struct cordon_error *err)
{
	sandbox->directory_fd = open_notes(data_dir);
	int result = sandbox->directory_fd < 0
	                     ? -errno
	                     : file_create(sandbox->directory_fd, sandbox->id, "up\n", 3, &sandbox->note_fd);
	if (result == 0 && flock(sandbox->note_fd, LOCK_EX | LOCK_NB) < 0)
		result = -errno;
	return result < 0 ? fail(err, CORDON_E_INTERNAL, -result, data_dir,
	                         "what is to be taken down in the distro cannot be noted")
	                  : 0;
}

/* What was started in the distro ends by this; and where it cannot be asked, with the distro. */
static void take_down(int directory_fd, const char *id)
{
	struct arena arena = { 0 };
	struct wsl_answer answer;
	struct cordon_error untold = { 0 };
	const struct wsl_call end = { .words = (const char *[]){ "--terminate", WSL_DISTRO, NULL } };
	if ((wsl_inside(&arena, "root", (const char *[]){ "/bin/sh", "/opt/cordon/down", id, NULL }, NULL, &answer,
	                &untold) == 0 &&
	     answer.status == 0) ||
	    (wsl_run(&arena, &end, &answer, &untold) == 0 && answer.status == 0))
		unlinkat(directory_fd, id, 0);
	arena_free(&arena);
}

void wsl_sweep(const char *data_dir)
{
	int fd = open_notes(data_dir);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (fd >= 0 && !directory)
		close(fd);
	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		auto_close int note =
			id_time_ms(entry->d_name) ? openat(fd, entry->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC) : -1;
		/* Whoever wrote it lives, and holds it. */
		if (note < 0 || flock(note, LOCK_EX | LOCK_NB) < 0)
			continue;
		close_fd(&note);
		take_down(fd, entry->d_name);
	}
	if (directory)
		closedir(directory);
}

static void lower(struct sandbox *sandbox)
{
	struct wsl_sandbox *wsl = (struct wsl_sandbox *)sandbox;
	if (wsl->job) {
		TerminateJobObject(wsl->job, 1);
		CloseHandle(wsl->job);
	}
	bool noted = wsl->note_fd >= 0;
	close_fd(&wsl->note_fd);
	if (noted)
		take_down(wsl->directory_fd, wsl->id);
	close_fd(&wsl->directory_fd);
	free(wsl);
}

static int mount_workspace(const struct walls *walls, struct wsl_sandbox *sandbox, const char *native,
                           struct cordon_error *err)
{
	struct wsl_answer answer;
	const char *line = arena_printf(walls->arena, "%s\n", native);
	const struct wsl_call call = { .text = line, .length = line ? strlen(line) : 0 };
	if (!line)
		return fail_oom(err);
	if (write_note(walls->data_dir, sandbox, err) < 0 ||
	    wsl_inside(walls->arena, "root", (const char *[]){ "/bin/sh", "/opt/cordon/up", sandbox->id, NULL }, &call,
	               &answer, err) < 0)
		return -1;
	if (answer.status != 0)
		return refuse(CORDON_WALL_FILESYSTEM, native,
		              *answer.complaint ? answer.complaint : "the distro did not mount the workspace", err);
	if (wsl_inside(walls->arena, "root", (const char *[]){ "/bin/cat", "/proc/self/mounts", NULL }, NULL, &answer,
	               err) < 0)
		return -1;
	if (answer.status != 0 || !wsl_is_mounted(walls->arena, answer.out, sandbox->id, native))
		return refuse(CORDON_WALL_FILESYSTEM, native,
		              "what the distro mounted is not the workspace, or cannot be told", err);
	const char *foreign = wsl_foreign_mount(walls->arena, answer.out);
	return foreign ? refuse(CORDON_WALL_FILESYSTEM, foreign, "Windows is mounted there in the distro", err) : 0;
}

/* A file of the sandbox's own in the distro, by standard input. */
static int put_file(struct arena *arena, const struct wsl_sandbox *sandbox, const char *name, const char *text,
                    struct cordon_error *err)
{
	struct wsl_answer answer;
	const char *to = arena_printf(arena, "of=/run/cordon/%s/%s", sandbox->id, name);
	const struct wsl_call call = { .text = text, .length = text ? strlen(text) : 0 };
	if (!text || !to)
		return fail_oom(err);
	if (wsl_inside(arena, "root", (const char *[]){ "/bin/dd", to, NULL }, &call, &answer, err) < 0)
		return -1;
	return answer.status == 0 ? 0
	                          : refuse(CORDON_WALL_FILESYSTEM, name, "this cannot be written in the distro", err);
}

static void describe(const struct sandbox *sandbox, struct arena *arena, const struct profile *profile,
                     const char *isolation[CORDON_WALL_MAX])
{
	const struct wsl_sandbox *wsl = (const struct wsl_sandbox *)sandbox;
	(void)arena;
	driver_describe(profile, NULL, 0, isolation);
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		if (isolation[wall] && wsl->mechanisms[wall] && !(driver_wsl.cannot & (UINT32_C(1) << wall)))
			isolation[wall] = wsl->mechanisms[wall];
}

static int raise_walls(const struct driver *driver, const struct walls *walls, struct sandbox **ret_sandbox,
                       struct cordon_error *err)
{
	char native[PATH_MAX];
	enum cordon_wall wall;
	const char *isolation[CORDON_WALL_MAX];
	const char *why = wsl_profile_refused(walls->profile, &wall);
	if (why)
		return refuse(wall, "wsl", why, err);
	why = windows_path_native(walls->profile->workspace, native, sizeof(native));
	if (!why)
		why = wsl_source_refused(native);
	if (why)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, walls->profile->workspace, "%s", why);
	struct wsl_sandbox *sandbox = calloc(1, sizeof(*sandbox));
	if (!sandbox)
		return fail_oom(err);
	*sandbox = (struct wsl_sandbox){ .sandbox = { driver }, .directory_fd = -1, .note_fd = -1 };
	id_make(sandbox->id);
	int result = require_distro(walls, sandbox, err);
	if (result == 0) {
		describe(&sandbox->sandbox, walls->arena, walls->profile, isolation);
		result = driver_require(driver, isolation, err);
	}
	if (result < 0 || driver_require_limits(driver, walls->profile, err) < 0 || make_job(sandbox, err) < 0 ||
	    mount_workspace(walls, sandbox, native, err) < 0 ||
	    put_file(walls->arena, sandbox, "config.toml", wsl_configuration(walls->arena, walls->profile, sandbox->id),
	             err) < 0) {
		lower(&sandbox->sandbox);
		return -1;
	}
	*ret_sandbox = &sandbox->sandbox;
	return 0;
}

static int start(struct sandbox *sandbox, const struct command *command, struct running **ret_running,
                 struct cordon_error *err)
{
	struct wsl_sandbox *wsl = (struct wsl_sandbox *)sandbox;
	wchar_t program[MAX_PATH];
	const char *script = arena_printf(command->arena, "/run/cordon/%s/command", wsl->id);
	const char *const argv[] = {
		"wsl.exe", "--distribution", WSL_DISTRO, "--cd", "/", "--exec", "/bin/sh", script
	};
	char *line = script ? windows_command_line(command->arena, argv, ARRAY_SIZE(argv)) : NULL;
	auto_free wchar_t *wide = line ? calloc(strlen(line) + 1, sizeof(*wide)) : NULL;
	auto_free wchar_t *environment = wsl_environment();
	if (command->tty)
		return refuse(CORDON_WALL_TERMINAL, "tty", "this driver gives a command no terminal", err);
	if (!wide || !environment || text_to_wide(line, wide, strlen(line) + 1) < 0)
		return fail_oom(err);
	if (wsl_program(program, err) < 0 ||
	    put_file(command->arena, wsl, "command",
	             wsl_script(command->arena, command->profile, command->environment, wsl->id), err) < 0)
		return -1;
	const struct windows_launch launch = {
		.job = wsl->job, .program = program, .line = wide, .environment = environment
	};
	return windows_follow(&launch, command, ret_running, err);
}

static const char *fix(enum cordon_wall wall)
{
	(void)wall;
	return "run `cordon wsl status`";
}

/* What a command has of the machine inside is what cordon's default driver there gives it, so every wall is required
 * but the limits that it can do without. LIFETIME is not held: if the process on Windows is killed, WSL may let cordon
 * in the distro go on, until wsl_sweep(). It is to be named, since a command finds another system there than its
 * user's. */
const struct driver driver_wsl = {
	.name = "wsl",
	.is_named_only = true,
	.required = WALLS_ALL & ~(WALL_BIT(FILESYSTEM_SECOND) | WALL_BIT(LIFETIME) | WALLS_LIMITS),
	.cannot = WALL_BIT(LIFETIME),
	.private_root = true,
	.network_namespace = true,
	.fix = fix,
	.holds_writes = true,
	.keeps_names = true,
	.describe = describe,
	.raise = raise_walls,
	.start = start,
	.lower = lower,
};

/* Making, looking at and removing the distro: see wsl.h. What makes it cordon's own is a mark in it that is the one in
 * cordon's data ("wsl/record"); a distro of the same name without it is another's, and is left alone. */
#include "driver/wsl/wsl.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/id.h"
#include "base/windows/path.h"
#include "base/windows/wide.h"
#include "driver/wsl/inside.h"

#define IMPORT_MS (30 * 60 * 1000)
#define PROGRAM_NAME L"cordon-linux"
#define RECORD_MAX 4096

/* ---- the record -------------------------------------------------------------------------------------------------- */

static int open_directory(const char *data_dir, bool make)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/wsl", data_dir) >= (int)sizeof(path))
		return -1;
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool wsl_record_read(const char *data_dir, struct wsl_record *ret_record)
{
	auto_close int directory = open_directory(data_dir, false);
	auto_free char *text = NULL;
	size_t length;
	struct wsl_record record;
	char rootfs[WSL_SUM_SIZE], program[WSL_SUM_SIZE];
	if (directory < 0 || file_read(directory, "record", RECORD_MAX, &text, &length) < 0 ||
	    sscanf(text, "id %26s rootfs %64s program %64s", record.id, rootfs, program) != 3 ||
	    !wsl_sum_read(rootfs, record.rootfs) || !wsl_sum_read(program, record.program) || !id_time_ms(record.id))
		return false;
	*ret_record = record;
	return true;
}

static int write_record(const char *data_dir, const struct wsl_record *record, struct cordon_error *err)
{
	auto_close int directory = open_directory(data_dir, true);
	char text[256];
	int length = snprintf(text, sizeof(text), "id %s\nrootfs %s\nprogram %s\n", record->id, record->rootfs,
	                      record->program);
	if (directory >= 0)
		unlinkat(directory, "record", 0);
	int result = directory < 0 ? -errno : file_create(directory, "record", text, (size_t)length, NULL);
	return result < 0
	               ? fail(err, CORDON_E_INTERNAL, -result, data_dir, "the record of the distro cannot be written")
	               : 0;
}

static void forget(const char *data_dir)
{
	auto_close int directory = open_directory(data_dir, false);
	if (directory >= 0) {
		unlinkat(directory, "record", 0);
		unlinkat(directory, "disk", AT_REMOVEDIR);
	}
}

/* ---- in the distro ----------------------------------------------------------------------------------------------- */

int wsl_inside(struct arena *arena, const char *user, const char *const *words, const struct wsl_call *more,
               struct wsl_answer *ret_answer, struct cordon_error *err)
{
	const char *all[24] = { "--distribution", WSL_DISTRO };
	size_t count = 2;
	if (user) {
		all[count++] = "--user";
		all[count++] = user;
	}
	all[count++] = "--cd";
	all[count++] = "/";
	all[count++] = "--exec";
	while (*words && count < ARRAY_SIZE(all) - 1)
		all[count++] = *words++;
	struct wsl_call call = more ? *more : (struct wsl_call){ 0 };
	call.words = all;
	return wsl_run(arena, &call, ret_answer, err);
}

/* Must end with 0. */
static int act(struct arena *arena, const char *const *words, const struct wsl_call *more,
               struct wsl_answer *ret_answer, struct cordon_error *err)
{
	if (wsl_inside(arena, "root", words, more, ret_answer, err) < 0)
		return -1;
	if (ret_answer->status == 0)
		return 0;
	return wsl_fail(err, words[0], *ret_answer->complaint ? ret_answer->complaint : "it failed in the distro");
}

static int put_text(struct arena *arena, const char *path, const char *text, struct cordon_error *err)
{
	struct wsl_answer answer;
	const char *to = arena_printf(arena, "of=%s", path);
	const struct wsl_call call = { .text = text, .length = strlen(text) };
	return to ? act(arena, (const char *[]){ "/bin/dd", to, NULL }, &call, &answer, err) : fail_oom(err);
}

int wsl_list(struct arena *arena, bool *ret_there, unsigned *ret_version, struct cordon_error *err)
{
	struct wsl_answer answer;
	const struct wsl_call call = { .words = (const char *[]){ "--list", "--verbose", NULL } };
	if (wsl_run(arena, &call, &answer, err) < 0)
		return -1;
	/* Without any distro it ends with another status, and says so. */
	const char *listing = wsl_decode(arena, answer.out, answer.length);
	if (!listing)
		return fail_oom(err);
	*ret_version = 0;
	*ret_there = wsl_listed(listing, ret_version);
	return 0;
}

bool wsl_is_ours(struct arena *arena, const struct wsl_record *record, struct cordon_error *err)
{
	struct wsl_answer answer;
	return wsl_inside(arena, "root", (const char *[]){ "/bin/cat", WSL_MARK, NULL }, NULL, &answer, err) == 0 &&
	       answer.status == 0 && answer.length == strlen(record->id) + 1 &&
	       !strncmp(answer.out, record->id, strlen(record->id)) && answer.out[answer.length - 1] == '\n';
}

/* ---- setting up -------------------------------------------------------------------------------------------------- */

static int refuse_what_is_there(struct arena *arena, const char *data_dir, struct cordon_error *err)
{
	struct wsl_record record;
	bool there;
	unsigned version;
	if (wsl_list(arena, &there, &version, err) < 0)
		return -1;
	if (!there)
		return 0;
	if (wsl_record_read(data_dir, &record) && wsl_is_ours(arena, &record, err))
		fail(err, CORDON_E_INVALID_REQUEST, 0, WSL_DISTRO, "it is set up already");
	else
		return fail(err, CORDON_E_INVALID_REQUEST, 0, WSL_DISTRO,
		            "there is a distro of this name, and it is not cordon's");
	return fail_remedy(err, "look at it with `cordon wsl status`; `cordon wsl reset` removes it");
}

static int open_program(struct arena *arena, const char *named, HANDLE *ret_file, char ret_sum[WSL_SUM_SIZE],
                        struct cordon_error *err)
{
	wchar_t self[MAX_PATH];
	char native[PATH_MAX], path[PATH_MAX];
	(void)arena;
	if (named)
		return wsl_open_summed(named, ret_file, ret_sum, err);
	DWORD length = GetModuleFileNameW(NULL, self, MAX_PATH);
	wchar_t *name = length && length < MAX_PATH ? wcsrchr(self, L'\\') : NULL;
	if (!name || (size_t)(name - self) + ARRAY_SIZE(PROGRAM_NAME) + 1 > MAX_PATH)
		return fail(err, CORDON_E_INTERNAL, 0, "cordon-linux", "where this program lies cannot be told");
	wcscpy(name + 1, PROGRAM_NAME);
	if (wide_to_text(self, native, sizeof(native)) < 0 || windows_path_read(native, path, sizeof(path)))
		return fail(err, CORDON_E_INTERNAL, 0, "cordon-linux", "where this program lies cannot be told");
	return wsl_open_summed(path, ret_file, ret_sum, err);
}

static int import_archive(struct arena *arena, const char *data_dir, HANDLE rootfs, struct cordon_error *err)
{
	char native[PATH_MAX];
	struct wsl_answer answer;
	const char *path = arena_printf(arena, "%s/wsl/disk", data_dir);
	const char *why = path ? windows_path_native(path, native, sizeof(native)) : "memory is short";
	if (why)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, data_dir, "%s", why);
	const struct wsl_call call = { .words = (const char *[]){ "--import", WSL_DISTRO, native, "-", "--version", "2",
		                                                  NULL },
		                       .file = rootfs,
		                       .timeout_ms = IMPORT_MS };
	if (wsl_run(arena, &call, &answer, err) < 0)
		return -1;
	if (answer.status == 0)
		return 0;
	const char *said = wsl_decode(arena, answer.out, answer.length);
	return wsl_fail(err, "wsl.exe --import", said && *said ? said : "the archive was not imported");
}

/* The user, the program and the settings; the mark first, so that what is half made can be removed. */
static int furnish(struct arena *arena, const struct wsl_record *record, HANDLE program, struct cordon_error *err)
{
	struct wsl_answer answer;
	const char *mark = arena_printf(arena, "%s\n", record->id), *why;
	const struct wsl_call of_program = { .file = program, .timeout_ms = IMPORT_MS };
	if (!mark || put_text(arena, WSL_MARK, mark, err) < 0 ||
	    act(arena, (const char *[]){ "/bin/cat", "/etc/passwd", NULL }, NULL, &answer, err) < 0)
		return mark ? -1 : fail_oom(err);
	const char *passwd = wsl_add_user(arena, answer.out, &why);
	if (!passwd)
		return wsl_fail(err, "/etc/passwd", why);
	if (put_text(arena, "/etc/passwd", passwd, err) < 0 ||
	    act(arena, (const char *[]){ "/bin/mkdir", "-p", "/opt/cordon", "/workspace", "/home/" WSL_USER, NULL },
	        NULL, &answer, err) < 0 ||
	    act(arena, (const char *[]){ "/bin/chown", WSL_OWNER, "/home/" WSL_USER, NULL }, NULL, &answer, err) < 0 ||
	    act(arena, (const char *[]){ "/bin/chmod", "0700", "/home/" WSL_USER, NULL }, NULL, &answer, err) < 0 ||
	    act(arena, (const char *[]){ "/bin/dd", "of=" WSL_PROGRAM, NULL }, &of_program, &answer, err) < 0 ||
	    act(arena, (const char *[]){ "/bin/chmod", "0755", WSL_PROGRAM, NULL }, NULL, &answer, err) < 0 ||
	    put_text(arena, "/opt/cordon/up", wsl_up, err) < 0 ||
	    put_text(arena, "/opt/cordon/down", wsl_down, err) < 0 ||
	    put_text(arena, "/etc/wsl.conf", wsl_settings, err) < 0)
		return -1;
	/* The settings count from its next start on. */
	const struct wsl_call end = { .words = (const char *[]){ "--terminate", WSL_DISTRO, NULL } };
	return wsl_run(arena, &end, &answer, err);
}

static int unregister(struct arena *arena, struct cordon_error *err)
{
	struct wsl_answer answer;
	const struct wsl_call call = { .words = (const char *[]){ "--unregister", WSL_DISTRO, NULL },
		                       .timeout_ms = IMPORT_MS };
	bool there = true;
	unsigned version;
	if (wsl_run(arena, &call, &answer, err) < 0 || wsl_list(arena, &there, &version, err) < 0)
		return -1;
	return there ? wsl_fail(err, WSL_DISTRO, "it was unregistered, and is still listed") : 0;
}

static int check_all(struct arena *arena, const char *data_dir, struct cordon_error *err)
{
	struct wsl_status status;
	if (wsl_status(arena, data_dir, &status, err) < 0)
		return -1;
	for (size_t i = 0; i < status.count; i++)
		if (!status.checks[i].holds) {
			fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, status.checks[i].name,
			     "this does not read back: %s", status.checks[i].found);
			fail_boundary(err, cordon_wall_name(CORDON_WALL_FILESYSTEM));
			return fail_remedy(err, "the distro was removed again; use another archive or a newer WSL");
		}
	return 0;
}

static int set_up_with(struct arena *arena, const char *data_dir, HANDLE rootfs, HANDLE program,
                       const struct wsl_record *record, struct cordon_error *err)
{
	struct cordon_error untold;
	if (refuse_what_is_there(arena, data_dir, err) < 0 || write_record(data_dir, record, err) < 0)
		return -1;
	if (import_archive(arena, data_dir, rootfs, err) == 0 && furnish(arena, record, program, err) == 0 &&
	    check_all(arena, data_dir, err) == 0)
		return 0;
	/* The name was free before: what stands there now is of this call. */
	if (unregister(arena, &untold) == 0)
		forget(data_dir);
	return -1;
}

int wsl_set_up(const char *data_dir, const struct wsl_setup *setup, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct wsl_record record;
	HANDLE rootfs = NULL, program = NULL;
	char wanted[WSL_SUM_SIZE];
	int result = -1;
	if (!wsl_sum_read(setup->sum, wanted))
		return fail(err, CORDON_E_INVALID_REQUEST, 0, setup->sum, "a SHA-256 is 64 hexadecimal digits");
	id_make(record.id);
	if (wsl_open_summed(setup->rootfs, &rootfs, record.rootfs, err) < 0)
		return -1;
	if (strcmp(record.rootfs, wanted) != 0)
		fail(err, CORDON_E_INVALID_REQUEST, 0, setup->rootfs,
		     "its SHA-256 is %s, and not what was given; nothing was imported", record.rootfs);
	else if (open_program(&arena, setup->program, &program, record.program, err) == 0)
		result = set_up_with(&arena, data_dir, rootfs, program, &record, err);
	CloseHandle(rootfs);
	if (program)
		CloseHandle(program);
	arena_free(&arena);
	return result;
}

/* ---- removing ---------------------------------------------------------------------------------------------------- */

int wsl_reset(const char *data_dir, const char *name, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct wsl_record record;
	bool there = false;
	unsigned version;
	if (strcmp(name, WSL_DISTRO) != 0)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, name,
		            "the distro is called " WSL_DISTRO "; nothing was removed");
	int result = wsl_list(&arena, &there, &version, err);
	if (result == 0 && !there) {
		result = fail(err, CORDON_E_NOT_FOUND, 0, WSL_DISTRO, "there is no such distro");
		forget(data_dir);
	} else if (result == 0 && (!wsl_record_read(data_dir, &record) || !wsl_is_ours(&arena, &record, err))) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, WSL_DISTRO,
		     "this distro has no mark of cordon's; nothing was removed");
		result = fail_remedy(err, "if it may go all the same: wsl --unregister " WSL_DISTRO);
	} else if (result == 0) {
		result = unregister(&arena, err);
		if (result == 0)
			forget(data_dir);
	}
	arena_free(&arena);
	return result;
}

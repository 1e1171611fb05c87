/* The Windows Subsystem for Linux: a distro of cordon's own, in which cordon itself, built for Linux, raises the walls.
 *
 * The distro is imported from an archive whose SHA-256 the user gives. In it, no drive of Windows is mounted, no
 * program of Windows can be started, and the user that commands belong to has no privilege. For a command one
 * directory of Windows, the workspace, is mounted at /workspace/ID; /run/cordon/ID/command is a text for sh that
 * executes `cordon run` with the command in quotes, so that no word of it passes through a command line of wsl.exe.
 * What was set up is read back before each command, and where a part of it differs, nothing runs.
 *
 * text.c is pure, so that a test compiles it anywhere; the other parts are for Windows, and none.c for what is not. */
#pragma once
#include "driver/driver.h"

#define WSL_DISTRO "cordon-sandbox"
#define WSL_USER "cordon"
#define WSL_UID 64817
#define WSL_PROGRAM "/opt/cordon/cordon"
#define WSL_ID_SIZE 27
#define WSL_SUM_SIZE 65         /* SHA-256 in hexadecimal */

/* ---- text.c ------------------------------------------------------------------------------------------------------ */

extern const char wsl_settings[];       /* /etc/wsl.conf */
extern const char wsl_up[], wsl_down[]; /* /opt/cordon/up and down, which root executes: mount, unmount and kill */

/* What wsl.exe itself prints: UTF-16LE, or UTF-8 where it was asked for and is known; half a character and NUL are
 * dropped, what is no character becomes U+FFFD. NULL when memory is short. */
char *wsl_decode(struct arena *arena, const char *bytes, size_t length);
/* Is the distro in the text of `wsl --list --verbose`? Its version, or 0 where none stands there. */
bool wsl_listed(const char *listing, unsigned *ret_version);
/* /etc/passwd with the user's row. NULL, with the reason: the name or number is taken, or memory is short. */
const char *wsl_add_user(struct arena *arena, const char *passwd, const char **ret_why);
/* Of /proc/self/mounts, a drive or directory of Windows that is mounted elsewhere than beneath /workspace; or NULL. */
const char *wsl_foreign_mount(struct arena *arena, const char *mounts);
/* Is this directory of Windows, and nothing else, mounted at /workspace/ID? */
bool wsl_is_mounted(struct arena *arena, const char *mounts, const char *id, const char *native);
/* Why this directory of Windows cannot be mounted: NULL, or the reason. */
const char *wsl_source_refused(const char *native);
/* Why a command with this profile cannot be started in the distro: NULL, or the reason; *ret_wall then. */
const char *wsl_profile_refused(const struct profile *profile, enum cordon_wall *ret_wall);
/* The text for sh, and the configuration with the names that are hidden or protected. NULL when memory is short. */
char *wsl_script(struct arena *arena, const struct profile *profile, const struct strings *environment, const char *id);
char *wsl_configuration(struct arena *arena, const struct profile *profile, const char *id);
/* Is it 64 hexadecimal digits? In lower case. */
bool wsl_sum_read(const char *text, char ret_sum[WSL_SUM_SIZE]);

/* ---- setup.c, or none.c ------------------------------------------------------------------------------------------ */

struct wsl_setup {
	const char *rootfs, *sum;       /* an archive, and its SHA-256 */
	const char *program;            /* cordon for Linux, static; NULL: "cordon-linux" beside this program */
};
/* What status() read back; the texts are the arena's. */
struct wsl_check {
	const char *name, *found;
	bool holds;
};
#define WSL_CHECKS_MAX 12
struct wsl_status {
	struct wsl_check checks[WSL_CHECKS_MAX];
	size_t count;
	bool registered, holds;
	const char *mechanisms[CORDON_WALL_MAX];        /* as cordon's doctor says in the distro; NULL: it does not */
};
int wsl_set_up(const char *data_dir, const struct wsl_setup *setup, struct cordon_error *err) must_check;
int wsl_status(struct arena *arena, const char *data_dir, struct wsl_status *ret_status,
               struct cordon_error *err) must_check;
/* Unregisters the distro, with all that is in it. `name` is what the user typed. */
int wsl_reset(const char *data_dir, const char *name, struct cordon_error *err) must_check;

#ifdef _WIN32
#include <windows.h>

/* ---- program.c --------------------------------------------------------------------------------------------------- */

/* A call of wsl.exe. Its input: a file from its beginning, or a text, or nothing. */
struct wsl_call {
	const char *const *words;       /* ended by NULL */
	HANDLE file;
	const char *text;
	size_t length;
	bool hash;                      /* `sum` of the output is wanted, and not the output */
	unsigned timeout_ms;            /* 0: half a minute */
};
struct wsl_answer {
	int status;
	char *out;                      /* at most WSL_OUTPUT_MAX bytes, ended by NUL; the arena's */
	size_t length;
	char sum[WSL_SUM_SIZE];
	char complaint[160];            /* how what it wrote to standard error begins */
};
#define WSL_OUTPUT_MAX ((size_t)256 << 10)
/* An error: wsl.exe is not there, could not be started, did not end in time, or said more than that. */
int wsl_run(struct arena *arena, const struct wsl_call *call, struct wsl_answer *ret_answer,
            struct cordon_error *err) must_check;
/* The full path of wsl.exe, in the system directory; an error where that is not a file of its own. */
int wsl_program(wchar_t ret_path[MAX_PATH], struct cordon_error *err) must_check;
/* The environment it gets: the caller's, without what would be handed on into a distro. The caller's to free(). */
wchar_t *wsl_environment(void);
/* Opens a file that nobody can write to meanwhile, and hashes it. The caller's to CloseHandle(). */
int wsl_open_summed(const char *path, HANDLE *ret_file, char ret_sum[WSL_SUM_SIZE],
                    struct cordon_error *err) must_check;
int wsl_fail(struct cordon_error *err, const char *subject, const char *what);

/* Takes down in the distro what processes have left that were killed. */
void wsl_sweep(const char *data_dir);
extern const struct driver driver_wsl;
#endif

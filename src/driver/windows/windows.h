/* Windows: a restricted token at Low integrity, in a job object. What the parts share.
 *
 * What holds which wall, and how it is known to: every setting is made, then read back; one that does not read back is
 * a wall that does not hold, and the sandbox is refused, by the wall's name. So on a system that says yes and does
 * nothing (wine does), nothing runs. Low integrity keeps a command from writing outside what is labelled for it; it
 * does not keep it from reading what its user may read, so `masked_names` is `none` here, always. */
#pragma once
#include "base/id.h"
#include "driver/driver.h"

#include <windows.h>

/* ---- command-line.c: pure ---------------------------------------------------------------------------------------- */

/* As CommandLineToArgvW() takes it apart again. NULL when memory is short. */
char *windows_command_line(struct arena *arena, const char *const *argv, size_t count);
/* Why this program is not started, whatever is granted: NULL, or the reason. A batch file is started by cmd.exe, which
 * reads its arguments anew; bash.exe and wsl.exe of the system directory are Linux's door, not a shell of Windows. */
const char *windows_program_refused(const char *path);

/* ---- environment.c ------------------------------------------------------------------------------------------------
 */

/* The profile's, with its paths as Windows writes them, and under the names that programs of Windows look for, where
 * those were not given. -1 when memory is short. */
int windows_environment(struct arena *arena, const struct strings *environment,
                        struct strings *ret_environment) must_check;
/* For CreateProcess(); NULL when memory is short. To be free()d. */
wchar_t *windows_environment_block(const struct strings *environment);

/* ---- token.c ----------------------------------------------------------------------------------------------------- */

/* The caller's own with every group denied but Everyone, Users and the logon's, without privileges, at Low integrity.
 * The proxy's has Authenticated Users besides, by which the filters of commands tell it from those, and what it makes
 * is closed to commands. *ret_held gets 1 << wall for what reads back: PRIVILEGES, FILESYSTEM. */
enum windows_token_use { WINDOWS_TOKEN_OF_COMMAND, WINDOWS_TOKEN_OF_PROXY };
int windows_token(enum windows_token_use use, HANDLE *ret_token, uint32_t *ret_held,
                  struct cordon_error *err) must_check;
bool windows_is_low(HANDLE token);
/* For processes and threads that have their user and their integrity level in common with commands: only the system and
 * administrators, whom no command is, open them. To be LocalFree()d; or NULL. */
PSECURITY_DESCRIPTOR windows_closed_descriptor(void);
/* The caller's to free(), or NULL. */
void *windows_token_information(HANDLE token, TOKEN_INFORMATION_CLASS class);

/* ---- job.c ------------------------------------------------------------------------------------------------------- */

/* *ret_held likewise: LIFETIME, IPC (what windows share), and the limits of the profile, LIMIT_MEMORY,
 * LIMIT_PROCESSES, LIMIT_CPU, SPAWN. */
int windows_job(const struct profile *profile, HANDLE *ret_job, uint32_t *ret_held,
                struct cordon_error *err) must_check;
/* How many processes are in it. */
unsigned windows_job_count(HANDLE job);
/* Until there is none, or this time is over. */
void windows_job_await(HANDLE job, unsigned ms);

/* ---- filters.c --------------------------------------------------------------------------------------------------- */

struct windows_filters;
/* Nothing with this token connects, accepts or listens, but to this port of 127.0.0.1 where it is not 0. NULL, with
 * why: this cannot be had, or a filter does not read back. */
struct windows_filters *windows_filters_set(HANDLE token, uint16_t proxy_port, const char **ret_why);
void windows_filters_end(struct windows_filters *filters);

/* ---- proxy.c; the rest of it: driver/proxy.h --------------------------------------------------------------------- */

/* A listener at a port of 127.0.0.1 that is free, for the proxy; -1. */
int windows_proxy_listen(uint16_t *ret_port);
/* How many connections wait there at most. */
#define WINDOWS_PROXY_BACKLOG 128
/* Of the program, once proxy_program_fd() has found it: a process that is suspended, shares nothing with the caller but
 * the handle `input` (or NULL), and that no command opens. False with GetLastError(). */
bool windows_proxy_create(HANDLE token, wchar_t *line, HANDLE input, PROCESS_INFORMATION *ret_made);

/* ---- probe.c ------------------------------------------------------------------------------------------------------- */

/* Once the filters are set: nothing with this token connects, but to this port where it is not 0, at which `listener`
 * listens. False, with why. */
bool windows_probe(HANDLE token, int listener, uint16_t port, const char **ret_why);

/* ---- labels.c ---------------------------------------------------------------------------------------------------- */

struct windows_labels {
	char *text;                     /* of the journal: a path and what its label was, a line each */
	int directory_fd, fd;           /* of the journal, locked; or -1 */
	char name[ID_SIZE];
};
#define WINDOWS_LABELS_NONE { .directory_fd = -1, .fd = -1 }
/* Labels these directories so that Low processes may write there. The journal is written, and on the disk, before
 * the first label is set, so that windows_labels_sweep() finds what a crash left. Fails where a label does not read
 * back. */
int windows_labels_set(struct arena *arena, const char *data_dir, const struct profile *profile,
                       struct windows_labels *labels, struct cordon_error *err) must_check;
/* Puts back what was there. */
void windows_labels_restore(struct windows_labels *labels);
/* Restores what is named in journals whose writer has ended. Returns how many journals. */
int windows_labels_sweep(const char *data_dir);

/* ---- sandbox.c, start.c and running.c
 * ------------------------------------------------------------------------------------- */

struct windows_sandbox {
	struct sandbox sandbox;
	HANDLE token, job;
	uint32_t held;                  /* 1 << enum cordon_wall */
	struct windows_filters *filters;
	int listener;                   /* of the proxy's, until it is taken; -1 */
	uint16_t port;
	struct windows_labels labels;
};
extern const struct driver driver_windows;
/* As the driver's raise(), but what is in `optional` (1 << enum cordon_wall) need not hold: for tests where the system
 * cannot. */
int windows_raise(const struct driver *driver, const struct walls *walls, uint32_t optional,
                  struct sandbox **ret_sandbox, struct cordon_error *err) must_check;
/* A pipe: the child's end is inheritable, and to be named in the list of handles; ours is not. Where it fails, either
 * may be there, to be closed. */
bool windows_pipe(HANDLE *ret_ours, HANDLE *ret_theirs, bool to_child);
/* What running.c starts and follows. */
struct windows_launch {
	HANDLE token;                   /* NULL: the caller's own */
	HANDLE job;                     /* borrowed until the command is freed */
	bool low;                       /* it must be at Low integrity */
	const wchar_t *program, *cwd;   /* the latter NULL: the caller's */
	wchar_t *line, *environment;
};
int windows_follow(const struct windows_launch *launch, const struct command *command, struct running **ret_running,
                   struct cordon_error *err) must_check;
int windows_start(struct sandbox *sandbox, const struct command *command, struct running **ret_running,
                  struct cordon_error *err) must_check;
int windows_fail(struct cordon_error *err, enum cordon_wall wall, DWORD error, const char *what);

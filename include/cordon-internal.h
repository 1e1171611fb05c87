/* SPDX-License-Identifier: Apache-2.0
 *
 * cordon-internal.h: what cordon's own program, its tests and its benches know of the library beyond cordon.h. They are
 * built from the same sources, so the layout of what cordon.h leaves opaque may change with every commit. Not
 * installed; the symbols are of the version LIBCORDON_PRIVATE. cordon.h has the conventions. */
#ifndef CORDON_INTERNAL_H
#define CORDON_INTERNAL_H

#include "cordon.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

/* The six steps of the walk; an error names the one that refused. */
enum cordon_step {
	CORDON_STEP_NONE = 0,
	CORDON_STEP_SESSION,
	CORDON_STEP_CWD,
	CORDON_STEP_CAPABILITY,
	CORDON_STEP_PROFILE,
	CORDON_STEP_RUN,
	CORDON_STEP_AUDIT,
	CORDON_STEP_MAX
};

/* What can be held; the keys of `isolation`. */
enum cordon_wall {
#define CORDON_WALL(id, name, keeps) CORDON_WALL_##id,
#include "cordon-walls.def"
#undef CORDON_WALL
	CORDON_WALL_MAX
};

/* A plain value without pointers: copy it, keep it, send it through a pipe. */
struct cordon_error {
#ifdef __cplusplus
	int32_t class_;         /* the same, where the word is taken */
#else
	int32_t class;          /* enum cordon_class */
#endif
	int32_t step;           /* enum cordon_step */
	int32_t os_errno;       /* 0 where no system call failed */
	int32_t retriable;
	char boundary[24];      /* the wall or the part that refused */
	char audit_id[40];      /* the ledger row, if there is one */
	char subject[640];      /* what it was about: a path, a key, a program */
	char reason[640];
	char remediation[640];
	char grant[640];        /* the option that would allow it, "--read PATH"; or "" */
};

const char *cordon_step_name(enum cordon_step step);
const char *cordon_wall_name(enum cordon_wall wall);

/* ---- The library's state ---------------------------------------------------------------------------------------- */

/* Where cordon keeps its own data; NULL or an empty field means the default. */
struct cordon_options {
	const char *data_dir;   /* ledger, workspaces, homes: $XDG_DATA_HOME/cordon, or ~/.local/share/cordon */
	const char *config;     /* this file instead of the system's and the user's configuration */
	bool one_command; /* the process ends with its command: no later one shares a session's processes with it */
};

/* The directory of its data, made if it is not there yet. The text is the library's. */
int cordon_data_dir(struct cordon *cordon, const char **ret_path, struct cordon_error *err) CORDON_MUST_CHECK;

/* ---- Running ---------------------------------------------------------------------------------------------------- */

struct cordon_denial {
	const char *what;       /* the path, host, system call or limit */
	const char *wall;       /* the wall that refused it */
	const char *note;       /* what was done about it */
	const char *grant;      /* the smallest grant that would allow it, or "" */
};

/* A secret that was found; never the secret itself. */
struct cordon_secret {
	const char *kind;       /* of the table: "github-token"; or "own": one of the caller's own */
	const char *name;       /* the kind, or what the caller's own is called */
	const char *where;      /* "stdout", "stderr", "argument 2", "environment NAME" */
	const char *layer;      /* how it was written: "raw", "base64", "url+hex" */
	const char *fingerprint;        /* keyed: the same for the same secret, wherever it shows up */
	const char *action;     /* what was done: "redact", "report", "block" */
	uint64_t offset, length;        /* in what was written, as it was written */
};

/* Read-only; the library's until cordon_result_unref(). */
struct cordon_result {
	int exit_code;                  /* -1 where a signal ended it */
	int signal;                     /* 0, or the signal that ended the command */
	const char *ended_by;           /* exit, signal, time, memory, disk, cancel, session or daemon */
	bool timed_out, truncated, oom_killed;
	const char *limit_hit;          /* the limit that ended it or a process of it: "time", "memory", "disk"; or
	                                   NULL */
	const char *limit_unit;         /* of the two: "ms", "bytes" */
	uint64_t limit_used, limit_allowed;
	const char *stdout_data, *stderr_data;
	size_t stdout_length, stderr_length;
	uint64_t stdout_bytes, stderr_bytes;
	uint64_t stdin_bytes;           /* of its input, what the command read; with `tty` what it was sent */
	uint64_t duration_ms, cpu_ms;
	uint64_t max_rss_kb;            /* of its largest process; 0: not known, because it was less than the
	                                   caller's own */
	uint64_t memory_peak_kb, process_peak;  /* of the whole tree of processes; 0: no control group counted them */
	uint64_t read_bytes, written_bytes;     /* of storage */
	/* Of a command that may reach listed hosts: its connections, what they carried from the network to the command
	 * and back, how often a host was denied, and what failed. */
	uint64_t connections, bytes_in, bytes_out, connections_denied, connections_failed;
	bool has_network;               /* whether these are known */
	const char *network_hint;       /* the command failed as one does that has no network; or NULL */
	const char *driver;
	const char *isolation[CORDON_WALL_MAX]; /* the mechanism that held, or "none"; NULL where the wall was not
	                                           asked for */
	const struct cordon_denial *denials;
	size_t denial_count;
	const char *note; /* what else the caller should know: a configuration file that is invalid, an input that
	                   * could not be read to its end; or NULL */
	const char *audit_id;
	uint64_t paused_ms;             /* of its duration: how long it stood still, because its session was paused */
	const struct cordon_error *error;       /* what failed after the command had ended, see cordon_run(); or NULL */
	/* Secrets in its arguments, environment and output: the first of `secrets_found`. What was hidden is also a
	 * denial. */
	const struct cordon_secret *secrets;
	size_t secret_count;
	uint64_t secrets_found;
	/* Of which stream not all was kept, for want of room: `truncated` is either. The lengths do not tell: a secret
	 * that was replaced changes them. */
	bool stdout_truncated, stderr_truncated;
};

/* The six steps, start to end. An error means that the command did not run and *ret_result is untouched; with one
 * exception. If the command ran and something failed after it had ended, most of all if its result row could not be
 * written (`audit_unavailable`), *ret_result is set all the same: the whole result, with output and denials, and the
 * error once more in `error`. The reason says that the command ran and how it ended, and the error is not
 * `retriable`. So *ret_result is to be NULL before the call, and is released whatever the call returns. A request
 * that names neither session nor workspace has a workspace of its own, which is removed when all is over. */
int cordon_result_run(struct cordon *cordon, const struct cordon_request *request, struct cordon_result **ret_result,
               struct cordon_error *err) CORDON_MUST_CHECK;
void cordon_result_unref(struct cordon_result *result);
/* The result as a value, which outlives it. */
int cordon_result_value(const struct cordon_result *result, struct cordon_value **ret_value,
                        struct cordon_error *err) CORDON_MUST_CHECK;

/* The result as JSON, to be free()d. NULL when memory is short. */
char *cordon_result_json(const struct cordon_result *result);

/* Of the ids of agents' sessions. */
#define CORDON_AGENT_PREFIX "agent/"

/* The same for a caller that steps the command itself: poll the descriptor for input, step when it is ready. The
 * request and the cordon are borrowed until the execution is gone. */
struct cordon_execution;
int cordon_execution_start(struct cordon *cordon, const struct cordon_request *request,
                 struct cordon_execution **ret_execution, struct cordon_error *err) CORDON_MUST_CHECK;
int cordon_execution_fd(const struct cordon_execution *execution);
/* How much of a stream its result keeps at most, by its limits; UINT64_MAX: all of it. */
uint64_t cordon_execution_kept(const struct cordon_execution *execution, enum cordon_stream stream);
/* Handles what is ready, without blocking. *ret_finished tells whether the command has ended. Limits of disk space and
 * a pause of the session hold while it is stepped. The time limit holds in any case: without a step, 5 s later. In a
 * git working tree rename() waits for a step, which lets git change what is harmless in its configuration. The first
 * connection to a listed host waits for a step, too, and rows of connections are written by steps. */
int cordon_execution_step(struct cordon_execution *execution, bool *ret_finished, struct cordon_error *err)
	CORDON_MUST_CHECK;
/* Sends a signal to the command, as a terminal would: to its whole process group. */
void cordon_execution_signal(struct cordon_execution *execution, int signal);
/* For output that is handed on faster than it is taken: while a stream is held, nothing of it is read, and a command
 * that continues to write waits. What it wrote before its end is read then, held or not. */
void cordon_execution_hold_output(struct cordon_execution *execution, enum cordon_stream stream, bool hold);
/* The reader of the output is gone: a command that continues to write gets SIGPIPE or EPIPE. With `tty` this does
 * nothing. */
void cordon_execution_close_output(struct cordon_execution *execution, enum cordon_stream stream);
/* With the setting `tty`: the size of the command's terminal. */
void cordon_execution_resize(struct cordon_execution *execution, unsigned short rows, unsigned short columns);
/* With `tty`: the key was pressed that stops a job, Ctrl-Z. True: it is for the command as a whole, which the caller
 * stops by SIGSTOP, and nothing was done; false: the key went to the command's terminal, where a shell has jobs. */
bool cordon_execution_press_stop(struct cordon_execution *execution);
/* Only after it finished. The first call writes the result row; a later one gives the same result, or error, once more
 * and writes nothing. As with cordon_run(), an error may come with a result. */
int cordon_execution_result(struct cordon_execution *execution, struct cordon_result **ret_result,
                            struct cordon_error *err) CORDON_MUST_CHECK;
/* Kills the command if it still runs. */
void cordon_execution_unref(struct cordon_execution *execution);

/* Steps 1 to 4 only: the walls for this request as JSON, to be free()d. Runs nothing and creates nothing. */
int cordon_profile(struct cordon *cordon, const struct cordon_request *request, char **ret_json,
                   struct cordon_error *err) CORDON_MUST_CHECK;

/* Would this request's command start, without a question to a human? Runs nothing, creates nothing, asks nobody. The
 * JSON, to be free()d, has `allowed`; where that is false also `asks`, what a human would be asked to approve (with
 * `rule` beside it where a rule wants a human), or `error`. About a path that a session may not use it says the same
 * whether there is something or not. */
int cordon_preflight(struct cordon *cordon, const struct cordon_request *request, char **ret_json,
                     struct cordon_error *err) CORDON_MUST_CHECK;

/* May a request set this variable? If not, the error says why; a request that sets it is refused. */
int cordon_variable_check(const char *name, struct cordon_error *err) CORDON_MUST_CHECK;

/* Asks for what the request grants on behalf of its session, which it must name, and runs nothing: the same decision,
 * question and rows as for a command. 0: the session has it. An approval for one command only is a refusal. */
int cordon_capability_request(struct cordon *cordon, const struct cordon_request *request, struct cordon_error *err)
	CORDON_MUST_CHECK;

/* ---- Sessions --------------------------------------------------------------------------------------------------- */

/* A request that names a session (`session`) asks: what exceeds the session's baseline and its grants goes to the
 * approver. Weaker walls than the configuration's (driver, view, toolchain) it cannot have at all. A request without
 * one grants itself what it asks for: its caller decides. A session is made by its first command or by this call;
 * `settings` (may be NULL) are a request without a command: its workspace, and what the session may reach without
 * asking on top of the configured baseline. Of callers that race, one makes it; a request for another workspace or
 * other capabilities than it has is refused. *ret_json, to be free()d, is the session as cordon_session_show() returns
 * it. Sessions whose ids begin with CORDON_AGENT_PREFIX are of agents' commands, and made with
 * the setting `agent` only. */
int cordon_session_new(struct cordon *cordon, const char *id, const struct cordon_request *settings, char **ret_json,
                       struct cordon_error *err) CORDON_MUST_CHECK;
int cordon_session_show(struct cordon *cordon, const char *id, char **ret_json, struct cordon_error *err)
	CORDON_MUST_CHECK;
/* `{"sessions":[…]}`, the newest first. */
int cordon_session_list(struct cordon *cordon, char **ret_json, struct cordon_error *err) CORDON_MUST_CHECK;
/* No further command until it is resumed. What runs in a control group of version 2 is frozen by the process that runs
 * it, within a quarter of a second where that one steps; otherwise it goes on (`running_commands` of
 * cordon_session_show()). While it is frozen its time limit continues; it takes no signal but SIGKILL, and ending the
 * session kills it. */
int cordon_session_pause(struct cordon *cordon, const char *id, const char *why, struct cordon_error *err)
	CORDON_MUST_CHECK;
int cordon_session_resume(struct cordon *cordon, const char *id, struct cordon_error *err) CORDON_MUST_CHECK;
/* No further command, and its jobs are ended. With `remove_workspace` a workspace of cordon's own making is removed;
 * one that was named never is. */
int cordon_session_end(struct cordon *cordon, const char *id, bool remove_workspace, struct cordon_error *err)
	CORDON_MUST_CHECK;
/* Forgets an ended session, its home and, if it is cordon's own, its workspace. The ledger keeps what it did. */
int cordon_session_remove(struct cordon *cordon, const char *id, struct cordon_error *err) CORDON_MUST_CHECK;

/* cordon_run_current() */
int cordon_result_run_current(const char *const *argv, struct cordon_result **ret_result, struct cordon_error *err)
	CORDON_MUST_CHECK;

/* ---- Package caches --------------------------------------------------------------------------------------------- */

/* The package caches that were found under the calling process's HOME, each with where it is inside, and the layers
 * that what commands wrote to them went to: `{"caches":[…],"layers":[…]}`. */
int cordon_cache_list(struct cordon *cordon, char **ret_json, struct cordon_error *err) CORDON_MUST_CHECK;
/* Empties the layers of a session, or those of a workspace, or with both NULL all; not those that a command uses. The
 * JSON, to be free()d, tells how many were `removed` and how many are `in_use`. */
int cordon_cache_clear(struct cordon *cordon, const char *session, const char *workspace, char **ret_json,
                       struct cordon_error *err) CORDON_MUST_CHECK;

/* ---- File tools ------------------------------------------------------------------------------------------------- */

/* What a file tool is to do; a field that is 0 or NULL says nothing, and one that a tool does not know is not looked
 * at. All is borrowed. Paths are absolute, or relative to the request's `cwd`; they must lie in the workspace or in a
 * granted path, and no symbolic link leads out. */
struct cordon_file {
	const char *path;
	const char *to;                 /* rename, copy: the new name */
	uint64_t offset, limit;         /* read: the first line, from 1, and how many; list, find, grep, walk: how many
	                                   at most; walk: how many entries are passed over */
	bool bytes, numbers;            /* read: both count bytes, from 0; lines begin with their numbers */
	const void *data;               /* write: the content; edit: the new text; import: a tar archive */
	size_t length;
	const char *old;                /* edit: the text that it replaces, which must be there once */
	size_t old_length;
	const char *version;            /* write, edit: only if this is still the file's version, as read told it */
	bool create;                    /* write: only where there is nothing */
	bool all; /* edit: every match; find, grep, walk, export: also what .gitignore leaves out */
	bool recursive;                 /* remove, copy: a directory with what is in it */
	bool replace;                   /* rename, copy: also over a file that is there */
	const char *pattern;            /* grep: a regular expression as cordon(1) has it */
	bool fixed, ignore_case, names_only;    /* grep: a text; in either case; only which files */
	const char *const *globs;       /* find, grep: names that are wanted, ended by NULL; or NULL: all */
	const char *type;               /* find: "file", "directory" or "link" */
	bool content_in_json;           /* read, send, export: `json` has it, too, that of the last two in base64 */
	uint64_t depth;                 /* walk: how deep; 1: the directory itself; 0: without a limit */
	bool untold; /* for an agent: what the configuration hides is left out of lists without a word,
	                and nothing names the rule that hides it */
	bool skip;                      /* import: what may not be written is left out and named, instead of refused */
};

/* Read-only; the library's until cordon_file_result_unref(). */
struct cordon_file_result {
	const char *json;               /* what the tool has to say, by its own keys; and `tool`, `audit_id` */
	const void *data;               /* of read and send the content, of export the archive; else NULL */
	size_t length;
};

/* Takes the walk as a command does, with the request's session, workspace, cwd and grants, but starts no process: an
 * intent row before, a result row after, a denial row where it is refused. The request has no command. `tool` is read,
 * write, edit, list, find, grep, walk, stat, remove, mkdir, rename, copy, send, export or import. What exists at one
 * moment may be another at the next: a file is opened once, beneath its root, and what was opened is what is judged and
 * used. Content is written beside a file, synced, and renamed into its place. */
int cordon_file_do(struct cordon *cordon, const struct cordon_request *request, const char *tool,
                     const struct cordon_file *file, struct cordon_file_result **ret_result,
                     struct cordon_error *err) CORDON_MUST_CHECK;
void cordon_file_result_unref(struct cordon_file_result *result);

/* ---- Jobs: commands of a session that nobody waits for --------------------------------------------------------- */

/* Starts the request's command, of the session it names, as a job: it goes through the same steps, has no input, and
 * until it ends a thread of the library's own follows it, in which every signal is blocked. Up to 8 at a time in a
 * session; more are `session_busy`. cordon_unref() ends it, and so do ending its session and the death of this process.
 * The request may be changed or released at once, and its approver is not asked once the job runs. All other calls work
 * from any process of the user. *ret_json, to be free()d, is the job. */
int cordon_job_start(struct cordon *cordon, struct cordon_request *request, char **ret_json, struct cordon_error *err)
	CORDON_MUST_CHECK;
/* `{"jobs":[…]}`, the oldest first; `session` may be NULL: of all. `state` is running, ended, or lost: the process that
 * ran it was killed, and the command with it. Its `exit_code` is null unless it has ended. The last 32 that have ended
 * are kept, until the session is removed. */
int cordon_job_list(struct cordon *cordon, const char *session, char **ret_json,
                    struct cordon_error *err) CORDON_MUST_CHECK;
/* The job, and what it wrote from these places on: `stdout` and `stderr` have `data`, the offset `next` to continue
 * from, and how many bytes were `missed`, since only the last 1 MiB of each is kept, or what `max-output` said. */
int cordon_job_poll(struct cordon *cordon, const char *id, uint64_t stdout_from, uint64_t stderr_from, char **ret_json,
                    struct cordon_error *err) CORDON_MUST_CHECK;
struct cordon_job_output {
	uint64_t from, written;         /* where what was read begins, which may be later; how much was written by
	                                   now */
	size_t length;
	bool ended;                     /* there will be no more */
};
/* The same as bytes. If there is nothing new, waits for new output or the end; for so long at most, -1 is without a
 * limit. */
int cordon_job_read(struct cordon *cordon, const char *id, enum cordon_stream stream, uint64_t from, void *buffer,
                    size_t size, int wait_ms, struct cordon_job_output *ret_output,
                    struct cordon_error *err) CORDON_MUST_CHECK;
/* Waits until it has ended, or for so long (-1: without a limit), and returns the job as it is then. */
int cordon_job_wait(struct cordon *cordon, const char *id, int64_t timeout_ms, char **ret_json,
                    struct cordon_error *err) CORDON_MUST_CHECK;
/* Sends a signal to it; with 0 ends it, all of it, and waits until it is gone: SIGTERM, and after 3 s SIGKILL. */
int cordon_job_kill(struct cordon *cordon, const char *id, int signal, struct cordon_error *err) CORDON_MUST_CHECK;

/* ---- Approval --------------------------------------------------------------------------------------------------- */

/* What a human is asked. All text is safe to print: control and bidirectional characters are escaped. */
struct cordon_card {
	const char *id, *hash;                  /* the answer is bound to the hash of the content */
	const char *session;                    /* "" for a command without one: it cannot be approved for the
	                                           session */
	const char *text;                       /* the whole card, several lines: program, arguments, cwd, what it
	                                           asks for */
	const char *json;                       /* the same for programs */
	uint64_t timeout_ms;
	int settled_fd;                         /* readable when it was answered elsewhere, or is no longer wanted: stop
	                                         * asking. Or -1 */
};

/* Both for one request, instead of the cordon's: for a program that runs commands for several people. `fn` may be NULL:
 * there is nobody. `pid` is the process through which they are asked, for the record; 0: this one. */
void cordon_request_approver(struct cordon_request *request, cordon_approver_fn fn, void *arg, int interrupt_fd,
                             int pid);

/* What waits for an answer, as `{"approvals":[…]}`. */
int cordon_approvals_list(struct cordon *cordon, char **ret_json, struct cordon_error *err) CORDON_MUST_CHECK;
/* Answers a waiting card. `hash` (may be NULL) is what the answerer was shown. The first answer counts; a second, a
 * late one and one for another content are errors. */
int cordon_approvals_answer(struct cordon *cordon, const char *card, const char *hash, enum cordon_answer answer,
                            const char *reason, struct cordon_error *err) CORDON_MUST_CHECK;

/* ---- Configuration and manifests -------------------------------------------------------------------------------- */

/* Every setting with its value and where that comes from; `workspace` (may be NULL): with that project's file. */
int cordon_config_show(struct cordon *cordon, const char *workspace, char **ret_json, struct cordon_error *err)
	CORDON_MUST_CHECK;
/* One file by itself, or with NULL the system's and the user's. A project's file (.cordon.toml) is checked on top of
 * what is in force. Paths are absolute. */
int cordon_config_check(struct cordon *cordon, const char *file, struct cordon_error *err) CORDON_MUST_CHECK;
/* Reads a manifest and probes whether this machine can hold what it declares; tells it as JSON. */
int cordon_manifest_check(struct cordon *cordon, const char *file, char **ret_json, struct cordon_error *err)
	CORDON_MUST_CHECK;

/* ---- The network ------------------------------------------------------------------------------------------------ */

/* The groups of hosts that the setting `net` takes by name, as they are for this caller now. The JSON, to be free()d,
 * is {"groups": [{"name", "help", "hosts", "sources"}]}; `sources` are the files and variables of a package manager
 * that say so. */
int cordon_net_list(struct cordon *cordon, char **ret_json, struct cordon_error *err) CORDON_MUST_CHECK;
/* May this URL be fetched on an agent's behalf? http and https only; its name is resolved, and every address judged as
 * for a command's own connections. The JSON, to be free()d, has `url`, `host`, `port`, `addresses` (each with
 * `address`, `allowed` and `why`), `allowed`, and where it is not, `class` and `why`. Dial one of these addresses: a
 * name that is resolved once more may lead elsewhere. And judge where a redirect leads before following it. The ledger
 * has a row of it, with the host and no more of the URL. */
int cordon_url_check(struct cordon *cordon, const char *url, char **ret_json, bool *ret_allowed,
                     struct cordon_error *err) CORDON_MUST_CHECK;

/* ---- The Windows Subsystem for Linux ---------------------------------------------------------------------------- */

/* On Windows, a distro of cordon's own, in which the driver `wsl` runs commands; elsewhere each of these is refused.
 * It is imported from an archive of a root file system whose SHA-256 is `sha256`, with cordon built for Linux:
 * `program`, or with NULL the file "cordon-linux" beside the calling program. */
int cordon_wsl_setup(struct cordon *cordon, const char *archive, const char *sha256, const char *program,
                     struct cordon_error *err) CORDON_MUST_CHECK;
/* What of it reads back. The JSON, to be free()d, is {"distro", "registered", "checks": [{"name", "holds", "found"}]};
 * *ret_holds: all of it. */
int cordon_wsl_status(struct cordon *cordon, char **ret_json, bool *ret_holds, struct cordon_error *err)
	CORDON_MUST_CHECK;
/* Removes it, with all that is in it. `name` must be its name, as a person typed it. */
int cordon_wsl_reset(struct cordon *cordon, const char *name, struct cordon_error *err) CORDON_MUST_CHECK;

/* ---- The ledger ------------------------------------------------------------------------------------------------- */

/* NULL or 0 in a field: no condition by it. */
struct cordon_audit_filter {
	const char *id, *session, *program, *decision;  /* decision: a row's kind, or allowed, denied, approved */
	const char *since, *until;      /* UTC: 2026-01-31, or 2026-01-31T12:34:56Z */
	size_t last;                    /* only the last so many */
	const char *format;             /* "jsonl" (as written, the default) or "ocsf" */
	bool follow;                    /* wait for more, until `fn` says stop */
};
/* One row, one line, without its newline; length 0: nothing new for a moment (only with `follow`). Non-zero stops. */
typedef int (*cordon_row_fn)(void *arg, const char *row, size_t length);
int cordon_audit_read(struct cordon *cordon, const struct cordon_audit_filter *filter, cordon_row_fn fn, void *arg,
                      struct cordon_error *err) CORDON_MUST_CHECK;
/* Checks the chain of every file and the signed head. The JSON, to be free()d, lists what is wrong and where. */
int cordon_audit_verify(struct cordon *cordon, char **ret_json, bool *ret_intact, struct cordon_error *err)
	CORDON_MUST_CHECK;

/* ---- What this machine can hold --------------------------------------------------------------------------------- */

/* What the commands of sessions find under the driver that the configuration names. */
struct cordon_driver_facts {
	bool private_home;              /* at the path of the user's home there is one of their own */
	bool keeps_names;               /* a part of what may be written can be kept as it is */
};
/* No driver that may be used works here: an error. */
int cordon_driver_look(struct cordon *cordon, struct cordon_driver_facts *ret_facts, struct cordon_error *err)
	CORDON_MUST_CHECK;

/* Tries every driver for real and tells what holds, as JSON to be free()d: cordon(1), `doctor`.
 * *ret_holds: whether the default driver holds every wall. */
int cordon_doctor(struct cordon *cordon, char **ret_json, bool *ret_holds, struct cordon_error *err)
	CORDON_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * cordon.h: run a command inside a boundary that the kernel enforces.
 *
 * The pattern of use:
 *
 *     struct cordon *cordon = NULL;
 *     struct cordon_request *request = NULL;
 *     struct cordon_value *result = NULL;
 *     struct cordon_error *err = cordon_error_new();
 *     const char *const argv[] = { "make", "test", NULL };
 *
 *     if (cordon_open(NULL, &cordon, err) < 0 ||
 *         cordon_request_new(&request, err) < 0 ||
 *         cordon_request_set(request, "workspace", "/home/me/project", err) < 0 ||
 *         cordon_request_set(request, "timeout", "30s", err) < 0 ||
 *         cordon_request_command(request, argv, err) < 0 ||
 *         cordon_run(cordon, request, &result, err) < 0)
 *             report(cordon_error_text(err, "class"), cordon_error_text(err, "reason"));
 *     else
 *             use(cordon_value_int(result, "exit_code"), cordon_value_text(result, "stdout", &length));
 *
 *     cordon_value_unref(result);
 *     cordon_request_unref(request);
 *     cordon_unref(cordon);
 *     cordon_error_free(err);
 *
 * Conventions. A function that can fail returns 0 or a negative number; on failure it fills `err` and leaves every
 * `ret_` argument untouched (but for the result of a command that ran: cordon_run()), on success it leaves `err`
 * untouched. Every `_unref` and `_free` takes NULL, `err` may be NULL, and an argument that may be NULL is said to be;
 * any other that is NULL is `invalid_request`. A text or value that is returned through `char **` is the caller's to
 * free(), one through `struct cordon_value **` to cordon_value_unref(). Every call may be made from any thread, and a
 * `struct cordon` be shared by threads; a request, and an error, belongs to one thread at a time. A call waits only
 * where its contract says for what.
 *
 * The library never prints, never logs, never exits and changes no signal handler. While a command runs, and for a
 * moment after, the calling process has one child more, cordon's own, or two where the command may reach listed hosts.
 * A program that waits for any child may see them, and may even reap them. Threads of the library's own, in which
 * every signal is blocked: one for each process that is followed (cordon_start()), one for each job, one for the
 * network of a session's sandbox, and one while a human is asked about a host. A child that the calling process forks
 * cannot use what was opened before: a call with such a handle is `invalid_request`, and releasing it there does
 * nothing. As long as the child lives it may keep alive what its parent, being killed, would have taken with it. Under
 * valgrind no command can be started.
 *
 * What is declared here is frozen with version 1: no type has members that a caller could name, so none can change its
 * size. New members of values, new settings, methods, events and error classes come without a new symbol; a caller
 * passes over those it does not know.
 */
#ifndef CORDON_H
#define CORDON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CORDON_VERSION "0.1.0"
/* Counted up with each addition to this header. What is declared here in API n is there in every later one. */
#define CORDON_API 1
#define CORDON_MUST_CHECK __attribute__((warn_unused_result))

/* Of the library that is linked, which may be newer than this header. They never fail. The text is static. */
const char *cordon_version(void);
int cordon_api(void);

/* ---- Errors: one value at every door ---------------------------------------------------------------------------- */

/* Fixed for ever, as numbers and as names. */
enum cordon_class {
	CORDON_OK = 0,
#define CORDON_CLASS(number, id, name, retriable, meaning) CORDON_E_##id = number,
#include "cordon-codes.def"
#undef CORDON_CLASS
	CORDON_CLASS_MAX
};
/* "capability_denied"; static. "" for a number that is none. */
const char *cordon_class_name(enum cordon_class value);

/* An error that is empty, to be given to calls as `err`, again and again, and released. NULL when memory is short. */
struct cordon_error;
struct cordon_error *cordon_error_new(void);
void cordon_error_free(struct cordon_error *err);
/* The class as its number; 0: there is none, or `err` is NULL. */
int cordon_error_code(const struct cordon_error *err);
/* Is it worth trying again? */
bool cordon_error_retriable(const struct cordon_error *err);
/* A member by its name: "class", "step" (of the six, the one that refused), "boundary" (the wall or the part that
 * refused), "subject" (a path, a key, a program), "reason", "remediation", "audit_id" (the ledger row), "grant" (the
 * option that would allow it, "--read PATH"), and that as a setting of a request and its value: "grant.key",
 * "grant.value". The error's own, until its next use. "" where it says nothing of it; NULL where there is no such
 * member, or `err` or `name` is NULL. */
const char *cordon_error_text(const struct cordon_error *err, const char *name);
/* The error as `{"error":{…}}`, to be free()d. NULL when memory is short. */
char *cordon_error_json(const struct cordon_error *err);

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* What a call returns: numbers, texts, lists and objects, as JSON has them. Constant, and to be read from any thread,
 * until it is released. A path names a part: members and places in lists, joined by dots ("denials.0.wall"); "" is the
 * whole. Reading never fails: what is not there, is of another type, or is asked of NULL, is 0 or NULL. */
struct cordon_value;
enum cordon_type {
	CORDON_ABSENT = 0,
	CORDON_NULL,
	CORDON_BOOL,
	CORDON_INT,
	CORDON_REAL,
	CORDON_TEXT,
	CORDON_LIST,
	CORDON_OBJECT
};

enum cordon_type cordon_value_type(const struct cordon_value *value, const char *path);
/* True is 1. */
int64_t cordon_value_int(const struct cordon_value *value, const char *path);
/* The value's own, ended by NUL. It may be any bytes: output has them as they were written; `ret_length` (may be NULL)
 * is how many. */
const char *cordon_value_text(const struct cordon_value *value, const char *path, size_t *ret_length);
/* Of a list its elements, of an object its members, and the name of one of those. */
size_t cordon_value_count(const struct cordon_value *value, const char *path);
const char *cordon_value_key(const struct cordon_value *value, const char *path, size_t place);
/* As JSON, to be free()d; NULL where there is nothing, or memory is short. A text that is not UTF-8 has beside it a
 * member of its name and `_base64` with its bytes; in its own place are its first 64 KiB, with U+FFFD for what is not
 * UTF-8. */
char *cordon_value_json(const struct cordon_value *value, const char *path);
void cordon_value_unref(struct cordon_value *value);

/* ---- The library's state ---------------------------------------------------------------------------------------- */

struct cordon;

/* How it is opened. NULL when memory is short. Keys, as text that is copied:
 *
 *     data-dir     where cordon keeps ledger, workspaces and homes: $XDG_DATA_HOME/cordon, or ~/.local/share/cordon
 *     config       this file instead of the system's and the user's configuration
 *     one-command  true: the process ends with its command, so no later one shares a session's processes with it
 */
struct cordon_options;
struct cordon_options *cordon_options_new(void);
void cordon_options_free(struct cordon_options *options);
int cordon_options_set(struct cordon_options *options, const char *key, const char *value, struct cordon_error *err)
	CORDON_MUST_CHECK;

/* `options` may be NULL: all defaults. Copied. Reads the configuration; waits for the disk. */
int cordon_open(const struct cordon_options *options, struct cordon **ret_cordon, struct cordon_error *err)
	CORDON_MUST_CHECK;
/* Ends what still runs of it, processes and jobs, and waits until it is gone. */
void cordon_unref(struct cordon *cordon);
/* For a process that stays: lowers sandboxes of sessions that have ended or were idle for a while. In how many ms to
 * call it again; -1: none is up. */
int cordon_sweep(struct cordon *cordon);

/* ---- A request -------------------------------------------------------------------------------------------------- */

struct cordon_request;

int cordon_request_new(struct cordon_request **ret_request, struct cordon_error *err) CORDON_MUST_CHECK;
void cordon_request_unref(struct cordon_request *request);

/* One setting, as text: the same keys and spellings as the options of `cordon run` (docs: cordon(1)).
 * Keys that may be given more than once add; the others replace. `tty` also takes the size the terminal is to have
 * from the start: "24x80". Keys that are no option of it:
 *
 *     plain       true: the limits of `cordon run` without --session and --json, see cordon(1). Output for which no
 *                 limit is named goes to the output function alone: the result has the totals
 *     hand-on     true: output without a limit goes to the output function alone, and the result has the totals
 *     client-asks true: the approver's function asks through a client that may answer by itself; it counts only where
 *                 approval.approver of the configuration lets it
 *     one-stream  true: standard error is the very pipe of standard output, which keeps their order, and counts as that
 *     judged      true: the output function gets output once it is known whether it is part of a secret, as the result
 *                 does; without it, 100 ms later at most, and what was handed to the function is in the result as it
 *                 was handed on
 *     umask       the file mode creation mask of the command, in octal (default: 022)
 *     stdin       stream: the input of a process comes by cordon_process_write(); empty (the default, but for a process
 *                 with `tty`)
 *     ask         true: the questions of a process are events, instead of going to an approver's function
 *
 * The strings are copied. */
int cordon_request_set(struct cordon_request *request, const char *key, const char *value, struct cordon_error *err)
	CORDON_MUST_CHECK;

/* The program and its arguments, ended by NULL; copied. */
int cordon_request_command(struct cordon_request *request, const char *const *argv, struct cordon_error *err)
	CORDON_MUST_CHECK;

/* The environment of the request's caller, as NAME=VALUE ended by NULL; copied, 6 MiB at most. PATH and the variables
 * that are passed on come from it, and its HOME decides the toolchains, git's identity and `~` in a manifest. The
 * default is the calling process's own, which is in any case where the library's data and its configuration are
 * found. */
int cordon_request_environment(struct cordon_request *request, const char *const *environment, struct cordon_error *err)
	CORDON_MUST_CHECK;

/* The settings as JSON, to be free()d: `{"settings":[{key, type, repeats, least, most, summary}…]}`. NULL when memory
 * is short. */
char *cordon_settings_json(void);

/* What the command reads: everything read from `fd` is passed on through a pipe. Borrowed until the command ends. -1,
 * the default, is an empty input. The command never gets `fd` itself; where reading it fails, its input ends, and the
 * result has a note. A regular file is read from its offset on, which is set when the command has ended: to where the
 * command stopped reading. From anything else more may be read than the command takes. */
void cordon_request_stdin(struct cordon_request *request, int fd);

enum cordon_stream { CORDON_STDOUT = 1, CORDON_STDERR = 2 };

/* Called with output as it comes, besides being captured. */
typedef void (*cordon_output_fn)(void *arg, enum cordon_stream stream, const void *data, size_t length);
void cordon_request_output(struct cordon_request *request, cordon_output_fn fn, void *arg);

/* ---- Running ---------------------------------------------------------------------------------------------------- */

/* The six steps, start to end; waits for the command, and for a human where one is asked. The result is a value with
 * `exit_code`, `stdout`, `ended_by` and what else docs/PROTOCOL.md lists. An error means that the command did not run
 * and *ret_result is untouched; with one exception. If the command ran and something failed after it had ended, most of
 * all if its result row could not be written (`audit_unavailable`), *ret_result is set all the same: the whole result,
 * with output and denials, and the error once more as its member `error`. The reason says that the command ran and how
 * it ended, and the error is not retriable. So *ret_result is to be NULL before the call, and is released whatever the
 * call returns. A request that names neither session nor workspace has a workspace of its own, which is removed when
 * all is over. */
int cordon_run(struct cordon *cordon, const struct cordon_request *request, struct cordon_value **ret_result,
               struct cordon_error *err) CORDON_MUST_CHECK;

/* ---- Processes --------------------------------------------------------------------------------------------------- */

/* A command that runs beside its caller: in the foreground, in the background, with a terminal. A thread of the
 * library's own follows it, in which every signal is blocked. No call about one waits, but for cordon_process_wait(),
 * and all of them may be made from any thread; only releasing one must not be done while another thread uses the same
 * handle.
 *
 *     cordon_start(cordon, request, &process, &err)
 *     while poll() says that cordon_process_fd(process) is readable:
 *             cordon_process_next(process, &event, &err), again and again, until the event is NULL
 *
 * An event is a value with a text `event`:
 *
 *     started   id, audit_id, session (or null), workspace, cwd
 *     output    stream (stdout, stderr), offset (of its first byte in the stream), data; missed: so many bytes before
 *               it are lost to this handle, because they are no longer kept
 *     asks      card, hash, question, timeout_ms: a human is asked (with `ask`); answer by cordon_process_answer()
 *     settled   card: it was answered, here or elsewhere, or is no longer asked
 *     room      cordon_process_write() took less than it was given, and would take more now
 *     ended     result (without the output), error, or both as with cordon_run(): the last event
 *
 * A command whose events are not taken waits, like one at a full pipe, until it is told to end. */
struct cordon_process;
/* Takes the six steps in its thread. What refuses the command is an error of the event `ended`. The request is kept as
 * long as it is needed: it may be released at once, but not changed. Its output function is not called; its descriptor
 * for the input is duplicated. */
int cordon_start(struct cordon *cordon, struct cordon_request *request, struct cordon_process **ret_process,
                 struct cordon_error *err) CORDON_MUST_CHECK;
/* Another handle for a process that this cordon has started, with events from the first and output from these places
 * on: 1 MiB of each stream is kept. Of those that were detached the last 64 that have ended are known, too. Else
 * `not_found`. */
int cordon_process_attach(struct cordon *cordon, const char *id, uint64_t stdout_from, uint64_t stderr_from,
                          struct cordon_process **ret_process, struct cordon_error *err) CORDON_MUST_CHECK;
/* Releases the handle, and its descriptor before it returns. A process without a handle that was never detached is
 * killed. */
void cordon_process_unref(struct cordon_process *process);
/* Releases the handle; the process continues, until it ends or the cordon is released. Its output is read and the
 * oldest lost. */
int cordon_process_detach(struct cordon_process *process, struct cordon_error *err) CORDON_MUST_CHECK;

/* The handle's, readable when there is an event. Not to be read or closed. -1: `process` is NULL. */
int cordon_process_fd(const struct cordon_process *process);
/* Known at once. The handle's. */
const char *cordon_process_id(const struct cordon_process *process);
/* *ret_event, to be released; NULL: there is none now. */
int cordon_process_next(struct cordon_process *process, struct cordon_value **ret_event,
                        struct cordon_error *err) CORDON_MUST_CHECK;
/* Waits for the end, for so long at most (-1: without a limit), and returns as cordon_run() does, with the output in
 * the result. NULL and 0: it has not ended. Meanwhile this handle holds no output: of what it does not take afterwards
 * the oldest may be lost. */
int cordon_process_wait(struct cordon_process *process, int64_t timeout_ms, struct cordon_value **ret_result,
                        struct cordon_error *err) CORDON_MUST_CHECK;

/* Input, as much of it as there is room for; after less, the event `room` comes. */
int cordon_process_write(struct cordon_process *process, const void *data, size_t length, size_t *ret_taken,
                         struct cordon_error *err) CORDON_MUST_CHECK;
/* The end of the input, after all that was written. */
int cordon_process_close_stdin(struct cordon_process *process, struct cordon_error *err) CORDON_MUST_CHECK;
/* To its process group, as a terminal would; once it runs. A signal that ends a process also withdraws an open
 * question. */
int cordon_process_signal(struct cordon_process *process, int signal, struct cordon_error *err) CORDON_MUST_CHECK;
/* Ends it: SIGTERM, and SIGKILL after so long; 0 is SIGKILL at once. One that does not run yet ends with
 * `cancelled`. */
int cordon_process_cancel(struct cordon_process *process, int64_t grace_ms, struct cordon_error *err) CORDON_MUST_CHECK;
/* With the setting `tty`. */
int cordon_process_resize(struct cordon_process *process, unsigned short rows, unsigned short columns,
                          struct cordon_error *err) CORDON_MUST_CHECK;

enum cordon_answer {
	CORDON_UNANSWERED = 0,          /* leave it to others: the queue, or the timeout */
	CORDON_APPROVED_ONCE,
	CORDON_APPROVED_SESSION,
	CORDON_DENIED,
	CORDON_ANSWER_MAX
};
/* Answers the question of an event `asks`. `hash` (may be NULL) is what the answerer was shown, `reason` (may be NULL)
 * is for a denial. The first answer counts; a second, a late one and one for another content are errors. Waits for the
 * disk. */
int cordon_process_answer(struct cordon_process *process, const char *card, const char *hash, enum cordon_answer answer,
                          const char *reason, struct cordon_error *err) CORDON_MUST_CHECK;

/* ---- Asking a human --------------------------------------------------------------------------------------------- */

/* What a human is asked, for the time of the call. A member by its name: "id", "hash" (the answer is bound to it),
 * "session" ("" for a command without one: it cannot be approved for the session), "text" (the whole card, several
 * lines, safe to print: control and bidirectional characters are escaped), "json" (the same for programs). NULL where
 * there is no such member. */
struct cordon_card;
const char *cordon_card_text(const struct cordon_card *card, const char *name);
uint64_t cordon_card_timeout_ms(const struct cordon_card *card);
/* Readable when it was answered elsewhere, or is no longer wanted: stop asking. Or -1. */
int cordon_card_settled_fd(const struct cordon_card *card);

/* Called by cordon_run(), in its thread, before the command starts; and while a command of a session runs that may
 * reach listed hosts, about a host that is not among them, from a thread of the library's own. Then several commands
 * may ask at once, each of them one thing at a time, and the end of the command waits until the function returns: it
 * should when cordon_card_settled_fd() is readable. `reason` is for a denial. An answer after the timeout is none. */
typedef enum cordon_answer (*cordon_approver_fn)(void *arg, const struct cordon_card *card, char reason[256]);
/* To be set before the first command; it stays in use until the last has ended. `fn` may be NULL: there is no
 * approver. */
void cordon_approver(struct cordon *cordon, cordon_approver_fn fn, void *arg);
/* While an answer is waited for, `fd` becoming readable ends the waiting, and the command is not run. While the kernel
 * takes long to load its program, it ends the command. Borrowed; -1: none. */
void cordon_approver_interrupt(struct cordon *cordon, int fd);

/* ---- Files ------------------------------------------------------------------------------------------------------ */

/* A file tool takes the six steps as a command does, with the request's session, workspace, cwd and grants, but starts
 * no process; the request has no command. `tool` is read, write, edit, list, find, grep, walk, stat, remove, mkdir,
 * rename, copy, send, export or import; `params` a JSON object, or NULL, with the parameters of the method fs.TOOL but
 * `settings` (docs/PROTOCOL.md). `data` is the content that write, edit and import take, any bytes, instead of the
 * parameter `data`; NULL: none. The result is that of the method; `data` in it is what read, send and export return.
 * What exists at one moment may be another at the next: a file is opened once, beneath its root, and what was opened
 * is what is judged and used. Waits for the disk, and for a human where one is asked. */
int cordon_file_call(struct cordon *cordon, const struct cordon_request *request, const char *tool, const char *params,
                     const void *data, size_t length, struct cordon_value **ret_result,
                     struct cordon_error *err) CORDON_MUST_CHECK;

/* ---- Ports ------------------------------------------------------------------------------------------------------ */

/* Makes a port of the session's sandbox, which a command of it raised in this process, reachable at this machine's
 * 127.0.0.1: at `host_port`, or with 0 at one that is free. Open until the sandbox ends, or the method port.close. It
 * asks nobody, for the caller decides; each is a row. *ret_port: id, session, host, host_port, port, url. */
int cordon_port_open(struct cordon *cordon, const char *session, unsigned port, unsigned host_port,
                     struct cordon_value **ret_port, struct cordon_error *err) CORDON_MUST_CHECK;

/* ---- The current session of a thread ----------------------------------------------------------------------------- */

/* The calling thread's current session: a request that names none uses it, until cordon_session_leave() returns to the
 * one before; up to 64 of them. The cordon is borrowed until then. cordon_run_current() runs a command in it; without
 * one it is an error, never an unscoped run. */
int cordon_session_enter(struct cordon *cordon, const char *id, struct cordon_error *err) CORDON_MUST_CHECK;
void cordon_session_leave(void);
const char *cordon_session_current(void);
int cordon_run_current(const char *const *argv, struct cordon_value **ret_result, struct cordon_error *err)
	CORDON_MUST_CHECK;

/* ---- Every method by its name ------------------------------------------------------------------------------------ */

/* Sessions, jobs, approvals, caches, configuration, ledger, doctor and the rest. Carries out a method of the one table
 * that `cordon serve` and `cordon rpc` have, too (docs/PROTOCOL.md; the method rpc.discover). `params` is a JSON
 * object, or NULL for none; what is not in the table, or not of its type, is `invalid_request`, and an unknown method
 * `not_found`. Waits as long as what it does takes, unless the table says `quick`. A process that it starts
 * (process.start) is known by its id until the cordon is released: cordon_process_attach() has its events. */
int cordon_call(struct cordon *cordon, const char *method, const char *params, struct cordon_value **ret_result,
                struct cordon_error *err) CORDON_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif

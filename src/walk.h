/* The walk: every request, a command or a call of a file tool, takes six steps, always in this order. walk.c shows it
 * whole.
 *
 *     1-session.c     session_step()      which session, policy, driver, workspace and home     verdict.session
 *     2-cwd.c         cwd_step()          the working directory, opened beneath a root          verdict.cwd
 *     3-capability.c  capability_step()   what it may reach; approval/ asks a human             verdict.grants
 *     4-profile.c     profile_step()      the walls as data: profile/; names to hide: paths/    verdict.profile
 *     6-audit.c       audit_step_intent() the intent row: no row, no run
 *     5-run.c         run_step_start()    the driver raises the walls and starts the command
 *                     run_step_finish()   how it ended; what it left behind
 *     6-audit.c       audit_step_result() the result row; or, where a step refused, audit_step_denial()
 *
 * Steps 1 to 4 take facts (struct walk_facts, and the parts of the verdict before their own) and return their part.
 * What a step makes or locks is in struct walk_held and released by walk_free(). A file tool takes the same walk
 * without a process: walk_tool().
 *
 * To add something: the table in CONTRIBUTING.md. */
#pragma once
#include <stdatomic.h>

#include "approval/gate.h"
#include "approval/grants.h"
#include "audit/ledger.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/denials.h"
#include "base/error.h"
#include "base/id.h"
#include "base/place.h"
#include "driver/driver.h"
#include "egress/counts.h"
#include "profile/profile.h"
#include "sandbox/sandboxes.h"

struct config_store;
struct egress;
struct host_tools_kept;
struct host_view;
struct job;
struct watch;
struct job_place;
struct json;
struct names_memory;
struct session_look;
struct session_record;
struct execution;
struct secret_guard;
struct secret_screen;
struct trees;
struct host_watch;

/* ---- The request ------------------------------------------------------------------------------------------------ */

/* What a caller asks for, set by the rows of api/request.c. */
struct cordon_request {
	struct arena arena;
	atomic_uint refs;                       /* a job keeps what its request names */
	const char *session, *workspace, *cwd, *driver, *manifest;
	enum view view;
	bool view_named;
	struct capability_set granted;          /* what the person at the command line grants on top of the baseline */
	bool of_agent;                          /* the session is one of an agent's door */
	uint64_t idle_expiry_ms;                /* of a session that is made; 0, or UINT64_MAX: none */
	bool no_spawn, no_network, tty, choose_toolchains, no_caches, fresh;
	bool plain;                             /* the limits of a person's own command, and its output is not kept */
	bool hand_on;                           /* output without a limit is not kept */
	bool one_stream;                        /* its stderr is its stdout */
	bool judged;                            /* its output is handed on when it is judged, however late that is */
	bool stream_input;                      /* of a process: its input comes by cordon_process_write() */
	bool ask_events;                        /* of a process: its questions are events */
	unsigned umask;
	struct ulimits ulimits;
	bool find_top;                          /* the workspace is the git working tree that `workspace` lies in, if
	                                           any */
	unsigned short rows, columns;           /* of the terminal */
	struct strings groups;                  /* of hosts, by name */
	struct strings private_hosts;           /* of `granted.hosts`, those that may be at an address of this site */
	const char *client_ref;                 /* what the caller knows it by, for the ledger; or NULL */
	const char *secrets;                    /* what is done about secrets in output: an action's name; or NULL */
	struct strings env, pass_env, toolchains, argv;
	char *const *environment;               /* the caller's; or NULL: the process's own */
	int stdin_fd;
	cordon_output_fn output;
	void *output_arg;
	bool has_approver;
	struct approver approver;               /* then of this request, instead of the cordon's */
	struct job_place *job;                  /* it is to be a job, and this is filled by step 1; or NULL */
};

/* The caller's environment, and a variable of it, or NULL. Without a request: the process's own. */
char *const *request_environment(const struct cordon_request *request);
const char *request_variable(const struct cordon_request *request, const char *name);

/* ---- The handle ------------------------------------------------------------------------------------------------- */

/* The library's state: where its data is, the ledger, the configuration, whom to ask. */
struct cordon {
	struct arena arena;
	pid_t owner;                            /* the process that opened it, and the only one that may use it */
	const char *data_dir, *data_named;      /* what it is; what led there, by whatever links */
	struct ledger *ledger;
	struct config_store *config;
	struct host_watch *host_watch;                    /* over what of the host the following know */
	bool one_command;                       /* see struct cordon_options */
	atomic_bool asked;                      /* for one command, */
	atomic_bool stays;                      /* for more than one: what is found for one is kept for the next */
	struct host_view *view;
	struct host_tools_kept *tools;
	struct names_memory *names;
	struct sandboxes *sandboxes;            /* of sessions, that are up */
	struct approver approver;
	pthread_mutex_t jobs_lock;              /* over the next: */
	struct job *jobs;                       /* that run here, and that have run (api/job-thread.c) */
	struct watch *watches;                  /* api/watch.c */
	struct process *processes;              /* that run here, and that have run (api/process.c) */
};

/* What the approval gate works with. */
static inline struct gate handle_gate(const struct cordon *cordon)
{
	return (struct gate){ cordon->data_dir, cordon->ledger, &cordon->approver };
}

/* The approver of the request, or the handle's. */
static inline const struct approver *walk_approver(const struct cordon *cordon, const struct cordon_request *request)
{
	return request->has_approver ? &request->approver : &cordon->approver;
}

/* ---- The verdict ------------------------------------------------------------------------------------------------ */

/* What steps 1 to 4 decided about one request. Each step fills its own part from the parts before it; when step 4 has
 * returned, nothing changes any more. Everything is borrowed from the request's arena; the descriptors are closed with
 * it. */
struct verdict {
	/* Step 1: which session, under which policy, where. */
	struct verdict_session {
		const char *id;                     /* of a one-off: its audit id */
		bool one_off;                       /* no session was named: the request is granted what it asks for */
		const struct session_record *record;        /* empty for a one-off */
		const struct config *config;        /* the policy in force */
		const char *note;                   /* what is wrong with a file of the configuration; or NULL */
		const struct driver *driver;
		enum view view;
		struct place workspace;
		int workspace_fd;                   /* -1: a dry walk of a session that has none yet */
		const char *here;                   /* the caller's directory in it, where it was found from there;
		                                       or NULL */
		struct place git_common;            /* the repository of a linked worktree or submodule; no path:
		                                       none */
		bool own_workspace;                 /* made by cordon: no other session has files there */
		const char *home, *home_source;     /* inside and outside; home_source NULL: in memory */
		const char *home_alias;             /* a link to it that the caller knows; or NULL */
		struct place tmp;                   /* what is /tmp inside; no path: memory */
	} session;
	/* Step 2: the working directory. */
	struct verdict_cwd {
		const char *path;
		int fd;                             /* the workspace's own, where it is the workspace */
	} cwd;
	/* Step 3: what it may reach. */
	struct grants grants;
	/* Step 4: the walls as data. Of a file tool, which has no process, it is empty. */
	struct profile profile;
};

/* The input of every step: plain facts, all borrowed. */
struct walk_facts {
	struct arena *arena;
	struct cordon *cordon;
	const struct cordon_request *request;
	const char *audit_id;
	struct denials *denials;                /* gets what a step leaves out without refusing the request */
	const struct walk_tool *tool;           /* a file tool; NULL: a command */
	bool dry;                               /* steps 1 to 4 only: nothing is made, no approval is asked for */
	bool probe;                             /* cordon's own, to find out what holds: no configuration applies */
};

/* A file tool: it takes the walk as a command does, without a process. Step 3 asks for `paths` where they lie neither
 * in the workspace, nor in the baseline, nor in an earlier grant; then they are among the grants' reads or writes, as
 * roots of their own. All borrowed for the call. */
struct walk_tool {
	const char *name;                       /* in questions and rows: "read", "write", "rename" … */
	const char *paths[2];                   /* as requested, relative to the working directory; NULL: none */
	bool writes;                            /* it changes what is there */
	bool reads_first;                       /* but at the first path it only reads */
	bool for_session; /* it asks for what the request grants, for the session; nothing is done */
	bool may_miss;                          /* there may be nothing yet at a path, but its directory is */
	/* Step 4: opens and judges the paths beneath the workspace and the granted roots. *ret_rule: why a tool rule
	 * wants a human to be asked, in memory that lasts as long as `arg`; or NULL, as it is at first. */
	int (*judge)(void *arg, struct arena *arena, const struct verdict *verdict, const char **ret_rule,
	             struct cordon_error *err);
	/* Step 5, after the intent row. What is returned goes through `screen`. *ret_bytes: read or written, for the
	 * result row. */
	int (*act)(void *arg, struct arena *arena, const struct verdict *verdict, struct secret_screen *screen,
	           uint64_t *ret_bytes, struct cordon_error *err);
	/* Then: what was found and hidden, to be told with what is returned. Or NULL. */
	int (*tell)(void *arg, const struct execution *execution, struct cordon_error *err);
	struct walk_text {
		const char *what;               /* "the new content"; NULL: none */
		const void *bytes;
		size_t length;
	} texts[4];                             /* that the caller hands in, and that are searched for secrets */
	void *arg;
	char *ret_audit_id;                     /* of ID_SIZE, set before step 1; or NULL */
};

/* What the steps made or locked for this one request, released at its end. */
struct walk_held {
	int use_fd;                             /* lock on the session, so that it is not removed meanwhile; or -1 */
	bool is_timed;                          /* the session ends when it is idle: the lock's time tells since when */
	struct session_look *look;              /* the session's state when last looked at */
	bool disposable;                        /* the workspace was made for this one command */
	int home_fd;                            /* of home_source; or -1 */
	int tmp_fd;                             /* of the session's /tmp; or -1 */
	int layers_fd;                          /* of what is written to the host's package caches; or -1 */
	const char *scratch;                    /* a directory for one command, removed at its end; or NULL */
	int scratch_fd;                         /* locked while in use; or -1 */
	struct job_place *job;                  /* the request's, where it is a job and has its place; or NULL */
};

/* ---- The walk --------------------------------------------------------------------------------------------------- */

/* How far a walk has come. */
enum walk_stage {
	WALK_BEGIN,                             /* nothing is decided */
	WALK_DECIDED,                           /* steps 1 to 4 are taken: the verdict is whole, and constant */
	WALK_STARTED,                           /* the intent row is written, and the command runs */
	WALK_ENDED,                             /* the command has ended, and its last row is written, or could not
	                                           be */
};

/* A variable with a secret in it, in the command's environment for the start. */
struct delivered_credential {
	char *pair;                             /* NAME=VALUE, wiped and freed */
	size_t size;
	struct delivered_credential *next;
};

struct execution {
	struct arena arena;
	struct cordon *cordon;
	const struct cordon_request *request;
	struct walk_facts facts;
	enum walk_stage stage;
	bool asked;                             /* a human was asked about this very request */
	struct verdict verdict;
	struct walk_held held;
	struct trees *trees;                    /* names in the granted trees, before and after; NULL before step 4 */
	struct denials denials;
	struct {
		struct sandbox_place place;         /* in its session's sandbox; else: */
		struct sandbox *own_sandbox;        /* of the command's own */
		struct command command;
		struct git_broker *git_broker;      /* makes its changes to git's configuration; or NULL */
		struct running *running;            /* NULL before it has started */
		_Atomic(struct running *) holdable; /* the same, for the thread that asks a human */
		atomic_bool input_held;
		size_t denied_before;               /* denials that the steps before had to tell */
		const char *isolation[CORDON_WALL_MAX];
		bool ended;                         /* it ran, and is over; then how: */
		const char *told_by;                /* the caller told it to end: "cancel", "daemon"; or NULL */
		struct outcome outcome;
		struct publish *publish;            /* ports of such a sandbox; or NULL */
		struct egress *egress;              /* of a sandbox of its own that has listeners; or NULL */
		struct egress_command *connections; /* those of the command; or NULL */
		struct egress_counts network;       /* afterwards, what these were */
		const char *offline_hint;           /* afterwards: which hosts were asked for without a network; or
		                                       NULL */
		struct secret_guard *guard;         /* over its secrets; or NULL */
		struct strings environment;         /* the profile's, with the values of credentials in it */
		struct delivered_credential *credentials;   /* for the start; then NULL */
		const struct cordon_secret *secrets;        /* that were found, the first of `secrets_found` */
		size_t secret_count;
		uint64_t secrets_found;
	} run;
	struct {
		char id[ID_SIZE];
		bool intended;                      /* there is a row of this id, */
		struct ledger_room room, network_room;      /* for those that follow, and for its connections */
		struct cordon_error failed;         /* why its last row could not be written, or step 5 failed at its
		                                       end; class 0: neither */
		char *isolation;                    /* as the result row will say it, once it runs; or NULL */
	} audit;
};

/* What the public header calls an execution: a walk that has come to its fifth step. */
struct cordon_execution {
	struct execution *walk;
};

/* Step 1. `held` gets what must be released even where the step fails. session_release() removes what was made for a
 * one-off. session_wish(), while the command of a session runs: paused, it is stopped; ended, it is killed. */
int session_step(const struct walk_facts *facts, struct walk_held *held, struct verdict_session *ret,
                 struct cordon_error *err) must_check;
/* The name of the driver that the configuration chooses. */
const char *session_step_driver(const struct config *config);
void session_release(const struct walk_facts *facts, struct walk_held *held, struct verdict_session *session);
enum command_wish session_wish(void *execution);
/* Step 2. */
struct cwd_facts {
	struct arena *arena;
	const char *cwd;                        /* as requested; NULL: `here`, or the workspace */
	const char *here;                       /* where relative paths begin; NULL: in the workspace */
	const struct place *workspace;
	int workspace_fd;
	const struct capability_set *granted[3];        /* whose paths are roots, too */
};
int cwd_step(const struct cwd_facts *facts, struct verdict_cwd *ret, struct cordon_error *err) must_check;
/* Step 3. *ret_asked: a human was asked, whatever the answer; in a dry walk: would be asked. */
int capability_step(const struct walk_facts *facts, const struct walk_held *held, const struct verdict *verdict,
                    struct grants *ret, bool *ret_asked, struct cordon_error *err) must_check;
/* Of step 3, granted-paths.c: the places of the paths in the set of `grants`. */
int granted_paths_resolve(const struct walk_facts *facts, const struct verdict_session *session, struct grants *grants,
                          struct cordon_error *err) must_check;
/* What must never be granted whole, because the walls are made of it or hide it. */
int granted_paths_refuse(const struct walk_facts *facts, const struct verdict_session *session,
                         const struct places *places, struct cordon_error *err) must_check;
/* What the request grants, with the hosts of the groups that it names. */
int capability_granted(const struct cordon_request *request, const struct config *config, struct arena *arena,
                       struct capability_set *ret_set, struct cordon_error *err) must_check;
/* The part of a question to a human that is about the request. */
int capability_question(const struct walk_facts *facts, const struct walk_held *held, const struct verdict *verdict,
                        struct gate_question *ret_question, struct cordon_error *err) must_check;
/* Step 4. *ret_trees is set even where the step fails. */
int profile_step(const struct walk_facts *facts, struct walk_held *held, const struct verdict *verdict,
                 struct trees **ret_trees, struct profile *ret, struct cordon_error *err) must_check;
/* Step 5 has a start, events in between, and a finish. */
int run_step_start(struct execution *execution, struct cordon_error *err) must_check;
int run_step_finish(struct execution *execution, struct cordon_error *err) must_check;
/* Instead of both: what of the verdict is for those that run in the session's sandbox already. */
int run_step_refresh(struct execution *execution, struct cordon_error *err) must_check;
/* Of one that has ended: not with status 0. */
bool run_failed(const struct execution *execution);
/* Of step 5, remarks.c: what a command that failed was refused, as far as its output tells. -1 when memory is short. */
int remarks_add(struct execution *execution) must_check;
/* The same of one that did not fail: git goes on where a file has to stay, and ends with 0. */
int remarks_add_success(struct execution *execution) must_check;
/* Where programs complain. */
const struct captured *remarks_source(const struct execution *execution);
/* At the end of everything: all that step 5 holds. */
void run_release(struct execution *execution);
/* Of step 5, limits.c: remarks about limits that it met. */
int limits_end(struct execution *execution, struct cordon_error *err) must_check;
/* Pauses the session of a command that ran out of memory, until a human has looked. */
int limits_pause(struct execution *execution, struct cordon_error *err) must_check;
/* Of step 5, leaks.c: before the start, whether a secret would leave with the arguments or the environment; what
 * output goes through; at the end, what was found (-1: no memory to tell), and whether the policy calls that a
 * failure. */
int leaks_begin(struct execution *execution, struct cordon_error *err) must_check;
int leaks_begin_tool(struct execution *execution, const struct walk_tool *tool, struct secret_screen **ret_screen,
                     struct cordon_error *err) must_check;
/* A row that is about to be written, an error and the denials that a caller gets: without the values of secrets. */
int leaks_clean_row(struct execution *execution, struct json *json, struct cordon_error *err) must_check;
int leaks_clean_error(struct execution *execution, struct cordon_error *err) must_check;
int leaks_clean_denials(struct execution *execution) must_check;
/* Another text that is kept: *text becomes a copy of the execution's. */
int leaks_clean_text(struct execution *execution, const char **text) must_check;
struct output_filter leaks_filter(struct execution *execution);
int leaks_end(struct execution *execution) must_check;
int leaks_list(struct execution *execution) must_check;
int leaks_block(const struct execution *execution, struct cordon_error *err) must_check;
void leaks_write_json(struct json *json, const struct cordon_secret *secrets, size_t count, uint64_t total);
void leaks_free(struct execution *execution);
/* Credentials, credentials.c. Step 3: those of the program; step 4: NAME=(hidden) for each, -1 when memory is short;
 * step 5: their values, from before the start until it has happened. */
bool credentials_are_configured(const struct config *config);
int credentials_choose(const struct walk_facts *facts, const struct verdict_session *session, struct grants *grants,
                       struct cordon_error *err) must_check;
int credentials_set_variables(struct arena *arena, const struct verdict *verdict, struct strings *set) must_check;
int credentials_begin(struct execution *execution, struct cordon_error *err) must_check;
/* What it shows to a proxy at this port of the machine's loopback, in the variables of its proxy. */
int credentials_deliver_proxy(struct execution *execution, const char *token, unsigned port,
                              struct cordon_error *err) must_check;
void credentials_wipe(struct execution *execution);
/* Starts the request as a job, that a thread follows to its end (api/job-thread.c). What the request names is kept as
 * long. */
int job_start(struct cordon *cordon, struct cordon_request *request, char ret_id[ID_SIZE],
              struct cordon_error *err) must_check;
/* Ends those that run here, and waits for them. */
void job_end_all(struct cordon *cordon);
void process_end_all(struct cordon *cordon);
/* The end of the walk: the finish of step 5, the result row of step 6, and the value that outlives both. If something
 * fails after the command ended, there is a result nevertheless, with the error in it. A second call returns the same
 * again and writes no row (api/result.c). */
int result_take(struct execution *execution, struct cordon_result **ret_result, struct cordon_error *err) must_check;
/* Step 6 writes before the command starts and after it ended; a refusal is recorded too. */
int audit_step_intent(struct execution *execution, struct cordon_error *err) must_check;
/* While it runs: what the result row says that is known by then. */
void audit_step_running(struct execution *execution);
/* Of a file tool, that has no run. */
int audit_step_tool_result(struct execution *execution, uint64_t bytes, struct cordon_error *err) must_check;
int audit_step_result(struct execution *execution, struct cordon_error *err) must_check;
void audit_step_denial(struct execution *execution, struct cordon_error *err);

/* The driver of this name. `auto` is the strongest that holds here, found by probing if it is not known yet; with
 * `dry`, the default driver instead (api/probe.c). */
int probe_driver(struct cordon *cordon, const char *name, bool dry, const struct driver **ret_driver,
                 struct cordon_error *err) must_check;

/* Raises the walls of this request for real around a program that does nothing, in a directory of its own; without
 * ledger and toolchains. The execution, with what held each wall, is to be freed; its request may be gone by then. */
int probe_request(struct cordon *cordon, struct cordon_request *request, struct execution **ret_execution,
                  struct cordon_error *err) must_check;

/* Reads what changed on the host since the last call; returns the version of its mounts. `again`: in the same walk
 * (api/handle.c). */
uint64_t handle_mounts(struct cordon *cordon, bool again);
/* Refuses a handle that was opened before fork(), by another process. */
int handle_check(const struct cordon *cordon, struct cordon_error *err) must_check;
int walk_new(struct cordon *cordon, const struct cordon_request *request, bool dry, struct execution **ret_execution,
             struct cordon_error *err) must_check;
/* The walk, from where it is to the stage `until`. A refusal is recorded where the command was to start. Until
 * WALK_ENDED, waits for the end of the command. A probe leaves no row. */
int walk(struct execution *execution, enum walk_stage until, struct cordon_error *err) must_check;
/* The whole walk of a file tool: steps 1 to 3, tool->judge, the intent row, tool->act, the result row. The request has
 * no command; its other settings mean what they mean for one. A refusal is recorded, and so is a failure of `act`. */
int walk_tool(struct cordon *cordon, const struct cordon_request *request, const struct walk_tool *tool,
              struct cordon_error *err) must_check;
/* The error of something that failed after the command ran. Returns -1. */
int walk_fail_after_run(const struct execution *execution, enum cordon_step step, struct cordon_error *err);
void walk_free(struct execution *execution);

/* The walk: six steps, always in this order. One field per step, filled by that step, read by later ones, changed by
 * none. Each step is one file: 1-session.c … 6-audit.c. */
#pragma once
#include <stdatomic.h>

#include "audit/ledger.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/place.h"
#include "base/vigil.h"
#include "driver/driver.h"
#include "policy/capability.h"
#include "config/config.h"
#include "profile/profile.h"
#include "request.h"
#include "driver/linux/supervise.h"
#include "session/jobs.h"
#include "paths/planted/judged.h"
#include "paths/index/names.h"
#include "paths/planted/planted.h"
#include "session/registry.h"

struct config_store;
struct egress;
struct gate_question;
struct host_tools_kept;
struct host_view;
struct job;
struct json;
struct own_file;

/* The library's state: where its data is, the ledger, the configuration, whom to ask. */
struct cordon {
	struct arena arena;
	pid_t owner;                            /* the process that opened it, and the only one that may use it */
	const char *data_dir, *data_named;      /* what it is; what led there, by whatever links */
	struct ledger *ledger;
	struct config_store *config;
	struct vigil *vigil;                    /* over what of the host the following know */
	atomic_bool asked;                      /* for one command, */
	atomic_bool stays;                      /* for more than one: what is found for one is kept for the next */
	struct host_view *view;
	struct host_tools_kept *tools;
	struct names_memory *names;
	struct approver approver;
	pthread_mutex_t jobs_lock;              /* over the next: */
	struct job *jobs;                       /* that run here, and that have run (job.c) */
};

/* What the approval gate works with. */
static inline struct gate cordon_gate(const struct cordon *cordon)
{
	return (struct gate){ cordon->data_dir, cordon->ledger, &cordon->approver };
}

/* A tree in which names were looked for, before the command and again after it. */
struct looked_at {
	struct place place;
	int fd;                                 /* of the workspace, that one's own */
	bool writable;
	struct names before;
	struct planted_before planted;          /* of a writable one: what was there when the command started */
	struct judged *judged;                  /* the record of it that is shared with other commands; or NULL */
	bool unsettled;                         /* what earlier commands left there is not judged to the end */
};

/* The limit that ended a command, or one process of it; no name: none did. */
struct limit_hit {
	const char *name, *unit;
	uint64_t used, allowed;
};

/* A command's connections. */
struct egress_counts {
	uint64_t connections, bytes_in, bytes_out, denied, failed;
};

struct execution {
	struct arena arena;
	struct cordon *cordon;
	const struct cordon_request *request;
	enum cordon_step done;                  /* the last step that was taken */
	bool dry;                               /* steps 1 to 4 only: nothing is made */
	bool probe;                             /* cordon's own, to find out what holds: no configuration applies */
	uint64_t mounts;                        /* the host's, which version of them was there when it was last looked at */

	struct {
		const char *id;
		bool one_off;                       /* no session was named: whoever makes the request grants what it asks for */
		struct session_record record;       /* of a session */
		int use_fd;                         /* locked while its command runs, so that it is not removed; or -1 */
		struct session_look look;           /* at what it has become meanwhile */
		const struct config *config;        /* the policy in force for this command */
		const char *note;                   /* what is wrong with a file of the configuration, said once; or NULL */
		const struct driver *driver;
		enum view view;
		struct place workspace;
		int workspace_fd;
		const char *here;                   /* where in it the caller stands, if it was found from there; or NULL */
		struct place git_common;            /* the repository of a linked worktree or submodule; no path: none */
		bool own_workspace;                 /* of cordon's own making: but for this session nobody has anything there */
		bool disposable;                    /* it was made for this one command */
		const char *home, *home_source;     /* inside and outside; no outside: in memory */
		int home_fd;                        /* the latter; or -1 */
		const char *scratch;                /* a directory for one command, removed at its end; or NULL */
		int scratch_fd;                     /* locked while in use; or -1 */
		struct job_place *job;              /* its place, where it is a job: the request's; or NULL */
	} session;
	struct {
		const char *path;
		int fd;                             /* that of the workspace, where it is that */
	} cwd;
	struct {
		struct capability_set set;
		struct places reads, writes, devices, sockets, programs;
		struct strings own_word;            /* what of these a person granted by this very path: no mask covers it */
		struct strings env_pass;            /* what a manifest passes on besides */
		/* What rules, a manifest or a human judged; its `path` is NULL where nothing had to be, or no program is found. */
		struct place program;
		bool asked;                         /* a human was, about this very walk */
		const struct gate_question *may_ask;        /* about hosts while it runs, with all but the host; or NULL */
	} capability;
	struct {
		struct driver_facts facts;
		struct profile profile;
		struct looked_at *trees;
		size_t tree_count;
		struct strings roots;               /* these trees by all their names */
		struct places links;                /* masked names that are links, as `alias`: what they led to */
		uint64_t links_us;                  /* that following links in them took */
		struct own_file *own;               /* what of cordon's own the command might have changed; or NULL */
		struct names_place names;           /* where what is known of them is kept */
	} profile;
	struct {
		struct cgroup group;                /* holds the limits; or none */
		struct disk_watch disk;             /* holds the limit on disk space */
		bool quota;                         /* so does the filesystem */
		struct launch launch;
		struct patience patience;           /* for its program to be there */
		struct driver_held held;
		struct supervision supervision;
		bool prepared, started;
		const char *isolation[CORDON_WALL_MAX];
		bool ended;                         /* it ran, and is over; then how: */
		int exit_code, signal;              /* -1 where a signal ended it; or 0 */
		struct captured streams[3];
		struct cgroup_usage usage;
		struct limit_hit limit_hit;
		struct egress *egress;              /* the connections of a command that may reach listed hosts; or NULL */
		struct egress_counts network;       /* afterwards, what these were */
		struct cordon_denial *denials;
		size_t denial_count, denials_unlisted;
		char more_denials[64];              /* the note of the last one, where not all are listed */
	} run;
	struct {
		char id[ID_SIZE];
		bool intended;                      /* there is a row of this id, */
		struct ledger_room room, network_room;      /* for those that follow, and for its connections */
		bool concluded;                     /* its last row was written, or could not be, because: */
		struct cordon_error failed;         /* class 0: it was */
		char *isolation;                    /* as the result row will say it, once it runs; or NULL */
	} audit;
};

/* What the public header calls an execution: a walk that has come to its fifth step. */
struct cordon_execution {
	struct execution *walk;
};

int session_step(struct execution *execution, struct cordon_error *err) must_check;
/* Removes what was made for a one-off. */
void session_step_clean(struct execution *execution);
/* While its command runs: paused, it stands still; ended then, it is killed. `execution` is one of a session. */
enum supervise_wish session_wish(void *execution);
int cwd_step(struct execution *execution, struct cordon_error *err) must_check;
int capability_step(struct execution *execution, struct cordon_error *err) must_check;
int profile_step(struct execution *execution, struct cordon_error *err) must_check;
/* Of step 4, profile-names.c: the names to hide or keep in every granted tree; what the configuration keeps read-only inside writable
 * roots; with all of the host in view, the caller's home like a granted tree, and what is known to hold secrets elsewhere. */
int profile_find_names(struct execution *execution, struct profile_input *input, struct cordon_error *err) must_check;
int profile_keep_read_only(struct execution *execution, struct profile_input *input, struct cordon_error *err) must_check;
/* Of step 4, own-files.c: what of cordon's own decides about later commands stays as it is, or nothing runs. At the end, whether it did:
 * -1 when there was no memory to tell. */
int own_files_keep(struct execution *execution, struct profile_input *input, struct cordon_error *err) must_check;
int own_files_judge(struct execution *execution) must_check;
int profile_mask_whole_view(struct execution *execution, struct profile_input *input, struct cordon_error *err) must_check;
bool profile_is_writable(const struct execution *execution, const char *path);
/* Among execution->capability.own_word? */
bool profile_is_own_word(const struct execution *execution, const char *path);
/* Step 5 has a start, events in between, and a finish. */
int run_step_start(struct execution *execution, struct cordon_error *err) must_check;
int run_step_finish(struct execution *execution, struct cordon_error *err) must_check;
/* Of that, judge.c: what was left behind under protected names, in every tree. -1 when there was no memory to tell. */
int run_judge(struct execution *execution) must_check;
/* Of step 4, judge.c: opens and locks the records of the writable trees; what an earlier command left there that nobody judged is
 * judged now. Then, when the names in them are known: the record of what is there, as long as nothing else runs, and a command
 * runs from now on. At the end of everything, whether it ran or not. */
int judge_open(struct execution *execution, struct cordon_error *err) must_check;
int judge_begin(struct execution *execution, struct cordon_error *err) must_check;
void judge_free(struct execution *execution);
/* The names to hide or keep in a tree, before and after (tree-names.c). Where nothing can be covered, none is overlooked because it
 * would be: as without `masks`. */
struct names_search {
	bool masks;
	struct names_keep keep;
	uint64_t budget_us;
};
int tree_names_find(struct execution *execution, struct arena *arena, const struct looked_at *tree, const struct names_search *search,
                    struct names *ret_names, struct cordon_error *err) must_check;
/* Where they are kept. A directory that is made for one command is not looked at again. */
struct names_keep run_names_keep(struct execution *execution);
/* All texts are copied, as much of them as is of use. -1 when memory is short. */
int run_add_denial(struct execution *execution, enum cordon_wall wall, const char *what, const char *note,
                   const char *grant) must_check;
/* Removes what was made for this one command. */
void run_step_clean(struct execution *execution);
/* Of step 5, limits.c: after the driver has prepared; what holds them; whether what is required does; once the command
 * runs; what became of them. */
int limits_begin(struct execution *execution, struct cordon_error *err) must_check;
void limits_describe(struct execution *execution);
int limits_require(const struct execution *execution, struct cordon_error *err) must_check;
void limits_started(struct execution *execution);
int limits_end(struct execution *execution, struct cordon_error *err) must_check;
/* Out of memory: a session stops there until somebody has looked. */
int limits_pause(struct execution *execution, struct cordon_error *err) must_check;
/* Does a command run without it, unless it is required? */
bool limits_are_optional(enum cordon_wall wall);
/* Of step 5, egress.c and its parts, where the command may reach listed hosts: before the driver prepares; once the
 * supervision has begun; when the command has ended, what became of its connections. Freeing ends whatever there is. */
int egress_begin(struct execution *execution, struct cordon_error *err) must_check;
void egress_started(struct execution *execution);
int egress_end(struct execution *execution, struct cordon_error *err) must_check;
void egress_free(struct execution *execution);
/* What to tell of a command that failed as one does that has no network; or NULL. */
const char *egress_hint(const struct execution *execution);
/* Starts the request as a job, that a thread follows to its end (job.c). What the request names is kept as long. */
int job_start(struct cordon *cordon, struct cordon_request *request, char ret_id[ID_SIZE], struct cordon_error *err) must_check;
/* Ends those that run here, and waits for them. */
void job_end_all(struct cordon *cordon);
/* The end of the walk: the finish of step 5, the result row of step 6, and the value that outlives both. Where
 * something fails after the command ended, there is a result all the same, with the error in it. A second call gives the same
 * once more and writes no row. */
int result_take(struct execution *execution, struct cordon_result **ret_result, struct cordon_error *err) must_check;
/* Step 6 writes before the command starts and after it ended; a refusal is recorded too. */
int audit_step_intent(struct execution *execution, struct cordon_error *err) must_check;
/* While it runs: what the result row says that is known by then. */
void audit_step_running(struct execution *execution);
int audit_step_result(struct execution *execution, struct cordon_error *err) must_check;
void audit_step_denial(struct execution *execution, struct cordon_error *err);
/* Ends a row of one of the command's connections and writes it, if need be into the room that is reserved for those. */
int audit_step_network_row_end(struct json *json, struct execution *execution, struct cordon_error *err) must_check;

/* The driver of this name. `auto` is the strongest that holds here: as far as that is not known yet it is probed for, unless
 * `dry`, where the default one stands for it. */
int probe_driver(struct cordon *cordon, const char *name, bool dry, const struct driver **ret_driver,
                 struct cordon_error *err) must_check;

/* Raises the walls of this request for real around a program that does nothing, in a directory of its own; without ledger
 * and toolchains. The execution, with what held each wall, is to be freed; its request may be gone by then. */
#define PROBE_PROGRAM "/bin/true"
int probe_request(struct cordon *cordon, struct cordon_request *request, struct execution **ret_execution,
                  struct cordon_error *err) must_check;

/* Takes in what the vigil is told, and which version of the mounts this is. `again`: in the same walk. */
uint64_t execute_hear(struct cordon *cordon, bool again);
/* Refuses a handle that another process opened, of which this one is a copy. */
int execute_owned(const struct cordon *cordon, struct cordon_error *err) must_check;
/* The beginning of a walk, before its first step. */
int execute_new(struct cordon *cordon, const struct cordon_request *request, bool dry, struct execution **ret_execution,
                struct cordon_error *err) must_check;
/* The walk without the ledger, for probes: runs `request` with nothing recorded. */
int execute_unrecorded(struct cordon *cordon, const struct cordon_request *request, struct execution **ret_execution,
                       struct cordon_error *err) must_check;
void execute_free(struct execution *execution);

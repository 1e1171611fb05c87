/* The approval gate: one question to a human, one answer, bound to exactly what was shown. Serves capability
 * escalation, tool policy and connections that wait (egress.c) alike. From any thread. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "cordon-internal.h"
#include "policy/capability.h"
#include "config/config.h"

struct ledger;

/* The process or callback that answers questions. */
struct approver {
	cordon_approver_fn fn;                  /* or NULL */
	void *arg;
	int interrupt_fd;                       /* readable: stop waiting for an answer; or -1 */
	int pid;                                /* of the approver's process; 0: this process */
	bool is_client;                         /* it asks through a client: only where the configuration lets it */
};

/* Its callback, where that counts; or NULL. */
cordon_approver_fn approver_fn(const struct approver *approver, const struct config *config);

/* What the gate works with: cordon's data, the ledger, and the approver of the library's caller. All borrowed. */
struct gate {
	const char *data_dir;
	struct ledger *ledger;
	const struct approver *approver;
};

struct gate_question {
	const char *session_id;                 /* of a command without a session: its audit id */
	const char *audit_id;                   /* of the command that waits */
	const char *tool;                       /* "run" */
	const struct strings *argv;
	const char *program, *cwd;              /* resolved */
	struct strings env, env_pass;           /* what the request sets, and passes on, besides the configuration */
	const struct capability_set *excess;    /* what goes beyond; may be empty where a rule asks */
	const struct capability_set *ceiling;   /* what needs no approval, for comparison; or NULL */
	const char *excess_name, *excess_subject;       /* the first part that does, for the error */
	const char *rule;                       /* why a rule asks, with its place; or NULL */
	bool for_session;                       /* an approval for once is none: nothing runs that could use it */
	const struct approver *approver;        /* instead of the gate's; or NULL */
	int ended_fd;                           /* readable: what was asked for is no longer wanted; or -1 */
};

struct gate_answer {
	enum cordon_answer answer;              /* approved, once or for the session */
	char card[ID_SIZE];
};

/* All approvers are asked at once, and the first answer counts: the library's callback, and answers through the queue
 * (approval/approvals.h). No approver is available if there is no callback and the configuration does not enable the
 * queue.
 *
 * Success is an approval; the paths named in `excess` are then still the files they were when the question was shown.
 * `capability_denied`: denied by a human, denied earlier, or no approver is available. `approval_timeout`: no answer
 * in time, or interrupted. If a third denial paused the session, the error says so. Writes the `approval` row before
 * it returns. A denial is remembered for the session, a timeout is not. `excess` and `argv` are borrowed. */
int gate_ask(const struct gate *gate, struct arena *arena, const struct config *config,
             const struct gate_question *question, struct gate_answer *ret_answer, struct cordon_error *err) must_check;

/* Settles what askers that died left behind: an answer that was given for the session is applied, one for once is void,
 * and either way the ledger says so. Costs little where there is nothing; comes before a session's record is read. */
void gate_sweep(const struct gate *gate);

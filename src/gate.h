/* The approval gate: one question to a human, one answer, bound to exactly what was shown. Serves capability escalation
 * and tool policy alike. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "cordon.h"
#include "policy/capability.h"
#include "policy/config.h"

struct gate_question {
	const char *session_id;
	const char *audit_id;                   /* of the command that waits */
	const char *tool;                       /* "run" */
	const struct strings *argv;
	const char *program, *cwd;              /* resolved */
	const struct capability_set *excess;    /* what goes beyond; may be empty where a rule asks */
	const char *excess_name, *excess_subject;       /* the first part that does, for the error */
	const char *rule;                       /* why a rule asks, with its place; or NULL */
};

struct gate_answer {
	enum cordon_answer answer;              /* approved, once or for the session */
	char card[ID_SIZE];
};

/* Success is an approval. Denied, by a human, by memory, or because nobody can be asked: `capability_denied`; no answer in
 * time: `approval_timeout`; that a third denial paused the session is said in the error. Writes the `approval` row before it
 * returns. A denial is remembered for the session, a timeout is not. `excess` and `argv` are borrowed. */
int gate_ask(struct cordon *cordon, struct arena *arena, const struct config *config,
             const struct gate_question *question, struct gate_answer *ret_answer, struct cordon_error *err) must_check;

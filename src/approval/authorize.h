/* May this request have what it asks for? Within the session's baseline, else within an earlier grant, else a human is
 * asked; and what the tool rules say about the program. Part of step 3. */
#pragma once
#include "approval/gate.h"
#include "approval/grants.h"
#include "base/cleanup.h"

struct session_record;

/* Plain facts about the request, all borrowed. */
struct authorize_facts {
	struct arena *arena;
	bool dry;                               /* nothing runs: no human is asked, and the answer counts as yes */
	bool one_off;                           /* no session: the caller of the request grants what it requests */
	const struct session_record *record;    /* of the session; empty for a one-off */
	const struct config *config;
	const struct place *workspace;
	const struct capability_set *requested; /* what the request itself asks for */
	bool holds_writes;                      /* the driver keeps programs from writing outside their grants */
	/* The part of a question that does not depend on what is asked: session_id, audit_id, tool, argv, cwd, env,
	 * approver, ended_fd. */
	struct gate_question about;
	const char *file;                       /* a file tool: the path it was called with, which judges the rules
	                                           itself; NULL: a command */
	char *const *environment;               /* the caller's */
	const struct strings *pass_env;         /* variables that the request passes on */
};

/* What remains to be done. */
struct authorization {
	bool ask;                               /* a human has to approve `question` */
	struct gate_question question;
	struct capability_set excess;           /* what goes beyond the baseline and every grant */
};

/* Decides without an approver: 0, or -1 if a rule denies. `baseline` needs no approval; the places of `grants` are
 * resolved. */
int authorize_decide(const struct authorize_facts *facts, struct grants *grants, const struct capability_set *baseline,
                     struct authorization *ret, struct cordon_error *err) must_check;
/* Decides, and asks if need be, one question at most: *ret_asked, which a dry walk sets without asking. Then notes in
 * grants->by_name what was granted by its very path. */
int authorize(const struct authorize_facts *facts, const struct gate *gate, struct grants *grants,
              const struct capability_set *baseline, bool *ret_asked, struct cordon_error *err) must_check;

/* facts->about with the program and the variables that are passed on. The strings are borrowed. */
int authorize_question(const struct authorize_facts *facts, struct grants *grants, struct gate_question *ret_question,
                       struct cordon_error *err) must_check;
/* The file that the command's first word means, by the PATH it will have; *ret_found: there is one. Kept as
 * grants->program: what was judged is what starts. */
int authorize_program(const struct authorize_facts *facts, struct grants *grants, bool *ret_found,
                      struct cordon_error *err) must_check;

/* by-name.c: paths that a rule about names means. A protected name is never granted for writing. What is hidden by its
 * name must be granted by it: by_name_excess() adds to `excess` the requested paths that were not, by_name_note()
 * collects those that were, now that `excess` is granted too. */
int by_name_refuse_protected(const struct authorize_facts *facts, struct grants *grants,
                             struct cordon_error *err) must_check;
int by_name_excess(const struct authorize_facts *facts, struct grants *grants, const struct capability_set *baseline,
                   struct capability_set *excess, struct cordon_error *err) must_check;
int by_name_note(const struct authorize_facts *facts, struct grants *grants, const struct capability_set *excess,
                 struct cordon_error *err) must_check;

/* May this command have what it asks for? Within the session's baseline, else within an earlier grant, else a human is
 * asked; and what the tool policy says about the program. Part of step 3. */
#pragma once
#include "execute.h"
#include "approval/gate.h"

/* `baseline`: what is had without asking. The places of execution->capability are resolved. One question at most. */
int permit(struct execution *execution, const struct capability_set *baseline, struct cordon_error *err) must_check;

/* Of that, granted.c. A protected name is not granted to be written. Adds to `excess` what of the paths that are asked for is hidden by its
 * name, and must be granted by it. Keeps in execution->capability.own_word what was, now that `excess` is granted too. */
int granted_refuse_protected(struct execution *execution, struct cordon_error *err) must_check;
int granted_ask_hidden(struct execution *execution, const struct capability_set *baseline, struct capability_set *excess,
                       struct cordon_error *err) must_check;
int granted_note(struct execution *execution, const struct capability_set *excess, struct cordon_error *err) must_check;

/* Who is asked: the request's own approver, or the cordon's. */
const struct approver *permit_approver(const struct execution *execution);

/* What people are told of the command, whatever they are asked about it. The strings are borrowed from the execution. */
int permit_question(struct execution *execution, struct gate_question *ret_question, struct cordon_error *err) must_check;

/* The file that the command's first word means, by the PATH it will have; *ret_found: there is one. Kept as
 * execution->capability.program: what was judged is what starts. */
int permit_program(struct execution *execution, bool *ret_found, struct cordon_error *err) must_check;

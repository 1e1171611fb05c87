/* May this command have what it asks for? Within the session's baseline, else within an earlier grant, else a human is
 * asked; and what the tool policy says about the program. Part of step 3. */
#pragma once
#include "execute.h"

/* `baseline`: what is had without asking. The places of execution->capability are resolved. One question at most. */
int permit(struct execution *execution, const struct capability_set *baseline, struct cordon_error *err) must_check;

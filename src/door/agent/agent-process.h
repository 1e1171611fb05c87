/* Which process is the agent: where it was started is its workspace, and where it has no id for its conversation, it
 * is one. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"
#include "door/agent/agent.h"

struct agent_process {
	const char *cwd;                /* where it is now; agents do not change it */
	const char *id;                 /* its number and start time */
};

/* The nearest of the processes that this one descends from which has not the agent's mark in its environment: all that
 * an agent starts has it. A number that the agent itself sets is taken where it is one of these processes. */
int agent_process(struct arena *arena, enum agent_id agent, struct agent_process *ret_process, struct cordon_error *err)
	must_check;

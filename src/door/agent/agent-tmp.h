/* The directory in which an agent and its commands exchange temporary files: Claude Code's scripts write there where
 * they ended up.
 *
 * The agent's own lies beneath the user's cache and is one for all its conversations, since its settings can name but
 * one. No command writes to it: at its path each session has a directory in its own home. When a command has ended, the
 * files of the kind that the agent waits for (agents.def) are copied out, as paths and nothing else, never over a file
 * that is there. What the agent keeps for this conversation is shown, read-only. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"
#include "door/agent/agent.h"

struct agent_tmp {
	const char *outside;            /* the agent's; NULL: nothing is exchanged */
	const char *home, *beneath;     /* the session's home on this machine; the directory in it, ending in / */
	const char *files;              /* a glob of names */
};

/* The agent's, if its environment says that it uses this very directory: the variable could name any other. NULL: it
 * does not. */
const char *agent_tmp_named(struct arena *arena, enum agent_id agent);
/* Has a session a home of its own at the path of the user's? Not where the driver mounts nothing. */
bool agent_tmp_is_private(struct cordon *cordon);
/* Where it has none, commands write to the agent's own directory. The part of it that the agent alone writes to, made
 * where it is missing, if it can be kept from them; *ret_path stays as it is: there is none, or it cannot. */
int agent_tmp_kept(struct arena *arena, struct cordon *cordon, enum agent_id agent, const char **ret_path,
                   struct cordon_error *err) must_check;
/* What of the agent's is this conversation's, made where it is missing; *ret_path stays as it is: nothing. `started`:
 * where the agent was. */
int agent_tmp_shown(struct arena *arena, enum agent_id agent, const char *id, const char *started,
                    const char **ret_path, struct cordon_error *err) must_check;
/* Before a command of the session, and after it. */
int agent_tmp_begin(struct arena *arena, struct cordon *cordon, enum agent_id agent, const char *session,
                    struct agent_tmp *ret_tmp, struct cordon_error *err) must_check;
void agent_tmp_end(const struct agent_tmp *tmp);

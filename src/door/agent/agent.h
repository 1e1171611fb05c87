/* The session of an agent's conversation. An agent that calls cordon as its shell, by a hook or by a protocol of its
 * own says who it is by its environment or by the protocol; none of it comes from the model, whose commands run inside
 * and cannot change the environment of the agent's other commands.
 *
 * The session's id is made of the agent's name, the workspace, the id that the agent gives its conversation (or the
 * number and start time of its process), and of what the session is granted: AGENT_PREFIX, name, and a hash of all
 * these. So an agent comes to a session that this door made for this very workspace, or makes one; it cannot be told
 * to join another. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"
#include "door/agent/profile.h"

#define AGENT_PREFIX                                                                                                   \
	CORDON_AGENT_PREFIX /* of the ids of agents' sessions; nothing but a door makes one that begins so */

enum agent_id {
#define AGENT(id, ...) AGENT_##id,
#include "door/agent/agents.def"
#undef AGENT
	AGENT_MAX
};

struct agent {
	const char *name, *mark, *id_variable, *pid_variable, *tmp_variable, *tmp_files;
	const char *read_beneath_home, *pass_variables; /* separated by spaces */
	const char *tried;              /* a version; or NULL */
};

extern const struct agent agents[AGENT_MAX];

/* The agent of this name, or AGENT_MAX. */
enum agent_id agent_named(const char *name);
/* The agent that set the marks of this environment; AGENT_OTHER: none that is known. */
enum agent_id agent_here(void);

/* Of a session, as cordon_request_set() has it. */
struct agent_setting {
	const char *key, *value;
};

/* The agent. Texts may be NULL: then they are taken from the environment or from the agent's process. */
struct agent_caller {
	enum agent_id agent;
	const struct agent_profile *profile;    /* what its own file says of limits and protected names; or NULL */
	const char *whole;              /* the agent itself runs in the session; this is its profile's name. Or NULL */
	const struct agent_setting *settings;   /* of a whole agent: what it may reach, and its own limits */
	size_t setting_count;
	const char *id;                 /* of the conversation */
	const char *workspace;
	const char *config;             /* a file instead of the system's and the user's */
};

/* The names in a project that its sessions keep as they are: the usual ones, without what the profile takes out with an
 * exclamation mark, and what it adds. `profile` may be NULL. */
int agent_protected(struct arena *arena, const struct agent_profile *profile, struct strings *ret_names,
                    struct cordon_error *err) must_check;

/* Makes or finds the caller's session. The id is the arena's. */
int agent_session(struct arena *arena, struct cordon *cordon, const struct agent_caller *caller, const char **ret_id,
                  struct cordon_error *err) must_check;

/* The git working tree that the directory lies in, as far as it is the same user's and not a home; else itself. */
const char *agent_workspace(struct arena *arena, const char *directory);

/* A directory of the agent's own for temporary files that it and its commands both reach; NULL: it has none, or there
 * is no home. Beneath the cache directory of the user; made when a session is. */
const char *agent_tmp(struct arena *arena, enum agent_id agent);
/* Makes it, with mode 0700. */
int agent_tmp_make(const char *path, struct cordon_error *err) must_check;

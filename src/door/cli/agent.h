/* What `cordon agent` prints, and what that needs of it. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"
#include "door/agent/profile.h"

/* A profile, with where it is from and what this machine has of it. */
struct agent_found {
	const char *name;
	struct agent_profile_source source;
	struct agent_profile profile;
	const char *program;            /* NULL: it is not there */
};

/* Where the profiles that ship are, beside the program; NULL: it is not known. The arena's. */
const char *agent_profile_share(struct arena *arena);
/* The profile of this name, which is in `found`. */
int agent_profile_read(struct arena *arena, struct agent_found *found, struct cordon_error *err) must_check;
/* What the profile of this name says, for commands that an agent has run; NULL: there is none. The arena's. */
int agent_profile_of(struct arena *arena, const char *name, const struct agent_profile **ret_profile,
                     struct cordon_error *err) must_check;
int agent_find(struct arena *arena, const char *name, struct agent_found *ret_found,
               struct cordon_error *err) must_check;
int agent_list(struct arena *arena, bool json, struct cordon_error *err) must_check;
int agent_show(struct arena *arena, const char *name, bool json, struct cordon_error *err) must_check;

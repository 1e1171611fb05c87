/* An agent's profile by its name, for every command that keeps to one: see agent.h. */
#include "base/error.h"
#include "door/cli/agent.h"
#include "door/cli/self.h"

const char *agent_profile_share(struct arena *arena)
{
	const char *directory = NULL;
	struct cordon_error err;
	return self_beneath_prefix(arena, "share/cordon/agents", &directory, &err) < 0 ? NULL : directory;
}

int agent_profile_read(struct arena *arena, struct agent_found *found, struct cordon_error *err)
{
	if (agent_profile_find(arena, found->name, agent_profile_share(arena), &found->source, err) < 0)
		return -1;
	const char *file = found->source.file ? found->source.file : arena_printf(arena, "%s.toml", found->name);
	return file ? agent_profile_parse(arena, file, found->source.text, found->source.length, &found->profile, err)
	            : fail_oom(err);
}

int agent_profile_of(struct arena *arena, const char *name, const struct agent_profile **ret_profile,
                     struct cordon_error *err)
{
	struct agent_found *found = arena_alloc(arena, sizeof(*found));
	struct cordon_error why;
	if (!found)
		return fail_oom(err);
	found->name = name;
	if (agent_profile_read(arena, found, &why) == 0) {
		*ret_profile = &found->profile;
		return 0;
	}
	if (why.class != CORDON_E_NOT_FOUND) {
		*err = why;
		return -1;
	}
	*ret_profile = NULL;
	return 0;
}

/* The table of agents, and how to find one in it. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "door/agent/agent.h"

const struct agent agents[AGENT_MAX] = {
#define AGENT(id, ...) [AGENT_##id] = { __VA_ARGS__ },
#include "door/agent/agents.def"
#undef AGENT
};

static const char *const project_names[] = {
#define PROJECT_NAME(name) name,
#include "door/agent/projects.def"
#undef PROJECT_NAME
};

int agent_protected(struct arena *arena, const struct agent_profile *profile, struct strings *ret_names,
                    struct cordon_error *err)
{
	static const struct strings none;
	const struct strings *own = profile ? &profile->protect : &none;
	struct strings names = { 0 };
	bool failed = false;
	for (size_t i = 0; i < ARRAY_SIZE(project_names); i++) {
		bool lifted = false;
		for (size_t j = 0; j < own->count; j++)
			lifted |= own->items[j][0] == '!' && !strcmp(own->items[j] + 1, project_names[i]);
		failed |= !lifted && strings_add(arena, &names, project_names[i]) < 0;
	}
	for (size_t i = 0; i < own->count; i++)
		failed |= own->items[i][0] != '!' && strings_find(&names, own->items[i]) < 0 &&
		          strings_add(arena, &names, own->items[i]) < 0;
	if (failed)
		return fail_oom(err);
	*ret_names = names;
	return 0;
}

enum agent_id agent_named(const char *name)
{
	enum agent_id id = 0;
	while (id < AGENT_MAX && strcmp(agents[id].name, name) != 0)
		id++;
	return id;
}

enum agent_id agent_here(void)
{
	enum agent_id id = 0;
	while (id < AGENT_OTHER && !getenv(agents[id].mark))
		id++;
	return id;
}

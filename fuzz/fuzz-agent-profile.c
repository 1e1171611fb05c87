/* Any bytes as an agent's profile: read, with paths that cannot leave the home, or refused at a place in the file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "door/agent/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_name(struct arena *arena, const char *name)
{
	must(*name && *name != '/' && path_is_normal(arena_printf(arena, "/%s", name)));
}

static void check(struct arena *arena, const struct agent_profile *profile)
{
	must(profile->title && profile->program && *profile->program);
	for (size_t i = 0; i < profile->copy.count; i++)
		check_name(arena, profile->copy.items[i]);
	for (size_t i = 0; i < profile->part_count; i++)
		check_name(arena, profile->parts[i].name);
	for (size_t i = 0; i < profile->login_count; i++)
		check_name(arena, profile->logins[i].name);
	for (size_t i = 0; i < profile->limit_count; i++)
		must(*profile->limits[i].name && profile->limits[i].value && !strchr(profile->limits[i].name, '_'));
	for (size_t i = 0; i < profile->set_count; i++)
		must(profile->set[i].name && profile->set[i].value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct cordon_error err = { 0 };
	struct agent_profile profile;
	unsigned line, column;
	if (agent_profile_parse(&arena, "FILE", (const char *)data, size, &profile, &err) == 0) {
		check(&arena, &profile);
	} else {
		must(err.class == CORDON_E_CONFIG_INVALID && *err.reason);
		must(sscanf(err.subject, "FILE:%u:%u", &line, &column) == 2 && line && column);
	}
	arena_free(&arena);
	return 0;
}

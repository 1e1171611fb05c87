/* See groups.h. */
#include "config/groups.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "host/registries.h"

#define EVERY_TOOL "packages"

static const struct {
	const char *name, *help, *hosts;
} shipped[] = {
#define NETWORK_GROUP(...) { __VA_ARGS__ },
#include "config/groups.def"
};

static int add_once(struct arena *arena, struct strings *list, const char *item)
{
	return item && strings_find(list, item) >= 0 ? 0 : strings_add(arena, list, item);
}

static int add_words(struct arena *arena, struct strings *list, const char *words)
{
	for (const char *at = words; *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");
		if (add_once(arena, list, arena_strndup(arena, at, length)) < 0)
			return -1;
		at += length;
	}
	return 0;
}

int groups_names(const struct group_facts *facts, struct strings *ret_names)
{
	const struct strings *own = &facts->config->network.groups;
	struct strings names = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(shipped); i++)
		if (add_once(facts->arena, &names, shipped[i].name) < 0)
			return -1;
	for (size_t i = 0; i < registry_row_count; i++)
		if (add_once(facts->arena, &names, registry_rows[i].tool) < 0)
			return -1;
	if (add_once(facts->arena, &names, EVERY_TOOL) < 0)
		return -1;
	for (size_t i = 0; i < own->count; i++)
		if (add_once(facts->arena, &names,
		             arena_strndup(facts->arena, own->items[i], strcspn(own->items[i], "="))) < 0)
			return -1;
	*ret_names = names;
	return 0;
}

/* "NAME=HOST:PORT" */
static int add_own(const struct group_facts *facts, struct group *group)
{
	const struct strings *own = &facts->config->network.groups;
	size_t length = strlen(group->name);
	for (size_t i = 0; i < own->count; i++)
		if (!strncmp(own->items[i], group->name, length) && own->items[i][length] == '=' &&
		    add_once(facts->arena, &group->hosts, own->items[i] + length + 1) < 0)
			return -1;
	return 0;
}

static int add_tools(const struct group_facts *facts, struct group *group)
{
	bool every = !strcmp(group->name, EVERY_TOOL);
	for (size_t i = 0; i < registry_row_count; i++) {
		struct strings hosts, sources;
		if (!every && strcmp(group->name, registry_rows[i].tool) != 0)
			continue;
		if (registries_find(facts->arena, &registry_rows[i], facts->home, facts->environment, &hosts,
		                    &sources) < 0)
			return -1;
		for (size_t j = 0; j < hosts.count; j++)
			if (add_once(facts->arena, &group->hosts, hosts.items[j]) < 0)
				return -1;
		for (size_t j = 0; j < sources.count; j++)
			if (add_once(facts->arena, &group->sources, sources.items[j]) < 0)
				return -1;
		group->is_tool = true;
		group->help = every ? "the registries of all package managers on this machine"
		                    : "its registries, as it is configured on this machine";
	}
	return 0;
}

static int refuse_unknown(const struct group_facts *facts, const char *name, struct cordon_error *err)
{
	struct strings names;
	if (groups_names(facts, &names) < 0)
		return fail_oom(err);
	const char *nearest = text_nearest(name, names.items, names.count);
	fail(err, CORDON_E_INVALID_REQUEST, 0, name,
	     "net: there is no group of hosts of this name, and a host is written with its port");
	fail_boundary(err, "request");
	return nearest ? fail_remedy(err, "did you mean %s? cordon net list shows all; or write HOST:PORT", nearest)
	               : fail_remedy(err, "write HOST:PORT, such as %s:443; cordon net list shows the groups", name);
}

int groups_find(const struct group_facts *facts, const char *name, struct group *ret_group, struct cordon_error *err)
{
	struct group group = { .name = name, .help = "" };
	bool is_shipped = false;
	for (size_t i = 0; i < ARRAY_SIZE(shipped); i++) {
		if (strcmp(shipped[i].name, name) != 0)
			continue;
		is_shipped = true;
		group.help = shipped[i].help;
		if (add_words(facts->arena, &group.hosts, shipped[i].hosts) < 0)
			return fail_oom(err);
	}
	if (add_own(facts, &group) < 0 || add_tools(facts, &group) < 0)
		return fail_oom(err);
	if (!is_shipped && !group.is_tool && !group.hosts.count)
		return refuse_unknown(facts, name, err);
	*ret_group = group;
	return 0;
}

int groups_expand(const struct group_facts *facts, const struct strings *names, struct strings *hosts,
                  struct cordon_error *err)
{
	for (size_t i = 0; i < names->count; i++) {
		struct group group;
		if (groups_find(facts, names->items[i], &group, err) < 0)
			return -1;
		if (!group.hosts.count) {
			fail(err, CORDON_E_INVALID_REQUEST, 0, group.name,
			     "net: the group is empty: no configuration of %s on this machine "
			     "names a registry",
			     strcmp(group.name, EVERY_TOOL) != 0 ? group.name : "a package manager");
			fail_boundary(err, "request");
			return fail_remedy(
				err,
				"name the registry with --net HOST:443, or in network.groups.%s of the configuration",
				group.name);
		}
		for (size_t j = 0; j < group.hosts.count; j++)
			if (add_once(facts->arena, hosts, group.hosts.items[j]) < 0)
				return fail_oom(err);
	}
	return 0;
}

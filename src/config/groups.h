/* Groups of hosts, by the names that --net takes: what ships with cordon (groups.def), what network.groups of the
 * configuration adds, and what package managers are configured for (host/registries.h). */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"

struct config;
struct cordon_error;

/* Whose configuration counts. Borrowed. */
struct group_facts {
	struct arena *arena;
	const struct config *config;
	const char *home;               /* or NULL */
	char *const *environment;
};

struct group {
	const char *name, *help;        /* help "" of one that only the configuration has */
	struct strings hosts;
	struct strings sources;         /* of a package manager's: the files and variables that say so */
	bool is_tool;
};

/* The names of all, in the order in which they are shown. -1 when memory is short. */
int groups_names(const struct group_facts *facts, struct strings *ret_names) must_check;
/* `not_found` where there is no such group. */
int groups_find(const struct group_facts *facts, const char *name, struct group *ret_group,
                struct cordon_error *err) must_check;
/* Adds the hosts of these groups, each once. Refuses a group that has none. */
int groups_expand(const struct group_facts *facts, const struct strings *names, struct strings *hosts,
                  struct cordon_error *err) must_check;

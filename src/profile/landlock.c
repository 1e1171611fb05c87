/* The Landlock rules. Behind a private root they are the second layer: everything visible may be read, what was granted
 * writable may be changed. Without one they are the filesystem wall itself, so every readable path is named. Landlock
 * cannot take away beneath what it gave: masks and protected names are held by mounts alone. */
#include <string.h>

#include "base/cleanup.h"
#include "profile/profile.h"

static int add_kind(struct arena *arena, struct landlock_plan *plan, const char *path, unsigned access, bool is_file)
{
	if (plan->count == plan->capacity) {
		size_t capacity = plan->capacity ? plan->capacity * 2 : 32;
		struct landlock_rule *rules = arena_alloc(arena, capacity * sizeof(*rules));
		if (!rules)
			return -1;
		if (plan->count)
			memcpy(rules, plan->rules, plan->count * sizeof(*rules));
		plan->rules = rules;
		plan->capacity = capacity;
	}
	plan->rules[plan->count++] = (struct landlock_rule){ path, access, is_file };
	return 0;
}

static int add(struct arena *arena, struct landlock_plan *plan, const char *path, unsigned access)
{
	return add_kind(arena, plan, path, access, false);
}

static int add_places(struct arena *arena, struct landlock_plan *plan, const struct places *places, unsigned access)
{
	for (size_t i = 0; i < places->count; i++)
		if (add_kind(arena, plan, places->items[i].path, access, !places->items[i].is_directory) < 0)
			return -1;
	return 0;
}

static int add_entries(struct arena *arena, struct landlock_plan *plan, const struct host_entries *entries,
                       unsigned access)
{
	for (size_t i = 0; i < entries->count; i++) {
		const struct host_entry *entry = &entries->items[i];
		if (entry->kind != HOST_LINK && entry->kind != HOST_PARTS &&
		    add_kind(arena, plan, entry->source, access, entry->kind == HOST_FILE) < 0)
			return -1;
	}
	return 0;
}

/* What may be read where nothing is hidden. */
static int add_readable(struct arena *arena, const struct profile_input *input, struct landlock_plan *plan,
                        unsigned see)
{
	static const char *const nodes[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
	                                     "/dev/tty" };
	/* The host's own, which every user can read; git gives up where it may not read its configuration. */
	static const char *const accounts[] = { "/etc/passwd", "/etc/group", "/etc/gitconfig" };
	if (input->view == VIEW_HOST_READONLY && add(arena, plan, "/", see) < 0)
		return -1;
	if ((input->view == VIEW_SYSTEM && add_entries(arena, plan, &input->host, see) < 0) ||
	    add_entries(arena, plan, &input->shown, see) < 0 || add_places(arena, plan, &input->reads, see) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		if (add_kind(arena, plan, nodes[i], LANDLOCK_USE, true) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_SIZE(accounts); i++)
		if (add_kind(arena, plan, accounts[i], LANDLOCK_SEE | LANDLOCK_IF_PUBLIC, true) < 0)
			return -1;
	/* Not to be written: a root caller's command is root, and the kernel's settings ask for nothing more. */
	return add(arena, plan, "/proc", LANDLOCK_SEE);
}

static int add_writable(struct arena *arena, const struct profile_input *input, struct landlock_plan *plan,
                        unsigned change)
{
	if (add(arena, plan, input->workspace.path, change) < 0 || add_places(arena, plan, &input->writes, change) < 0)
		return -1;
	if (!input->abilities.private_root && input->home_source && add(arena, plan, input->home_source, change) < 0)
		return -1;
	if (!input->abilities.private_root)
		return input->scratch ? add(arena, plan, input->scratch, change) : 0;
	/* Where /var/tmp is a link to /tmp, so is the rule. */
	return add(arena, plan, "/tmp", change) < 0 || add(arena, plan, "/var/tmp", change) < 0 ||
	       add(arena, plan, "/run", change) < 0 || add(arena, plan, "/dev/shm", change) < 0 ||
	       add(arena, plan, input->home, change) < 0 ? -1 : 0;
}

int profile_make_landlock(struct arena *arena, const struct profile_input *input, struct landlock_plan *ret_plan)
{
	struct landlock_plan plan = { 0 };
	bool listed = input->capabilities->programs.count > 0;
	unsigned start = listed ? 0 : LANDLOCK_START;
	unsigned see = LANDLOCK_SEE | start, change = see | LANDLOCK_CHANGE;
	if (input->abilities.private_root) {
		if (add(arena, &plan, "/", see) < 0 || add(arena, &plan, "/dev", LANDLOCK_USE) < 0 ||
		    add(arena, &plan, "/proc", LANDLOCK_USE) < 0)
			return -1;
	} else if (add_readable(arena, input, &plan, see) < 0) {
		return -1;
	}
	if (add_places(arena, &plan, &input->devices, LANDLOCK_SEE | LANDLOCK_USE) < 0 ||
	    add_writable(arena, input, &plan, change) < 0)
		return -1;
	if (listed && (add_places(arena, &plan, &input->programs, see | LANDLOCK_START) < 0 ||
	               add_places(arena, &plan, &input->interpreters, see | LANDLOCK_START) < 0))
		return -1;
	*ret_plan = plan;
	return 0;
}

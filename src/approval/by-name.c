/* Part of step 3: granted paths whose names a rule masks or protects.
 *
 * A masked name is shown only if a person granted exactly this path. A grant of a directory above it does not show it,
 * nor does the configuration (a project's file can be written by commands) or a manifest (which speaks for its tool).
 * In a session, the person must have created the session with this path or approved it; approval is asked for even if
 * a directory above it needs none. A path that was reached through a symbolic link which the command can write was
 * chosen by the link, so it does not count as granted by name.
 *
 * A protected name is never granted for writing: the command would write a file that runs later, outside. */
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "approval/authorize.h"
#include "session/beneath.h"
#include "session/registry.h"
#include "paths/index/globs.h"

/* The granted paths of one kind: as they were written, and what they are. */
struct granted {
	const struct strings *names;
	const struct places *places;
	bool writable;
};

static struct granted granted_reads(const struct grants *grants)
{
	return (struct granted){ &grants->set.fs_read, &grants->reads, false };
}

static struct granted granted_writes(const struct grants *grants)
{
	return (struct granted){ &grants->set.fs_write, &grants->writes, true };
}

/* ---- protected -------------------------------------------------------------------------------------------------- */

static int refuse_protected(const char *path, struct cordon_error *err)
{
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "a protected name cannot be granted to be written");
	fail_boundary(err, "protected_names");
	return fail_remedy(err,
	                   "write it yourself, or grant it to be read; which names these are: capabilities.protect");
}

int by_name_refuse_protected(const struct authorize_facts *facts, struct grants *grants, struct cordon_error *err)
{
	const struct capability_set *set = &grants->set;
	const struct places *writes = &grants->writes;
	const struct name_rules rules = { NULL, &set->protect, &set->exempt };
	struct names_globs globs;
	if (writes->count && names_globs_compile(facts->arena, "/", &rules, &globs, err) < 0)
		return -1;
	for (size_t i = 0; i < writes->count; i++) {
		const struct place *place = &writes->items[i];
		if (names_globs_keep(&globs, place->path, place->is_directory) ||
		    (place->alias && names_globs_keep(&globs, place->alias, place->is_directory)))
			return refuse_protected(place->path, err);
	}
	return 0;
}

/* ---- hidden ----------------------------------------------------------------------------------------------------- */

static bool lists(const struct capability_set *set, bool writable, const char *path)
{
	return strings_find(&set->fs_write, path) >= 0 || (!writable && strings_find(&set->fs_read, path) >= 0);
}

static bool was_chosen_by_link(const struct authorize_facts *facts, struct grants *grants, const char *name,
                               const struct place *place)
{
	struct strings directories;
	if (!place->alias)
		return false;
	if (beneath_links(facts->arena, name, place->path, &directories) < 0)
		return true;
	for (size_t i = 0; i < directories.count; i++)
		if (place_is_within(directories.items[i], facts->workspace, &grants->writes))
			return true;
	return false;
}

static bool is_approved(const struct session_grant *grant, bool writable, const struct place *place)
{
	for (size_t i = 0; i < grant->places.count; i++) {
		const struct place *was = &grant->places.items[i];
		if (!strcmp(was->path, place->path) && was->device == place->device && was->inode == place->inode)
			return lists(&grant->set, writable, place->path);
	}
	return false;
}

/* Did a person grant this very path? */
static bool granted_by_name(const struct authorize_facts *facts, struct grants *grants, const struct granted *granted,
                            size_t i)
{
	const struct session_record *record = facts->record;
	const struct place *place = &granted->places->items[i];
	const char *name = granted->names->items[i];
	bool one_off = facts->one_off;
	if ((one_off || record->has_baseline) &&
	    lists(one_off ? facts->requested : &record->baseline, granted->writable, name) &&
	    !was_chosen_by_link(facts, grants, name, place))
		return true;
	for (size_t j = 0; !one_off && j < record->grant_count; j++)
		if (is_approved(&record->grants[j], granted->writable, place))
			return true;
	return false;
}

static bool is_hidden(const struct authorize_facts *facts, struct grants *grants, const struct names_globs *globs,
                      const char *path)
{
	const struct places *const trees[] = { &grants->reads, &grants->writes };
	bool hidden = names_globs_hide(globs, facts->workspace->path, path);
	for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
		for (size_t j = 0; j < trees[i]->count && !hidden; j++)
			hidden = names_globs_hide(globs, trees[i]->items[j].path, path);
	return hidden;
}

/* What the baseline names is not asked for, whatever it is. */
static int add_hidden(const struct authorize_facts *facts, struct grants *grants, const struct granted *granted,
                      const struct strings *baseline, const struct names_globs *globs, struct strings *excess)
{
	for (size_t i = 0; i < granted->places->count; i++) {
		const char *path = granted->places->items[i].path;
		if (strings_find(baseline, granted->names->items[i]) < 0 && strings_find(excess, path) < 0 &&
		    is_hidden(facts, grants, globs, path) && !granted_by_name(facts, grants, granted, i) &&
		    strings_add(facts->arena, excess, path) < 0)
			return -1;
	}
	return 0;
}

int by_name_excess(const struct authorize_facts *facts, struct grants *grants, const struct capability_set *baseline,
                   struct capability_set *excess, struct cordon_error *err)
{
	const struct granted reads = granted_reads(grants), writes = granted_writes(grants);
	const struct name_rules rules = { &grants->set.deny, NULL, NULL };
	struct names_globs globs;
	if (names_globs_compile(facts->arena, "/", &rules, &globs, err) < 0)
		return -1;
	return add_hidden(facts, grants, &reads, &baseline->fs_read, &globs, &excess->fs_read) < 0 ||
	       add_hidden(facts, grants, &writes, &baseline->fs_write, &globs, &excess->fs_write) < 0
	               ? fail_oom(err) : 0;
}

/* A socket is not there to be read: it needs a grant of its own. */
static bool can_be_shown(const struct place *place)
{
	struct stat info;
	return place->is_directory || (stat(place->path, &info) == 0 && S_ISREG(info.st_mode));
}

static int note(const struct authorize_facts *facts, struct grants *grants, const struct granted *granted,
                const struct capability_set *approved)
{
	for (size_t i = 0; i < granted->places->count; i++) {
		const struct place *place = &granted->places->items[i];
		if ((granted_by_name(facts, grants, granted, i) || lists(approved, granted->writable, place->path)) &&
		    can_be_shown(place) && strings_add(facts->arena, &grants->by_name, place->path) < 0)
			return -1;
	}
	return 0;
}

int by_name_note(const struct authorize_facts *facts, struct grants *grants, const struct capability_set *excess,
                 struct cordon_error *err)
{
	const struct granted reads = granted_reads(grants), writes = granted_writes(grants);
	struct capability_set approved;
	if (!reads.places->count && !writes.places->count)
		return 0;
	/* As it was shown in the question: without paths that a directory in it covers. */
	return capability_normalise(facts->arena, excess, &approved, NULL) < 0 ||
	       note(facts, grants, &reads, &approved) < 0 ||
	       note(facts, grants, &writes, &approved) < 0 ? fail_oom(err) : 0;
}

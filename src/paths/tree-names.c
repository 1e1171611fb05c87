/* The names in a granted tree that are to be hidden or protected: those of the usual rules, and those that only the
 * project's file adds. Commands can write the latter, so they are searched for separately: whatever they cost, and
 * however many they are, no name of the usual rules is missed because of them. */
#include "base/error.h"
#include "base/text.h"
#include "paths/trees.h"

static int leave_out(struct arena *arena, const struct strings *all, const struct strings *own,
                     struct strings *ret_rest)
{
	struct strings rest = { 0 };
	for (size_t i = 0; i < all->count; i++)
		if (strings_find(own, all->items[i]) < 0 && strings_add(arena, &rest, all->items[i]) < 0)
			return -1;
	*ret_rest = rest;
	return 0;
}

/* In a directory that cordon made there are no secrets but the session's own, which its next command needs: nothing is
 * hidden there but what a project's file in it says. */
static bool has_secrets(const struct trees *trees, const struct tree *tree)
{
	return !trees->facts.own_workspace || !path_within(tree->place.path, trees->facts.workspace.path);
}

/* Each with bounds of its own. */
static int find_both(struct trees *trees, struct arena *arena, const struct tree *tree,
                     const struct names_search *search, bool hides, struct names *ret_names, struct cordon_error *err)
{
	const struct capability_set *set = trees->facts.set;
	const struct trees_facts *facts = &trees->facts;
	const char *path = tree->place.path;
	struct strings deny, protect;
	struct names usual, own;
	if (leave_out(arena, &set->deny, facts->project_deny, &deny) < 0 ||
	    leave_out(arena, &set->protect, facts->project_protect, &protect) < 0)
		return fail_oom(err);
	const struct name_rules first = { hides && has_secrets(trees, tree) ? &deny : NULL, &protect, &set->exempt };
	const struct name_rules second = { hides ? facts->project_deny : NULL, facts->project_protect, &set->exempt };
	if (names_find(arena, tree->fd, path, &first, &search->keep, search->budget_us, &usual, err) < 0 ||
	    names_find(arena, tree->fd, path, &second, &search->keep, search->budget_us, &own, err) < 0)
		return -1;
	return names_join(arena, &usual, &own, ret_names) < 0 ? fail_oom(err) : 0;
}

int tree_names_find(struct trees *trees, struct arena *arena, const struct tree *tree,
                    const struct names_search *search, struct names *ret_names, struct cordon_error *err)
{
	const struct capability_set *set = trees->facts.set;
	const struct trees_facts *facts = &trees->facts;
	const bool hides = search->masks && facts->driver.private_root;
	if (facts->project_deny->count || facts->project_protect->count)
		return find_both(trees, arena, tree, search, hides, ret_names, err);
	const struct name_rules all = { hides && has_secrets(trees, tree) ? &set->deny : NULL, &set->protect,
		                        &set->exempt };
	return names_find(arena, tree->fd, tree->place.path, &all, &search->keep, search->budget_us, ret_names, err);
}

/* Files on top of each other. A file is a ceiling for the next: each of its sources (the file itself, then the
 * [[session]] that match, in order) is compared, key by key, with what was in force before that file, and put on top.
 *
 *     defaults   bind nothing
 *     system     binds the keys that it sets
 *     user       narrows these, is free with the others
 *     project    narrows everything
 *
 * How a key is narrowed is a column of its row, and a function here. */
#include "config/resolve.h"

#include <string.h>

#include "base/error.h"
#include "policy/cover.h"

#define PROJECT_GLOBS_MAX 256

/* A value that wants to take the place of another. */
struct change {
	struct arena *arena;
	const struct config_row *row;
	const struct config_state *ceiling;
	enum config_layer layer;
	const struct config_value *old, *new;
	const struct toml_value *at;            /* what in the file is to blame */
};

/* What is wrong with it, or NULL. */
typedef const char *(*narrows_fn)(struct change *change);

static const char *blame_entry(struct change *change, size_t index, const char *why)
{
	if (change->at->type == TOML_ARRAY && index < change->at->count)
		change->at = change->at->items[index];
	return why;
}

static const char *narrows_any(struct change *change)
{
	(void)change;
	return NULL;
}

static const char *narrows_same(struct change *change)
{
	const char *old = change->old->text ? change->old->text : "", *new = change->new->text ? change->new->text : "";
	bool same = change->new->number == change->old->number && !strcmp(old, new);
	return same ? NULL : "it cannot be changed";
}

static const char *narrows_false(struct change *change)
{
	return change->new->number <= change->old->number ? NULL : "it is false already";
}

static const char *narrows_less(struct change *change)
{
	bool zero_is_most = change->row->type == CONFIG_TYPE_NUMBER || change->row->type == CONFIG_TYPE_PERCENT;
	uint64_t old = change->old->number, new = change->new->number;
	old = zero_is_most && !old ? UINT64_MAX : old;
	new = zero_is_most && !new ? UINT64_MAX : new;
	return new <= old ? NULL : "this is more";
}

static const char *narrows_subset(struct change *change)
{
	if (change->old->number)
		return NULL;
	if (change->new->number)
		return "this is more";
	for (size_t i = 0; i < change->new->list.count; i++)
		if (strings_find(&change->old->list, change->new->list.items[i]) < 0)
			return blame_entry(change, i, "this entry is not among them");
	return NULL;
}

/* As with programs, an empty list of places is all of them. */
static const char *narrows_places(struct change *change)
{
	const struct strings *old = &change->old->list, *new = &change->new->list;
	if (old->count && !new->count)
		return "an empty list would be no restriction";
	for (size_t i = 0; old->count && i < new->count; i++)
		if (!cover_path(old, new->items[i], false))
			return blame_entry(change, i, "this entry is not within them");
	return NULL;
}

/* The set that is in force, with one list of it exchanged, must be within itself. */
static const char *narrows_within(struct change *change)
{
	struct config_value values[KEY_MAX];
	struct capability_set set, ceiling;
	const char *subject = NULL;
	if (change->row == &config_rows[KEY_policy_allowed_paths])
		return narrows_places(change);
	memcpy(values, change->ceiling->values, sizeof(values));
	values[change->row - config_rows] = *change->new;
	if (config_capabilities(change->arena, change->ceiling->values, &ceiling) < 0 ||
	    config_capabilities(change->arena, values, &set) < 0)
		return "memory is short";
	if (capability_within(&set, &ceiling, NULL, &subject))
		return NULL;
	for (size_t i = 0; subject && i < change->new->list.count; i++)
		if (!strcmp(change->new->list.items[i], subject))
			return blame_entry(change, i, "this entry is not within them");
	return "this is more";
}

static const char *narrows_add(struct change *change)
{
	for (size_t i = 0; i < change->new->list.count; i++)
		if (change->new->list.items[i][0] == '!')
			return blame_entry(change, i, "this takes an entry out");
	return NULL;
}

/* The user's rules are judged besides the system's, so there is nothing that they could widen. */
static const char *narrows_judge(struct change *change)
{
	for (size_t i = 0; change->layer == CONFIG_PROJECT && i < change->new->rule_count; i++)
		if (change->new->rules[i].decision == RULE_ALLOW)
			return blame_entry(change, i, "a rule of a project can deny or ask");
	return NULL;
}

static const narrows_fn narrows[] = {
	[NARROWS_ANY] = narrows_any,       [NARROWS_SAME] = narrows_same,     [NARROWS_FALSE] = narrows_false,
	[NARROWS_LESS] = narrows_less,     [NARROWS_SUBSET] = narrows_subset, [NARROWS_WITHIN] = narrows_within,
	[NARROWS_ADD] = narrows_add,       [NARROWS_JUDGE] = narrows_judge,
};
_Static_assert(ARRAY_SIZE(narrows) == NARROWS_MAX, "every way to narrow has a function");

/* *ret_apply: whether it is to be put on top. */
static int check(struct change *change, bool bound, bool *ret_apply, struct cordon_error *err)
{
	const struct config_row *row = change->row;
	bool project = change->layer == CONFIG_PROJECT;
	*ret_apply = true;
	if (project && !row->project) {
		toml_fail(err, change->new->file, change->at, "%s cannot be set by a project", row->path);
		return fail_remedy(err, "set it in the user's configuration, or leave it out");
	}
	const char *why = bound || project ? narrows[row->narrows](change) : NULL;
	if (why && change->new->implied) {
		*ret_apply = false;
		return 0;
	}
	if (!why)
		return 0;
	const char *where = config_where(change->arena, change->old);
	toml_fail(err, change->new->file, change->at, "%s can only be narrowed here, and %s (in force: %s)", row->path,
	          why, where ? where : "");
	return fail_remedy(err, "%s",
	                   project ? "a project's file can only narrow what is in force without it: remove this" :
	                             "the system's configuration sets this key: remove this");
}

/* ---- putting on top --------------------------------------------------------------------------------------------- */

static size_t name_length(const char *entry, bool variables)
{
	return variables ? strcspn(entry, "=") + 1 : strlen(entry) + 1;
}

/* The entries of both; of variables with the same name the new one; without what `!` takes out. */
static int join(struct arena *arena, const struct config_state *state, const struct config_row *row,
                const struct config_value *new, struct strings *list, struct cordon_error *err)
{
	bool variables = row->type == CONFIG_TYPE_VARIABLES;
	const struct strings *defaults = &state->defaults[row - config_rows].list;
	struct strings joined = { 0 };
	if (strings_add_all(arena, &joined, list) < 0)
		return fail_oom(err);
	for (size_t i = 0; i < new->list.count; i++) {
		const char *entry = new->list.items[i];
		bool out = row->type == CONFIG_TYPE_GLOBS && entry[0] == '!';
		size_t length = name_length(entry + out, variables), kept = 0;
		if (out && strings_find(defaults, entry + 1) < 0)
			return config_fail_word(err, new->file, new->at->items[i], entry + 1, defaults,
			                        "an entry of the default that could be taken out");
		for (size_t j = 0; j < joined.count; j++)
			if (strncmp(joined.items[j], entry + out, length))
				joined.items[kept++] = joined.items[j];
		joined.count = kept;
		if (joined.items)
			joined.items[kept] = NULL;
		if (!out && strings_add(arena, &joined, entry) < 0)
			return fail_oom(err);
	}
	*list = joined;
	return 0;
}

/* A file's rules come before those of the files before it, and each bears the mark of its own. */
static int add_rules(struct arena *arena, enum config_layer layer, const struct config_value *new,
                     struct config_value *value, struct cordon_error *err)
{
	size_t count = new->rule_count + value->rule_count;
	struct rule *rules = arena_alloc(arena, (count + 1) * sizeof(*rules));
	if (!rules)
		return fail_oom(err);
	for (size_t i = 0; i < count; i++) {
		rules[i] = i < new->rule_count ? new->rules[i] : value->rules[i - new->rule_count];
		rules[i].layer = i < new->rule_count ? (unsigned)layer : rules[i].layer;
	}
	value->rules = rules;
	value->rule_count = count;
	return 0;
}

static int put(struct arena *arena, struct config_state *state, enum config_layer layer, const struct config_row *row,
               const struct config_value *new, struct cordon_error *err)
{
	struct config_value *value = &state->values[row - config_rows], old = *value;
	*value = *new;
	if (row->narrows != NARROWS_ADD && row->narrows != NARROWS_JUDGE && row->type != CONFIG_TYPE_VARIABLES)
		return 0;
	if (old.file && !(value->also = config_where(arena, &old)))
		return fail_oom(err);
	value->list = old.list;
	value->rules = old.rules;
	value->rule_count = old.rule_count;
	return row->narrows == NARROWS_JUDGE ? add_rules(arena, layer, new, value, err)
	                                     : join(arena, state, row, new, &value->list, err);
}

static int apply_source(struct arena *arena, struct config_state *state, const struct config_state *ceiling,
                        enum config_layer layer, const struct config_value *values, struct cordon_error *err)
{
	for (enum config_key key = 0; key < KEY_MAX; key++) {
		struct change change = { arena, &config_rows[key], ceiling, layer, &ceiling->values[key], &values[key],
		                         values[key].at };
		bool apply;
		if (!values[key].file)
			continue;
		if (check(&change, ceiling->bound[key], &apply, err) < 0 ||
		    (apply && put(arena, state, layer, change.row, change.new, err) < 0))
			return -1;
		state->bound[key] = true;
	}
	return 0;
}

/* A default of a command is within its limits; if the limit was not set, it is raised to the default. */
static void raise_limits(struct config_value *values)
{
	static const struct {
		enum config_key usual, limit;
	} pairs[] = {
		{ KEY_sandbox_default_timeout, KEY_limits_time },
		{ KEY_sandbox_max_output, KEY_limits_stdout },
		{ KEY_sandbox_max_output, KEY_limits_stderr },
	};
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		const struct config_value *usual = &values[pairs[i].usual];
		struct config_value *limit = &values[pairs[i].limit];
		if (!usual->file || (limit->file && !limit->implied) || usual->number <= limit->number)
			continue;
		*limit = *usual;
		limit->implied = true;
	}
}

bool config_block_matches(const struct config_block *block, const char *session_id)
{
	return session_id && glob_match_text(block->match, session_id);
}

/* The names that a project adds are looked for by themselves: what they cost is not to be at the expense of the
 * others. */
static int note_own(struct arena *arena, const struct config_state *state, const struct config_state *ceiling,
                    enum config_key key, struct strings *ret_own, struct cordon_error *err)
{
	const struct config_value *value = &state->values[key];
	const struct strings *before = &ceiling->values[key].list;
	struct strings own = { 0 };
	for (size_t i = 0; i < value->list.count; i++)
		if (strings_find(before, value->list.items[i]) < 0 &&
		    strings_add(arena, &own, value->list.items[i]) < 0)
			return fail_oom(err);
	*ret_own = own;
	if (own.count <= PROJECT_GLOBS_MAX)
		return 0;
	toml_fail(err, value->file, value->at, "%s has %zu entries more, and a project can add %d",
	          config_rows[key].path, own.count, PROJECT_GLOBS_MAX);
	return fail_remedy(err, "fewer and wider globs say the same: **/*.js instead of each file");
}

/* The tables of all files; a name stands once in them. */
static int add_blocks(struct arena *arena, enum config_layer layer, const char *what, const struct config_block *blocks,
                      size_t count, const struct config_block ***list, size_t *list_count, struct cordon_error *err)
{
	const struct config_block **joined = arena_alloc(arena, (*list_count + count + 1) * sizeof(const void *));
	if (!joined)
		return fail_oom(err);
	if (*list_count)
		memcpy(joined, *list, *list_count * sizeof(const void *));
	for (size_t i = 0; i < count; i++) {
		const char *file = blocks[i].file;
		if (layer == CONFIG_PROJECT) {
			toml_fail(err, file, blocks[i].at, "%s cannot be set by a project", what);
			return fail_remedy(err, "set it in the user's configuration, or leave it out");
		}
		for (size_t j = 0; j < *list_count; j++)
			if (!strcmp(joined[j]->match, blocks[i].match))
				return toml_fail(err, file, blocks[i].at, "%s.%s is set by the system's configuration",
				                 what, blocks[i].match);
		joined[*list_count + i] = &blocks[i];
	}
	*list = joined;
	*list_count += count;
	return 0;
}

int config_apply(struct arena *arena, struct config_state *state, enum config_layer layer,
                 const struct config_file *file, const char *session_id, struct cordon_error *err)
{
	const struct config_state ceiling = *state;
	if (apply_source(arena, state, &ceiling, layer, file->values, err) < 0)
		return -1;
	for (size_t i = 0; i < file->block_count; i++)
		if (config_block_matches(&file->blocks[i], session_id) &&
		    apply_source(arena, state, &ceiling, layer, file->blocks[i].values, err) < 0)
			return -1;
	if (add_blocks(arena, layer, "credentials", file->credentials, file->credential_count, &state->credentials,
	               &state->credential_count, err) < 0 ||
	    add_blocks(arena, layer, "gateway", file->gateways, file->gateway_count, &state->gateways,
	               &state->gateway_count, err) < 0)
		return -1;
	if (layer == CONFIG_PROJECT)
		return note_own(arena, state, &ceiling, KEY_capabilities_deny, &state->project_deny, err) < 0 ? -1 :
		       note_own(arena, state, &ceiling, KEY_capabilities_protect, &state->project_protect, err);
	raise_limits(state->values);
	return 0;
}

/* Reading an agent's profile: every key is a row. See profile.h. */
#include "door/agent/profile.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/toml.h"

#define TEXT_MAX 1024

struct reading {
	struct arena *arena;
	const char *file;
	struct agent_profile *profile;
};

enum kind { WORD, FLAG, WORDS, HOST_PATHS, HOME_PATHS, PAIRS, AMOUNTS, FILES };

static const char *const kind_is[] = {
	[WORD] = "a text",
	[FLAG] = "true or false",
	[WORDS] = "a list of texts",
	[HOST_PATHS] = "a list of paths",
	[HOME_PATHS] = "a list of paths beneath ~/",
	[PAIRS] = "a table of texts",
	[AMOUNTS] = "a table of limits",
	[FILES] = "a list of tables",
};

#define AT(field) offsetof(struct agent_profile, field)

static const struct key {
	const char *name;
	enum kind kind;
	size_t at, count_at;
	const char *members;            /* of FILES */
} keys[] = {
	{ "title", WORD, AT(title), 0, NULL },
	{ "program", WORD, AT(program), 0, NULL },
	{ "terminal", FLAG, AT(terminal), 0, NULL },
	{ "hosts", WORDS, AT(hosts), 0, NULL },
	{ "read", HOST_PATHS, AT(read), 0, NULL },
	{ "write", HOST_PATHS, AT(write), 0, NULL },
	{ "toolchains", WORDS, AT(toolchains), 0, NULL },
	{ "protect", WORDS, AT(protect), 0, NULL },
	{ "variables", WORDS, AT(variables), 0, NULL },
	{ "copy", HOME_PATHS, AT(copy), 0, NULL },
	{ "set", PAIRS, AT(set), AT(set_count), NULL },
	{ "limits", AMOUNTS, AT(limits), AT(limit_count), NULL },
	{ "part", FILES, AT(parts), AT(part_count), "members" },
	{ "login", FILES, AT(logins), AT(login_count), "changes" },
};

/* The options of these names, with _ for -. */
static const char *const limit_names[] = { "timeout", "memory", "cpu",        "processes",
	                                   "disk",    "tmp",    "open_files", "max_output" };

/* ---- one value
 * ------------------------------------------------------------------------------------------------------- */

static bool is_plain(const struct toml_value *at)
{
	return at->type == TOML_STRING && at->length && at->length <= TEXT_MAX && strlen(at->text) == at->length &&
	       !text_has_control(at->text);
}

static int refuse_kind(const struct reading *reading, const struct toml_value *at, const char *name, enum kind kind,
                       struct cordon_error *err)
{
	return toml_fail(err, reading->file, at, "%s must be %s, and this is %s", name, kind_is[kind],
	                 toml_type_names[at->type]);
}

/* ~/NAME without . and .. in it: what follows ~/. */
static const char *beneath_home(const struct reading *reading, const struct toml_value *at)
{
	const char *path =
		is_plain(at) && !strncmp(at->text, "~/", 2) ? arena_printf(reading->arena, "/%s", at->text + 2) : NULL;
	return path && path[1] && path_is_normal(path) ? path + 1 : NULL;
}

/* NULL: it is none of this kind. */
static const char *read_word(const struct reading *reading, enum kind kind, const struct toml_value *at)
{
	const char *name = kind == WORDS ? NULL : beneath_home(reading, at);
	if (kind == HOME_PATHS)
		return name;
	if (kind == HOST_PATHS && !name && !(is_plain(at) && path_is_normal(at->text)))
		return NULL;
	return is_plain(at) ? at->text : NULL;
}

static int read_words(const struct reading *reading, const char *name, enum kind kind, const struct toml_value *at,
                      struct strings *list, struct cordon_error *err)
{
	if (at->type != TOML_ARRAY)
		return refuse_kind(reading, at, name, kind, err);
	for (size_t i = 0; i < at->count; i++) {
		const char *word = read_word(reading, kind, at->items[i]);
		if (!word)
			return toml_fail(err, reading->file, at->items[i],
			                 "%s must be %s: not empty, of one line, and a path without . and ..", name,
			                 kind_is[kind]);
		if (strings_find(list, word) >= 0)
			return toml_fail(err, reading->file, at->items[i], "%s has \"%s\" twice", name, word);
		if (strings_add(reading->arena, list, word) < 0)
			return fail_oom(err);
	}
	return 0;
}

static int read_limit(const struct reading *reading, const struct toml_value *at, struct profile_pair *pair,
                      struct cordon_error *err)
{
	size_t i = 0;
	while (i < ARRAY_SIZE(limit_names) && strcmp(limit_names[i], at->key) != 0)
		i++;
	if (i == ARRAY_SIZE(limit_names)) {
		const char *nearest = text_nearest(at->key, limit_names, ARRAY_SIZE(limit_names));
		toml_fail(err, reading->file, at, "there is no limit \"%s\"", at->key);
		return nearest ? fail_remedy(err, "did you mean %s?", nearest)
		               : fail_remedy(err, "see cordon help agent");
	}
	char *name = arena_strdup(reading->arena, limit_names[i]);
	pair->value =
		at->type == TOML_INTEGER ? arena_printf(reading->arena, "%lld", (long long)at->integer) : at->text;
	if (!name || !pair->value)
		return fail_oom(err);
	for (char *dash; (dash = strchr(name, '_'));)
		*dash = '-';
	pair->name = name;
	return 0;
}

static int read_pairs(const struct reading *reading, const struct key *key, const struct toml_value *at,
                      struct cordon_error *err)
{
	struct profile_pair *pairs = (struct profile_pair *)((char *)reading->profile + key->at);
	size_t *count = (size_t *)((char *)reading->profile + key->count_at);
	if (at->type != TOML_TABLE)
		return refuse_kind(reading, at, key->name, key->kind, err);
	for (size_t i = 0; i < at->count; i++) {
		const struct toml_value *member = at->items[i];
		if (*count == PROFILE_PAIRS_MAX)
			return toml_fail(err, reading->file, member, "%s has more than %d members", key->name,
			                 PROFILE_PAIRS_MAX);
		if (!(is_plain(member) || (key->kind == AMOUNTS && member->type == TOML_INTEGER)) ||
		    strlen(member->key) != member->key_length)
			return toml_fail(err, reading->file, member, "%s must be %s, of one line each", key->name,
			                 kind_is[key->kind]);
		pairs[*count] = (struct profile_pair){ member->key, member->text };
		if (key->kind == AMOUNTS && read_limit(reading, member, &pairs[*count], err) < 0)
			return -1;
		++*count;
	}
	return 0;
}

static int read_file(const struct reading *reading, const struct key *key, const struct toml_value *at,
                     struct profile_file *file, struct cordon_error *err)
{
	if (at->type != TOML_TABLE)
		return refuse_kind(reading, at, key->name, FILES, err);
	for (size_t i = 0; i < at->count; i++) {
		const struct toml_value *member = at->items[i];
		if (!strcmp(member->key, "file")) {
			if (!(file->name = beneath_home(reading, member)))
				return toml_fail(err, reading->file, member,
				                 "file must be a path beneath ~/, without . and ..");
		} else if (strcmp(member->key, key->members) != 0) {
			return toml_fail(err, reading->file, member, "there is no key \"%s\" in [[%s]]", member->key,
			                 key->name);
		} else if (read_words(reading, key->members, WORDS, member, &file->members, err) < 0) {
			return -1;
		}
	}
	return file->name ? 0 : toml_fail(err, reading->file, at, "[[%s]] names no file", key->name);
}

static int read_files(const struct reading *reading, const struct key *key, const struct toml_value *at,
                      struct cordon_error *err)
{
	struct profile_file *files = (struct profile_file *)((char *)reading->profile + key->at);
	size_t *count = (size_t *)((char *)reading->profile + key->count_at);
	if (at->type != TOML_ARRAY)
		return refuse_kind(reading, at, key->name, FILES, err);
	if (at->count > PROFILE_FILES_MAX)
		return toml_fail(err, reading->file, at, "there are more than %d of [[%s]]", PROFILE_FILES_MAX,
		                 key->name);
	for (; *count < at->count; ++*count)
		if (read_file(reading, key, at->items[*count], &files[*count], err) < 0)
			return -1;
	return 0;
}

static int read_key(const struct reading *reading, const struct key *key, const struct toml_value *at,
                    struct cordon_error *err)
{
	void *field = (char *)reading->profile + key->at;
	switch (key->kind) {
	case WORD:
		if (!is_plain(at))
			return toml_fail(err, reading->file, at, "%s must be a text of one line, at most %d bytes",
			                 key->name, TEXT_MAX);
		*(const char **)field = at->text;
		return 0;
	case FLAG:
		if (at->type != TOML_BOOLEAN)
			return refuse_kind(reading, at, key->name, FLAG, err);
		*(bool *)field = at->boolean;
		return 0;
	case PAIRS:
	case AMOUNTS:
		return read_pairs(reading, key, at, err);
	case FILES:
		return read_files(reading, key, at, err);
	default:
		return read_words(reading, key->name, key->kind, at, field, err);
	}
}

/* ---- the file
 * -------------------------------------------------------------------------------------------------------- */

static int read_member(const struct reading *reading, const struct toml_value *member, struct cordon_error *err)
{
	const char *names[ARRAY_SIZE(keys)];
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!strcmp(keys[i].name, member->key) && member->key_length == strlen(member->key))
			return read_key(reading, &keys[i], member, err);
		names[i] = keys[i].name;
	}
	const char *nearest = text_nearest(member->key, names, ARRAY_SIZE(names));
	toml_fail(err, reading->file, member, "there is no key \"%s\" in an agent's profile", member->key);
	return nearest ? fail_remedy(err, "did you mean %s?", nearest) : fail_remedy(err, "see cordon help agent");
}

int agent_profile_parse(struct arena *arena, const char *file, const char *text, size_t length,
                        struct agent_profile *ret_profile, struct cordon_error *err)
{
	struct agent_profile *profile = arena_alloc(arena, sizeof(*profile));
	const struct reading reading = { arena, file, profile };
	const struct toml_value *root;
	if (!profile)
		return fail_oom(err);
	if (toml_parse(arena, file, text, length, &root, err) < 0)
		return -1;
	for (size_t i = 0; i < root->count; i++)
		if (read_member(&reading, root->items[i], err) < 0)
			return -1;
	if (profile->program && strchr(profile->program, '/') && !path_is_normal(profile->program))
		return toml_fail(err, file, toml_member(root, "program"),
		                 "program must be a name, or an absolute path without . and ..");
	if (!profile->title)
		profile->title = profile->program ? profile->program : "";
	*ret_profile = *profile;
	return 0;
}

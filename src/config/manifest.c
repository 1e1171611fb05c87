/* Manifests: a file into what it declares, and whether a command is what it declares. Every key is a row; values that
 * the configuration knows too are read by its own functions. See cordon-manifest(5). */
#include "config/manifest.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "config/parse.h"
#include "config/read.h"

#define NAME_MAX_LENGTH 64
#define DESCRIPTION_MAX_LENGTH 1024

/* ---- the language ----------------------------------------------------------------------------------------------- */

enum table { TOP, CAPABILITIES, SPAWN, LIMITS, NETWORK, TABLE_MAX };

/* Where each table is, and in which. */
static const struct {
	enum table parent;
	const char *key, *path;
} tables[TABLE_MAX] = {
	[TOP] = { TOP, "", "the manifest" },
	[CAPABILITIES] = { TOP, "capabilities", "[capabilities]" },
	[SPAWN] = { CAPABILITIES, "spawn", "[capabilities.spawn]" },
	[LIMITS] = { SPAWN, "limits", "[capabilities.spawn.limits]" },
	[NETWORK] = { CAPABILITIES, "network", "[capabilities.network]" },
};

#define LIST(field) offsetof(struct manifest, field), SIZE_MAX
#define LIMIT(field) SIZE_MAX, offsetof(struct manifest, set.limits.field)
#define MiB (UINT64_C(1) << 20)

/* The values that the configuration knows too: lists and limits, with the ranges of the options of `cordon run`. */
static const struct key {
	enum table table;
	struct config_row row;
	size_t list, limit;             /* where it goes */
} keys[] = {
#define ROW(name, kind, low, high) { .key = name, .path = name, .type = CONFIG_TYPE_##kind, .values = "", \
	.least = low, .most = high }
#define LIMIT_ROW(name, kind, low, high) { .key = name, .path = name, .type = CONFIG_TYPE_##kind, .values = "none", \
	.least = low, .most = high }
	{ SPAWN, ROW("programs", PATHS, 0, 0), LIST(programs) },
	{ SPAWN, ROW("fs_read", PATHS, 0, 0), LIST(set.fs_read) },
	{ SPAWN, ROW("fs_write", PATHS, 0, 0), LIST(set.fs_write) },
	{ SPAWN, ROW("env_passthrough", NAMES, 0, 0), LIST(env_pass) },
	{ NETWORK, ROW("hosts", HOSTS, 0, 0), LIST(set.hosts) },
	{ LIMITS, LIMIT_ROW("memory", SIZE, MiB, MiB << 30), LIMIT(memory_bytes) },
	{ LIMITS, LIMIT_ROW("cpu", PERCENT, 1, 1000000), LIMIT(cpu_percent) },
	{ LIMITS, LIMIT_ROW("processes", NUMBER, 1, 1 << 20), LIMIT(processes) },
	{ LIMITS, LIMIT_ROW("disk", SIZE, MiB, MiB << 30), LIMIT(disk_bytes) },
	{ LIMITS, LIMIT_ROW("timeout", DURATION, 1, UINT64_C(366) * 24 * 3600 * 1000), LIMIT(wall_ms) },
	{ LIMITS, LIMIT_ROW("max_output", SIZE, 1, MiB << 20), LIMIT(stdout_bytes) },
	{ LIMITS, LIMIT_ROW("open_files", NUMBER, 16, 1 << 20), LIMIT(open_files) },
	{ LIMITS, LIMIT_ROW("tmp", SIZE, 4096, MiB << 30), LIMIT(tmp_bytes) },
#undef ROW
#undef LIMIT_ROW
};

static int read_name(const struct config_reader *reader, const struct toml_value *at, struct manifest *manifest,
                     struct cordon_error *err);
static int read_description(const struct config_reader *reader, const struct toml_value *at, struct manifest *manifest,
                            struct cordon_error *err);
static int read_argv(const struct config_reader *reader, const struct toml_value *at, struct manifest *manifest,
                     struct cordon_error *err);

/* The others. */
static const struct {
	enum table table;
	const char *key;
	int (*read)(const struct config_reader *reader, const struct toml_value *at, struct manifest *manifest,
	            struct cordon_error *err);
} own_keys[] = {
	{ TOP, "name", read_name },
	{ TOP, "description", read_description },
	{ SPAWN, "argv", read_argv },
};

/* ---- one value -------------------------------------------------------------------------------------------------- */

static int read_name(const struct config_reader *reader, const struct toml_value *at, struct manifest *manifest,
                     struct cordon_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	if (at->type != TOML_STRING || !at->length || at->length > NAME_MAX_LENGTH ||
	    strspn(at->text, allowed) != at->length)
		return toml_fail(err, reader->file, at,
		                 "name must be a text of letters, digits, '.', '_' and '-', at most %d of them",
		                 NAME_MAX_LENGTH);
	manifest->name = at->text;
	return 0;
}

static int read_description(const struct config_reader *reader, const struct toml_value *at, struct manifest *manifest,
                            struct cordon_error *err)
{
	if (at->type != TOML_STRING || at->length > DESCRIPTION_MAX_LENGTH || strlen(at->text) != at->length ||
	    text_has_control(at->text))
		return toml_fail(err, reader->file, at, "description must be a text of one line and at most %d bytes",
		                 DESCRIPTION_MAX_LENGTH);
	manifest->description = at->text;
	return 0;
}

static int read_argv(const struct config_reader *reader, const struct toml_value *at, struct manifest *manifest,
                     struct cordon_error *err)
{
	if (at->type != TOML_ARRAY)
		return toml_fail(err, reader->file, at, "argv must be a list of patterns, and this is %s",
		                 toml_type_names[at->type]);
	if (!at->count) {
		toml_fail(err, reader->file, at, "argv is empty, so that no command would fit");
		return fail_remedy(err, "leave argv out for any arguments, or write [\"\"] for none at all");
	}
	if (at->count > MANIFEST_PATTERNS_MAX)
		return toml_fail(err, reader->file, at, "there are more than %d patterns", MANIFEST_PATTERNS_MAX);
	manifest->patterns = arena_alloc(reader->arena, at->count * sizeof(*manifest->patterns));
	if (!manifest->patterns)
		return fail_oom(err);
	for (size_t i = 0; i < at->count; i++) {
		if (manifest_pattern_read(reader->arena, reader->file, at->items[i], &manifest->patterns[i], err) < 0)
			return -1;
		for (size_t j = 0; j < i; j++)
			if (manifest_pattern_equal(&manifest->patterns[i], &manifest->patterns[j]))
				return toml_fail(err, reader->file, at->items[i],
				                 "this pattern fits the same as the one on line %u",
				                 at->items[j]->line);
	}
	manifest->pattern_count = at->count;
	return 0;
}

static int read_key(const struct config_reader *reader, const struct key *key, const struct toml_value *at,
                    struct manifest *manifest, struct cordon_error *err)
{
	struct config_value value = { 0 };
	if (config_value_read(reader, &key->row, at, &value, err) < 0)
		return -1;
	if (key->limit != SIZE_MAX) {
		memcpy((char *)manifest + key->limit, &value.number, sizeof(value.number));
		return 0;
	}
	for (size_t i = 0; i < value.list.count; i++)
		for (size_t j = 0; j < i; j++)
			if (!strcmp(value.list.items[i], value.list.items[j]))
				return toml_fail(err, reader->file, at->items[i], "%s has \"%s\" twice", key->row.key,
				                 value.list.items[i]);
	memcpy((char *)manifest + key->list, &value.list, sizeof(value.list));
	return 0;
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

static int refuse_key(const struct config_reader *reader, enum table table, const struct toml_value *member,
                      struct cordon_error *err)
{
	const char *known[TABLE_MAX + ARRAY_SIZE(keys) + ARRAY_SIZE(own_keys)];
	const char *belongs = NULL;
	size_t count = 0;
	for (size_t i = CAPABILITIES; i < TABLE_MAX; i++)
		if (tables[i].parent == table)
			known[count++] = tables[i].key;
	for (size_t i = 0; i < ARRAY_SIZE(own_keys); i++)
		if (own_keys[i].table == table)
			known[count++] = own_keys[i].key;
		else if (!strcmp(own_keys[i].key, member->key))
			belongs = tables[own_keys[i].table].path;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].table == table)
			known[count++] = keys[i].row.key;
		else if (!strcmp(keys[i].row.key, member->key))
			belongs = tables[keys[i].table].path;
	const char *nearest = text_nearest(member->key, known, count);
	toml_fail(err, reader->file, member, "there is no key \"%s\" in %s", member->key, tables[table].path);
	if (belongs)
		return fail_remedy(err, "it belongs in %s", belongs);
	return nearest ? fail_remedy(err, "did you mean %s?", nearest) : fail_remedy(err, "see cordon-manifest(5)");
}

static bool is_called(const struct toml_value *member, const char *key)
{
	return member->key_length == strlen(key) && !strcmp(member->key, key);
}

static int read_table(const struct config_reader *reader, enum table table, const struct toml_value *at,
                      struct manifest *manifest, struct cordon_error *err);

static int read_member(const struct config_reader *reader, enum table table, const struct toml_value *member,
                       struct manifest *manifest, struct cordon_error *err)
{
	for (size_t i = CAPABILITIES; i < TABLE_MAX; i++)
		if (tables[i].parent == table && is_called(member, tables[i].key))
			return read_table(reader, i, member, manifest, err);
	for (size_t i = 0; i < ARRAY_SIZE(own_keys); i++)
		if (own_keys[i].table == table && is_called(member, own_keys[i].key))
			return own_keys[i].read(reader, member, manifest, err);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].table == table && is_called(member, keys[i].row.key))
			return read_key(reader, &keys[i], member, manifest, err);
	return refuse_key(reader, table, member, err);
}

/* As deep as the table of tables is. */
static int read_table(const struct config_reader *reader, enum table table, const struct toml_value *at,
                      struct manifest *manifest, struct cordon_error *err)
{
	if (at->type != TOML_TABLE)
		return toml_fail(err, reader->file, at, "%s must be a table, and this is %s", tables[table].key,
		                 toml_type_names[at->type]);
	for (size_t i = 0; i < at->count; i++)
		if (read_member(reader, table, at->items[i], manifest, err) < 0)
			return -1;
	return 0;
}

/* What no single value shows. */
static int check_whole(const struct config_reader *reader, const struct toml_value *root,
                       const struct manifest *manifest, struct cordon_error *err)
{
	if (!manifest->name)
		return toml_fail(err, reader->file, root, "the manifest has no name");
	if (!manifest->programs.count) {
		toml_fail(err, reader->file, root, "the manifest declares no program");
		return fail_remedy(err, "name at least one: [capabilities.spawn], programs = [\"/usr/bin/git\"]");
	}
	const struct toml_value *spawn = toml_member(toml_member(root, "capabilities"), "spawn");
	for (size_t i = 0; i < manifest->set.fs_read.count; i++)
		for (size_t j = 0; j < manifest->set.fs_write.count; j++) {
			const char *path = manifest->set.fs_read.items[i], *writable = manifest->set.fs_write.items[j];
			if (!path_within(path, writable))
				continue;
			toml_fail(err, reader->file, toml_member(spawn, "fs_read")->items[i],
			          "\"%s\" is to be read only, and fs_write makes \"%s\" writable with all beneath it",
			          path, writable);
			return fail_remedy(err, "take it out of one of them");
		}
	return 0;
}

int manifest_parse(struct arena *arena, const char *file, const char *home, const char *text, size_t length,
                   struct manifest *ret_manifest, struct cordon_error *err)
{
	const struct config_reader reader = { .arena = arena, .file = file, .home = home };
	const struct toml_value *root;
	struct manifest manifest = { 0 };
	if (toml_parse(arena, file, text, length, &root, err) < 0 ||
	    read_table(&reader, TOP, root, &manifest, err) < 0 || check_whole(&reader, root, &manifest, err) < 0)
		return -1;
	struct capability_set *set = &manifest.set;
	set->programs = manifest.programs;
	/* Where there are several, they are there to start each other. One by itself has what the baseline gives. */
	set->spawn = set->programs.count > 1;
	set->network = set->hosts.count ? NETWORK_HOSTS : NETWORK_NONE;
	set->limits.stderr_bytes = set->limits.stdout_bytes;
	*ret_manifest = manifest;
	return 0;
}

int manifest_read(struct arena *arena, const char *path, const char *home, struct manifest *ret_manifest,
                  struct cordon_error *err)
{
	const struct config_place place = { CONFIG_USER, AT_FDCWD, path, path, "the manifest" };
	struct config_stamp stamp;
	auto_free char *text = NULL;
	size_t length = 0;
	if (config_read(&place, &stamp, &text, &length, err) < 0)
		return -1;
	if (!text)
		return fail(err, CORDON_E_CONFIG_INVALID, ENOENT, path, "the manifest cannot be read");
	return manifest_parse(arena, path, home && *home == '/' ? home : NULL, text, length, ret_manifest, err);
}

/* ---- a command -------------------------------------------------------------------------------------------------- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool is_same_file(const char *one, const char *other)
{
	char real_one[PATH_MAX], real_other[PATH_MAX];
	return !strcmp(one, other) ||
	       (realpath(one, real_one) && realpath(other, real_other) && !strcmp(real_one, real_other));
}

static int match_program(const struct manifest *manifest, const char *program, const char *called,
                         struct cordon_error *err)
{
	const char *other_name = NULL;
	for (size_t i = 0; i < manifest->programs.count; i++) {
		const char *listed = manifest->programs.items[i];
		if (*program != '/' || !is_same_file(listed, program))
			continue;
		if (!strcmp(last_part(listed), last_part(called)))
			return 0;
		other_name = listed;
	}
	fail(err, CORDON_E_PROGRAM_NOT_ALLOWED, 0, program, "the manifest \"%s\" does not declare this program%s",
	     manifest->name, other_name ? " under the name it was called by" : "");
	fail_boundary(err, "manifest");
	if (other_name)
		return fail_remedy(err, "call it %s", other_name);
	return fail_remedy(err, "it declares %s%s", manifest->programs.items[0],
	                   manifest->programs.count > 1 ? " and others" : "");
}

int manifest_match(const struct manifest *manifest, const char *program, const struct strings *argv,
                   struct cordon_error *err)
{
	const struct manifest_pattern *nearest = NULL;
	char buffer[160], wrong[160] = "";
	size_t furthest = 0;
	if (!argv->count)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, "", "there is no command to run");
	if (match_program(manifest, program, argv->items[0], err) < 0)
		return -1;
	for (size_t i = 0; i < manifest->pattern_count; i++) {
		const struct manifest_pattern *pattern = &manifest->patterns[i];
		size_t place;
		const char *misfit = manifest_pattern_misfit(pattern, argv->items + 1, argv->count - 1, &place, buffer);
		if (!misfit)
			return 0;
		if (nearest && place <= furthest)
			continue;
		nearest = pattern;
		furthest = place;
		snprintf(wrong, sizeof(wrong), "%s", misfit);
	}
	if (!nearest)
		return 0;
	/* The arguments themselves may hold what must not be written down. */
	char shown[256] = "";
	size_t used = 0;
	for (size_t i = 0; i < nearest->written.count && used < sizeof(shown); i++)
		used += (size_t)snprintf(shown + used, sizeof(shown) - used, "%s%s", i ? " " : "",
		                         nearest->written.items[i]);
	fail(err, CORDON_E_PROGRAM_NOT_ALLOWED, 0, program, "argument %zu is not as the manifest \"%s\" declares: %s",
	     furthest + 1, manifest->name, wrong);
	fail_boundary(err, "manifest");
	if (!*shown)
		return fail_remedy(err, "the nearest pattern has no arguments (%s)", nearest->where);
	return fail_remedy(err, "the nearest pattern is: %s (%s)", shown, nearest->where);
}

/* The configuration, public calls: the settings in force and their sources; is a file valid? */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/text.h"
#include "walk.h"
#include "config/parse.h"
#include "config/store.h"
#include "secrets/credential.h"
#include "session/beneath.h"

/* Nothing is kept there, so that nothing is fallen back to. */
#define NOWHERE "/dev/null"

/* ---- values as JSON --------------------------------------------------------------------------------------------- */

static void write_word(struct json *json, const struct config_row *row, uint64_t number)
{
	const char *at = row->values;
	for (; number; number--) {
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	json_bytes(json, at, strcspn(at, " "));
}

static void write_list(struct json *json, const struct config_row *row, const struct config_value *value)
{
	if (value->number) {
		write_word(json, row, value->number - 1);
		return;
	}
	json_array_begin(json);
	for (size_t i = 0; i < value->list.count; i++)
		json_text(json, value->list.items[i]);
	json_array_end(json);
}

/* No limit, said by a file; or nothing was said, and another key counts. */
static void write_none(struct json *json, const struct config_value *value)
{
	if (value->file)
		json_text(json, "none");
	else
		json_nil(json);
}

static void write_number(struct json *json, const struct config_value *value)
{
	if (value->number == UINT64_MAX)
		write_none(json, value);
	else
		json_uint(json, value->number);
}

static void write_amount(struct json *json, const struct config_row *row, const struct config_value *value)
{
	char text[TEXT_AMOUNT_SIZE];
	if (value->number == UINT64_MAX) {
		write_none(json, value);
		return;
	}
	(row->type == CONFIG_TYPE_SIZE ? text_format_size : text_format_duration)(value->number, text);
	json_text(json, text);
}

/* Names only: a value may be a secret. */
static void write_variables(struct json *json, const struct config_value *value)
{
	json_object_begin(json);
	for (size_t i = 0; i < value->list.count; i++) {
		auto_free char *name = strndup(value->list.items[i], strcspn(value->list.items[i], "="));
		json->failed |= !name;
		json_key_string(json, name ? name : "", "set");
	}
	json_object_end(json);
}

/* As they may be written: a name's address, or all of them; a group's hosts always as a list. */
static void write_named(struct json *json, const struct config_value *value, bool lists)
{
	const struct strings *list = &value->list;
	json_object_begin(json);
	for (size_t i = 0; i < list->count; i++) {
		size_t length = strcspn(list->items[i], "=") + 1, same = 0, before = 0;
		for (size_t j = 0; j < list->count; j++)
			if (!strncmp(list->items[i], list->items[j], length)) {
				same++;
				before += j < i;
			}
		if (before)
			continue;
		auto_free char *name = strndup(list->items[i], length - 1);
		json->failed |= !name;
		json_key(json, name ? name : "");
		if (same > 1 || lists)
			json_array_begin(json);
		for (size_t j = i; j < list->count; j++)
			if (!strncmp(list->items[i], list->items[j], length))
				json_text(json, list->items[j] + length);
		if (same > 1 || lists)
			json_array_end(json);
	}
	json_object_end(json);
}

static void write_rules(struct json *json, const struct config_value *value)
{
	json_array_begin(json);
	for (size_t i = 0; i < value->rule_count; i++) {
		json_object_begin(json);
		json_key_string(json, "tool", value->rules[i].tool);
		json_key_string(json, "match", value->rules[i].match);
		json_key_string(json, "decision", rule_decision_names[value->rules[i].decision]);
		json_key_string(json, "from", value->rules[i].where);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_value(struct json *json, const struct config_row *row, const struct config_value *value)
{
	switch (row->type) {
	case CONFIG_TYPE_BOOL:
		json_bool(json, value->number);
		break;
	case CONFIG_TYPE_ENUM:
		/* Without a default: what it is depends on the command. */
		if (value->number == UINT64_MAX)
			json_nil(json);
		else
			write_word(json, row, value->number);
		break;
	case CONFIG_TYPE_PATH:
	case CONFIG_TYPE_TEXT:
	case CONFIG_TYPE_NAME:
		json_text(json, value->text);
		break;
	case CONFIG_TYPE_NUMBER:
	case CONFIG_TYPE_PERCENT:
		write_number(json, value);
		break;
	case CONFIG_TYPE_SIZE:
	case CONFIG_TYPE_DURATION:
		write_amount(json, row, value);
		break;
	case CONFIG_TYPE_VARIABLES:
		write_variables(json, value);
		break;
	case CONFIG_TYPE_ADDRESSES:
	case CONFIG_TYPE_GROUPS:
		write_named(json, value, row->type == CONFIG_TYPE_GROUPS);
		break;
	case CONFIG_TYPE_RULES:
		write_rules(json, value);
		break;
	default:
		write_list(json, row, value);
	}
}

/* ---- showing ---------------------------------------------------------------------------------------------------- */

static void write_settings(struct json *json, struct arena *arena, const struct config *config)
{
	const struct config_value *values = config_snapshot_values(config),
				  *defaults = config_snapshot_defaults(config);
	json_key(json, "settings");
	json_array_begin(json);
	for (size_t i = 0; i < KEY_MAX; i++) {
		if (config_section_repeats(config_rows[i].section))
			continue;
		json_object_begin(json);
		json_key_string(json, "key", config_rows[i].path);
		json_key(json, "value");
		write_value(json, &config_rows[i], &values[i]);
		json_key(json, "default");
		write_value(json, &config_rows[i], &defaults[i]);
		json_key_string(json, "from", config_where(arena, &values[i]));
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_block(struct json *json, struct arena *arena, const char *file, const struct config_block *block)
{
	json_object_begin(json);
	json_key_string(json, "match", block->match);
	json_key_string(json, "from", arena_printf(arena, "%s:%u:%u", file, block->at->line, block->at->column));
	json_key(json, "settings");
	json_array_begin(json);
	for (size_t i = 0; i < KEY_MAX; i++) {
		if (!block->values[i].file || block->values[i].implied)
			continue;
		json_object_begin(json);
		json_key_string(json, "key", config_rows[i].path);
		json_key(json, "value");
		write_value(json, &config_rows[i], &block->values[i]);
		json_key_string(json, "from", config_where(arena, &block->values[i]));
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static void write_blocks(struct json *json, struct arena *arena, const struct config *config)
{
	json_key(json, "sessions");
	json_array_begin(json);
	for (enum config_layer layer = 0; layer < CONFIG_LAYER_MAX; layer++) {
		size_t count;
		const struct config_block *blocks = config_snapshot_blocks(config, layer, &count);
		for (size_t i = 0; i < count; i++)
			write_block(json, arena, config_snapshot_file(config, layer), &blocks[i]);
	}
	json_array_end(json);
}

/* The tables of a section that has any number of them. Of credentials never a value. */
static void write_tables(struct json *json, struct arena *arena, const struct config *config,
                         enum config_section section)
{
	json_key(json, config_section_names[section]);
	json_array_begin(json);
	for (enum config_layer layer = 0; layer < CONFIG_LAYER_MAX; layer++) {
		size_t count;
		const struct config_block *blocks = config_snapshot_tables(config, layer, section, &count);
		for (size_t i = 0; i < count; i++) {
			const struct toml_value *at = blocks[i].at;
			json_object_begin(json);
			json_key_string(json, "table", blocks[i].match);
			json_key_string(json, "from",
			                arena_printf(arena, "%s:%u:%u", blocks[i].file, at->line, at->column));
			for (enum config_key key = 0; key < KEY_MAX; key++) {
				if (config_rows[key].section != section || !blocks[i].values[key].file)
					continue;
				json_key(json, config_rows[key].key);
				write_value(json, &config_rows[key], &blocks[i].values[key]);
			}
			json_object_end(json);
		}
	}
	json_array_end(json);
}

static void write_files(struct json *json, struct arena *arena, const struct config *config,
                        const struct config_files *files, const char *workspace)
{
	static const char *const layers[] = { "system", "user", "project" };
	const char *project = workspace ? arena_printf(arena, "%s/" CONFIG_PROJECT_NAME, workspace) : NULL;
	const char *const names[] = { files->only ? NULL : files->system, files->only ? files->only : files->user,
		                      project };
	_Static_assert(ARRAY_SIZE(layers) == CONFIG_LAYER_MAX && ARRAY_SIZE(names) == CONFIG_LAYER_MAX, "every layer");
	json_key(json, "files");
	json_array_begin(json);
	for (size_t i = 0; i < CONFIG_LAYER_MAX; i++) {
		if (!names[i])
			continue;
		json_object_begin(json);
		json_key_string(json, "layer", layers[i]);
		json_key_string(json, "file", names[i]);
		json_key_string(json, "in_force", config_snapshot_file(config, (enum config_layer)i));
		json_object_end(json);
	}
	json_array_end(json);
}

/* The directory whose project's file counts; NULL: none. */
static int open_workspace(struct arena *arena, const char *named, struct place *ret_place, int *ret_fd,
                          struct cordon_error *err)
{
	if (!named)
		return 0;
	if (*named != '/')
		return fail(err, CORDON_E_INVALID_REQUEST, 0, named, "the workspace's path must be absolute");
	if (beneath_resolve(arena, named, ret_place, ret_fd, err) < 0)
		return -1;
	return ret_place->is_directory
	               ? 0
	               : fail(err, CORDON_E_INVALID_REQUEST, 0, named, "a workspace must be a directory");
}

/* What each [[session]] asks for, in a session that has its pattern for an id; few patterns do not match themselves. */
static int check_sessions(struct config_store *store, const struct config *config, int project_fd, const char *project,
                          struct cordon_error *err)
{
	for (enum config_layer layer = 0; layer < CONFIG_LAYER_MAX; layer++) {
		size_t count;
		const struct config_block *blocks = config_snapshot_blocks(config, layer, &count);
		for (size_t i = 0; i < count; i++) {
			const struct config *its;
			if (config_store_take(store, blocks[i].match, project_fd, project, CONFIG_KEEP_NOTHING, 0, &its,
			                      err) < 0)
				return fail_boundary(err, "configuration");
			config_unref(its);
		}
	}
	return 0;
}

/* What would be read, and nothing that was good before in its place. */
static int check(const struct config_files *files, int project_fd, const char *project, bool sessions,
                 struct cordon_error *err)
{
	struct config_store *store;
	const struct config *config;
	if (config_store_open_files(NOWHERE, files, &store, err) < 0)
		return -1;
	int result = config_store_take(store, NULL, project_fd, project, CONFIG_KEEP_NOTHING, 0, &config, err);
	if (result == 0) {
		for (size_t i = 0; i < config->credential_count && sessions && result == 0; i++)
			result = credential_check(&config->credentials[i], err);
		if (sessions && result == 0)
			result = check_sessions(store, config, project_fd, project, err);
		config_unref(config);
	}
	config_store_unref(store);
	return result;
}

/* Why a file is not in force as it is now, said once to commands and always here; NULL: all of them are. */
static const char *find_note(struct arena *arena, const struct config_files *files, int project_fd, const char *project)
{
	struct cordon_error why;
	if (check(files, project_fd, project, false, &why) == 0)
		return NULL;
	return arena_printf(arena, "%s: %s%s%s", why.subject, why.reason, *why.remediation ? ": " : "",
	                    why.remediation);
}

static int show(struct cordon *cordon, struct arena *arena, const char *workspace, char **ret_json,
                struct cordon_error *err)
{
	const struct config *config;
	struct place place = { 0 };
	auto_close int fd = -1;
	struct json json;
	if (open_workspace(arena, workspace, &place, &fd, err) < 0 ||
	    config_store_take(cordon->config, NULL, fd, place.path, CONFIG_KEEP_NOTHING, handle_mounts(cordon, false),
	                      &config, err) < 0)
		return -1;
	json_init(&json);
	json_object_begin(&json);
	write_files(&json, arena, config, config_store_files(cordon->config), place.path);
	write_settings(&json, arena, config);
	write_blocks(&json, arena, config);
	write_tables(&json, arena, config, SECTION_credentials);
	write_tables(&json, arena, config, SECTION_gateway);
	json_key_string(&json, "note", find_note(arena, config_store_files(cordon->config), fd, place.path));
	json_object_end(&json);
	config_unref(config);
	char *text = json_take(&json);
	if (!text)
		return fail_oom(err);
	*ret_json = text;
	return 0;
}

int cordon_config_show(struct cordon *cordon, const char *workspace, char **ret_json, struct cordon_error *err)
{
	struct arena arena = { 0 };
	if (call_check(err, cordon, ret_json) < 0 || handle_check(cordon, err) < 0)
		return -1;
	int result = show(cordon, &arena, workspace, ret_json, err);
	arena_free(&arena);
	return result;
}

/* ---- checking --------------------------------------------------------------------------------------------------- */

/* A project's file is good if it narrows what is in force. */
static int check_project(const struct config_files *files, const char *file, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct place place;
	struct stat info;
	auto_close int fd = -1;
	const char *above = arena_strndup(&arena, file, (size_t)(strrchr(file, '/') - file) + 1);
	int result = above ? open_workspace(&arena, above, &place, &fd, err) : fail_oom(err);
	if (result == 0 && fstatat(fd, CONFIG_PROJECT_NAME, &info, AT_SYMLINK_NOFOLLOW) < 0) {
		fail(err, CORDON_E_CONFIG_INVALID, errno, file, "cannot read the configuration");
		result = fail_boundary(err, "configuration");
	}
	if (result == 0)
		result = check(files, fd, place.path, true, err);
	arena_free(&arena);
	return result;
}

int cordon_config_check(struct cordon *cordon, const char *file, struct cordon_error *err)
{
	if (call_check(err, cordon) < 0 || handle_check(cordon, err) < 0)
		return -1;
	struct config_files files = *config_store_files(cordon->config);
	if (!file)
		return check(&files, -1, NULL, true, err);
	if (*file != '/')
		return fail(err, CORDON_E_INVALID_REQUEST, 0, file, "the file's path must be absolute");
	if (!strcmp(strrchr(file, '/') + 1, CONFIG_PROJECT_NAME))
		return check_project(&files, file, err);
	files.only = file;
	return check(&files, -1, NULL, true, err);
}

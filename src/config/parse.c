/* A file's text into values: which key is which row. What a value must be is in value.c. */
#include "config/parse.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "policy/gateway.h"

static enum config_section find_section(const struct toml_value *member)
{
	enum config_section section = 0;
	while (section < SECTION_MAX && (strcmp(config_section_names[section], member->key) ||
	                                 strlen(member->key) != member->key_length))
		section++;
	return section;
}

/* The row of this section, or with SECTION_MAX of any. */
static const struct config_row *find_row(enum config_section section, const char *key, size_t length)
{
	for (const struct config_row *row = config_rows; row < config_rows + KEY_MAX; row++)
		if ((section == SECTION_MAX || row->section == section) && !strcmp(row->key, key) &&
		    strlen(key) == length)
			return row;
	return NULL;
}

/* A key in the wrong table is as frequent as a misspelt one. */
static int refuse_key(const struct config_reader *reader, enum config_section section, const struct toml_value *member,
                      const struct strings *known, struct cordon_error *err)
{
	const struct config_row *elsewhere = find_row(SECTION_MAX, member->key, member->key_length);
	const char *nearest = known->count ? text_nearest(member->key, known->items, known->count) : NULL;
	if (section < SECTION_MAX)
		toml_fail(err, reader->file, member, "there is no key \"%s\" in [%s]", member->key,
		          config_section_names[section]);
	else
		toml_fail(err, reader->file, member, "there is no section or key \"%s\" here", member->key);
	if (elsewhere)
		return fail_remedy(err, "did you mean %s? It belongs in [%s]", elsewhere->path,
		                   config_section_names[elsewhere->section]);
	return nearest ? fail_remedy(err, "did you mean %s?", nearest)
	               : fail_remedy(err, "cordon config docs lists every key");
}

static int read_section(const struct config_reader *reader, enum config_section section, const struct toml_value *table,
                        struct config_value *values, struct cordon_error *err)
{
	struct strings known = { 0 };
	if (table->type != TOML_TABLE)
		return toml_fail(err, reader->file, table, "%s must be a table, and this is %s",
		                 config_section_names[section], toml_type_names[table->type]);
	for (const struct config_row *row = config_rows; row < config_rows + KEY_MAX; row++)
		if (row->section == section && strings_add(reader->arena, &known, row->key) < 0)
			return fail_oom(err);
	for (size_t i = 0; i < table->count; i++) {
		const struct toml_value *member = table->items[i];
		const struct config_row *row = find_row(section, member->key, member->key_length);
		if (!row)
			return refuse_key(reader, section, member, &known, err);
		struct config_value *value = &values[row - config_rows];
		if (config_value_read(reader, row, member, value, err) < 0)
			return -1;
		value->file = reader->file;
		value->at = member;
	}
	return 0;
}

/* Strict means that nothing starts others, unless that is set too. */
static void imply_spawn(struct config_value *values)
{
	const struct config_value *preset = &values[KEY_capabilities_preset];
	struct config_value *spawn = &values[KEY_capabilities_spawn];
	if (!preset->file || spawn->file)
		return;
	*spawn = *preset;
	spawn->implied = true;
}

static int read_block(const struct config_reader *reader, const struct toml_value *table, struct config_block *block,
                      struct cordon_error *err)
{
	const struct toml_value *match = toml_member(table, "match");
	struct strings known = { 0 };
	if (!match)
		return toml_fail(err, reader->file, table, "a [[session]] needs a match: which sessions it is for");
	if (match->type != TOML_STRING || !match->length || strlen(match->text) != match->length)
		return toml_fail(err, reader->file, match, "match must be a text that is not empty");
	block->match = match->text;
	block->at = table;
	if (strings_add(reader->arena, &known, "match") < 0)
		return fail_oom(err);
	for (enum config_section section = 0; section < SECTION_MAX; section++)
		if (config_section_in_session[section] &&
		    strings_add(reader->arena, &known, config_section_names[section]) < 0)
			return fail_oom(err);
	for (size_t i = 0; i < table->count; i++) {
		enum config_section section = find_section(table->items[i]);
		if (table->items[i] == match)
			continue;
		if (section == SECTION_MAX || !config_section_in_session[section])
			return refuse_key(reader, SECTION_session, table->items[i], &known, err);
		if (read_section(reader, section, table->items[i], block->values, err) < 0)
			return -1;
	}
	imply_spawn(block->values);
	return 0;
}

static int read_blocks(const struct config_reader *reader, const struct toml_value *array, struct config_file *file,
                       struct cordon_error *err)
{
	if (array->type != TOML_ARRAY)
		return toml_fail(err, reader->file, array, "session must be tables, each beginning with [[session]]");
	if (array->count > CONFIG_BLOCKS_MAX)
		return toml_fail(err, reader->file, array, "there are more than %d [[session]]", CONFIG_BLOCKS_MAX);
	file->blocks = arena_alloc(reader->arena, (array->count + 1) * sizeof(*file->blocks));
	if (!file->blocks)
		return fail_oom(err);
	for (size_t i = 0; i < array->count; i++) {
		if (array->items[i]->type != TOML_TABLE)
			return toml_fail(err, reader->file, array->items[i], "a [[session]] must be a table");
		if (read_block(reader, array->items[i], &file->blocks[file->block_count++], err) < 0)
			return -1;
	}
	return 0;
}

/* Sixty-four letters, digits and the like: it is shown, and part of a ledger's row. */
static bool is_block_name(const struct toml_value *table)
{
	size_t length = strspn(table->key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
	return length && length == table->key_length && length < 64;
}

/* Where it is from, and who gets it. */
static int check_credential(const struct config_block *block, struct cordon_error *err)
{
	const struct config_value *values = block->values;
	int sources = !!values[KEY_credentials_file].file + !!values[KEY_credentials_env].file +
	              !!values[KEY_credentials_command].file;
	bool has_variable = values[KEY_credentials_variable].file,
	     has_programs = values[KEY_credentials_programs].list.count;
	if (sources != 1) {
		toml_fail(err, block->file, block->at, "credentials.%s has %s: file, env or command", block->match,
		          sources ? "more than one source" : "no source");
		return fail_remedy(err, "say one of the three");
	}
	if (has_variable != has_programs) {
		toml_fail(err, block->file, block->at, "credentials.%s has %s", block->match,
		          has_variable ? "a variable, and no programs that get it" :
		                         "programs, and no variable in which they get it");
		return fail_remedy(err, "programs = [\"/usr/bin/gh\"] names who gets it, variable = \"GH_TOKEN\" in "
		                        "which; a gateway needs neither");
	}
	return 0;
}

static int read_credentials(const struct config_reader *reader, const struct toml_value *table,
                            struct config_file *file, struct cordon_error *err)
{
	if (table->type != TOML_TABLE)
		return toml_fail(err, reader->file, table,
		                 "credentials must be tables, each beginning with [credentials.NAME]");
	if (table->count > CONFIG_BLOCKS_MAX)
		return toml_fail(err, reader->file, table, "there are more than %d credentials", CONFIG_BLOCKS_MAX);
	file->credentials = arena_alloc(reader->arena, (table->count + 1) * sizeof(*file->credentials));
	if (!file->credentials)
		return fail_oom(err);
	for (size_t i = 0; i < table->count; i++) {
		const struct toml_value *member = table->items[i];
		struct config_block *block = &file->credentials[file->credential_count++];
		if (member->type != TOML_TABLE) {
			toml_fail(err, reader->file, member, "a credential must be a table");
			return fail_remedy(err, "begin it with [credentials.NAME]");
		}
		if (!is_block_name(member))
			return toml_fail(err, reader->file, member,
			                 "the name of a credential must be letters, digits, _, - and dots, 63 at most");
		block->match = member->key;
		block->file = reader->file;
		block->at = member;
		if (read_section(reader, SECTION_credentials, member, block->values, err) < 0 ||
		    check_credential(block, err) < 0)
			return -1;
	}
	return 0;
}

/* https://HOST[:PORT][/PATH], and what a header may be. */
static int check_gateway(const struct config_block *block, struct cordon_error *err)
{
	const struct config_value *values = block->values, *header = &values[KEY_gateway_header],
				  *prefix = &values[KEY_gateway_prefix];
	static const enum config_key needed[] = { KEY_gateway_name, KEY_gateway_upstream, KEY_gateway_credential,
	                                          KEY_gateway_base_url };
	struct gateway_upstream upstream;
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!values[needed[i]].file)
			return toml_fail(err, block->file, block->at, "a [[gateway]] needs a %s",
			                 config_rows[needed[i]].key);
	const char *why = gateway_parse_upstream(values[KEY_gateway_upstream].text, &upstream);
	if (why) {
		toml_fail(err, block->file, values[KEY_gateway_upstream].at, "gateway.upstream: %s", why);
		return fail_remedy(err, "write such as \"https://api.example.com\" or \"https://example.com:8443/v1\"");
	}
	if (header->file && !gateway_is_header(header->text))
		return toml_fail(err, block->file, header->at,
		                 "gateway.header must be a header's name: letters, digits and -");
	if (prefix->file && strlen(prefix->text) > GATEWAY_HEADER_MAX)
		return toml_fail(err, block->file, prefix->at, "gateway.prefix is too long");
	return 0;
}

static int read_gateways(const struct config_reader *reader, const struct toml_value *array, struct config_file *file,
                         struct cordon_error *err)
{
	if (array->type != TOML_ARRAY)
		return toml_fail(err, reader->file, array, "gateway must be tables, each beginning with [[gateway]]");
	if (array->count > GATEWAYS_MAX)
		return toml_fail(err, reader->file, array, "there are more than %d [[gateway]]", GATEWAYS_MAX);
	file->gateways = arena_alloc(reader->arena, (array->count + 1) * sizeof(*file->gateways));
	if (!file->gateways)
		return fail_oom(err);
	for (size_t i = 0; i < array->count; i++) {
		struct config_block *block = &file->gateways[file->gateway_count++];
		if (array->items[i]->type != TOML_TABLE)
			return toml_fail(err, reader->file, array->items[i], "a [[gateway]] must be a table");
		block->file = reader->file;
		block->at = array->items[i];
		if (read_section(reader, SECTION_gateway, array->items[i], block->values, err) < 0 ||
		    check_gateway(block, err) < 0)
			return -1;
		block->match = block->values[KEY_gateway_name].text;
	}
	return 0;
}

int config_parse(const struct config_reader *reader, const char *text, size_t length, struct config_file *ret_file,
                 struct cordon_error *err)
{
	const struct strings sections = { .items = (const char **)config_section_names, .count = SECTION_MAX };
	const struct toml_value *root;
	struct config_file file = { 0 };
	if (toml_parse(reader->arena, reader->file, text, length, &root, err) < 0)
		return -1;
	for (size_t i = 0; i < root->count; i++) {
		enum config_section section = find_section(root->items[i]);
		if (section == SECTION_MAX)
			return refuse_key(reader, SECTION_MAX, root->items[i], &sections, err);
		int result = section == SECTION_session       ? read_blocks(reader, root->items[i], &file, err)
		             : section == SECTION_credentials ? read_credentials(reader, root->items[i], &file, err)
		             : section == SECTION_gateway
		                     ? read_gateways(reader, root->items[i], &file, err)
		                     : read_section(reader, section, root->items[i], file.values, err);
		if (result < 0)
			return -1;
	}
	imply_spawn(file.values);
	*ret_file = file;
	return 0;
}

/* Values that are tables: variables, addresses of names, groups of hosts. See parse.h. */
#include <string.h>

#include "base/error.h"
#include "config/parse.h"
#include "policy/env.h"
#include "policy/host.h"

#define VARIABLE_LENGTH_MAX (32 * 4096 - 1)     /* MAX_ARG_STRLEN with its NUL */

/* No message shows a value: it may be a secret. */
int config_variables_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                          struct config_value *value, struct cordon_error *err)
{
	struct cordon_error why;
	if (at->type != TOML_TABLE)
		return config_refuse_type(reader, row, at, err);
	if (at->count > CONFIG_LIST_MAX)
		return toml_fail(err, reader->file, at, "%s has more than %d variables", row->path, CONFIG_LIST_MAX);
	for (size_t i = 0; i < at->count; i++) {
		const struct toml_value *member = at->items[i];
		if (env_check_name(member->key, member->key_length, &why) < 0)
			return toml_fail(err, reader->file, member, "%s", why.reason);
		if (member->type != TOML_STRING)
			return toml_fail(err, reader->file, member, "the variable %s must be a string, and this is %s",
			                 member->key, toml_type_names[member->type]);
		if (strlen(member->text) != member->length)
			return toml_fail(err, reader->file, member, "the value of the variable %s has a NUL in it",
			                 member->key);
		if (member->key_length + 1 + member->length > VARIABLE_LENGTH_MAX - 1)
			return toml_fail(err, reader->file, member,
			                 "the variable %s is longer than the kernel passes on (128 KiB)", member->key);
		const char *pair = arena_printf(reader->arena, "%s=%s", member->key, member->text);
		if (strings_add(reader->arena, &value->list, pair) < 0)
			return fail_oom(err);
	}
	return 0;
}

static int read_name_address(const struct config_reader *reader, const char *name, const struct toml_value *at,
                             struct config_value *value, struct cordon_error *err)
{
	struct address address;
	char text[ADDRESS_TEXT_SIZE];
	if (at->type != TOML_STRING)
		return toml_fail(err, reader->file, at, "the address of %s must be a string, and this is %s", name,
		                 toml_type_names[at->type]);
	if (!address_parse(at->text, at->length, &address)) {
		toml_fail(err, reader->file, at, "the address of %s is none", name);
		return fail_remedy(err, "write such as \"10.1.0.7\" or \"fd12::7\"");
	}
	address_text(&address, text);
	return strings_add(reader->arena, &value->list, arena_printf(reader->arena, "%s=%s", name, text)) < 0
	               ? fail_oom(err) : 0;
}

/* An entry for each address of each name. */
int config_addresses_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                          struct config_value *value, struct cordon_error *err)
{
	if (at->type != TOML_TABLE)
		return config_refuse_type(reader, row, at, err);
	for (size_t i = 0; i < at->count; i++) {
		const struct toml_value *member = at->items[i];
		bool several = member->type == TOML_ARRAY;
		struct host host;
		const char *why = host_parse(member->key, member->key_length, &host);
		if (!why && host.form != HOST_NAME)
			why = "it is an address";
		if (why)
			return toml_fail(err, reader->file, member, "%s: \"%s\" is not a name: %s", row->path,
			                 member->key, why);
		if (several && !member->count)
			return toml_fail(err, reader->file, member, "%s: \"%s\" has no address", row->path,
			                 member->key);
		for (size_t j = 0; j < (several ? member->count : 1); j++)
			if (read_name_address(reader, host.name, several ? member->items[j] : member, value, err) < 0)
				return -1;
		if (value->list.count > CONFIG_LIST_MAX)
			return toml_fail(err, reader->file, at, "%s has more than %d addresses", row->path,
			                 CONFIG_LIST_MAX);
	}
	return 0;
}

/* An entry NAME=HOST:PORT for each host of each group. */
int config_groups_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                       struct config_value *value, struct cordon_error *err)
{
	if (at->type != TOML_TABLE)
		return config_refuse_type(reader, row, at, err);
	for (size_t i = 0; i < at->count; i++) {
		const struct toml_value *member = at->items[i];
		if (strlen(member->key) != member->key_length || !host_is_group(member->key))
			return toml_fail(err, reader->file, member,
			                 "%s: a group's name is made of a-z, 0-9, - and _, and begins with a letter; "
			                 "none and all are no groups",
			                 row->path);
		if (member->type != TOML_ARRAY)
			return toml_fail(err, reader->file, member,
			                 "%s: the group %s must be a list of \"HOST:PORT\", and this is %s", row->path,
			                 member->key, toml_type_names[member->type]);
		if (value->list.count + member->count > CONFIG_LIST_MAX)
			return toml_fail(err, reader->file, at, "%s has more than %d hosts", row->path,
			                 CONFIG_LIST_MAX);
		for (size_t j = 0; j < member->count; j++) {
			const char *host;
			if (config_text_read(reader, row, member->items[j], err) < 0 ||
			    config_host_read(reader, row, member->items[j], &host, err) < 0)
				return -1;
			if (strings_add(reader->arena, &value->list,
			                arena_printf(reader->arena, "%s=%s", member->key, host)) < 0)
				return fail_oom(err);
		}
	}
	return 0;
}

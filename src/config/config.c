/* What is in force, as the rest of the library wants it: rows into the fields of struct config. */
#include "config/config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "config/resolve.h"
#include "policy/gateway.h"
#include "secrets/credential.h"

/* ---- the defaults ----------------------------------------------------------------------------------------------- */

/* All rows as one document: parsing many is slower, and every process does it. */
static char *default_text(struct arena *arena)
{
	size_t size = 1, used = 0;
	for (const struct config_row *row = config_rows; row < config_rows + KEY_MAX; row++)
		size += strlen(row->path) + strlen(" = \n") + strlen(row->fallback);
	char *text = arena_alloc(arena, size);
	for (const struct config_row *row = config_rows; text && row < config_rows + KEY_MAX; row++)
		if (*row->fallback)
			used += (size_t)snprintf(text + used, size - used, "%s = %s\n", row->path, row->fallback);
	return text;
}

int config_defaults(struct arena *arena, struct config_value *ret_values, struct cordon_error *err)
{
	const struct config_reader reader = { .arena = arena, .file = "default" };
	struct config_file file;
	const char *text = default_text(arena);
	if (!text)
		return fail_oom(err);
	if (config_parse(&reader, text, strlen(text), &file, err) < 0)
		return -1;
	for (enum config_key key = 0; key < KEY_MAX; key++) {
		ret_values[key] = file.values[key];
		ret_values[key].file = NULL;
		/* Of what is a bound, none. */
		if (!*config_rows[key].fallback)
			ret_values[key].number = UINT64_MAX;
	}
	return 0;
}

void config_state_begin(const struct config_value *defaults, struct config_state *ret_state)
{
	*ret_state = (struct config_state){ .defaults = defaults };
	memcpy(ret_state->values, defaults, sizeof(ret_state->values));
}

/* ---- capabilities ----------------------------------------------------------------------------------------------- */

static const struct {
	enum config_key key;
	size_t offset;
} capability_lists[] = {
#define LIST(key) { KEY_capabilities_##key, offsetof(struct capability_set, key) }
	LIST(fs_read), LIST(fs_write), LIST(programs), LIST(devices), LIST(sockets), LIST(deny), LIST(protect),
#undef LIST
}, limits[] = {
#define LIMIT(key, field) { KEY_limits_##key, offsetof(struct capability_set, limits.field) }
	LIMIT(memory, memory_bytes),
	LIMIT(cpu, cpu_percent),
	LIMIT(processes, processes),
	LIMIT(disk, disk_bytes),
	LIMIT(time, wall_ms),
	LIMIT(stdout, stdout_bytes),
	LIMIT(stderr, stderr_bytes),
	LIMIT(open_files, open_files),
	LIMIT(tmp, tmp_bytes),
#undef LIMIT
};
_Static_assert(ARRAY_SIZE(limits) * sizeof(uint64_t) == sizeof(struct limits), "every limit has a key");

int config_capabilities(struct arena *arena, const struct config_value *values, struct capability_set *ret_set)
{
	/* The words that may replace the list, in the row's order. */
	static const enum network_mode modes[] = { NETWORK_HOSTS, NETWORK_NONE, NETWORK_ALL };
	const struct config_value *network = &values[KEY_capabilities_network];
	struct capability_set set;
	if (capability_baseline(arena, values[KEY_capabilities_spawn].number, &set) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(capability_lists); i++)
		memcpy((char *)&set + capability_lists[i].offset, &values[capability_lists[i].key].list,
		       sizeof(struct strings));
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		memcpy((char *)&set + limits[i].offset, &values[limits[i].key].number, sizeof(uint64_t));
	set.network = modes[network->number];
	set.hosts = network->list;
	*ret_set = set;
	return 0;
}

/* ---- the rest --------------------------------------------------------------------------------------------------- */

/* The word that was chosen, or NULL where nothing was said. */
static int chosen_word(struct arena *arena, const struct config_state *state, enum config_key key,
                       const char **ret_word)
{
	struct strings words;
	const struct config_value *value = &state->values[key];
	*ret_word = NULL;
	if (!value->file)
		return 0;
	if (config_row_words(arena, &config_rows[key], &words) < 0)
		return -1;
	*ret_word = words.items[value->number];
	return 0;
}

static int assemble_rules(struct arena *arena, const struct config_value *values, struct tool_rules *ret_rules,
                          struct cordon_error *err)
{
	struct tool_rules made = { .allowed_paths = values[KEY_policy_allowed_paths].list,
	                           .denied_paths = values[KEY_policy_denied_paths].list };
	for (size_t i = 0; i < values[KEY_policy_rules].rule_count; i++) {
		const struct rule *rule = &values[KEY_policy_rules].rules[i];
		if (i && rule->layer != rule[-1].layer)
			rules_next_layer(&made);
		if (rules_add(arena, &made, rule->tool, rule->match, rule->decision, rule->where, err) < 0)
			return -1;
	}
	*ret_rules = made;
	return 0;
}

/* They were read as NAME=ADDRESS, both as they are compared. */
static int assemble_names(struct arena *arena, const struct strings *list, struct config *config,
                          struct cordon_error *err)
{
	struct static_name *names = arena_alloc(arena, (list->count + 1) * sizeof(*names));
	if (!names)
		return fail_oom(err);
	for (size_t i = 0; i < list->count; i++) {
		const char *entry = list->items[i], *address = strchr(entry, '=') + 1;
		names[i].name = arena_strndup(arena, entry, (size_t)(address - 1 - entry));
		if (!names[i].name || !address_parse(address, strlen(address), &names[i].address))
			return fail_oom(err);
	}
	config->network.names = names;
	config->network.name_count = list->count;
	return 0;
}

static int assemble_network(struct arena *arena, const struct config_value *values, struct config *config,
                            struct cordon_error *err)
{
	const struct strings *list = &values[KEY_network_allow_private].list;
	struct address_range *ranges = arena_alloc(arena, (list->count + 1) * sizeof(*ranges));
	if (!ranges)
		return fail_oom(err);
	for (size_t i = 0; i < list->count; i++)
		if (address_exemption_parse(list->items[i], &ranges[i], err) < 0)
			return -1;
	config->network.exempt = ranges;
	config->network.exempt_count = list->count;
	config->network.groups = values[KEY_network_groups].list;
	config->network.private_hosts = values[KEY_network_private_hosts].list;
	return assemble_names(arena, &values[KEY_network_names].list, config, err);
}

static int assemble_credentials(struct arena *arena, const struct config_state *state, struct config *config,
                                struct cordon_error *err)
{
	struct credential *credentials = arena_alloc(arena, (state->credential_count + 1) * sizeof(*credentials));
	if (!credentials)
		return fail_oom(err);
	for (size_t i = 0; i < state->credential_count; i++) {
		const struct config_value *values = state->credentials[i]->values;
		const struct config_value *timeout = &values[KEY_credentials_timeout];
		credentials[i] = (struct credential){
			.name = state->credentials[i]->match,
			.file = values[KEY_credentials_file].text,
			.from_variable = values[KEY_credentials_env].text,
			.command = values[KEY_credentials_command].list,
			.timeout_ms = timeout->file ? timeout->number : CREDENTIAL_TIMEOUT_MS,
			.variable = values[KEY_credentials_variable].text,
			.programs = values[KEY_credentials_programs].list,
		};
	}
	config->credentials = credentials;
	config->credential_count = state->credential_count;
	return 0;
}

static const struct credential *find_credential(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->credential_count; i++)
		if (!strcmp(config->credentials[i].name, name))
			return &config->credentials[i];
	return NULL;
}

static int assemble_gateways(struct arena *arena, const struct config_state *state, struct config *config,
                             struct cordon_error *err)
{
	struct gateway *gateways = arena_alloc(arena, (state->gateway_count + 1) * sizeof(*gateways));
	if (!gateways)
		return fail_oom(err);
	for (size_t i = 0; i < state->gateway_count; i++) {
		const struct config_block *block = state->gateways[i];
		const struct config_value *values = block->values;
		const char *header = values[KEY_gateway_header].text, *prefix = values[KEY_gateway_prefix].text;
		gateways[i] = (struct gateway){
			.name = block->match,
			.credential = find_credential(config, values[KEY_gateway_credential].text),
			.header = header ? header : "Authorization",
			.prefix = prefix ? prefix :
			          header ? "" :
			                   "Bearer ",
			.base_url = values[KEY_gateway_base_url].text,
			.placeholder = values[KEY_gateway_placeholder].text,
			.ca_file = values[KEY_gateway_ca_file].text,
		};
		if (gateway_parse_upstream(values[KEY_gateway_upstream].text, &gateways[i].upstream) ||
		    i == GATEWAYS_MAX)
			return toml_fail(err, block->file, block->at, "there are more than %d [[gateway]] in all",
			                 GATEWAYS_MAX);
		if (!gateways[i].credential)
			return toml_fail(err, block->file, values[KEY_gateway_credential].at,
			                 "gateway.credential: there is no [credentials.%s]",
			                 values[KEY_gateway_credential].text);
	}
	config->gateways = gateways;
	config->gateway_count = state->gateway_count;
	return 0;
}

static uint32_t walls_of(const struct strings *names)
{
	uint32_t walls = 0;
	for (const struct config_limit *limit = config_limits; limit->name; limit++)
		if (strings_find(names, limit->name) >= 0)
			walls |= UINT32_C(1) << limit->wall;
	return walls;
}

/* In a normal set 0 is no limit. */
static uint64_t least(uint64_t usual, uint64_t limit)
{
	return limit && limit < usual ? limit : usual == UINT64_MAX ? 0 : usual;
}

/* The usual time of commands counts as a limit. Output that is not kept has none. */
static struct limits chosen_limits(const struct config_value *values, const struct config *config)
{
	struct capability_set set = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (values[limits[i].key].file && !values[limits[i].key].implied)
			memcpy((char *)&set + limits[i].offset, &values[limits[i].key].number, sizeof(uint64_t));
	if (values[KEY_sandbox_default_timeout].file)
		set.limits.wall_ms = config->usual.wall_ms;
	set.limits.stdout_bytes = set.limits.stderr_bytes = 0;
	return set.limits;
}

int config_assemble(struct arena *arena, const struct config_state *state, struct config *ret_config,
                    struct cordon_error *err)
{
	const struct config_value *values = state->values;
	struct capability_set set;
	struct config config = {
		.enabled = values[KEY_sandbox_enabled].number,
		.degrade = values[KEY_sandbox_on_unavailable].number,
		.workspace_root = values[KEY_sandbox_workspace_root].text,
		.tools_dir = values[KEY_tools_dir].text,
		.caches = (enum caches_mode)values[KEY_sandbox_caches].number,
		.choose_toolchains = !values[KEY_sandbox_toolchains].number,
		.toolchains = values[KEY_sandbox_toolchains].list,
		.etc = values[KEY_sandbox_etc].list,
		.read_only = values[KEY_capabilities_read_only].list,
		.required_limits = walls_of(&values[KEY_limits_required].list),
		.cgroup = values[KEY_limits_cgroup].text,
		.env_pass = values[KEY_env_passthrough].list,
		.env_set = values[KEY_env_set].list,
		.approval = { .timeout_ms = values[KEY_approval_timeout].number,
		              .denials_to_pause = (unsigned)values[KEY_approval_denials_to_pause].number,
		              .own_approver = !values[KEY_approval_approver].number,
		              .queue = values[KEY_approval_queue].number },
		.network = { .connections = values[KEY_network_connections].number,
		             .total_connections = values[KEY_network_total_connections].number,
		             .connect_ms = values[KEY_network_connect_timeout].number,
		             .idle_ms = values[KEY_network_idle_timeout].number,
		             .header_bytes = values[KEY_network_header].number,
		             .bytes = values[KEY_network_bytes].number },
		.secrets = { .block = values[KEY_secrets_block].list, .redact = values[KEY_secrets_redact].list,
		             .report = values[KEY_secrets_report].list },
		.sync_disk = !values[KEY_audit_sync].number,
	};
	if (config.network.bytes == UINT64_MAX)
		config.network.bytes = 0;
	if (chosen_word(arena, state, KEY_sandbox_driver, &config.driver) < 0 ||
	    chosen_word(arena, state, KEY_sandbox_view, &config.view) < 0 ||
	    chosen_word(arena, state, KEY_secrets_output, &config.secrets.output) < 0 ||
	    chosen_word(arena, state, KEY_secrets_arguments, &config.secrets.arguments) < 0 ||
	    config_capabilities(arena, values, &set) < 0 ||
	    capability_normalise(arena, &set, &config.baseline, NULL) < 0)
		return fail_oom(err);
	if (assemble_rules(arena, values, &config.rules, err) < 0 ||
	    assemble_network(arena, values, &config, err) < 0 || assemble_credentials(arena, state, &config, err) < 0 ||
	    assemble_gateways(arena, state, &config, err) < 0)
		return -1;
	config.project_deny = state->project_deny;
	config.project_protect = state->project_protect;
	const struct limits *all = &config.baseline.limits;
	config.usual.wall_ms = least(values[KEY_sandbox_default_timeout].number, all->wall_ms);
	config.usual.stdout_bytes = least(values[KEY_sandbox_max_output].number, all->stdout_bytes);
	config.usual.stderr_bytes = least(values[KEY_sandbox_max_output].number, all->stderr_bytes);
	config.usual.job_ms = least(values[KEY_sandbox_job_timeout].number, 0);
	config.chosen = chosen_limits(values, &config);
	*ret_config = config;
	return 0;
}

/* Step 6: the ledger. An intent row is written before the command starts and a result row closes it; a refusal gets a
 * denial row. With the intent room is reserved for the rows that the command causes, so that a command which fills
 * the disk is recorded like any other. Arguments are recorded by their shape and a hash, never by value: they may
 * hold secrets. */
#include <sodium/utils.h>
#include <stdio.h>
#include <string.h>

#include "audit/ledger.h"
#include "audit/row.h"
#include "base/json.h"
#include "base/sha256.h"
#include "config/config.h"
#include "session/jobs.h"
#include "walk.h"

/* How many bytes one may become in JSON, and how far the denials may reach in a row. */
#define ESCAPED_MAX 6
#define DENIALS_END (LEDGER_LINE_MAX - 4096)
/* Reserved for the rows that a command causes, besides its program's name: its result, a limit, a refusal after its
 * start; and some of its connections, after which its network ends. What a row needs besides its denials. */
#define ROOM_ROWS 15000
#define ROOM_NETWORK 65536
#define ROOM_NO_NETWORK 1000    /* names that a command without a network asked for */
#define ROOM_REST 512
/* How many findings a row lists, and the most that one takes. */
#define SECRETS_IN_ROW 12
#define SECRET_IN_ROW 420

static void begin_row(struct json *json, const struct execution *execution, const char *kind)
{
	audit_row_begin(json, kind, execution->audit.id, execution->verdict.session.id);
}

static int end_row(struct json *json, struct execution *execution, struct cordon_error *err)
{
	if (leaks_clean_row(execution, json, err) < 0) {
		json_free(json);
		return -1;
	}
	return audit_row_end_in(json, execution->cordon->ledger, &execution->audit.room, err);
}

static size_t paths_length(const struct walk_tool *tool)
{
	size_t length = 0;
	for (size_t i = 0; i < ARRAY_SIZE(tool->paths); i++)
		length += tool->paths[i] ? strlen(tool->paths[i]) : 0;
	return length;
}

static int end_intent(struct json *json, struct execution *execution, struct cordon_error *err)
{
	const struct strings *argv = &execution->request->argv;
	const struct walk_tool *tool = execution->facts.tool;
	struct ledger_room *room = &execution->audit.room, *network = &execution->audit.network_room;
	size_t bytes = ROOM_ROWS + ESCAPED_MAX * (tool ? paths_length(tool) : strlen(argv->items[0]));
	bool connects = execution->verdict.grants.set.network == NETWORK_HOSTS;
	size_t network_bytes = !execution->verdict.profile.egress.count ? 0 : connects ? ROOM_NETWORK : ROOM_NO_NETWORK;
	json_object_end(json);
	if (leaks_clean_row(execution, json, err) < 0) {
		json_free(json);
		return -1;
	}
	size_t length = json->length;
	auto_free char *line = json_take(json);
	if (!line)
		return fail_oom(err);
	if (ledger_append_reserving(execution->cordon->ledger, line, length, bytes + network_bytes, room, err) < 0)
		return -1;
	/* What a command does in its network must not take the room of its result. */
	network->left = network_bytes;
	room->left -= network_bytes;
	return 0;
}

/* The shape is how many arguments and how long each; the hash tells whether two commands were the same. */
static void write_command(struct json *json, const struct strings *argv)
{
	crypto_hash_sha256_state state;
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof(hash) + 1];
	crypto_hash_sha256_init(&state);
	json_key_string(json, "program", argv->count ? argv->items[0] : "");
	json_key(json, "argv_shape");
	json_array_begin(json);
	for (size_t i = 0; i < argv->count; i++) {
		size_t length = strlen(argv->items[i]);
		if (i < 64)
			json_uint(json, length);
		sha256_update(&state, argv->items[i], length + 1);
	}
	json_array_end(json);
	sha256_final(&state, hash);
	json_key_string(json, "argv_sha256", sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash)));
}

static void write_tool(struct json *json, const struct walk_tool *tool)
{
	json_key_string(json, "tool", tool->name);
	json_key(json, "paths");
	json_array_begin(json);
	for (size_t i = 0; i < ARRAY_SIZE(tool->paths) && tool->paths[i]; i++)
		json_text(json, tool->paths[i]);
	json_array_end(json);
}

/* The command or the call of a file tool. */
static void write_what(struct json *json, const struct execution *execution)
{
	if (execution->facts.tool)
		write_tool(json, execution->facts.tool);
	else
		write_command(json, &execution->request->argv);
	if (execution->request->client_ref)
		json_key_string(json, "client_ref", execution->request->client_ref);
}

/* No limit is null: no reader of the ledger has so large a number. */
static void write_limit(struct json *json, const char *key, uint64_t limit)
{
	json_key(json, key);
	if (limit == UINT64_MAX)
		json_nil(json);
	else
		json_uint(json, limit);
}

static void write_capabilities(struct json *json, const struct capability_set *set)
{
	json_key(json, "capabilities");
	json_object_begin(json);
	json_key_strings(json, "fs_read", set->fs_read.items, set->fs_read.count);
	json_key_strings(json, "fs_write", set->fs_write.items, set->fs_write.count);
	json_key_string(json, "network", network_mode_names[set->network]);
	json_key_strings(json, "hosts", set->hosts.items, set->hosts.count);
	if (set->publish.count)
		json_key_strings(json, "publish", set->publish.items, set->publish.count);
	json_key_bool(json, "spawn", set->spawn);
	json_key_strings(json, "programs", set->programs.items, set->programs.count);
	json_key_strings(json, "devices", set->devices.items, set->devices.count);
	json_key_strings(json, "sockets", set->sockets.items, set->sockets.count);
	write_limit(json, "memory_bytes", set->limits.memory_bytes);
	write_limit(json, "processes", set->limits.processes);
	write_limit(json, "wall_ms", set->limits.wall_ms);
	json_object_end(json);
}

static void write_isolation(struct json *json, const char *const isolation[CORDON_WALL_MAX])
{
	json_object_begin(json);
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		if (isolation[wall])
			json_key_string(json, cordon_wall_name(wall), isolation[wall]);
	json_object_end(json);
}

/* A file of the configuration that is not in force, because it is invalid. */
static int write_note(struct execution *execution, struct cordon_error *err)
{
	struct json json;
	if (!execution->verdict.session.note)
		return 0;
	audit_row_begin(&json, "config", NULL, execution->verdict.session.id);
	json_key_string(&json, "audit_id", execution->audit.id);
	json_key_string(&json, "note", execution->verdict.session.note);
	return audit_row_end(&json, execution->cordon->ledger, err);
}

/* A job has its command's rows, and this in each. */
static void write_job(struct json *json, const struct execution *execution, const char *what)
{
	if (execution->request->job)
		json_key_string(json, "job", what);
}

int audit_step_intent(struct execution *execution, struct cordon_error *err)
{
	struct json json;
	if (write_note(execution, err) < 0)
		return -1;
	begin_row(&json, execution, "intent");
	write_what(&json, execution);
	json_key_string(&json, "cwd", execution->verdict.cwd.path);
	json_key_string(&json, "workspace", execution->verdict.session.workspace.path);
	json_key_string(&json, "driver", execution->verdict.session.driver->name);
	json_key_string(&json, "platform", SYSTEM_NAME);
	write_job(&json, execution, "started");
	write_capabilities(&json, &execution->verdict.grants.set);
	if (execution->verdict.grants.credentials.count)
		json_key_strings(&json, "credentials", execution->verdict.grants.credentials.items,
		                 execution->verdict.grants.credentials.count);
	execution->audit.intended = end_intent(&json, execution, err) == 0;
	return execution->audit.intended ? 0 : -1;
}

static void write_stream(struct json *json, const char *key, const struct captured *captured)
{
	json_key(json, key);
	json_object_begin(json);
	json_key_uint(json, "bytes", captured->total);
	json_key_string(json, "sha256", captured->sha256);
	json_key_bool(json, "truncated", captured->truncated);
	json_object_end(json);
}

static void write_denial(struct json *json, const char *what, const char *wall, const char *note)
{
	json_object_begin(json);
	json_key_string(json, "what", what);
	json_key_string(json, "wall", wall);
	json_key_string(json, "note", note);
	json_object_end(json);
}

static void write_network(struct json *json, const struct execution *execution)
{
	const struct egress_counts *counts = &execution->run.network;
	if (!execution->verdict.profile.egress.count || execution->verdict.profile.egress.is_offline)
		return;
	json_key(json, "network");
	json_object_begin(json);
	json_key_uint(json, "connections", counts->connections);
	json_key_uint(json, "bytes_in", counts->bytes_in);
	json_key_uint(json, "bytes_out", counts->bytes_out);
	json_key_uint(json, "denied", counts->denied);
	json_key_uint(json, "failed", counts->failed);
	json_object_end(json);
}

/* A row that is too long for the ledger would not be written at all: what does not fit is counted. */
static void write_denials(struct json *json, const struct execution *execution, size_t end)
{
	const struct cordon_denial *denials = execution->denials.items;
	size_t i = 0, count = execution->denials.count;
	json_key(json, "denials");
	json_array_begin(json);
	for (; i < count && json->length + ESCAPED_MAX * (strlen(denials[i].what) + strlen(denials[i].note)) < end; i++)
		write_denial(json, denials[i].what, denials[i].wall, denials[i].note);
	if (i < count) {
		char note[64];
		snprintf(note, sizeof(note), "%zu that are not listed", count - i);
		write_denial(json, "and more", denials[i].wall, note);
	}
	json_array_end(json);
}

/* One row more where a limit ended it: rows are found by their kind. */
static int write_limit_row(struct execution *execution, struct cordon_error *err)
{
	const struct limit_hit *hit = &execution->run.outcome.limit_hit;
	struct json json;
	if (!hit->name)
		return 0;
	begin_row(&json, execution, "limit");
	json_key_string(&json, "limit", hit->name);
	json_key_uint(&json, "used", hit->used);
	json_key_uint(&json, "allowed", hit->allowed);
	json_key_string(&json, "unit", hit->unit);
	return end_row(&json, execution, err);
}

/* As many as there is room for; all are counted. */
static void write_secrets(struct json *json, const struct execution *execution, size_t end)
{
	size_t count = execution->run.secret_count < SECRETS_IN_ROW ? execution->run.secret_count : SECRETS_IN_ROW;
	bool fits = json->length + count * SECRET_IN_ROW < end;
	leaks_write_json(json, execution->run.secrets, fits ? count : 0, execution->run.secrets_found);
}

/* It is most of the row. */
void audit_step_running(struct execution *execution)
{
	struct json json;
	json_init(&json);
	write_isolation(&json, execution->run.isolation);
	execution->audit.isolation = json_take(&json);
}

/* Its denials reach to `denials_end` at most. */
static int write_result_row(struct execution *execution, size_t denials_end, struct cordon_error *err)
{
	const struct outcome *outcome = &execution->run.outcome;
	struct json json;
	begin_row(&json, execution, "result");
	json_key_string(&json, "program", execution->request->argv.items[0]);
	json_key_string(&json, "driver", execution->verdict.session.driver->name);
	json_key(&json, "isolation");
	if (execution->audit.isolation)
		json_verbatim(&json, execution->audit.isolation);
	else
		write_isolation(&json, execution->run.isolation);
	write_job(&json, execution, execution->held.job && execution->held.job->killed ? "killed" : "ended");
	json_key_int(&json, "exit_code", execution->run.outcome.exit_code);
	json_key_int(&json, "signal", execution->run.outcome.signal);
	json_key_bool(&json, "timed_out", outcome->timed_out);
	json_key_bool(&json, "oom_killed", execution->run.outcome.oom_kills);
	json_key_string(&json, "limit_hit", execution->run.outcome.limit_hit.name);
	json_key_uint(&json, "duration_ms", outcome->duration_ms);
	if (outcome->paused_ms)
		json_key_uint(&json, "paused_ms", outcome->paused_ms);
	json_key_uint(&json, "cpu_ms", outcome->cpu_ms);
	json_key_uint(&json, "memory_peak_kb", execution->run.outcome.memory_peak_bytes / 1024);
	write_stream(&json, "stdout", &execution->run.outcome.streams[CORDON_STDOUT]);
	write_stream(&json, "stderr", &execution->run.outcome.streams[CORDON_STDERR]);
	write_network(&json, execution);
	write_secrets(&json, execution, denials_end);
	write_denials(&json, execution, denials_end);
	return end_row(&json, execution, err);
}

int audit_step_tool_result(struct execution *execution, uint64_t bytes, struct cordon_error *err)
{
	struct json json;
	begin_row(&json, execution, "result");
	write_tool(&json, execution->facts.tool);
	json_key_uint(&json, "bytes", bytes);
	write_secrets(&json, execution, DENIALS_END);
	if (execution->denials.count)
		write_denials(&json, execution, DENIALS_END);
	return end_row(&json, execution, err);
}

int audit_step_result(struct execution *execution, struct cordon_error *err)
{
	struct cordon_error full;
	if (write_limit_row(execution, err) < 0)
		return -1;
	if (write_result_row(execution, DENIALS_END, &full) == 0)
		return 0;
	/* Without the denials that do not fit into what is reserved, which the row counts. */
	size_t left = execution->audit.room.left;
	if ((full.os_errno == ENOSPC || full.os_errno == EDQUOT) && left > ROOM_REST)
		return write_result_row(execution, left - ROOM_REST, err);
	*err = full;
	return -1;
}

void audit_step_denial(struct execution *execution, struct cordon_error *err)
{
	struct json json;
	struct cordon_error unwritten;
	/* Switched off means that nothing is made, not even a record. */
	if (execution->verdict.session.config && !execution->verdict.session.config->enabled &&
	    execution->verdict.session.workspace_fd < 0)
		return;
	snprintf(err->audit_id, sizeof(err->audit_id), "%s", execution->audit.id);
	if (leaks_clean_error(execution, err) < 0)
		err->subject[0] = err->reason[0] = '\0';
	/* The refusal comes next in the ledger, or neither. */
	if (execution->stage < WALK_DECIDED)
		(void)!write_note(execution, &unwritten);
	begin_row(&json, execution, "denial");
	write_what(&json, execution);
	write_job(&json, execution, "refused");
	json_key(&json, "error");
	error_write_json(&json, err);
	if (err->class == CORDON_E_LEAK_BLOCKED && leaks_list(execution) == 0)
		write_secrets(&json, execution, DENIALS_END);
	/* The command is refused already; a ledger that cannot say so must not hide why. */
	if (end_row(&json, execution, &unwritten) < 0 && !execution->audit.intended)
		err->audit_id[0] = '\0';
}

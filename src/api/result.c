/* The result: a value of its own that outlives the execution, and its JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/result.h"
#include "base/json.h"
#include "base/text.h"
#include "egress/egress.h"
#include "walk.h"

/* The public struct first, so that the one is the other. */
struct kept_result {
	struct cordon_result public;
	struct cordon_error error;
	struct arena arena;
};

static const char *keep(struct kept_result *kept, const char *text)
{
	return text ? arena_strdup(&kept->arena, text) : NULL;
}

static void keep_stream(struct kept_result *kept, const struct captured *captured, const char **ret_data,
                        size_t *ret_length, uint64_t *ret_bytes, bool *ret_truncated)
{
	*ret_data = arena_strndup(&kept->arena, captured->data, captured->length);
	*ret_length = *ret_data ? captured->length : 0;
	*ret_bytes = captured->total;
	*ret_truncated = captured->truncated;
}

static int keep_secrets(struct kept_result *kept, const struct execution *execution)
{
	size_t count = execution->run.secret_count;
	struct cordon_secret *secrets = arena_alloc(&kept->arena, (count + 1) * sizeof(*secrets));
	if (!secrets)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const struct cordon_secret *from = &execution->run.secrets[i];
		secrets[i] = (struct cordon_secret){
			.kind = keep(kept, from->kind),
			.name = keep(kept, from->name),
			.where = keep(kept, from->where),
			.layer = keep(kept, from->layer),
			.fingerprint = keep(kept, from->fingerprint),
			.action = keep(kept, from->action),
			.offset = from->offset,
			.length = from->length,
		};
	}
	kept->public.secrets = secrets;
	kept->public.secret_count = count;
	kept->public.secrets_found = execution->run.secrets_found;
	return 0;
}

static int keep_denials(struct kept_result *kept, const struct execution *execution)
{
	size_t count = execution->denials.count;
	struct cordon_denial *denials = arena_alloc(&kept->arena, (count + 1) * sizeof(*denials));
	if (!denials)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const struct cordon_denial *denial = &execution->denials.items[i];
		denials[i] = (struct cordon_denial){ keep(kept, denial->what), keep(kept, denial->wall),
		                                     keep(kept, denial->note), keep(kept, denial->grant) };
	}
	kept->public.denials = denials;
	kept->public.denial_count = count;
	return 0;
}

/* To the command an input that fails has ended: it may have done half of what it was to do, and not know. */
static const char *note_of(struct kept_result *kept, const struct execution *execution)
{
	const char *note = execution->verdict.session.note;
	int error = execution->run.outcome.stdin_error;
	return error ? arena_printf(&kept->arena, "%s%s" TEXT_INPUT_CUT, note ? note : "", note ? "; " : "",
	                            strerror(error)) :
	               keep(kept, note);
}

static const char *network_hint(struct kept_result *kept, const struct execution *execution)
{
	/* With a terminal of its own, all it says is one stream. */
	bool is_one = execution->request->tty || execution->request->one_stream;
	const struct captured *said = &execution->run.outcome.streams[is_one ? CORDON_STDOUT : CORDON_STDERR];
	if (execution->run.offline_hint)
		return keep(kept, execution->run.offline_hint);
	if (!run_failed(execution))
		return NULL;
	return egress_hint(execution->verdict.grants.set.network, &execution->verdict.profile.egress,
	                   &execution->run.network, said->data, said->length);
}

/* What ended it; the first that holds. A command of a session that has ended is killed by the process that runs it. */
static const char *ended_by(const struct execution *execution)
{
	const char *limit = execution->run.outcome.limit_hit.name;
	bool killed = execution->run.outcome.signal != 0;
	if (execution->run.outcome.timed_out)
		return "time";
	if (limit && killed)
		return limit;
	if (execution->run.told_by)
		return execution->run.told_by;
	if (killed && !execution->verdict.session.one_off && session_wish((void *)(uintptr_t)execution) == COMMAND_END)
		return "session";
	return killed ? "signal" : "exit";
}

static struct kept_result *keep_result(const struct execution *execution)
{
	const struct outcome *outcome = &execution->run.outcome;
	struct kept_result *kept = calloc(1, sizeof(*kept));
	if (!kept)
		return NULL;
	struct cordon_result *result = &kept->public;
	*result = (struct cordon_result){
		.exit_code = execution->run.outcome.exit_code,
		.signal = execution->run.outcome.signal,
		.ended_by = ended_by(execution),
		.timed_out = outcome->timed_out,
		.oom_killed = outcome->oom_kills,
		.limit_hit = execution->run.outcome.limit_hit.name,
		.limit_unit = execution->run.outcome.limit_hit.unit,
		.limit_used = execution->run.outcome.limit_hit.used,
		.limit_allowed = execution->run.outcome.limit_hit.allowed,
		.duration_ms = outcome->duration_ms,
		.cpu_ms = outcome->cpu_ms,
		.max_rss_kb = outcome->max_rss_kb,
		.memory_peak_kb = outcome->memory_peak_bytes / 1024,
		.process_peak = outcome->process_peak,
		.stdin_bytes = outcome->stdin_bytes,
		.read_bytes = outcome->read_bytes,
		.written_bytes = outcome->written_bytes,
		.has_network = execution->verdict.profile.egress.count && !execution->verdict.profile.egress.is_offline,
		.connections = execution->run.network.connections,
		.bytes_in = execution->run.network.bytes_in,
		.bytes_out = execution->run.network.bytes_out,
		.connections_denied = execution->run.network.denied,
		.connections_failed = execution->run.network.failed,
		.network_hint = network_hint(kept, execution),
		.driver = execution->verdict.session.driver->name,
		.note = note_of(kept, execution),
		.audit_id = keep(kept, execution->audit.id),
		.paused_ms = outcome->paused_ms,
	};
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		result->isolation[wall] = keep(kept, execution->run.isolation[wall]);
	keep_stream(kept, &execution->run.outcome.streams[CORDON_STDOUT], &result->stdout_data, &result->stdout_length,
	            &result->stdout_bytes, &result->stdout_truncated);
	keep_stream(kept, &execution->run.outcome.streams[CORDON_STDERR], &result->stderr_data, &result->stderr_length,
	            &result->stderr_bytes, &result->stderr_truncated);
	result->truncated = result->stdout_truncated || result->stderr_truncated;
	kept->error = execution->audit.failed;
	result->error = kept->error.class == CORDON_OK ? NULL : &kept->error;
	if (keep_denials(kept, execution) < 0 || keep_secrets(kept, execution) < 0 || !result->stdout_data ||
	    !result->stderr_data) {
		cordon_result_unref(result);
		return NULL;
	}
	return kept;
}

int result_take(struct execution *execution, struct cordon_result **ret_result, struct cordon_error *err)
{
	struct cordon_error *failed = &execution->audit.failed;
	if (execution->stage < WALK_ENDED) {
		(void)!walk(execution, WALK_ENDED, failed);
		ledger_release(execution->cordon->ledger, &execution->audit.room);
	}
	struct kept_result *kept = execution->run.ended ? keep_result(execution) : NULL;
	if (kept)
		*ret_result = &kept->public;
	if (failed->class != CORDON_OK) {
		*err = *failed;
		return -1;
	}
	if (kept)
		return 0;
	fail_oom(err);
	return walk_fail_after_run(execution, CORDON_STEP_RUN, err);
}

void cordon_result_unref(struct cordon_result *result)
{
	if (!result)
		return;
	struct kept_result *kept = (struct kept_result *)(void *)result;
	arena_free(&kept->arena);
	free(kept);
}

static void write_denials(struct json *json, const struct cordon_result *result)
{
	json_key(json, "denials");
	json_array_begin(json);
	for (size_t i = 0; i < result->denial_count; i++) {
		json_object_begin(json);
		json_key_string(json, "what", result->denials[i].what);
		json_key_string(json, "wall", result->denials[i].wall);
		json_key_string(json, "note", result->denials[i].note);
		json_key_string(json, "grant", result->denials[i].grant);
		error_write_setting(json, result->denials[i].grant);
		json_object_end(json);
	}
	json_array_end(json);
}

/* What is not known is null: there is no command without memory or a process. */
static void write_known(struct json *json, const char *key, uint64_t number)
{
	json_key(json, key);
	if (number)
		json_uint(json, number);
	else
		json_nil(json);
}

static void write_limit(struct json *json, const struct cordon_result *result)
{
	json_key_string(json, "limit_hit", result->limit_hit);
	json_key(json, "limit");
	if (!result->limit_hit) {
		json_nil(json);
		return;
	}
	json_object_begin(json);
	json_key_string(json, "name", result->limit_hit);
	json_key_uint(json, "used", result->limit_used);
	json_key_uint(json, "allowed", result->limit_allowed);
	json_key_string(json, "unit", result->limit_unit);
	json_object_end(json);
}

static void write_network(struct json *json, const struct cordon_result *result)
{
	json_key(json, "network");
	if (!result->has_network) {
		json_nil(json);
	} else {
		json_object_begin(json);
		json_key_uint(json, "connections", result->connections);
		json_key_uint(json, "bytes_in", result->bytes_in);
		json_key_uint(json, "bytes_out", result->bytes_out);
		json_key_uint(json, "denied", result->connections_denied);
		json_key_uint(json, "failed", result->connections_failed);
		json_object_end(json);
	}
	json_key_string(json, cordon_class_name(CORDON_E_NETWORK_UNREACHABLE), result->network_hint);
}

/* Without what it wrote, which is no text of JSON's. */
static char *write_result(const struct cordon_result *result)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_int(&json, "exit_code", result->exit_code);
	json_key_int(&json, "signal", result->signal);
	json_key_string(&json, "ended_by", result->ended_by);
	json_key_bool(&json, "timed_out", result->timed_out);
	json_key_string(&json, "stdout", "");
	json_key_string(&json, "stderr", "");
	json_key_uint(&json, "stdout_bytes", result->stdout_bytes);
	json_key_uint(&json, "stderr_bytes", result->stderr_bytes);
	json_key_uint(&json, "stdin_bytes", result->stdin_bytes);
	json_key_bool(&json, "truncated", result->truncated);
	json_key_bool(&json, "oom_killed", result->oom_killed);
	write_limit(&json, result);
	json_key_uint(&json, "duration_ms", result->duration_ms);
	if (result->paused_ms)
		json_key_uint(&json, "paused_ms", result->paused_ms);
	json_key_uint(&json, "cpu_ms", result->cpu_ms);
	write_known(&json, "max_rss_kb", result->max_rss_kb);
	write_known(&json, "memory_peak_kb", result->memory_peak_kb);
	write_known(&json, "process_peak", result->process_peak);
	json_key_uint(&json, "read_bytes", result->read_bytes);
	json_key_uint(&json, "written_bytes", result->written_bytes);
	write_network(&json, result);
	json_key_string(&json, "driver", result->driver);
	json_key(&json, "isolation");
	json_object_begin(&json);
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		if (result->isolation[wall])
			json_key_string(&json, cordon_wall_name(wall), result->isolation[wall]);
	json_object_end(&json);
	write_denials(&json, result);
	leaks_write_json(&json, result->secrets, result->secret_count, result->secrets_found);
	if (result->note)
		json_key_string(&json, "note", result->note);
	if (result->error) {
		json_key(&json, "error");
		error_write_json(&json, result->error);
	}
	json_key_string(&json, "audit_id", result->audit_id);
	json_object_end(&json);
	return json_take(&json);
}

json_t *result_tree(const struct cordon_result *result)
{
	auto_free char *text = write_result(result);
	json_t *tree = value_parse(text);
	if (tree && json_object_set_new(tree, "stdout", value_bytes(result->stdout_data, result->stdout_length)) == 0 &&
	    json_object_set_new(tree, "stderr", value_bytes(result->stderr_data, result->stderr_length)) == 0)
		return tree;
	json_decref(tree);
	return NULL;
}

int cordon_result_value(const struct cordon_result *result, struct cordon_value **ret_value, struct cordon_error *err)
{
	return call_check(err, result, ret_value) < 0 ? -1 : value_take(result_tree(result), ret_value, err);
}

int result_as_value(int status, struct cordon_result *result, struct cordon_value **ret_value, struct cordon_error *err)
{
	/* Where there is an error already, that is the one to tell. */
	if (result && cordon_result_value(result, ret_value, status < 0 ? NULL : err) < 0)
		status = -1;
	cordon_result_unref(result);
	return status;
}

char *cordon_result_json(const struct cordon_result *result)
{
	auto_tree json_t *tree = result ? result_tree(result) : NULL;
	return tree ? value_write(tree) : NULL;
}

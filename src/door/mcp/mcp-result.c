/* What a command's result is to a program: the object that the tool's outputSchema describes. And in words, what a
 * model must not miss: which walls were missing, and what failed after the command had ended. */
#include "door/mcp/mcp-run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static void put_denials(struct json *json, const struct cordon_result *result)
{
	json_key(json, "denials");
	json_array_begin(json);
	for (size_t i = 0; i < result->denial_count; i++) {
		const struct cordon_denial *denial = &result->denials[i];
		/* What the policy hides is not told to whom it is hidden from. */
		if (strcmp(denial->wall, cordon_wall_name(CORDON_WALL_MASKED)) != 0)
			mcp_put_denial(json, denial->what, denial->wall, denial->note, denial->grant);
	}
	json_array_end(json);
}

static void put_isolation(struct json *json, const struct cordon_result *result)
{
	json_key_string(json, "driver", result->driver);
	json_key(json, "isolation");
	json_object_begin(json);
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		if (result->isolation[wall])
			json_key_string(json, cordon_wall_name(wall), result->isolation[wall]);
	json_object_end(json);
}

/* The hint ends with options of the command line, `--net HOST:PORT` each, which a model has no use for. */
static char *hint_for_model(const char *hint)
{
	static const char option[] = "--net ";
	const char *at = strstr(hint, option), *next = at;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	fprintf(out, "%.*s", (int)(at ? (size_t)(at - hint) : strlen(hint)), hint);
	if (at)
		fputs("call the tool request_capability with {\"hosts\":[", out);
	for (; next; next = strstr(next, option)) {
		next += sizeof(option) - 1;
		fprintf(out, "%s\"%.*s\"", next - at > (int)sizeof(option) ? "," : "", (int)strcspn(next, " "), next);
	}
	if (at)
		fputs("]}", out);
	fclose(out);
	return text;
}

static void put_hint(struct json *json, const char *hint)
{
	auto_free char *text = hint ? hint_for_model(hint) : NULL;
	json->failed |= hint && !text;
	json_key_string(json, "network_hint", text);
}

static void put_output(struct json *json, const struct cordon_result *result)
{
	json_key(json, "stdout");
	json_bytes(json, result->stdout_data, result->stdout_length);
	json_key(json, "stderr");
	json_bytes(json, result->stderr_data, result->stderr_length);
	json_key_uint(json, "stdout_bytes", result->stdout_bytes);
	json_key_uint(json, "stderr_bytes", result->stderr_bytes);
}

char *mcp_result_json(const struct mcp_call *call, const struct cordon_result *result)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_int(&json, "exit_code", result->exit_code);
	json_key_int(&json, "signal", result->signal);
	json_key_string(&json, "ended_by", result->ended_by);
	json_key_bool(&json, "timed_out", result->timed_out);
	json_key_bool(&json, "oom_killed", result->oom_killed);
	json_key_bool(&json, "truncated", result->truncated);
	put_output(&json, result);
	json_key_string(&json, "limit_hit", result->limit_hit);
	put_hint(&json, result->network_hint);
	json_key_uint(&json, "duration_ms", result->duration_ms);
	json_key_string(&json, "audit_id", result->audit_id);
	put_isolation(&json, result);
	put_denials(&json, result);
	if (result->note)
		json_key_string(&json, "note", result->note);
	if (result->error)
		mcp_put_error(&json, call, result->error);
	json_object_end(&json);
	return json_take(&json);
}

/* ---- in words -------------------------------------------------------------------------------------------------- */

static void say_missing_walls(FILE *out, const struct cordon_result *result)
{
	const char *before = NULL;
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++) {
		/* Where no control group can be had, no command's is, and cordon doctor tells. */
		if (!result->isolation[wall] || strcmp(result->isolation[wall], "none") ||
		    wall == CORDON_WALL_LIMIT_CPU)
			continue;
		if (!before)
			fprintf(out, "cordon: the driver %s did not hold: ", result->driver ? result->driver : "used");
		fprintf(out, "%s%s", before ? before : "", cordon_wall_name(wall));
		before = ", ";
	}
	if (before)
		fputc('\n', out);
}

char *mcp_result_words(const struct cordon_result *result)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	if (!out)
		return NULL;
	say_missing_walls(out, result);
	if (result->error)
		fprintf(out, "cordon: %s: %s\n", cordon_class_name(result->error->class), result->error->reason);
	if (result->note)
		fprintf(out, "cordon: %s\n", result->note);
	if (fclose(out) == 0 && length)
		return text;
	free(text);
	return NULL;
}

/* Calls that a worker goes on with for its client after they were answered:
 *
 *     audit.follow        each new row is a notice audit.row, up to audit.unfollow or another audit.follow
 *     fs.watch            what changes is a notice fs.changed, up to fs.unwatch; fs.ended is the last where it ends by
 * itself
 *
 * Each asks the library for what is new since it asked last, so that nothing is lost between two looks. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "door/cli/json-read.h"
#include "door/rpc/serve-rpc.h"

#define PAUSE_MS 100
#define READS_ON_MS 20
#define ROWS_MOST 500
#define CHANGES_WAIT_MS 500

static bool is_over(struct client *client)
{
	return client_has_left(client) || atomic_load(&client->server->is_ending);
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* False: it will not read any more. */
static bool await_reader(struct client *client)
{
	while (!is_over(client) && client_unread(client) > UNREAD_MAX)
		pause_ms(READS_ON_MS);
	return !is_over(client);
}

static void notify(struct client *client, const char *method, const char *params)
{
	struct json json;
	size_t length;
	rpc_notice_begin(&json, method);
	json_verbatim(&json, params);
	char *line = rpc_end(&json, &length);
	rpc_send(client, line, length);
}

/* The answer as JSON, to be released; NULL and *ret_err. */
static json_t *ask(struct client *client, const char *method, const json_t *params, struct cordon_error *ret_err)
{
	struct cordon_value *result;
	auto_free char *text = json_dumps(params, JSON_COMPACT);
	if (!text) {
		fail_oom(ret_err);
		return NULL;
	}
	if (cordon_call(client->server->cordon, method, text, &result, ret_err) < 0)
		return NULL;
	auto_free char *answer = cordon_value_json(result, "");
	cordon_value_unref(result);
	json_t *tree = answer ? json_loads(answer, 0, NULL) : NULL;
	if (!tree)
		fail_oom(ret_err);
	return tree;
}

static void notify_tree(struct client *client, const char *method, const json_t *params)
{
	auto_free char *text = params ? json_dumps(params, JSON_COMPACT) : NULL;
	if (text)
		notify(client, method, text);
}

/* The object `params` with the error of `err` as `error`. Takes it. */
static void notify_end(struct client *client, const char *method, json_t *params, const struct cordon_error *err)
{
	struct json json;
	json_init(&json);
	error_write_json(&json, err);
	auto_free char *text = json_take(&json);
	json_t *error = text ? json_loads(text, 0, NULL) : NULL;
	if (params && error)
		json_object_set(params, "error", error);
	notify_tree(client, method, params);
	json_decref(error);
	json_decref(params);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static bool is_followed(struct client *client, unsigned number)
{
	return await_reader(client) && atomic_load(&client->follow_number) == number;
}

static void follow_rows(struct client *client, json_t *params, unsigned number)
{
	struct cordon_error err;
	size_t i;
	json_t *row;
	json_object_set_new(params, "limit", json_integer(ROWS_MOST));
	while (is_followed(client, number)) {
		json_t *answer = ask(client, "audit.query", params, &err);
		if (!answer)
			return notify_end(client, "audit.ended", json_object(), &err);
		json_array_foreach(json_object_get(answer, "rows"), i, row) if (is_followed(client, number))
			notify_tree(client, "audit.row", row);
		json_object_set(params, "after", json_object_get(answer, "next"));
		bool more = json_is_true(json_object_get(answer, "more"));
		json_decref(answer);
		if (!more)
			pause_ms(PAUSE_MS);
	}
}

/* ---- changes of files ------------------------------------------------------------------------------------------ */

static void follow_changes(struct client *client, const char *id)
{
	struct cordon_error err;
	auto_json json_t *params = json_pack("{s:s, s:i}", "watch", id, "timeout_ms", CHANGES_WAIT_MS),
			 *named = json_pack("{s:s}", "watch", id);
	while (params && named && await_reader(client)) {
		json_t *answer = ask(client, "fs.changes", params, &err);
		if (!answer && err.class == CORDON_E_NOT_FOUND)
			return;
		if (!answer) {
			notify_end(client, "fs.ended", json_incref(named), &err);
			break;
		}
		bool ended = json_is_true(json_object_get(answer, "ended"));
		if (ended || json_array_size(json_object_get(answer, "changes")) ||
		    json_is_true(json_object_get(answer, "missed")))
			notify_tree(client, ended ? "fs.ended" : "fs.changed", answer);
		json_decref(answer);
		if (ended)
			break;
	}
	json_decref(named ? ask(client, "fs.unwatch", named, &err) : NULL);
}

/* ---- both ------------------------------------------------------------------------------------------------------ */

bool rpc_is_followed(struct client *client, const struct rpc_call *call, const struct cordon_value *result)
{
	/* Whatever was followed before is not any more. */
	if (!strncmp(call->method, "audit.", 6) && strstr(call->method, "follow"))
		atomic_fetch_add(&client->follow_number, 1);
	const char *next = cordon_value_text(result, "next", NULL), *watch = cordon_value_text(result, "watch", NULL);
	if (!strcmp(call->method, "audit.follow"))
		return next && json_object_set_new(call->params, "after", json_string(next)) == 0;
	return !strcmp(call->method, "fs.watch") && watch &&
	       json_object_set_new(call->params, "watch", json_string(watch)) == 0;
}

void rpc_follow(struct client *client, const struct rpc_call *call, unsigned number)
{
	if (!strcmp(call->method, "audit.follow"))
		follow_rows(client, call->params, number);
	else
		follow_changes(client, json_string_value(json_object_get(call->params, "watch")));
}

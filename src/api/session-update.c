/* session.update: what a session is called, when it ends by itself, and what it was granted since it was made. Who may
 * call this decides for the session, as with `session new`: nobody is asked, each change is a row before it is made,
 * and the session's next command has it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/policy.h"
#include "api/refresh.h"
#include "audit/row.h"
#include "base/id.h"
#include "base/json.h"
#include "base/text.h"
#include "base/utc.h"
#include "base/utf8.h"
#include "policy/capability-json.h"
#include "session/beneath.h"
#include "session/registry.h"
#include "walk.h"

#define LABELS_MAX 32
#define LABEL_NAME_MAX 64
#define LABEL_MAX 256

struct update {
	const struct call *call;
	struct session_grant *grant;            /* or NULL */
};

static int refuse(struct cordon_error *err, const char *subject, const char *reason, const char *remedy)
{
	fail(err, CORDON_E_INVALID_REQUEST, 0, subject, "%s", reason);
	fail_remedy(err, "%s", remedy);
	return fail_boundary(err, "session");
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

static bool is_label(const char *name, const json_t *value)
{
	const char *text = json_string_value(value);
	size_t length = json_string_length(value);
	if (!*name || strlen(name) > LABEL_NAME_MAX || text_has_control(name))
		return false;
	return json_is_null(value) ||
	       (text && length <= LABEL_MAX && strlen(text) == length && !text_has_control(text));
}

/* The labels before with those that were given; null takes one away. */
static int merge_labels(struct arena *arena, const char *before, json_t *given, const char **ret_labels,
                        struct cordon_error *err)
{
	auto_tree json_t *labels = before ? json_loads(before, 0, NULL) : json_object();
	const char *name;
	json_t *value;
	json_object_foreach(given, name, value) {
		if (!is_label(name, value))
			return refuse(err, name,
			              "a label is text without control characters, of 256 bytes; its name, of 64",
			              "give it as text, or as null to take it away");
		if (json_is_null(value))
			json_object_del(labels, name);
		else if (json_object_set(labels, name, value) < 0)
			return fail_oom(err);
	}
	if (json_object_size(labels) > LABELS_MAX)
		return refuse(err, "labels", "a session has at most 32 labels", "take some away: a label of null");
	auto_free char *text = json_dumps(labels, JSON_COMPACT | JSON_SORT_KEYS);
	*ret_labels = text && json_object_size(labels) ? arena_strdup(arena, text) : NULL;
	return text && (*ret_labels || !json_object_size(labels)) ? 0 : fail_oom(err);
}

bool session_has_labels(const json_t *labels, const json_t *wanted)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)wanted, name, value)
		if (!json_equal(json_object_get(labels, name), value))
			return false;
	return true;
}

/* ---- grants ------------------------------------------------------------------------------------------------------ */

/* What later commands have without asking. Limits and programs are of the session as it was made. */
static int check_grant(const struct cordon_request *request, const struct capability_set *granted,
                       struct cordon_error *err)
{
	static const struct capability_set nothing;
	struct capability_set rest = *granted;
	rest.fs_read = rest.fs_write = rest.devices = rest.sockets = rest.hosts = rest.publish = (struct strings){ 0 };
	rest.network = nothing.network;
	if (!capability_same(&rest, &nothing) || request->no_spawn || request->no_network || request->workspace ||
	    request->session || request->cwd || request->driver || request->private_hosts.count || request->manifest)
		return refuse(err, "grant",
		              "a session is granted paths, hosts, ports, devices and sockets, nothing else",
		              "give read, write, net, publish, device, socket");
	return capability_same(granted, &nothing) ?
	               refuse(err, "grant", "nothing is granted", "say what, as with session.new") : 0;
}

static int resolve_grant(struct arena *arena, struct session_grant *grant, struct cordon_error *err)
{
	const struct strings *const lists[] = { &grant->set.fs_read, &grant->set.fs_write, &grant->set.devices,
		                                &grant->set.sockets };
	struct place place;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t j = 0; j < lists[i]->count; j++) {
			if (beneath_resolve(arena, lists[i]->items[j], &place, NULL, err) < 0)
				return -1;
			if (places_add(arena, &grant->places, &place) < 0)
				return fail_oom(err);
		}
	return 0;
}

/* The request has the texts of the grant; it is released after that. */
static int make_grant(struct arena *arena, const struct call *call, const struct config *config,
                      struct cordon_request **ret_request, struct session_grant **ret_grant, struct cordon_error *err)
{
	struct cordon_request *request;
	struct capability_set granted;
	struct session_grant *grant = arena_alloc(arena, sizeof(*grant));
	char *id = arena_alloc(arena, ID_SIZE), *now = arena_alloc(arena, UTC_SIZE);
	if (!grant || !id || !now)
		return fail_oom(err);
	if (call_settings_request(call, "grant", &request, err) < 0)
		return -1;
	id_make(id);
	utc_now(now);
	*grant = (struct session_grant){ .card = id, .hash = "", .time = now };
	int result = capability_granted(request, config, arena, &granted, err);
	if (result == 0)
		result = check_grant(request, &granted, err);
	if (result == 0 && capability_normalise(arena, &granted, &grant->set, NULL) < 0)
		result = fail_oom(err);
	if (result == 0)
		result = resolve_grant(arena, grant, err);
	*ret_request = request;
	*ret_grant = grant;
	return result;
}

static int add_grant(struct arena *arena, struct session_record *record, const struct session_grant *grant,
                     struct cordon_error *err)
{
	struct session_grant *grants = arena_alloc(arena, (record->grant_count + 1) * sizeof(*grants));
	if (!grants)
		return fail_oom(err);
	if (record->grant_count)
		memcpy(grants, record->grants, record->grant_count * sizeof(*grants));
	grants[record->grant_count++] = *grant;
	record->grants = grants;
	return 0;
}

static int remove_grant(struct session_record *record, const char *card, struct cordon_error *err)
{
	for (size_t i = 0; i < record->grant_count; i++)
		if (!strcmp(record->grants[i].card, card)) {
			record->grant_count--;
			memmove(&record->grants[i], &record->grants[i + 1],
			        (record->grant_count - i) * sizeof(*record->grants));
			return 0;
		}
	fail(err, CORDON_E_NOT_FOUND, 0, card, "the session has no such grant");
	fail_remedy(err, "session.show lists its grants: `approval` is the id");
	return fail_boundary(err, "session");
}

/* ---- the change -------------------------------------------------------------------------------------------------- */

static int write_row(const struct update *update, const struct session_record *record, const char *change,
                     const char *card, struct cordon_error *err)
{
	struct json json;
	audit_row_begin(&json, "session", NULL, record->id);
	json_key_string(&json, "change", change);
	json_key_string(&json, "state", session_state_names[record->state]);
	if (card)
		json_key_string(&json, "approval", card);
	if (card && update->grant && card == update->grant->card) {
		json_key(&json, "capabilities");
		capability_write_json(&json, &update->grant->set);
	}
	if (!card && record->labels) {
		json_key(&json, "labels");
		json_verbatim(&json, record->labels);
	}
	if (!card)
		json_key_uint(&json, "idle_expiry_s", record->idle_expiry_s);
	return audit_row_end(&json, update->call->cordon->ledger, err);
}

static int update_grants(struct arena *arena, struct session_record *record, const struct update *update,
                         struct cordon_error *err)
{
	const json_t *cards = json_object_get(update->call->params, "revoke");
	size_t i;
	json_t *card;
	json_array_foreach(cards, i, card)
		if (remove_grant(record, json_string_value(card), err) < 0)
			return -1;
	if (update->grant && add_grant(arena, record, update->grant, err) < 0)
		return -1;
	json_array_foreach(cards, i, card)
		if (write_row(update, record, "revoked", json_string_value(card), err) < 0)
			return -1;
	return update->grant ? write_row(update, record, "granted", update->grant->card, err) : 0;
}

/* Under the session's lock. */
static int apply(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	const struct update *update = arg;
	json_t *labels = json_object_get(update->call->params, "labels"),
	       *idle = json_object_get(update->call->params, "idle_expiry_s");
	if (record->state == SESSION_ENDED) {
		fail(err, CORDON_E_SESSION_ENDED, 0, record->id, "the session has ended");
		fail_remedy(err, "begin another one: cordon session new ID");
		return fail_boundary(err, "session");
	}
	if (labels && merge_labels(arena, record->labels, labels, &record->labels, err) < 0)
		return -1;
	if (idle)
		record->idle_expiry_s = (uint64_t)json_integer_value(idle);
	if (update_grants(arena, record, update, err) < 0)
		return -1;
	return labels || idle ? write_row(update, record, "updated", NULL, err) : 0;
}

int session_check_labels(const struct call *call, struct cordon_error *err)
{
	struct arena arena = { 0 };
	const char *labels;
	json_t *given = json_object_get(call->params, "labels");
	int result = given ? merge_labels(&arena, NULL, given, &labels, err) : 0;
	arena_free(&arena);
	return result;
}

/* What is not among these is not granted, and so not passed over. */
static int check_grant_keys(const struct call *call, struct cordon_error *err)
{
	static const char *const keys[] = { "read", "write", "net", "publish", "device", "socket" };
	const char *key;
	json_t *value;
	json_object_foreach(json_object_get(call->params, "grant"), key, value) {
		size_t i = 0;
		while (i < ARRAY_SIZE(keys) && strcmp(keys[i], key) != 0)
			i++;
		if (i == ARRAY_SIZE(keys))
			return refuse(err, key,
			              "a session is granted paths, hosts, ports, devices and sockets, nothing else",
			              "give read, write, net, publish, device, socket");
	}
	return 0;
}

int session_update(const struct call *call, const char *id, struct cordon_error *err)
{
	struct update update = { .call = call };
	struct cordon_request *request = NULL;
	struct arena arena = { 0 };
	const struct config *config;
	if (registry_check_id(id, err) < 0 || check_grant_keys(call, err) < 0 ||
	    policy_take(call->cordon, id, &config, err) < 0)
		return -1;
	int result = 0;
	if (json_object_get(call->params, "grant"))
		result = make_grant(&arena, call, config, &request, &update.grant, err);
	if (result == 0)
		result = registry_change(&arena, call->cordon->data_dir, id, apply, &update, NULL, err);
	config_unref(config);
	arena_free(&arena);
	cordon_request_unref(request);
	return result < 0 ? audit_refusal(call->cordon->ledger, id, "session update", CORDON_STEP_SESSION, err) : 0;
}

int call_session_update(struct call *call, struct cordon_error *err)
{
	char *json;
	const char *id = call_text(call, "id");
	if (session_update(call, id, err) < 0 || cordon_session_show(call->cordon, id, &json, err) < 0)
		return -1;
	refresh_session(call->cordon, id);
	return call_take_text(call, json, err);
}

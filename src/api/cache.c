/* Package caches, public calls: those of the host, and the layers with what commands wrote to them. */
#include <string.h>

#include "api/policy.h"
#include "api/session-json.h"
#include "base/json.h"
#include "host/cache.h"
#include "session/beneath.h"
#include "session/layers.h"
#include "walk.h"

static void write_owner(struct json *json, const struct layers_owner *owner)
{
	json_key_string(json, "session", owner->of_workspace ? NULL : owner->name);
	json_key_string(json, "workspace", owner->of_workspace ? owner->name : NULL);
}

static int write_kept(void *arg, const struct layers_kept *kept)
{
	struct json *json = arg;
	json_object_begin(json);
	write_owner(json, &kept->owner);
	json_key_string(json, "directory", kept->path);
	json_key_uint(json, "bytes", kept->bytes);
	json_key_bool(json, "in_use", kept->in_use);
	json_object_end(json);
	return 0;
}

static int write_caches(struct json *json, struct arena *arena, struct cordon_error *err)
{
	const char *home = getenv("HOME");
	const struct host_cache_search search = { .home = home,
		                                  .environment = (const char *const *)environ,
		                                  .inside_home = "~" };
	struct host_cache_answer found;
	if (host_cache_find(arena, &search, &found) < 0)
		return fail_oom(err);
	json_key(json, "caches");
	json_array_begin(json);
	for (size_t i = 0; i < found.caches.count; i++) {
		json_object_begin(json);
		json_key_string(json, "name", found.caches.items[i].name);
		json_key_string(json, "host", found.caches.items[i].source);
		json_key_string(json, "inside", found.caches.items[i].target);
		json_object_end(json);
	}
	json_array_end(json);
	return 0;
}

int cordon_cache_list(struct cordon *cordon, char **ret_json, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct json json;
	if (call_check(err, cordon, ret_json) < 0 || policy_check(cordon, err) < 0)
		return -1;
	json_init(&json);
	json_object_begin(&json);
	int result = write_caches(&json, &arena, err);
	if (result == 0) {
		json_key(&json, "layers");
		json_array_begin(&json);
		result = layers_each(&arena, cordon->data_dir, write_kept, &json, err);
		json_array_end(&json);
	}
	json_object_end(&json);
	arena_free(&arena);
	if (result == 0)
		return session_take_json(&json, ret_json, err);
	free(json_take(&json));
	return -1;
}

static int require_session(struct cordon *cordon, const char *session, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct session_record record;
	bool found = false;
	int result = registry_check_id(session, err);
	if (result == 0)
		result = registry_read(&arena, cordon->data_dir, session, &record, &found, err);
	arena_free(&arena);
	return result == 0 && !found ? registry_missing(session, err) : result;
}

int cordon_cache_clear(struct cordon *cordon, const char *session, const char *workspace, char **ret_json,
                       struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct json json;
	struct layers_cleared cleared = { 0 };
	struct place place = { 0 };
	if (call_check(err, cordon, ret_json) < 0 || policy_check(cordon, err) < 0)
		return -1;
	if (session && workspace) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, "workspace",
		     "the caches of a session or those of a workspace can be cleared, not both at once");
		return fail_remedy(err, "name one of them");
	}
	if (session && require_session(cordon, session, err) < 0)
		return -1;
	/* What is no longer there can be named as it was. */
	bool found = !workspace || beneath_resolve(&arena, workspace, &place, NULL, NULL) == 0;
	const struct layers_owner owner = { workspace, workspace ? found ? place.path : workspace : session };
	int result = layers_clear(&arena, cordon->data_dir, owner.name ? &owner : NULL, &cleared, err);
	arena_free(&arena);
	if (result < 0)
		return -1;
	json_init(&json);
	json_object_begin(&json);
	json_key_uint(&json, "removed", cleared.removed);
	json_key_uint(&json, "in_use", cleared.in_use);
	json_object_end(&json);
	return session_take_json(&json, ret_json, err);
}

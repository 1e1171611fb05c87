/* The distro of cordon's own in the Windows Subsystem for Linux, public calls: see driver/wsl/wsl.h. */
#include "api/policy.h"
#include "api/session-json.h"
#include "base/json.h"
#include "driver/wsl/wsl.h"
#include "walk.h"

int cordon_wsl_setup(struct cordon *cordon, const char *archive, const char *sha256, const char *program,
                     struct cordon_error *err)
{
	if (call_check(err, cordon, archive, sha256) < 0 || policy_check(cordon, err) < 0)
		return -1;
	const struct wsl_setup setup = { .rootfs = archive, .sum = sha256, .program = program };
	return wsl_set_up(cordon->data_dir, &setup, err);
}

int cordon_wsl_status(struct cordon *cordon, char **ret_json, bool *ret_holds, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct wsl_status status;
	struct json json;
	if (call_check(err, cordon, ret_json, ret_holds) < 0 || policy_check(cordon, err) < 0)
		return -1;
	if (wsl_status(&arena, cordon->data_dir, &status, err) < 0) {
		arena_free(&arena);
		return -1;
	}
	json_init(&json);
	json_object_begin(&json);
	json_key_string(&json, "distro", WSL_DISTRO);
	json_key_bool(&json, "registered", status.registered);
	json_key(&json, "checks");
	json_array_begin(&json);
	for (size_t i = 0; i < status.count; i++) {
		json_object_begin(&json);
		json_key_string(&json, "name", status.checks[i].name);
		json_key_bool(&json, "holds", status.checks[i].holds);
		json_key_string(&json, "found", status.checks[i].found);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_key_bool(&json, "holds", status.holds);
	json_object_end(&json);
	arena_free(&arena);
	if (session_take_json(&json, ret_json, err) < 0)
		return -1;
	*ret_holds = status.holds;
	return 0;
}

int cordon_wsl_reset(struct cordon *cordon, const char *name, struct cordon_error *err)
{
	if (call_check(err, cordon, name) < 0 || policy_check(cordon, err) < 0)
		return -1;
	return wsl_reset(cordon->data_dir, name, err);
}

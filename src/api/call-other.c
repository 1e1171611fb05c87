/* The other methods: see call.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/call.h"
#include "api/process.h"
#include "api/watch.h"
#include "base/error.h"
#include "base/json.h"

#define STOP_GRACE_MS 1000

/* ---- who answers ------------------------------------------------------------------------------------------------- */

int call_nothing(struct call *call, struct cordon_error *err)
{
	(void)call, (void)err;
	return 0;
}

static json_t *capabilities(void)
{
	json_t *told = json_array(), *names = json_array();
	for (size_t i = 0; i < notice_count; i++)
		json_array_append_new(told, json_string(notices[i].name));
	for (const struct driver *const *driver = drivers; *driver; driver++)
		json_array_append_new(names, json_string((*driver)->name));
	return json_pack("{s:o, s:o, s:[s]}", "notices", told, "drivers", names, "encodings", "base64");
}

int call_hello(struct call *call, struct cordon_error *err)
{
	json_t *names = json_array();
	for (size_t i = 0; i < method_count; i++)
		json_array_append_new(names, json_string(methods[i].name));
	return call_take(call,
			 json_pack("{s:s, s:i, s:i, s:o, s:o, s:{s:i, s:I, s:i, s:i, s:i}}", "version", CORDON_VERSION,
				   "api", CORDON_API, "protocol", METHOD_PROTOCOL, "methods", names, "capabilities",
				   capabilities(), "limits", "depth", METHOD_DEPTH_MAX, "output_kept",
				   (json_int_t)PROCESS_KEPT, "ended_kept", PROCESS_ENDED_KEPT, "watches", WATCHES_MAX,
				   "watched_directories", WATCH_DIRECTORIES_MAX),
			 err);
}

int call_discover(struct call *call, struct cordon_error *err)
{
	struct json json;
	json_init(&json);
	methods_write(&json);
	return call_take_text(call, json_take(&json), err);
}

int call_settings(struct call *call, struct cordon_error *err)
{
	return call_take_text(call, cordon_settings_json(), err);
}

int call_status(struct call *call, struct cordon_error *err)
{
	return call_take(call,
			 json_pack("{s:s, s:i, s:s, s:I}", "version", CORDON_VERSION, "pid", (int)getpid(), "data_dir",
				   call->cordon->data_dir, "running", (json_int_t)process_count(call->cordon)),
			 err);
}

/* Of a library there is nothing to stop but what runs. */
int call_stop(struct call *call, struct cordon_error *err)
{
	(void)err;
	process_stop_all(call->cordon, (int64_t)call_count(call, "drain_ms", 0),
			 (int64_t)call_count(call, "grace_ms", STOP_GRACE_MS));
	return 0;
}

/* ---- sessions, approvals, jobs ----------------------------------------------------------------------------------- */

int call_session_new(struct call *call, struct cordon_error *err)
{
	struct cordon_request *settings;
	char *json = NULL;
	if (session_check_labels(call, err) < 0 || call_request(call, false, &settings, err) < 0)
		return -1;
	int result = cordon_session_new(call->cordon, call_text(call, "id"), settings, &json, err);
	cordon_request_unref(settings);
	if (result < 0 || (!json_object_get(call->params, "labels") && !json_object_get(call->params, "idle_expiry_s")))
		return result < 0 ? -1 : call_take_text(call, json, err);
	free(json);
	return call_session_update(call, err);
}

int call_cache_list(struct call *call, struct cordon_error *err)
{
	char *json;
	return cordon_cache_list(call->cordon, &json, err) < 0 ? -1 : call_take_text(call, json, err);
}

int call_cache_clear(struct call *call, struct cordon_error *err)
{
	char *json;
	int result =
		cordon_cache_clear(call->cordon, call_text(call, "session"), call_text(call, "workspace"), &json, err);
	return result < 0 ? -1 : call_take_text(call, json, err);
}

int call_session_list(struct call *call, struct cordon_error *err)
{
	const json_t *wanted = json_object_get(call->params, "labels");
	char *json;
	if (cordon_session_list(call->cordon, &json, err) < 0 || call_take_text(call, json, err) < 0)
		return -1;
	json_t *list = json_object_get(call->result, "sessions");
	for (size_t i = json_array_size(list); i--;)
		if (!session_has_labels(json_object_get(json_array_get(list, i), "labels"), wanted))
			json_array_remove(list, i);
	return 0;
}

int call_session_show(struct call *call, struct cordon_error *err)
{
	char *json;
	return cordon_session_show(call->cordon, call_text(call, "id"), &json, err) < 0
		       ? -1
		       : call_take_text(call, json, err);
}

int call_session_pause(struct call *call, struct cordon_error *err)
{
	return cordon_session_pause(call->cordon, call_text(call, "id"), call_text(call, "why"), err);
}

int call_session_resume(struct call *call, struct cordon_error *err)
{
	return cordon_session_resume(call->cordon, call_text(call, "id"), err);
}

int call_session_end(struct call *call, struct cordon_error *err)
{
	return cordon_session_end(call->cordon, call_text(call, "id"), call_flag(call, "remove_workspace"), err);
}

int call_session_remove(struct call *call, struct cordon_error *err)
{
	return cordon_session_remove(call->cordon, call_text(call, "id"), err);
}

int call_approvals_list(struct call *call, struct cordon_error *err)
{
	char *json;
	return cordon_approvals_list(call->cordon, &json, err) < 0 ? -1 : call_take_text(call, json, err);
}

int call_approvals_answer(struct call *call, struct cordon_error *err)
{
	const char *said = call_text(call, "answer");
	enum cordon_answer answer = !strcmp(said, "once")      ? CORDON_APPROVED_ONCE
				    : !strcmp(said, "session") ? CORDON_APPROVED_SESSION
							       : CORDON_DENIED;
	return cordon_approvals_answer(call->cordon, call_text(call, "card"), call_text(call, "hash"), answer,
				       call_text(call, "reason"), err);
}

int call_job_start(struct call *call, struct cordon_error *err)
{
	struct cordon_request *request;
	char *json = NULL;
	if (call_request(call, true, &request, err) < 0)
		return -1;
	int result = cordon_job_start(call->cordon, request, &json, err);
	cordon_request_unref(request);
	return result < 0 ? -1 : call_take_text(call, json, err);
}

int call_job_list(struct call *call, struct cordon_error *err)
{
	char *json;
	return cordon_job_list(call->cordon, call_text(call, "session"), &json, err) < 0
		       ? -1
		       : call_take_text(call, json, err);
}

int call_job_poll(struct call *call, struct cordon_error *err)
{
	char *json;
	if (cordon_job_poll(call->cordon, call_text(call, "id"), call_count(call, "stdout_from", 0),
			    call_count(call, "stderr_from", 0), &json, err) < 0 ||
	    call_take_text(call, json, err) < 0)
		return -1;
	value_exact(call->result);
	return 0;
}

int call_job_wait(struct call *call, struct cordon_error *err)
{
	char *json;
	const json_t *timeout = json_object_get(call->params, "timeout_ms");
	return cordon_job_wait(call->cordon, call_text(call, "id"), timeout ? json_integer_value(timeout) : -1, &json,
			       err) < 0
		       ? -1
		       : call_take_text(call, json, err);
}

int call_job_kill(struct call *call, struct cordon_error *err)
{
	const char *name = call_text(call, "signal");
	int signal = name ? call_signal(name) : 0;
	if (name && !signal)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, name, "the parameter signal must be a name such as TERM");
	return cordon_job_kill(call->cordon, call_text(call, "id"), signal, err);
}

/* ---- what would be ----------------------------------------------------------------------------------------------- */

int call_profile(struct call *call, struct cordon_error *err)
{
	struct cordon_request *request;
	char *json = NULL;
	if (call_request(call, true, &request, err) < 0)
		return -1;
	int result = cordon_profile(call->cordon, request, &json, err);
	cordon_request_unref(request);
	json_t *tree = result < 0 ? NULL : value_parse(json);
	free(json);
	return result < 0 ? -1 : call_take(call, tree ? json_pack("{s:o}", "profile", tree) : NULL, err);
}

int call_preflight(struct call *call, struct cordon_error *err)
{
	struct cordon_request *request;
	char *json = NULL;
	if (call_request(call, true, &request, err) < 0)
		return -1;
	int result = cordon_preflight(call->cordon, request, &json, err);
	cordon_request_unref(request);
	return result < 0 ? -1 : call_take_text(call, json, err);
}

int call_capability_request(struct call *call, struct cordon_error *err)
{
	struct cordon_request *request;
	if (call_request(call, false, &request, err) < 0)
		return -1;
	int result = cordon_capability_request(call->cordon, request, err);
	cordon_request_unref(request);
	return result;
}

int call_net_list(struct call *call, struct cordon_error *err)
{
	char *json;
	return cordon_net_list(call->cordon, &json, err) < 0 ? -1 : call_take_text(call, json, err);
}

int call_url_check(struct call *call, struct cordon_error *err)
{
	char *json;
	bool allowed;
	if (cordon_url_check(call->cordon, call_text(call, "url"), &json, &allowed, err) < 0)
		return -1;
	json_t *report = value_parse(json);
	free(json);
	return call_take(call, report ? json_pack("{s:b, s:o}", "allowed", allowed, "report", report) : NULL, err);
}

/* ---- configuration and the machine ------------------------------------------------------------------------------- */

int call_config_show(struct call *call, struct cordon_error *err)
{
	char *json;
	return cordon_config_show(call->cordon, call_text(call, "workspace"), &json, err) < 0
		       ? -1
		       : call_take_text(call, json, err);
}

int call_config_check(struct call *call, struct cordon_error *err)
{
	return cordon_config_check(call->cordon, call_text(call, "file"), err);
}

int call_manifest_check(struct call *call, struct cordon_error *err)
{
	char *json;
	if (cordon_manifest_check(call->cordon, call_text(call, "file"), &json, err) < 0)
		return -1;
	json_t *report = value_parse(json);
	free(json);
	return call_take(call, report ? json_pack("{s:o}", "report", report) : NULL, err);
}

int call_doctor(struct call *call, struct cordon_error *err)
{
	char *json;
	bool holds;
	if (cordon_doctor(call->cordon, &json, &holds, err) < 0)
		return -1;
	json_t *report = value_parse(json);
	free(json);
	return call_take(call, report ? json_pack("{s:b, s:o}", "holds", holds, "report", report) : NULL, err);
}

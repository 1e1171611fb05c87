/* See refresh.h. A walk that stops before a command says what the session has now. */
#include "api/refresh.h"

#include "api/policy.h"
#include "driver/machine.h"
#include "session/registry.h"
#include "walk.h"

static int refresh(struct cordon *cordon, struct cordon_request *request, const char *session_id,
                   struct cordon_error *err)
{
	const char *const argv[] = { driver_probe_program(), NULL };
	struct execution *execution;
	if (cordon_request_set(request, "session", session_id, err) < 0 ||
	    cordon_request_command(request, argv, err) < 0 ||
	    walk_new(cordon, request, true, &execution, err) < 0)
		return -1;
	int result = walk(execution, WALK_DECIDED, err);
	if (result == 0)
		result = run_step_refresh(execution, err);
	walk_free(execution);
	return result;
}

void refresh_session(struct cordon *cordon, const char *session_id)
{
	struct cordon_request *request;
	struct cordon_error untold;
	if (!sandboxes_is_used(cordon->sandboxes, session_id) || cordon_request_new(&request, &untold) < 0)
		return;
	(void)!refresh(cordon, request, session_id, &untold);
	cordon_request_unref(request);
}

static bool look(void *arg, const char *session_id, struct sandbox_news *ret_news)
{
	struct cordon *cordon = arg;
	struct cordon_error untold;
	struct session_look record = { 0 };
	const struct config *config;
	if (registry_look(cordon->data_dir, session_id, &record) == SESSION_ENDED ||
	    policy_take(cordon, session_id, &config, &untold) < 0)
		return false;
	*ret_news = (struct sandbox_news){
		config, { record.inode, (uint64_t)record.changed_s * 1000000000 + (uint64_t)record.changed_ns }
	};
	return true;
}

static void change(void *arg, const char *session_id)
{
	refresh_session(arg, session_id);
}

void refresh_changed(struct cordon *cordon)
{
	sandboxes_watch(cordon->sandboxes, look, change, cordon);
}

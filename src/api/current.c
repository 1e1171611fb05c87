/* The calling thread's current session, as the public calls have it. */
#include "api/result.h"
#include "base/error.h"
#include "session/current.h"
#include "walk.h"
#include "session/registry.h"

int cordon_session_enter(struct cordon *cordon, const char *id, struct cordon_error *err)
{
	return call_check(err, cordon, id) < 0 || registry_check_id(id, err) < 0 || handle_check(cordon, err) < 0
	               ? -1 : current_enter(cordon, id, err);
}

void cordon_session_leave(void)
{
	current_leave();
}

const char *cordon_session_current(void)
{
	return current_session();
}

int cordon_result_run_current(const char *const *argv, struct cordon_result **ret_result, struct cordon_error *err)
{
	struct cordon_request *request = NULL;
	const char *id = current_session();
	if (call_check(err, argv, ret_result) < 0)
		return -1;
	if (!id) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, "session",
		     "no session is current in this thread: the sandbox is not configured here");
		fail_remedy(err, "call cordon_session_enter() first");
		return fail_boundary(err, "session");
	}
	int result = cordon_request_new(&request, err) < 0 || cordon_request_set(request, "session", id, err) < 0 ||
	             cordon_request_command(request, argv, err) < 0 ||
	             cordon_result_run(current_cordon(), request, ret_result, err) < 0 ? -1 : 0;
	cordon_request_unref(request);
	return result;
}

int cordon_run_current(const char *const *argv, struct cordon_value **ret_result, struct cordon_error *err)
{
	struct cordon_result *result = NULL;
	if (call_check(err, argv, ret_result) < 0)
		return -1;
	int status = cordon_result_run_current(argv, &result, err);
	return result_as_value(status, result, ret_result, err);
}

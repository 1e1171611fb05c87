/* Methods about processes: see call.h. A process that was started here is known by its id until it is released. */
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/process.h"
#include "base/error.h"

#define GRACE_MS 2000

static int attach(const struct call *call, struct cordon_process **ret_handle, struct cordon_error *err)
{
	return process_attach(call->cordon, call_text(call, "id"), UINT64_MAX, UINT64_MAX, ret_handle, err);
}

/* What was attached for this one call. The process is not ended by that: another handle, or its being detached, keeps
 * it. */
static int leave(struct cordon_process *handle, int result)
{
	cordon_process_unref(handle);
	return result;
}

int call_process_start(struct call *call, struct cordon_error *err)
{
	struct cordon_request *request;
	struct cordon_process *process = NULL;
	if (call_request(call, true, &request, err) < 0)
		return -1;
	int result = cordon_start(call->cordon, request, &process, err);
	cordon_request_unref(request);
	if (result < 0)
		return -1;
	result = call_take(call, json_pack("{s:s}", "id", cordon_process_id(process)), err);
	/* It is known by its id from here on. */
	return cordon_process_detach(process, NULL) < 0 ? -1 : result;
}

int call_process_stat(struct call *call, struct cordon_error *err)
{
	struct cordon_process *handle;
	return attach(call, &handle, err) < 0 ? -1 : leave(handle, call_take(call, process_tell(handle->process), err));
}

int call_process_lists(struct call *call, struct cordon_error *err)
{
	return call_take(call, process_list(call->cordon), err);
}

int call_process_wait(struct call *call, struct cordon_error *err)
{
	struct cordon_process *handle;
	struct cordon_value *result = NULL;
	struct cordon_error failed = { .class = CORDON_OK };
	json_t *timeout = json_object_get(call->params, "timeout_ms");
	if (attach(call, &handle, err) < 0)
		return -1;
	bool refused = cordon_process_wait(handle, timeout ? json_integer_value(timeout) : -1, &result, &failed) < 0;
	json_t *told = json_pack("{s:b, s:O?}", "ended", refused || result, "result", result ? result->tree : NULL);
	if (refused && told)
		json_object_set_new(told, "error", value_error(&failed));
	cordon_value_unref(result);
	return leave(handle, call_take(call, told, err));
}

int call_process_detach(struct call *call, struct cordon_error *err)
{
	struct cordon_process *handle;
	return attach(call, &handle, err) < 0 ? -1 : cordon_process_detach(handle, err);
}

int call_process_cancel(struct call *call, struct cordon_error *err)
{
	struct cordon_process *handle;
	return attach(call, &handle, err) < 0 ? -1
	       : leave(handle, cordon_process_cancel(handle, (int64_t)call_count(call, "grace_ms", GRACE_MS), err));
}

int call_process_close_stdin(struct call *call, struct cordon_error *err)
{
	struct cordon_process *handle;
	return attach(call, &handle, err) < 0 ? -1 : leave(handle, cordon_process_close_stdin(handle, err));
}

int call_process_resize(struct call *call, struct cordon_error *err)
{
	struct cordon_process *handle;
	unsigned short rows = (unsigned short)call_count(call, "rows", 0),
		       columns = (unsigned short)call_count(call, "columns", 0);
	return attach(call, &handle, err) < 0 ? -1 : leave(handle, cordon_process_resize(handle, rows, columns, err));
}

int call_process_signal(struct call *call, struct cordon_error *err)
{
	struct cordon_process *handle;
	int signal = call_signal(call_text(call, "signal"));
	if (!signal)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, call_text(call, "signal"),
		            "the parameter signal must be a name such as TERM");
	return attach(call, &handle, err) < 0 ? -1 : leave(handle, cordon_process_signal(handle, signal, err));
}

int call_process_write(struct call *call, struct cordon_error *err)
{
	struct cordon_process *handle;
	size_t length, taken = 0;
	const void *data = call_bytes(call, "data", &length);
	if (attach(call, &handle, err) < 0)
		return -1;
	int result = cordon_process_write(handle, data, length, &taken, err);
	if (result == 0)
		result = call_take(call, json_pack("{s:I}", "taken", (json_int_t)taken), err);
	return leave(handle, result);
}

/* Ports of sessions' sandboxes, which a client opens and closes. Who may call this decides for the session, as with
 * `session new`: nobody is asked. A port that no row tells of is not open. */
#include <stdlib.h>

#include "api/call.h"
#include "api/policy.h"
#include "audit/row.h"
#include "base/json.h"
#include "sandbox/sandboxes.h"
#include "session/registry.h"
#include "walk.h"

static int write_row(const struct cordon *cordon, const char *change, const char *session,
                     const struct port_shown *port, struct cordon_error *err)
{
	struct json json;
	audit_row_begin(&json, "session", NULL, session);
	json_key_string(&json, "change", change);
	json_key_string(&json, "port_id", port->id);
	json_key_uint(&json, "host_port", port->host_port);
	json_key_uint(&json, "port", port->port);
	return audit_row_end(&json, cordon->ledger, err);
}

static int open_port(struct cordon *cordon, struct port_request *request, struct port_shown *ret_port,
                     struct cordon_error *err)
{
	if (!request->port || request->port > UINT16_MAX || request->host_port > UINT16_MAX) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, request->session_id, "a port is a number from 1 to 65535");
		return fail_boundary(err, "network");
	}
	if (sandboxes_open_port(cordon->sandboxes, request, ret_port, err) == 0)
		return 0;
	if (err->os_errno && request->host_port)
		fail_remedy(err, "choose another host_port, or none: then one that is free is taken");
	return -1;
}

static json_t *show(const char *session, const struct port_shown *port)
{
	struct json json;
	json_init(&json);
	port_write_json(&json, session, port);
	auto_free char *text = json_take(&json);
	return value_parse(text);
}

int cordon_port_open(struct cordon *cordon, const char *session, unsigned port, unsigned host_port,
                     struct cordon_value **ret_port, struct cordon_error *err)
{
	struct port_request request = { .session_id = session, .port = port, .host_port = host_port };
	struct port_shown shown;
	struct arena arena = { 0 };
	if (call_check(err, cordon, session, ret_port) < 0 || handle_check(cordon, err) < 0 ||
	    registry_check_id(session, err) < 0 || policy_take(cordon, session, &request.config, err) < 0)
		return -1;
	request.gate = handle_gate(cordon);
	int result = open_port(cordon, &request, &shown, err);
	if (result < 0) {
		audit_refusal(cordon->ledger, session, "port open", CORDON_STEP_CAPABILITY, err);
	} else if ((result = write_row(cordon, "port opened", session, &shown, err)) < 0) {
		struct cordon_error untold;
		const char *ignored;
		(void)!sandboxes_close_port(cordon->sandboxes, &arena, shown.id, &shown, &ignored, &untold);
	}
	config_unref(request.config);
	arena_free(&arena);
	return result < 0 ? -1 : value_take(show(session, &shown), ret_port, err);
}

int call_port_open(struct call *call, struct cordon_error *err)
{
	struct cordon_value *value;
	if (cordon_port_open(call->cordon, call_text(call, "session"), (unsigned)call_count(call, "port", 0),
	                     (unsigned)call_count(call, "host_port", 0), &value, err) < 0)
		return -1;
	char *text = cordon_value_json(value, "");
	cordon_value_unref(value);
	return text ? call_take_text(call, text, err) : fail_oom(err);
}

int call_port_list(struct call *call, struct cordon_error *err)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	sandboxes_write_ports(call->cordon->sandboxes, &json, call_text(call, "session"));
	json_object_end(&json);
	return call_take_text(call, json_take(&json), err);
}

/* What is closed stays closed, whatever becomes of its row. */
int call_port_close(struct call *call, struct cordon_error *err)
{
	struct port_shown port;
	struct arena arena = { 0 };
	const char *session = NULL;
	int result = sandboxes_close_port(call->cordon->sandboxes, &arena, call_text(call, "id"), &port, &session, err);
	if (result == 0)
		result = write_row(call->cordon, "port closed", session, &port, err);
	arena_free(&arena);
	return result;
}

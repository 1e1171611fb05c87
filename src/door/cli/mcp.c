/* `cordon mcp`: options, and the server (door/mcp/mcp.h). */
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "cordon-internal.h"
#include "door/agent/agent.h"
#include "door/cli/agent.h"
#include "door/cli/cli.h"
#include "door/cli/report.h"
#include "door/cli/request.h"
#include "door/mcp/mcp.h"

/* As in every agent's session: a client of MCP is one, and its profile is called mcp. */
static int protect_projects(struct cordon_request *settings, struct cordon_error *err)
{
	struct arena arena = { 0 };
	const struct agent_profile *profile;
	struct strings names = { 0 };
	int result =
		agent_profile_of(&arena, "mcp", &profile, err) < 0 ? -1 : agent_protected(&arena, profile, &names, err);
	for (size_t i = 0; i < names.count && result == 0; i++)
		result = cordon_request_set(settings, "protect", names.items[i], err);
	arena_free(&arena);
	return result;
}

static int serve(const struct options *options, struct cordon_error *err)
{
	const char *approver = options_value(options, "approver"), *session = options_value(options, "session");
	struct mcp_options wanted = { .config = options_value(options, "config"), .session = session };
	if (approver && strcmp(approver, "client") && strcmp(approver, "cordon")) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, approver, "approver: must be client or cordon");
		return fail_remedy(err, "see cordon help mcp");
	}
	if (session && options->given_count > 1u + (wanted.config != NULL) + (approver != NULL)) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, session,
		     "a session that exists has its own workspace, grants and limits");
		return fail_remedy(err, "give them to cordon session new, or leave --session out");
	}
	wanted.own_approver = approver && !strcmp(approver, "cordon");
	if (request_session_settings(options, &wanted.settings, err) < 0)
		return -1;
	int status = !session && protect_projects(wanted.settings, err) < 0 ? -1 : mcp_serve(&wanted, err);
	cordon_request_unref(wanted.settings);
	return status;
}

int cli_mcp(char **words)
{
	struct options options;
	struct cordon_error err;
	int status;
	if (!cli_options(COMMAND_MCP, words, 0, &options, &status))
		return status;
	status = 0;
	if (serve(&options, &err) < 0) {
		report_error_to(stderr, &err, false);
		status = STATUS_REFUSED;
	}
	options_free(&options);
	return status;
}

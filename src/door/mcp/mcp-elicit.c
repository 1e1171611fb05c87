/* Asking the human behind the client. In the legacy era the server sends a request of its own; in the modern era the call's
 * request ends with `input_required`, and the client repeats it with the answer. The client may let a program of its own
 * answer, so this is a convenience and no proof of a human: with --approver cordon, nothing is asked here. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "door/mcp/mcp.h"

/* The form that is shown, in both eras. */
static void put_form(struct json *json, const struct cordon_card *card)
{
	json_object_begin(json);
	json_key_string(json, "mode", "form");
	json_key_string(json, "message", card->text);
	json_key(json, "requestedSchema");
	json_verbatim(json, "{\"type\":\"object\",\"properties\":{\"decision\":{\"type\":\"string\",\"title\":\"Allow this command?\","
	                    "\"enum\":[\"once\",\"session\",\"deny\"]},\"reason\":{\"type\":\"string\",\"title\":\"Reason, if denied\"}},"
	                    "\"required\":[\"decision\"]}");
	json_object_end(json);
}

/* With the lock. */
static char *legacy_question(struct mcp_call *call, const struct cordon_card *card, size_t *ret_length)
{
	struct json json;
	snprintf(call->question_id, sizeof(call->question_id), "cordon-%llu", (unsigned long long)call->question);
	json_init(&json);
	json_object_begin(&json);
	json_key_string(&json, "jsonrpc", "2.0");
	json_key_string(&json, "id", call->question_id);
	json_key_string(&json, "method", "elicitation/create");
	json_key(&json, "params");
	put_form(&json, card);
	return rpc_end(&json, ret_length);
}

/* With the lock: answers the call's request, which then has none until it is repeated. */
static char *modern_question(struct mcp_call *call, const struct cordon_card *card, size_t *ret_length)
{
	struct json json;
	auto_free char *state = mcp_state_make(call);
	rpc_result_begin(&json, call->id);
	json_object_begin(&json);
	json_key_string(&json, "resultType", "input_required");
	json_key(&json, "inputRequests");
	json_object_begin(&json);
	json_key(&json, "approval");
	json_object_begin(&json);
	json_key_string(&json, "method", "elicitation/create");
	json_key(&json, "params");
	put_form(&json, card);
	json_object_end(&json);
	json_object_end(&json);
	json_key_string(&json, "requestState", state);
	json_object_end(&json);
	call->id[0] = '\0';
	char *line = rpc_end(&json, ret_length);
	if (state)
		return line;
	free(line);
	return NULL;
}

/* Waits until the client has answered, the card was settled elsewhere, or the call was cancelled. */
static enum cordon_answer await_answer(struct mcp_call *call, const struct cordon_card *card, char reason[256])
{
	struct mcp_server *server = call->server;
	enum cordon_answer answer = CORDON_UNANSWERED;
	bool over = false;
	while (!over) {
		struct pollfd fds[] = { { .fd = call->answer_fd, .events = POLLIN }, { .fd = call->cancel_fd, .events = POLLIN },
		                        { .fd = card->settled_fd, .events = POLLIN } };
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			break;
		uint64_t count;
		if (fds[0].revents && read(call->answer_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
			break;
		pthread_mutex_lock(&server->lock);
		over = call->asked == MCP_ANSWERED || call->cancelled || fds[2].revents;
		if (call->asked == MCP_ANSWERED && !call->cancelled) {
			answer = call->answer;
			memcpy(reason, call->reason, sizeof(call->reason));
		}
		pthread_mutex_unlock(&server->lock);
	}
	return answer;
}

enum cordon_answer mcp_elicit(void *arg, const struct cordon_card *card, char reason[256])
{
	struct mcp_call *call = arg;
	struct mcp_server *server = call->server;
	size_t length = 0;
	pthread_mutex_lock(&server->lock);
	/* A request can be answered once: in the modern era a second question needs the request that repeats it. */
	bool can = !call->cancelled && *call->id;
	char *line = NULL;
	if (can) {
		call->asked = MCP_ASKED;
		call->question = ++server->serial;
		call->expires_ms = mcp_now_ms() + card->timeout_ms;
		line = call->modern ? modern_question(call, card, &length) : legacy_question(call, card, &length);
	}
	pthread_mutex_unlock(&server->lock);
	if (!can)
		return CORDON_UNANSWERED;
	mcp_send(server, line, length);
	enum cordon_answer answer = await_answer(call, card, reason);
	pthread_mutex_lock(&server->lock);
	call->asked = MCP_NOT_ASKED;
	call->question_id[0] = '\0';
	pthread_mutex_unlock(&server->lock);
	return answer;
}

enum cordon_answer mcp_elicit_read(json_t *result, char reason[256])
{
	static const struct {
		const char *word;
		enum cordon_answer answer;
	} rows[] = { { "once", CORDON_APPROVED_ONCE }, { "session", CORDON_APPROVED_SESSION }, { "deny", CORDON_DENIED } };
	const char *action = json_string_value(json_object_get(result, "action"));
	json_t *content = json_object_get(result, "content");
	const char *decision = json_string_value(json_object_get(content, "decision"));
	const char *why = json_string_value(json_object_get(content, "reason"));
	snprintf(reason, 256, "%s", why ? why : "denied in the MCP client");
	if (action && !strcmp(action, "accept") && decision)
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
			if (!strcmp(rows[i].word, decision))
				return rows[i].answer;
	return CORDON_DENIED;
}

void mcp_elicit_answer(struct mcp_server *server, json_t *message)
{
	const char *id = json_string_value(json_object_get(message, "id"));
	if (!id)
		return;
	pthread_mutex_lock(&server->lock);
	for (struct mcp_call *call = server->calls; call; call = call->next) {
		if (call->asked != MCP_ASKED || strcmp(call->question_id, id))
			continue;
		json_t *result = json_object_get(message, "result");
		call->answer = result ? mcp_elicit_read(result, call->reason) : CORDON_UNANSWERED;
		call->asked = MCP_ANSWERED;
		uint64_t one = 1;
		if (write(call->answer_fd, &one, sizeof(one)) < 0)
			call->cancelled = true;
		break;
	}
	pthread_mutex_unlock(&server->lock);
}

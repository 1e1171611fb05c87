/* Asking the human behind the client. In the legacy era the server sends a request of its own; in the modern era the
 * call's request ends with `input_required`, and the client repeats it with the answer. The client may let a program
 * of its own answer, so this is a convenience and no proof of a human: with --approver cordon, nothing is asked
 * here. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "door/mcp/mcp-run.h"
#include "door/mcp/mcp-task.h"

/* The form that is shown, in both eras. What a call asks for without a command cannot be for one command only. */
static void put_form(struct json *json, const struct mcp_call *call, const struct cordon_card *card)
{
	bool for_session = call->tool->run == mcp_request_capability;
	json_object_begin(json);
	json_key_string(json, "mode", "form");
	json_key_string(json, "message", card->text);
	json_key(json, "requestedSchema");
	json_object_begin(json);
	json_key_string(json, "type", "object");
	json_key(json, "properties");
	json_object_begin(json);
	json_key(json, "decision");
	json_object_begin(json);
	json_key_string(json, "type", "string");
	json_key_string(json, "title", for_session ? "Allow this until the session ends?" : "Allow this command?");
	json_key(json, "enum");
	json_verbatim(json, for_session ? "[\"session\",\"deny\"]" : "[\"once\",\"session\",\"deny\"]");
	json_object_end(json);
	json_key(json, "reason");
	json_verbatim(json, "{\"type\":\"string\",\"title\":\"Reason, if denied\"}");
	json_object_end(json);
	json_key(json, "required");
	json_verbatim(json, "[\"decision\"]");
	json_object_end(json);
	json_object_end(json);
}

static void put_request(struct json *json, const struct mcp_call *call, const struct cordon_card *card)
{
	json_object_begin(json);
	json_key_string(json, "method", "elicitation/create");
	json_key(json, "params");
	put_form(json, call, card);
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
	put_form(&json, call, card);
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
	put_request(&json, call, card);
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

/* With the lock: the call is a task from now on, if it is none yet, and has a question. False: it can be none.
 * *ret_line answers its request, or is NULL where that was answered. */
static bool ask_by_task(struct mcp_call *call, const struct cordon_card *card, char **ret_line, size_t *ret_length)
{
	struct json json;
	char key[sizeof(call->question_id)];
	if (!call->tasks)
		return false;
	snprintf(key, sizeof(key), MCP_QUESTION "%llu", (unsigned long long)call->question);
	json_init(&json);
	json_object_begin(&json);
	json_key(&json, key);
	put_request(&json, call, card);
	json_object_end(&json);
	char *inputs = json_take(&json);
	if (!inputs)
		return false;
	mcp_task_ask(call, inputs);
	*ret_line = *call->task ? NULL : mcp_task_make(call, ret_length);
	return *call->task;
}

/* Waits until the client has answered, the card was settled elsewhere, the call was cancelled, or the time is over. */
static enum cordon_answer await_answer(struct mcp_call *call, const struct cordon_card *card, uint64_t until_ms,
                                       char reason[256])
{
	struct mcp_server *server = call->server;
	enum cordon_answer answer = CORDON_UNANSWERED;
	bool over = false;
	while (!over) {
		struct pollfd fds[] = { { .fd = call->answer_fd, .events = POLLIN },
			                { .fd = call->cancel_fd, .events = POLLIN },
			                { .fd = card->settled_fd, .events = POLLIN } };
		eventfd_t count;
		uint64_t now = mcp_now_ms(), left = now < until_ms ? until_ms - now : 0;
		if (poll(fds, ARRAY_SIZE(fds), left < INT_MAX ? (int)left : INT_MAX) < 0 && errno != EINTR)
			break;
		if (fds[0].revents && eventfd_read(call->answer_fd, &count) < 0 && errno != EAGAIN)
			break;
		pthread_mutex_lock(&server->lock);
		over = call->asked == MCP_ANSWERED || call->cancelled || fds[2].revents || !left;
		if (call->asked == MCP_ANSWERED && !call->cancelled) {
			answer = call->answer;
			memcpy(reason, call->reason, sizeof(call->reason));
		}
		pthread_mutex_unlock(&server->lock);
	}
	return answer;
}

/* The client still shows the question: it is told that no answer is wanted. In the modern era the state has expired, or
 * the call's result is sent to whom repeats the call. */
static void withdraw(struct mcp_server *server, const char *question_id)
{
	struct json json;
	size_t length = 0;
	rpc_notice_begin(&json, "notifications/cancelled");
	json_object_begin(&json);
	json_key_string(&json, "requestId", question_id);
	json_key_string(&json, "reason", "the question was answered elsewhere, or its time is over");
	json_object_end(&json);
	char *line = rpc_end(&json, &length);
	mcp_send(server, line, length);
}

enum cordon_answer mcp_elicit(void *arg, const struct cordon_card *card, char reason[256])
{
	struct mcp_call *call = arg;
	struct mcp_server *server = call->server;
	size_t length = 0;
	uint64_t until_ms = mcp_now_ms() + card->timeout_ms;
	char question_id[sizeof(call->question_id)];
	pthread_mutex_lock(&server->lock);
	/* A request can be answered once: in the modern era a second question needs the request that repeats it, or a
	 * task. */
	bool can = !call->cancelled && (*call->id || *call->task), by_task = false;
	char *line = NULL;
	if (can) {
		call->asked = MCP_ASKED;
		call->question = ++server->serial;
		call->expires_ms = until_ms;
		by_task = ask_by_task(call, card, &line, &length);
	}
	if (can && !by_task)
		line = call->modern ? modern_question(call, card, &length) : legacy_question(call, card, &length);
	pthread_mutex_unlock(&server->lock);
	if (!can)
		return CORDON_UNANSWERED;
	if (line || !by_task)
		mcp_send(server, line, length);
	enum cordon_answer answer = await_answer(call, card, until_ms, reason);
	pthread_mutex_lock(&server->lock);
	bool is_open = call->asked == MCP_ASKED && *call->question_id;
	memcpy(question_id, call->question_id, sizeof(question_id));
	call->asked = MCP_NOT_ASKED;
	call->question_id[0] = '\0';
	pthread_mutex_unlock(&server->lock);
	if (is_open)
		withdraw(server, question_id);
	return answer;
}

static enum cordon_answer read_result(json_t *result, char reason[256])
{
	static const struct {
		const char *word;
		enum cordon_answer answer;
	} rows[] = { { "once", CORDON_APPROVED_ONCE },
		     { "session", CORDON_APPROVED_SESSION },
		     { "deny", CORDON_DENIED } };
	const char *action = json_string_value(json_object_get(result, "action"));
	json_t *content = json_object_get(result, "content");
	const char *decision = json_string_value(json_object_get(content, "decision"));
	const char *why = json_string_value(json_object_get(content, "reason"));
	snprintf(reason, 256, "%s", why ? why : "denied in the MCP client");
	if (action && !strcmp(action, "accept") && decision)
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
			if (!strcmp(rows[i].word, decision))
				return rows[i].answer;
	/* A person who closes the form has not decided. */
	return action && !strcmp(action, "cancel") ? CORDON_UNANSWERED : CORDON_DENIED;
}

void mcp_elicit_take(struct mcp_call *call, json_t *result)
{
	call->answer = result ? read_result(result, call->reason) : CORDON_UNANSWERED;
	call->asked = MCP_ANSWERED;
	if (eventfd_write(call->answer_fd, 1) < 0)
		call->cancelled = true;
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
		mcp_elicit_take(call, json_object_get(message, "result"));
		break;
	}
	pthread_mutex_unlock(&server->lock);
}

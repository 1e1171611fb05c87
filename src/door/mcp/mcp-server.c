/* The server: lines in, lines out, and the methods that take no time. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "door/mcp/mcp-task.h"
#include "door/sweep.h"

#define READ_SIZE 65536

uint64_t mcp_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void mcp_send(struct mcp_server *server, char *line, size_t length)
{
	pthread_mutex_lock(&server->out_lock);
	for (size_t done = 0; line && done < length && !atomic_load(&server->broken);) {
		ssize_t written = write(STDOUT_FILENO, line + done, length - done);
		if (written > 0)
			done += (size_t)written;
		else if (errno == EAGAIN)
			poll(&(struct pollfd){ .fd = STDOUT_FILENO, .events = POLLOUT }, 1, 1000);
		else if (errno != EINTR)
			atomic_store(&server->broken, true);
	}
	pthread_mutex_unlock(&server->out_lock);
	if (!line)
		atomic_store(&server->broken, true);
	free(line);
}

void mcp_refuse(struct mcp_server *server, const char *id, int code, const char *message)
{
	size_t length = 0;
	char *line = rpc_error(id, (enum rpc_code)code, message, NULL, &length);
	mcp_send(server, line, length);
}

void mcp_refuse_with(struct mcp_server *server, const char *id, int code, const char *message, const char *data)
{
	struct json json;
	size_t length = 0;
	json_init(&json);
	json_object_begin(&json);
	json_key_string(&json, "jsonrpc", "2.0");
	json_key(&json, "id");
	json_verbatim(&json, id);
	json_key(&json, "error");
	json_object_begin(&json);
	json_key_int(&json, "code", code);
	json_key_string(&json, "message", message);
	json_key(&json, "data");
	json_verbatim(&json, data);
	json_object_end(&json);
	char *line = rpc_end(&json, &length);
	mcp_send(server, line, length);
}

static void answer_empty(struct mcp_server *server, const char *id)
{
	struct json json;
	rpc_result_begin(&json, id);
	size_t length = 0;
	json_object_begin(&json);
	json_object_end(&json);
	char *line = rpc_end(&json, &length);
	mcp_send(server, line, length);
}

/* -32022, with what is supported and what was asked for. */
static void refuse_version(struct mcp_server *server, const char *id, const char *requested)
{
	json_t *data = json_pack("{s:[s],s:s?}", "supported", MCP_MODERN, "requested", requested);
	auto_free char *text = data ? json_dumps(data, JSON_COMPACT) : NULL;
	json_decref(data);
	mcp_refuse_with(server, id, -32022, "this version of the protocol is not supported", text ? text : "null");
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

enum era { ERA_LEGACY, ERA_MODERN, ERA_REFUSED };

/* Which era a request is of. Refused: it was answered with an error. */
static enum era find_era(struct mcp_server *server, const struct rpc_call *call)
{
	json_t *meta = json_object_get(call->params, "_meta");
	json_t *version = json_object_get(meta, "io.modelcontextprotocol/protocolVersion");
	if (!version) {
		if (server->initialized || !strcmp(call->method, "initialize") || !strcmp(call->method, "ping"))
			return ERA_LEGACY;
		mcp_refuse(server, call->id, -32602,
		           "_meta lacks io.modelcontextprotocol/protocolVersion, and there was no initialize");
		return ERA_REFUSED;
	}
	const char *wanted = json_string_value(version);
	if (!wanted || strcmp(wanted, MCP_MODERN)) {
		refuse_version(server, call->id, wanted);
		return ERA_REFUSED;
	}
	if (!json_is_object(json_object_get(meta, "io.modelcontextprotocol/clientCapabilities"))) {
		mcp_refuse(server, call->id, -32602, "_meta lacks io.modelcontextprotocol/clientCapabilities");
		return ERA_REFUSED;
	}
	pthread_mutex_lock(&server->lock);
	if (!*server->client)
		mcp_take_client(server, json_object_get(meta, "io.modelcontextprotocol/clientInfo"));
	pthread_mutex_unlock(&server->lock);
	return ERA_MODERN;
}

/* Takes call->whole where it starts something. */
static void take_request(struct mcp_server *server, struct rpc_call *call)
{
	enum era era = find_era(server, call);
	if (era == ERA_REFUSED)
		return;
	if (!strcmp(call->method, "tools/call")) {
		json_t *message = call->whole;
		call->whole = NULL;
		if (era != ERA_MODERN || !mcp_call_resume(server, call->id, message))
			mcp_call_start(server, call->id, message, era == ERA_MODERN);
	} else if (!strcmp(call->method, "tools/list")) {
		mcp_list_tools(server, call->id, era == ERA_MODERN);
	} else if (!strcmp(call->method, "server/discover") && era == ERA_MODERN) {
		mcp_discover(server, call->id);
	} else if (!strcmp(call->method, "initialize") && era == ERA_LEGACY) {
		mcp_initialize(server, call->id, call->params);
	} else if (!strncmp(call->method, "tasks/", 6) && era == ERA_MODERN) {
		mcp_task_request(server, call);
	} else if (!strcmp(call->method, "ping") && era == ERA_LEGACY) {
		answer_empty(server, call->id);
	} else {
		mcp_refuse(server, call->id, RPC_NO_METHOD, "there is no such method");
	}
}

static void take_notification(struct mcp_server *server, const struct rpc_call *call)
{
	if (strcmp(call->method, "notifications/cancelled"))
		return;
	json_t *id = json_object_get(call->params, "requestId");
	auto_free char *text = id ? json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	if (text)
		mcp_call_cancel(server, text);
}

static void take_line(struct mcp_server *server, const char *line, size_t length)
{
	struct rpc_call call;
	const char *why;
	json_t *answer = rpc_parse_answer(line, length);
	if (answer) {
		mcp_elicit_answer(server, answer);
		json_decref(answer);
		return;
	}
	enum rpc_code code = rpc_parse(line, length, &call, &why);
	if (code != RPC_OK)
		mcp_refuse(server, call.id, code, why);
	else if (call.wants_answer)
		take_request(server, &call);
	else
		take_notification(server, &call);
	json_decref(call.whole);
}

/* Takes whole lines out of the buffer; *length is what is left. */
static void take_lines(struct mcp_server *server, char *buffer, size_t *length)
{
	size_t from = 0;
	for (char *end; (end = memchr(buffer + from, '\n', *length - from)); from = (size_t)(end + 1 - buffer)) {
		size_t size = (size_t)(end - (buffer + from));
		if (size && buffer[from + size - 1] == '\r')
			size--;
		if (size)
			take_line(server, buffer + from, size);
	}
	memmove(buffer, buffer + from, *length - from);
	*length -= from;
}

/* ---- the loop -------------------------------------------------------------------------------------------------- */

static int stop_fd = -1;

static void stop(int signal)
{
	int kept = errno;
	(void)signal;
	(void)!eventfd_write(stop_fd, 1);
	errno = kept;
}

/* A signal that would end the server ends its commands and its session as the end of input does. */
static int stop_at_signals(struct cordon_error *err)
{
	static const int ends[] = { SIGTERM, SIGINT, SIGHUP };
	stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (stop_fd < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "eventfd", "cannot wait for signals");
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		signal(ends[i], stop);
	return 0;
}

/* False: a signal ends the server. Meanwhile calls may become slow. */
static bool await_input(struct mcp_server *server, struct sweep *sweep)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = stop_fd, .events = POLLIN } };
	int ready = 0;
	while (ready == 0 || (ready < 0 && errno == EINTR)) {
		ready = poll(fds, ARRAY_SIZE(fds), sweep_wait_ms(sweep, mcp_task_make_slow(server)));
		if (ready < 0)
			continue;
		pthread_mutex_lock(&server->lock);
		bool is_busy = server->calls;
		pthread_mutex_unlock(&server->lock);
		sweep_step(sweep, server->cordon, is_busy);
	}
	sweep_begin(sweep);
	return !fds[1].revents;
}

static void read_all(struct mcp_server *server)
{
	auto_free char *buffer = NULL;
	size_t length = 0, capacity = 0;
	struct sweep sweep = { 0 };
	while (!atomic_load(&server->broken) && await_input(server, &sweep)) {
		if (capacity - length < READ_SIZE) {
			char *larger = length > MCP_LINE_MAX ? NULL : realloc(buffer, capacity + length + READ_SIZE);
			if (!larger) {
				mcp_refuse(server, "null", RPC_NO_REQUEST, "the line is too long");
				return;
			}
			buffer = larger;
			capacity += length + READ_SIZE;
		}
		ssize_t got = read(STDIN_FILENO, buffer + length, capacity - length);
		if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
			break;
		if (got < 0)
			continue;
		length += (size_t)got;
		take_lines(server, buffer, &length);
	}
	/* A last line needs no end. */
	if (length && !atomic_load(&server->broken))
		take_line(server, buffer, length);
}

/* Many calls at once need many descriptors. Commands have a limit of their own. */
static void allow_descriptors(void)
{
	struct rlimit limit;
	if (prlimit(0, RLIMIT_NOFILE, NULL, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	prlimit(0, RLIMIT_NOFILE, &limit, NULL);
}

int mcp_serve(const struct mcp_options *options, struct cordon_error *err)
{
	static struct mcp_server server = { .lock = PTHREAD_MUTEX_INITIALIZER, .call_ended = PTHREAD_COND_INITIALIZER,
	                                    .out_lock = PTHREAD_MUTEX_INITIALIZER, .session_fd = -1 };
	struct cordon_options wanted = { .config = options->config };
	if (sodium_init() < 0)
		return fail(err, CORDON_E_INTERNAL, 0, NULL, "there is no source of random numbers");
	if (stop_at_signals(err) < 0 || cordon_open(&wanted, &server.cordon, err) < 0)
		return -1;
	server.options = options;
	allow_descriptors();
	randombytes_buf(server.state_key, sizeof(server.state_key));
	read_all(&server);
	mcp_call_end_all(&server);
	mcp_session_end(&server);
	cordon_unref(server.cordon);
	sodium_memzero(server.state_key, sizeof(server.state_key));
	return 0;
}

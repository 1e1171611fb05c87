/* The server: lines in, lines out, and the methods that take no time. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "door/mcp/mcp.h"

#define READ_SIZE 65536
#define TTL_MS 3600000          /* the tools are the same as long as this server lives */

static const char instructions[] =
	"Commands run in a sandbox that the kernel enforces: the workspace is writable, the system is read-only, and there is no network "
	"unless a host was granted. What was refused is listed in `denials` with the smallest grant that would allow it; ask for it "
	"with request_capability. Files, /tmp and background jobs last as long as the session.";

static const char *const legacy_versions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };

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

static void send_json(struct mcp_server *server, struct json *json)
{
	size_t length = 0;
	char *line = rpc_end(json, &length);
	mcp_send(server, line, length);
}

/* ---- methods that only tell ------------------------------------------------------------------------------------------ */

static void put_server_info(struct json *json)
{
	json_object_begin(json);
	json_key_string(json, "name", "cordon");
	json_key_string(json, "title", "cordon: sandboxed commands and files");
	json_key_string(json, "version", CORDON_VERSION);
	json_object_end(json);
}

static void put_cacheable(struct json *json)
{
	json_key_string(json, "resultType", "complete");
	json_key_uint(json, "ttlMs", TTL_MS);
	json_key_string(json, "cacheScope", "public");
}

static void discover(struct mcp_server *server, const char *id)
{
	static const char *const versions[] = { MCP_MODERN };
	struct json json;
	rpc_result_begin(&json, id);
	json_object_begin(&json);
	put_cacheable(&json);
	json_key_strings(&json, "supportedVersions", versions, ARRAY_SIZE(versions));
	json_key(&json, "capabilities");
	json_verbatim(&json, "{\"tools\":{}}");
	json_key_string(&json, "instructions", instructions);
	json_key(&json, "_meta");
	json_object_begin(&json);
	json_key(&json, "io.modelcontextprotocol/serverInfo");
	put_server_info(&json);
	json_object_end(&json);
	json_object_end(&json);
	send_json(server, &json);
}

static void put_tool(struct json *json, const struct mcp_tool *tool)
{
	json_object_begin(json);
	json_key_string(json, "name", tool->name);
	json_key_string(json, "title", tool->title);
	json_key_string(json, "description", tool->description);
	json_key(json, "inputSchema");
	json_verbatim(json, tool->input);
	json_key(json, "outputSchema");
	json_verbatim(json, tool->output);
	json_key(json, "annotations");
	json_object_begin(json);
	json_key_bool(json, "readOnlyHint", tool->reads_only);
	json_key_bool(json, "destructiveHint", tool->destroys);
	json_key_bool(json, "idempotentHint", tool->repeats_safely);
	json_key_bool(json, "openWorldHint", tool->reaches_out);
	json_object_end(json);
	json_object_end(json);
}

static void list_tools(struct mcp_server *server, const char *id, bool modern)
{
	struct json json;
	rpc_result_begin(&json, id);
	json_object_begin(&json);
	if (modern)
		put_cacheable(&json);
	json_key(&json, "tools");
	json_array_begin(&json);
	for (size_t i = 0; i < mcp_tool_count; i++)
		put_tool(&json, &mcp_tools[i]);
	json_array_end(&json);
	json_object_end(&json);
	send_json(server, &json);
}

/* The client's name becomes part of the session's id. */
static void take_client(struct mcp_server *server, json_t *info)
{
	const char *name = json_string_value(json_object_get(info, "name"));
	size_t length = 0;
	for (; name && *name && length < sizeof(server->client) - 1; name++)
		if ((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') || (*name >= '0' && *name <= '9') || *name == '-')
			server->client[length++] = *name;
	server->client[length] = '\0';
}

static void initialize(struct mcp_server *server, const char *id, json_t *params)
{
	const char *wanted = json_string_value(json_object_get(params, "protocolVersion")), *version = legacy_versions[0];
	for (size_t i = 0; wanted && i < ARRAY_SIZE(legacy_versions); i++)
		if (!strcmp(legacy_versions[i], wanted))
			version = legacy_versions[i];
	pthread_mutex_lock(&server->lock);
	server->initialized = true;
	server->legacy_elicits = json_is_object(json_object_get(json_object_get(params, "capabilities"), "elicitation"));
	take_client(server, json_object_get(params, "clientInfo"));
	pthread_mutex_unlock(&server->lock);
	struct json json;
	rpc_result_begin(&json, id);
	json_object_begin(&json);
	json_key_string(&json, "protocolVersion", version);
	json_key(&json, "capabilities");
	json_verbatim(&json, "{\"tools\":{}}");
	json_key(&json, "serverInfo");
	put_server_info(&json);
	json_key_string(&json, "instructions", instructions);
	json_object_end(&json);
	send_json(server, &json);
}

static void answer_empty(struct mcp_server *server, const char *id)
{
	struct json json;
	rpc_result_begin(&json, id);
	json_object_begin(&json);
	json_object_end(&json);
	send_json(server, &json);
}

/* -32022, with what is supported and what was asked for. */
static void refuse_version(struct mcp_server *server, const char *id, const char *requested)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_string(&json, "jsonrpc", "2.0");
	json_key(&json, "id");
	json_verbatim(&json, id);
	json_key(&json, "error");
	json_object_begin(&json);
	json_key_int(&json, "code", -32022);
	json_key_string(&json, "message", "this version of the protocol is not supported");
	json_key(&json, "data");
	json_object_begin(&json);
	json_key(&json, "supported");
	json_verbatim(&json, "[\"" MCP_MODERN "\"]");
	json_key_string(&json, "requested", requested);
	json_object_end(&json);
	json_object_end(&json);
	send_json(server, &json);
}

/* ---- messages -------------------------------------------------------------------------------------------------------- */

enum era { ERA_LEGACY, ERA_MODERN, ERA_REFUSED };

/* Which era a request is of. Refused: it was answered with an error. */
static enum era find_era(struct mcp_server *server, const struct rpc_call *call)
{
	json_t *meta = json_object_get(call->params, "_meta");
	json_t *version = json_object_get(meta, "io.modelcontextprotocol/protocolVersion");
	if (!version) {
		if (server->initialized || !strcmp(call->method, "initialize") || !strcmp(call->method, "ping"))
			return ERA_LEGACY;
		mcp_refuse(server, call->id, -32602, "_meta lacks io.modelcontextprotocol/protocolVersion, and there was no initialize");
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
	if (!*server->client)
		take_client(server, json_object_get(meta, "io.modelcontextprotocol/clientInfo"));
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
		list_tools(server, call->id, era == ERA_MODERN);
	} else if (!strcmp(call->method, "server/discover") && era == ERA_MODERN) {
		discover(server, call->id);
	} else if (!strcmp(call->method, "initialize") && era == ERA_LEGACY) {
		initialize(server, call->id, call->params);
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

static void read_all(struct mcp_server *server)
{
	auto_free char *buffer = NULL;
	size_t length = 0, capacity = 0;
	while (!atomic_load(&server->broken)) {
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
		if (got < 0) {
			poll(&(struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN }, 1, 1000);
			continue;
		}
		length += (size_t)got;
		take_lines(server, buffer, &length);
	}
	/* A last line needs no end. */
	if (length && !atomic_load(&server->broken))
		take_line(server, buffer, length);
}

/* ---- the session ----------------------------------------------------------------------------------------------------- */

int mcp_session(struct mcp_server *server, const char **ret_id, struct cordon_error *err)
{
	const char *named = server->options->session;
	auto_free char *text = NULL;
	int result = 0;
	pthread_mutex_lock(&server->lock);
	if (!server->has_session) {
		if (named)
			snprintf(server->session, sizeof(server->session), "%s", named);
		else
			snprintf(server->session, sizeof(server->session), "mcp-%s%s%08x%08x", server->client, *server->client ? "-" : "",
			         randombytes_random(), randombytes_random());
		result = named ? 0 : cordon_session_new(server->cordon, server->session, server->options->settings, &text, err);
		server->has_session = result == 0;
	}
	pthread_mutex_unlock(&server->lock);
	if (result == 0)
		*ret_id = server->session;
	return result;
}

/* Ends a session of its own making. Its workspace stays. */
static void end_session(struct mcp_server *server)
{
	struct cordon_error ignored;
	if (server->has_session && !server->options->session &&
	    cordon_session_end(server->cordon, server->session, false, &ignored) == 0 &&
	    cordon_session_remove(server->cordon, server->session, &ignored) < 0)
		return; /* `cordon session list` shows it as ended */
}

int mcp_serve(const struct mcp_options *options, struct cordon_error *err)
{
	static struct mcp_server server = { .lock = PTHREAD_MUTEX_INITIALIZER, .call_ended = PTHREAD_COND_INITIALIZER,
	                                    .out_lock = PTHREAD_MUTEX_INITIALIZER };
	struct cordon_options wanted = { .config = options->config };
	if (sodium_init() < 0)
		return fail(err, CORDON_E_INTERNAL, 0, NULL, "there is no source of random numbers");
	if (cordon_open(&wanted, &server.cordon, err) < 0)
		return -1;
	signal(SIGPIPE, SIG_IGN);
	server.options = options;
	randombytes_buf(server.state_key, sizeof(server.state_key));
	read_all(&server);
	mcp_call_end_all(&server);
	end_session(&server);
	cordon_unref(server.cordon);
	sodium_memzero(server.state_key, sizeof(server.state_key));
	return 0;
}

/* The methods that only tell: what the server is, and its tools. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "door/mcp/mcp-task.h"

#define TTL_MS 3600000          /* the tools are the same as long as this server lives */

#ifdef SYSTEM_WITHOUT_JOBS
#define KEPT "Files in the workspace last from one command to the next."
#else
#define KEPT "Files, /tmp and background jobs last as long as the session."
#endif

static const char instructions[] =
	"Commands run in a sandbox that the kernel enforces: the workspace is writable, the system is read-only, and "
        "there is no network "
	"unless a host was granted. What was refused is listed in `denials`; where it can be asked for, "
        "`request_capability` has the "
	"arguments to call the tool of that name with. " KEPT;

static const char *const legacy_versions[] = { "2025-11-25", "2025-06-18" };

static void send_json(struct mcp_server *server, struct json *json)
{
	size_t length = 0;
	char *line = rpc_end(json, &length);
	mcp_send(server, line, length);
}

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

void mcp_discover(struct mcp_server *server, const char *id)
{
	static const char *const versions[] = { MCP_MODERN };
	struct json json;
	rpc_result_begin(&json, id);
	json_object_begin(&json);
	put_cacheable(&json);
	json_key_strings(&json, "supportedVersions", versions, ARRAY_SIZE(versions));
	json_key(&json, "capabilities");
	json_verbatim(&json, "{\"tools\":{},\"extensions\":{\"" MCP_TASKS_EXTENSION "\":{}}}");
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

void mcp_list_tools(struct mcp_server *server, const char *id, bool modern)
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

/* With the lock. The client's name becomes part of the session's id. */
void mcp_take_client(struct mcp_server *server, json_t *info)
{
	const char *name = json_string_value(json_object_get(info, "name"));
	size_t length = 0;
	for (; name && *name && length < sizeof(server->client) - 1; name++)
		if ((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
		    (*name >= '0' && *name <= '9') || *name == '-')
			server->client[length++] = *name;
	server->client[length] = '\0';
}

void mcp_initialize(struct mcp_server *server, const char *id, json_t *params)
{
	const char *wanted = json_string_value(json_object_get(params, "protocolVersion")),
		   *version = legacy_versions[0];
	for (size_t i = 0; wanted && i < ARRAY_SIZE(legacy_versions); i++)
		if (!strcmp(legacy_versions[i], wanted))
			version = legacy_versions[i];
	pthread_mutex_lock(&server->lock);
	server->initialized = true;
	server->legacy_elicits =
		json_is_object(json_object_get(json_object_get(params, "capabilities"), "elicitation"));
	mcp_take_client(server, json_object_get(params, "clientInfo"));
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

/* Tasks, the extension io.modelcontextprotocol/tasks of the modern era: a call that waits for a human or for a job is
 * answered with a task, and the client asks for its state and its result when it likes. Only calls whose request
 * declared the extension become tasks; a command that runs does not: it has its progress. */
#pragma once
#include "door/mcp/mcp.h"

#define MCP_TASKS_EXTENSION "io.modelcontextprotocol/tasks"
#define MCP_TASK_TTL_MS 86400000
#define MCP_TASK_POLL_MS 500
#define MCP_TASK_AFTER_MS 1000 /* a call that waits for so long, for a job or cordon's own approver, becomes one */

/* Does this request declare the extension? */
bool mcp_task_is_declared(json_t *params);
/* Turns the call into a task, which is on disk when this returns: the line that answers its request, to be sent without
 * the lock. NULL: it is none, and its request is still to be answered. With the server's lock. */
char *mcp_task_make(struct mcp_call *call, size_t *ret_length) __attribute__((warn_unused_result));
/* While cordon's own approver is asked, makes tasks of the calls that have become slow. Returns in how many ms to look
 * again; -1: when there is a new call. */
int mcp_task_make_slow(struct mcp_server *server);
/* The question of a task's call, which is asked from now on: takes `inputs`, the value of inputRequests. With the lock.
 */
void mcp_task_ask(struct mcp_call *call, char *inputs);
/* The call has ended: its result is kept for whoever asks. */
void mcp_task_settle(struct mcp_call *call, const char *result);
/* tasks/get, tasks/update, tasks/cancel. */
void mcp_task_request(struct mcp_server *server, const struct rpc_call *request);

/* ---- on disk (mcp-task-store.c): what tasks/get answers, a file for each task of a session
 * ---------------------------- */

/* Replaces it whole, or makes it; it is on disk then. False: it could not be, or there are too many. */
bool mcp_task_write(struct mcp_server *server, const char *session, const char *task, const char *text)
	__attribute__((warn_unused_result));
/* To be free()d; NULL: there is none of this id. */
char *mcp_task_read(struct mcp_server *server, const char *session, const char *task);
/* All of a session. */
void mcp_task_remove_all(struct mcp_server *server, const char *session);

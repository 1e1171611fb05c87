/* The tools that run commands: shell, exec, the job tools, request_capability, preflight. */
#pragma once
#include "door/mcp/mcp.h"

int mcp_shell(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err);
int mcp_exec(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err);
int mcp_job_start(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err);
int mcp_job_list(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err);
int mcp_job_poll(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err);
int mcp_job_wait(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err);
int mcp_job_kill(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err);
int mcp_request_capability(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err);
int mcp_preflight(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err);

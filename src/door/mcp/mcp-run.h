/* The tools that run commands: shell, exec, the job tools, request_capability, preflight; and what they share. */
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

/* A text among the arguments, or NULL. The call's. */
const char *mcp_text(const struct mcp_call *call, const char *name);
bool mcp_is_cancelled(struct mcp_call *call);
/* A request with what the call wants to run; its arguments are checked first. */
int mcp_command_request(struct mcp_call *call, const struct rpc_param *params, struct cordon_request **ret_request,
                        struct cordon_error *err) __attribute__((warn_unused_result));
/* A result as the object of the tool's outputSchema: to be free()d; NULL when memory is short. */
char *mcp_result_json(const struct mcp_call *call, const struct cordon_result *result);
/* The same as lines for a model, of what it must not miss: to be free()d; NULL: nothing. */
char *mcp_result_words(const struct cordon_result *result);
/* A denial as an element of `denials`; the grant, as cordon tells it, becomes the arguments to ask for it with. */
void mcp_put_denial(struct json *json, const char *what, const char *wall, const char *note, const char *grant);
/* An error of cordon's as JSON, in words for a model: the grant as what request_capability is called with, no options
 * of the command line. `os_errno` is 0 where it is not known. False when memory is short, or there is no error. */
bool mcp_reword_error(json_t *error, int os_errno, bool may_ask) __attribute__((warn_unused_result));
/* The same of denials. */
bool mcp_reword_denials(json_t *denials) __attribute__((warn_unused_result));
/* The member `error`. */
void mcp_put_error(struct json *json, const struct mcp_call *call, const struct cordon_error *err);

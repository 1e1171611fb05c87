/* A file operation of the exec-server, as its parts see it. */
#pragma once
#include "door/exec/exec.h"

struct exec_asked {
	struct exec_server *server;
	char id[RPC_ID_MAX];
	json_t *params;                 /* its own */
	char *path;                     /* of the member `path`; or of `sourcePath` */
};

/* One call of a file tool. */
int exec_call_tool(struct exec_server *server, const char *tool, struct cordon_file *file,
                   struct cordon_file_result **ret_result, struct cordon_error *err) must_check;
void exec_answer_nothing(const struct exec_asked *asked);

void exec_handle_open(const struct exec_asked *asked);
void exec_handle_read(const struct exec_asked *asked);
void exec_handle_close(const struct exec_asked *asked);
void exec_handle_close_all(struct exec_server *server);

/* `cordon exec-server`: the environment in which Codex runs its commands and keeps its files, by Codex's own protocol
 * on stdin and stdout: lines of JSON-RPC without the member `jsonrpc`.
 *
 * One loop: a command is an execution that is stepped, a file operation is a call of a file tool. What may wait for a
 * human, the start of a command and a file operation, has a thread of its own (exec-task.h), so that nothing else
 * waits; what is done within a moment is answered in its turn. All of them are of one session, the agent's
 * (door/agent/agent.h). What the client says about its own sandbox is not read: the session's walls hold for whatever
 * it asks. A command that is refused is told to the model as a command that failed, with the reason on its standard
 * error; the client would take an error of the protocol for a broken environment.
 *
 * Refused by name: arg0, and members of envPolicy that are not known; what envPolicy says of variables that are
 * inherited holds, since none is. A session that is to be resumed is another server's: resumeSessionId is refused.
 *
 * Not served: http/request, and the discovery of plugins; both answer that they are not there. */
#pragma once
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cordon-internal.h"
#include "door/rpc/rpc.h"

#define EXEC_LINE_MAX (64u << 20)       /* a file of 25 MB in base64 */
#define EXEC_PROCESSES_MAX 64           /* running, and as many that have ended */
#define EXEC_KEPT_BYTES (1u << 20)      /* of each process's output, for process/read */
#define EXEC_NAME_SIZE 256              /* of a process or a handle, with the NUL */

enum exec_code {
	EXEC_OK = 0,
	EXEC_INVALID = -32600,
	EXEC_NO_METHOD = -32601,
	EXEC_BAD_PARAMS = -32602,
	EXEC_NOT_FOUND = -32004,
	EXEC_FAILED = -32603
};

struct exec_handle;
struct exec_process;

struct exec_server {
	struct cordon *cordon;
	const char *session, *cwd;
	struct exec_process *processes;         /* the newest first */
	struct exec_handle *handles;            /* under `lock` */
	struct exec_file_task *tasks;           /* file operations that take longer */
	pthread_mutex_t lock;
	pthread_mutex_t out_lock;               /* of stdout: one line at a time */
	int ending_fd;                          /* readable when nobody waits any more for what a human would say */
	char client[RPC_ID_MAX];                /* id of this connection */
	atomic_bool broken;                     /* stdout cannot be written */
};

/* Serves until the end of stdin. All is borrowed. */
int exec_serve(struct cordon *cordon, const char *session, const char *cwd, struct cordon_error *err) must_check;

/* ---- what the parts need of each other --------------------------------------------------------------------------- */

uint64_t exec_now_ms(void);
/* A result that is begun and to be ended: the value stands between. */
void exec_result_begin(struct json *json, const char *id);
void exec_notice_begin(struct json *json, const char *method);
void exec_end(struct exec_server *server, struct json *json);
void exec_refuse(struct exec_server *server, const char *id, enum exec_code code, const char *message);
/* An error of cordon's, with what to do about it. */
void exec_refuse_error(struct exec_server *server, const char *id, const struct cordon_error *err);
void exec_key_base64(struct json *json, const char *key, const void *data, size_t length);
/* To be free()d; NULL: it is no base64. */
char *exec_from_base64(const char *text, size_t length, size_t *ret_length);
/* A file: URI as an absolute path, to be free()d; NULL: it is none. */
char *exec_path_of_uri(const char *uri);
/* The opposite: to be free()d; NULL when memory is short. */
char *exec_uri_of_path(const char *path);
/* A text member without a NUL; NULL: it is not there. */
const char *exec_text(json_t *params, const char *key);
/* A request of the session. */
int exec_request(struct exec_server *server, struct cordon_request **ret_request, struct cordon_error *err) must_check;

/* False: there is no such method. */
bool exec_process_call(struct exec_server *server, const char *method, const char *id, json_t *params);
bool exec_file_call(struct exec_server *server, const char *method, const char *id, json_t *params);
/* Those that are done. */
void exec_file_step_all(struct exec_server *server);
void exec_file_close_all(struct exec_server *server);

/* For the loop: the descriptors to poll after the first, at most EXEC_PROCESSES_MAX * 2; and when to wake up, -1: no
 * need. */
struct pollfd;
size_t exec_process_poll(struct exec_server *server, struct pollfd *fds);
int exec_process_timeout(const struct exec_server *server);
/* Goes on with whatever is ready. */
void exec_process_step_all(struct exec_server *server);
void exec_process_end_all(struct exec_server *server);

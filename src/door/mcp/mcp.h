/* `cordon mcp`: a Model Context Protocol server on stdin and stdout, one message per line.
 *
 * One thread reads messages and answers what takes no time. Each tool call has a thread of its own, since it waits for
 * a command and perhaps for a human. Both eras of the protocol are served at once: a request that carries a protocol
 * version in its `_meta` is of the modern era, any other belongs to a client that sent `initialize`. The client is not
 * trusted: messages have limits, and nothing a client says about itself widens a policy. */
#pragma once
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/utc.h"
#include "cordon-internal.h"
#include "door/rpc/rpc.h"

#define MCP_CALLS_MAX 256               /* tool calls under way */
#define MCP_LINE_MAX (16u << 20)
#define MCP_SESSION_SIZE 128
#define MCP_MODERN "2026-07-28"
#define MCP_TASK_ID 33                  /* with the NUL */
#define MCP_QUESTION "approval-"        /* begins the key of a task's question; its serial follows */

struct mcp_options {
	const char *config;             /* a file instead of the system's and the user's; or NULL */
	const char *session;            /* a session that a person named; or NULL: one that lasts as long as this
	                                   server */
	struct cordon_request *settings;        /* of a new session: workspace, grants, limits. Borrowed */
	bool own_approver;              /* approvals are answered by cordon's own means only, never by the client */
};

struct mcp_server {
	struct cordon *cordon;
	const struct mcp_options *options;
	pthread_mutex_t lock;           /* over what follows, and over the calls' members that say so */
	pthread_cond_t call_ended;
	struct mcp_call *calls;
	size_t call_count;
	uint64_t serial;                /* of calls, and of questions to the client */
	bool has_session;               /* of its own making: */
	char session[MCP_SESSION_SIZE];
	int session_fd;                 /* locked as long as this server lives (mcp-session.c); or -1 */
	bool initialized;               /* the legacy era: there was `initialize` */
	bool legacy_elicits;
	char client[48];                /* its name, reduced to letters and digits */
	pthread_mutex_t out_lock;       /* over stdout */
	atomic_bool broken;             /* stdout has no reader any more */
	unsigned char state_key[32];    /* authenticates what the client keeps for the server between two requests */
};

enum mcp_asked {
	MCP_NOT_ASKED,
	MCP_ASKED,                      /* the client has a question to answer */
	MCP_ANSWERED,                   /* `answer` is there for the call's thread to take */
};

/* One tool call. In the modern era a question to a human ends the request, and the call waits for the request that
 * repeats it. */
struct mcp_call {
	struct mcp_call *next;
	struct mcp_server *server;
	uint64_t serial;
	const struct mcp_tool *tool;
	json_t *whole, *arguments;      /* the message, which owns the arguments */
	bool modern, elicits;
	uint64_t began_ms;
	char *client_ref;               /* ids that the client sent, for the ledger; or NULL */
	char *progress_token;           /* as JSON; or NULL: the client wants no progress */
	char *words;                    /* of the call's thread: what the result is besides, in words; or NULL */
	unsigned char digest[32];       /* of tool and arguments */
	int cancel_fd;                  /* readable for good once the call was cancelled */
	int answer_fd;                  /* readable when an answer came; read by the thread that waits for it only */
	/* With the server's lock: */
	char id[RPC_ID_MAX];            /* the request to answer; "": none now */
	char last_id[RPC_ID_MAX];       /* the request that the client knows the call by, answered or not */
	bool cancelled;
	bool runs;                      /* its command was started */
	bool tasks;                     /* it may become a task (mcp-task.h) */
	char task[MCP_TASK_ID];         /* its id as a task; "": it is none */
	char created[UTC_SIZE], updated[UTC_SIZE];      /* of the task */
	char *inputs;                   /* the task's question, as the value of inputRequests; or NULL */
	char *parked;                   /* the result of a call that had no request to answer when it ended */
	uint64_t question;              /* the serial of the newest question; 0: there was none */
	uint64_t expires_ms;            /* of the question */
	enum mcp_asked asked;
	char question_id[40];           /* legacy: of the server's own request */
	enum cordon_answer answer;
	char reason[256];
};

/* What a tool returns: an object for `structuredContent`, and whether it failed. */
struct mcp_tool {
	const char *name, *title, *description;
	const char *input, *output;     /* JSON schemas */
	bool reads_only, destroys, repeats_safely, reaches_out;
	/* *ret_json, to be free()d, is an object. An error of cordon's is a result of the tool that says so, not one
	 * of the protocol. */
	int (*run)(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err);
};

extern const struct mcp_tool mcp_tools[];
extern const size_t mcp_tool_count;
const struct mcp_tool *mcp_tool_find(const char *name);

/* Serves until the end of stdin, or a signal that ends programs. */
int mcp_serve(const struct mcp_options *options, struct cordon_error *err) __attribute__((warn_unused_result));

/* ---- what the parts of the server need of each other ----------------------------------------------------------- */

uint64_t mcp_now_ms(void);
/* A line to the client; `line` is freed. NULL, for want of memory, ends the server. */
void mcp_send(struct mcp_server *server, char *line, size_t length);
void mcp_refuse(struct mcp_server *server, const char *id, int code, const char *message);
/* With `data`, which is JSON. */
void mcp_refuse_with(struct mcp_server *server, const char *id, int code, const char *message, const char *data);
/* Methods that only tell (mcp-tell.c). */
void mcp_discover(struct mcp_server *server, const char *id);
void mcp_list_tools(struct mcp_server *server, const char *id, bool modern);
void mcp_initialize(struct mcp_server *server, const char *id, json_t *params);
/* With the lock. The client's name becomes part of the session's id. */
void mcp_take_client(struct mcp_server *server, json_t *info);
/* Starts the call, in a thread of its own. Takes `message`. */
void mcp_call_start(struct mcp_server *server, const char *id, json_t *message, bool modern);
/* Answers the request that repeats a call whose question was answered. False: `message` repeats none. */
bool mcp_call_resume(struct mcp_server *server, const char *id, json_t *message);
void mcp_call_cancel(struct mcp_server *server, const char *id);
/* The same for a call; with the lock. */
void mcp_call_stop(struct mcp_call *call);
/* Ends all calls and waits for them. */
void mcp_call_end_all(struct mcp_server *server);
/* An answer to one of the server's own requests. */
void mcp_elicit_answer(struct mcp_server *server, json_t *message);
/* An elicitation's result, which the call waits for: it goes on with what the human decided. With the lock. */
void mcp_elicit_take(struct mcp_call *call, json_t *result);
/* The approver of every call; `arg` is the call. */
enum cordon_answer mcp_elicit(void *arg, const struct cordon_card *card, char reason[256]);
/* What the client has to send back with the request that repeats the call: to be free()d, or NULL. */
char *mcp_state_make(const struct mcp_call *call);
/* The serial of the question that `state` belongs to; 0: it is forged, expired, or for other arguments. */
uint64_t mcp_state_read(const struct mcp_server *server, const char *state, const unsigned char digest[32]);
/* An error of the call for a model, as `{"error":{…}}`: to be free()d; NULL when memory is short. */
char *mcp_error_json(const struct mcp_call *call, const struct cordon_error *err);
/* The session of this server's calls, made when the first needs it. The text is the server's. */
int mcp_session(struct mcp_server *server, const char **ret_id, struct cordon_error *err)
	__attribute__((warn_unused_result));
/* Checks the call's arguments; lists end with one that has no name. */
int mcp_check(struct mcp_call *call, const struct rpc_param *params, struct cordon_error *err)
	__attribute__((warn_unused_result));
/* Ends a session of its own making. Its workspace stays. */
void mcp_session_end(struct mcp_server *server);
/* A request of the server's session, with the call's approver; no command yet. */
int mcp_request(struct mcp_call *call, struct cordon_request **ret_request, struct cordon_error *err)
	__attribute__((warn_unused_result));

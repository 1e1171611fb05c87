/* JSON-RPC 2.0 as lines of text: calls are read, answers are written. The lines are untrusted. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cordon-internal.h"

/* 32 MiB of bytes in base64, with what stands around them. */
#define RPC_LINE_MAX (48u << 20)
#define RPC_DEPTH_MAX 16
#define RPC_ID_MAX 128

enum rpc_code {
	RPC_OK = 0,
	RPC_NOT_JSON = -32700,
	RPC_NO_REQUEST = -32600,
	RPC_NO_METHOD = -32601,
	RPC_BAD_PARAMS = -32602,
	RPC_REFUSED = -32000,           /* by cordon: `data` says why */
	RPC_TOO_MANY = -32001,
};

struct rpc_call {
	json_t *whole;                  /* owns the rest; to be released with json_decref() */
	const char *method;
	json_t *params;                 /* an object, perhaps an empty one */
	char id[RPC_ID_MAX];            /* as JSON; "null" in what is wrong before there is one */
	bool wants_answer;
	size_t length;                  /* of the line */
};

/* One line without its end. On failure ret_call->id is filled nevertheless, and *ret_why says what is wrong. */
enum rpc_code rpc_parse(const char *line, size_t length, struct rpc_call *ret_call, const char **ret_why);

/* The same line as an answer to a request of ours, to be released with json_decref(); NULL: it is none. */
json_t *rpc_parse_answer(const char *line, size_t length);

enum rpc_type { RPC_TEXT, RPC_FLAG, RPC_COUNT, RPC_TEXTS, RPC_OBJECT, RPC_TEXT_OR_NUMBER };

/* Lists of them end with one that has no name. */
struct rpc_param {
	const char *name;
	enum rpc_type type;
	bool is_needed;
	const struct rpc_param *members; /* of an object; NULL: the reader checks */
};

/* What is given must be among `known` and of its type, for what is passed over could be what a caller relies on; and
 * what is needed must be given. The error's subject is the name. */
int rpc_check(json_t *params, const struct rpc_param *known, struct cordon_error *err)
	__attribute__((warn_unused_result));

/* A line of answer: begin, then the value, then end, which returns the text with its newline, to be free()d, or
 * NULL. */
void rpc_result_begin(struct json *json, const char *id);
/* The same for a notification; the value is its parameters. */
void rpc_notice_begin(struct json *json, const char *method);
char *rpc_end(struct json *json, size_t *ret_length);
/* `err` may be NULL. */
char *rpc_error(const char *id, enum rpc_code code, const char *message, const struct cordon_error *err,
                size_t *ret_length);

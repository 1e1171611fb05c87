/* The table of methods (methods.def), and what is made from it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define METHOD_PARAMS_MAX 12
#define METHOD_DEPTH_MAX 16     /* of what a caller nests */
#define METHOD_PROTOCOL 1       /* of JSON-RPC, as a client sees it; a new method is no new protocol */

enum method_flag {
	METHOD_QUICK = 1,
	METHOD_READS = 2,
	METHOD_STREAMS = 4,
	METHOD_WAITS = 8,
	METHOD_DESTROYS = 16,
	METHOD_AGAIN = 32,
};

enum method_type {
	METHOD_TEXT,
	METHOD_BYTES,                   /* also as NAME_base64 */
	METHOD_PATH,                    /* the same, without a NUL */
	METHOD_COUNT,
	METHOD_FLAG,
	METHOD_LIST,                    /* of texts */
	METHOD_WORDS,                   /* of what a path is; NAME_base64 is a list, too */
	METHOD_SETTINGS,
	METHOD_CHOICE,
};

struct method_param {
	const char *name;               /* NULL ends the list */
	enum method_type type;
	bool needed;
	int64_t most;                   /* bytes, elements, members, or the number itself */
	const char *values;             /* of a choice: "a b c" */
	const char *summary;
};

struct method {
	const char *name;
	unsigned flags;
	const char *summary, *result;
	struct method_param params[METHOD_PARAMS_MAX + 1];
};

/* May it be given as NAME_base64? */
bool method_param_is_bytes(const struct method_param *param);

/* What is told without being asked for. The second list is of the notice process.event. */
struct notice {
	const char *name, *after, *summary, *shape;
};
extern const struct notice notices[], events[];
extern const size_t notice_count, event_count;

extern const struct method methods[];
extern const size_t method_count;

/* NULL: there is none. *ret_nearest (may be NULL) is then the name closest to it, or NULL. */
const struct method *method_find(const char *name, const char **ret_nearest);

struct json;
/* The value of rpc.discover. */
void methods_write(struct json *json);

/* Carrying out a method of the table (methods.def). */
#pragma once
#include "api/methods.h"
#include "api/value.h"

struct call {
	struct cordon *cordon;
	const struct method *method;
	const json_t *params;           /* checked against the table */
	json_t *result;                 /* filled by the handler; NULL: an empty object */
};

/* A caller's JSON, "{}" for NULL; NULL where it is none, too deep, or has a member twice. */
json_t *call_params_read(const char *params);
/* Against the table; `params` may be NULL. */
int call_params_check(const struct method *method, json_t *params, struct cordon_error *err) must_check;
/* Parameters, whose type is known to be right. NULL and 0 where they are not given. */
const char *call_text(const struct call *call, const char *name);
uint64_t call_count(const struct call *call, const char *name, uint64_t otherwise);
bool call_flag(const struct call *call, const char *name);
const void *call_bytes(const struct call *call, const char *name, size_t *ret_length);
/* A list, ended by NULL, to be free()d; NULL in it where the list is not given. */
int call_list(const struct call *call, const char *name, const char ***ret_list, struct cordon_error *err) must_check;
/* The result: what the library told as JSON, taken; a member of it. */
int call_take_text(struct call *call, char *text, struct cordon_error *err) must_check;
int call_take(struct call *call, json_t *tree, struct cordon_error *err) must_check;

/* A request from `settings`, and if `with_command` from `argv` and `environment`. */
int call_request(const struct call *call, bool with_command, struct cordon_request **ret_request,
                 struct cordon_error *err) must_check;
/* A request from the object `name` of settings, without a command. */
int call_settings_request(const struct call *call, const char *name, struct cordon_request **ret_request,
                          struct cordon_error *err) must_check;
/* session-update.c: labels, idle_expiry_s, grant and revoke of the call. */
int session_update(const struct call *call, const char *id, struct cordon_error *err) must_check;
/* Before a session is made with those of the call. */
int session_check_labels(const struct call *call, struct cordon_error *err) must_check;
/* Has it all of these labels? */
bool session_has_labels(const json_t *labels, const json_t *wanted);
/* The number of a signal by its name, with or without SIG, or as a number. 0: there is none. */
int call_signal(const char *name);

#define METHOD(name, handler, flags, summary, result, ...)                                                             \
	int call_##handler(struct call *call, struct cordon_error *err) must_check;
#include "api/methods.def"
#undef METHOD

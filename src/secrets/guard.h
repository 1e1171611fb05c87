/* One request's secrets: what is looked for, what a command's arguments and environment have of it, and its two output
 * streams; what a file tool is given and returns; and the rows that both leave in the ledger. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "secrets/screen.h"

struct secret_guard_options {
	char *const *environments[2];   /* whose secrets are looked for: the caller's and cordon's own; may be NULL */
	const struct strings *passed;   /* variables that the caller passes on: names, or PREFIX_* */
	const struct strings *given[2]; /* NAME=VALUE that the command gets by name; exempt like the former */
	const char *data_dir;           /* where the key of the fingerprints is kept, as SECRET_KEY_FILE */
	void (*deliver)(void *context, int stream, const void *bytes, size_t length);
	void *context;
};
#define SECRET_KEY_FILE "secrets.key"

struct secret_guard;

/* Where a finding is: an argument (by its number), a variable of the environment, a stream, or what a file tool
 * returns. */
struct secret_place {
	char where[80];                 /* "argument 3", "environment NAME", "stdout", "stderr", "content" */
	bool is_output;
	struct secret_finding finding;
};

int secret_guard_new(const struct secret_guard_options *options, struct secret_guard **ret_guard,
                     struct cordon_error *err) must_check;
void secret_guard_free(struct secret_guard *guard);

/* A secret of the caller's that is in no environment. Before anything is searched but rows. -1 when memory is short. */
enum secret_use {
	SECRET_NOT_GIVEN,
	SECRET_GIVEN,                   /* the command gets it, and it is hidden in rows only */
	SECRET_GATEWAY_KEY,             /* not in the terms */
};
int secret_guard_add_own(struct secret_guard *guard, const char *name, const char *value, size_t length,
                         enum secret_use use) must_check;
/* What is done about findings: in arguments and environment; in output. Before any of the following. */
void secret_guard_set_policies(struct secret_guard *guard, const struct secret_policy *before,
                               const struct secret_policy *after);

/* A row of the ledger, or another text that is kept: the caller's own secrets, also those that the command got by
 * name, and what is known by its shape are replaced, whatever the policy. -1 when memory is short. */
int secret_guard_clean_json(struct secret_guard *guard, struct json *json) must_check;
int secret_guard_clean_array(struct secret_guard *guard, char *text, size_t size) must_check;

/* Before the start: `environment` is the command's. Refused with leak_blocked where the policy blocks; no error shows
 * a value. */
int secret_guard_check(struct secret_guard *guard, const struct strings *argv, const struct strings *environment,
                       struct cordon_error *err) must_check;

/* The same for a text that a file tool is given; `where` is what the error calls it. */
int secret_guard_check_text(struct secret_guard *guard, const char *where, const void *text, size_t length,
                            struct cordon_error *err) must_check;
/* What a file tool returns goes through this. Its findings are the guard's. NULL when memory is short. */
struct secret_screen *secret_guard_screen(struct secret_guard *guard);

/* For what a command sends in the clear: the policy is that for arguments. The set is the guard's, without keys of
 * gateways: the proxy gets it, and a session keeps it while its sandbox is up. -1 when memory is short. */
int secret_guard_terms(struct secret_guard *guard, bool with_key, struct secret_terms *ret_terms) must_check;

/* Output: 1 is stdout, 2 stderr. It is handed to `deliver` as far as it is judged. */
void secret_guard_add(struct secret_guard *guard, int stream, const void *bytes, size_t length);
/* How long what is held may still be held; 0: nothing is. */
uint64_t secret_guard_held_ms(const struct secret_guard *guard);
/* Those streams whose time is over. */
void secret_guard_release(struct secret_guard *guard);
void secret_guard_finish(struct secret_guard *guard);

/* What came in; UINT64_MAX if nothing did. */
uint64_t secret_guard_total(const struct secret_guard *guard, int stream);
/* How many of the caller's own secrets are not looked for, because there are too many. */
size_t secret_guard_left_out(const struct secret_guard *guard);
/* How many were found, and how many of them are hidden in the output. */
uint64_t secret_guard_count(const struct secret_guard *guard, uint64_t *ret_hidden);
/* The first ones, at most SECRET_PLACES; borrowed until the guard is freed. */
#define SECRET_PLACES 64
size_t secret_guard_places(struct secret_guard *guard, const struct secret_place **ret_places);
/* Does the policy end the output of a stream, because of a secret? */
bool secret_guard_is_blocked(const struct secret_guard *guard);

/* One command's secrets: what is looked for, what its arguments and environment have of it, and its two output streams. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "secrets/filter.h"

struct secret_guard_options {
	char *const *environments[2];   /* whose secrets are looked for: the caller's and cordon's own; may be NULL */
	const struct strings *passed;   /* variables that the caller passes on: names, or PREFIX_* */
	const struct strings *given[2]; /* NAME=VALUE that the command gets by name; exempt like the former */
	struct secret_policy before, after;     /* for arguments and environment; for output */
	const char *data_dir;           /* where the key of the fingerprints is kept, as SECRET_KEY_FILE */
	void (*deliver)(void *context, int stream, const void *bytes, size_t length);
	void *context;
};
#define SECRET_KEY_FILE "secrets.key"

struct secret_guard;

/* Where a finding is: an argument (by its number), a variable of the environment, or a stream. */
struct secret_place {
	char where[80];                 /* "argument 3", "environment NAME", "stdout", "stderr" */
	struct secret_finding finding;
};

int secret_guard_new(const struct secret_guard_options *options, struct secret_guard **ret_guard, struct cordon_error *err) must_check;
void secret_guard_free(struct secret_guard *guard);

/* Before the start: `environment` is the command's. Refused with leak_blocked where the policy blocks; no error shows a value. */
int secret_guard_check(struct secret_guard *guard, const struct strings *argv, const struct strings *environment,
                       struct cordon_error *err) must_check;

/* Output: 1 is stdout, 2 stderr. It is handed to `deliver` as far as it is judged. */
void secret_guard_add(struct secret_guard *guard, int stream, const void *bytes, size_t length);
/* How long what is held may still be held; 0: nothing is. */
uint64_t secret_guard_held_ms(const struct secret_guard *guard);
/* Those streams whose time is over. */
void secret_guard_release(struct secret_guard *guard);
void secret_guard_finish(struct secret_guard *guard);

/* What came in; UINT64_MAX if nothing did. */
uint64_t secret_guard_total(const struct secret_guard *guard, int stream);
/* How many were found, and how many of them are hidden in the output. */
uint64_t secret_guard_count(const struct secret_guard *guard, uint64_t *ret_hidden);
/* The first ones, at most SECRET_PLACES; borrowed until the guard is freed. */
#define SECRET_PLACES 64
size_t secret_guard_places(struct secret_guard *guard, const struct secret_place **ret_places);
/* Does the policy end the output of a stream, because of a secret? */
bool secret_guard_is_blocked(const struct secret_guard *guard);

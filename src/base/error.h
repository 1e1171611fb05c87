/* The one error value (cordon.h) and the one way to fill it. */
#pragma once
#include <errno.h>

#include "cordon.h"

/* Fills `err` and returns -1, so that a failure is one line:
 *     return fail(err, CORDON_E_INVALID_REQUEST, 0, path, "must be absolute");
 * `os_errno` is 0 or an errno value, whose text is added to the reason. `subject` may be NULL. Text that is too long is
 * cut, between characters. Want of descriptors is `limit_exceeded` unless the class is one to try again, and retriable;
 * what helps against that is known, so fail_remedy() leaves it. errno is kept. `err` may be NULL, and its own fields
 * may be arguments. */
int fail(struct cordon_error *err, enum cordon_class class, int os_errno, const char *subject, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
int fail_oom(struct cordon_error *err);

/* Adds to an error that is already filled, on its way out; both return -1. */
int fail_remedy(struct cordon_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
int fail_boundary(struct cordon_error *err, const char *boundary);

/* What a public call does first: a caller that does not want to know why it failed gives NULL for `err`, and any of the
 * other arguments that is NULL is refused by its name. */
#define call_check(err, ...)                                                                                            \
	((err) = error_wanted(err), error_refuse_null((err), #__VA_ARGS__, (const void *const[]){ __VA_ARGS__ },        \
	                                              sizeof((const void *const[]){ __VA_ARGS__ }) / sizeof(void *)))
struct cordon_error *error_wanted(struct cordon_error *err);
int error_refuse_null(struct cordon_error *err, const char *names, const void *const *values, size_t count);

/* The class whose wire name this is, or CORDON_OK. */
enum cordon_class error_class_from_name(const char *name);

struct json;
/* Writes the value of "error": the object with the nine keys. */
void error_write_json(struct json *json, const struct cordon_error *err);

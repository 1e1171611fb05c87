/* The one error value (cordon.h) and the one way to fill it. */
#pragma once
#include <errno.h>

#include "cordon-internal.h"

/* The system that this is compiled for, as errors and the ledger name it: src/base/<system>/system.h. */
#ifndef SYSTEM_NAME
#define SYSTEM_NAME "linux"
#endif

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
/* The smallest grant that would allow it: a setting and its value. What does not fit whole is left out. */
int fail_grant(struct cordon_error *err, const char *key, const char *value);

/* A grant as its option, "--read PATH": ret_key gets the setting's name, and its value is returned. NULL: it is none,
 * or several. */
const char *error_grant(const char *option, char *ret_key, size_t size);

/* What a public call does first: a caller that does not want to know why it failed gives NULL for `err`, and any of the
 * other arguments that is NULL is refused by its name. */
#define call_check(err, ...)                                                                                           \
	((err) = error_wanted(err), error_refuse_null((err), #__VA_ARGS__, (const void *const[]){ __VA_ARGS__ },       \
	                                              sizeof((const void *const[]){ __VA_ARGS__ }) / sizeof(void *)))
struct cordon_error *error_wanted(struct cordon_error *err);
int error_refuse_null(struct cordon_error *err, const char *names, const void *const *values, size_t count);

struct json;
/* The member `setting`: the option as {key, value}, or null where it is no single one. */
void error_write_setting(struct json *json, const char *option);
/* Writes the value of "error": the object with its eleven keys. */
void error_write_json(struct json *json, const struct cordon_error *err);

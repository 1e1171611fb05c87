/* A [credentials.NAME] of the configuration: where its value is, who gets it. A value is in memory from its reading to
 * the start of the program that gets it, then wiped; no error and no row has it. */
#pragma once
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"

#define CREDENTIAL_MAX 16384            /* bytes of a value */
#define CREDENTIAL_TIMEOUT_MS 10000

/* One of the three sources is not NULL, or not empty. */
struct credential {
	const char *name;
	const char *file;
	const char *from_variable;      /* of the caller's environment */
	struct strings command;
	uint64_t timeout_ms;            /* of the command */
	const char *variable;           /* in which `programs` get it; NULL: only a gateway uses it */
	struct strings programs;
};

/* What a command could put in the place of what is read: nothing is read or executed there. Borrowed. */
struct credential_reach {
	const char *const *roots;       /* canonical paths */
	size_t count;
};

struct credential_value {
	char *bytes;                    /* ended by a NUL that is not counted; NULL: none */
	size_t length;
};

/* Reads the value; `environment` is the caller's. An error is `config_invalid` and says what is wrong with the
 * source. */
int credential_load(const struct credential *credential, char *const *environment, const struct credential_reach *reach,
                    struct credential_value *ret_value, struct cordon_error *err) must_check;
void credential_wipe(struct credential_value *value);

/* Refuses a source that lies where a command may write. */
int credential_check_reach(const struct credential *credential, const struct credential_reach *reach,
                           struct cordon_error *err) must_check;

/* As far as can be told without reading or executing anything: is the source there, and as it must be? */
int credential_check(const struct credential *credential, struct cordon_error *err) must_check;

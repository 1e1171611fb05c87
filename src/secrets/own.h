/* The caller's own secrets: the values of variables whose names say that they hold one. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "secrets/set.h"

/* Does the name say so? GITHUB_TOKEN does, and DB_PASSWORD; SSH_AUTH_SOCK and KEY_FILE do not. */
bool own_is_secret_name(const char *name, size_t length);

/* Adds the values of such variables of `environment`, NAME=VALUE ended by NULL; of a URL the password in it. A value
 * that is a path which exists is none. `passed` are names, or PREFIX_*, that the caller passes on: their values are
 * exempt. -1 when memory is short. */
int own_add_environment(struct secret_set *set, char *const *environment, const struct strings *passed);
/* Values of these NAME=VALUE are exempt: the caller gives them to the command. Before own_add_environment(). */
int own_exempt(struct secret_set *set, const struct strings *given);
/* Is this one of the names? */
bool own_is_passed(const struct strings *passed, const char *name, size_t length);

/* An agent's login file, which a session has a copy of and may renew: whether what it became is still a login. What
 * else stands in such a file could decide about the agent's next start outside. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

#define LOGIN_SIZE_MAX (64u << 10)

/* `changes` names the members that may differ, as MEMBER or MEMBER.MEMBER, where * stands for any: these may become, or
 * hold, texts of one line, numbers, truth values, and lists and objects of them. All else must be as it was. `before`
 * may be NULL: there was no file. */
bool login_is_renewed(const struct strings *changes, const char *before, size_t before_length, const char *after,
                      size_t after_length);

/* The limits of a command that a person starts by itself: it is to behave as it would outside, and the machine is to
 * survive it. */
#pragma once
#include "policy/capability.h"

/* UINT64_MAX: none. `workspace_fd` is where it works; what is free on that filesystem is its to fill, but for a
 * rest. */
void plain_limits(int workspace_fd, struct limits *ret_limits);

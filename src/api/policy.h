/* The policy that the public calls obey. */
#pragma once
#include "base/cleanup.h"
#include "cordon-internal.h"
#include "config/config.h"

/* What is in force for this session (NULL: for none in particular), without a project's file; keeps nothing on disk.
 * The snapshot is the caller's to config_unref(). Where the sandbox is switched off every call is
 * `sandbox_disabled`. */
int policy_take(struct cordon *cordon, const char *session_id, const struct config **ret_config,
                struct cordon_error *err) must_check;
/* Only whether it is switched on. */
int policy_check(struct cordon *cordon, struct cordon_error *err) must_check;

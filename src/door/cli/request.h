/* From the words of `cordon run`, `cordon profile` and `cordon session new` to a request. */
#pragma once
#include <jansson.h>

#include "base/cleanup.h"
#include "cordon-internal.h"
#include "door/cli/options.h"

/* Settings and command; not the streams. `here` is the directory that relative names refer to; NULL: this process's
 * own. To be released with cordon_request_unref(). */
int request_build(const struct options *options, const char *here, struct cordon_request **ret_request,
                  struct cordon_error *err) must_check;
/* The settings alone, for a session: no command, and no workspace but one that was named. */
int request_settings(const struct options *options, struct cordon_request **ret_request, struct cordon_error *err)
	must_check;
/* The same as an object of lists, by the settings' names. */
int request_grants(const struct options *options, json_t **ret_grants, struct cordon_error *err) must_check;
/* Those of request_settings() with the current directory as the workspace, unless another was named. */
int request_session_settings(const struct options *options, struct cordon_request **ret_request,
                             struct cordon_error *err) must_check;
/* The settings of a command, with its session, but no command: for file tools. */
int request_file_settings(const struct options *options, struct cordon_request **ret_request, struct cordon_error *err)
	must_check;

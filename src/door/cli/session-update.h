/* What `cordon session` does by methods: labels, idle expiry, grants. */
#pragma once
#include <jansson.h>

#include "base/cleanup.h"
#include "cordon-internal.h"
#include "door/cli/options.h"

/* The labels among the options, as an object. With `may_remove` an empty one is null. */
int cli_session_labels(const struct options *options, bool may_remove, json_t **ret_labels, struct cordon_error *err)
	must_check;
/* *ret_json is the session as it is then. Without `grants` the settings among the options are not looked at. */
int cli_session_update(struct cordon *cordon, const struct options *options, const char *id, bool grants,
                       char **ret_json, struct cordon_error *err) must_check;
/* Those with the labels among the options. */
int cli_session_list(struct cordon *cordon, const struct options *options, char **ret_json, struct cordon_error *err)
	must_check;

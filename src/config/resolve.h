/* Files on top of each other: what is in force. */
#pragma once
#include "config/parse.h"
#include "config/config.h"

struct config_state {
	struct config_value values[KEY_MAX];
	bool bound[KEY_MAX];                    /* an earlier file set it: a later one can only narrow it */
	const struct config_value *defaults;    /* KEY_MAX of them, borrowed */
	const struct config_block **credentials, **gateways;    /* of all files */
	size_t credential_count, gateway_count;
	struct strings project_deny, project_protect;   /* entries that only the project's file has */
};

/* Reads the rows' own defaults, as if they were a file. */
int config_defaults(struct arena *arena, struct config_value *ret_values, struct cordon_error *err) must_check;

void config_state_begin(const struct config_value *defaults, struct config_state *ret_state);

/* What `file` changes, for a session of this id (NULL: a one-off). A change that is not allowed is `config_invalid` at
 * its place. The state borrows from the file and from the arena. */
int config_apply(struct arena *arena, struct config_state *state, enum config_layer layer,
                 const struct config_file *file, const char *session_id, struct cordon_error *err) must_check;

/* Does this [[session]] say something about the session? */
bool config_block_matches(const struct config_block *block, const char *session_id);

/* The state as everyone else wants it; borrows from the state's values. */
int config_assemble(struct arena *arena, const struct config_state *state, struct config *ret_config,
                    struct cordon_error *err) must_check;
int config_capabilities(struct arena *arena, const struct config_value *values,
                        struct capability_set *ret_set) must_check;

/* A session as the public calls tell it. */
#pragma once
#include "session/registry.h"

struct cordon;
struct json;

/* What every list of sessions says of one. */
void session_write_summary(struct json *json, const struct cordon *cordon, struct arena *arena,
                           const struct session_record *record);
/* All of it. */
void session_write_whole(struct json *json, const struct cordon *cordon, struct arena *arena,
                         const struct session_record *record);

/* The directory that a session's own ones are in: `kind` is "workspaces" or "homes". NULL when memory is short. */
const char *session_own_parent(const struct cordon *cordon, struct arena *arena, const char *kind);

/* Hands the text out. */
int session_take_json(struct json *json, char **ret_json, struct cordon_error *err) must_check;

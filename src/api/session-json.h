/* A session as the public calls tell it. */
#pragma once
#include "session/registry.h"

struct config;
struct cordon;
struct json;

/* What every list of sessions says of one. */
void session_write_summary(struct json *json, const struct cordon *cordon, struct arena *arena,
                           const struct session_record *record);
/* Where it works, and whether the caller named that. */
void session_write_workspace(struct json *json, const struct cordon *cordon, struct arena *arena,
                             const struct session_record *record);

/* The directories that the session's own workspace, home, jobs and /tmp are in. NULL when memory is short. */
const char *session_workspaces(const struct cordon *cordon, struct arena *arena, const struct session_record *record);
const char *session_homes(const struct cordon *cordon, struct arena *arena);
const char *session_jobs(const struct cordon *cordon, struct arena *arena);
const char *session_tmps(const struct cordon *cordon, struct arena *arena);

/* Hands the text out. */
int session_take_json(struct json *json, char **ret_json, struct cordon_error *err) must_check;
/* All that is known of the session. `config` is what is in force for it. */
int session_take_whole(const struct cordon *cordon, const struct config *config, struct arena *arena,
                       const struct session_record *record, char **ret_json, struct cordon_error *err) must_check;

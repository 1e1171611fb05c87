/* A session as the public calls tell it: see session-json.h. */
#include <jansson.h>

#include "api/session-json.h"

#include "base/json.h"
#include "session/jobs.h"
#include "walk.h"
#include "policy/capability-json.h"
#include "config/config.h"
#include "driver/machine.h"
#include "session/workspace.h"

const char *session_workspaces(const struct cordon *cordon, struct arena *arena, const struct session_record *record)
{
	return record->own_root ? record->own_root : arena_printf(arena, "%s/workspaces", cordon->data_dir);
}

const char *session_homes(const struct cordon *cordon, struct arena *arena)
{
	return arena_printf(arena, "%s/homes", cordon->data_dir);
}

const char *session_tmps(const struct cordon *cordon, struct arena *arena)
{
	return arena_printf(arena, "%s/tmp", cordon->data_dir);
}

const char *session_jobs(const struct cordon *cordon, struct arena *arena)
{
	return arena_printf(arena, "%s/" JOBS_DIRECTORY, cordon->data_dir);
}

static const char *in(struct arena *arena, const char *parent, const struct session_record *record)
{
	const char *hash = workspace_hash(arena, record->id);
	return parent && hash ? arena_printf(arena, "%s/%s", parent, hash) : NULL;
}

/* Where cordon makes the workspace, that is the home, too. */
static const char *workspace_of(const struct cordon *cordon, struct arena *arena, const struct session_record *record)
{
	return record->workspace ? record->workspace : in(arena, session_workspaces(cordon, arena, record), record);
}

void session_write_workspace(struct json *json, const struct cordon *cordon, struct arena *arena,
                             const struct session_record *record)
{
	json_key_path(json, "workspace", workspace_of(cordon, arena, record));
	json_key_bool(json, "workspace_named", record->workspace != NULL);
}

static void write_summary(struct json *json, const struct cordon *cordon, struct arena *arena,
                          const struct session_record *record)
{
	json_key_string(json, "id", record->id);
	json_key_string(json, "state", session_state_names[record->state]);
	json_key_string(json, "why", record->why);
	session_write_workspace(json, cordon, arena, record);
	json_key_string(json, "created", record->created);
	json_key_string(json, "changed", record->changed);
	json_key_uint(json, "grant_count", record->grant_count);
	json_key_uint(json, "denial_count", record->denial_count);
	json_key(json, "labels");
	json_verbatim(json, record->labels ? record->labels : "{}");
	json_key_uint(json, "idle_expiry_s", record->idle_expiry_s);
}

void session_write_summary(struct json *json, const struct cordon *cordon, struct arena *arena,
                           const struct session_record *record)
{
	json_object_begin(json);
	write_summary(json, cordon, arena, record);
	json_object_end(json);
}

static void write_grant(struct json *json, const struct session_grant *grant)
{
	json_object_begin(json);
	json_key_string(json, "approval", grant->card);
	json_key_string(json, "time", grant->time);
	json_key(json, "capabilities");
	capability_write_json(json, &grant->set);
	json_object_end(json);
}

static void write_denial(struct json *json, const struct session_denial *denial)
{
	json_object_begin(json);
	json_key_string(json, "hash", denial->hash);
	json_key_string(json, "time", denial->time);
	json_key_string(json, "reason", denial->reason);
	json_object_end(json);
}

/* What happens to commands that run in a paused session, by the control groups of this process. NULL: it is not
 * paused. */
static const char *running_commands(const struct config *config, const struct session_record *record)
{
	struct driver_groups groups;
	if (record->state != SESSION_PAUSED)
		return NULL;
	driver_groups_look(config->cgroup, &groups);
	return groups.can_freeze ? "frozen" : "go on";
}

static int write_job(void *arg, const struct job_record *record, int fd)
{
	struct json *json = arg;
	(void)fd;
	if (record->state != JOB_RUNNING)
		return 0;
	json_object_begin(json);
	json_key_string(json, "id", record->id);
	json_key_strings(json, "command", record->command.items, record->command.count);
	json_key_string(json, "started", record->started);
	json_key_bool(json, "shares", record->shares);
	json_key_uint(json, "process", record->pid);
	json_object_end(json);
	return 0;
}

/* Those that run, whichever process runs them: in the session's sandbox there, which later commands of that process
 * share, or in one of their own. */
static void write_jobs(struct json *json, const struct cordon *cordon, const struct session_record *record)
{
	struct cordon_error ignored;
	json_key(json, "jobs");
	json_array_begin(json);
	(void)!jobs_each(cordon->data_dir, record->id, write_job, json, &ignored);
	json_array_end(json);
}

static void write_whole(struct json *json, const struct cordon *cordon, const struct config *config,
                        struct arena *arena, const struct session_record *record)
{
	json_object_begin(json);
	write_summary(json, cordon, arena, record);
	json_key_string(json, "running_commands", running_commands(config, record));
	json_key_path(json, "home", record->workspace ? in(arena, session_homes(cordon, arena), record)
	                                              : workspace_of(cordon, arena, record));
	json_key_path(json, "tmp", in(arena, session_tmps(cordon, arena), record));
	json_key(json, "baseline");
	if (record->has_baseline)
		capability_write_json(json, &record->baseline);
	else
		json_nil(json);
	json_key(json, "grants");
	json_array_begin(json);
	for (size_t i = 0; i < record->grant_count; i++)
		write_grant(json, &record->grants[i]);
	json_array_end(json);
	json_key(json, "denials");
	json_array_begin(json);
	for (size_t i = 0; i < record->denial_count; i++)
		write_denial(json, &record->denials[i]);
	json_array_end(json);
	json_key_uint(json, "denied_in_a_row", record->denied_in_a_row);
	sandboxes_write_json(cordon->sandboxes, json, record->id);
	write_jobs(json, cordon, record);
	json_object_end(json);
}

int session_take_json(struct json *json, char **ret_json, struct cordon_error *err)
{
	char *text = json_take(json);
	if (!text)
		return fail_oom(err);
	*ret_json = text;
	return 0;
}

int session_take_whole(const struct cordon *cordon, const struct config *config, struct arena *arena,
                       const struct session_record *record, char **ret_json, struct cordon_error *err)
{
	struct json json;
	json_init(&json);
	write_whole(&json, cordon, config, arena, record);
	return session_take_json(&json, ret_json, err);
}

/* An agent's session: its name, and what it is granted. See agent.h. */
#include "door/agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sha256.h"
#include "base/utc.h"
#include "door/agent/agent-process.h"
#include "door/agent/agent-tmp.h"

#define HASH_BYTES 12
/* A conversation that nobody went on with for so long has ended, and after as long again nothing of it is kept. A whole
 * agent's home is kept until a person ends the session. */
#define IDLE_EXPIRY "2592000s"
#define KEPT_MS (INT64_C(2592000) * 1000)
#define NEW_MS 10000

/* What an agent's session may use where its profile says nothing. An agent is ended by its user, and its builds take
 * what they take. */
static const struct {
	const char *key, *value;
} limits[] = {
	{ "timeout", "none" }, { "cpu", "none" }, { "processes", "4096" }, { "max-output", "none" }, { "disk", "32g" },
};

/* ---- what the session is granted ------------------------------------------------------------------------------- */

/* Settings of the session, each of them in the hash that its id is made of. */
struct made {
	struct arena *arena;
	struct cordon *cordon;
	struct cordon_request *request;
	crypto_hash_sha256_state hash;
};

static void mix(struct made *made, const char *text)
{
	sha256_update(&made->hash, text, strlen(text) + 1);
}

static int set(struct made *made, const char *key, const char *value, struct cordon_error *err)
{
	mix(made, key);
	mix(made, value);
	return cordon_request_set(made->request, key, value, err);
}

static int set_memory(struct made *made, struct cordon_error *err)
{
	struct sysinfo info;
	char size[32];
	if (sysinfo(&info) < 0)
		return 0;
	/* In steps of a gigabyte, since a machine's total varies a little from one boot to the next. */
	unsigned long long gigabytes = (unsigned long long)info.totalram * info.mem_unit * 3 / 4 >> 30;
	snprintf(size, sizeof(size), "%llug", gigabytes ? gigabytes : 1);
	return set(made, "memory", size, err);
}

static int grant_reading(struct made *made, enum agent_id agent, struct cordon_error *err)
{
	const char *home = getenv("HOME"), *at = agents[agent].read_beneath_home;
	struct stat st;
	for (size_t length; home && *home == '/' && (length = strcspn(at, " ")); at += length + (at[length] == ' ')) {
		const char *path = arena_printf(made->arena, "%s/%.*s", home, (int)length, at);
		if (!path)
			return fail_oom(err);
		if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
		    set(made, "read", path, err) < 0)
			return -1;
	}
	return 0;
}

/* The commands of each conversation have a directory of their own in its place (agent-tmp.c), and see of the agent's
 * what is the conversation's. Only where there is no private home they are granted the agent's itself, less what the
 * agent alone writes there, as far as the driver can keep it. */
static int grant_tmp(struct made *made, const struct agent_caller *caller, const char *id, const char *started,
                     struct cordon_error *err)
{
	const char *path = agent_tmp_named(made->arena, caller->agent), *shown = NULL;
	if (!path)
		return 0;
	if (!agent_tmp_is_private(made->cordon)) {
		if (agent_tmp_make(path, err) < 0 || set(made, "write", path, err) < 0 ||
		    agent_tmp_kept(made->arena, made->cordon, caller->agent, &shown, err) < 0)
			return -1;
	} else if (agent_tmp_shown(made->arena, caller->agent, id, started, &shown, err) < 0) {
		return -1;
	}
	return shown ? set(made, "read", shown, err) : 0;
}

/* Its own limits come after those of all. */
static int grant_profile(struct made *made, const struct agent_profile *profile, struct cordon_error *err)
{
	struct strings names;
	for (size_t i = 0; profile && i < profile->limit_count; i++)
		if (set(made, profile->limits[i].name, profile->limits[i].value, err) < 0)
			return -1;
	if (agent_protected(made->arena, profile, &names, err) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if (set(made, "protect", names.items[i], err) < 0)
			return -1;
	return 0;
}

static int grant_settings(struct made *made, const struct agent_caller *caller, struct cordon_error *err)
{
	mix(made, "whole");
	for (size_t i = 0; i < caller->setting_count; i++)
		if (set(made, caller->settings[i].key, caller->settings[i].value, err) < 0)
			return -1;
	return 0;
}

static int grant(struct made *made, const struct agent_caller *caller, const char *id, const char *started,
                 const char *workspace, struct cordon_error *err)
{
	if (set(made, "workspace", workspace, err) < 0 || cordon_request_set(made->request, "agent", "true", err) < 0 ||
	    (!caller->whole && cordon_request_set(made->request, "idle-expiry", IDLE_EXPIRY, err) < 0))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (set(made, limits[i].key, limits[i].value, err) < 0)
			return -1;
	if (set_memory(made, err) < 0 || grant_profile(made, caller->profile, err) < 0)
		return -1;
	if (caller->whole)
		return grant_settings(made, caller, err);
	return grant_reading(made, caller->agent, err) < 0 ? -1 : grant_tmp(made, caller, id, started, err);
}

/* ---- the session ----------------------------------------------------------------------------------------------- */

static int name(struct made *made, const char *agent, const char *id, const char **ret_id, struct cordon_error *err)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char text[2 * HASH_BYTES + 1];
	mix(made, agent);
	mix(made, id);
	sha256_final(&made->hash, hash);
	*ret_id = arena_printf(made->arena, AGENT_PREFIX "%s/%s", agent,
	                       sodium_bin2hex(text, sizeof(text), hash, HASH_BYTES));
	return *ret_id ? 0 : fail_oom(err);
}

static int64_t time_of(json_t *session, const char *key)
{
	const char *text = json_string_value(json_object_get(session, key));
	int64_t ms = 0;
	return text && utc_parse(text, &ms) ? ms : 0;
}

static int64_t now_ms(void)
{
	return (int64_t)time(NULL) * 1000;
}

/* Agents' sessions that ended long ago: their homes and temporary files would stay for ever. To list them ends those
 * that are idle. */
static void sweep(struct cordon *cordon)
{
	struct cordon_error untold;
	auto_free char *text = NULL;
	size_t index;
	json_t *each, *listed = cordon_session_list(cordon, &text, &untold) < 0 ? NULL : json_loads(text, 0, NULL);
	json_array_foreach(json_object_get(listed, "sessions"), index, each) {
		const char *id = json_string_value(json_object_get(each, "id")),
			   *state = json_string_value(json_object_get(each, "state"));
		int64_t changed = time_of(each, "changed");
		if (id && state && changed && !strncmp(id, AGENT_PREFIX, strlen(AGENT_PREFIX)) &&
		    !strcmp(state, "ended") && now_ms() - changed > KEPT_MS)
			(void)!cordon_session_remove(cordon, id, &untold);
	}
	json_decref(listed);
}

/* Because it was idle, not because a person ended it. */
static bool has_expired(struct cordon *cordon, const char *id)
{
	struct cordon_error untold;
	auto_free char *text = NULL;
	json_t *session = cordon_session_show(cordon, id, &text, &untold) < 0 ? NULL : json_loads(text, 0, NULL);
	const char *why = json_string_value(json_object_get(session, "why"));
	bool expired = why && !strncmp(why, "no command for ", strlen("no command for "));
	json_decref(session);
	return expired;
}

/* A conversation that is taken up again after its session has expired has a new one. */
static int make_session(struct made *made, struct cordon *cordon, const char *id, struct cordon_error *err)
{
	auto_free char *text = NULL;
	int result = cordon_session_new(cordon, id, made->request, &text, err);
	if (result < 0 && err->class == CORDON_E_SESSION_ENDED && has_expired(cordon, id) &&
	    cordon_session_remove(cordon, id, err) == 0)
		result = cordon_session_new(cordon, id, made->request, &text, err);
	if (result < 0)
		return -1;
	json_t *session = json_loads(text, 0, NULL);
	if (now_ms() - time_of(session, "created") < NEW_MS)
		sweep(cordon);
	json_decref(session);
	return 0;
}

static int open_session(struct made *made, struct cordon *cordon, const struct agent_caller *caller, const char *id,
                        const char *started, const char *workspace, const char **ret_id, struct cordon_error *err)
{
	const char *session;
	crypto_hash_sha256_init(&made->hash);
	if (grant(made, caller, id, started, workspace, err) < 0 ||
	    name(made, caller->whole ? caller->whole : agents[caller->agent].name, id, &session, err) < 0 ||
	    make_session(made, cordon, session, err) < 0)
		return -1;
	*ret_id = session;
	return 0;
}

int agent_session(struct arena *arena, struct cordon *cordon, const struct agent_caller *caller, const char **ret_id,
                  struct cordon_error *err)
{
	const char *variable = agents[caller->agent].id_variable, *id = caller->id, *workspace = caller->workspace;
	struct made made = { .arena = arena, .cordon = cordon };
	struct agent_process process = { 0 };
	if (!id && variable)
		id = getenv(variable);
	if (id && !*id)
		id = NULL;
	if ((!id || !workspace) && agent_process(arena, caller->agent, &process, err) < 0)
		return -1;
	if (!id)
		id = process.id;
	if (!workspace)
		workspace = agent_workspace(arena, process.cwd);
	if (cordon_request_new(&made.request, err) < 0)
		return -1;
	int result = open_session(&made, cordon, caller, id, process.cwd, workspace, ret_id, err);
	cordon_request_unref(made.request);
	return result;
}

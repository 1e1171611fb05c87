/* `cordon session`: one row per action. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "door/cli/action.h"
#include "door/cli/json-read.h"
#include "door/cli/request.h"
#include "door/cli/session-text.h"
#include "door/cli/session-update.h"
#include "door/rpc/ask.h"

/* ---- the actions: each says what there is to say, and returns 0 or a negative number ----------------------------- */

static int act_new(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	struct cordon_request *settings = NULL;
	auto_free char *json = NULL;
	if (request_settings(options, &settings, err) < 0)
		return -1;
	int result = cordon_session_new(cordon, id, settings, &json, err);
	cordon_request_unref(settings);
	if (result == 0 && (options_flag(options, "label") || options_flag(options, "idle-expiry"))) {
		free(json);
		json = NULL;
		result = cli_session_update(cordon, options, id, false, &json, err);
	}
	if (result == 0)
		json_read_say(json, options_flag(options, "json"), session_print);
	return result;
}

static int act_list(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	auto_free char *json = NULL;
	(void)id;
	if (cli_session_list(cordon, options, &json, err) < 0)
		return -1;
	json_read_say(json, options_flag(options, "json"), session_print_list);
	return 0;
}

/* The sandbox of a session that the daemon runs is the daemon's. */
static char *with_sandbox(const char *json, const char *host, const char *id)
{
	auto_json json_t *session = json_read(json), *daemons = ask_daemon(host, "session.show", id);
	json_t *sandbox = json_object_get(daemons, "sandbox");
	return json_is_object(sandbox) && json_object_set(session, "sandbox", sandbox) == 0
	               ? json_dumps(session, JSON_COMPACT) : NULL;
}

static int act_show(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	auto_free char *json = NULL, *whole = NULL;
	if (cordon_session_show(cordon, id, &json, err) < 0)
		return -1;
	if ((whole = with_sandbox(json, options_value(options, "host"), id))) {
		free(json);
		json = whole;
		whole = NULL;
	}
	json_read_say(json, options_flag(options, "json"), session_print);
	return 0;
}

/* After a change, a program gets the session as it is now; a person need not be told what they just said. */
static int say_changed(struct cordon *cordon, const struct options *options, const char *id, int changed,
                       struct cordon_error *err)
{
	return changed < 0 || !options_flag(options, "json") ? changed : act_show(cordon, options, id, err);
}

static int act_update(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	auto_free char *json = NULL;
	if (cli_session_update(cordon, options, id, true, &json, err) < 0)
		return -1;
	if (options_flag(options, "json"))
		json_read_say(json, true, session_print);
	return 0;
}

static int act_pause(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	return say_changed(cordon, options, id, cordon_session_pause(cordon, id, options_value(options, "why"), err),
	                   err);
}

static int act_resume(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	return say_changed(cordon, options, id, cordon_session_resume(cordon, id, err), err);
}

static int act_end(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	bool remove_workspace = options_flag(options, "remove-workspace");
	return say_changed(cordon, options, id, cordon_session_end(cordon, id, remove_workspace, err), err);
}

static int act_remove(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	struct json json;
	if (cordon_session_remove(cordon, id, err) < 0)
		return -1;
	if (!options_flag(options, "json"))
		return 0;
	json_init(&json);
	json_object_begin(&json);
	json_key_string(&json, "removed", id);
	json_object_end(&json);
	auto_free char *text = json_take(&json);
	if (text)
		puts(text);
	return 0;
}

int cli_session(char **words)
{
	static const struct action actions[] = {
		{ "new", "the session's id", true, "label idle-expiry", act_new },
		{ "list", NULL, false, "label", act_list },
		{ "show", "the session's id", false, NULL, act_show },
		{ "update", "the session's id", true, "label idle-expiry revoke", act_update },
		{ "pause", "the session's id", false, "why", act_pause },
		{ "resume", "the session's id", false, NULL, act_resume },
		{ "end", "the session's id", false, "remove-workspace", act_end },
		{ "rm", "the session's id", false, NULL, act_remove },
	};
	return action_run(COMMAND_SESSION, actions, ARRAY_SIZE(actions), words);
}

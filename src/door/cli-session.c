/* `cordon session`: one row per action. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "door/cli.h"
#include "door/json-indent.h"
#include "door/report.h"
#include "door/request.h"
#include "door/session-text.h"

/* ---- the actions: each says what there is to say, and returns 0 or a negative number ------------------------------ */

static void say(const char *json, bool as_json, void (*print)(const char *json))
{
	if (as_json)
		json_indent(stdout, json, true);
	else
		print(json);
}

static int act_new(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	struct cordon_request *settings = NULL;
	auto_free char *json = NULL;
	if (request_settings(options, &settings, err) < 0)
		return -1;
	int result = cordon_session_new(cordon, id, settings, &json, err);
	cordon_request_unref(settings);
	if (result == 0)
		say(json, options_flag(options, "json"), session_print);
	return result;
}

static int act_list(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	auto_free char *json = NULL;
	(void)id;
	if (cordon_session_list(cordon, &json, err) < 0)
		return -1;
	say(json, options_flag(options, "json"), session_print_list);
	return 0;
}

static int act_show(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	auto_free char *json = NULL;
	if (cordon_session_show(cordon, id, &json, err) < 0)
		return -1;
	say(json, options_flag(options, "json"), session_print);
	return 0;
}

/* After a change, a program gets the session as it is now; a person need not be told what they just said. */
static int say_changed(struct cordon *cordon, const struct options *options, const char *id, int changed,
                       struct cordon_error *err)
{
	return changed < 0 || !options_flag(options, "json") ? changed : act_show(cordon, options, id, err);
}

static int act_pause(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	return say_changed(cordon, options, id, cordon_session_pause(cordon, id, options_value(options, "why"), err), err);
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
		json_indent(stdout, text, true);
	return 0;
}

static const struct action {
	const char *name;
	bool takes_id, takes_settings;
	const char *option;             /* the one that only this action takes, or NULL */
	int (*act)(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err);
} actions[] = {
	{ "new", true, true, NULL, act_new },
	{ "list", false, false, NULL, act_list },
	{ "show", true, false, NULL, act_show },
	{ "pause", true, false, "why", act_pause },
	{ "resume", true, false, NULL, act_resume },
	{ "end", true, false, "remove-workspace", act_end },
	{ "rm", true, false, NULL, act_remove },
};

/* ---- the words --------------------------------------------------------------------------------------------------- */

static int find_action(const struct options *options, const struct action **ret_action, struct cordon_error *err)
{
	const char *names[ARRAY_SIZE(actions)], *word = options->operand_count ? options->operands[0] : "";
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (!strcmp(actions[i].name, word)) {
			*ret_action = &actions[i];
			return 0;
		}
		names[i] = actions[i].name;
	}
	const char *nearest = text_nearest(word, names, ARRAY_SIZE(names));
	fail(err, CORDON_E_INVALID_REQUEST, 0, word,
	     options->operand_count ? "cordon session has no such action" : "what is to be done with which session is missing");
	return nearest ? fail_remedy(err, "did you mean cordon session %s?", nearest) : fail_remedy(err, "see cordon help session");
}

static int check_words(const struct action *action, const struct options *options, struct cordon_error *err)
{
	size_t wanted = action->takes_id ? 2 : 1;
	if (options->operand_count < wanted) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, action->name, "the session's id is missing");
		return fail_remedy(err, "see cordon session list");
	}
	if (options->operand_count > wanted) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, options->operands[wanted], "cordon session %s takes no such argument", action->name);
		return fail_remedy(err, "quote an id that has spaces in it; see cordon help session");
	}
	for (size_t i = 0; i < options->given_count; i++) {
		const struct option *option = options->given[i].option;
		bool fits = option->actor == OPTION_REQUEST ? action->takes_settings
		                                            : !strcmp(option->name, "json") || !strcmp(option->name, "config") ||
		                                              (action->option && !strcmp(option->name, action->option));
		if (fits)
			continue;
		char spelled[64];
		option_spell(option, spelled, sizeof(spelled));
		fail(err, CORDON_E_INVALID_REQUEST, 0, spelled, "cordon session %s takes no such option", action->name);
		return fail_remedy(err, "see cordon help session");
	}
	return 0;
}

int cli_session(char **words)
{
	struct options options;
	struct cordon_error err;
	const struct action *action;
	struct cordon *cordon = NULL;
	int status;
	if (!cli_options(COMMAND_SESSION, words, SIZE_MAX, &options, &status))
		return status;
	status = 0;
	if (find_action(&options, &action, &err) < 0 || check_words(action, &options, &err) < 0)
		status = STATUS_USAGE;
	else if (cli_open(&options, &cordon, &err) < 0 || action->act(cordon, &options, options.operands[1], &err) < 0)
		status = STATUS_REFUSED;
	if (status)
		report_error(&err, options_flag(&options, "json"));
	cordon_unref(cordon);
	options_free(&options);
	return status;
}

/* Commands with actions: see action.h. */
#include "door/cli/action.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "door/cli/report.h"

#define ACTIONS_MAX 16

/* What others call it. */
static const struct {
	const char *word, *action;
} synonyms[] = {
	{ "remove", "rm" }, { "delete", "rm" },       { "create", "new" },  { "add", "new" },
	{ "ls", "list" },   { "status", "poll" },     { "stop", "kill" },   { "stop", "end" },
	{ "close", "end" }, { "continue", "resume" }, { "reject", "deny" },
};

static const char *find_synonym(const char *word, const char *const *names, size_t count)
{
	for (size_t i = 0; i < ARRAY_SIZE(synonyms); i++)
		for (size_t j = 0; j < count && !strcmp(synonyms[i].word, word); j++)
			if (!strcmp(synonyms[i].action, names[j]))
				return names[j];
	return NULL;
}

static int find_action(enum command_id command, const struct action *actions, size_t count,
                       const struct options *options, const struct action **ret_action, struct cordon_error *err)
{
	const char *names[ACTIONS_MAX], *word = options->operand_count ? options->operands[0] : "";
	for (size_t i = 0; i < count && i < ACTIONS_MAX; i++) {
		if (!strcmp(actions[i].name, word)) {
			*ret_action = &actions[i];
			return 0;
		}
		names[i] = actions[i].name;
	}
	const char *nearest = find_synonym(word, names, count), *name = commands[command].name;
	if (!nearest)
		nearest = text_nearest(word, names, count);
	fail(err, CORDON_E_INVALID_REQUEST, 0, word,
	     options->operand_count ? "cordon %s has no such action" : "what cordon %s is to do is missing", name);
	return nearest ? fail_remedy(err, "did you mean cordon %s %s?", name, nearest)
	               : fail_remedy(err, "see cordon help %s", name);
}

static bool is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = list; at && (at = strstr(at, name)); at += length)
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

/* Where one can see what there is to be named. */
static bool has_list(const struct action *actions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(actions[i].name, "list"))
			return true;
	return false;
}

/* How many operands it takes, and how many it must be given; *ret_missing is what the one after `given` is called. */
static void count_operands(const struct action *action, size_t given, char ret_missing[64], size_t *ret_least,
                           size_t *ret_most)
{
	*ret_least = *ret_most = 1;
	for (const char *at = action->operand; at; at = *at == '\n' ? at + 1 : NULL) {
		size_t length = strcspn(at, "\n");
		if (++*ret_most == given + 1)
			snprintf(ret_missing, 64, "%.*s", (int)length, at);
		*ret_least += length > 0;
		at += length;
	}
}

static int check_words(enum command_id command, const struct action *action, bool listed, const struct options *options,
                       struct cordon_error *err)
{
	size_t most, least;
	char missing[64] = "";
	count_operands(action, options->operand_count, missing, &least, &most);
	const char *name = commands[command].name;
	if (options->operand_count < least) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, action->name, "%s is missing", missing);
		/* What is made gets a name of one's own choice. */
		return fail_remedy(err, listed && !action->takes_settings ? "see cordon %s list" : "see cordon help %s",
		                   name);
	}
	if (options->operand_count > most) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, options->operands[most], "cordon %s %s takes no such argument",
		     name, action->name);
		return fail_remedy(err, "quote what has spaces in it; see cordon help %s", name);
	}
	for (size_t i = 0; i < options->given_count; i++) {
		const struct option *option = options->given[i].option;
		if ((option->actor == OPTION_REQUEST && action->takes_settings) ||
		    is_listed("json config host", option->name) || is_listed(action->options, option->name))
			continue;
		char spelled[64];
		option_spell(option, spelled, sizeof(spelled));
		fail(err, CORDON_E_INVALID_REQUEST, 0, spelled, "cordon %s %s takes no such option", name,
		     action->name);
		return fail_remedy(err, "see cordon help %s", name);
	}
	return 0;
}

int action_run(enum command_id command, const struct action *actions, size_t count, char **words)
{
	struct options options;
	struct cordon_error err;
	const struct action *action = NULL;
	struct cordon *cordon = NULL;
	int status;
	if (!cli_options(command, words, SIZE_MAX, &options, &status))
		return status;
	if (find_action(command, actions, count, &options, &action, &err) < 0 ||
	    check_words(command, action, has_list(actions, count), &options, &err) < 0) {
		report_error(&err, options_flag(&options, "json"));
		status = STATUS_USAGE;
	} else if (cli_open(&options, &cordon, &err) < 0 ||
	           (status = action->act(cordon, &options, options.operands[1], &err)) < 0) {
		report_error(&err, options_flag(&options, "json"));
		status = STATUS_REFUSED;
	}
	cordon_unref(cordon);
	options_free(&options);
	return status;
}

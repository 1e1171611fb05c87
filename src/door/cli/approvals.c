/* `cordon approvals`: what waits for a human, and answering it. An answer is bound to the card that is printed with
 * it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/json.h"
#include "door/cli/action.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"

/* ---- for people ------------------------------------------------------------------------------------------------ */

/* What the library hands out is safe to print; still nothing from a file goes to a terminal unlooked at. */
static void print_lines(char *text)
{
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n"));) {
		if (!rest && !*line)
			break;
		report_untrusted(stdout, line);
		putchar('\n');
	}
}

static void print_card(const json_t *card)
{
	auto_free char *text = strdup(json_read_text(json_object_get(card, "content"), "text"));
	if (!text)
		return;
	printf("%s\n", json_read_text(card, "id"));
	print_lines(text);
	long timeout_ms = json_read_number(card, "timeout_ms");
	printf("  asked      %s, by process %ld; refused after %ld s\n  hash       %s\n", json_read_text(card, "asked"),
	       json_read_number(card, "pid"), (timeout_ms + 999) / 1000, json_read_text(card, "hash"));
}

static void print_cards(const json_t *list)
{
	unsigned printed = 0;
	for JSON_EACH(card, json_object_get(list, "approvals")) {
		if (printed++)
			putchar('\n');
		print_card(card);
	}
	if (!printed)
		puts("Nothing waits for an answer.");
}

static int act_list(struct cordon *cordon, const struct options *options, const char *operand, struct cordon_error *err)
{
	auto_free char *text = NULL;
	(void)operand;
	if (cordon_approvals_list(cordon, &text, err) < 0)
		return -1;
	json_read_say(text, options_flag(options, "json"), print_cards);
	return 0;
}

/* ---- answering ------------------------------------------------------------------------------------------------- */

/* An id begins with the time: what else asks now begins like that, too. */
#define BEGINNING_MIN 16

/* The one card whose id begins so, or NULL where there is none. */
static int find_card(const json_t *list, const char *word, const char *hash, const json_t **ret_card,
                     struct cordon_error *err)
{
	const json_t *found = NULL;
	for JSON_EACH(card, json_object_get(list, "approvals")) {
		if (!*word || strncasecmp(json_read_text(card, "id"), word, strlen(word)))
			continue;
		if (found) {
			fail(err, CORDON_E_INVALID_REQUEST, 0, word, "more than one question has an id that begins so");
			return fail_remedy(err, "give more of it; see cordon approvals list");
		}
		found = card;
	}
	if (found && !hash && strlen(word) < BEGINNING_MIN) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, word,
		     "what asks now may be another than the one that was shown");
		return fail_remedy(err, "give %d characters of its id at least, or the hash: --hash", BEGINNING_MIN);
	}
	*ret_card = found;
	return 0;
}

static void say(const json_t *card, const char *id, enum cordon_answer answer, bool as_json)
{
	static const char *const words[] = {
		[CORDON_APPROVED_ONCE] = "once", [CORDON_APPROVED_SESSION] = "session", [CORDON_DENIED] = "denied",
	}, *const sentences[] = {
		[CORDON_APPROVED_ONCE] = "Approved, once.", [CORDON_APPROVED_SESSION] = "Approved, for the session.",
		[CORDON_DENIED] = "Denied.",
	};
	struct json json;
	if (!as_json) {
		puts(sentences[answer]);
		return;
	}
	json_init(&json);
	json_object_begin(&json);
	json_key_string(&json, "card", id);
	json_key_string(&json, "answer", words[answer]);
	json_key_string(&json, "hash", json_read_text(card, "hash"));
	json_object_end(&json);
	auto_free char *text = json_take(&json);
	if (text)
		puts(text);
}

static int give(struct cordon *cordon, const struct options *options, const char *word, enum cordon_answer answer,
                struct cordon_error *err)
{
	const json_t *card = NULL;
	const char *hash = options_value(options, "hash");
	bool as_json = options_flag(options, "json");
	auto_free char *text = NULL;
	if (cordon_approvals_list(cordon, &text, err) < 0)
		return -1;
	auto_json json_t *list = json_read(text);
	if (find_card(list, word, hash, &card, err) < 0)
		return -1;
	/* If it is not open any more, the library knows how it was settled. */
	const char *id = card ? json_read_text(card, "id") : word;
	if (card && !as_json)
		print_card(card);
	fflush(stdout);
	if (cordon_approvals_answer(cordon, id, hash ? hash : card ? json_read_text(card, "hash") : NULL, answer,
	                            options_value(options, "reason"), err) < 0)
		return -1;
	say(card, id, answer, as_json);
	return 0;
}

static int act_approve(struct cordon *cordon, const struct options *options, const char *word, struct cordon_error *err)
{
	bool session = options_flag(options, "for-session");
	if (session && options_flag(options, "once")) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, "--once --for-session", "only one of these can be meant");
		return fail_remedy(err, "leave one of them out");
	}
	return give(cordon, options, word, session ? CORDON_APPROVED_SESSION : CORDON_APPROVED_ONCE, err);
}

static int act_deny(struct cordon *cordon, const struct options *options, const char *word, struct cordon_error *err)
{
	return give(cordon, options, word, CORDON_DENIED, err);
}

int cli_approvals(char **words)
{
	static const struct action actions[] = {
		{ "list", NULL, false, NULL, act_list },
		{ "approve", "the card's id", false, "once for-session hash", act_approve },
		{ "deny", "the card's id", false, "reason hash", act_deny },
	};
	return action_run(COMMAND_APPROVALS, actions, ARRAY_SIZE(actions), words);
}

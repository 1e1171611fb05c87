/* Filters: see filter.h. Parsing a row takes a hundred times as long as searching it. So a value that is asked for is
 * escaped once, as the ledger's writer does it, and a row that does not hold these very bytes is left out unread. */
#include "audit/filter.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

/* What may be asked for as a decision: every kind of row, and three words for what several of them say. */
static const struct {
	const char *word, *kind, *outcome;      /* of an approval or a connection; NULL: any */
} decisions[] = {
	{ "allowed", "intent", NULL }, { "allowed", "network", "allowed" },
	{ "approved", "approval", "approved" },
	{ "denied", "denial", NULL }, { "denied", "approval", "denied" }, { "denied", "approval", "timeout" },
	{ "denied", "network", "denied" },
	{ "approval", "approval", NULL }, { "begin", "begin", NULL }, { "config", "config", NULL },
	{ "damaged", "damaged", NULL }, { "denial", "denial", NULL }, { "intent", "intent", NULL },
	{ "limit", "limit", NULL }, { "network", "network", NULL }, { "repair", "repair", NULL },
	{ "result", "result", NULL }, { "session", "session", NULL },
};

static int make_time(const char *name, const char *text, char ret_text[UTC_SIZE], struct cordon_error *err)
{
	int64_t ms;
	if (!text)
		return 0;
	if (!utc_parse(text, &ms) || (ms < 0 && ms % 1000)) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, text, "%s is not a time", name);
		return fail_remedy(err, "write it as 2026-01-31 or 2026-01-31T12:34:56Z, in UTC");
	}
	utc_text(ms / 1000, (unsigned)(ms % 1000), ret_text);
	return 0;
}

static int check_decision(const char *word, struct cordon_error *err)
{
	const char *words[ARRAY_SIZE(decisions)];
	for (size_t i = 0; i < ARRAY_SIZE(decisions); i++) {
		words[i] = decisions[i].word;
		if (!word || !strcmp(word, words[i]))
			return 0;
	}
	const char *nearest = text_nearest(word, words, ARRAY_SIZE(words));
	fail(err, CORDON_E_INVALID_REQUEST, 0, word, "there is no such decision or kind of row");
	return nearest ? fail_remedy(err, "did you mean %s?", nearest)
	               : fail_remedy(err, "allowed, approved, denied, or a kind of row such as intent, result, denial");
}

int filter_make(const struct cordon_audit_filter *given, struct filter *ret_filter, struct cordon_error *err)
{
	const char *const texts[] = {
		[FILTER_ID] = given->id, [FILTER_SESSION] = given->session, [FILTER_PROGRAM] = given->program,
	};
	*ret_filter = (struct filter){ .decision = given->decision };
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct json json;
		if (!texts[i])
			continue;
		json_init(&json);
		json_text(&json, texts[i]);
		ret_filter->texts[i] = json_take(&json);
		ret_filter->asked[i] =
			ret_filter->texts[i] ? json_loads(ret_filter->texts[i], JSON_DECODE_ANY, NULL) : NULL;
		if (!ret_filter->asked[i])
			return fail_oom(err);
		ret_filter->lengths[i] = strlen(ret_filter->texts[i]);
	}
	if (make_time("since", given->since, ret_filter->since, err) < 0 ||
	    make_time("until", given->until, ret_filter->until, err) < 0)
		return -1;
	return check_decision(given->decision, err);
}

void filter_free(struct filter *filter)
{
	for (size_t i = 0; i < FILTER_TEXT_MAX; i++) {
		free(filter->texts[i]);
		json_decref(filter->asked[i]);
	}
}

bool filter_takes_damaged(const struct filter *filter)
{
	for (size_t i = 0; i < FILTER_TEXT_MAX; i++)
		if (filter->texts[i])
			return false;
	return !filter->decision || !strcmp(filter->decision, "damaged");
}

bool filter_is_open(const struct filter *filter)
{
	return filter_takes_damaged(filter) && !filter->decision && !*filter->since && !*filter->until;
}

/* Does it hold the kind of a row that the decision is about? */
static bool may_be_decided(const struct filter *filter, const char *line, size_t length)
{
	char text[32];
	for (size_t i = 0; i < ARRAY_SIZE(decisions); i++) {
		if (strcmp(decisions[i].word, filter->decision))
			continue;
		int size = snprintf(text, sizeof(text), "\"row\":\"%s\"", decisions[i].kind);
		if (memmem(line, length, text, (size_t)size))
			return true;
	}
	return false;
}

bool filter_may_take(const struct filter *filter, const char *line, size_t length)
{
	if (filter->decision && !filter_takes_damaged(filter) && !may_be_decided(filter, line, length))
		return false;
	for (size_t i = 0; i < FILTER_TEXT_MAX; i++) {
		/* A program may be asked for by the last part of its path: then its opening quote is not there. */
		size_t skip = i == FILTER_PROGRAM;
		if (filter->texts[i] && !memmem(line, length, filter->texts[i] + skip, filter->lengths[i] - skip))
			return false;
	}
	return true;
}

/* ---- Closer ------------------------------------------------------------------------------------------------------ */

static const char *text_of(const json_t *row, const char *member)
{
	return json_string_value(json_object_get(row, member));
}

static bool is_text(const json_t *row, const char *member, const char *expected)
{
	const char *text = text_of(row, member);
	return text && !strcmp(text, expected);
}

static bool is_asked(const struct filter *filter, enum filter_text which, const json_t *row, const char *member)
{
	const char *text = text_of(row, member), *asked = json_string_value(filter->asked[which]);
	if (!text || !asked)
		return !asked;
	const char *base = which == FILTER_PROGRAM && !strchr(asked, '/') ? strrchr(text, '/') : NULL;
	return !strcmp(base ? base + 1 : text, asked);
}

static bool is_decided(const struct filter *filter, const json_t *row)
{
	for (size_t i = 0; i < ARRAY_SIZE(decisions); i++)
		if (!strcmp(decisions[i].word, filter->decision) && is_text(row, "row", decisions[i].kind) &&
		    (!decisions[i].outcome || is_text(row, "outcome", decisions[i].outcome) ||
		     is_text(row, "decision", decisions[i].outcome)))
			return true;
	return false;
}

/* Times of one form sort as text. */
bool filter_in_time(const struct filter *filter, const json_t *row)
{
	const char *time = text_of(row, "time");
	if (*filter->since && (!time || strcmp(time, filter->since) < 0))
		return false;
	return !*filter->until || (time && strcmp(time, filter->until) < 0);
}

bool filter_takes(const struct filter *filter, const json_t *row)
{
	/* What belongs to a command names it by its audit id. */
	return (is_asked(filter, FILTER_ID, row, "id") || is_asked(filter, FILTER_ID, row, "audit_id")) &&
	       is_asked(filter, FILTER_SESSION, row, "session") && is_asked(filter, FILTER_PROGRAM, row, "program") &&
	       (!filter->decision || is_decided(filter, row)) && filter_in_time(filter, row);
}

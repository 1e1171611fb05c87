/* Filters: see filter.h. A value that is asked for is escaped once, as the ledger's writer does it; then a row that
 * does not hold these very bytes is left out unread, and the others are compared without being unescaped. */
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
		if (!ret_filter->texts[i])
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
	for (size_t i = 0; i < FILTER_TEXT_MAX; i++)
		free(filter->texts[i]);
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

bool filter_may_take(const struct filter *filter, const char *line, size_t length)
{
	for (size_t i = 0; i < FILTER_TEXT_MAX; i++) {
		/* A program may be asked for by the last part of its path: then its opening quote is not there. */
		size_t skip = i == FILTER_PROGRAM;
		if (filter->texts[i] && !memmem(line, length, filter->texts[i] + skip, filter->lengths[i] - skip))
			return false;
	}
	return true;
}

/* ---- Closer ------------------------------------------------------------------------------------------------------ */

static bool is_text(const struct row_text *text, const char *expected)
{
	return text->bytes && text->length == strlen(expected) && !memcmp(text->bytes, expected, text->length);
}

static bool is_asked(const struct filter *filter, enum filter_text which, const struct row_text *text)
{
	const char *inside = filter->texts[which] + 1;
	size_t length = filter->lengths[which] - 2;
	if (!text->bytes || text->length < length || memcmp(text->bytes + text->length - length, inside, length))
		return false;
	if (text->length == length)
		return true;
	return which == FILTER_PROGRAM && !memchr(inside, '/', length) && text->bytes[text->length - length - 1] == '/';
}

static bool is_decided(const struct filter *filter, const struct row *row)
{
	for (size_t i = 0; i < ARRAY_SIZE(decisions); i++)
		if (!strcmp(decisions[i].word, filter->decision) &&
		    is_text(&row->members[ROW_KIND], decisions[i].kind) &&
		    (!decisions[i].outcome || is_text(&row->members[ROW_OUTCOME], decisions[i].outcome) ||
		     is_text(&row->members[ROW_DECISION], decisions[i].outcome)))
			return true;
	return false;
}

/* Times of one form sort as text. */
static int compare_time(const struct row_text *time, const char *with)
{
	size_t length = strlen(with);
	int order = memcmp(time->bytes, with, time->length < length ? time->length : length);
	return order ? order : time->length < length ? -1 : time->length > length;
}

bool filter_in_time(const struct filter *filter, const struct row *row)
{
	const struct row_text *time = &row->members[ROW_TIME];
	if (*filter->since && (!time->bytes || compare_time(time, filter->since) < 0))
		return false;
	return !*filter->until || (time->bytes && compare_time(time, filter->until) < 0);
}

bool filter_takes(const struct filter *filter, const struct row *row)
{
	const struct row_text *members = row->members;
	/* What belongs to a command names it by its audit id. */
	if (filter->texts[FILTER_ID] && !is_asked(filter, FILTER_ID, &members[ROW_ID]) &&
	    !is_asked(filter, FILTER_ID, &members[ROW_AUDIT_ID]))
		return false;
	if (filter->texts[FILTER_SESSION] && !is_asked(filter, FILTER_SESSION, &members[ROW_SESSION]))
		return false;
	if (filter->texts[FILTER_PROGRAM] && !is_asked(filter, FILTER_PROGRAM, &members[ROW_PROGRAM]))
		return false;
	return (!filter->decision || is_decided(filter, row)) && filter_in_time(filter, row);
}

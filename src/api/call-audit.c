/* Methods about the ledger, and where following it begins: see call.h. */
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "audit/read.h"
#include "base/error.h"
#include "walk.h"

#define ROWS_MOST 1000

struct rows {
	json_t *list;
	size_t most;
};

static int add_row(void *arg, const char *row, size_t length)
{
	struct rows *rows = arg;
	json_t *tree = json_loadb(row, length, JSON_ALLOW_NUL, NULL);
	return json_array_append_new(rows->list, tree ? tree : value_bytes(row, length)) < 0 ||
	       json_array_size(rows->list) == rows->most;
}

static struct cordon_audit_filter filter_of(const struct call *call)
{
	return (struct cordon_audit_filter){
		.id = call_text(call, "id"),
		.session = call_text(call, "session"),
		.program = call_text(call, "program"),
		.decision = call_text(call, "decision"),
		.since = call_text(call, "since"),
		.until = call_text(call, "until"),
		.format = call_text(call, "format"),
	};
}

int call_audit_query(struct call *call, struct cordon_error *err)
{
	struct cordon_audit_filter filter = filter_of(call);
	const char *after = call_text(call, "after");
	struct rows rows = { json_array(), 0 };
	char next[LEDGER_CURSOR_SIZE];
	if (after)
		rows.most = call_count(call, "limit", ROWS_MOST);
	else
		filter.last = call_count(call, "last", ROWS_MOST);
	if (!rows.list)
		return fail_oom(err);
	if (after && (json_object_get(call->params, "last") || !rows.most))
		fail(err, CORDON_E_INVALID_REQUEST, 0, "after", "goes with a `limit` of 1 or more, and without `last`");
	else if (ledger_read_from(call->cordon->data_dir, &filter, after, add_row, &rows, next, err) == 0)
		return call_take(call,
				 json_pack("{s:b, s:s, s:o}", "more", after && json_array_size(rows.list) == rows.most,
					   "next", next, "rows", rows.list),
				 err);
	json_decref(rows.list);
	return -1;
}

static int take_no_row(void *arg, const char *row, size_t length)
{
	(void)arg, (void)row, (void)length;
	return 1;
}

/* The conditions are tried before the first row can come. */
int call_audit_follow(struct call *call, struct cordon_error *err)
{
	const struct cordon_audit_filter filter = filter_of(call);
	char next[LEDGER_CURSOR_SIZE], tried[LEDGER_CURSOR_SIZE];
	if (ledger_end(call->cordon->data_dir, next, err) < 0 ||
	    ledger_read_from(call->cordon->data_dir, &filter, next, take_no_row, NULL, tried, err) < 0)
		return -1;
	return call_take(call, json_pack("{s:s}", "next", next), err);
}

int call_audit_verify(struct call *call, struct cordon_error *err)
{
	char *json;
	bool intact;
	if (cordon_audit_verify(call->cordon, &json, &intact, err) < 0)
		return -1;
	json_t *report = value_parse(json);
	free(json);
	return call_take(call, report ? json_pack("{s:b, s:o}", "intact", intact, "report", report) : NULL, err);
}

/* The rows of sessions and ports are told from here on. */
int call_events_subscribe(struct call *call, struct cordon_error *err)
{
	static const char kinds[] = " session process approval port ";
	char next[LEDGER_CURSOR_SIZE], word[64];
	size_t i;
	json_t *each;
	json_array_foreach(json_object_get(call->params, "kinds"), i, each)
	{
		snprintf(word, sizeof(word), " %s ", json_string_value(each));
		if (!strstr(kinds, word) || strchr(json_string_value(each), ' '))
			return fail(err, CORDON_E_INVALID_REQUEST, 0, json_string_value(each),
				    "the parameter kinds must be of session, process, approval, port");
	}
	return ledger_end(call->cordon->data_dir, next, err) < 0
		       ? -1
		       : call_take(call, json_pack("{s:s}", "next", next), err);
}

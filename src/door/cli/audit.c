/* `cordon audit`: the ledger, read and verified. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/text.h"
#include "base/utc.h"
#include "door/cli/action.h"
#include "door/cli/audit-text.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"

#define TAIL_DEFAULT 10

/* ---- printing ---------------------------------------------------------------------------------------------------- */

struct printing {
	void (*print)(const char *row);         /* NULL: as it is */
	uint64_t rows;
};

/* Whether standard output has no reader any more: while following, that must be noticed without writing. */
static bool output_gone(void)
{
	struct pollfd output = { .fd = STDOUT_FILENO };
	return ferror(stdout) || (poll(&output, 1, 0) > 0 && output.revents & POLLERR);
}

static int print_row(void *arg, const char *row, size_t length)
{
	struct printing *printing = arg;
	if (!length) {
		fflush(stdout);
		return output_gone();
	}
	printing->rows++;
	if (!printing->print) {
		fwrite(row, 1, length, stdout);
		putchar('\n');
		return ferror(stdout);
	}
	auto_free char *text = strndup(row, length);
	if (text)
		printing->print(text);
	return ferror(stdout);
}

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

/* A time, or how long ago: `90m`. */
static int take_time(const struct options *options, const char *name, char text[UTC_SIZE], const char **ret_time,
                     struct cordon_error *err)
{
	const char *value = options_value(options, name);
	uint64_t ago_ms;
	int64_t ms;
	*ret_time = value;
	if (!value || utc_parse(value, &ms))
		return 0;
	if (!*value || !strchr("smh", value[strlen(value) - 1]) || !text_parse_duration(value, &ago_ms) ||
	    ago_ms / 1000 > (uint64_t)time(NULL)) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, value, "this is no time that has been");
		return fail_remedy(err, "write it as 2026-01-31, 2026-01-31T12:34:56Z, or 90m for so long ago");
	}
	utc_text(time(NULL) - (int64_t)(ago_ms / 1000), 0, text);
	*ret_time = text;
	return 0;
}

struct asked {
	struct cordon_audit_filter filter;
	char since[UTC_SIZE], until[UTC_SIZE];
};

static int take_filter(const struct options *options, struct asked *ret_asked, struct cordon_error *err)
{
	struct cordon_audit_filter *filter = &ret_asked->filter;
	const char *last = options_value(options, "last");
	uint64_t number;
	*filter = (struct cordon_audit_filter){
		.session = options_value(options, "session"), .program = options_value(options, "program"),
		.decision = options_value(options, "decision"), .format = options_value(options, "format"),
		.follow = options_flag(options, "follow"),
	};
	if (last) {
		if (!text_parse_number(last, SIZE_MAX, &number) || !number) {
			fail(err, CORDON_E_INVALID_REQUEST, 0, last, "this is no number of rows");
			return fail_remedy(err, "write a number from 1 on");
		}
		filter->last = number;
	}
	if (take_time(options, "since", ret_asked->since, &filter->since, err) < 0)
		return -1;
	return take_time(options, "until", ret_asked->until, &filter->until, err);
}

/* ---- the actions ------------------------------------------------------------------------------------------------- */

static int act_tail(struct cordon *cordon, const struct options *options, const char *operand, struct cordon_error *err)
{
	struct asked asked;
	struct printing printing = { .print = options_flag(options, "json") ? NULL : audit_print_row };
	(void)operand;
	if (take_filter(options, &asked, err) < 0)
		return -1;
	if (!asked.filter.last)
		asked.filter.last = TAIL_DEFAULT;
	return cordon_audit_read(cordon, &asked.filter, print_row, &printing, err);
}

static int act_show(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	bool json = options_flag(options, "json");
	struct cordon_audit_filter filter = { .id = id };
	struct printing printing = { .print = json ? NULL : audit_print_whole };
	if (cordon_audit_read(cordon, &filter, print_row, &printing, err) < 0)
		return -1;
	if (printing.rows)
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, id, "there is no row of this id");
	fail_remedy(err, "see cordon audit query");
	report_error(err, json);
	return 1;
}

static int act_query(struct cordon *cordon, const struct options *options, const char *operand,
                     struct cordon_error *err)
{
	struct asked asked;
	struct printing printing = { .print = options_flag(options, "json") ? NULL : audit_print_row };
	(void)operand;
	if (take_filter(options, &asked, err) < 0)
		return -1;
	return cordon_audit_read(cordon, &asked.filter, print_row, &printing, err);
}

static int act_export(struct cordon *cordon, const struct options *options, const char *operand,
                      struct cordon_error *err)
{
	struct asked asked;
	struct printing printing = { 0 };
	(void)operand;
	if (take_filter(options, &asked, err) < 0)
		return -1;
	return cordon_audit_read(cordon, &asked.filter, print_row, &printing, err);
}

static int act_verify(struct cordon *cordon, const struct options *options, const char *operand,
                      struct cordon_error *err)
{
	auto_free char *report = NULL;
	bool intact;
	(void)operand;
	if (cordon_audit_verify(cordon, &report, &intact, err) < 0)
		return -1;
	json_read_say(report, options_flag(options, "json"), audit_print_report);
	return !intact;
}

int cli_audit(char **words)
{
	static const struct action actions[] = {
		{ "tail", NULL, false, "last follow", act_tail },
		{ "show", "the id", false, NULL, act_show },
		{ "query", NULL, false, "session program decision since until last", act_query },
		{ "verify", NULL, false, NULL, act_verify },
		{ "export", NULL, false, "format session program decision since until last", act_export },
	};
	return action_run(COMMAND_AUDIT, actions, ARRAY_SIZE(actions), words);
}

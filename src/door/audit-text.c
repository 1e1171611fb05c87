/* Rows and reports for people: see audit-text.h. Columns have fixed widths, since rows are printed as they come. */
#include "door/audit-text.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/visible.h"
#include "door/cell.h"
#include "door/json-indent.h"
#include "door/json-look.h"
#include "door/report.h"

#define KIND_WIDTH 8
#define SESSION_WIDTH 26
#define PROGRAM_WIDTH 24

struct text {
	char bytes[1024];
};
#define TEXT(object, key) json_look_text(json_look_member(object, key), (struct text){ 0 }.bytes, sizeof(struct text))
#define NUMBER(object, key) json_look_number(json_look_member(object, key))
#define EACH(element, array) (const char *element = json_look_first(array); element; element = json_look_next(element))

/* ---- How it came out --------------------------------------------------------------------------------------------- */

static void print_result(const char *row)
{
	long signal = NUMBER(row, "signal");
	if (json_look_true(json_look_member(row, "timed_out")))
		printf("timed out");
	else if (signal)
		printf("signal %ld", signal);
	else
		printf("exit %ld", NUMBER(row, "exit_code"));
	printf(", %ld ms", NUMBER(row, "duration_ms"));
}

static void print_error(const char *row)
{
	const char *error = json_look_member(row, "error");
	report_untrusted(stdout, TEXT(error, "class"));
	printf(": ");
	report_untrusted(stdout, TEXT(error, "reason"));
}

static void print_limit(const char *row)
{
	report_untrusted(stdout, TEXT(row, "limit"));
	printf(": %ld of %ld ", NUMBER(row, "used"), NUMBER(row, "allowed"));
	report_untrusted(stdout, TEXT(row, "unit"));
}

/* These members, as far as they are there. */
static void print_members(const char *row, const char *const *members)
{
	const char *before = "";
	for (; *members; members++) {
		const char *text = TEXT(row, *members);
		if (!*text)
			continue;
		printf("%s", before);
		report_untrusted(stdout, text);
		before = ", ";
	}
}

#define MEMBERS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void print_outcome(const char *row, const char *kind)
{
	const struct {
		const char *kind;
		void (*print)(const char *row);
		const char *const *members;
	} outcomes[] = {
		{ "intent", NULL, MEMBERS("driver") },
		{ "result", print_result, NULL },
		{ "denial", print_error, NULL },
		{ "approval", NULL, MEMBERS("outcome", "scope", "reason") },
		{ "session", NULL, MEMBERS("change", "state", "why") },
		{ "network", NULL, MEMBERS("decision", "host", "address", "why") },
		{ "limit", print_limit, NULL },
		{ "config", NULL, MEMBERS("note") },
		{ "begin", NULL, MEMBERS("reason", "key") },
		{ "damaged", NULL, MEMBERS("reason", "file") },
	};
	for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++) {
		if (strcmp(outcomes[i].kind, kind))
			continue;
		if (outcomes[i].print)
			outcomes[i].print(row);
		else
			print_members(row, outcomes[i].members);
		return;
	}
	print_members(row, MEMBERS("change", "outcome", "note", "reason"));
}

void audit_print_row(const char *row)
{
	/* 2026-01-31T12:34:56.789Z */
	cell_print(TEXT(row, "time"), 24, 26);
	cell_print(TEXT(row, "row"), KIND_WIDTH, KIND_WIDTH + 2);
	cell_print(TEXT(row, "session"), SESSION_WIDTH, SESSION_WIDTH + 2);
	cell_print(TEXT(row, "program"), PROGRAM_WIDTH, PROGRAM_WIDTH + 2);
	print_outcome(row, TEXT(row, "row"));
	if (*TEXT(row, "job")) {
		printf(", job ");
		report_untrusted(stdout, TEXT(row, "job"));
	}
	putchar('\n');
}

void audit_print_whole(const char *row)
{
	auto_free char *safe = visible_json(row);
	audit_print_row(row);
	if (safe)
		json_indent(stdout, safe, false);
}

/* ---- What verify found ------------------------------------------------------------------------------------------- */

static void print_problem(const char *problem)
{
	const char *file = TEXT(problem, "file");
	long line = NUMBER(problem, "line");
	printf("  ");
	if (*file)
		report_untrusted(stdout, file);
	if (line)
		printf(":%ld", line);
	printf("%s", *file ? ": " : "");
	report_untrusted(stdout, TEXT(problem, "reason"));
	putchar('\n');
}

static void print_head(const char *label, const char *head)
{
	if (head && *head == '{')
		printf("%-10srow %ld, %s\n", label, NUMBER(head, "rows"), TEXT(head, "time"));
}

void audit_print_report(const char *report)
{
	const char *problems = json_look_member(report, "problems");
	long listed = 0, all = NUMBER(report, "problem_count"), repairs = NUMBER(report, "repairs");
	long after = NUMBER(report, "rows_after_head");
	bool intact = json_look_true(json_look_member(report, "intact"));
	long rows = NUMBER(report, "rows"), files = NUMBER(report, "files");
	printf("%s: %ld row%s in %ld file%s", intact ? "intact" : "NOT intact", rows, rows == 1 ? "" : "s", files,
	       files == 1 ? "" : "s");
	if (repairs)
		printf(", %ld torn by a killed writer and noted", repairs);
	if (json_look_true(json_look_member(report, "torn_end")))
		printf(", the last torn and not noted yet");
	if (after)
		printf(", %ld written after the head", after);
	putchar('\n');
	for EACH(problem, problems) {
		print_problem(problem);
		listed++;
	}
	if (all > listed)
		printf("  and %ld more\n", all - listed);
	if (*TEXT(report, "key"))
		printf("%-10s%s\n", "key", TEXT(report, "key"));
	print_head("head", json_look_member(report, "head"));
	print_head("signed", json_look_member(report, "signed"));
}

/* Rows and reports as text: see audit-text.h. Columns have fixed widths, since rows are printed as they come. */
#include "door/cli/audit-text.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "door/cli/cell.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"

#define KIND_WIDTH 8
#define SESSION_WIDTH 26
#define PROGRAM_WIDTH 24

/* ---- How it came out --------------------------------------------------------------------------------------------- */

static void print_result(const json_t *row)
{
	long signal = json_read_number(row, "signal");
	if (json_read_true(row, "timed_out"))
		printf("timed out");
	else if (signal)
		printf("signal %ld", signal);
	else
		printf("exit %ld", json_read_number(row, "exit_code"));
	printf(", %ld ms", json_read_number(row, "duration_ms"));
}

static void print_tool_result(const json_t *row)
{
	printf("%ld bytes", json_read_number(row, "bytes"));
}

static void print_error(const json_t *row)
{
	const json_t *error = json_object_get(row, "error");
	report_untrusted(stdout, json_read_text(error, "class"));
	printf(": ");
	report_untrusted(stdout, json_read_text(error, "reason"));
}

static void print_limit(const json_t *row)
{
	report_untrusted(stdout, json_read_text(row, "limit"));
	printf(": %ld of %ld ", json_read_number(row, "used"), json_read_number(row, "allowed"));
	report_untrusted(stdout, json_read_text(row, "unit"));
}

/* These members, as far as they are there. */
static void print_members(const json_t *row, const char *const *members)
{
	const char *before = "";
	for (; *members; members++) {
		const char *text = json_read_text(row, *members);
		if (!*text)
			continue;
		printf("%s", before);
		report_untrusted(stdout, text);
		before = ", ";
	}
}

#define MEMBERS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void print_outcome(const json_t *row, const char *kind)
{
	const struct {
		const char *kind;
		void (*print)(const json_t *row);
		const char *const *members;
	} outcomes[] = {
		{ "intent", NULL, MEMBERS("driver") },
		{ "result", json_object_get(row, "tool") ? print_tool_result : print_result, NULL },
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

/* The program, or the file tool with its path. */
static void print_subject(const json_t *row)
{
	char text[256];
	const char *tool = json_read_text(row, "tool"),
		   *path = json_read_string(json_array_get(json_object_get(row, "paths"), 0));
	snprintf(text, sizeof(text), "file %s %s", tool, path);
	cell_print(*tool ? text : json_read_text(row, "program"), PROGRAM_WIDTH, PROGRAM_WIDTH + 2);
}

void audit_print_row(const char *text)
{
	auto_json json_t *row = json_read(text);
	/* 2026-01-31T12:34:56.789Z */
	cell_print(json_read_text(row, "time"), 24, 26);
	cell_print(json_read_text(row, "row"), KIND_WIDTH, KIND_WIDTH + 2);
	cell_print(json_read_text(row, "session"), SESSION_WIDTH, SESSION_WIDTH + 2);
	print_subject(row);
	print_outcome(row, json_read_text(row, "row"));
	if (*json_read_text(row, "job")) {
		printf(", job ");
		report_untrusted(stdout, json_read_text(row, "job"));
	}
	putchar('\n');
}

void audit_print_whole(const char *text)
{
	audit_print_row(text);
	json_read_print(text, false);
}

/* ---- What verify found ------------------------------------------------------------------------------------------- */

static void print_problem(const json_t *problem)
{
	const char *file = json_read_text(problem, "file");
	long line = json_read_number(problem, "line");
	printf("  ");
	if (*file)
		report_untrusted(stdout, file);
	if (line)
		printf(":%ld", line);
	printf("%s", *file ? ": " : "");
	report_untrusted(stdout, json_read_text(problem, "reason"));
	putchar('\n');
}

static void print_head(const char *label, const json_t *head)
{
	if (json_is_object(head))
		printf("%-10srow %ld, %s\n", label, json_read_number(head, "rows"), json_read_text(head, "time"));
}

void audit_print_report(const json_t *report)
{
	const json_t *problems = json_object_get(report, "problems");
	long listed = 0, all = json_read_number(report, "problem_count"), repairs = json_read_number(report, "repairs");
	long after = json_read_number(report, "rows_after_head");
	bool intact = json_read_true(report, "intact");
	long rows = json_read_number(report, "rows"), files = json_read_number(report, "files");
	printf("%s: %ld row%s in %ld file%s", intact ? "intact" : "NOT intact", rows, rows == 1 ? "" : "s", files,
	       files == 1 ? "" : "s");
	if (repairs)
		printf(", %ld torn by a killed writer and noted", repairs);
	if (json_read_true(report, "torn_end"))
		printf(", the last torn and not noted yet");
	if (after)
		printf(", %ld written after the head", after);
	putchar('\n');
	for JSON_EACH(problem, problems) {
		print_problem(problem);
		listed++;
	}
	if (all > listed)
		printf("  and %ld more\n", all - listed);
	if (*json_read_text(report, "key"))
		printf("%-10s%s\n", "key", json_read_text(report, "key"));
	print_head("head", json_object_get(report, "head"));
	print_head("signed", json_object_get(report, "signed"));
}

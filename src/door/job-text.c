/* Jobs for people: see job-text.h. What a job wrote, its command and its session were written by others, and come out
 * escaped. */
#include "door/job-text.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "base/visible.h"
#include "door/cell.h"
#include "door/json-indent.h"
#include "door/json-look.h"
#include "door/report.h"

#define LABEL_WIDTH 10
#define SESSION_WIDTH 24
#define COMMAND_WIDTH 60

struct text {
	char bytes[4096];
};
#define TEXT(object, key) json_look_text(json_look_member(object, key), (struct text){ 0 }.bytes, sizeof(struct text))
#define NUMBER(object, key) json_look_number(json_look_member(object, key))
#define FLAG(object, key) json_look_true(json_look_member(object, key))
#define EACH(element, array) (const char *element = json_look_first(array); element; element = json_look_next(element))

void job_id(const char *job, char ret_id[JOB_ID_SIZE])
{
	json_look_text(json_look_member(job, "id"), ret_id, JOB_ID_SIZE);
}

bool job_is_running(const char *job)
{
	return !strcmp(TEXT(job, "state"), "running");
}

bool job_is_lost(const char *job)
{
	return !strcmp(TEXT(job, "state"), "lost");
}

bool job_runs_here(const char *list)
{
	for EACH(job, json_look_member(list, "jobs"))
		if (job_is_running(job) && NUMBER(job, "pid") == getpid())
			return true;
	return false;
}

int job_status(const char *job)
{
	if (FLAG(job, "timed_out"))
		return STATUS_TIMED_OUT;
	long signal = NUMBER(job, "signal"), code = NUMBER(job, "exit_code");
	return signal ? STATUS_SIGNAL + (int)signal : code < 0 ? STATUS_REFUSED : (int)code;
}

int job_signal(const char *text, int *ret_signal, struct cordon_error *err)
{
	uint64_t number;
	const char *name = strncmp(text, "SIG", 3) ? text : text + 3;
	if (text_parse_number(text, NSIG - 1, &number) && number) {
		*ret_signal = (int)number;
		return 0;
	}
	for (int signal = 1; signal < NSIG; signal++) {
		const char *known = sigabbrev_np(signal);
		if (known && !strcmp(known, name)) {
			*ret_signal = signal;
			return 0;
		}
	}
	fail(err, CORDON_E_INVALID_REQUEST, 0, text, "there is no such signal");
	return fail_remedy(err, "name one such as TERM or 15");
}

void job_print_started(FILE *out, const char *job, bool json)
{
	char id[JOB_ID_SIZE];
	if (json)
		json_indent(out, job, true);
	else
		fprintf(out, "%s\n", (job_id(job, id), id));
}

/* The command as one would type it. */
static char *command_line(const char *job)
{
	char *line = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&line, &size);
	const char *before = "";
	for EACH(word, out ? json_look_member(job, "command") : NULL) {
		struct text text;
		fputs(before, out);
		visible_quote(out, json_look_text(word, text.bytes, sizeof(text)));
		before = " ";
	}
	if (!out || fclose(out))
		return NULL;
	return line;
}

/* How it ended, in a word or two. */
static const char *outcome(const char *job, char *text, size_t size)
{
	if (strcmp(TEXT(job, "state"), "ended"))
		snprintf(text, size, "%s", TEXT(job, "state"));
	else if (NUMBER(job, "exit_code") < 0 && !NUMBER(job, "signal"))
		snprintf(text, size, "ended, unrecorded");
	else if (FLAG(job, "timed_out"))
		snprintf(text, size, "timed out");
	else if (NUMBER(job, "signal"))
		snprintf(text, size, "%s %ld", FLAG(job, "killed") ? "killed: signal" : "signal", NUMBER(job, "signal"));
	else
		snprintf(text, size, "%s %ld", FLAG(job, "killed") ? "killed: exit" : "exit", NUMBER(job, "exit_code"));
	return text;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

void job_print_list(const char *list)
{
	const char *jobs = json_look_member(list, "jobs");
	if (!json_look_first(jobs)) {
		printf("no jobs\n");
		return;
	}
	printf("%-28s%-18s%-*s%-21s%s\n", "JOB", "STATE", SESSION_WIDTH + 2, "SESSION", "STARTED", "COMMAND");
	for EACH(job, jobs) {
		struct text state;
		auto_free char *line = command_line(job);
		cell_print(TEXT(job, "id"), 26, 28);
		cell_print(outcome(job, state.bytes, sizeof(state)), 16, 18);
		cell_print(TEXT(job, "session"), SESSION_WIDTH, SESSION_WIDTH + 2);
		/* To the second: 2026-01-31T12:34:56 */
		printf("%-21.19s", TEXT(job, "started"));
		cell_print(line ? line : "", COMMAND_WIDTH, 0);
		putchar('\n');
	}
}

/* ---- one --------------------------------------------------------------------------------------------------------- */

static void print_line(const char *label, const char *text)
{
	printf("%-*s", LABEL_WIDTH, label);
	report_untrusted(stdout, text);
	putchar('\n');
}

/* Line by line, so that lines stay lines. */
static void print_output(const char *job, const char *name)
{
	const char *stream = json_look_member(job, name), *data = json_look_member(stream, "data");
	size_t size = data ? json_look_length(data) + 1 : 0;
	auto_free char *text = size ? malloc(size) : NULL;
	long from = NUMBER(stream, "from"), next = NUMBER(stream, "next"), missed = NUMBER(stream, "missed");
	printf("%-*s%ld bytes", LABEL_WIDTH, name, NUMBER(stream, "bytes"));
	if (missed)
		printf(", %ld of them lost", missed);
	if (next > from)
		printf("; %ld to %ld:", from, next);
	putchar('\n');
	if (!text)
		return;
	json_look_text(data, text, size);
	for (char *line = text; *line;) {
		size_t length = strcspn(line, "\n");
		bool more = line[length];
		line[length] = '\0';
		printf("  ");
		report_untrusted(stdout, line);
		putchar('\n');
		line += length + more;
	}
}

void job_print(const char *job)
{
	struct text text;
	auto_free char *line = command_line(job);
	print_line("job", TEXT(job, "id"));
	print_line("session", TEXT(job, "session"));
	print_line("state", outcome(job, text.bytes, sizeof(text)));
	print_line("command", line ? line : "");
	print_line("started", TEXT(job, "started"));
	if (*TEXT(job, "ended"))
		print_line("ended", TEXT(job, "ended"));
	if (*TEXT(job, "limit_hit"))
		print_line("limit", TEXT(job, "limit_hit"));
	if (*TEXT(job, "note"))
		print_line("note", TEXT(job, "note"));
	print_output(job, "stdout");
	print_output(job, "stderr");
}

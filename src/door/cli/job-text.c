/* Jobs as text: see job-text.h. The output of a job, its command and its session are untrusted: they are escaped. */
#include "door/cli/job-text.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "base/visible.h"
#include "door/cli/cell.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"

#define LABEL_WIDTH 10
#define SESSION_WIDTH 24
#define COMMAND_WIDTH 60

struct text {
	char bytes[64];
};

bool job_is_running(const json_t *job)
{
	return !strcmp(json_read_text(job, "state"), "running");
}

bool job_is_lost(const json_t *job)
{
	return !strcmp(json_read_text(job, "state"), "lost");
}

bool job_runs_here(const json_t *list)
{
	for JSON_EACH(job, json_object_get(list, "jobs"))
		if (job_is_running(job) && json_read_number(job, "pid") == getpid())
			return true;
	return false;
}

int job_status(const json_t *job)
{
	if (json_read_true(job, "timed_out"))
		return STATUS_TIMED_OUT;
	long signal = json_read_number(job, "signal"), code = json_read_number(job, "exit_code");
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

void job_print_started(FILE *out, const char *text, bool json)
{
	auto_json json_t *job = json_read(text);
	fprintf(out, "%s\n", json ? text : json_read_text(job, "id"));
}

char *job_command_line(const json_t *job)
{
	char *line = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&line, &size);
	const char *before = "";
	for JSON_EACH(word, out ? json_object_get(job, "command") : NULL) {
		fputs(before, out);
		visible_quote(out, json_read_string(word));
		before = " ";
	}
	if (!out || fclose(out))
		return NULL;
	return line;
}

/* How it ended, in a word or two. */
static const char *outcome(const json_t *job, char *text, size_t size)
{
	if (strcmp(json_read_text(job, "state"), "ended"))
		snprintf(text, size, "%s", json_read_text(job, "state"));
	else if (json_read_number(job, "exit_code") < 0 && !json_read_number(job, "signal"))
		snprintf(text, size, "ended, unrecorded");
	else if (json_read_true(job, "timed_out"))
		snprintf(text, size, "timed out");
	else if (json_read_number(job, "signal"))
		snprintf(text, size, "%s %ld", json_read_true(job, "killed") ? "killed: signal" : "signal",
		         json_read_number(job, "signal"));
	else
		snprintf(text, size, "%s %ld", json_read_true(job, "killed") ? "killed: exit" : "exit",
		         json_read_number(job, "exit_code"));
	return text;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

void job_print_list(const json_t *list)
{
	const json_t *jobs = json_object_get(list, "jobs");
	if (!json_array_size(jobs)) {
		printf("no jobs\n");
		return;
	}
	printf("%-28s%-18s%-*s%-21s%s\n", "JOB", "STATE", SESSION_WIDTH + 2, "SESSION", "STARTED", "COMMAND");
	for JSON_EACH(job, jobs) {
		struct text state;
		auto_free char *line = job_command_line(job);
		cell_print(json_read_text(job, "id"), 26, 28);
		cell_print(outcome(job, state.bytes, sizeof(state)), 16, 18);
		cell_print(json_read_text(job, "session"), SESSION_WIDTH, SESSION_WIDTH + 2);
		/* To the second: 2026-01-31T12:34:56 */
		printf("%-21.19s", json_read_text(job, "started"));
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
static void print_output(const json_t *job, const char *name)
{
	const json_t *stream = json_object_get(job, name), *data = json_object_get(stream, "data");
	size_t size = json_string_length(data);
	auto_free char *text = json_is_string(data) ? malloc(size + 1) : NULL;
	long from = json_read_number(stream, "from"), next = json_read_number(stream, "next"),
	     missed = json_read_number(stream, "missed");
	printf("%-*s%ld bytes", LABEL_WIDTH, name, json_read_number(stream, "bytes"));
	if (missed)
		printf(", %ld of them lost", missed);
	if (next > from)
		printf("; %ld to %ld:", from, next);
	putchar('\n');
	if (!text)
		return;
	memcpy(text, json_string_value(data), size + 1);
	for (char *nul = text; (nul = memchr(nul, '\0', size - (size_t)(nul - text)));)
		*nul = '?';
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

void job_print(const json_t *job)
{
	struct text text;
	auto_free char *line = job_command_line(job);
	print_line("job", json_read_text(job, "id"));
	print_line("session", json_read_text(job, "session"));
	print_line("state", outcome(job, text.bytes, sizeof(text)));
	print_line("command", line ? line : "");
	print_line("started", json_read_text(job, "started"));
	if (*json_read_text(job, "ended"))
		print_line("ended", json_read_text(job, "ended"));
	if (*json_read_text(job, "limit_hit"))
		print_line("limit", json_read_text(job, "limit_hit"));
	if (*json_read_text(job, "note"))
		print_line("note", json_read_text(job, "note"));
	print_output(job, "stdout");
	print_output(job, "stderr");
}

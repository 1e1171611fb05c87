/* `cordon job`: one row per action; how one is started is in job-start.c. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "door/cli/action.h"
#include "door/cli/job-start.h"
#include "door/cli/job-text.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"

#define TAIL_DEFAULT 10
#define CHUNK ((size_t)64 << 10)

static int take_number(const struct options *options, const char *name, uint64_t usual, uint64_t *ret_number,
                       struct cordon_error *err)
{
	const char *text = options_value(options, name);
	*ret_number = usual;
	if (!text || text_parse_number(text, INT64_MAX, ret_number))
		return 0;
	return fail(err, CORDON_E_INVALID_REQUEST, 0, text, "--%s: must be a number", name);
}

static int act_list(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	auto_free char *json = NULL;
	(void)id;
	if (cordon_job_list(cordon, options_value(options, "session"), &json, err) < 0)
		return -1;
	json_read_say(json, options_flag(options, "json"), job_print_list);
	return 0;
}

static int act_poll(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	auto_free char *json = NULL;
	uint64_t from, stderr_from;
	if (take_number(options, "from", 0, &from, err) < 0 ||
	    take_number(options, "stderr-from", 0, &stderr_from, err) < 0 ||
	    cordon_job_poll(cordon, id, from, stderr_from, &json, err) < 0)
		return -1;
	json_read_say(json, options_flag(options, "json"), job_print);
	return 0;
}

static int fail_unended(const char *id, struct cordon_error *err)
{
	fail(err, CORDON_E_SESSION_BUSY, 0, id, "the job has not ended yet");
	return fail_remedy(err,
	                   "wait for longer, look at what it does (cordon job poll ID), or end it: cordon job kill ID");
}

static int act_wait(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	auto_free char *json = NULL;
	const char *text = options_value(options, "timeout");
	uint64_t timeout_ms = INT64_MAX;
	if (text && (!text_parse_duration(text, &timeout_ms) || timeout_ms > INT64_MAX / 2))
		return fail(err, CORDON_E_INVALID_REQUEST, 0, text,
		            "timeout: must be a time such as 1500ms, 60s or 5m");
	if (cordon_job_wait(cordon, id, text ? (int64_t)timeout_ms : -1, &json, err) < 0)
		return -1;
	auto_json json_t *job = json_read(json);
	if (job_is_running(job))
		return fail_unended(id, err);
	if (options_flag(options, "json"))
		puts(json);
	else if (job_is_lost(job))
		return fail(err, CORDON_E_INTERNAL, 0, id, "the job is lost: the process that ran it was killed");
	return job_is_lost(job) ? STATUS_REFUSED : job_status(job);
}

/* ---- kill -------------------------------------------------------------------------------------------------------- */

static int act_kill(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	const char *named = options_value(options, "signal");
	auto_free char *json = NULL;
	int signal = 0;
	if ((named && job_signal(named, &signal, err) < 0) || cordon_job_kill(cordon, id, signal, err) < 0)
		return -1;
	if (!options_flag(options, "json"))
		return 0;
	if (cordon_job_wait(cordon, id, 0, &json, err) < 0)
		return -1;
	puts(json);
	return 0;
}

/* ---- tail -------------------------------------------------------------------------------------------------------- */

struct tail {
	struct cordon *cordon;
	const char *id;
	enum cordon_stream stream;
	uint64_t at;                    /* where to continue */
	uint64_t skip;                  /* lines that are not printed */
	uint64_t missed;                /* bytes that were gone before they were read */
	bool escape, ended, begun;
	char *chunk;
	size_t length;
};

static int read_chunk(struct tail *tail, int wait_ms, struct cordon_error *err)
{
	struct cordon_job_output output;
	if (cordon_job_read(tail->cordon, tail->id, tail->stream, tail->at, tail->chunk, CHUNK, wait_ms, &output, err) <
	    0)
		return -1;
	/* Half a character waits for its other half, if that may come. */
	size_t cut = tail->escape && !output.ended ? utf8_cut_tail(tail->chunk, output.length) : 0;
	tail->length = output.length - (cut < output.length ? cut : 0);
	tail->missed += tail->begun ? output.from - tail->at : 0;
	tail->begun = true;
	tail->at = output.from + tail->length;
	tail->ended = output.ended;
	return 0;
}

static void print_chunk(struct tail *tail)
{
	const char *from = tail->chunk, *end = tail->chunk + tail->length;
	for (; tail->skip && from < end; tail->skip--) {
		const char *newline = memchr(from, '\n', (size_t)(end - from));
		if (!newline)
			return;
		from = newline + 1;
	}
	if (tail->escape)
		visible_print(stdout, from, (size_t)(end - from)); /* the job wrote it */
	else
		fwrite(from, 1, (size_t)(end - from), stdout);
	fflush(stdout);
}

/* How many lines are to be left out, so that the last so many remain. A last one without its end is a line. */
static int count_lines(struct tail *tail, uint64_t last, struct cordon_error *err)
{
	uint64_t lines = 0;
	char final = '\n';
	do {
		if (read_chunk(tail, 0, err) < 0)
			return -1;
		for (size_t i = 0; i < tail->length; i++)
			lines += tail->chunk[i] == '\n';
		final = tail->length ? tail->chunk[tail->length - 1] : final;
	} while (tail->length);
	lines += final != '\n';
	tail->skip = lines > last ? lines - last : 0;
	tail->at = tail->missed = 0;
	tail->ended = tail->begun = false;
	return 0;
}

/* What failed says why there, and whoever follows a build would not know. */
static void point_to_stderr(const struct tail *tail)
{
	struct cordon_job_output output;
	struct cordon_error untold;
	if (tail->stream == CORDON_STDOUT && tail->ended &&
	    cordon_job_read(tail->cordon, tail->id, CORDON_STDERR, 0, tail->chunk, CHUNK, 0, &output, &untold) == 0 &&
	    output.written)
		fprintf(stderr, "cordon: the job also wrote to standard error: cordon job tail --stderr %s\n", tail->id);
}

static int act_tail(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	auto_free char *chunk = malloc(CHUNK);
	struct tail tail = { .cordon = cordon, .id = id, .chunk = chunk, .escape = isatty(STDOUT_FILENO),
	                     .stream = options_flag(options, "stderr") ? CORDON_STDERR : CORDON_STDOUT };
	bool follow = options_flag(options, "follow");
	uint64_t last;
	if (!chunk)
		return fail_oom(err);
	if (options_flag(options, "json")) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, "--json", "tail prints what the job wrote as it is");
		return fail_remedy(err, "use cordon job poll --json");
	}
	if (take_number(options, "last", TAIL_DEFAULT, &last, err) < 0 || count_lines(&tail, last, err) < 0)
		return -1;
	while (!tail.ended && !ferror(stdout)) {
		if (read_chunk(&tail, follow ? -1 : 0, err) < 0)
			return -1;
		print_chunk(&tail);
		if (!follow && !tail.length)
			break;
	}
	if (tail.missed)
		fprintf(stderr, "cordon: %" PRIu64 " bytes are missing: they were written faster than they were read\n",
		        tail.missed);
	point_to_stderr(&tail);
	fflush(stderr);
	return 0;
}

/* ---- the actions ------------------------------------------------------------------------------------------------- */

/* What comes before the word is not known to be for a program's start when it is read. */
static int act_start(struct cordon *cordon, const struct options *options, const char *id, struct cordon_error *err)
{
	(void)cordon;
	(void)options;
	(void)id;
	fail(err, CORDON_E_INVALID_REQUEST, 0, "start", "this word comes before the options");
	return fail_remedy(err, "write cordon job start --session ID -- PROGRAM");
}

static int start(char **words)
{
	struct options options;
	int status;
	if (!cli_options(COMMAND_JOB, words, SIZE_MAX, &options, &status))
		return status;
	struct cordon_error err;
	for (size_t i = 0; i < options.given_count; i++) {
		char spelled[64];
		if (options.given[i].option->group != GROUP_JOBS)
			continue;
		option_spell(options.given[i].option, spelled, sizeof(spelled));
		fail(&err, CORDON_E_INVALID_REQUEST, 0, spelled, "cordon job start takes no such option");
		fail_remedy(&err, "see cordon help job");
		report_error(&err, options_flag(&options, "json"));
		options_free(&options);
		return STATUS_REFUSED;
	}
	status = run_carry_out("job", &options, words, job_start_here);
	options_free(&options);
	return status;
}

int cli_job(char **words)
{
	static const struct action actions[] = {
		{ "start", "", true, "no-ask c", act_start },
		{ "list", NULL, false, "session", act_list },
		{ "poll", "the job's id", false, "from stderr-from", act_poll },
		{ "tail", "the job's id", false, "last follow stderr", act_tail },
		{ "wait", "the job's id", false, "timeout", act_wait },
		{ "kill", "the job's id", false, "signal", act_kill },
	};
	if (*words && !strcmp(*words, "start"))
		return start(words);
	return action_run(COMMAND_JOB, actions, ARRAY_SIZE(actions), words);
}

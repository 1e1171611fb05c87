/* The daemon's end of wire.h: one command per connection. What the command line would have printed is made here, by
 * the same code, and sent as it is. */
#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "cordon-internal.h"
#include "door/cli/job-text.h"
#include "door/cli/portion.h"
#include "door/cli/report.h"
#include "door/cli/request.h"
#include "door/daemon/serve.h"
#include "door/wire/wire-read.h"

#define INPUT_WINDOW (64u << 10)

struct framed {
	struct served run;
	char *hello;
	size_t hello_length;
	struct wire_words words;
	struct options options;
	struct portion portions[3];     /* [CORDON_STDOUT], [CORDON_STDERR] */
	bool is_for_us, json;
};

static void send_frame(struct client *client, enum wire_kind kind, unsigned flags, const void *body, size_t length)
{
	struct wire_head head = { .kind = (uint8_t)kind, .flags = (uint8_t)flags, .length = (uint32_t)length };
	client_send(client, (const struct iovec[]){ { &head, sizeof(head) }, { (void *)(uintptr_t)body, length } },
	            length ? 2 : 1);
}

static void send_bytes(struct client *client, enum wire_kind kind, unsigned flags, const char *bytes, size_t length)
{
	for (size_t part; length; bytes += part, length -= part) {
		part = length < WIRE_BODY_MAX ? length : WIRE_BODY_MAX;
		send_frame(client, kind, flags, bytes, part);
	}
}

/* ---- before it starts -------------------------------------------------------------------------------------------- */

static const char *variable(const char *const *environment, const char *name)
{
	size_t length = strlen(name);
	for (; *environment; environment++)
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

/* The library was opened with the daemon's environment: if the client's leads to other data or another configuration,
 * the daemon does not serve it. */
static bool is_at_home(const char *const *environment)
{
	static const char *const names[] = { "HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *ours = getenv(names[i]), *theirs = variable(environment, names[i]);
		if ((ours || theirs) && (!ours || !theirs || strcmp(ours, theirs)))
			return false;
	}
	return true;
}

/* Words that are wrong, or ask for what needs the client's own process, are for that to deal with. */
static bool is_for_us(struct framed *framed, const struct server *server)
{
	static const char *const others[] = { "help", "tty", "config", "no-daemon" };
	const struct wire_words *words = &framed->words;
	struct cordon_error err;
	if (server->has_config || !words->words[0] || !is_at_home(words->environment))
		return false;
	enum command_id command = command_find(words->words[0]);
	framed->run.is_job = command == COMMAND_JOB && words->words[1] && !strcmp(words->words[1], "start");
	if ((command != COMMAND_RUN && !framed->run.is_job) ||
	    options_parse(command, (char **)(uintptr_t)(words->words + 1), &framed->options, &err) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (options_flag(&framed->options, others[i]))
			return false;
	const char *manifest = options_value(&framed->options, "manifest");
	return options_flag(&framed->options, "session") && (!manifest || *manifest == '/');
}

static int set_streams(struct framed *framed, struct cordon_request *request)
{
	char mask[16];
	snprintf(mask, sizeof(mask), "%03o", (unsigned)framed->words.umask & 0777);
	if (cordon_request_set(request, "umask", mask, &framed->run.err) < 0)
		return -1;
	if (!framed->json && !framed->run.is_job &&
	    cordon_request_set(request, "hand-on", "true", &framed->run.err) < 0)
		return -1;
	bool one = framed->words.flags & WIRE_ONE_STREAM && !framed->json && !framed->run.is_job;
	return one ? cordon_request_set(request, "one-stream", "true", &framed->run.err) : 0;
}

static void make_request(struct framed *framed)
{
	struct served *run = &framed->run;
	struct cordon_request *request;
	const struct options after = run->is_job ? options_after_action(&framed->options) : framed->options;
	if (request_build(&after, framed->words.cwd, &request, &run->err) < 0)
		return;
	if (cordon_request_environment(request, framed->words.environment, &run->err) < 0 ||
	    set_streams(framed, request) < 0)
		cordon_request_unref(request);
	else
		run->request = request;
}

/* Waits for nothing. */
static void prepare(struct framed *framed, const struct server *server)
{
	struct served *run = &framed->run;
	if (!wire_hello(framed->hello, framed->hello_length, &framed->words) || !is_for_us(framed, server))
		return;
	const uint32_t flags = framed->words.flags;
	framed->is_for_us = true;
	framed->json = options_flag(&framed->options, "json");
	portion_open(&framed->portions[CORDON_STDOUT], flags & WIRE_STDOUT_TERMINAL, 0);
	portion_open(&framed->portions[CORDON_STDERR], flags & WIRE_STDERR_TERMINAL, 0);
	run->takes_input = !run->is_job && !(flags & WIRE_NO_STDIN);
	run->can_ask = flags & WIRE_CAN_ASK && !options_flag(&framed->options, "no-ask");
	make_request(framed);
}

static bool frames_admit(struct served *run)
{
	const char *what;
	if (((struct framed *)run)->is_for_us && !atomic_load(&run->server->is_ending) &&
	    peer_compare(&run->server->self, run->client->fd, run->client->pid, &what) == PEER_SAME)
		return true;
	send_frame(run->client, WIRE_DECLINE, 0, NULL, 0);
	return false;
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

static void frames_started(struct served *run)
{
	struct framed *framed = (struct framed *)run;
	const uint32_t more = INPUT_WINDOW;
	for (enum cordon_stream stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
		portion_keep(&framed->portions[stream], cordon_execution_kept(run->execution, stream));
	if (!run->takes_input)
		return;
	run->input.wanted = more;
	send_frame(run->client, WIRE_MORE, 0, &more, sizeof(more));
}

static void frames_room(struct served *run, size_t length)
{
	run->input.taken += length;
	if (run->input.taken < INPUT_WINDOW / 4)
		return;
	const uint32_t more = (uint32_t)run->input.taken;
	run->input.taken = 0;
	run->input.wanted += more;
	send_frame(run->client, WIRE_MORE, 0, &more, sizeof(more));
}

static void frames_output(struct served *run, enum cordon_stream stream, const char *data, size_t length)
{
	struct framed *framed = (struct framed *)run;
	if (!framed->json)
		send_bytes(run->client, stream == CORDON_STDERR ? WIRE_STDERR : WIRE_STDOUT, 0, data,
		           portion_live(&framed->portions[stream], length));
}

static bool frames_ask(struct served *run, const struct cordon_card *card)
{
	struct wire_ask ask = { .has_session = *card->session != '\0', .running = atomic_load(&run->started),
		                .timeout_ms = card->timeout_ms };
	struct wire_head head = { .kind = WIRE_ASK, .length = (uint32_t)(sizeof(ask) + strlen(card->text) + 1) };
	snprintf(ask.id, sizeof(ask.id), "%s", card->id);
	snprintf(ask.hash, sizeof(ask.hash), "%s", card->hash);
	if (head.length > WIRE_ASK_MAX)
		return false;
	client_send(run->client, (const struct iovec[]){ { &head, sizeof(head) }, { &ask, sizeof(ask) },
	            { (void *)(uintptr_t)card->text, strlen(card->text) + 1 } }, 3);
	return true;
}

static void frames_settled(struct served *run)
{
	send_frame(run->client, WIRE_SETTLED, 0, NULL, 0);
}

/* ---- after its end ----------------------------------------------------------------------------------------------- */

struct words {
	char *text;
	size_t length;
	FILE *out;
};

static void say(struct served *run, unsigned flags, enum wire_kind kind, struct words *words)
{
	if (words->out && fclose(words->out) == 0)
		send_bytes(run->client, kind, flags, words->text, words->length);
	free(words->text);
}

static int conclude_failure(struct framed *framed, unsigned flags)
{
	struct words words = { 0 };
	if ((words.out = open_memstream(&words.text, &words.length)))
		report_error_to(words.out, &framed->run.err, framed->json);
	say(&framed->run, flags, framed->json ? WIRE_SAY_OUT : WIRE_SAY_ERR, &words);
	return report_error_status(&framed->run.err);
}

static int conclude_json(struct framed *framed)
{
	auto_free char *text = cordon_result_json(framed->run.result);
	if (!text) {
		fail_oom(&framed->run.err);
		return conclude_failure(framed, WIRE_OVER);
	}
	send_bytes(framed->run.client, WIRE_SAY_OUT, WIRE_OVER, text, strlen(text));
	send_bytes(framed->run.client, WIRE_SAY_OUT, WIRE_OVER, "\n", 1);
	return report_result_status(framed->run.result);
}

static void send_rest(struct framed *framed, enum wire_kind kind, const struct portion *portion, const char *kept,
                      size_t length)
{
	size_t rest = portion_rest(portion, length);
	send_bytes(framed->run.client, kind, WIRE_OVER, kept + length - rest, rest);
}

static int conclude_text(struct framed *framed)
{
	const struct cordon_result *result = framed->run.result;
	const struct portion *out = &framed->portions[CORDON_STDOUT], *err = &framed->portions[CORDON_STDERR];
	const struct report_place place = {
		.stdout_as_kept = !portion_is_whole(out),
		.stderr_as_kept = !portion_is_whole(err),
		.is_terminal = framed->words.flags & WIRE_STDERR_TERMINAL,
		.is_shared = framed->words.flags & WIRE_ONE_STREAM,
		.is_for_agent = report_is_for_agent(options_value(&framed->options, "session")),
	};
	struct words words = { 0 };
	send_rest(framed, WIRE_STDOUT, out, result->stdout_data, result->stdout_length);
	send_rest(framed, WIRE_STDERR, err, result->stderr_data, result->stderr_length);
	words.out = open_memstream(&words.text, &words.length);
	if (words.out && !options_flag(&framed->options, "quiet"))
		report_remarks(words.out, result, &place);
	if (words.out)
		report_note(words.out, result);
	say(&framed->run, WIRE_OVER, WIRE_SAY_ERR, &words);
	return report_result_status(result);
}

static int conclude_job(struct framed *framed)
{
	struct words words = { 0 };
	if ((words.out = open_memstream(&words.text, &words.length)))
		job_print_started(words.out, framed->run.job, framed->json);
	say(&framed->run, WIRE_OVER, WIRE_SAY_OUT, &words);
	return 0;
}

static void send_taken(struct served *run, unsigned flags)
{
	if (run->takes_input && run->result)
		send_frame(run->client, WIRE_TAKEN, flags, &run->result->stdin_bytes, sizeof(run->result->stdin_bytes));
}

static void frames_conclude(struct served *run)
{
	struct framed *framed = (struct framed *)run;
	unsigned flags = WIRE_OVER | (atomic_load(&run->started) ? 0u : WIRE_UNSTARTED);
	const uint32_t status = (uint32_t)(run->failed ? conclude_failure(framed, flags)
	                                   : run->is_job ? conclude_job(framed)
	                                   : framed->json ? conclude_json(framed) : conclude_text(framed));
	send_taken(run, flags);
	send_frame(run->client, WIRE_END, flags, &status, sizeof(status));
}

static void frames_free(struct served *run)
{
	struct framed *framed = (struct framed *)run;
	options_free(&framed->options);
	free(framed->words.words);
	sodium_memzero(framed->hello, framed->hello_length);
	free(framed->hello);
	free(framed);
}

static const struct served_kind framed_kind = {
	frames_admit, frames_started, frames_output, frames_conclude,
	frames_ask,   frames_settled, frames_room,   frames_free,
};

/* ---- what clients send ------------------------------------------------------------------------------------------- */

/* To be looked at when all of the HELLO was read, and before anything is begun: wire.h tells why. */
static bool is_taken_back(const struct client *client)
{
	struct pollfd ready = { .fd = client->fd, .events = POLLRDHUP };
	atomic_thread_fence(memory_order_seq_cst);
	return poll(&ready, 1, 0) != 0;
}

static bool take_hello(struct client *client, const struct wire_frame *frame)
{
	struct server *server = client->server;
	if (client->greeted || is_taken_back(client))
		return false;
	client->greeted = true;
	bool has_room = server->run_count < server->runs_most && !atomic_load(&server->is_ending);
	struct framed *framed = has_room ? calloc(1, sizeof(*framed)) : NULL;
	if (!framed || !(framed->hello = malloc(frame->head.length))) {
		free(framed);
		send_frame(client, WIRE_DECLINE, 0, NULL, 0);
		return true;
	}
	memcpy(framed->hello, frame->body, frame->head.length);
	framed->hello_length = frame->head.length;
	struct wire_hello hello;
	memcpy(&hello, frame->body, sizeof(hello));
	prepare(framed, server);
	run_begin(&framed->run, client, &framed_kind);
	return true;
}

static bool take_input(struct served *run, const struct wire_frame *frame)
{
	if (!atomic_load(&run->started) || frame->head.length > run->input.wanted)
		return false;
	run->input.wanted -= frame->head.length;
	if (frame->head.length) {
		stdin_put(run, frame->body, frame->head.length);
		return true;
	}
	/* Before the command can know that there is no more. */
	atomic_store(&run->input.error, frame->head.flags == EBADF ? 0 : frame->head.flags);
	stdin_end(run);
	return true;
}

static void take_answer(struct served *run, const struct wire_frame *frame)
{
	struct wire_answer answer;
	memcpy(&answer, frame->body, sizeof(answer));
	answer.id[sizeof(answer.id) - 1] = answer.hash[sizeof(answer.hash) - 1] =
		answer.reason[sizeof(answer.reason) - 1] = '\0';
	run_answer(run, answer.id, answer.hash, answer.answer, answer.reason);
}

static bool take_frame(struct client *client, const struct wire_frame *frame)
{
	struct served *run = client->runs;
	uint32_t number;
	if (frame->head.kind == WIRE_HELLO)
		return take_hello(client, frame);
	if (!run) /* it is over, and the client does not know yet */
		return client->greeted;
	if (frame->head.kind == WIRE_STDIN)
		return take_input(run, frame);
	if (frame->head.kind == WIRE_ANSWER)
		take_answer(run, frame);
	else if (frame->head.kind == WIRE_SIGNAL && wire_number(frame, &number) && number < 64)
		run_signal(run, (int)number);
	return true;
}

static bool frames_take(struct client *client)
{
	struct wire_frame frame;
	enum wire_state state;
	while ((state = wire_next(client->in + client->in_from, client->in_to - client->in_from, true, &frame)) ==
	       WIRE_WHOLE) {
		if (!take_frame(client, &frame))
			return false;
		client->in_from += frame.size;
	}
	return state == WIRE_PARTIAL;
}

const struct client_kind client_frames = { frames_take, NULL, WIRE_HELLO_MAX + sizeof(struct wire_head), false };

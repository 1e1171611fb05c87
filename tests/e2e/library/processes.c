/* Processes: events, input, output with offsets, signals, cancelling, attaching, asking, and that no call waits. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "embed.h"

static struct cordon *cordon;
static struct cordon_error err;

static bool is(const struct cordon_value *event, const char *kind)
{
	return !strcmp(cordon_value_text(event, "event", NULL), kind);
}

/* The next event, of this kind if one is named; output is collected. */
static struct cordon_value *await(struct cordon_process *process, const char *kind, char *output, size_t size)
{
	for (struct cordon_value *event;;) {
		MUST(cordon_process_next(process, &event, &err));
		if (!event) {
			struct pollfd ready = { .fd = cordon_process_fd(process), .events = POLLIN };
			CHECK(poll(&ready, 1, PATIENCE_MS) == 1);
			continue;
		}
		if (output && is(event, "output") && !strcmp(cordon_value_text(event, "stream", NULL), "stdout")) {
			size_t length, have = strlen(output);
			const char *data = cordon_value_text(event, "data", &length);
			CHECK(have + length < size && (size_t)cordon_value_int(event, "offset") == have &&
			      !cordon_value_int(event, "missed"));
			memcpy(output + have, data, length);
			output[have + length] = '\0';
		}
		if (!kind || is(event, kind))
			return event;
		CHECK(!is(event, "ended"));
		cordon_value_unref(event);
	}
}

static struct cordon_process *start(const char *line, const char *key, const char *value)
{
	struct cordon_request *request = shell(line);
	struct cordon_process *process;
	if (key)
		MUST(cordon_request_set(request, key, value, &err));
	MUST(cordon_start(cordon, request, &process, &err));
	cordon_request_unref(request);
	return process;
}

static void check_events(void)
{
	char output[200] = "";
	struct cordon_process *process = start("echo one; echo two >&2; exit 3", NULL, NULL);
	CHECK(strlen(cordon_process_id(process)) >= 26);
	struct cordon_value *event = await(process, "started", NULL, 0);
	CHECK(!strcmp(cordon_value_text(event, "id", NULL), cordon_process_id(process)));
	CHECK(cordon_value_type(event, "session") == CORDON_NULL &&
	      cordon_value_type(event, "nothing") == CORDON_ABSENT);
	cordon_value_unref(event);
	event = await(process, "ended", NULL, 0);
	CHECK(cordon_value_int(event, "result.exit_code") == 3 && cordon_value_int(event, "result.stdout_bytes") == 4);
	CHECK(!strcmp(cordon_value_text(event, "result.ended_by", NULL), "exit"));
	cordon_value_unref(event);
	MUST(cordon_process_next(process, &event, &err));
	CHECK(!event);
	struct pollfd ready = { .fd = cordon_process_fd(process), .events = POLLIN };
	CHECK(poll(&ready, 1, 0) == 0);
	struct cordon_value *result;
	MUST(cordon_process_wait(process, -1, &result, &err));
	CHECK(!strcmp(cordon_value_text(result, "stdout", NULL), "one\n") &&
	      !strcmp(cordon_value_text(result, "stderr", NULL), "two\n"));
	cordon_value_unref(result);
	CHECK(cordon_process_signal(process, SIGTERM, &err) < 0 && err.class == CORDON_E_NOT_FOUND);
	cordon_process_unref(process);
	(void)output;
}

static void check_input(void)
{
	char output[200] = "";
	size_t taken;
	struct cordon_process *process = start("read a; echo got $a; cat; echo end", "stdin", "stream");
	MUST(cordon_process_write(process, "first\n", 6, &taken, &err));
	CHECK(taken == 6);
	MUST(cordon_process_write(process, "rest\n", 5, &taken, &err));
	MUST(cordon_process_close_stdin(process, &err));
	cordon_value_unref(await(process, "ended", output, sizeof(output)));
	CHECK(!strcmp(output, "got first\nrest\nend\n"));
	CHECK(cordon_process_write(process, "more", 4, &taken, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	cordon_process_unref(process);
	process = start("cat", NULL, NULL); /* an empty input */
	CHECK(cordon_process_write(process, "more", 4, &taken, &err) < 0);
	cordon_value_unref(await(process, "ended", NULL, 0));
	cordon_process_unref(process);
}

/* More than fits anywhere goes in and comes out whole. */
static void check_room(void)
{
	static char data[65536];
	size_t left = 4 << 20, seen = 0, taken;
	struct cordon_process *process = start("cat", "stdin", "stream");
	memset(data, 'x', sizeof(data));
	for (bool room = true, ended = false; !ended;) {
		if (room && left) {
			MUST(cordon_process_write(process, data, left < sizeof(data) ? left : sizeof(data), &taken,
			                          &err));
			room = taken == (left < sizeof(data) ? left : sizeof(data));
			left -= taken;
			if (!left)
				MUST(cordon_process_close_stdin(process, &err));
		}
		struct pollfd ready = { .fd = cordon_process_fd(process), .events = POLLIN };
		CHECK(poll(&ready, 1, room && left ? 0 : PATIENCE_MS) >= 0);
		struct cordon_value *event;
		MUST(cordon_process_next(process, &event, &err));
		if (!event)
			continue;
		if (is(event, "output")) {
			size_t length;
			cordon_value_text(event, "data", &length);
			CHECK((size_t)cordon_value_int(event, "offset") == seen && !cordon_value_int(event, "missed"));
			seen += length;
		}
		room |= is(event, "room");
		ended = is(event, "ended");
		cordon_value_unref(event);
	}
	CHECK(seen == 4 << 20);
	cordon_process_unref(process);
}

/* Output that is not taken is not lost; bytes stay what they are. */
static void check_slow_reader(void)
{
	size_t seen = 0;
	struct cordon_process *process = start("printf '\\377\\376'; head -c 3000000 /dev/zero", NULL, NULL);
	cordon_value_unref(await(process, "started", NULL, 0));
	pause_ms(300);
	for (bool ended = false; !ended;) {
		struct cordon_value *event = await(process, NULL, NULL, 0);
		if (is(event, "output")) {
			size_t length;
			const char *data = cordon_value_text(event, "data", &length);
			CHECK(seen || !memcmp(data, "\377\376", 2));
			CHECK((size_t)cordon_value_int(event, "offset") == seen);
			if (!seen) {
				char *json = cordon_value_json(event, "");
				CHECK(json && strstr(json, "\"data_base64\":\"//4"));
				free(json);
			}
			seen += length;
		}
		ended = is(event, "ended");
		cordon_value_unref(event);
	}
	CHECK(seen == 3000002);
	cordon_process_unref(process);
}

static void check_cancel(void)
{
	char output[100] = "";
	struct cordon_process *process =
		start("trap 'echo told; exit 4' TERM; echo up; while :; do sleep 0.02; done", NULL, NULL);
	cordon_value_unref(await(process, "output", output, sizeof(output)));
	MUST(cordon_process_cancel(process, 20000, &err));
	struct cordon_value *event = await(process, "ended", output, sizeof(output));
	CHECK(cordon_value_int(event, "result.exit_code") == 4 &&
	      !strcmp(cordon_value_text(event, "result.ended_by", NULL), "cancel"));
	cordon_value_unref(event);
	CHECK(!strcmp(output, "up\ntold\n"));
	cordon_process_unref(process);
	process = start("trap '' TERM; echo up; while :; do sleep 0.02; done", NULL, NULL);
	cordon_value_unref(await(process, "output", NULL, 0));
	MUST(cordon_process_cancel(process, 50, &err));
	event = await(process, "ended", NULL, 0);
	CHECK(cordon_value_int(event, "result.signal") == SIGKILL &&
	      !strcmp(cordon_value_text(event, "result.ended_by", NULL), "cancel"));
	cordon_value_unref(event);
	cordon_process_unref(process);
	process = start("echo up; sleep 1000", "timeout", "300ms");
	event = await(process, "ended", NULL, 0);
	CHECK(!strcmp(cordon_value_text(event, "result.ended_by", NULL), "time"));
	cordon_value_unref(event);
	cordon_process_unref(process);
	process = start("echo up; sleep 1000", NULL, NULL);
	cordon_value_unref(await(process, "output", NULL, 0));
	MUST(cordon_process_signal(process, SIGKILL, &err));
	event = await(process, "ended", NULL, 0);
	CHECK(!strcmp(cordon_value_text(event, "result.ended_by", NULL), "signal"));
	cordon_value_unref(event);
	cordon_process_unref(process);
}

static void check_attach(void)
{
	char output[100] = "", id[64];
	struct cordon_process *other,
		*process = start("echo one; until [ -e go ]; do sleep 0.02; done; echo two; rm go", NULL, NULL);
	cordon_value_unref(await(process, "output", output, sizeof(output)));
	snprintf(id, sizeof(id), "%s", cordon_process_id(process));
	MUST(cordon_process_attach(cordon, id, 2, 0, &other, &err));
	struct cordon_value *event = await(other, "output", NULL, 0);
	CHECK(!strcmp(cordon_value_text(event, "data", NULL), "e\n") && cordon_value_int(event, "offset") == 2);
	cordon_value_unref(event);
	int fd = cordon_process_fd(other);
	cordon_process_unref(other);
	CHECK(fcntl(fd, F_GETFD) < 0);
	MUST(cordon_process_detach(process, &err));
	char path[500];
	snprintf(path, sizeof(path), "%s/go", getenv("WORKSPACE"));
	fclose(fopen(path, "w"));
	/* Also a place that is not reached yet. */
	MUST(cordon_process_attach(cordon, id, UINT64_MAX, 0, &other, &err));
	struct cordon_value *result;
	MUST(cordon_process_wait(other, -1, &result, &err));
	CHECK(!strcmp(cordon_value_text(result, "stdout", NULL), "one\ntwo\n"));
	cordon_value_unref(result);
	cordon_process_unref(other);
	MUST(cordon_process_attach(cordon, id, 0, 0, &other, &err)); /* it was detached, and is still known */
	output[0] = '\0';
	cordon_value_unref(await(other, "ended", output, sizeof(output)));
	CHECK(!strcmp(output, "one\ntwo\n"));
	cordon_process_unref(other);
	CHECK(cordon_process_attach(cordon, "00000000-0000-0000-0000-000000000000", 0, 0, &other, &err) < 0 &&
	      err.class == CORDON_E_NOT_FOUND);
}

/* A command of a session that asks for more, answered by an event's card. */
static struct cordon_process *start_asking(void)
{
	struct cordon_process *process;
	struct cordon_request *request = shell("echo ran");
	MUST(cordon_request_set(request, "session", "asking", &err));
	MUST(cordon_request_set(request, "read", "/var/tmp", &err));
	MUST(cordon_request_set(request, "ask", "true", &err));
	MUST(cordon_start(cordon, request, &process, &err));
	cordon_request_unref(request);
	return process;
}

static void check_asking(void)
{
	char output[100] = "";
	struct cordon_process *process = start_asking();
	struct cordon_value *event = await(process, "asks", NULL, 0);
	const char *card = cordon_value_text(event, "card", NULL), *hash = cordon_value_text(event, "hash", NULL);
	CHECK(cordon_process_answer(process, card, "wrong", CORDON_APPROVED_ONCE, NULL, &err) < 0);
	/* What another one asks is answered through that one only. */
	struct cordon_process *other = start("exec sleep 600", NULL, NULL);
	CHECK(cordon_process_answer(other, card, hash, CORDON_APPROVED_ONCE, NULL, &err) < 0 &&
	      err.class == CORDON_E_NOT_FOUND);
	cordon_process_unref(other);
	MUST(cordon_process_answer(process, card, hash, CORDON_APPROVED_ONCE, NULL, &err));
	CHECK(cordon_process_answer(process, card, hash, CORDON_APPROVED_ONCE, NULL, &err) < 0);
	cordon_value_unref(event);
	cordon_value_unref(await(process, "settled", NULL, 0));
	cordon_value_unref(await(process, "ended", output, sizeof(output)));
	CHECK(!strcmp(output, "ran\n"));
	cordon_process_unref(process);
	process = start_asking();
	cordon_value_unref(await(process, "asks", NULL, 0));
	MUST(cordon_process_cancel(process, 1000, &err));
	event = await(process, "ended", NULL, 0);
	CHECK(!strcmp(cordon_value_text(event, "error.class", NULL), "cancelled") &&
	      cordon_value_type(event, "result") == CORDON_ABSENT);
	cordon_value_unref(event);
	cordon_process_unref(process);
}

/* What is given up is killed, also while it asks, and releasing the cordon ends the rest. */
static void check_giving_up(void)
{
	struct cordon_process *processes[6];
	for (int i = 0; i < 5; i++)
		processes[i] = start("sleep 1000", NULL, NULL);
	processes[5] = start_asking();
	cordon_value_unref(await(processes[5], "asks", NULL, 0));
	for (int i = 0; i < 6; i++) {
		if (i == 3)
			MUST(cordon_process_detach(processes[i], &err));
		else if (i != 4)
			cordon_process_unref(processes[i]);
	}
	cordon_unref(cordon);
	struct cordon_value *event = await(processes[4], "ended", NULL, 0);
	CHECK(cordon_value_type(event, "error.class") == CORDON_TEXT ||
	      !strcmp(cordon_value_text(event, "result.ended_by", NULL), "daemon"));
	cordon_value_unref(event);
	CHECK(cordon_process_cancel(processes[4], 0, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	cordon_process_unref(processes[4]);
}

#define REFUSED(call) CHECK((call) < 0 && err.class == CORDON_E_INVALID_REQUEST && strstr(err.reason, "NULL"))

static void check_nulls(void)
{
	struct cordon_process *process;
	struct cordon_value *value;
	size_t taken;
	REFUSED(cordon_start(NULL, NULL, &process, &err));
	REFUSED(cordon_start(cordon, NULL, &process, &err));
	REFUSED(cordon_process_attach(cordon, NULL, 0, 0, &process, &err));
	REFUSED(cordon_process_next(NULL, &value, &err));
	REFUSED(cordon_process_wait(NULL, 0, &value, &err));
	REFUSED(cordon_process_write(NULL, "", 0, &taken, &err));
	REFUSED(cordon_process_close_stdin(NULL, &err));
	REFUSED(cordon_process_signal(NULL, 1, &err));
	REFUSED(cordon_process_cancel(NULL, 0, &err));
	REFUSED(cordon_process_resize(NULL, 1, 1, &err));
	REFUSED(cordon_process_answer(NULL, "", NULL, CORDON_DENIED, NULL, &err));
	REFUSED(cordon_process_detach(NULL, &err));
	REFUSED(cordon_call(NULL, "hello", NULL, &value, &err));
	REFUSED(cordon_call(cordon, NULL, NULL, &value, &err));
	REFUSED(cordon_call(cordon, "hello", NULL, NULL, &err));
	REFUSED(cordon_result_value(NULL, &value, &err));
	cordon_process_unref(NULL);
	cordon_value_unref(NULL);
	CHECK(cordon_process_fd(NULL) == -1 && !cordon_process_id(NULL) && !cordon_value_text(NULL, "a", NULL) &&
	      !cordon_value_int(NULL, NULL));
	CHECK(!cordon_value_json(NULL, "") && !cordon_value_key(NULL, "", 0) && !cordon_value_count(NULL, NULL));
	CHECK(!cordon_error_text(NULL, "reason") && !cordon_error_text(&err, NULL) && !cordon_error_code(NULL));
	cordon_error_free(NULL);
}

int main(void)
{
	int before = open_descriptors();
	struct cordon_request *nothing;
	struct cordon_process *process;
	CHECK(cordon_api() == CORDON_API && !strcmp(cordon_version(), CORDON_VERSION));
	MUST(cordon_open(NULL, &cordon, &err));
	MUST(cordon_request_new(&nothing, &err));
	CHECK(cordon_start(cordon, nothing, &process, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	cordon_request_unref(nothing);
	check_nulls();
	check_events();
	check_input();
	check_room();
	check_slow_reader();
	check_cancel();
	check_attach();
	check_asking();
	check_giving_up();
	CHECK(open_descriptors() <= before + 3); /* what the library keeps for its next use */
	puts("fine");
	return 0;
}

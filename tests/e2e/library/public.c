/* The public header alone: options, errors by name, a result as a value, file tools with bytes, one process used by
 * several threads. Prints "fine". With NO_COMMANDS nothing is started, as under valgrind. */
#include <cordon.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__LINE__, #condition))
static struct cordon_error *err;
static struct cordon *cordon;

static void check_failed(int line, const char *text)
{
	fprintf(stderr, "public.c:%d: not so: %s: %s\n", line, text, cordon_error_text(err, "reason"));
	exit(1);
}

static struct cordon_request *request(const char *line)
{
	struct cordon_request *made;
	const char *const argv[] = { "sh", "-c", line, NULL };
	CHECK(cordon_request_new(&made, err) == 0);
	CHECK(cordon_request_set(made, "workspace", getenv("WORKSPACE"), err) == 0);
	if (line)
		CHECK(cordon_request_command(made, argv, err) == 0);
	return made;
}

static void check_options(void)
{
	struct cordon_options *options = cordon_options_new();
	CHECK(options && cordon_options_set(options, "one-command", "true", err) == 0);
	CHECK(cordon_options_set(options, "one-command", "perhaps", err) < 0);
	CHECK(cordon_error_code(err) == CORDON_E_INVALID_REQUEST && !cordon_error_retriable(err));
	CHECK(cordon_options_set(options, "data_dir", "/x", err) < 0 &&
	      strstr(cordon_error_text(err, "remediation"), "data-dir"));
	CHECK(cordon_options_set(options, "config", "/nowhere/a.toml", err) == 0);
	CHECK(cordon_options_set(options, "config", "/nowhere/b.toml", err) == 0);
	struct cordon_value *told = NULL;
	CHECK(cordon_open(options, &cordon, err) == 0 && cordon_call(cordon, "config.show", NULL, &told, err) < 0 &&
	      !told);
	CHECK(cordon_error_code(err) == CORDON_E_CONFIG_INVALID &&
	      strstr(cordon_error_text(err, "subject"), "/nowhere/b.toml"));
	cordon_unref(cordon);
	CHECK(cordon_options_set(NULL, "config", "/x", err) < 0 && cordon_options_set(options, NULL, "/x", NULL) < 0);
	cordon_options_free(options);
	cordon_options_free(NULL);
}

static void check_grant(void)
{
	struct cordon_request *asks = request(NULL);
	struct cordon_value *result = NULL;
	const char *missing = cordon_error_text(err, "nothing");
	CHECK(!missing && !cordon_error_text(NULL, "reason") && !cordon_error_text(err, NULL));
	CHECK(cordon_file_call(cordon, asks, "read", "{\"path\": \"/var/tmp\"}", NULL, 0, &result, err) < 0 && !result);
	CHECK(!strcmp(cordon_error_text(err, "class"), "capability_denied"));
	CHECK(!strcmp(cordon_error_text(err, "grant.key"), "read") &&
	      !strcmp(cordon_error_text(err, "grant.value"), "/var/tmp"));
	cordon_request_unref(asks);
}

static void check_files(void)
{
	static const char bytes[] = "a\0b\xff\nc";
	struct cordon_request *asks = request(NULL);
	struct cordon_value *result = NULL;
	size_t length;
	CHECK(cordon_file_call(cordon, asks, "write", "{\"path\": \"bytes\"}", bytes, sizeof(bytes), &result, err) ==
	      0);
	cordon_value_unref(result);
	CHECK(cordon_file_call(cordon, asks, "send", "{\"path\": \"bytes\"}", NULL, 0, &result, err) == 0);
	const char *data = cordon_value_text(result, "data", &length);
	CHECK(length == sizeof(bytes) && !memcmp(data, bytes, length));
	cordon_value_unref(result);
	static const struct {
		const char *tool, *params;
		const void *data;
		int code;
	} bad[] = {
		{ "wrote", "{}", NULL, CORDON_E_INVALID_REQUEST },
		{ "write", "{\"path\": \"x\", \"data\": \"y\"}", "z", CORDON_E_INVALID_REQUEST },
		{ "write", "{\"path\": \"x\", \"settings\": {}}", "z", CORDON_E_INVALID_REQUEST },
		{ "write", "{\"path\": \"x\"}", NULL, CORDON_E_INVALID_REQUEST },
		{ "stat", "{\"path\": \"bytes\"}", "z", CORDON_E_INVALID_REQUEST },
		{ "stat", "{\"path\"", NULL, CORDON_E_INVALID_REQUEST },
		{ "stat", "{\"path\": \"not there\"}", NULL, CORDON_E_NOT_FOUND },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		result = NULL;
		CHECK(cordon_file_call(cordon, asks, bad[i].tool, bad[i].params, bad[i].data, !!bad[i].data, &result,
		                       err) < 0);
		CHECK(!result && cordon_error_code(err) == bad[i].code);
	}
	CHECK(cordon_file_call(NULL, asks, "stat", NULL, NULL, 0, &result, NULL) < 0);
	CHECK(cordon_file_call(cordon, asks, NULL, NULL, NULL, 0, &result, NULL) < 0);
	cordon_request_unref(asks);
}

static void check_card(void)
{
	CHECK(!cordon_card_text(NULL, "text") && cordon_card_settled_fd(NULL) == -1 &&
	      cordon_card_timeout_ms(NULL) == 0);
}

static enum cordon_answer answer(void *arg, const struct cordon_card *card, char reason[256])
{
	CHECK(strlen(cordon_card_text(card, "hash")) == 64 && strstr(cordon_card_text(card, "text"), "asks for"));
	CHECK(!strcmp(cordon_card_text(card, "session"), "public") && cordon_card_text(card, "json")[0] == '{');
	CHECK(!cordon_card_text(card, "nothing") && !cordon_card_text(card, NULL) && cordon_card_timeout_ms(card) > 0);
	snprintf(reason, 256, "not today");
	++*(int *)arg;
	return CORDON_DENIED;
}

static void check_commands(void)
{
	struct cordon_request *asks = request("printf 'a\\0b'; exit 3");
	struct cordon_value *result = NULL;
	size_t length;
	int asked = 0;
	CHECK(cordon_run(cordon, asks, &result, err) == 0 && cordon_value_int(result, "exit_code") == 3);
	CHECK(!memcmp(cordon_value_text(result, "stdout", &length), "a\0b", 3) && length == 3);
	cordon_value_unref(result);
	cordon_request_unref(asks);
	cordon_approver(cordon, answer, &asked);
	asks = request("true");
	CHECK(cordon_request_set(asks, "session", "public", err) == 0 &&
	      cordon_request_set(asks, "read", "/var/tmp", err) == 0);
	result = NULL;
	CHECK(cordon_run(cordon, asks, &result, err) < 0 && !result && asked == 1);
	CHECK(strstr(cordon_error_text(err, "reason"), "not today"));
	cordon_request_unref(asks);
}

/* ---- one process, several threads -------------------------------------------------------------------------------- */

static void *write_lines(void *arg)
{
	for (int i = 0; i < 200; i++) {
		size_t taken = 0;
		CHECK(cordon_process_write(arg, "line\n", 5, &taken, NULL) == 0 || i);
	}
	return NULL;
}

static void *resize_and_ask(void *arg)
{
	for (int i = 0; i < 200; i++) {
		(void)!cordon_process_signal(arg, SIGWINCH, NULL);
		CHECK(cordon_process_id(arg)[0] && cordon_process_fd(arg) >= 0);
	}
	return NULL;
}

static void *cancel(void *arg)
{
	struct timespec soon = { .tv_nsec = 300000000 };
	nanosleep(&soon, NULL);
	CHECK(cordon_process_cancel(arg, 0, NULL) == 0);
	return NULL;
}

static void check_threads(void)
{
	struct cordon_request *asks = request("exec cat");
	struct cordon_process *process;
	pthread_t threads[3];
	uint64_t seen = 0;
	bool ended = false;
	CHECK(cordon_request_set(asks, "stdin", "stream", err) == 0 && cordon_start(cordon, asks, &process, err) == 0);
	cordon_request_unref(asks);
	pthread_create(&threads[0], NULL, write_lines, process);
	pthread_create(&threads[1], NULL, resize_and_ask, process);
	pthread_create(&threads[2], NULL, cancel, process);
	while (!ended) {
		struct pollfd ready = { .fd = cordon_process_fd(process), .events = POLLIN };
		struct cordon_value *event = NULL;
		CHECK(poll(&ready, 1, 60000) == 1);
		CHECK(cordon_process_next(process, &event, err) == 0);
		const char *kind = cordon_value_text(event, "event", NULL);
		size_t length = 0;
		if (kind && !strcmp(kind, "output") && cordon_value_text(event, "data", &length))
			seen += length;
		ended = kind && !strcmp(kind, "ended");
		CHECK(!ended || !strcmp(cordon_value_text(event, "result.ended_by", NULL), "cancel"));
		cordon_value_unref(event);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(seen % 5 == 0);
	cordon_process_unref(process);
}

int main(void)
{
	err = cordon_error_new();
	check_options();
	CHECK(cordon_open(NULL, &cordon, err) == 0);
	check_card();
	check_grant();
	check_files();
	if (!getenv("NO_COMMANDS")) {
		check_commands();
		check_threads();
	}
	cordon_unref(cordon);
	cordon_error_free(err);
	puts("fine");
	return 0;
}

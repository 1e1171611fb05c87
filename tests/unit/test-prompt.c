/* The question on the terminal: only what is typed after it answers it, and the terminal is left as it was found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "door/cli/prompt.h"

#include <cmocka.h>

#define PATIENCE_MS 20000
#define QUESTION "deny with a [r]eason: "

struct ground {
	int master, slave, answer_pipe[2], settled, interrupt;
	struct termios before;
	struct cordon_card card;
	pid_t child;
	size_t seen;
	char output[16384];
};

static int set_up(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	assert_int_equal(openpty(&ground->master, &ground->slave, NULL, NULL, NULL), 0);
	assert_int_equal(pipe(ground->answer_pipe), 0);
	ground->settled = eventfd(0, EFD_CLOEXEC);
	ground->interrupt = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(tcgetattr(ground->slave, &ground->before), 0);
	ground->card = (struct cordon_card){ .id = "ID",
		                             .hash = "HASH",
		                             .session = "s",
		                             .text = "A command wants\n  it\x1b[2J\n",
		                             .json = "{}",
		                             .timeout_ms = 60000,
		                             .settled_fd = ground->settled };
	*state = ground;
	return 0;
}

static int tear_down(void **state)
{
	struct ground *ground = *state;
	const int fds[] = { ground->master,         ground->slave,   ground->answer_pipe[0],
		            ground->answer_pipe[1], ground->settled, ground->interrupt };
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	if (ground->child > 0) {
		kill(ground->child, SIGKILL);
		waitpid(ground->child, NULL, 0);
	}
	free(ground);
	return 0;
}

struct answered {
	int answer;
	char reason[256];
};

/* Asks in a process whose controlling terminal it is; its standard streams are none. */
static void start(struct ground *ground)
{
	ground->child = fork();
	if (ground->child)
		return;
	struct prompt prompt;
	struct answered answered = { .answer = -1 };
	setsid();
	ioctl(ground->slave, TIOCSCTTY, 0);
	close(ground->master);
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	if (prompt_open(&prompt, ground->interrupt)) {
		answered.answer = (int)prompt_ask(&prompt, &ground->card, answered.reason);
		prompt_close(&prompt);
	}
	_exit(write(ground->answer_pipe[1], &answered, sizeof(answered)) == sizeof(answered) ? 0 : 1);
}

static void type(struct ground *ground, const char *text)
{
	assert_int_equal(write(ground->master, text, strlen(text)), strlen(text));
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	return poll(&ready, 1, timeout_ms) > 0 && ready.revents & POLLIN;
}

/* Waits for output that has not been waited for before. */
static void expect(struct ground *ground, const char *text)
{
	for (;;) {
		const char *found = strstr(ground->output + ground->seen, text);
		if (found) {
			ground->seen = (size_t)(found - ground->output) + strlen(text);
			return;
		}
		size_t used = strlen(ground->output);
		if (!readable(ground->master, PATIENCE_MS))
			fail_msg("waited for \"%s\", got \"%s\"", text, ground->output);
		ssize_t got = read(ground->master, ground->output + used, sizeof(ground->output) - 1 - used);
		assert_true(got > 0);
	}
}

static struct answered get(struct ground *ground)
{
	struct answered answered = { .answer = -2 };
	assert_true(readable(ground->answer_pipe[0], PATIENCE_MS));
	assert_int_equal(read(ground->answer_pipe[0], &answered, sizeof(answered)), sizeof(answered));
	struct termios after;
	memset(&after, 0, sizeof(after)); /* the gaps between its fields, too */
	assert_int_equal(tcgetattr(ground->slave, &after), 0);
	assert_memory_equal(&after, &ground->before, sizeof(after));
	return answered;
}

static void test_answers(void **state)
{
	static const struct {
		const char *typed;
		enum cordon_answer answer;
		const char *reason;
	} rows[] = {
		{ "o\n", CORDON_APPROVED_ONCE, "" },
		{ "session \n", CORDON_APPROVED_SESSION, "" },
		{ "deny\n", CORDON_DENIED, "" },
		{ "r\nnot there, gr\xc3\xb6\xc3\x9f" "er\n", CORDON_DENIED, "not there, gr\xc3\xb6\xc3\x9f" "er" },
		{ "o\003", CORDON_DENIED, "" },
		{ "r\nno\003", CORDON_DENIED, "" },
		{ "\n\n\nyes\ny\nO\n \nonc\nd\n", CORDON_DENIED, "" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		set_up(state);
		struct ground *ground = *state;
		start(ground);
		expect(ground, QUESTION);
		type(ground, rows[i].typed);
		struct answered answered = get(ground);
		assert_int_equal(answered.answer, rows[i].answer);
		assert_string_equal(answered.reason, rows[i].reason);
		tear_down(state);
	}
}

/* The card comes first, and nothing in it is obeyed. */
static void test_the_card(void **state)
{
	struct ground *ground = *state;
	start(ground);
	expect(ground, "cordon: A command wants\r\n  it\\x1b[2J\r\n");
	expect(ground, "HASH");
	expect(ground, "Allow? [o]nce, for the [s]ession, [d]eny, " QUESTION);
	type(ground, "y\n");
	expect(ground, "Answer o, s, d or r.");
	type(ground, "d\n");
	assert_int_equal(get(ground).answer, CORDON_DENIED);
}

static void test_what_was_typed_before(void **state)
{
	struct ground *ground = *state;
	type(ground, "o\no\ns\n");
	start(ground);
	expect(ground, "HASH");
	/* Whoever is still typing something else is not answering. */
	for (int i = 0; i < 10; i++) {
		type(ground, "o\n");
		assert_false(readable(ground->answer_pipe[0], 50));
	}
	expect(ground, QUESTION);
	assert_false(readable(ground->answer_pipe[0], 200));
	type(ground, "d\n");
	assert_int_equal(get(ground).answer, CORDON_DENIED);
}

static void test_answered_elsewhere(void **state)
{
	struct ground *ground = *state;
	start(ground);
	expect(ground, QUESTION);
	type(ground, "o");
	assert_int_equal(eventfd_write(ground->settled, 1), 0);
	expect(ground, "Answered elsewhere, or no longer asked.");
	assert_int_equal(get(ground).answer, CORDON_UNANSWERED);
}

static void test_interrupted(void **state)
{
	struct ground *ground = *state;
	start(ground);
	expect(ground, QUESTION);
	assert_int_equal(eventfd_write(ground->interrupt, 1), 0);
	assert_int_equal(get(ground).answer, CORDON_UNANSWERED);
}

static void test_no_answer(void **state)
{
	struct ground *ground = *state;
	ground->card.timeout_ms = 500;
	start(ground);
	expect(ground, "No answer in time");
	assert_int_equal(get(ground).answer, CORDON_UNANSWERED);
}

static void test_without_a_session(void **state)
{
	struct ground *ground = *state;
	ground->card.session = "";
	start(ground);
	expect(ground, "Allow? [o]nce, [d]eny, " QUESTION);
	type(ground, "s\n");
	expect(ground, "Answer o, d or r.");
	expect(ground, QUESTION);
	type(ground, "o\n");
	assert_int_equal(get(ground).answer, CORDON_APPROVED_ONCE);
}

static void test_a_terminal_that_goes_away(void **state)
{
	struct ground *ground = *state;
	signal(SIGHUP, SIG_IGN); /* as the signals of `cordon run` are held back */
	start(ground);
	expect(ground, QUESTION);
	close(ground->master);
	ground->master = -1;
	struct answered answered = { 0 };
	assert_true(readable(ground->answer_pipe[0], PATIENCE_MS));
	assert_int_equal(read(ground->answer_pipe[0], &answered, sizeof(answered)), sizeof(answered));
	assert_int_equal(answered.answer, CORDON_UNANSWERED);
	signal(SIGHUP, SIG_DFL);
}

/* Nobody can be asked without a terminal, or in the background of one. */
static void test_no_terminal(void **state)
{
	struct ground *ground = *state;
	int status;
	pid_t child = fork();
	if (child == 0) {
		struct prompt prompt;
		setsid();
		if (prompt_open(&prompt, -1))
			_exit(1);
		ioctl(ground->slave, TIOCSCTTY, 0);
		if (!prompt_open(&prompt, -1))
			_exit(2);
		pid_t background = fork();
		if (background == 0) {
			setpgid(0, 0);
			char reason[256];
			if (prompt_ask(&prompt, &ground->card, reason) != CORDON_UNANSWERED)
				_exit(3);
			_exit(prompt_open(&prompt, -1) ? 4 : 0);
		}
		_exit(waitpid(background, &status, 0) == background && WIFEXITED(status) ? WEXITSTATUS(status) : 5);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),   TEST(test_the_card),
		TEST(test_what_was_typed_before), TEST(test_answered_elsewhere),
		TEST(test_interrupted),           TEST(test_no_answer),
		TEST(test_without_a_session),     TEST(test_a_terminal_that_goes_away),
		TEST(test_no_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

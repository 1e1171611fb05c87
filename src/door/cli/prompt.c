/* One question on the controlling terminal, which works whatever the standard streams are: they may be the command's.
 *
 * A key that was pressed before the question was there must not answer it. So the card is shown first, then everything
 * is thrown away that was typed, until nothing has been for a moment; only then comes the question. An answer is a
 * word and Enter, there is none by default, and Ctrl-C denies. Signals from the keyboard are off meanwhile: Ctrl-C is
 * an answer here, not the end of cordon. */
#include "door/cli/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "door/cli/report.h"
#include "door/cli/terminal.h"

#define QUIET_MS 300
#define CTRL_C '\003'

struct asking {
	const struct prompt *prompt;
	const struct cordon_card *card;
	struct termios before;
	FILE *out;
	uint64_t until_ms;
};

enum event { TYPED, QUIET, OVER };

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool prompt_open(struct prompt *ret_prompt, int interrupt_fd)
{
	auto_close int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (tty < 0 || tcgetpgrp(tty) != getpgrp())
		return false;
	*ret_prompt = (struct prompt){ take_fd(&tty), interrupt_fd };
	return true;
}

void prompt_close(struct prompt *prompt)
{
	cleanup_close(&prompt->tty);
	prompt->tty = -1;
}

/* Waits for input, for at most `most_ms`, or as long as the question is open. */
static enum event wait_for(struct asking *asking, uint64_t most_ms)
{
	for (;;) {
		uint64_t now = now_ms(), left = asking->until_ms > now ? asking->until_ms - now : 0;
		struct pollfd ready[] = { { .fd = asking->prompt->tty, .events = POLLIN },
			                  { .fd = asking->card->settled_fd, .events = POLLIN },
			                  { .fd = asking->prompt->interrupt_fd, .events = POLLIN } };
		int count = poll(ready, ARRAY_SIZE(ready), (int)(left < most_ms ? left : most_ms));
		if (count < 0 && errno == EINTR)
			continue;
		if (ready[1].revents)
			fputs("\nAnswered elsewhere, or no longer asked.\n", asking->out);
		else if (count == 0 && left <= most_ms)
			fputs("\nNo answer in time: it is refused.\n", asking->out);
		else if (count == 0)
			return QUIET;
		else if (ready[0].revents == POLLIN && !ready[2].revents)
			return TYPED;
		return OVER;
	}
}

static void set_mode(const struct asking *asking, bool lines)
{
	struct termios wanted = asking->before;
	wanted.c_lflag &= (tcflag_t)~(ISIG | ICANON | ECHO | ECHONL);
	wanted.c_iflag |= ICRNL;
	wanted.c_oflag |= OPOST | ONLCR;
	wanted.c_cc[VMIN] = 1;
	wanted.c_cc[VTIME] = 0;
	if (lines) {
		wanted.c_lflag |= ICANON | ECHO | ECHOE | ECHOK;
		wanted.c_cc[VEOL] = CTRL_C;
	}
	terminal_set(asking->prompt->tty, &wanted, TCSAFLUSH);
}

/* Throws away what is typed, until nothing is. */
static bool drain(struct asking *asking)
{
	char thrown[256];
	enum event event;
	set_mode(asking, false);
	while ((event = wait_for(asking, QUIET_MS)) == TYPED)
		if (read(asking->prompt->tty, thrown, sizeof(thrown)) <= 0)
			return false;
	return event == QUIET;
}

/* A line without its end, cut to `size`. False: there will be none. Ctrl-C: *ret_denied. */
static bool read_line(struct asking *asking, char *line, size_t size, bool *ret_denied)
{
	char typed[4096];
	fflush(asking->out);
	if (wait_for(asking, UINT32_MAX / 4) != TYPED)
		return false;
	ssize_t length = read(asking->prompt->tty, typed, sizeof(typed));
	if (length < 0)
		return false;
	*ret_denied = memchr(typed, CTRL_C, (size_t)length) != NULL;
	while (length > 0 && (typed[length - 1] == '\n' || typed[length - 1] == ' '))
		length--;
	size_t kept = (size_t)length < size - 1 ? (size_t)length : size - 1;
	kept -= utf8_cut_tail(typed, kept);
	memcpy(line, typed, kept);
	line[kept] = '\0';
	return true;
}

static const struct choice {
	const char *letter, *word;
	enum cordon_answer answer;
	bool asks_reason, needs_session;
} choices[] = {
	{ "o", "once", CORDON_APPROVED_ONCE, false, false },
	{ "s", "session", CORDON_APPROVED_SESSION, false, true },
	{ "d", "deny", CORDON_DENIED, false, false },
	{ "r", "reason", CORDON_DENIED, true, false },
};

static const struct choice *find_choice(const struct asking *asking, const char *line)
{
	for (size_t i = 0; i < ARRAY_SIZE(choices); i++)
		if ((!strcmp(line, choices[i].letter) || !strcmp(line, choices[i].word)) &&
		    (!choices[i].needs_session || *asking->card->session))
			return &choices[i];
	return NULL;
}

static enum cordon_answer ask(struct asking *asking, char reason[256])
{
	char line[32];
	bool denied = false;
	const struct choice *choice = NULL;
	set_mode(asking, true);
	while (!choice) {
		fprintf(asking->out, "Allow? [o]nce, %s[d]eny, deny with a [r]eason: ",
		        *asking->card->session ? "for the [s]ession, " : "");
		if (!read_line(asking, line, sizeof(line), &denied))
			return CORDON_UNANSWERED;
		choice = find_choice(asking, denied ? "deny" : line);
		if (!choice)
			fprintf(asking->out, "Answer o, %sd or r.\n", *asking->card->session ? "s, " : "");
	}
	if (choice->asks_reason) {
		fputs("Reason: ", asking->out);
		if (!read_line(asking, reason, 256, &denied))
			return CORDON_UNANSWERED;
		if (denied)
			reason[0] = '\0';
	}
	if (denied)
		fputs("\nDenied.\n", asking->out);
	return choice->answer;
}

/* The library has made it safe to print; a terminal is not the place to find out that it has not. */
static void print_card(struct asking *asking)
{
	fputs("\ncordon: ", asking->out);
	for (const char *line = asking->card->text; *line;) {
		size_t length = strcspn(line, "\n");
		char *copy = strndup(line, length);
		if (copy)
			report_untrusted(asking->out, copy);
		free(copy);
		fputc('\n', asking->out);
		line += length + (line[length] == '\n');
	}
	fprintf(asking->out, "  id         %s\n  hash       %s\n", asking->card->id, asking->card->hash);
	fflush(asking->out);
}

enum cordon_answer prompt_ask(void *arg, const struct cordon_card *card, char reason[256])
{
	struct asking asking = { .prompt = arg, .card = card, .until_ms = now_ms() + card->timeout_ms };
	enum cordon_answer answer = CORDON_UNANSWERED;
	int fd = fcntl(asking.prompt->tty, F_DUPFD_CLOEXEC, 3);
	/* Changing a terminal from the background would stop this process. */
	if (fd < 0 || tcgetpgrp(fd) != getpgrp() || tcgetattr(fd, &asking.before) < 0 ||
	    !(asking.out = fdopen(fd, "w"))) {
		cleanup_close(&fd);
		return CORDON_UNANSWERED;
	}
	set_mode(&asking, false);
	print_card(&asking);
	if (drain(&asking))
		answer = ask(&asking, reason);
	fflush(asking.out);
	terminal_restore();
	fclose(asking.out);
	return answer;
}

/* The same where signals come by no descriptor: they are noted, and the loop looks from time to time. Until the command
 * runs they end this process, as they would without cordon. */
#include <signal.h>

#include "base/error.h"
#include "door/cli/run.h"

#define LOOK_MS 10

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
#define ENDING 4 /* the first so many of these */
static volatile sig_atomic_t caught[ARRAY_SIZE(forwarded)];
static volatile sig_atomic_t is_open;

bool run_signal_ends(int number)
{
	for (size_t i = 0; i < ENDING; i++)
		if (forwarded[i] == number)
			return true;
	return false;
}

/* Some systems take the handler away when it is called. */
static void note(int number)
{
	signal(number, note);
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		if (forwarded[i] == number)
			caught[i] = 1;
}

int run_open_signals(struct run *run, struct cordon_error *err)
{
	(void)run;
	(void)err;
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

static void open_now(void)
{
	if (is_open)
		return;
	is_open = 1;
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		signal(forwarded[i], note);
}

int run_take_signal(struct run *run)
{
	(void)run;
	open_now();
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		if (caught[i]) {
			caught[i] = 0;
			return forwarded[i];
		}
	return 0;
}

void run_wake(struct run *run)
{
	(void)run;
}

void run_wake_taken(struct run *run)
{
	(void)run;
}

int run_look_ms(const struct run *run)
{
	(void)run;
	return LOOK_MS;
}

/* The drivers of these systems give a command none. */
bool run_gives_terminals(void)
{
	return false;
}

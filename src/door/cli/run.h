/* One `cordon run`: its streams, its signals, and what carries it out. */
#pragma once
#include <pthread.h>
#include <signal.h>

#include "base/cleanup.h"
#include "cordon-internal.h"
#include "door/cli/options.h"
#include "door/cli/prompt.h"
#include "door/cli/sink.h"

struct remote;
struct run;

/* What carries a command out: the library in this process (run.c), or a daemon (run-remote.c). */
struct carrier {
	int (*fd)(const struct run *run);       /* to be polled for input before a step */
	int (*step)(struct run *run, bool *ret_finished, struct cordon_error *err);
	void (*signal)(struct run *run, int signal);
	/* Or NULL. Nothing more is taken of a stream for now; its reader is gone. */
	void (*hold)(struct run *run, enum cordon_stream stream, bool hold);
	void (*close)(struct run *run, enum cordon_stream stream);
};

struct run {
	const struct carrier *carrier;
	struct cordon *cordon;
	struct cordon_request *request;
	struct cordon_execution *execution;
	struct remote *remote;
	struct sink out, err;
	sigset_t mask_before;
	int signal_fd;
	int interrupt_fd;               /* readable when one of the signals that end things waits */
	struct prompt prompt;
	pthread_t main;
	pthread_mutex_t lock;           /* over the sinks while the command runs */
	int answered_fd;                /* readable: what was held may be written */
	bool json, tty, terminal;       /* `terminal`: the caller's is raw while the command runs */
	bool is_for_agent;              /* its session is an agent's: report.h */
	bool plain;                     /* a filter: its output is handed on whole, and is nothing else than that */
	bool one_stream;                /* stdout and stderr are the same file */
	bool out_closed, err_closed;    /* the command was informed that their readers are gone */
	uint64_t broken_at_ms;          /* when the reader was found gone, or 0 */
};

/* Carries out what the words say: `command` is the first of them, and `options` what follows. By a daemon, if there is
 * one for it; else by `here`, which finds all as it was but for signals that are open. Returns the exit status. */
int run_carry_out(const char *command, const struct options *options, char **words,
                  int (*here)(struct run *run, const struct options *options));

int run_open_signals(struct run *run, struct cordon_error *err) must_check;
/* The next signal that came, or 0. */
int run_take_signal(struct run *run);
/* From another thread: the loop is to look again. In the loop: it looks. */
void run_wake(struct run *run);
void run_wake_taken(struct run *run);
/* How long the loop may wait at most, for what wakes it by no descriptor; -1: as long as it likes. */
int run_look_ms(const struct run *run);
/* Whether commands can have a terminal on this system. */
bool run_gives_terminals(void);
/* Of those that are forwarded, the signals that end a process by default. */
bool run_signal_ends(int signal);
/* Steps until the command has ended, carrying signals to it and output from it. */
int run_loop(struct run *run, struct cordon_error *err) must_check;

/* A cordon_output_fn; `arg` is the run. */
void run_output(void *arg, enum cordon_stream stream, const void *data, size_t length);
/* Are stdout and stderr the same file? Then the order of what is written to them counts. */
bool run_has_one_stream(void);
/* Asks on the terminal; `running`: the command may have written to it, and what it writes meanwhile waits. */
enum cordon_answer run_ask(struct run *run, const struct cordon_card *card, bool running, char reason[256]);

/* Asking a human what a daemon wants to know, in a thread of its own. */
#pragma once
#include "door/cli/run.h"
#include "door/wire/wire-read.h"

struct asking {
	bool is_asked;
	int done_fd;                    /* readable: there is an answer to take */
	int settled_fd;
	pthread_t thread;
	struct run *run;
	struct wire_ask question;
	char *text;
	struct wire_answer answer;
};

bool asking_open(struct asking *asking) must_check;
/* Handles an ASK. Does nothing if no human is available, or one is being asked already. */
void asking_begin(struct asking *asking, struct run *run, const struct wire_frame *frame);
/* It need not be answered any more. */
void asking_settle(struct asking *asking);
/* Waits for the answer. False: there was no question. */
bool asking_end(struct asking *asking);
void asking_close(struct asking *asking);

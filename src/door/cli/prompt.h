/* Asking on the terminal. */
#pragma once
#include <stdbool.h>

#include "cordon-internal.h"

struct prompt {
	int tty;                /* the controlling terminal, whatever the standard streams are */
	int interrupt_fd;       /* readable: the program is to end; or -1 */
};

/* False if no human can be asked: there is no controlling terminal, or this process is in its background. */
bool prompt_open(struct prompt *ret_prompt, int interrupt_fd);
void prompt_close(struct prompt *prompt);

/* A cordon_approver_fn; `arg` is the prompt. */
enum cordon_answer prompt_ask(void *arg, const struct cordon_card *card, char reason[256]);

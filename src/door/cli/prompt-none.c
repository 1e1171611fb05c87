/* Where nobody is asked on the terminal: see prompt.h. Questions wait for `cordon approvals`. */
#include "door/cli/prompt.h"

bool prompt_open(struct prompt *ret_prompt, int interrupt_fd)
{
	(void)ret_prompt;
	(void)interrupt_fd;
	return false;
}

void prompt_close(struct prompt *prompt)
{
	prompt->tty = -1;
}

enum cordon_answer prompt_ask(void *arg, const struct cordon_card *card, char reason[256])
{
	(void)arg;
	(void)card;
	(void)reason;
	return CORDON_UNANSWERED;
}

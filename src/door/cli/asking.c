/* Asking: see asking.h. */
#include "door/cli/asking.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool asking_open(struct asking *asking)
{
	asking->settled_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	asking->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return asking->settled_fd >= 0 && asking->done_fd >= 0;
}

static void *ask(void *arg)
{
	struct asking *asking = arg;
	uint64_t one = 1;
	const struct cordon_card card = {
		.id = asking->question.id, .hash = asking->question.hash, .text = asking->text, .json = "",
		.session = asking->question.has_session ? "session" : "", .timeout_ms = asking->question.timeout_ms,
		.settled_fd = asking->settled_fd,
	};
	struct wire_answer *answer = &asking->answer;
	memset(answer, 0, sizeof(*answer));
	memcpy(answer->id, asking->question.id, sizeof(answer->id));
	memcpy(answer->hash, asking->question.hash, sizeof(answer->hash));
	answer->answer = (uint32_t)run_ask(asking->run, &card, asking->question.running, answer->reason);
	(void)!write(asking->done_fd, &one, sizeof(one));
	return NULL;
}

void asking_begin(struct asking *asking, struct run *run, const struct wire_frame *frame)
{
	uint64_t left;
	if (asking->is_asked || run->prompt.tty < 0)
		return;
	memcpy(&asking->question, frame->body, sizeof(asking->question));
	asking->question.id[sizeof(asking->question.id) - 1] = '\0';
	asking->question.hash[sizeof(asking->question.hash) - 1] = '\0';
	asking->text = strndup(frame->body + sizeof(asking->question), frame->head.length - sizeof(asking->question));
	asking->run = run;
	(void)!read(asking->settled_fd, &left, sizeof(left));
	asking->is_asked = asking->text && pthread_create(&asking->thread, NULL, ask, asking) == 0;
	if (!asking->is_asked)
		free(asking->text);
}

void asking_settle(struct asking *asking)
{
	uint64_t one = 1;
	(void)!write(asking->settled_fd, &one, sizeof(one));
}

bool asking_end(struct asking *asking)
{
	uint64_t left;
	if (!asking->is_asked)
		return false;
	pthread_join(asking->thread, NULL);
	(void)!read(asking->done_fd, &left, sizeof(left));
	free(asking->text);
	asking->is_asked = false;
	return true;
}

void asking_close(struct asking *asking)
{
	asking_settle(asking);
	asking_end(asking);
	cleanup_close(&asking->settled_fd);
	cleanup_close(&asking->done_fd);
}

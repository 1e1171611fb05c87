/* Questions about hosts that no rule covers, while their connections wait: see egress.h. People are asked one thing at a
 * time; what comes meanwhile waits in line, and the proxy asks once for each host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egress/egress.h"
#include "approval/gate.h"

/* The next in line, to be free()d; NULL: there will be none. */
static struct egress_question *take(struct egress *egress)
{
	pthread_mutex_lock(&egress->lock);
	while (!egress->first && !egress->ended)
		pthread_cond_wait(&egress->changed, &egress->lock);
	struct egress_question *question = egress->ended ? NULL : egress->first;
	if (question) {
		egress->first = question->next;
		egress->last = egress->first ? egress->last : &egress->first;
		egress->question_count--;
	}
	pthread_mutex_unlock(&egress->lock);
	return question;
}

/* Once means for this command. A human's no is one for all of it; where nobody said anything, the next connection asks
 * again. */
static void answer(struct egress *egress, const struct egress_question *question, int result,
                   const struct cordon_error *err)
{
	struct proxy_message message = { .kind = PROXY_ANSWER, .id = question->id };
	message.answer.allowed = result == 0;
	message.answer.remember = result == 0 || err->class == CORDON_E_CAPABILITY_DENIED;
	if (result < 0)
		snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1, err->reason);
	/* A proxy that is gone needs no answer. */
	(void)!egress_send(egress, &message, -1);
}

static void ask(struct egress *egress, const struct egress_question *question)
{
	const struct egress_facts *facts = &egress->facts;
	struct arena arena = { 0 };
	struct capability_set excess = { .network = NETWORK_HOSTS };
	struct gate_question asked = *facts->question;
	struct gate_answer given;
	struct cordon_error err = { 0 };
	asked.excess = &excess;
	asked.excess_name = "network";
	asked.excess_subject = question->host;
	asked.ended_fd = egress->ended_fd;
	facts->hold_input(facts->hold_input_arg, true);
	int result = strings_add(&arena, &excess.hosts, question->host) < 0 ? fail_oom(&err) :
	             gate_ask(&facts->gate, &arena, facts->config, &asked, &given, &err);
	facts->hold_input(facts->hold_input_arg, false);
	answer(egress, question, result, &err);
	/* No row, no connection. */
	if (result < 0 && err.class == CORDON_E_AUDIT_UNAVAILABLE) {
		egress->unrecorded = true;
		proxy_kill(&egress->process);
	}
	arena_free(&arena);
}

static void *ask_all(void *argument)
{
	struct egress *egress = argument;
	for (struct egress_question *question; (question = take(egress)); free(question))
		ask(egress, question);
	return NULL;
}

static bool put(struct egress *egress, const struct proxy_message *message)
{
	struct egress_question *question = calloc(1, sizeof(*question));
	if (!question)
		return false;
	question->id = message->id;
	memcpy(question->host, message->host, sizeof(question->host));
	pthread_mutex_lock(&egress->lock);
	bool room = egress->question_count < EGRESS_QUESTIONS_MAX;
	if (room) {
		*egress->last = question;
		egress->last = &question->next;
		egress->question_count++;
	}
	pthread_cond_broadcast(&egress->changed);
	pthread_mutex_unlock(&egress->lock);
	if (!room)
		free(question);
	return room;
}

void egress_ask(struct egress *egress, const struct proxy_message *message)
{
	const struct egress_question unasked = { .id = message->id };
	struct cordon_error err;
	if (!egress->has_asker)
		egress->has_asker = pthread_create(&egress->asker, NULL, ask_all, egress) == 0;
	if (egress->has_asker && put(egress, message))
		return;
	fail(&err, CORDON_E_APPROVAL_TIMEOUT, 0, message->host, "too many questions wait for an answer");
	answer(egress, &unasked, -1, &err);
}

void egress_ask_end(struct egress *egress)
{
	if (egress->has_asker)
		pthread_join(egress->asker, NULL);
	egress->has_asker = false;
	for (struct egress_question *question; (question = egress->first); free(question))
		egress->first = question->next;
}

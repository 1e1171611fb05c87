/* Questions about hosts that no rule covers, while their connections wait: see egress.h. People are asked one thing at
 * a time; what comes meanwhile waits in line, and the proxy asks once for each host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "egress/egress.h"
#include "approval/gate.h"

/* The next in line, to be free()d; NULL: there will be none. */
static struct egress_question *take(struct egress_command *command)
{
	struct egress *egress = command->egress;
	pthread_mutex_lock(&egress->lock);
	while (!command->first && !command->ended)
		pthread_cond_wait(&egress->changed, &egress->lock);
	struct egress_question *question = command->ended ? NULL : command->first;
	if (question) {
		command->first = question->next;
		command->last = command->first ? command->last : &command->first;
		command->question_count--;
	}
	pthread_mutex_unlock(&egress->lock);
	return question;
}

/* "Once" means for this command. A human's denial holds for all of the command; without an answer, the next connection
 * asks again. */
static void answer(struct egress *egress, const struct egress_question *question, int result,
                   const struct cordon_error *err)
{
	struct proxy_message message = { .kind = PROXY_ANSWER, .id = question->id };
	message.answer.allowed = result == 0;
	message.answer.remember = result == 0 || err->class == CORDON_E_CAPABILITY_DENIED;
	if (result < 0)
		snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1, err->reason);
	/* One that does not take it would be waited for again with each of its questions. */
	if (egress_send(egress, &message, -1) < 0)
		proxy_kill(&egress->process);
}

static void ask(struct egress_command *command, const struct egress_question *question)
{
	struct egress *egress = command->egress;
	const struct egress_command_facts *facts = &command->facts;
	struct arena arena = { 0 };
	struct capability_set excess = { .network = NETWORK_HOSTS };
	struct gate_question asked = *facts->question;
	struct gate_answer given;
	struct cordon_error err = { 0 };
	asked.excess = &excess;
	asked.excess_name = "network";
	asked.excess_subject = question->host;
	asked.ended_fd = command->latch.fd;
	facts->hold_input(facts->hold_input_arg, true);
	int result = strings_add(&arena, &excess.hosts, question->host) < 0 ? fail_oom(&err) :
	             gate_ask(&egress->facts.gate, &arena, egress->facts.config, &asked, &given, &err);
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
	struct egress_command *command = argument;
	for (struct egress_question *question; (question = take(command)); free(question))
		ask(command, question);
	return NULL;
}

/* Under the lock. */
static bool put(struct egress_command *command, const struct proxy_message *message)
{
	struct egress_question *question =
		command->question_count < EGRESS_QUESTIONS_MAX ? calloc(1, sizeof(*question)) : NULL;
	if (!question)
		return false;
	question->id = message->id;
	memcpy(question->host, message->host, sizeof(question->host));
	*command->last = question;
	command->last = &question->next;
	command->question_count++;
	pthread_cond_broadcast(&command->egress->changed);
	return true;
}

void egress_ask(struct egress *egress, const struct proxy_message *message)
{
	const struct egress_question unasked = { .id = message->id };
	struct egress_command *sender = egress_sender(egress, message),
			      *command = sender ? sender : egress_owner(egress);
	struct cordon_error err;
	while (command && !command->facts.question)
		command = command->next;
	if (command && !command->has_asker)
		command->has_asker = thread_start(&command->asker, 0, ask_all, command) == 0;
	if (command && command->has_asker && put(command, message))
		return;
	fail(&err, CORDON_E_APPROVAL_TIMEOUT, 0, message->host, command ? "too many questions wait for an answer"
	                                                                : "the command that asks has ended");
	answer(egress, &unasked, -1, &err);
}

void egress_ask_end(struct egress_command *command)
{
	if (command->has_asker)
		pthread_join(command->asker, NULL);
	command->has_asker = false;
	for (struct egress_question *question; (question = command->first); free(question))
		command->first = question->next;
}

/* Questions of a proxy that does not read the answers: the first that it does not take in time is the last. The proxy
 * is this test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "egress/egress.h"

static int answered, killed;
static bool takes_answers;

int egress_send(const struct egress *egress, const struct proxy_message *message, int fd)
{
	(void)egress, (void)fd;
	answered += message->kind == PROXY_ANSWER && !message->answer.allowed;
	errno = EAGAIN;
	return takes_answers ? 0 : -1;
}

void proxy_kill(const struct proxy_process *process)
{
	(void)process;
	killed++;
}

struct egress_command *egress_sender(struct egress *egress, const struct proxy_message *message)
{
	(void)egress, (void)message;
	return NULL;
}

int gate_ask(const struct gate *gate, struct arena *arena, const struct config *config,
             const struct gate_question *question, struct gate_answer *ret_answer, struct cordon_error *err)
{
	(void)gate, (void)arena, (void)config, (void)question, (void)ret_answer;
	return fail(err, CORDON_E_INTERNAL, 0, NULL, "nobody is asked here");
}
/* After ours: it has a macro of the name of our fail(). */
#include <cmocka.h>

/* No command is left that could be asked about it. */
static void ask_once(void)
{
	struct egress egress = { .idle = { .egress = &egress } };
	const struct proxy_message message = { .kind = PROXY_QUESTION, .id = 7, .host = "a.test:443" };
	answered = killed = 0;
	egress_ask(&egress, &message);
	assert_int_equal(answered, 1);
}

static void one_that_takes_the_answer(void **state)
{
	(void)state;
	takes_answers = true;
	ask_once();
	assert_int_equal(killed, 0);
}

static void one_that_does_not(void **state)
{
	(void)state;
	takes_answers = false;
	ask_once();
	assert_int_equal(killed, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_takes_the_answer),
		cmocka_unit_test(one_that_does_not),
	};
	return cmocka_run_group_tests_name("egress-ask", tests, NULL, NULL);
}

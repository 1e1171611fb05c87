/* The reader of what a proxy says, when the command has ended. The proxy is this test's own: it runs in the reader's calls,
 * so nothing depends on who is faster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/socket.h>
#include <unistd.h>

#include "egress.h"
/* After ours: it has a macro of the name of our fail(). */
#include <cmocka.h>

enum manner { TALKS_ON, READY_TOO_LATE };
static enum manner manner;
static int own_fd;
static atomic_int heard;
static atomic_bool killed;

static void say(enum proxy_kind kind)
{
	const struct proxy_message message = { .kind = kind };
	assert_int_equal(send(own_fd, &message, sizeof(message), MSG_NOSIGNAL), sizeof(message));
}

/* ---- what it stands for ------------------------------------------------------------------------------------------ */

int proxy_program_fd(struct cordon_error *err)
{
	(void)err;
	return 0;
}

int proxy_open(struct proxy_process *ret_process, struct cordon_error *err)
{
	int sockets[2];
	(void)err;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	*ret_process = (struct proxy_process){ .fd = sockets[0], .child_fd = -1, .pidfd = -1 };
	own_fd = sockets[1];
	return 0;
}

int proxy_start(struct proxy_process *process, int program_fd, struct cordon_error *err)
{
	(void)process, (void)program_fd, (void)err;
	if (manner == TALKS_ON) {
		say(PROXY_READY);
		say(PROXY_CONNECTION);
	}
	return 0;
}

void proxy_kill(const struct proxy_process *process)
{
	(void)process;
	if (killed)
		return;
	killed = true;
	if (manner == READY_TOO_LATE)
		say(PROXY_READY);
	close(own_fd);
}

void proxy_end(struct proxy_process *process)
{
	proxy_kill(process);
	close(process->fd);
}

bool egress_message_is_sound(const struct proxy_message *message)
{
	(void)message;
	return true;
}

/* With each there is another behind it. */
int egress_tell(struct egress *egress, const struct proxy_message *message, struct cordon_error *err)
{
	(void)egress, (void)message, (void)err;
	heard++;
	if (!killed)
		say(PROXY_CONNECTION);
	return 0;
}

int egress_tell_failed(struct egress *egress, const char *why, struct cordon_error *err)
{
	(void)egress, (void)why, (void)err;
	return 0;
}

int egress_tell_rest(struct egress *egress, struct cordon_error *err)
{
	(void)egress, (void)err;
	return 0;
}

void egress_ask(struct egress *egress, const struct proxy_message *message)
{
	(void)egress, (void)message;
}

void egress_ask_end(struct egress *egress)
{
	(void)egress;
}

int supervise_take_listeners(struct supervision *supervision, int *fds, size_t count, struct cordon_error *err)
{
	(void)supervision, (void)fds, (void)count, (void)err;
	return 0;
}

int run_add_denial(struct execution *execution, enum cordon_wall wall, const char *what, const char *note, const char *grant)
{
	(void)execution, (void)wall, (void)what, (void)note, (void)grant;
	return 0;
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

static struct egress_counts run(enum manner of_proxy)
{
	static struct config config;
	static struct egress_listener listener;
	struct execution execution = { .session.config = &config };
	struct cordon_error err;
	manner = of_proxy;
	heard = 0;
	killed = false;
	execution.profile.profile.egress.listeners = &listener;
	execution.profile.profile.egress.count = 1;
	assert_int_equal(egress_begin(&execution, &err), 0);
	egress_started(&execution);
	while (manner == TALKS_ON && !heard)
		usleep(1000);
	assert_int_equal(egress_end(&execution, &err), 0);
	assert_true(killed);
	return execution.run.network;
}

/* It is ended in time, and that it had not said its last is counted. */
static void one_that_talks_on(void **state)
{
	(void)state;
	assert_int_equal(run(TALKS_ON).failed, 1);
	assert_true(heard > 1);
}

/* It has carried nothing, and nothing is missing. */
static void one_that_is_ready_too_late(void **state)
{
	(void)state;
	assert_int_equal(run(READY_TOO_LATE).failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_talks_on),
		cmocka_unit_test(one_that_is_ready_too_late),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

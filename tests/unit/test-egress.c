/* The reader: when there is a proxy, and what it says when the command has ended; stepped by a loop, and as a thread.
 * The proxy is this test's own: it runs in the reader's calls, or waits for what it is told, so nothing depends on who
 * is faster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "config/config.h"
#include "egress/egress.h"

int egress_send_gateways(const struct egress *egress)
{
	(void)egress;
	return 0;
}

int proxy_gateway_fd(struct cordon_error *err)
{
	return fail(err, CORDON_E_INTERNAL, 0, NULL, "no gateway here");
}
/* After ours: it has a macro of the name of our fail(). */
#include <cmocka.h>

enum manner { TALKS_ON, ENDS, IS_NEVER_READY, DOES_AS_IT_IS_TOLD, HAS_MUCH_TO_TELL };
#define MUCH 3
static enum manner manner;
static int own_fd, listener_fd, client_fd;
static atomic_int started, said, heard;
static atomic_bool killed;
static atomic_long later_ms;            /* the clock is behind that */
static bool was_given_up;
static pthread_t own_thread;

static void say(enum proxy_kind kind)
{
	const struct proxy_message message = { .kind = kind };
	said += kind == PROXY_CONNECTION;
	assert_int_equal(send(own_fd, &message, sizeof(message), MSG_NOSIGNAL), sizeof(message));
}

/* A row takes its time in this ledger, and none of ours. */
int clock_gettime(clockid_t id, struct timespec *ret_now)
{
	long result = syscall(SYS_clock_gettime, id, ret_now);
	ret_now->tv_sec += later_ms / 1000;
	return (int)result;
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

static void *do_as_told(void *arg)
{
	struct proxy_message message = { 0 };
	while (message.kind != PROXY_END)
		assert_int_equal(recv(own_fd, &message, sizeof(message), 0), sizeof(message));
	/* One after the other, as the supervisor takes them. */
	for (int i = 0; manner == HAS_MUCH_TO_TELL && i < MUCH && !killed; i++) {
		say(PROXY_CONNECTION);
		while (heard <= i && !killed)
			usleep(100);
	}
	if (!killed)
		say(PROXY_TOTALS);
	return arg;
}

int proxy_start(struct proxy_process *process, int program_fd, struct cordon_error *err)
{
	(void)process, (void)program_fd, (void)err;
	started++;
	if (manner == IS_NEVER_READY)
		return 0;
	say(PROXY_READY);
	if (manner == ENDS)
		shutdown(own_fd, SHUT_RDWR);
	if (manner == ENDS)
		return 0;
	if (manner != TALKS_ON)
		assert_int_equal(pthread_create(&own_thread, NULL, do_as_told, NULL), 0);
	else
		say(PROXY_CONNECTION);
	return 0;
}

void proxy_kill(const struct proxy_process *process)
{
	(void)process;
	if (killed)
		return;
	killed = true;
	if (manner == DOES_AS_IT_IS_TOLD || manner == HAS_MUCH_TO_TELL)
		pthread_join(own_thread, NULL);
	close(own_fd);
}

void proxy_end(struct proxy_process *process)
{
	if (process->fd < 0)
		return;
	proxy_kill(process);
	close(process->fd);
}

bool egress_message_is_sound(const struct proxy_message *message)
{
	(void)message;
	return true;
}

int egress_tell(struct egress *egress, const struct proxy_message *message, struct cordon_error *err)
{
	(void)egress, (void)message, (void)err;
	later_ms += 1000;
	heard++;
	/* There is another behind it. */
	if (manner == TALKS_ON && !killed)
		say(PROXY_CONNECTION);
	return 0;
}

int egress_tell_failed(struct egress *egress, const char *why, struct cordon_error *err)
{
	(void)egress, (void)err;
	was_given_up = strstr(why, "was killed");
	return 0;
}

int egress_tell_rest(struct egress_command *command, struct cordon_error *err)
{
	(void)command, (void)err;
	return 0;
}

void egress_ask(struct egress *egress, const struct proxy_message *message)
{
	(void)egress, (void)message;
}

void egress_ask_end(struct egress_command *command)
{
	(void)command;
}

int denials_add(struct denials *denials, struct arena *arena, enum cordon_wall wall, const char *what, const char *note,
                const char *grant)
{
	(void)denials, (void)arena, (void)wall, (void)what, (void)note, (void)grant;
	return 0;
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

static struct egress *egress;
static struct egress_command *command;
static bool stays;

/* Something waits at the listener, from the beginning. */
static void begin(enum manner of_proxy, bool is_used)
{
	static struct config config;
	static struct egress_plan plan;
	static struct strings hosts;
	static struct egress_listener listener;
	struct cordon_error err;
	manner = of_proxy;
	started = said = heard = 0;
	killed = false;
	listener_fd = eventfd(is_used, EFD_CLOEXEC);
	client_fd = fcntl(listener_fd, F_DUPFD_CLOEXEC, 0);
	assert_true(listener_fd >= 0 && client_fd >= 0);
	plan = (struct egress_plan){ .listeners = &listener, .count = 1 };
	const struct egress_facts facts = { .config = &config, .plan = &plan, .hosts = &hosts, .private_hosts = &hosts,
		                             .stays = stays };
	assert_int_equal(egress_begin(&facts, &egress, &err), 0);
	assert_int_equal(egress_join(egress, &(struct egress_command_facts){ .program = "curl", .audit_id = "AUDIT" },
	                             &command, &err),
	                 0);
	*egress_listeners(egress) = listener_fd;
	egress_started(egress, true);
}

static struct egress_counts end(void)
{
	struct cordon_error err;
	struct egress_report report = { 0 };
	assert_int_equal(egress_end(egress, &err), 0);
	assert_int_equal(egress_leave(command, &report, &err), 0);
	egress_free(egress);
	close(client_fd);
	return report.counts;
}

static bool is_ready(int wait_ms)
{
	struct pollfd ready = { .fd = egress_fd(egress), .events = POLLIN };
	return poll(&ready, 1, wait_ms) > 0;
}

static void await(const atomic_int *count)
{
	while (!*count)
		if (stays)
			usleep(1000);
		else if (is_ready(-1))
			egress_handle(egress);
}

/* It is ended, and that it had not said its last is counted. It has read nothing of what it was told, so that its
 * socket says that it was reset, before it says what the proxy had said: that is heard all the same. */
static void one_that_talks_on(void **state)
{
	(void)state;
	begin(TALKS_ON, true);
	await(&heard);
	assert_int_equal(end().failed, 1);
	assert_true(killed && heard > 1);
	assert_int_equal(heard, said);
	assert_true(was_given_up);
}

/* What it takes us to write all that down is no reason not to hear the rest. */
static void one_that_has_much_to_tell(void **state)
{
	(void)state;
	begin(HAS_MUCH_TO_TELL, true);
	assert_int_equal(end().failed, 0);
	assert_int_equal(heard, MUCH);
}

/* Nothing is known of the connections that waited for it. */
static void one_that_is_never_ready(void **state)
{
	(void)state;
	begin(IS_NEVER_READY, true);
	assert_int_equal(end().failed, 1);
	assert_true(killed);
}

/* Then there is no proxy at all, whatever becomes of it; and its listeners are closed. */
static void a_network_that_is_not_used(void **state)
{
	(void)state;
	begin(IS_NEVER_READY, false);
	assert_int_equal(end().failed, 0);
	assert_int_equal(started, 0);
	assert_int_equal(fcntl(listener_fd, F_GETFD), -1);
}

static void a_network_that_is_used_later(void **state)
{
	const uint64_t one = 1;
	(void)state;
	begin(DOES_AS_IT_IS_TOLD, false);
	usleep(10000);
	assert_int_equal(started, 0);
	assert_int_equal(write(client_fd, &one, sizeof(one)), sizeof(one));
	await(&started);
	assert_int_equal(end().failed, 0);
	assert_true(killed);
}

/* What the command did not wait for is carried all the same. */
static void a_network_that_is_used_at_the_very_end(void **state)
{
	(void)state;
	begin(DOES_AS_IT_IS_TOLD, true);
	assert_int_equal(end().failed, 0);
	assert_int_equal(started, 1);
}

/* Then nothing is ready any more, whatever else has its descriptors: a loop that watched it would turn for ever. */
static void a_proxy_that_ends_too_early(void **state)
{
	(void)state;
	begin(ENDS, true);
	while (!egress_is_over(egress))
		if (!stays)
			egress_handle(egress);
	assert_true(stays || !is_ready(0));
	assert_int_equal(end().failed, 1);
}

static int in_a_loop(void **state)
{
	(void)state;
	stays = false;
	return 0;
}

static int in_a_thread(void **state)
{
	(void)state;
	stays = true;
	return 0;
}

#define BOTH(name)                                                                                                     \
	cmocka_unit_test_setup(name, in_a_loop), { #name "_in_a_thread", name, in_a_thread, NULL, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(one_that_talks_on),
		BOTH(one_that_has_much_to_tell),
		BOTH(one_that_is_never_ready),
		BOTH(a_network_that_is_not_used),
		BOTH(a_network_that_is_used_later),
		BOTH(a_network_that_is_used_at_the_very_end),
		BOTH(a_proxy_that_ends_too_early),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

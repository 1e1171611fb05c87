/* The reader of an egress: waits until a listener is used, starts the proxy, and reads what it says. It never blocks
 * for longer than the proxy needs to start. The loop of a command steps it; where the sandbox stays, which is in no
 * loop between its commands, a thread does. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "config/config.h"
#include "egress/egress.h"

#define LAST_WORDS_MS 2000      /* for the proxy to tell what it has not told yet */
#define LAST_WORDS_MAX 4096     /* messages, besides two for each connection: more than there can be on their way */
#define HELD_MAX 32             /* listeners, until one is used: descriptors of the caller's process */
#define STEP_MAX 64             /* messages in one step */

static void set_state(struct egress *egress, enum egress_state state)
{
	pthread_mutex_lock(&egress->lock);
	egress->state = state;
	pthread_cond_broadcast(&egress->changed);
	pthread_mutex_unlock(&egress->lock);
}

static int watch(const struct egress *egress, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	return epoll_ctl(egress->poll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Before it is closed: while another process has it as well the kernel would go on telling of it. */
void egress_unwatch(const struct egress *egress, int fd)
{
	if (fd >= 0)
		epoll_ctl(egress->poll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* ---- what the proxy says ------------------------------------------------------------------------------------------
 */

/* -1: no more. Under the lock. */
static int handle(struct egress *egress, const struct proxy_message *message, struct cordon_error *err)
{
	switch (message->kind) {
	case PROXY_READY:
		egress->ready = true;
		return 0;
	case PROXY_TOLD:
		egress->answered = message->id;
		pthread_cond_broadcast(&egress->changed);
		return 0;
	case PROXY_QUESTION:
		egress_ask(egress, message);
		return 0;
	case PROXY_TOTALS:
		egress->told = egress->ready;
		if (!egress->told)
			memcpy(egress->why, message->text, sizeof(egress->why));
		return -1;
	default:
		if (egress_tell(egress, message, err) == 0)
			return 0;
		egress->unrecorded = true;
		return -1;
	}
}

/* One message. 0: there is none for now; -1: no more. */
static int take_message(struct egress *egress, struct cordon_error *err)
{
	const struct proxy_message *message = &egress->inbox.message;
	int got = proxy_socket_receive(egress->process.fd, &egress->inbox);
	/* ECONNRESET is said once, where it ended with something unread, and before what it has said itself. */
	if (got == 0 || (got < 0 && errno == ECONNRESET))
		return got != 0;
	if (got < 0 || !egress_message_is_sound(message))
		return -1;
	pthread_mutex_lock(&egress->lock);
	int result = handle(egress, message, err);
	pthread_mutex_unlock(&egress->lock);
	return result < 0 ? -1 : 1;
}

/* Not if it has left unread so much that this does not fit: then it is not waited for either. */
static int send_end(struct egress *egress)
{
	const struct proxy_message message = { .kind = PROXY_END };
	size_t sent = 0;
	int result = proxy_socket_send(egress->process.fd, &message, &sent);
	egress->gave_up = result == 0;
	return result > 0 ? 0 : -1;
}

/* The command has ended. Until the proxy has said its last, or is gone, or has been waited for long enough. What its
 * words take us, with a ledger that is slow, is no time of its own; so that it cannot go on for ever, they are
 * counted. It is asked to end when it is ready: until then it has not read what it was told before. */
static void take_last_messages(struct egress *egress, struct cordon_error *err)
{
	uint64_t left = LAST_WORDS_MAX + 2 * egress->facts.config->network.connections, waited_ms = 0;
	bool asked = false;
	int result = 0;
	while (result >= 0 && left && waited_ms < LAST_WORDS_MS) {
		struct pollfd ready = { .fd = egress->process.fd, .events = POLLIN };
		int64_t before_ms = clock_ms();
		if (egress->ready && !asked && send_end(egress) < 0)
			return;
		asked = egress->ready;
		if (poll(&ready, 1, (int)(LAST_WORDS_MS - waited_ms)) < 0 && errno != EINTR)
			return;
		waited_ms += (uint64_t)(clock_ms() - before_ms);
		if (ready.revents) {
			left--;
			result = take_message(egress, err);
		}
	}
	egress->gave_up = result >= 0;
}

/* It is being killed: what it said until then. */
static void take_remaining(struct egress *egress, struct cordon_error *err)
{
	struct pollfd ready = { .fd = egress->process.fd, .events = POLLIN };
	while (poll(&ready, 1, LAST_WORDS_MS) != 0 && take_message(egress, err) >= 0)
		;
}

/* ---- its states ---------------------------------------------------------------------------------------------------
 */

/* Nothing is read any more. Where that is too early, the command has no network from now on, and that is told. */
static void finish(struct egress *egress)
{
	static const char gone[] = "the proxy ended before the command did, and its connections with it";
	static const char killed[] =
		"the proxy did not end with the command and was killed; connections may be without a row";
	static const char unready[] = "the proxy did not become ready; connections through it failed";
	struct cordon_error err;
	egress_close_listeners(egress);
	egress_unwatch(egress, egress->process.fd);
	pthread_mutex_lock(&egress->lock);
	bool lost = !egress->told && !egress->unrecorded && !egress_is_offline(egress);
	if (lost) {
		egress_owner(egress)->counts.failed++;
		if (!*egress->why)
			snprintf(egress->why, sizeof(egress->why), "%s",
			         !egress->ready  ? unready :
			         egress->gave_up ? killed :
			                           gone);
	}
	if (lost && egress_tell_failed(egress, egress->why, &err) < 0)
		egress->unrecorded = true;
	pthread_mutex_unlock(&egress->lock);
	set_state(egress, EGRESS_OVER);
}

static void end_proxy(struct egress *egress)
{
	struct cordon_error err;
	proxy_kill(&egress->process);
	if (!egress->told && !egress->unrecorded)
		take_remaining(egress, &err);
	finish(egress);
}

static void start(struct egress *egress)
{
	struct cordon_error err;
	if (egress_start_proxy(egress, &err) < 0) {
		snprintf(egress->why, sizeof(egress->why), "%.*s", (int)sizeof(egress->why) - 1, err.reason);
		finish(egress);
		return;
	}
	egress_brief(egress);
	set_state(egress, EGRESS_CARRIES);
	if (watch(egress, egress->process.fd) < 0)
		end_proxy(egress);
}

/* Does a connection or a question about a name wait at a listener? Nothing is read from them here. */
static bool is_used(const struct egress *egress)
{
	size_t count = egress->facts.plan->count;
	struct pollfd ready[HELD_MAX];
	for (size_t i = 0; i < count; i++)
		ready[i] = (struct pollfd){ .fd = egress->listeners[i], .events = POLLIN };
	return poll(ready, count, 0) > 0;
}

/* What a probe is to find out is whether there can be a proxy; and many listeners are not for the caller to hold. */
static bool starts_at_once(const struct egress *egress)
{
	return (egress->facts.probe && !egress_is_offline(egress)) || egress->facts.plan->count > HELD_MAX;
}

void egress_listen(struct egress *egress)
{
	bool starts = egress->state == EGRESS_LISTENS && starts_at_once(egress);
	if (egress->state == EGRESS_DEAF) {
		snprintf(egress->why, sizeof(egress->why), "its listeners were not handed out");
		finish(egress);
		return;
	}
	for (size_t i = 0; i < egress->facts.plan->count && !starts; i++)
		/* Where it cannot be known, the proxy finds out. */
		starts = egress->listeners[i] >= 0 && watch(egress, egress->listeners[i]) < 0;
	if (starts)
		start(egress);
}

void egress_step(struct egress *egress)
{
	struct cordon_error err;
	int result = 1;
	if (egress->state == EGRESS_LISTENS && is_used(egress))
		start(egress);
	if (egress->state != EGRESS_CARRIES)
		return;
	for (int i = 0; i < STEP_MAX && result > 0; i++)
		result = take_message(egress, &err);
	if (result < 0)
		end_proxy(egress);
}

void egress_conclude(struct egress *egress)
{
	struct cordon_error err;
	/* What the command left there is carried, too. */
	if (egress->state == EGRESS_LISTENS && is_used(egress))
		start(egress);
	if (egress->state == EGRESS_CARRIES) {
		take_last_messages(egress, &err);
		end_proxy(egress);
	}
	set_state(egress, EGRESS_OVER);
}

/* ---- the thread of a sandbox that stays -----------------------------------------------------------------------------
 */

static void *read_all(void *argument)
{
	struct egress *egress = argument;
	pthread_mutex_lock(&egress->lock);
	while (egress->state == EGRESS_NOT_UP && !egress->ended)
		pthread_cond_wait(&egress->changed, &egress->lock);
	pthread_mutex_unlock(&egress->lock);
	if (egress->state != EGRESS_NOT_UP)
		egress_listen(egress);
	while (egress->state == EGRESS_LISTENS || egress->state == EGRESS_CARRIES) {
		struct pollfd ready[] = { { .fd = egress->poll_fd, .events = POLLIN },
			                  { .fd = egress->latch.fd, .events = POLLIN } };
		if (poll(ready, ARRAY_SIZE(ready), -1) < 0 && errno != EINTR)
			break;
		if (ready[0].revents)
			egress_step(egress);
		if (ready[1].revents)
			break;
	}
	if (egress->state != EGRESS_OVER)
		egress_conclude(egress);
	return NULL;
}

int egress_start_reader(struct egress *egress, struct cordon_error *err)
{
	int result = thread_start(&egress->reader, 0, read_all, egress);
	egress->has_reader = result == 0;
	return result == 0 ? 0 : fail(err, CORDON_E_INTERNAL, result, "pthread_create", "cannot start a thread");
}

/* The socket to the supervisor: see supervisor.h. */
#include "proxy/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/accept.h"
#include "proxy/connection.h"
#include "proxy/dial.h"
#include "proxy/loop.h"

#define OUTGOING_HIGH 64        /* from here on nothing new is begun */
#define TALLY_US 200000
#define FAREWELL_MS 2000        /* for the supervisor to read the last of it */

void proxy_give_up(void)
{
	_exit(1);
}

/* ---- sending ---------------------------------------------------------------------------------------------------- */

/* Wants to know, or no longer, when there is room again. */
static void watch_room(struct proxy *proxy, bool wanted)
{
	struct epoll_event event = { .events = EPOLLIN | (wanted ? EPOLLOUT : 0u),
		                     .data.ptr = &proxy->supervisor_watch };
	if (wanted == proxy->supervisor_is_watched)
		return;
	proxy->supervisor_is_watched = wanted;
	if (epoll_ctl(proxy->epoll_fd, EPOLL_CTL_MOD, PROXY_FD, &event) < 0)
		proxy_give_up();
}

/* What the socket takes now. */
static void send_outgoing(struct proxy *proxy)
{
	for (struct outgoing *next; (next = proxy->first_outgoing);) {
		int sent = proxy_socket_send(PROXY_FD, &next->message, &next->sent);
		if (sent == 0)
			break;
		if (sent < 0)
			proxy_give_up();
		proxy->first_outgoing = next->next;
		if (!proxy->first_outgoing)
			proxy->last_outgoing = &proxy->first_outgoing;
		proxy->outgoing_count--;
		free(next);
	}
	bool was_full = proxy->supervisor_is_full;
	proxy->supervisor_is_full = proxy->outgoing_count >= OUTGOING_HIGH;
	watch_room(proxy, proxy->first_outgoing);
	if (was_full && !proxy->supervisor_is_full)
		loop_wake_all(proxy);
}

void supervisor_tell(struct proxy *proxy, const struct proxy_message *message)
{
	struct outgoing *outgoing = malloc(sizeof(*outgoing));
	if (!outgoing)
		proxy_give_up();
	outgoing->next = NULL;
	outgoing->sent = 0;
	outgoing->message = *message;
	*proxy->last_outgoing = outgoing;
	proxy->last_outgoing = &outgoing->next;
	proxy->outgoing_count++;
	proxy->supervisor_is_full = proxy->outgoing_count >= OUTGOING_HIGH;
	if (proxy->outgoing_count == 1)
		send_outgoing(proxy);
}

/* ---- counting --------------------------------------------------------------------------------------------------- */

static bool is_same(const struct proxy_message *a, const struct proxy_message *b)
{
	return a->kind == b->kind && a->connection.way == b->connection.way &&
	       a->connection.decision == b->connection.decision && a->connection.status == b->connection.status &&
	       a->connection.command == b->connection.command &&
	       !strcmp(a->host, b->host) && !strcmp(a->text, b->text);
}

bool supervisor_count(struct proxy *proxy, const struct proxy_message *message)
{
	for (size_t i = 0; i < proxy->tally_count; i++)
		if (is_same(&proxy->tallies[i], message)) {
			proxy->tallies[i].connection.count += message->connection.count;
			return true;
		}
	if (proxy->tally_count == TALLIES_MAX && !proxy->supervisor_is_full)
		supervisor_tell_counted(proxy, true);
	if (proxy->tally_count == TALLIES_MAX)
		return false;
	if (!proxy->tally_count) {
		proxy->tally_deadline_us = proxy->now_us + TALLY_US;
		loop_expect(proxy, proxy->tally_deadline_us);
	}
	proxy->tallies[proxy->tally_count++] = *message;
	return true;
}

void supervisor_tell_counted(struct proxy *proxy, bool all)
{
	if (!proxy->tally_count || (!all && proxy->now_us < proxy->tally_deadline_us))
		return;
	if (proxy->supervisor_is_full && !proxy->is_ending) {
		proxy->tally_deadline_us = proxy->now_us + TALLY_US;
		loop_expect(proxy, proxy->tally_deadline_us);
		return;
	}
	for (size_t i = 0; i < proxy->tally_count; i++)
		supervisor_tell(proxy, &proxy->tallies[i]);
	proxy->tally_count = 0;
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

void supervisor_end(struct proxy *proxy)
{
	connection_end_all(proxy, "the command has ended");
	supervisor_tell_counted(proxy, true);
	proxy->totals.kind = PROXY_TOTALS;
	supervisor_tell(proxy, &proxy->totals);
	while (proxy->first_outgoing) {
		/* The supervisor that asked for the end reads this, or closes the socket, or kills. */
		struct pollfd wait = { .fd = PROXY_FD, .events = POLLOUT };
		if (poll(&wait, 1, -1) < 0 && errno != EINTR)
			break;
		send_outgoing(proxy);
	}
	/* A socket that is closed while there is something to read resets, and the last messages would be behind
	 * that. */
	struct pollfd wait = { .fd = PROXY_FD, .events = POLLIN };
	while (poll(&wait, 1, FAREWELL_MS) == 1 &&
	       recv(PROXY_FD, &proxy->totals, sizeof(proxy->totals), MSG_DONTWAIT) > 0)
		;
	_exit(0);
}

/* ---- receiving -------------------------------------------------------------------------------------------------- */

static bool receive(struct proxy *proxy)
{
	const struct proxy_message *message = &proxy->inbox.message;
	int got = proxy_socket_receive(PROXY_FD, &proxy->inbox);
	if (got == 0)
		return false;
	/* End of file: the supervisor is gone. */
	if (got < 0 && errno == 0)
		_exit(0);
	if (got < 0 || !memchr(message->host, '\0', sizeof(message->host)) ||
	    !memchr(message->text, '\0', sizeof(message->text)))
		proxy_give_up();
	return true;
}

static void take_token(struct proxy *proxy, struct proxy_message *message)
{
	size_t length = message->secret.length;
	if (!length) {
		tokens_remove(&proxy->tokens, message->id);
		connection_end_command(proxy, message->id, "its command has ended");
	} else if (tokens_add(&proxy->tokens, message->id, message->secret.bytes, length) < 0) {
		proxy_give_up();
	}
	explicit_bzero(&message->secret, sizeof(message->secret));
	explicit_bzero(&proxy->inbox.message.secret, sizeof(proxy->inbox.message.secret));
}

void supervisor_watch_fn(struct watch *watch, uint32_t events)
{
	struct proxy *proxy = (struct proxy *)((char *)watch - offsetof(struct proxy, supervisor_watch));
	if (events & EPOLLOUT)
		send_outgoing(proxy);
	while (receive(proxy)) {
		struct proxy_message message = proxy->inbox.message;
		if (message.kind == PROXY_ANSWER) {
			dial_answered(proxy, &message);
		} else if (message.kind == PROXY_TELL) {
			supervisor_tell_counted(proxy, true);
			rules_forget(&proxy->rules);
			supervisor_tell(proxy, &(struct proxy_message){ .kind = PROXY_TOLD, .id = message.id });
		} else if (message.kind == PROXY_LEAVE && proxy->leaves != LEAVES_SOON) {
			accept_close(proxy);
			rules_withdraw(&proxy->rules);
			proxy->leaves = LEAVES_SOON;
		} else if (message.kind == PROXY_RULE && proxy->leaves == LEAVES_SOON) {
			if (rules_add(&proxy->rules, message.host, &message.rule.v4, &message.rule.v6) < 0)
				proxy_give_up();
		} else if (message.kind == PROXY_BEGIN && proxy->leaves == LEAVES_SOON) {
			connection_end_uncovered(proxy, "the host was taken back");
			proxy->leaves = LEAVES_LAST;
		} else if (message.kind == PROXY_TOKEN) {
			take_token(proxy, &message);
		} else if (message.kind == PROXY_END) {
			loop_end(proxy);
		} else {
			proxy_give_up();
		}
	}
}

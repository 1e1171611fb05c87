/* The network of listed hosts: see egress.h. */
#include "egress/egress.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define TELL_MS 1000            /* for the proxy to tell of a command that has ended */

static void destroy(struct egress *egress)
{
	egress_close_listeners(egress);
	close_fd(&egress->network_fds[0]);
	close_fd(&egress->network_fds[1]);
	proxy_end(&egress->process);
	latch_close(&egress->latch);
	close_fd(&egress->poll_fd);
	pthread_cond_destroy(&egress->changed);
	pthread_mutex_destroy(&egress->lock);
	pthread_mutex_destroy(&egress->sending);
	secret_set_unref(egress->facts.terms.set);
	free(egress->listeners);
	free(egress->idle.denied);
	for (size_t i = 0; i < EGRESS_LEFT_MAX; i++)
		free(egress->left[i].program);
	free(egress);
}

static int begin(const struct egress_facts *facts, const struct egress *gateway_of, struct egress **ret_egress,
                 struct cordon_error *err);

/* The gateway is another process of the same kind: it has the listeners that are the last of the plan. */
static int begin_gateway(struct egress *egress, struct cordon_error *err)
{
	struct egress_facts facts = egress->facts;
	struct egress_plan plan = {
		egress->plan.listeners + egress->plan.count, egress->plan.gateway_count, NULL, 0, 0, false, false
	};
	if (!plan.count || facts.probe)
		return 0;
	facts.plan = &plan;
	facts.is_gateway = true;
	facts.asks = false;
	return begin(&facts, egress, &egress->gateway, err);
}

/* What a command's loop watches is one descriptor for both; each thread has one of its own. */
static int make_descriptors(struct egress *egress, const struct egress *gateway_of)
{
	bool stays = egress->facts.stays;
	egress->poll_fd = gateway_of && !stays ? fcntl(gateway_of->poll_fd, F_DUPFD_CLOEXEC, 3)
	                                       : epoll_create1(EPOLL_CLOEXEC);
	return egress->poll_fd < 0 || (stays && latch_open(&egress->latch) < 0) ? -1 : 0;
}

static int begin(const struct egress_facts *facts, const struct egress *gateway_of, struct egress **ret_egress,
                 struct cordon_error *err)
{
	size_t count = facts->plan->count;
	struct egress *egress = calloc(1, sizeof(*egress));
	if (!egress)
		return fail_oom(err);
	*egress = (struct egress){ .facts = *facts,
		                   .process = { -1, -1, -1 },
		                   .network_fds = { -1, -1 },
		                   .poll_fd = -1,
		                   .latch = LATCH_NONE,
		                   .idle = { .egress = egress } };
	egress->plan = *facts->plan;
	egress->plan.count -= egress->plan.gateway_count;
	egress->facts.plan = &egress->plan;
	secret_set_ref(egress->facts.terms.set);
	pthread_mutex_init(&egress->lock, NULL);
	pthread_mutex_init(&egress->sending, NULL);
	pthread_cond_init(&egress->changed, NULL);
	egress->listeners = malloc(count * sizeof(*egress->listeners));
	for (size_t i = 0; egress->listeners && i < count; i++)
		egress->listeners[i] = -1;
	if (!egress->listeners || make_descriptors(egress, gateway_of) < 0)
		fail(err, CORDON_E_INTERNAL, errno, NULL, "cannot make what the proxy needs");
	/* Without a network nobody needs an answer to be refused. */
	else if (begin_gateway(egress, err) == 0 &&
	         (!facts->stays || egress_start_reader(egress, err) == 0 || egress_is_offline(egress))) {
		*ret_egress = egress;
		return 0;
	}
	egress_free(egress->gateway);
	destroy(egress);
	return -1;
}

int egress_begin(const struct egress_facts *facts, struct egress **ret_egress, struct cordon_error *err)
{
	return begin(facts, NULL, ret_egress, err);
}

int egress_fd(const struct egress *egress)
{
	return egress->poll_fd;
}

void egress_handle(void *egress)
{
	struct egress *gateway = ((struct egress *)egress)->gateway;
	if (gateway)
		egress_step(gateway);
	egress_step(egress);
}

void egress_enter(struct egress *egress, int user_fd, int network_fd)
{
	egress->network_fds[0] = user_fd;
	egress->network_fds[1] = network_fd;
}

int *egress_listeners(struct egress *egress)
{
	return egress->listeners;
}

void egress_started(struct egress *egress, bool listens)
{
	size_t own = egress->plan.count;
	for (size_t i = 0; i < egress->plan.gateway_count; i++) {
		int fd = take_fd(&egress->listeners[own + i]);
		if (egress->gateway)
			egress->gateway->listeners[i] = fd;
		else if (fd >= 0)
			close(fd);
	}
	if (egress->gateway)
		egress_started(egress->gateway, listens);
	pthread_mutex_lock(&egress->lock);
	egress->state = listens ? EGRESS_LISTENS : EGRESS_DEAF;
	pthread_cond_broadcast(&egress->changed);
	pthread_mutex_unlock(&egress->lock);
	if (!egress->facts.stays)
		egress_listen(egress);
}

static void join(struct egress *egress)
{
	pthread_mutex_lock(&egress->lock);
	egress->ended = true;
	pthread_cond_broadcast(&egress->changed);
	pthread_mutex_unlock(&egress->lock);
	if (egress->has_reader) {
		latch_set(&egress->latch);
		pthread_join(egress->reader, NULL);
	} else if (egress->state != EGRESS_OVER) {
		egress_conclude(egress);
	}
	egress->has_reader = false;
	/* Nobody serves them any more, and what comes after may listen at the same port. */
	egress_close_listeners(egress);
}

int egress_end(struct egress *egress, struct cordon_error *err)
{
	if (egress->gateway)
		join(egress->gateway);
	join(egress);
	if (!egress->facts.probe || egress->told || egress_is_offline(egress))
		return 0;
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "cordon-proxy", "%s",
	     *egress->why ? egress->why : "the proxy cannot seal itself here");
	return fail_boundary(err, "network");
}

/* Its proxy is ready, so that it reads. */
static bool leave(struct egress *egress, const struct egress_plan *next)
{
	pthread_mutex_lock(&egress->lock);
	bool carries = egress->has_reader && egress->state == EGRESS_CARRIES && egress->ready && !egress->ended;
	if (carries &&
	    (egress_send(egress, &(struct proxy_message){ .kind = PROXY_LEAVE }, -1) < 0 ||
	     (!egress->facts.is_gateway && egress_send_rules(egress, next, false) < 0) ||
	     egress_send(egress, &(struct proxy_message){ .kind = PROXY_BEGIN }, -1) < 0))
		proxy_kill(&egress->process);
	pthread_mutex_unlock(&egress->lock);
	return carries;
}

bool egress_hand_over(struct egress *egress, const struct egress_plan *next)
{
	bool serves = egress->gateway && leave(egress->gateway, next);
	if (egress->gateway && !serves)
		join(egress->gateway);
	if (leave(egress, next))
		return true;
	if (serves)
		join(egress);
	return serves;
}

bool egress_is_over(struct egress *egress)
{
	pthread_mutex_lock(&egress->lock);
	bool over = egress->state == EGRESS_OVER;
	pthread_mutex_unlock(&egress->lock);
	return over;
}

void egress_free(struct egress *egress)
{
	if (!egress)
		return;
	egress_free(egress->gateway);
	join(egress);
	destroy(egress);
}

static void add_counts(struct egress_counts *counts, const struct egress_counts *more)
{
	counts->connections += more->connections;
	counts->bytes_in += more->bytes_in;
	counts->bytes_out += more->bytes_out;
	counts->denied += more->denied;
	counts->failed += more->failed;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static void make_token(struct egress_command *command)
{
	unsigned char bytes[PROXY_TOKEN_LENGTH / 2];
	randombytes_buf(bytes, sizeof(bytes));
	sodium_bin2hex(command->token, sizeof(command->token), bytes, sizeof(bytes));
	sodium_memzero(bytes, sizeof(bytes));
}

const char *egress_command_token(const struct egress_command *command)
{
	return *command->token ? command->token : NULL;
}

/* Is there a proxy that is told of each command? One that is not there yet is told of all of them (process.c). Under
 * the lock. */
static bool carries_tokens(const struct egress *egress)
{
	return egress->facts.plan->is_on_loopback && egress->state == EGRESS_CARRIES && !egress->ended;
}

int egress_join(struct egress *egress, const struct egress_command_facts *facts, struct egress_command **ret_command,
                struct cordon_error *err)
{
	struct egress_command *command = calloc(1, sizeof(*command));
	if (!command)
		return fail_oom(err);
	*command = (struct egress_command){ .egress = egress, .facts = *facts, .latch = LATCH_NONE,
		                            .last = &command->first };
	if (latch_open(&command->latch) < 0) {
		free(command);
		return fail(err, CORDON_E_INTERNAL, errno, "descriptors", "cannot make what the proxy needs");
	}
	if (egress->gateway && egress_join(egress->gateway, facts, &command->gateway, err) < 0) {
		latch_close(&command->latch);
		free(command);
		return -1;
	}
	if (egress->facts.plan->is_on_loopback)
		make_token(command);
	pthread_mutex_lock(&egress->lock);
	command->number = ++egress->last_number;
	command->next = egress->commands;
	egress->commands = command;
	if (carries_tokens(egress) && egress_send_token(egress, command, false) < 0)
		proxy_kill(&egress->process);
	pthread_mutex_unlock(&egress->lock);
	*ret_command = command;
	return 0;
}

/* A proxy that carries others' connections goes on: what it knows of this command it is asked for. Under the lock. */
static void await_told(struct egress *egress)
{
	struct proxy_message message = { .kind = PROXY_TELL, .id = egress->asked + 1 };
	struct timespec until;
	bool is_read = egress->has_reader && egress->ready && egress->state != EGRESS_OVER && !egress->ended;
	if (!is_read)
		return;
	if (egress_send(egress, &message, -1) < 0) {
		proxy_kill(&egress->process);
		return;
	}
	egress->asked++;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += TELL_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	while ((int32_t)(egress->answered - message.id) < 0 && egress->state != EGRESS_OVER &&
	       pthread_cond_timedwait(&egress->changed, &egress->lock, &until) == 0)
		;
}

/* Under the lock. */
static void remember(struct egress *egress, const struct egress_command *command)
{
	const struct egress_command_facts *facts = &command->facts;
	struct egress_left *left = &egress->left[egress->left_count++ % EGRESS_LEFT_MAX];
	free(left->program);
	*left = (struct egress_left){ .address = facts->address,
		                      .program = facts->program ? strdup(facts->program) : NULL,
		                      .ended_ms = clock_ms(),
		                      .number = command->number };
	snprintf(left->audit_id, sizeof(left->audit_id), "%s", facts->audit_id ? facts->audit_id : "");
}

int egress_leave(struct egress_command *command, struct egress_report *report, struct cordon_error *err)
{
	struct egress *egress = command->egress;
	struct cordon_error ignored;
	struct egress_report gateway = { .arena = report ? report->arena : NULL,
		                         .denials = report ? report->denials : NULL };
	int result = command->gateway ? egress_leave(command->gateway, report ? &gateway : NULL, err) : 0;
	pthread_mutex_lock(&egress->lock);
	/* What that ends is told before it is over. */
	if (carries_tokens(egress) && egress_send_token(egress, command, true) < 0)
		proxy_kill(&egress->process);
	await_told(egress);
	command->ended = true;
	pthread_cond_broadcast(&egress->changed);
	if (!egress->unrecorded && egress_tell_rest(command, &ignored) < 0)
		egress->unrecorded = true;
	for (struct egress_command **at = &egress->commands; *at; at = &(*at)->next)
		if (*at == command) {
			*at = command->next;
			break;
		}
	remember(egress, command);
	if (report && egress_report_fill(command, report) < 0)
		result = fail_oom(err);
	if (report)
		add_counts(&report->counts, &gateway.counts);
	pthread_mutex_unlock(&egress->lock);
	latch_set(&command->latch);
	egress_ask_end(command);
	latch_close(&command->latch);
	free(command->denied);
	sodium_memzero(command->token, sizeof(command->token));
	free(command);
	return result;
}

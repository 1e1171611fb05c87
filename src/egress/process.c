/* The process of an egress: its start, and what it is told. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "config/config.h"
#include "egress/egress.h"
#include "net/proxy-socket.h"

#define PATIENCE_S 10           /* for the proxy to read what it is told */
#define CROWDED_PAUSE_NS 2000000
#define CROWDED_ROUNDS 1000

int egress_start_proxy(struct egress *egress, struct cordon_error *err)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	int program = egress->facts.is_gateway ? proxy_gateway_fd(err) : proxy_program_fd(err);
	if (program < 0 || proxy_open(&egress->process, err) < 0)
		return -1;
	setsockopt(egress->process.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return proxy_start(&egress->process, program, err);
}

int egress_send(const struct egress *egress, const struct proxy_message *message, int fd)
{
	pthread_mutex_t *sending = (pthread_mutex_t *)(uintptr_t)&egress->sending;
	int result;
	pthread_mutex_lock(sending);
	/* The descriptors that a user may have under way are bounded; those of others will arrive. */
	for (int rounds = 0; (result = proxy_socket_put(egress->process.fd, message, fd)) < 0; rounds++) {
		if (errno == ETOOMANYREFS && rounds < CROWDED_ROUNDS)
			nanosleep(&(struct timespec){ .tv_nsec = CROWDED_PAUSE_NS }, NULL);
		else if (errno != EINTR)
			break;
	}
	pthread_mutex_unlock(sending);
	return result;
}

static int send_settings(const struct egress *egress)
{
	const struct config *config = egress->facts.config;
	struct proxy_message message = { .kind = PROXY_SETTINGS };
	message.settings.connections = config->network.connections;
	message.settings.total_connections = config->network.total_connections;
	message.settings.connect_ms = config->network.connect_ms;
	message.settings.idle_ms = config->network.idle_ms;
	message.settings.header_bytes = config->network.header_bytes;
	message.settings.total_bytes = config->network.bytes;
	if (egress->facts.publishes)
		message.settings.idle_ms = message.settings.total_bytes = 0;
	message.settings.offline = egress_is_offline(egress);
	message.settings.asks = egress->facts.asks;
	message.settings.asks_token = egress->facts.plan->is_on_loopback;
	return egress_send(egress, &message, -1);
}

static int send_names(const struct egress *egress)
{
	const struct config *config = egress->facts.config;
	int result = 0;
	for (size_t i = 0; i < config->network.name_count && result == 0; i++) {
		struct proxy_message message = { .kind = PROXY_NAME };
		message.name.address = config->network.names[i].address;
		snprintf(message.host, sizeof(message.host), "%s", config->network.names[i].name);
		result = egress_send(egress, &message, -1);
	}
	const struct strings *const private_hosts[] = { &config->network.private_hosts,
		                                        egress->facts.private_hosts };
	for (size_t list = 0; list < ARRAY_SIZE(private_hosts); list++)
		for (size_t i = 0; i < private_hosts[list]->count && result == 0; i++) {
			struct proxy_message message = { .kind = PROXY_PRIVATE };
			snprintf(message.host, sizeof(message.host), "%s", private_hosts[list]->items[i]);
			result = egress_send(egress, &message, -1);
		}
	for (size_t i = 0; i < config->network.exempt_count && result == 0; i++) {
		const struct address_range *range = &config->network.exempt[i];
		struct proxy_message message = { .kind = PROXY_EXEMPTION };
		char address[ADDRESS_TEXT_SIZE];
		address_text(&range->first, address);
		snprintf(message.host, sizeof(message.host), "%s/%u", address, range->bits);
		result = egress_send(egress, &message, -1);
	}
	return result;
}

/* Where the kernel has no IPv6, no name has an address of it. */
int egress_send_rules(const struct egress *egress, const struct egress_plan *plan, bool has_v6)
{
	int result = 0;
	for (size_t i = 0; i < plan->rule_count && result == 0; i++) {
		struct proxy_message message = { .kind = PROXY_RULE };
		message.rule.v4 = plan->rules[i].v4;
		if (has_v6)
			message.rule.v6 = plan->rules[i].v6;
		snprintf(message.host, sizeof(message.host), "%s", plan->rules[i].text);
		result = egress_send(egress, &message, -1);
	}
	return result;
}

static int send_listeners(struct egress *egress, bool *ret_has_v6)
{
	const struct egress_plan *plan = egress->facts.plan;
	int result = 0;
	*ret_has_v6 = false;
	for (size_t i = 0; i < plan->count; i++) {
		struct proxy_message message = { .kind = PROXY_LISTENER };
		int fd = egress->listeners[i];
		if (fd < 0)
			continue;
		message.listener.use = plan->listeners[i].use;
		message.listener.port = plan->listeners[i].port;
		message.listener.address = plan->listeners[i].address;
		*ret_has_v6 |= message.listener.address.length == 16;
		if (result == 0)
			result = egress_send(egress, &message, fd);
		egress_unwatch(egress, fd);
		close(take_fd(&egress->listeners[i]));
	}
	return result;
}

void egress_close_listeners(struct egress *egress)
{
	const struct egress_plan *plan = egress->facts.plan;
	for (size_t i = 0; egress->listeners && i < plan->count + plan->gateway_count; i++)
		if (egress->listeners[i] >= 0) {
			egress_unwatch(egress, egress->listeners[i]);
			close(take_fd(&egress->listeners[i]));
		}
}

static int send_network(struct egress *egress)
{
	int result = 0;
	for (size_t i = 0; i < ARRAY_SIZE(egress->network_fds); i++) {
		if (egress->network_fds[i] >= 0 && result == 0)
			result = egress_send(egress, &(struct proxy_message){ .kind = PROXY_NETWORK },
			                     egress->network_fds[i]);
		close_fd(&egress->network_fds[i]);
	}
	return result;
}

int egress_send_token(const struct egress *egress, const struct egress_command *command, bool ended)
{
	struct proxy_message message = { .kind = PROXY_TOKEN, .id = command->number };
	message.secret.length = ended ? 0 : PROXY_TOKEN_LENGTH;
	memcpy(message.secret.bytes, command->token, message.secret.length);
	int result = egress_send(egress, &message, -1);
	sodium_memzero(&message, sizeof(message));
	return result;
}

/* Where there are tokens, those of the commands so far; who joins from here on sends its own. */
static int begin(struct egress *egress)
{
	const struct proxy_message message = { .kind = PROXY_BEGIN };
	int result = 0;
	if (!egress->facts.plan->is_on_loopback)
		return egress_send(egress, &message, -1);
	pthread_mutex_lock(&egress->lock);
	for (const struct egress_command *each = egress->commands; each && result == 0; each = each->next)
		result = egress_send_token(egress, each, false);
	if (result == 0)
		result = egress_send(egress, &message, -1);
	egress->state = EGRESS_CARRIES;
	pthread_cond_broadcast(&egress->changed);
	pthread_mutex_unlock(&egress->lock);
	return result;
}

void egress_brief(struct egress *egress)
{
	bool has_v6;
	bool is_gateway = egress->facts.is_gateway;
	if (send_network(egress) < 0 || send_listeners(egress, &has_v6) < 0 || send_settings(egress) < 0 ||
	    send_names(egress) < 0 ||
	    (is_gateway ? egress_send_gateways(egress) < 0 :
	                  egress_send_rules(egress, egress->facts.plan, has_v6) < 0 || egress_send_terms(egress) < 0) ||
	    begin(egress) < 0)
		proxy_kill(&egress->process);
}

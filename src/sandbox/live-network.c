/* The network of a session's sandbox: listeners that stay, and the egress that serves them. Where hosts are granted
 * or taken back, the listeners that both networks have are kept, the others are made or closed, and another egress
 * takes over: connections that the new one allows, too, go on through the old one's proxy, which ends with the last
 * of them. A session that gets the network of the host has no egress; what its jobs in the sandbox's own network had
 * stays theirs until they end. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "egress/publish.h"
#include "sandbox/live.h"

static bool is_same_listener(const struct egress_listener *a, const struct egress_listener *b)
{
	return a->use == b->use && a->port == b->port && a->address.length == b->address.length &&
	       !memcmp(a->address.bytes, b->address.bytes, a->address.length);
}

static bool is_same_plan(const struct egress_plan *a, const struct egress_plan *b)
{
	bool same = a->count == b->count && a->rule_count == b->rule_count && a->is_offline == b->is_offline;
	for (size_t i = 0; same && i < a->count; i++)
		same = is_same_listener(&a->listeners[i], &b->listeners[i]);
	for (size_t i = 0; same && i < a->rule_count; i++)
		same = !strcmp(a->rules[i].text, b->rules[i].text);
	return same;
}

static bool is_all_in(const struct strings *some, const struct strings *all)
{
	size_t i = 0;
	while (i < some->count && strings_find(all, some->items[i]) >= 0)
		i++;
	return i == some->count;
}

bool live_has_network(const struct live *live, const struct sandbox_request *request)
{
	return live->networks && !request->private_hosts->count &&
	       live->networks->is_host == (request->walls.profile->network == NETWORK_ALL) &&
	       is_same_plan(&live->networks->plan, &request->walls.profile->egress);
}

static void close_all(int *fds, size_t count)
{
	for (size_t i = 0; fds && i < count; i++)
		close_fd(&fds[i]);
	free(fds);
}

static void free_network(struct live_network *network)
{
	egress_free(network->egress);
	egress_forget_environment(network->environment);
	close_all(network->listeners, network->plan.count);
	config_unref(network->config);
	arena_free(&network->arena);
	free(network);
}

void live_disconnect(struct live *live, bool all)
{
	for (struct live_network **at = &live->networks; *at;) {
		struct live_network *network = *at;
		bool in_use = network == live->networks || (network->egress && network->egress->commands);
		if (in_use && !all) {
			at = &network->next;
			continue;
		}
		*at = network->next;
		free_network(network);
	}
}

/* What the request's arena has of it, as the sandbox's own. */
static int copy(struct live_network *network, const struct sandbox_request *request)
{
	const struct egress_plan *plan = &request->walls.profile->egress;
	struct arena *arena = &network->arena;
	struct egress_listener *listeners = arena_alloc(arena, (plan->count + 1) * sizeof(*listeners));
	struct egress_rule *rules = arena_alloc(arena, (plan->rule_count + 1) * sizeof(*rules));
	if (!listeners || !rules || strings_add_all(arena, &network->hosts, request->hosts) < 0 ||
	    strings_add_all(arena, &network->private_hosts, request->private_hosts) < 0)
		return -1;
	for (size_t i = 0; i < network->hosts.count; i++)
		if (!(network->hosts.items[i] = arena_strdup(arena, network->hosts.items[i])))
			return -1;
	for (size_t i = 0; i < network->private_hosts.count; i++)
		if (!(network->private_hosts.items[i] = arena_strdup(arena, network->private_hosts.items[i])))
			return -1;
	if (plan->count)
		memcpy(listeners, plan->listeners, plan->count * sizeof(*listeners));
	for (size_t i = 0; i < plan->rule_count; i++) {
		rules[i] = plan->rules[i];
		if (!(rules[i].text = arena_strdup(arena, plan->rules[i].text)))
			return -1;
	}
	network->plan = (struct egress_plan){ listeners,        plan->count,         rules,
		                              plan->rule_count, plan->gateway_count, plan->is_offline,
		                              plan->is_on_loopback };
	network->config = config_ref(request->config);
	if (plan->gateway_count &&
	    egress_keep_environment(arena, network->config, request->environment, &network->environment) < 0)
		return -1;
	network->is_host = request->walls.profile->network == NETWORK_ALL;
	return 0;
}

static struct live_network *new_network(const struct sandbox_request *request)
{
	struct live_network *network = calloc(1, sizeof(*network));
	if (network && copy(network, request) < 0) {
		free_network(network);
		network = NULL;
	}
	return network;
}

/* An egress with copies of the listeners. */
static int begin(struct live *live, struct live_network *network, const struct sandbox_request *request,
                 struct cordon_error *err)
{
	const struct egress_facts facts = {
		.config = network->config,
		.plan = &network->plan,
		.hosts = &network->hosts,
		.private_hosts = &network->private_hosts,
		.gate = request->gate,
		.session_id = live->session_id,
		.asks = request->asks,
		.terms = request->terms,
		.environment = network->environment,
		.stays = true,
	};
	bool listens = false;
	if (!network->plan.count)
		return 0;
	if (egress_begin(&facts, &network->egress, err) < 0)
		return -1;
	int *fds = egress_listeners(network->egress);
	for (size_t i = 0; i < network->plan.count; i++) {
		fds[i] = network->listeners[i] < 0 ? -1 : fcntl(network->listeners[i], F_DUPFD_CLOEXEC, 3);
		listens |= fds[i] >= 0;
	}
	egress_started(network->egress, listens);
	return 0;
}

static int *new_listeners(size_t count)
{
	int *fds = malloc((count + 1) * sizeof(*fds));
	for (size_t i = 0; fds && i < count; i++)
		fds[i] = -1;
	return fds;
}

int live_connect_first(struct live *live, const struct sandbox_request *request, struct cordon_error *err)
{
	struct live_network *network = new_network(request);
	if (!network)
		return fail_oom(err);
	network->next = live->networks;
	live->networks = network;
	network->listeners = new_listeners(network->plan.count);
	if (!network->listeners)
		return fail_oom(err);
	if (network->plan.count)
		(void)!live->sandbox->driver->take_listeners(live->sandbox, network->listeners);
	return begin(live, network, request, err);
}

/* Takes from `before` what both have; makes the rest. */
static int make_listeners(const struct live *live, struct live_network *network, struct live_network *before,
                          struct cordon_error *err)
{
	size_t count = network->plan.count, missing = 0;
	struct egress_listener *wanted = arena_alloc(&network->arena, (count + 1) * sizeof(*wanted));
	int *made = arena_alloc(&network->arena, (count + 1) * sizeof(*made));
	size_t *places = arena_alloc(&network->arena, (count + 1) * sizeof(*places));
	network->listeners = new_listeners(count);
	if (!wanted || !made || !places || !network->listeners)
		return fail_oom(err);
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; before && j < before->plan.count && network->listeners[i] < 0; j++)
			if (is_same_listener(&network->plan.listeners[i], &before->plan.listeners[j]))
				network->listeners[i] = take_fd(&before->listeners[j]);
		if (network->listeners[i] < 0) {
			places[missing] = i;
			wanted[missing++] = network->plan.listeners[i];
		}
	}
	/* What is no longer listened on must be free for the others. */
	if (before) {
		close_all(before->listeners, before->plan.count);
		before->listeners = NULL;
	}
	if (missing && live->sandbox->driver->keeping->listen(live->sandbox, wanted, missing, made, err) < 0)
		return network->plan.is_offline ? 0 : -1;
	for (size_t i = 0; i < missing; i++)
		network->listeners[places[i]] = made[i];
	return 0;
}

/* The newest of this kind. */
static struct live_network *find_network(const struct live *live, bool is_host)
{
	struct live_network *network = live->networks;
	while (network && network->is_host != is_host)
		network = network->next;
	return network;
}

struct egress *live_egress(const struct live *live, bool is_host)
{
	const struct live_network *network = find_network(live, is_host);
	return network ? network->egress : NULL;
}

static void put_in_force(struct live *live, struct live_network *network)
{
	for (struct live_network **at = &live->networks; *at; at = &(*at)->next)
		if (*at == network) {
			*at = network->next;
			break;
		}
	network->next = live->networks;
	live->networks = network;
}

/* What it was told still holds. */
static bool may_go_on(const struct live_network *network, const struct sandbox_request *request)
{
	return config_serves_same(network->config, request->config) &&
	       is_all_in(&network->private_hosts, request->private_hosts);
}

/* Their proxies listen no longer. Connections of hosts that are left go on there, if they may. Commands that began
 * with them report there what they did. */
static int hand_over(const struct live *live, const struct live_network *to, const struct sandbox_request *request,
                     struct cordon_error *err)
{
	for (struct live_network *each = live->networks; each; each = each->next) {
		if (!each->egress || each->is_host != to->is_host)
			continue;
		bool goes_on = may_go_on(each, request) && egress_hand_over(each->egress, &to->plan);
		if (!goes_on && egress_end(each->egress, err) < 0)
			return -1;
	}
	return 0;
}

int live_connect(struct live *live, const struct sandbox_request *request, struct cordon_error *err)
{
	struct live_network *before = find_network(live, request->walls.profile->network == NETWORK_ALL);
	bool same = before && may_go_on(before, request) &&
	            before->private_hosts.count == request->private_hosts->count &&
	            is_same_plan(&before->plan, &request->walls.profile->egress);
	/* One that could not be made before is made anew. */
	bool serves = before && (before->egress ? !egress_is_over(before->egress) : !before->plan.count);
	if (same && serves) {
		put_in_force(live, before);
		return 0;
	}
	struct live_network *network = new_network(request);
	if (!network)
		return fail_oom(err);
	if (hand_over(live, network, request, err) < 0) {
		free_network(network);
		return -1;
	}
	network->next = live->networks;
	live->networks = network;
	int result = make_listeners(live, network, before, err);
	if (result == 0)
		result = begin(live, network, request, err);
	live_disconnect(live, false);
	return result;
}

int live_publish(struct live *live, const struct sandbox_request *request, struct cordon_error *err)
{
	const struct publish_facts facts = { .config = request->config,
		                             .ports = request->publish,
		                             .gate = request->gate,
		                             .session_id = live->session_id,
		                             .stays = true };
	if (publish_is_for(live->publish, request->publish))
		return 0;
	publish_free(live->publish);
	live->publish = NULL;
	if (!request->publish->count)
		return 0;
	if (publish_begin(&facts, &live->publish, err) < 0)
		return -1;
	publish_started(live->publish, live->sandbox);
	return 0;
}

/* What runs in a sandbox while its session's hosts and ports change: see sandboxes_watch() and sandboxes_refresh(). */
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "sandbox/live.h"

static bool is_used(struct live *live)
{
	pthread_mutex_lock(&live->lock);
	bool used = live->places && live->sandbox->driver->keeping->is_up(live->sandbox);
	pthread_mutex_unlock(&live->lock);
	return used;
}

bool sandboxes_is_used(struct sandboxes *sandboxes, const char *session_id)
{
	struct live *live = live_hold(sandboxes, session_id);
	bool used = live && is_used(live);
	if (live)
		live_release(sandboxes, live);
	return used;
}

/* Takes the reference. */
static bool is_news(struct live *live, struct sandbox_news *news)
{
	pthread_mutex_lock(&live->lock);
	struct sandbox_news before = live->seen;
	live->seen = *news;
	pthread_mutex_unlock(&live->lock);
	bool same = before.config == news->config && !memcmp(before.record, news->record, sizeof(news->record));
	config_unref(before.config);
	return !same;
}

void sandboxes_watch(struct sandboxes *sandboxes,
                     bool (*look)(void *arg, const char *session_id, struct sandbox_news *ret_news),
                     void (*change)(void *arg, const char *session_id), void *arg)
{
	size_t count;
	struct live **all = live_hold_all(sandboxes, &count);
	for (size_t i = 0; i < count; i++) {
		struct sandbox_news news;
		if (is_used(all[i]) && look(arg, all[i]->session_id, &news) && is_news(all[i], &news))
			change(arg, all[i]->session_id);
		live_release(sandboxes, all[i]);
	}
	free(all);
}

static int refresh(struct live *live, const struct sandbox_request *request, struct cordon_error *err)
{
	struct sandbox_request wanted = *request;
	const struct live_network *network = live->networks;
	if (!live->sandbox || live->sandbox->driver != request->driver ||
	    strcmp(live->session_made, request->session_made) ||
	    !live->sandbox->driver->keeping->is_up(live->sandbox) || !network || !network->egress ||
	    network->is_host != (request->walls.profile->network == NETWORK_ALL))
		return 0;
	wanted.asks |= network->egress->facts.asks;
	if (network->environment)
		wanted.environment = network->environment;
	return live_connect(live, &wanted, err) < 0 ? -1 : live_publish(live, &wanted, err);
}

int sandboxes_refresh(struct sandboxes *sandboxes, const struct sandbox_request *request, struct cordon_error *err)
{
	struct live *live = live_hold(sandboxes, request->session_id);
	if (!live)
		return 0;
	pthread_mutex_lock(&live->lock);
	int result = refresh(live, request, err);
	pthread_mutex_unlock(&live->lock);
	live_release(sandboxes, live);
	return result;
}

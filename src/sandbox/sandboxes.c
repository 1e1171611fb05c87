/* The table of sandboxes: see sandboxes.h. */
#include "sandbox/sandboxes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "config/config.h"
#include "sandbox/live.h"

#define IDLE_MS (10 * 60 * 1000)        /* then one is lowered */
#define DESCRIPTORS 16                  /* that one takes, about */
#define LIVE_MIN 8

struct sandboxes *sandboxes_new(void)
{
	struct sandboxes *sandboxes = calloc(1, sizeof(*sandboxes));
	if (sandboxes)
		pthread_mutex_init(&sandboxes->lock, NULL);
	return sandboxes;
}

static void free_live(struct live *live)
{
	/* First, so that nothing uses its network any more. */
	if (live->sandbox)
		live->sandbox->driver->lower(live->sandbox);
	live_disconnect(live, true);
	publish_free(live->publish);
	live_close_ports(live);
	config_unref(live->seen.config);
	pthread_mutex_destroy(&live->lock);
	free(live->session_id);
	free(live->session_made);
	free(live);
}

/* ---- the table, under its lock ----------------------------------------------------------------------------------- */

static void retire(struct sandboxes *sandboxes, struct live *live)
{
	for (struct live **at = &sandboxes->first; *at; at = &(*at)->next)
		if (*at == live) {
			*at = live->next;
			sandboxes->count--;
			live->retired = true;
			return;
		}
}

static struct live *find(struct sandboxes *sandboxes, const char *session_id)
{
	struct live *live = sandboxes->first;
	while (live && strcmp(live->session_id, session_id))
		live = live->next;
	return live;
}

/* Half of the descriptors that this process may have. */
static size_t most_live(void)
{
	struct rlimit limit;
	size_t most = getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY
	                      ? LIVE_MIN
	                      : limit.rlim_cur / (2 * DESCRIPTORS);
	return most < LIVE_MIN ? LIVE_MIN : most;
}

/* The one that was idle for longest, where there are too many; or NULL. */
static struct live *take_oldest(struct sandboxes *sandboxes)
{
	struct live *oldest = NULL;
	if (sandboxes->count < most_live())
		return NULL;
	for (struct live *live = sandboxes->first; live; live = live->next)
		if (!live->users && (!oldest || live->idle_since_ms < oldest->idle_since_ms))
			oldest = live;
	if (oldest)
		retire(sandboxes, oldest);
	return oldest;
}

static struct live *add(struct sandboxes *sandboxes, const char *session_id, const char *session_made)
{
	struct live *live = calloc(1, sizeof(*live));
	if (!live)
		return NULL;
	live->session_id = strdup(session_id);
	live->session_made = strdup(session_made);
	if (!live->session_id || !live->session_made) {
		free(live->session_id);
		free(live->session_made);
		free(live);
		return NULL;
	}
	pthread_mutex_init(&live->lock, NULL);
	live->next = sandboxes->first;
	sandboxes->first = live;
	sandboxes->count++;
	return live;
}

/* ---- use --------------------------------------------------------------------------------------------------------- */

/* Counts a user in. A sandbox of an earlier session of that id is none of this one's. */
static struct live *use(struct sandboxes *sandboxes, const struct sandbox_request *request)
{
	struct live *gone = NULL;
	pthread_mutex_lock(&sandboxes->lock);
	struct live *live = find(sandboxes, request->session_id), *old = NULL;
	if (live && strcmp(live->session_made, request->session_made)) {
		retire(sandboxes, live);
		gone = live->users ? NULL : live;
		live = NULL;
	}
	if (!live && request->is_usual) {
		old = take_oldest(sandboxes);
		live = add(sandboxes, request->session_id, request->session_made);
	}
	if (live)
		live->users++;
	pthread_mutex_unlock(&sandboxes->lock);
	if (gone)
		free_live(gone);
	if (old)
		free_live(old);
	return live;
}

static void unuse(struct sandboxes *sandboxes, struct live *live, bool retires, bool is_lost)
{
	pthread_mutex_lock(&sandboxes->lock);
	if (retires && !live->retired) {
		retire(sandboxes, live);
		/* Without memory for it nothing is told. */
		struct live *next = is_lost ? add(sandboxes, live->session_id, live->session_made) : NULL;
		if (next) {
			next->follows_lost = true;
			next->idle_since_ms = clock_ms();
		}
	}
	live->users--;
	live->idle_since_ms = clock_ms();
	bool last = live->retired && !live->users;
	pthread_mutex_unlock(&sandboxes->lock);
	if (last)
		free_live(live);
}

struct live *live_hold(struct sandboxes *sandboxes, const char *session_id)
{
	pthread_mutex_lock(&sandboxes->lock);
	struct live *live = find(sandboxes, session_id);
	if (live)
		live->users++;
	pthread_mutex_unlock(&sandboxes->lock);
	return live;
}

struct live **live_hold_all(struct sandboxes *sandboxes, size_t *ret_count)
{
	size_t count = 0;
	pthread_mutex_lock(&sandboxes->lock);
	struct live **all = calloc(sandboxes->count + 1, sizeof(*all));
	for (struct live *live = all ? sandboxes->first : NULL; live; live = live->next) {
		live->users++;
		all[count++] = live;
	}
	pthread_mutex_unlock(&sandboxes->lock);
	*ret_count = count;
	return all;
}

/* Who looks at a sandbox does not use it: it is idle for as long as before. */
void live_release(struct sandboxes *sandboxes, struct live *live)
{
	pthread_mutex_lock(&sandboxes->lock);
	live->users--;
	bool last = live->retired && !live->users;
	pthread_mutex_unlock(&sandboxes->lock);
	if (last)
		free_live(live);
}

/* What runs, for people: all, or what is not in this network. NULL: nothing. */
static const char *list_running(const struct live *live, struct arena *arena, const bool *not_in_host)
{
	const char *list = NULL;
	for (const struct sandbox_place *place = live->places; place; place = place->next)
		if (!not_in_host || place->in_host_network != *not_in_host)
			list = arena_printf(arena, "%s%s%s (%s)", list ? list : "", list ? ", " : "",
			                    place->argv->items[0], place->audit_id);
	return list;
}

/* With the lock held: the first command whose network is the host's, or the first whose network no longer is. */
static bool changes_network(const struct live *live, const struct sandbox_request *request)
{
	return live->networks && live->networks->is_host != (request->walls.profile->network == NETWORK_ALL);
}

/* With the lock held: it cannot have the walls that it is to have. */
static void lower_for(struct live *live, const struct sandbox_request *request, struct sandbox_place *place)
{
	const struct driver_keeping *keeping = live->sandbox->driver->keeping;
	if (keeping->is_up(live->sandbox))
		place->ended = list_running(live, request->walls.arena, NULL);
	keeping->kill(live->sandbox);
}

/* With the lock held. 0: place->view is set, or the command has a sandbox of its own. 1: another sandbox is needed. */
static int bring_up_to_date(struct live *live, const struct sandbox_request *request, struct sandbox_place *place,
                            struct cordon_error *err)
{
	const struct driver *driver = request->driver;
	if (live->sandbox && live->sandbox->driver != driver)
		return request->is_usual;
	if (!request->is_usual && (!live->sandbox || request->hides_names || !live_has_network(live, request)))
		return 0;
	if (!live->sandbox) {
		if (driver->raise(driver, &request->walls, &live->sandbox, err) < 0)
			return -1;
		live->raised_ms = clock_ms();
		if (live_connect_first(live, request, err) < 0)
			return -1;
	}
	bool in_host = request->walls.profile->network == NETWORK_ALL;
	const char *left = changes_network(live, request) ? list_running(live, request->walls.arena, &in_host) : NULL;
	int result = driver->keeping->enter(live->sandbox, &request->walls, request->is_usual, &place->view, err);
	if (result == 0 && place->view &&
	    (live_connect(live, request, err) < 0 || live_publish(live, request, err) < 0)) {
		driver->keeping->leave(live->sandbox, place->view);
		place->view = NULL;
		return -1;
	}
	place->left = place->view ? left : NULL;
	return result;
}

static void count_in(struct live *live, const struct sandbox_request *request, struct sandbox_place *place)
{
	place->live = live;
	place->follows_lost = live->follows_lost;
	live->follows_lost = false;
	place->audit_id = request->audit_id;
	place->argv = request->argv;
	place->is_job = request->is_job;
	place->in_host_network = request->walls.profile->network == NETWORK_ALL;
	place->since_ms = clock_ms();
	place->next = live->places;
	live->places = place;
}

int sandboxes_enter(struct sandboxes *sandboxes, const struct sandbox_request *request, struct sandbox_place *place,
                    struct cordon_error *err)
{
	int result = 1;
	*place = (struct sandbox_place){ 0 };
	for (int attempt = 0; attempt < 2 && result > 0; attempt++) {
		struct live *live = use(sandboxes, request);
		if (!live)
			return request->is_usual ? fail_oom(err) : 0;
		pthread_mutex_lock(&live->lock);
		result = bring_up_to_date(live, request, place, err);
		bool entered = result == 0 && place->view;
		if (entered)
			count_in(live, request, place);
		bool raised = live->sandbox;
		bool lost = live->follows_lost || (result > 0 && !live->sandbox->driver->keeping->is_up(live->sandbox));
		if (result > 0)
			lower_for(live, request, place);
		pthread_mutex_unlock(&live->lock);
		if (!entered)
			unuse(sandboxes, live, result > 0 || !raised, lost);
	}
	if (result > 0)
		return fail(err, CORDON_E_INTERNAL, 0, "sandbox", "the session's sandbox ends as soon as it is raised");
	return result;
}

void sandboxes_leave(struct sandboxes *sandboxes, struct sandbox_place *place, enum sandbox_end end)
{
	struct live *live = place->live;
	if (!live)
		return;
	pthread_mutex_lock(&live->lock);
	live->sandbox->driver->keeping->leave(live->sandbox, place->view);
	for (struct sandbox_place **at = &live->places; *at; at = &(*at)->next)
		if (*at == place) {
			*at = place->next;
			break;
		}
	live_disconnect(live, false);
	if (end != SANDBOX_STAYS)
		live->sandbox->driver->keeping->kill(live->sandbox);
	pthread_mutex_unlock(&live->lock);
	place->live = NULL;
	unuse(sandboxes, live, end != SANDBOX_STAYS, end == SANDBOX_LOST);
}

struct sandbox *sandbox_of(const struct sandbox_place *place)
{
	return place->live->sandbox;
}

int sandbox_join_egress(const struct sandbox_place *place, const struct egress_command_facts *facts,
                        struct egress_command **ret_command, struct cordon_error *err)
{
	pthread_mutex_lock(&place->live->lock);
	struct egress *egress = live_egress(place->live, place->in_host_network);
	int result = egress ? egress_join(egress, facts, ret_command, err) : 0;
	pthread_mutex_unlock(&place->live->lock);
	return result;
}

void sandbox_set_running(struct sandbox_place *place, struct running *running)
{
	if (!place->live)
		return;
	pthread_mutex_lock(&place->live->lock);
	place->running = running;
	pthread_mutex_unlock(&place->live->lock);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* One that is in use is ended, and freed by its last user. */
static void lower(struct sandboxes *sandboxes, struct live *live)
{
	pthread_mutex_lock(&live->lock);
	if (live->sandbox)
		live->sandbox->driver->keeping->kill(live->sandbox);
	live_close_ports(live);
	pthread_mutex_unlock(&live->lock);
	unuse(sandboxes, live, true, false);
}

void sandboxes_retire(struct sandboxes *sandboxes, const struct sandbox_place *place)
{
	if (!place->live)
		return;
	pthread_mutex_lock(&sandboxes->lock);
	if (!place->live->retired)
		retire(sandboxes, place->live);
	pthread_mutex_unlock(&sandboxes->lock);
}

void sandboxes_lower(struct sandboxes *sandboxes, const char *session_id)
{
	struct live *live = live_hold(sandboxes, session_id);
	if (live)
		lower(sandboxes, live);
}

/* Those that are not in use and have been idle since before this, or whose session is no longer active. */
static struct live *take_idle(struct sandboxes *sandboxes, int64_t before_ms,
                              bool (*is_active)(void *arg, const char *session_id), void *arg)
{
	pthread_mutex_lock(&sandboxes->lock);
	struct live *live = sandboxes->first;
	while (live && (live->users || (live->idle_since_ms > before_ms && is_active(arg, live->session_id))))
		live = live->next;
	if (live)
		live->users++;
	pthread_mutex_unlock(&sandboxes->lock);
	return live;
}

bool sandboxes_sweep(struct sandboxes *sandboxes, bool (*is_active)(void *arg, const char *session_id), void *arg)
{
	int64_t before_ms = clock_ms() - IDLE_MS;
	for (struct live *live; (live = take_idle(sandboxes, before_ms, is_active, arg));)
		lower(sandboxes, live);
	pthread_mutex_lock(&sandboxes->lock);
	bool any = sandboxes->first;
	pthread_mutex_unlock(&sandboxes->lock);
	return any;
}

void sandboxes_free(struct sandboxes *sandboxes)
{
	if (!sandboxes)
		return;
	for (struct live *live; (live = sandboxes->first);) {
		sandboxes->first = live->next;
		free_live(live);
	}
	pthread_mutex_destroy(&sandboxes->lock);
	free(sandboxes);
}

/* Which place a command takes: see warm.h. */
#include "warm.h"

#include <poll.h>
#include <string.h>

const char *warm_house_id(const struct execution *execution)
{
	return warm_is_fresh(execution) ? "" : execution->session.id;
}

static bool fits(const struct profile *profile)
{
	size_t size = 0;
	const struct strings *const lists[] = { &profile->argv, &profile->environment, &profile->candidates };
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t j = 0; j < lists[i]->count; j++)
			size += strlen(lists[i]->items[j]) + 32;
	return size < SLOT_ORDERS_MAX / 2;
}

bool warm_is_for(const struct execution *execution)
{
	const uint32_t needed = WALL_BIT(FILESYSTEM) | WALL_BIT(PROCESSES) | WALL_BIT(DESCRIPTORS);
	const struct profile *profile = &execution->profile.profile;
	return execution->cordon->warm && !execution->probe && execution->session.driver->renew && !execution->request->tty &&
	       (profile->walls & needed) == needed && (warm_is_fresh(execution) || !execution->session.one_off) &&
	       execution->session.config->walls != WALLS_COLD && fits(profile);
}

/* Its walls were decided on before; are they what has been decided on now? The walk has seen the workspace since. */
static bool is_sound(const struct execution *execution, const struct warm_place *place)
{
	struct pollfd ended = { .fd = place->slot.socket_fd, .events = POLLIN };
	return place->mounts == execution->mounts && slot_covers_hold(&place->slot, place->covers) &&
	       poll(&ended, 1, 0) == 0;
}

/* With the lock. */
struct warm_mould *warm_mould_find(struct warm *warm, const char *id, const struct profile_key *key,
                                     struct warm_house **ret_house)
{
	for (struct warm_house *house = *warm_bucket(warm, id); house; house = house->next)
		for (struct warm_mould *mould = strcmp(house->id, id) ? NULL : house->moulds; mould; mould = mould->next)
			if (profile_key_same(&mould->key, key)) {
				*ret_house = house;
				return mould;
			}
	return NULL;
}

static void adopt(struct execution *execution, struct warm_place *place)
{
	execution->run.slot = place->slot;
	execution->run.group = place->group;
	execution->run.in_slot = true;
	close(take_fd(&execution->run.slot.root_fd));
	free(place->covers);
	free(place);
}

static void copy_texts(struct execution *execution, const struct warm_mould *mould)
{
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		execution->run.isolation[wall] = mould->isolation[wall] ? arena_strdup(&execution->arena, mould->isolation[wall])
		                                                       : NULL;
	if (execution->run.isolation[CORDON_WALL_MASKED])
		execution->run.isolation[CORDON_WALL_MASKED] = driver_masked_text(&execution->arena, &execution->profile.profile);
}

/* With the lock: a place of this mould, and its texts. */
static struct warm_place *take_ready(struct warm *warm, struct execution *execution, struct warm_mould *mould)
{
	struct warm_place *place = warm_place_pop(warm, mould);
	if (place)
		copy_texts(execution, mould);
	return place;
}

/* With the lock: a command has come to its walls. */
static void use(struct warm *warm, const struct execution *execution, struct warm_house *house, struct warm_mould *mould)
{
	uint64_t now = warm_now_ms();
	mould->wanted = warm_is_fresh(execution) || now - mould->used_ms < WARM_SOON_MS ? WARM_MORE_PLACES : 1;
	mould->gap_ms = now - mould->used_ms;
	house->used_ms = mould->used_ms = now;
	if (!house->left)
		warm_mould_want(warm, mould);
}

/* With the lock, which is let go meanwhile. The plan is there; to make it anew would take as long again. */
static struct warm_place *make_now(struct warm *warm, struct execution *execution, struct warm_house *house,
                                   struct warm_mould *mould)
{
	struct warm_place *place = NULL;
	struct cordon_error ignored;
	mould->awaited++;
	pthread_mutex_unlock(&warm->lock);
	bool made = warm_place_new(house, mould, &place, &ignored) == 0;
	pthread_mutex_lock(&warm->lock);
	mould->awaited--;
	if (made)
		copy_texts(execution, mould);
	return place;
}

/* With the lock, which is let go meanwhile: one that is being made, and that nobody else waits for, is there sooner than
 * another would be. *ret_made: there was none. *ret_free is to be freed without the lock, or NULL. */
static struct warm_place *take_or_await(struct warm *warm, struct execution *execution, struct warm_house *house,
                                        struct warm_mould *mould, bool *ret_made, struct warm_house **ret_free)
{
	house->users++;
	mould->awaited++;
	while (!mould->places && mould->making >= mould->awaited)
		pthread_cond_wait(&warm->made, &warm->lock);
	mould->awaited--;
	use(warm, execution, house, mould);
	struct warm_place *place = house->left ? NULL : take_ready(warm, execution, mould);
	*ret_made = !place && !house->left;
	if (*ret_made)
		place = make_now(warm, execution, house, mould);
	warm_house_leave(house, ret_free);
	return place;
}

bool warm_take(struct execution *execution)
{
	struct warm *warm = execution->cordon->warm;
	struct warm_house *house, *gone;
	struct warm_place *place = NULL;
	struct profile_key key;
	bool made = false, sound = false;
	if (!warm_is_for(execution) || profile_walls_key(&execution->arena, &execution->profile.profile, &key) < 0)
		return false;
	while (!sound && !made) {
		gone = NULL;
		pthread_mutex_lock(&warm->lock);
		struct warm_mould *mould = warm_mould_find(warm, warm_house_id(execution), &key, &house);
		place = mould ? take_or_await(warm, execution, house, mould, &made, &gone) : NULL;
		pthread_mutex_unlock(&warm->lock);
		if (gone)
			warm_house_free(gone);
		if (!place)
			return false;
		sound = is_sound(execution, place);
		if (!sound)
			warm_place_free(place);
	}
	if (sound)
		adopt(execution, place);
	return sound;
}

/* Whether one waits is known before what walls are wanted; mostly it is the right one. */
bool warm_expects(struct execution *execution)
{
	struct warm *warm = execution->cordon->warm;
	bool waits = false;
	if (!warm)
		return false;
	const char *id = warm_house_id(execution);
	pthread_mutex_lock(&warm->lock);
	for (struct warm_house *house = *warm_bucket(warm, id); house && !waits; house = house->next)
		for (struct warm_mould *mould = strcmp(house->id, id) ? NULL : house->moulds; mould && !waits; mould = mould->next)
			waits = mould->count;
	pthread_mutex_unlock(&warm->lock);
	return waits;
}

void warm_refill(struct execution *execution)
{
	struct warm *warm = execution->cordon->warm;
	if (!execution->run.in_slot)
		return;
	pthread_mutex_lock(&warm->lock);
	warm_wake(warm);
	pthread_mutex_unlock(&warm->lock);
}

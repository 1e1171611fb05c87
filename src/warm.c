/* Which walls are up: houses and moulds, made and taken down; see warm.h. One lock is over all of it and is never held while
 * something is made or taken down. */
#include "warm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

uint64_t warm_now_ms(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

unsigned warm_most(unsigned most, unsigned share)
{
	struct rlimit files;
	bool few = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / share < most;
	return few ? (unsigned)(files.rlim_cur / share) : most;
}

struct warm_house **warm_bucket(struct warm *warm, const char *id)
{
	uint32_t hash = 2166136261u;
	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * 16777619u;
	return &warm->buckets[hash % WARM_BUCKETS];
}

/* ---- taking down ------------------------------------------------------------------------------------------------ */

void warm_house_free(struct warm_house *house)
{
	while (house->moulds) {
		struct warm_mould *mould = house->moulds;
		house->moulds = mould->next;
		while (mould->places) {
			struct warm_place *place = mould->places;
			mould->places = place->next;
			warm_place_free(place);
		}
		warm_mould_free(mould);
	}
	commons_close(&house->commons);
	keeper_unref(house->keeper);
	free(house);
}

/* With the lock. Where there are no houses there is no process. */
static void leave_keepers(struct warm *warm)
{
	for (size_t i = 0; i < ARRAY_SIZE(warm->keepers); i++) {
		keeper_unref(warm->keepers[i]);
		warm->keepers[i] = NULL;
	}
}

/* With the lock; *link leads to it. It is the caller's to free, without the lock, unless somebody is busy with it. */
struct warm_house *warm_house_unlink(struct warm *warm, struct warm_house **link)
{
	struct warm_house *house = *link;
	*link = house->next;
	if (!--warm->houses)
		leave_keepers(warm);
	for (struct warm_mould *mould = house->moulds; mould; mould = mould->next)
		warm_mould_leave(warm, mould);
	house->left = true;
	house->next = NULL;
	return house->users ? NULL : house;
}

/* With the lock; *ret_free is to be freed without it, or NULL. */
void warm_house_leave(struct warm_house *house, struct warm_house **ret_free)
{
	house->users--;
	*ret_free = house->left && !house->users ? house : NULL;
}

static void drop(struct warm *warm, const char *id)
{
	struct warm_house *gone = NULL;
	pthread_mutex_lock(&warm->lock);
	for (struct warm_house **link = warm_bucket(warm, id); *link;) {
		if (strcmp((*link)->id, id)) {
			link = &(*link)->next;
			continue;
		}
		struct warm_house *house = warm_house_unlink(warm, link);
		if (house) {
			house->next = gone;
			gone = house;
		}
	}
	pthread_mutex_unlock(&warm->lock);
	while (gone) {
		struct warm_house *next = gone->next;
		warm_house_free(gone);
		gone = next;
	}
}

void warm_drop(struct cordon *cordon, const char *id)
{
	if (cordon->warm)
		drop(cordon->warm, id);
}

void warm_keep(struct cordon *cordon, const char *id)
{
	struct warm *warm = cordon->warm;
	if (!warm)
		return;
	pthread_mutex_lock(&warm->lock);
	for (struct warm_house *house = *warm_bucket(warm, id); house; house = house->next)
		if (!strcmp(house->id, id))
			house->used_ms = warm_now_ms();
	pthread_mutex_unlock(&warm->lock);
}

struct warm *warm_new(void)
{
	struct warm *warm = calloc(1, sizeof(*warm));
	pthread_condattr_t attributes;
	if (!warm)
		return NULL;
	warm->wanting = (struct warm_ring){ &warm->wanting, &warm->wanting };
	warm->holding = (struct warm_ring){ &warm->holding, &warm->holding };
	pthread_mutex_init(&warm->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&warm->wanted, &attributes);
	pthread_cond_init(&warm->made, &attributes);
	pthread_condattr_destroy(&attributes);
	return warm;
}

void warm_free(struct warm *warm)
{
	if (!warm)
		return;
	pthread_mutex_lock(&warm->lock);
	warm->ending = true;
	pthread_cond_signal(&warm->wanted);
	pthread_mutex_unlock(&warm->lock);
	if (warm->has_thread)
		pthread_join(warm->thread, NULL);
	for (size_t i = 0; i < WARM_BUCKETS; i++)
		while (warm->buckets[i])
			warm_house_free(warm_house_unlink(warm, &warm->buckets[i]));
	leave_keepers(warm);
	keeper_sweep(true);
	pthread_cond_destroy(&warm->made);
	pthread_cond_destroy(&warm->wanted);
	pthread_mutex_destroy(&warm->lock);
	free(warm);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* With the lock. One whose keeper is gone is nobody's any more; *ret_free is to be freed without the lock. */
static struct warm_house *find_house(struct warm *warm, const char *id, uint64_t shared, struct warm_house **ret_free)
{
	for (struct warm_house **link = warm_bucket(warm, id); *link; link = &(*link)->next) {
		if (strcmp((*link)->id, id) || (*link)->commons.shared != shared)
			continue;
		if (keeper_is_alive((*link)->keeper))
			return *link;
		*ret_free = warm_house_unlink(warm, link);
		break;
	}
	return NULL;
}

/* With the lock. The one that was not used for longest makes room, unless somebody is busy with each of them. */
static struct warm_house *unlink_idle(struct warm *warm)
{
	struct warm_house **oldest = NULL;
	for (size_t i = 0; i < WARM_BUCKETS; i++)
		for (struct warm_house **link = &warm->buckets[i]; *link; link = &(*link)->next)
			if (!(*link)->users && (!oldest || (*link)->used_ms < (*oldest)->used_ms))
				oldest = link;
	return oldest ? warm_house_unlink(warm, oldest) : NULL;
}

/* The keeper of launches like this one, started if it must be. */
static struct keeper *get_keeper(struct warm *warm, const struct launch *launch, struct cordon_error *err)
{
	struct keeper **kept = &warm->keepers[launch->become], *keeper = NULL, *old;
	pthread_mutex_lock(&warm->lock);
	if (*kept && keeper_is_alive(*kept))
		keeper = keeper_ref(*kept);
	pthread_mutex_unlock(&warm->lock);
	if (keeper || keeper_start(launch, &keeper, err) < 0)
		return keeper;
	/* Of two that are started at a time, one is its own house's alone. */
	pthread_mutex_lock(&warm->lock);
	old = *kept;
	*kept = keeper_ref(keeper);
	pthread_mutex_unlock(&warm->lock);
	keeper_unref(old);
	return keeper;
}

/* The session's house with what its commands share, of which the caller is a user. NULL where there can be none. */
static struct warm_house *enter_house(struct warm *warm, const struct execution *execution, uint64_t shared,
                                      struct cordon_error *err)
{
	const char *id = warm_house_id(execution);
	struct warm_house *made, *gone = NULL;
	pthread_mutex_lock(&warm->lock);
	struct warm_house *house = find_house(warm, id, shared, &gone);
	if (house)
		house->users++;
	unsigned most = warm_most(WARM_HOUSES_MAX, WARM_HOUSES_SHARE);
	if (!house && !gone && warm->houses >= most)
		gone = unlink_idle(warm);
	bool full = warm->houses >= most;
	pthread_mutex_unlock(&warm->lock);
	if (gone)
		warm_house_free(gone);
	if (house)
		return house;
	if (full) {
		fail(err, CORDON_E_INTERNAL, 0, id, "the walls of as many sessions as can be are up");
		return NULL;
	}
	size_t length = strlen(id) + 1;
	if (!(made = calloc(1, sizeof(*made) + length))) {
		fail_oom(err);
		return NULL;
	}
	memcpy(made->id, id, length);
	made->users = 1;
	made->used_ms = warm_now_ms();
	made->keeper = get_keeper(warm, &execution->run.launch, err);
	if (!made->keeper || commons_make(&execution->run.launch, shared, &made->commons, err) < 0) {
		warm_house_free(made);
		return NULL;
	}
	/* Of two that made one at a time, the second is not needed. */
	gone = NULL;
	pthread_mutex_lock(&warm->lock);
	house = find_house(warm, id, shared, &gone);
	struct warm_house **bucket = warm_bucket(warm, id);
	if (house) {
		house->users++;
	} else {
		made->next = *bucket;
		*bucket = made;
		warm->houses++;
	}
	pthread_mutex_unlock(&warm->lock);
	if (gone)
		warm_house_free(gone);
	if (house)
		warm_house_free(made);
	return house ? house : made;
}

/* With the lock. The one that was not used for longest makes room, if nobody is busy with it. */
static struct warm_mould *unlink_oldest(struct warm *warm, struct warm_house *house)
{
	struct warm_mould **oldest = NULL;
	unsigned count = 0;
	for (struct warm_mould **link = &house->moulds; *link; link = &(*link)->next, count++)
		if (!(*link)->making && !(*link)->awaited && (!oldest || (*link)->used_ms < (*oldest)->used_ms))
			oldest = link;
	if (count < WARM_MOULDS_MAX || !oldest)
		return NULL;
	struct warm_mould *mould = *oldest;
	*oldest = mould->next;
	warm_mould_leave(warm, mould);
	return mould;
}

static void add_mould(struct warm *warm, struct warm_house *house, struct warm_mould *mould)
{
	struct warm_house *gone, *other;
	struct warm_mould *old = NULL;
	pthread_mutex_lock(&warm->lock);
	/* Two commands at a time may both have found none. */
	bool twice = house->left || warm_mould_find(warm, house->id, &mould->key, &other);
	if (!twice) {
		old = unlink_oldest(warm, house);
		mould->next = house->moulds;
		mould->house = house;
		house->moulds = mould;
		mould->used_ms = house->used_ms = warm_now_ms();
		mould->gap_ms = WARM_RAISED_GAP_MS;
		warm_mould_want(warm, mould);
	}
	warm_house_leave(house, &gone);
	pthread_mutex_unlock(&warm->lock);
	if (twice)
		warm_mould_free(mould);
	while (old && old->places) {
		struct warm_place *place = old->places;
		old->places = place->next;
		warm_place_free(place);
	}
	if (old)
		warm_mould_free(old);
	if (gone)
		warm_house_free(gone);
}

/* Of a user. Where its keeper seems to be gone nobody is to find it any more: the next command raises another. */
static void leave_house(struct warm *warm, struct warm_house *house, bool forget)
{
	struct warm_house *gone;
	pthread_mutex_lock(&warm->lock);
	for (struct warm_house **link = warm_bucket(warm, house->id); forget && *link && !house->left; link = &(*link)->next)
		if (*link == house) {
			warm_house_unlink(warm, link);
			break;
		}
	warm_house_leave(house, &gone);
	pthread_mutex_unlock(&warm->lock);
	if (gone)
		warm_house_free(gone);
}

/* The house, of which the caller is a user, and a mould that is not in it yet. */
static bool found(struct execution *execution, struct warm_house **ret_house, struct warm_mould **ret_mould,
                  struct cordon_error *err)
{
	const struct launch *launch = &execution->run.launch;
	struct warm *warm = execution->cordon->warm;
	if (!warm_is_for(execution) || !launch->root) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, "sandbox.walls", "the walls of these commands do not stay up");
		fail_remedy(err, "they do with the driver namespaces and sandbox.walls = \"warm\" or \"parked\"");
		return false;
	}
	uint64_t shared = warm_shared(execution);
	struct warm_house *house = enter_house(warm, execution, shared, err);
	if (!house)
		return false;
	if (warm_mould_new(execution, shared, ret_mould, err) < 0) {
		leave_house(warm, house, false);
		return false;
	}
	*ret_house = house;
	return true;
}

int warm_raise(struct execution *execution, struct cordon_error *err)
{
	struct warm *warm = execution->cordon->warm;
	struct warm_house *house;
	struct warm_mould *mould;
	if (!found(execution, &house, &mould, err))
		return -1;
	add_mould(warm, house, mould);
	pthread_mutex_lock(&warm->lock);
	warm_wake(warm);
	pthread_mutex_unlock(&warm->lock);
	return 0;
}

/* What a slot was given of the launch's mounts is used up, even where it failed. */
static int renew(struct execution *execution, struct cordon_error *err)
{
	driver_release(&execution->run.held);
	return execution->session.driver->renew(&execution->arena, &execution->run.launch, &execution->run.held, err);
}

int warm_make(struct execution *execution, struct cordon_error *err)
{
	struct warm *warm = execution->cordon->warm;
	struct cordon_error failure;
	struct warm_house *house;
	struct warm_mould *mould;
	if (!found(execution, &house, &mould, &failure))
		return 0;
	struct slot *slot = &execution->run.slot;
	bool begun = slot_begin(house->keeper, &house->commons, &mould->plan, &execution->run.launch, slot, &failure) == 0;
	if (!begun || slot_await_ready(slot, house->keeper, &failure) < 0) {
		slot_end(slot);
		warm_mould_free(mould);
		/* What a slot itself tells (a workspace that changes meanwhile) is no reason to take the session's network down. */
		leave_house(warm, house, failure.class == CORDON_E_INTERNAL);
		return begun ? renew(execution, err) : 0;
	}
	execution->run.in_slot = true;
	close(take_fd(&slot->root_fd));
	add_mould(warm, house, mould);
	return 0;
}

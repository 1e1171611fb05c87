/* Which walls are up, who takes them, and the thread that looks after them: see warm.h. One lock is over all of it and is
 * never held while something is made or taken down. */
#include "warm.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "run/linger.h"

#define BUCKETS 1024
#define TICK_MS 1000

struct warm {
	pthread_mutex_t lock;
	pthread_cond_t wanted, made;
	pthread_t thread;
	bool has_thread, ending;
	struct warm_house *buckets[BUCKETS];
	unsigned houses, places, shells;
};

static uint64_t now_ms(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static struct warm_house **bucket_of(struct warm *warm, const char *id)
{
	uint32_t hash = 2166136261u;
	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * 16777619u;
	return &warm->buckets[hash % BUCKETS];
}

/* ---- taking down ------------------------------------------------------------------------------------------------ */

static void free_house(struct warm_house *house)
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
	keeper_end(&house->keeper);
	free(house);
}

/* With the lock; *link leads to it. It is the caller's to free, without the lock, unless somebody is busy with it. */
static struct warm_house *unlink_house(struct warm *warm, struct warm_house **link)
{
	struct warm_house *house = *link;
	*link = house->next;
	warm->houses--;
	for (struct warm_mould *mould = house->moulds; mould; mould = mould->next) {
		warm->places -= mould->count;
		warm->shells -= mould->shell != NULL;
	}
	house->left = true;
	house->next = NULL;
	return house->users ? NULL : house;
}

/* With the lock; *ret_free is to be freed without it, or NULL. */
static void leave(struct warm_house *house, struct warm_house **ret_free)
{
	house->users--;
	*ret_free = house->left && !house->users ? house : NULL;
}

static void drop(struct warm *warm, const char *id)
{
	struct warm_house *gone = NULL;
	pthread_mutex_lock(&warm->lock);
	for (struct warm_house **link = bucket_of(warm, id); *link;) {
		if (strcmp((*link)->id, id)) {
			link = &(*link)->next;
			continue;
		}
		struct warm_house *house = unlink_house(warm, link);
		if (house) {
			house->next = gone;
			gone = house;
		}
	}
	pthread_mutex_unlock(&warm->lock);
	while (gone) {
		struct warm_house *next = gone->next;
		free_house(gone);
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
	for (struct warm_house *house = *bucket_of(warm, id); house; house = house->next)
		if (!strcmp(house->id, id))
			house->used_ms = now_ms();
	pthread_mutex_unlock(&warm->lock);
}

/* ---- the thread ------------------------------------------------------------------------------------------------- */

static struct warm_place *pop_place(struct warm *warm, struct warm_mould *mould)
{
	struct warm_place *place = mould->places;
	if (!place)
		return NULL;
	mould->places = place->next;
	mould->count--;
	warm->places--;
	return place;
}

static void push_place(struct warm *warm, struct warm_mould *mould, struct warm_place *place)
{
	place->next = mould->places;
	mould->places = place;
	mould->count++;
	warm->places++;
}

static struct warm_place *take_shell(struct warm *warm, struct warm_mould *mould)
{
	struct warm_place *place = mould->shell;
	mould->shell = NULL;
	warm->shells--;
	return place;
}

/* With the lock, which is let go meanwhile. What cannot be made is not tried again before the next command asks. */
static void refill(struct warm *warm, struct warm_house *house, struct warm_mould *mould)
{
	struct warm_place *place = NULL;
	struct warm_house *gone;
	struct cordon_error ignored;
	house->users++;
	mould->making++;
	pthread_mutex_unlock(&warm->lock);
	bool made = warm_place_new(&house->keeper, mould, &place, &ignored) == 0;
	pthread_mutex_lock(&warm->lock);
	mould->making--;
	pthread_cond_broadcast(&warm->made);
	if (!made)
		mould->wanted = 0;
	bool keep = made && !house->left && warm->places < WARM_PLACES_MAX;
	if (keep)
		push_place(warm, mould, place);
	leave(house, &gone);
	pthread_mutex_unlock(&warm->lock);
	if (made && !keep)
		warm_place_free(place);
	if (gone)
		free_house(gone);
	pthread_mutex_lock(&warm->lock);
}

/* The same for a shell that was wished for. */
static void park(struct warm *warm, struct warm_house *house, struct warm_mould *mould)
{
	struct warm_place *place = NULL;
	struct warm_house *gone;
	struct cordon_error ignored;
	struct warm_shell *shell = warm_shell_copy(mould->wish);
	unsigned wishes = mould->wishes;
	house->users++;
	mould->parking = true;
	mould->park = false;
	pthread_mutex_unlock(&warm->lock);
	bool made = shell && warm_place_new(&house->keeper, mould, &place, &ignored) == 0;
	bool parked = made && warm_shell_park(shell, place, &ignored) == 0;
	pthread_mutex_lock(&warm->lock);
	mould->parking = false;
	bool keep = parked && !house->left && wishes == mould->wishes && !mould->shell && warm->shells < WARM_SHELLS_MAX;
	if (keep) {
		place->serial = mould->serial;
		mould->shell = place;
		warm->shells++;
	}
	leave(house, &gone);
	pthread_mutex_unlock(&warm->lock);
	if (!parked)
		warm_shell_free(shell);
	if (made && !keep)
		warm_place_free(place);
	if (gone)
		free_house(gone);
	pthread_mutex_lock(&warm->lock);
}

static bool wants_place(const struct warm *warm, const struct warm_mould *mould)
{
	return mould->count + mould->making < mould->wanted && warm->places < WARM_PLACES_MAX;
}

static bool wants_shell(const struct warm *warm, const struct warm_mould *mould)
{
	return mould->park && !mould->shell && !mould->parking && warm->shells < WARM_SHELLS_MAX;
}

/* With the lock. Whether there was something to make. */
static bool refill_one(struct warm *warm)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct warm_house *house = warm->buckets[i]; house; house = house->next)
			for (struct warm_mould *mould = house->moulds; mould; mould = mould->next) {
				if (!wants_shell(warm, mould) && !wants_place(warm, mould))
					continue;
				(wants_shell(warm, mould) ? park : refill)(warm, house, mould);
				return true;
			}
	return false;
}

/* With the lock. What nobody used for long; one at a time, since the lock is let go. */
static bool expire_one(struct warm *warm, uint64_t now)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct warm_house **link = &warm->buckets[i]; *link; link = &(*link)->next) {
			struct warm_house *house = *link;
			if (!house->users && now - house->used_ms > WARM_HOUSE_IDLE_MS) {
				unlink_house(warm, link);
				pthread_mutex_unlock(&warm->lock);
				free_house(house);
				pthread_mutex_lock(&warm->lock);
				return true;
			}
			for (struct warm_mould *mould = house->moulds; mould; mould = mould->next)
				if ((mould->places || mould->shell) && now - mould->used_ms > WARM_PLACE_IDLE_MS) {
					struct warm_place *place = mould->shell ? take_shell(warm, mould) : pop_place(warm, mould);
					mould->wanted = 0;
					pthread_mutex_unlock(&warm->lock);
					warm_place_free(place);
					pthread_mutex_lock(&warm->lock);
					return true;
				}
		}
	return false;
}

static void *look_after(void *argument)
{
	struct warm *warm = argument;
	pthread_mutex_lock(&warm->lock);
	while (!warm->ending) {
		if (refill_one(warm) || expire_one(warm, now_ms()))
			continue;
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += TICK_MS / 1000;
		if (warm->houses)
			pthread_cond_timedwait(&warm->wanted, &warm->lock, &until);
		else
			pthread_cond_wait(&warm->wanted, &warm->lock);
		linger_sweep();
		keeper_sweep(false);
	}
	pthread_mutex_unlock(&warm->lock);
	return NULL;
}

/* With the lock. Without a thread there is none that waits: each command has its place made on the spot. */
static void wake(struct warm *warm)
{
	sigset_t all, before;
	if (!warm->has_thread) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		warm->has_thread = pthread_create(&warm->thread, NULL, look_after, warm) == 0;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_cond_signal(&warm->wanted);
}

struct warm *warm_new(void)
{
	struct warm *warm = calloc(1, sizeof(*warm));
	pthread_condattr_t attributes;
	if (!warm)
		return NULL;
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
	for (size_t i = 0; i < BUCKETS; i++)
		while (warm->buckets[i])
			free_house(unlink_house(warm, &warm->buckets[i]));
	keeper_sweep(true);
	pthread_cond_destroy(&warm->made);
	pthread_cond_destroy(&warm->wanted);
	pthread_mutex_destroy(&warm->lock);
	free(warm);
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

static const char *house_id(const struct execution *execution)
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

static bool is_for(const struct execution *execution)
{
	const uint32_t needed = WALL_BIT(FILESYSTEM) | WALL_BIT(PROCESSES) | WALL_BIT(DESCRIPTORS);
	const struct profile *profile = &execution->profile.profile;
	return execution->cordon->warm && !execution->probe && execution->session.driver->renew && !execution->request->tty &&
	       (profile->walls & needed) == needed && (warm_is_fresh(execution) || !execution->session.one_off) &&
	       execution->session.config->walls != WALLS_COLD && fits(profile);
}

static bool is_alive(const struct warm_place *place)
{
	struct pollfd ended = { .fd = place->shell ? place->slot.control_fd : place->slot.socket_fd, .events = POLLIN };
	return poll(&ended, 1, 0) == 0;
}

/* Its walls were decided on before; are they what has been decided on now? The walk has seen the workspace since. */
static bool is_sound(const struct execution *execution, const struct warm_place *place)
{
	return place->mounts == execution->profile.mounts && slot_covers_hold(&place->slot, place->covers) && is_alive(place);
}

/* With the lock. */
static struct warm_mould *find_mould(struct warm *warm, const char *id, const struct profile_key *key,
                                     struct warm_house **ret_house)
{
	for (struct warm_house *house = *bucket_of(warm, id); house; house = house->next)
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
	execution->run.in_shell = place->shell;
	for (int i = 0; place->shell && i < 3; i++)
		execution->run.stdio_fd[i] = take_fd(&place->shell->stdio_fd[i]);
	if (place->shell)
		execution->run.shell_pidfd = take_fd(&place->shell->pidfd);
	warm_shell_free(place->shell);
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
	struct warm_place *place = pop_place(warm, mould);
	mould->wanted = warm_is_fresh(execution) ? WARM_FRESH_PLACES : 1;
	if (place)
		copy_texts(execution, mould);
	return place;
}

/* ---- parked shells ---------------------------------------------------------------------------------------------- */

/* A job is known by its id before it has walls. */
void warm_reserve(struct execution *execution)
{
	struct warm *warm = execution->cordon->warm;
	struct warm_place *place = NULL;
	if (!warm || execution->request->job || execution->request->tty || !warm_shell_is_for(execution))
		return;
	const char *id = house_id(execution), *name = execution->request->argv.items[0];
	pthread_mutex_lock(&warm->lock);
	for (struct warm_house *house = *bucket_of(warm, id); house && !place; house = house->next)
		for (struct warm_mould *mould = strcmp(house->id, id) ? NULL : house->moulds; mould && !place; mould = mould->next)
			if (mould->shell && !strcmp(mould->shell->shell->name, name))
				place = take_shell(warm, mould);
	pthread_mutex_unlock(&warm->lock);
	struct cordon_error ignored;
	if (place && (!is_alive(place) || slot_write_line(&place->slot, execution->request->argv.items[2], &ignored) < 0)) {
		warm_place_free(place);
		place = NULL;
	}
	if (place)
		memcpy(execution->audit.id, place->shell->id, sizeof(execution->audit.id));
	execution->run.reserved = place;
}

void warm_unreserve(struct execution *execution)
{
	if (execution->run.reserved)
		warm_place_free(execution->run.reserved);
	execution->run.reserved = NULL;
}

/* With the lock. What differs from the wish before it is parked when it has been wished for twice. Returns what was parked for
 * that one, to be freed without the lock; or NULL. */
static struct warm_place *wish(struct warm *warm, struct warm_mould *mould, const struct execution *execution)
{
	bool same = mould->wish && warm_shell_same(mould->wish, execution);
	mould->park = same || !mould->wish;
	if (same)
		return NULL;
	warm_shell_free(mould->wish);
	mould->wish = warm_shell_new(execution);
	mould->wishes++;
	mould->park = mould->park && mould->wish;
	return mould->shell ? take_shell(warm, mould) : NULL;
}

/* The shell that was reserved, if that is what the walk asks for. */
static bool take_reserved(struct execution *execution, const struct profile_key *key)
{
	struct warm *warm = execution->cordon->warm;
	struct warm_place *place = execution->run.reserved;
	struct warm_place *old = NULL;
	struct warm_house *house;
	pthread_mutex_lock(&warm->lock);
	struct warm_mould *mould = find_mould(warm, house_id(execution), key, &house);
	bool same = mould && place && place->serial == mould->serial && warm_shell_same(place->shell, execution);
	if (mould)
		old = wish(warm, mould, execution);
	if (same) {
		copy_texts(execution, mould);
		house->used_ms = mould->used_ms = now_ms();
	}
	pthread_mutex_unlock(&warm->lock);
	same = same && is_sound(execution, place);
	if (same) {
		execution->run.reserved = NULL;
		adopt(execution, place);
	}
	warm_unreserve(execution);
	if (old)
		warm_place_free(old);
	return same;
}

/* With the lock, which is let go meanwhile: one that is being made, and that nobody else waits for, is there sooner than
 * another would be. *ret_free is to be freed without the lock, or NULL. */
static struct warm_place *take_or_await(struct warm *warm, struct execution *execution, struct warm_house *house,
                                        struct warm_mould *mould, struct warm_house **ret_free)
{
	house->users++;
	mould->awaited++;
	while (!mould->places && mould->making >= mould->awaited)
		pthread_cond_wait(&warm->made, &warm->lock);
	mould->awaited--;
	house->used_ms = mould->used_ms = now_ms();
	struct warm_place *place = house->left ? NULL : take_ready(warm, execution, mould);
	leave(house, ret_free);
	return place;
}

bool warm_take(struct execution *execution)
{
	struct warm *warm = execution->cordon->warm;
	struct warm_house *house, *gone;
	struct warm_place *place = NULL;
	struct profile_key key;
	if (!is_for(execution) || profile_walls_key(&execution->arena, &execution->profile.profile, &key) < 0)
		return false;
	if (warm_shell_is_for(execution) && take_reserved(execution, &key))
		return true;
	do {
		if (place)
			warm_place_free(place);
		gone = NULL;
		pthread_mutex_lock(&warm->lock);
		struct warm_mould *mould = find_mould(warm, house_id(execution), &key, &house);
		place = mould ? take_or_await(warm, execution, house, mould, &gone) : NULL;
		pthread_mutex_unlock(&warm->lock);
		if (gone)
			free_house(gone);
	} while (place && !is_sound(execution, place));
	if (place)
		adopt(execution, place);
	return place;
}

/* Whether one waits is known before what walls are wanted; mostly it is the right one. */
bool warm_expects(struct execution *execution)
{
	struct warm *warm = execution->cordon->warm;
	bool waits = execution->run.reserved;
	if (!warm)
		return false;
	const char *id = house_id(execution);
	pthread_mutex_lock(&warm->lock);
	for (struct warm_house *house = *bucket_of(warm, id); house && !waits; house = house->next)
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
	wake(warm);
	pthread_mutex_unlock(&warm->lock);
}

/* The session's house with its keeper, of which the caller is a user. NULL where there can be none. */
static struct warm_house *enter_house(struct warm *warm, const struct execution *execution, uint64_t shared,
                                      struct cordon_error *err)
{
	const char *id = house_id(execution);
	struct warm_house *house, *made;
	pthread_mutex_lock(&warm->lock);
	for (house = *bucket_of(warm, id); house && (strcmp(house->id, id) || house->shared != shared);)
		house = house->next;
	if (house)
		house->users++;
	bool full = warm->houses >= WARM_HOUSES_MAX;
	pthread_mutex_unlock(&warm->lock);
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
	made->shared = shared;
	made->users = 1;
	made->used_ms = now_ms();
	if (warm_house_open(made, &execution->run.launch, err) < 0) {
		free(made);
		return NULL;
	}
	/* Of two that made one at a time, the commands of either have a network of their own until theirs is taken down. */
	pthread_mutex_lock(&warm->lock);
	struct warm_house **bucket = bucket_of(warm, id);
	made->next = *bucket;
	*bucket = made;
	warm->houses++;
	pthread_mutex_unlock(&warm->lock);
	return made;
}

/* With the lock. The one that was not used for longest makes room, if nobody is busy with it. */
static struct warm_mould *unlink_oldest(struct warm *warm, struct warm_house *house)
{
	struct warm_mould **oldest = NULL;
	unsigned count = 0;
	for (struct warm_mould **link = &house->moulds; *link; link = &(*link)->next, count++)
		if (!(*link)->making && !(*link)->parking && !(*link)->awaited && (!oldest || (*link)->used_ms < (*oldest)->used_ms))
			oldest = link;
	if (count < WARM_MOULDS_MAX || !oldest)
		return NULL;
	struct warm_mould *mould = *oldest;
	*oldest = mould->next;
	warm->places -= mould->count;
	warm->shells -= mould->shell != NULL;
	return mould;
}

static void add_mould(struct warm *warm, struct warm_house *house, struct warm_mould *mould)
{
	struct warm_house *gone, *other;
	struct warm_mould *old = NULL;
	pthread_mutex_lock(&warm->lock);
	/* Two commands at a time may both have found none. */
	bool twice = house->left || find_mould(warm, house->id, &mould->key, &other);
	if (!twice) {
		old = unlink_oldest(warm, house);
		mould->next = house->moulds;
		house->moulds = mould;
		mould->used_ms = house->used_ms = now_ms();
	}
	leave(house, &gone);
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
		free_house(gone);
}

/* A keeper that is gone: the next command raises another. */
static void forget_house(struct warm *warm, struct warm_house *house)
{
	struct warm_house *gone;
	pthread_mutex_lock(&warm->lock);
	for (struct warm_house **link = bucket_of(warm, house->id); *link && !house->left; link = &(*link)->next)
		if (*link == house) {
			unlink_house(warm, link);
			break;
		}
	leave(house, &gone);
	pthread_mutex_unlock(&warm->lock);
	if (gone)
		free_house(gone);
}

/* The house, of which the caller is a user, and a mould that is not in it yet. */
static bool found(struct execution *execution, struct warm_house **ret_house, struct warm_mould **ret_mould,
                  struct cordon_error *err)
{
	const struct launch *launch = &execution->run.launch;
	struct warm *warm = execution->cordon->warm;
	if (!is_for(execution) || !launch->root || launch->root->classic) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, "sandbox.walls", "the walls of these commands do not stay up");
		fail_remedy(err, "they do with the driver namespaces and sandbox.walls = \"warm\" or \"parked\"");
		return false;
	}
	uint64_t shared = warm_shared(execution);
	struct warm_house *house = enter_house(warm, execution, shared, err);
	if (!house)
		return false;
	if (warm_mould_new(execution, shared, ret_mould, err) < 0) {
		forget_house(warm, house);
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
	wake(warm);
	pthread_mutex_unlock(&warm->lock);
	return 0;
}

bool warm_make(struct execution *execution)
{
	struct warm *warm = execution->cordon->warm;
	struct cordon_error ignored;
	struct warm_house *house;
	struct warm_mould *mould;
	if (!found(execution, &house, &mould, &ignored))
		return false;
	mould->wish = warm_shell_new(execution);
	mould->park = mould->wish;
	struct slot *slot = &execution->run.slot;
	bool made = slot_begin(&house->keeper, &mould->plan, &execution->run.launch, slot, &ignored) == 0;
	if (!made || slot_await_ready(slot, &ignored) < 0) {
		if (made)
			slot_end(slot);
		warm_mould_free(mould);
		forget_house(warm, house);
		return false;
	}
	execution->run.in_slot = true;
	close(take_fd(&slot->root_fd));
	add_mould(warm, house, mould);
	return true;
}

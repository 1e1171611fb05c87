/* The thread that looks after walls that are up: it makes places ahead, and takes down what was not used for long; see
 * warm.h. */
#include "warm.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

#include "driver/linux/linger.h"

#define TICK_MS 1000

/* ---- who wants, and who has ------------------------------------------------------------------------------------- */

/* A member is in one ring at most. */
static void enter(struct warm_ring *ring, struct warm_ring *member)
{
	if (member->next)
		return;
	*member = (struct warm_ring){ ring->previous, ring };
	ring->previous->next = member;
	ring->previous = member;
}

static void leave(struct warm_ring *member)
{
	if (!member->next)
		return;
	member->previous->next = member->next;
	member->next->previous = member->previous;
	*member = (struct warm_ring){ NULL, NULL };
}

static struct warm_mould *of_wanting(struct warm_ring *member)
{
	return (struct warm_mould *)(void *)((char *)member - offsetof(struct warm_mould, wanting));
}

static struct warm_mould *of_holding(struct warm_ring *member)
{
	return (struct warm_mould *)(void *)((char *)member - offsetof(struct warm_mould, holding));
}

void warm_mould_want(struct warm *warm, struct warm_mould *mould)
{
	enter(&warm->wanting, &mould->wanting);
}

void warm_mould_leave(struct warm *warm, struct warm_mould *mould)
{
	warm->places -= mould->count;
	leave(&mould->wanting);
	leave(&mould->holding);
}

static void count_holding(struct warm *warm, struct warm_mould *mould)
{
	if (mould->count)
		enter(&warm->holding, &mould->holding);
	else
		leave(&mould->holding);
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

static bool has_room(const struct warm *warm)
{
	return warm->places < warm_most(WARM_PLACES_MAX, WARM_PLACES_SHARE);
}

struct warm_place *warm_place_pop(struct warm *warm, struct warm_mould *mould)
{
	struct warm_place *place = mould->places;
	if (!place)
		return NULL;
	mould->places = place->next;
	mould->count--;
	warm->places--;
	count_holding(warm, mould);
	return place;
}

static void push_place(struct warm *warm, struct warm_mould *mould, struct warm_place *place)
{
	place->next = mould->places;
	mould->places = place;
	mould->count++;
	warm->places++;
	count_holding(warm, mould);
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
	bool made = warm_place_new(house, mould, &place, &ignored) == 0;
	pthread_mutex_lock(&warm->lock);
	mould->making--;
	pthread_cond_broadcast(&warm->made);
	if (!made)
		mould->wanted = 0;
	bool keep = made && !house->left && has_room(warm);
	if (keep)
		push_place(warm, mould, place);
	warm_house_leave(house, &gone);
	pthread_mutex_unlock(&warm->lock);
	if (made && !keep)
		warm_place_free(place);
	if (gone)
		warm_house_free(gone);
	pthread_mutex_lock(&warm->lock);
}

static bool wants_place(const struct warm_mould *mould)
{
	return mould->count + mould->making < mould->wanted;
}

/* With the lock, which is let go meanwhile. Of all that wait, the one whose walls were not used for longest goes for one that is
 * wanted more often than that. With more sessions at work than there are places, none would be there long enough to be used. */
static bool make_room(struct warm *warm, const struct warm_mould *wanted)
{
	struct warm_mould *oldest = NULL;
	for (struct warm_ring *at = warm->holding.next; at != &warm->holding; at = at->next) {
		struct warm_mould *mould = of_holding(at);
		if (!oldest || mould->used_ms < oldest->used_ms)
			oldest = mould;
	}
	if (!oldest || warm_now_ms() - oldest->used_ms <= wanted->gap_ms)
		return false;
	struct warm_place *place = warm_place_pop(warm, oldest);
	oldest->wanted = 0;
	pthread_mutex_unlock(&warm->lock);
	warm_place_free(place);
	pthread_mutex_lock(&warm->lock);
	return true;
}

/* With the lock. Whether there was something to make, or to take down for that: then it is looked again. What finds no room is
 * not tried again before the next command asks. */
static bool refill_one(struct warm *warm)
{
	while (warm->wanting.next != &warm->wanting) {
		struct warm_mould *mould = of_wanting(warm->wanting.next);
		if (wants_place(mould) && has_room(warm))
			return refill(warm, mould->house, mould), true;
		if (wants_place(mould) && make_room(warm, mould))
			return true;
		leave(&mould->wanting);
	}
	return false;
}

/* With the lock, which is let go meanwhile. Places that nobody used for long; one at a time. */
static bool expire_place(struct warm *warm, uint64_t now)
{
	for (struct warm_ring *at = warm->holding.next; at != &warm->holding; at = at->next) {
		struct warm_mould *mould = of_holding(at);
		if (now - mould->used_ms <= WARM_PLACE_IDLE_MS)
			continue;
		struct warm_place *place = warm_place_pop(warm, mould);
		mould->wanted = 0;
		pthread_mutex_unlock(&warm->lock);
		warm_place_free(place);
		pthread_mutex_lock(&warm->lock);
		return true;
	}
	return false;
}

/* The same for houses, of which there may be thousands. */
static bool expire_house(struct warm *warm, uint64_t now)
{
	for (size_t i = 0; i < WARM_BUCKETS; i++)
		for (struct warm_house **link = &warm->buckets[i]; *link; link = &(*link)->next) {
			struct warm_house *house = *link;
			if (house->users || now - house->used_ms <= WARM_HOUSE_IDLE_MS)
				continue;
			warm_house_unlink(warm, link);
			pthread_mutex_unlock(&warm->lock);
			warm_house_free(house);
			pthread_mutex_lock(&warm->lock);
			return true;
		}
	return false;
}

static bool expire_one(struct warm *warm)
{
	uint64_t now = warm_now_ms();
	if (expire_place(warm, now))
		return true;
	if (now - warm->expired_ms < TICK_MS)
		return false;
	bool gone = expire_house(warm, now);
	if (!gone)
		warm->expired_ms = now;
	return gone;
}

static void *look_after(void *argument)
{
	struct warm *warm = argument;
	/* Who wakes it goes on first; what it starts is like any other. */
	sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &(struct sched_param){ 0 });
	pthread_mutex_lock(&warm->lock);
	while (!warm->ending) {
		if (refill_one(warm) || expire_one(warm))
			continue;
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += TICK_MS / 1000;
		if (warm->houses)
			pthread_cond_timedwait(&warm->wanted, &warm->lock, &until);
		else
			pthread_cond_wait(&warm->wanted, &warm->lock);
		pthread_mutex_unlock(&warm->lock);
		linger_sweep();
		keeper_sweep(false);
		pthread_mutex_lock(&warm->lock);
	}
	pthread_mutex_unlock(&warm->lock);
	return NULL;
}

/* With the lock. Without a thread there is none that waits: each command has its place made on the spot. */
void warm_wake(struct warm *warm)
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

/* Walls that stay up between commands, as part of step 5.
 *
 *     house    of a session: what its commands share (commons of driver/linux/slot.h), and the moulds of what ran in it. Those
 *              without a session, for commands that want everything fresh, have a house in common that shares nothing.
 *     mould    one set of walls: the key that tells them from others, the plan, and places that are ready
 *     place    a slot with its control group, for one command
 *
 * A place is taken by a command whose own walk decided on walls of the same key; else one is made on the spot. Then the
 * thread makes another, off the command's way. It also takes down what was not used for long; all of it is bounded. */
#pragma once
#include <pthread.h>

#include "execute.h"
#include "driver/linux/slot-covers.h"
#include "driver/linux/slot.h"

/* At most, of all; fewer where the process may have few descriptors: see warm_most(). */
#define WARM_HOUSES_MAX 4096
#define WARM_HOUSES_SHARE 8
#define WARM_PLACES_SHARE 80
#define WARM_MOULDS_MAX 4               /* of one session; the one unused longest goes */
#define WARM_PLACES_MAX 64              /* that wait, of all */
#define WARM_MORE_PLACES 2              /* that wait, of walls that are to be fresh for every command, or where one... */
#define WARM_SOON_MS 100                /* ...came as soon as this after another */
#define WARM_RAISED_GAP_MS 1000         /* walls that were asked for ahead count as used so often */
#define WARM_PLACE_IDLE_MS 60000
#define WARM_HOUSE_IDLE_MS 600000

struct warm_place {
	struct warm_place *next;
	struct slot slot;
	struct slot_covers *covers;     /* what is mounted in it where others can change names */
	uint64_t mounts;                /* the version of the host's, of which its own are copies */
	struct cgroup group;
};

/* In a ring of moulds; or not, where next is NULL. */
struct warm_ring {
	struct warm_ring *previous, *next;
};

struct warm_mould {
	struct warm_mould *next;
	struct warm_house *house;
	struct warm_ring wanting, holding;
	struct profile_key key;         /* its own */
	struct arena arena;             /* everything below */
	const struct driver *driver;
	struct launch launch;           /* its root and what slots of it need; nothing else in it */
	struct slot_plan plan;
	const char *isolation[CORDON_WALL_MAX];
	struct cgroup_search search;
	struct cgroup_bounds bounds;
	uint32_t held;                  /* what a group has to hold, the plan's rlimits being made for that */
	struct warm_place *places;
	unsigned count, wanted, making, awaited;
	uint64_t used_ms, gap_ms;       /* between the last two uses */
};

struct warm_house {
	struct warm_house *next;
	struct warm_mould *moulds;
	struct keeper *keeper;
	struct commons commons;
	unsigned users;                 /* threads that are busy with it outside the lock */
	bool left;                      /* nobody can find it any more: the last user takes it down */
	uint64_t used_ms;
	char id[];                      /* the session's; "": of no session */
};

#define WARM_BUCKETS 1024

struct warm {
	pthread_mutex_t lock;
	pthread_cond_t wanted, made;
	pthread_t thread;
	bool has_thread, ending;
	struct warm_house *buckets[WARM_BUCKETS];
	unsigned houses, places;
	struct keeper *keepers[2];      /* of all houses, by whether it is another user's (launch->become); NULL: none yet */
	struct warm_ring wanting;       /* moulds that may want a place */
	struct warm_ring holding;       /* those that have one; few, however many houses there are */
	uint64_t expired_ms;            /* when all houses were looked at */
};

/* ---- warm.c, warm-thread.c, warm-take.c: what they need of each other -------------------------------------------- */

uint64_t warm_now_ms(void);
/* Descriptors are the process's own: of those that it may have, what is kept takes less than half. One for each `share`. */
unsigned warm_most(unsigned most, unsigned share);
struct warm_house **warm_bucket(struct warm *warm, const char *id);
/* Of the walls that the execution is for. */
const char *warm_house_id(const struct execution *execution);
/* Without the lock, like all that is taken down. */
void warm_house_free(struct warm_house *house);
/* With the lock; *link leads to it. It is the caller's to free, unless somebody is busy with it: then NULL. */
struct warm_house *warm_house_unlink(struct warm *warm, struct warm_house **link);
/* With the lock, of a user; *ret_free is to be freed without it, or NULL. */
void warm_house_leave(struct warm_house *house, struct warm_house **ret_free);
/* With the lock. */
struct warm_mould *warm_mould_find(struct warm *warm, const char *id, const struct profile_key *key,
                                   struct warm_house **ret_house);
/* With the lock: it wants a place. */
void warm_mould_want(struct warm *warm, struct warm_mould *mould);
/* With the lock: what it holds does not count any more, and nobody makes anything for it. */
void warm_mould_leave(struct warm *warm, struct warm_mould *mould);
/* With the lock: a place that waits, or NULL. */
struct warm_place *warm_place_pop(struct warm *warm, struct warm_mould *mould);

/* With the lock: something is to be made. Without a thread there is none that waits: each command has its place made on the spot. */
void warm_wake(struct warm *warm);
/* May its walls stay up? */
bool warm_is_for(const struct execution *execution);

/* ---- warm-make.c: making them. None of it takes a lock. ---------------------------------------------------------- */

/* Shares nothing with other commands. */
bool warm_is_fresh(const struct execution *execution);
uint64_t warm_shared(const struct execution *execution);
/* From a launch that is prepared, and stays the execution's. */
int warm_mould_new(const struct execution *execution, uint64_t shared, struct warm_mould **ret_mould,
                   struct cordon_error *err) must_check;
void warm_mould_free(struct warm_mould *mould);
/* For the mould's next command: with a group of its own, made ready. */
int warm_place_new(const struct warm_house *house, const struct warm_mould *mould, struct warm_place **ret_place,
                   struct cordon_error *err) must_check;
/* Nobody has used it. */
void warm_place_free(struct warm_place *place);

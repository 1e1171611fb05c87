/* Walls that stay up between commands, as part of step 5.
 *
 *     house    of a session: what its commands share (commons of run/slot.h), and the moulds of what ran in it. Those
 *              without a session, for commands that want everything fresh, have a house in common that shares nothing.
 *     mould    one set of walls: the key that tells them from others, the plan, and places that are ready
 *     place    a slot with its control group, for one command
 *
 *     habit    what the last commands of a mould were started with: the next one's program is there before it is decided on,
 *              and held (warm-guess.c)
 *
 * A place is taken by a command whose own walk decided on walls of the same key; else one is made on the spot. Then the
 * thread makes another, off the command's way. It also takes down what was not used for long; all of it is bounded. */
#pragma once
#include <pthread.h>

#include "execute.h"
#include "run/slot-covers.h"
#include "run/slot.h"

/* At most, of all; fewer where the process may have few descriptors: see warm_most(). */
#define WARM_HOUSES_MAX 4096
#define WARM_HOUSES_SHARE 8
#define WARM_PLACES_SHARE 80
#define WARM_SHELLS_SHARE 160
#define WARM_MOULDS_MAX 4               /* of one session; the one unused longest goes */
#define WARM_PLACES_MAX 64              /* that wait, of all */
#define WARM_SHELLS_MAX 16              /* that are parked, of all */
#define WARM_MORE_PLACES 2              /* that wait, of walls that are to be fresh for every command, or where one... */
#define WARM_SOON_MS 100                /* ...came as soon as this after another */
#define WARM_RAISED_GAP_MS 1000         /* walls that were asked for ahead count as used so often */
#define WARM_PLACE_IDLE_MS 60000
#define WARM_HOUSE_IDLE_MS 600000

/* A shell that is wished for, or is parked: what it is started with. */
struct warm_shell {
	struct arena arena;             /* its texts */
	char id[ID_SIZE];               /* in its environment */
	const char *name, *cwd;
	int cwd_fd;
	struct strings environment, candidates;
	bool judged;                    /* the program is this file */
	uint64_t device, inode;
	uint64_t stamp;                 /* of the files that it may be */
	int stdio_fd[3];                /* our ends of its pipes, once it is parked */
};

/* What the last command of a mould was started with, and by which request. */
struct warm_habit {
	struct arena arena;             /* its texts */
	char id[ID_SIZE];               /* in its environment */
	const char *session, *workspace, *asked_cwd;    /* of the request; or NULL */
	bool fresh;
	const char *name, *cwd;
	struct strings environment;
	bool judged;                    /* the program is this file, found so */
	uint64_t device, inode;
	struct strings candidates;
};

/* What an execution will be started with, if all is as usual. */
struct warm_guess {
	uint64_t serial;                /* the mould's */
	const char *cwd;
	struct strings environment, candidates;
	bool judged;
	uint64_t device, inode;
	int theirs[3];                  /* the command's ends of its pipes */
};

struct warm_place {
	struct warm_place *next;
	struct slot slot;
	struct slot_covers *covers;     /* what is mounted in it where others can change names */
	uint64_t mounts;                /* the version of the host's, of which its own are copies */
	struct cgroup group;
	struct warm_shell *shell;       /* parked in it; or NULL */
	uint64_t serial;                /* the mould's, of one with a shell */
};

/* In a ring of moulds; or not, where next is NULL. */
struct warm_ring {
	struct warm_ring *previous, *next;
};

struct warm_mould {
	struct warm_mould *next;
	struct warm_house *house;
	struct warm_ring wanting, holding, habitual;
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
	uint64_t serial;                /* never another's */
	struct warm_habit *habit;       /* or NULL */
	int trust;                      /* above 0: it is to be believed, and there is one */
	struct warm_shell *wish;        /* for a parked shell; or NULL */
	unsigned wishes;                /* so many there were */
	struct warm_place *shell;       /* a place that has one; or NULL */
	bool park, parking;             /* one is to be made, is being made */
	unsigned count, wanted, making, awaited;
	uint64_t used_ms, gap_ms;       /* between the last two uses */
	uint64_t unheld_ms;             /* until then no program is held here before it runs */
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
	unsigned houses, places, shells;
	struct keeper *keepers[2];      /* of all houses, by whether it is another user's (launch->become); NULL: none yet */
	struct warm_ring wanting;       /* moulds that may want a place or a shell */
	struct warm_ring holding;       /* those that have one; few, however many houses there are */
	struct warm_ring habitual[WARM_BUCKETS];        /* those with a habit, by what the request said */
	uint64_t expired_ms;            /* when all houses were looked at */
	uint64_t unheld_ms;             /* until then none is held anywhere */
};

/* ---- warm.c, warm-thread.c, warm-take.c: what they need of each other -------------------------------------------- */

uint64_t warm_now_ms(void);
/* With the lock. A member is in one ring at most. */
void warm_ring_enter(struct warm_ring *ring, struct warm_ring *member);
void warm_ring_leave(struct warm_ring *member);
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
/* With the lock: it wants a place, or a shell. */
void warm_mould_want(struct warm *warm, struct warm_mould *mould);
/* With the lock: what it holds does not count any more, and nobody makes anything for it. */
void warm_mould_leave(struct warm *warm, struct warm_mould *mould);
/* With the lock: a place that waits, or NULL; the one with a shell, which is there. */
struct warm_place *warm_place_pop(struct warm *warm, struct warm_mould *mould);
struct warm_place *warm_shell_pop(struct warm *warm, struct warm_mould *mould);

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
/* For the mould's next command: with a group of its own, made ready; `ahead`: for one whose program is there before it may run. */
int warm_place_new(const struct warm_house *house, const struct warm_mould *mould, bool ahead, struct warm_place **ret_place,
                   struct cordon_error *err) must_check;
/* Nobody has used it. */
void warm_place_free(struct warm_place *place);

/* ---- warm-guess.c: programs that are there ahead ------------------------------------------------------------------ */

/* Did the walk come to it? */
bool warm_guess_same(const struct execution *execution);
/* With the lock. Not for a while after one could not be. */
bool warm_may_hold(const struct warm *warm, const struct warm_mould *mould);
/* It did not. */
void warm_guess_misled(const struct execution *execution);
/* With the lock, once the walls are decided on. */
void warm_habit_learn(struct warm *warm, struct warm_mould *mould, const struct execution *execution);
void warm_habit_free(struct warm_mould *mould);

/* ---- warm-shell.c: parked shells. None of it takes a lock. ------------------------------------------------------- */

/* Copies them; a value that is the old id becomes the id, unless that is NULL. */
int warm_copy_strings(struct arena *arena, const struct strings *from, const char *old_id, const char *id,
                      struct strings *ret_to) must_check;
/* Of an environment: equal but for the id, where each has its own. */
bool warm_same_text(const char *a, const char *a_id, const char *b, const char *b_id);
/* A shell and its line, and nothing else? */
bool warm_shell_is_for(const struct execution *execution);
/* From an execution whose walls are decided on. NULL: it is for none, or memory is short. */
struct warm_shell *warm_shell_new(const struct execution *execution);
struct warm_shell *warm_shell_copy(const struct warm_shell *shell);
void warm_shell_free(struct warm_shell *shell);
/* Would the execution start this very shell? */
bool warm_shell_same(const struct warm_shell *shell, const struct execution *execution);
/* In a ready place, which has the shell then, under a new id. On failure the place is of no more use. */
int warm_shell_park(struct warm_shell *shell, struct warm_place *place, struct cordon_error *err) must_check;

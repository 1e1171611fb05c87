/* Control groups: what holds the limits of a whole tree of processes, where they are to be had.
 *
 * A command gets a leaf of its own, made before it starts and removed when nothing of it is left. No leaf is used
 * twice: on several kernels one that was killed once also kills what is born in it later. Version 2 is one tree, and
 * the command is born in its leaf, with its init; version 1 is a tree for each controller, and the command's own
 * process joins a leaf in each before it is anything. Where neither can be written there is no leaf, and rlimits are
 * all there is.
 *
 *     place   a directory in which leaves can be made; how it is found: cgroup-v2.c, cgroup-v1.c
 *     leaf    PLACE/cordon-PID-ID, PID being the supervisor's, which holds a lock on it. One whose supervisor is gone
 *             is removed by the next that starts a command, with all that is in it.
 *
 * What is in a leaf of version 2 can be frozen: all but init, which has to see its supervisor's end, and to end
 * everything then. The kernel freezes a whole leaf at once; init waits meanwhile in another beside it, made when it is
 * first needed. Version 1 does not freeze. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/profile.h"

struct launch;

#define CGROUP_PARTS 3
#define CGROUP_NAME_SIZE 64
#define CGROUP_ROOT "/sys/fs/cgroup"
#define CGROUP_SELF "/proc/self/cgroup"
#define CGROUP_NONE "none"              /* as a directory: without control groups */

/* Where to look. Fields may be NULL: what the system has. */
struct cgroup_search {
	const char *directory;          /* in a cgroup2 tree, chosen by configuration; or CGROUP_NONE */
	const char *root;               /* for tests: /sys/fs/cgroup, /proc/self/cgroup */
	const char *self;
};

struct cgroup_place {
	const struct cgroup_ops *ops;   /* NULL: there is none, and `why` says why not */
	int parts[CGROUP_PARTS];        /* directories, or -1 */
	uint32_t offers;                /* 1 << enum cordon_wall: the limits it can hold */
	char path[512], why[256];       /* for display */
};

/* What is to be held; 0: without that limit. Processes are counted with init, here as in what was used. */
struct cgroup_bounds {
	uint64_t memory_bytes, cpu_percent, processes;
	bool without_init;              /* nothing of cordon's is inside: a command of a session's sandbox joins it
	                                   alone */
	unsigned at_birth;              /* additional processes until only init and the command are inside, if that
	                                   is born inside */
};

struct cgroup_usage {
	uint64_t memory_peak_bytes, process_peak, cpu_us;       /* 0: not known */
	uint64_t oom_kills;             /* processes that the kernel killed for want of memory */
	uint64_t process_refusals;      /* processes that were not made because of the limit */
};

/* What of that is in a control file. */
enum cgroup_counter {
	CGROUP_MEMORY_PEAK,
	CGROUP_OOM_KILLS,
	CGROUP_PROCESS_PEAK,
	CGROUP_PROCESS_REFUSALS,
	CGROUP_CPU_TIME,
	CGROUP_COUNTER_MAX
};

struct cgroup {
	const struct cgroup_ops *ops;   /* NULL: there is no leaf */
	int parts[CGROUP_PARTS];        /* its directories, locked; or -1 */
	int born;                       /* the directory to be born in, or -1; borrowed from `parts` */
	int joins[CGROUP_PARTS];        /* files to join it by, until it was entered */
	int counters[CGROUP_COUNTER_MAX];       /* files, from when it was entered; or -1 */
	struct cgroup_bounds bounds;    /* as they are set: without init, where that stays out of it */
	uint32_t held;                  /* 1 << enum cordon_wall: the limits it holds */
	char name[CGROUP_NAME_SIZE];
	int aside;                      /* a directory: where init is while the leaf is frozen; or -1 */
	char aside_name[CGROUP_NAME_SIZE];
	char why[256];                  /* why there is no leaf; for display */
};

struct cgroup_ops {
	const char *name;               /* for `isolation` */
	/* Finds a place; `self` tells where the caller is, `place` comes empty. False leaves why not in it. */
	bool (*find)(const struct cgroup_search *search, const char *self, struct cgroup_place *place);
	/* Sets the bounds and says in group->held which of them hold. */
	void (*limit)(struct cgroup *group, const struct cgroup_bounds *bounds);
	/* Opens the files to join it by. */
	void (*open_joins)(struct cgroup *group);
	/* What can be set once the command is running only; or NULL. */
	void (*entered)(struct cgroup *group);
	/* Ends all that is in it; false where something stays. */
	bool (*kill)(struct cgroup *group);
	/* Of a command's processes, so many stay out of it: init. Then it is empty once init has reported. */
	unsigned outside;
	/* See cgroup_freeze() and cgroup_thaw(); NULL: it cannot freeze. */
	bool (*freeze)(struct cgroup *group, pid_t init);
	bool (*thaw)(struct cgroup *group, pid_t init);
	/* What it counts for where processors are short: an eighth of what a new one does. */
	struct {
		int part;
		const char *file, *value;
	} lesser;
	/* Where it is counted: the part, the file, the word before the number (NULL: it is all there is), how many
	 * make one. */
	struct {
		int part;
		const char *file, *key;
		unsigned unit;
	} counters[CGROUP_COUNTER_MAX];
};
extern const struct cgroup_ops cgroup_v2, cgroup_v1;

/* Looks for a place, and closes it again: for `cordon doctor`. */
void cgroup_look(const struct cgroup_search *search, struct cgroup_place *ret_place);
/* Would this path, which is resolved, show the tree of groups? `known_fd` is what is there, where that is open; or
 * -1. */
bool cgroup_shows(const char *path, int known_fd);
/* Forgets the place that was found, until the next leaf is made. */
void cgroup_forget(void);
/* Makes a leaf with these bounds, or none: then group->ops is NULL and group->why says why. */
void cgroup_make(const struct cgroup_search *search, const struct cgroup_bounds *bounds, struct cgroup *ret_group);

/* These do nothing where there is no leaf. */

/* Has what is launched begin in the leaf. cgroup_entered() does what is left to do once it runs, and sweeps. */
void cgroup_enter(struct cgroup *group, struct launch *launch);
void cgroup_entered(struct cgroup *group);
/* Removes leaves whose supervisor is gone, without making one. */
void cgroup_sweep_now(const struct cgroup_search *search);
/* False where something stays. */
bool cgroup_kill(struct cgroup *group);
/* Freezes all but `init`; false where that cannot be. */
bool cgroup_freeze(struct cgroup *group, pid_t init);
/* They continue; false if that failed. `init` may be 0: it is gone. */
bool cgroup_thaw(struct cgroup *group, pid_t init);
/* From now on it gives way to leaves that are new, where processors are short and the kernel shares them by groups. */
void cgroup_give_way(const struct cgroup *group);
void cgroup_usage(const struct cgroup *group, struct cgroup_usage *ret_usage);
/* Removes the leaf, killing what should still be in it. */
void cgroup_remove(struct cgroup *group);
/* A name that no other leaf has. */
void cgroup_name(char ret_name[static CGROUP_NAME_SIZE]);

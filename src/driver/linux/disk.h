/* The limit on disk space, held by watching: what a command's directories hold is counted while it runs, and more than
 * is allowed ends it.
 *
 * Counting a large tree takes long, so it is done only where the limit may have been passed. A filesystem tells at once
 * how much of it is in use; that changes by what anybody writes, so it bounds what the command can have added. As long
 * as less was taken than is left, there is nothing to count:
 *
 *     look     more or less in use than at the last look?  ──▶ taken += the difference
 *     count    taken ≥ what was left at the last count, and the command did something since: the trees are counted, a
 *              few milliseconds at a time, as fast as that goes
 *     recheck  less was taken, but not nothing, and the last count is a second old: the same, at less than a hundredth
 *              of a processor, since what one takes is not seen where another gives back as much at the same moment
 *
 * Filesystems that tell late how much is in use are counted whenever the command has written something, and slowly as
 * long as it does anything.
 *
 * What the command holds open but has removed is found by way of its processes. Where it has made places that cannot be
 * looked into, what the filesystem has lost and was not found counts as its own. Otherwise files may have been moved
 * out of the way of the count: it is suspect, and repeated, in another order, until it finds them or the command did
 * nothing meanwhile; then others have what is missing. Of a processor that takes a hundredth. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "driver/linux/disk-walk.h"
#include "driver/linux/processes.h"

#define DISK_FIRST_MS 10
#define DISK_WATCH_MS 100               /* the longest time between two looks */
#define DISK_WATCH_TEXT "watched every 100 ms"
#define DISK_COUNT_TEXT "counted when it writes"        /* where a filesystem tells late what is in use */

struct disk_options {
	int roots[DISK_ROOTS];          /* directories, borrowed; those below 0 do not count */
	uint64_t most_bytes;
	bool growth;                    /* the limit is on what is added; otherwise on all there is */
};

/* A filesystem that roots are on. */
struct disk_volume {
	int fd;                         /* of a root */
	uint64_t device;
	uint64_t at_start;              /* bytes in use then; and now, and inodes */
	uint64_t bytes, inodes;
	bool prompt;                    /* it tells at once what is in use */
};

enum disk_state {
	DISK_WATCHING,
	DISK_COUNTING,                  /* in the trees */
	DISK_ASKING,                    /* what the processes hold */
};

struct disk_watch {
	struct disk_options options;
	enum disk_state state;
	pid_t first;                    /* the command's first process; 0: not known */
	struct disk_volume volumes[DISK_ROOTS];
	size_t volume_count;
	bool prompt;                    /* all of them are */
	int64_t start_ns;               /* by the clock that files are dated with */
	int pause_ms;
	uint64_t looked_us;
	uint64_t asked_us, ask_us;      /* when it was asked what the processes did, and when it may be asked again */
	uint64_t taken;                 /* since the last count, by any process */
	uint64_t others;                /* of what is gone since the start: what is not the command's for sure */
	bool suspect;                   /* the last count may have missed so much that the limit is passed */

	bool urgent;                    /* the count that is under way */
	uint64_t taken_before, stepped_us, spent_us;
	int64_t net_before;
	struct disk_walk walk;
	struct processes processes;
	size_t asked;

	bool counted;                   /* what follows is known */
	uint64_t base;                  /* what was there at the start */
	uint64_t ceiling, held;         /* the most there may be, and what there was */
	uint64_t ended_us, cost_us;     /* of the last count: when, and how much of a processor's time it took */
	uint64_t ran, wrote;            /* when it began */
	uint64_t ran_now, wrote_now, who;       /* when that was asked last */
	bool acted, wrote_since;        /* since the last count */
	bool writes;                    /* since the start, and much: that may be */
	bool exceeded;
	uint64_t used;                  /* of most_bytes, at the last count */
};

/* To be called before the command starts. Afterwards `prompt` is known. */
void disk_watch_begin(struct disk_watch *watch, const struct disk_options *options);
/* Looks, and counts for a few milliseconds if that must be; in how many ms it wants to be called again, or -1: the
 * limit is passed. `pidfd` is the command's first process. */
int disk_watch_look(struct disk_watch *watch, int pidfd);
/* The command has ended: had it passed the limit? Counts for a few milliseconds at most. */
bool disk_watch_settle(struct disk_watch *watch);
void disk_watch_end(struct disk_watch *watch);
/* Closes what is kept between commands. */
void disk_forget(void);

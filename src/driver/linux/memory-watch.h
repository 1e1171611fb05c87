/* The limit on memory where no control group holds it: watched. The memory of all processes of the command is added up
 * while it runs, and more than is allowed ends it.
 *
 *     look     the resident memory of each process, which counts what they share once for each, what lies in the
 *              sandbox's tmpfs mounts, and the files without a name (memfds) that they have open. No more than the
 *              limit: nothing to do
 *     count    more: the same by proportional shares, so that what several processes share counts once. Memory of
 *              files, which the kernel takes back when it needs it, does not count. Still more than the limit: it is
 *              passed
 *
 * Far below the limit a look comes every 200 ms, above half of it every 50 ms; never so often that looking takes more
 * than a twentieth of a processor. Meanwhile a command can take more than it may. So that the machine survives that,
 * too, its processes are the first that the kernel's own killer takes. Memory that the kernel keeps for sockets and
 * pipes is not seen. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MEMORY_WATCH_FIRST_MS 10
#define MEMORY_WATCH_SLOW_MS 200
#define MEMORY_WATCH_FAST_MS 50
#define MEMORY_WATCH_TEXT "watched every 50 ms"
#define MEMORY_WATCH_MOUNTS 8

struct memory_watch {
	uint64_t most_bytes;                            /* 0: nothing is watched */
	const char *targets[MEMORY_WATCH_MOUNTS];       /* where tmpfs mounts are inside, borrowed; ended by a NULL
	                                                   unless all are used */
	bool is_begun;                                  /* there was a look */
	uint64_t used_bytes, peak_bytes;                /* at the last look; the most that was seen */
};

/* `targets` are `count` absolute paths inside, of which as many are watched as there is room for. */
void memory_watch_begin(struct memory_watch *watch, uint64_t most_bytes, const char *const *targets, size_t count);
/* A look at the tree of processes below `first`, and itself. In how many ms the next is due; -1: the limit is
 * passed. */
int memory_watch_look(struct memory_watch *watch, pid_t first);

/* ---- parts, for tests ------------------------------------------------------------------------------------------ */

/* Of the text of /proc/PID/statm: resident pages. */
uint64_t memory_resident_pages(const char *statm);
/* Of the text of /proc/PID/smaps_rollup: proportional memory that is no file's, in bytes; swapped memory counts. */
struct memory_shares {
	uint64_t anonymous, shared;     /* `shared`: in tmpfs files, memfds and anonymous mappings that processes
	                                   share */
};
struct memory_shares memory_parse_rollup(const char *rollup);

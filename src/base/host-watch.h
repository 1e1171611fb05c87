/* Whether files of the host that were examined may have changed since: by inotify, for the price of one read() whatever
 * the number of paths. A set of watches belongs to one cached answer and has every path that the answer was found by.
 * Use:
 *
 *	host_watch_poll(host_watch);                            once per command
 *	if (!host_watch_unchanged(watches, version)) {
 *		host_watch_begin(watches, version);             from here on, a change invalidates the set
 *		host_watch_path(watches, path); look(path);     watch each path before it is examined
 *	}
 *
 * A path that cannot be watched (on a network filesystem; below a directory without read permission; beyond the
 * kernel's limit) leaves the set invalid: the answer is then computed each time, as without inotify. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct host_watch;
struct host_watch_set;

/* Thread-safe. NULL if memory is short; so does host_watch_set_new(). A set is freed before its host_watch. Freeing
 * takes the kernel some 20 ms once something was watched. */
struct host_watch *host_watch_new(void);
void host_watch_free(struct host_watch *host_watch);
struct host_watch_set *host_watch_set_new(struct host_watch *host_watch);
/* While paused, nothing is watched, however often an answer is asked for. A new host_watch is not paused. */
void host_watch_pause(struct host_watch *host_watch, bool paused);
void host_watch_set_free(struct host_watch_set *watches);

/* Reads the pending events. False: nothing is watched at all. */
bool host_watch_poll(struct host_watch *host_watch);
/* True if no event that was read so far concerns the set. `version` counts changes that inotify does not report
 * (mounts): another version invalidates the set as an event does. */
bool host_watch_unchanged(const struct host_watch_set *watches, uint64_t version);

/* Removes all watches of the set. The first call does not start watching: an answer that is asked for once is not worth
 * it. */
void host_watch_begin(struct host_watch_set *watches, uint64_t version);
/* True if the set has been watching since host_watch_begin(). */
bool host_watch_is_active(const struct host_watch_set *watches);
/* Watches a path, and each directory and symbolic link on the way to it, for every change that could make it another
 * file or change its contents; if the path does not exist, for its creation. `watches` may be NULL. */
void host_watch_path(struct host_watch_set *watches, const char *path);
/* The same, but a symbolic link at the end is not followed. */
void host_watch_link(struct host_watch_set *watches, const char *path);
/* The same for a directory, and for the names in it. */
void host_watch_names(struct host_watch_set *watches, const char *directory);

/* For the directories of one tree, each known by its own watch: an event for one of them does not invalidate the set
 * but is kept for host_watch_take_changed(). Watches the directory and all names in it. Returns the watch, or -1. */
int host_watch_fd(struct host_watch_set *watches, int fd);
void host_watch_remove(struct host_watch_set *watches, int watch);
/* The watches with events since the last call: their number, or -1 if all may have changed; none is then watched any
 * more once the set is begun again. */
#define HOST_WATCH_CHANGED_MAX 128
int host_watch_take_changed(struct host_watch_set *watches, uint64_t version,
                            int ret_watches[static HOST_WATCH_CHANGED_MAX]);

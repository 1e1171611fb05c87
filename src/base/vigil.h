/* Whether what was looked at on the host may have changed since: by inotify, for the price of one read() whatever the
 * number of paths. A post stands for one answer and for every path it was found by. The way there is always the same:
 *
 *	vigil_hear(vigil);                              once per command
 *	if (!vigil_stands(post, version)) {
 *		vigil_begin(post, version);             from here on, what changes breaks the post
 *		vigil_watch(post, path); look(path);    each path before it is looked at
 *	}
 *
 * What cannot be watched (a filesystem that others change unseen, a directory that may be passed but not read, more than
 * the kernel allows) leaves the post broken: then the answer is looked for each time, as if there were no vigil. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vigil;
struct vigil_post;

/* Shared by threads. NULL when memory is short, as of a post. A post is freed before its vigil, which takes the kernel some
 * 20 ms once it has watched. */
struct vigil *vigil_new(void);
void vigil_free(struct vigil *vigil);
struct vigil_post *vigil_post_new(struct vigil *vigil);
/* Asleep, it watches nothing, however often an answer is asked for. A new one is awake. */
void vigil_sleep(struct vigil *vigil, bool asleep);
void vigil_post_free(struct vigil_post *post);

/* Takes in what has happened until now. False: nothing is watched at all. */
bool vigil_hear(struct vigil *vigil);
/* Is everything as it was, by what has been heard? `version` is what inotify does not tell (a mount): another one breaks
 * the post as a change does. */
bool vigil_stands(const struct vigil_post *post, uint64_t version);

/* Forgets what was watched. The first time nothing is watched yet: an answer that is asked for once is not worth it. */
void vigil_begin(struct vigil_post *post, uint64_t version);
/* Is anything watched since? */
bool vigil_watches(const struct vigil_post *post);
/* Watches a path, each directory and link on the way to it included, for all that could make it another file, or change
 * its contents; or what it comes to be, where there is nothing. `post` may be NULL here. */
void vigil_watch(struct vigil_post *post, const char *path);
/* Likewise, but a link at its end is not followed. */
void vigil_watch_link(struct vigil_post *post, const char *path);
/* Likewise a directory, and which names are in it. */
void vigil_watch_names(struct vigil_post *post, const char *directory);

/* For many directories of one tree, of which each is known by a watch: what is told about one of them does not break the
 * post, but is kept for vigil_take_changed(). All names in the directory, and itself. The watch, or -1. */
int vigil_watch_open(struct vigil_post *post, int fd);
void vigil_unwatch(struct vigil_post *post, int watch);
/* Those that were told of since it was last asked: how many; -1: all may have changed, and none is watched any more once the
 * post is begun again. */
#define VIGIL_CHANGED_MAX 128
int vigil_take_changed(struct vigil_post *post, uint64_t version, int ret_watches[static VIGIL_CHANGED_MAX]);

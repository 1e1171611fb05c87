/* What was judged in one writable tree, kept on disk from one command to the next.
 *
 * What a command left behind is told from what its owner put there by comparing the tree with a record of it. The
 * record is taken when a command starts and no other runs in the same tree: what is there then is the owner's. While a
 * command runs the tree is *pending*. When it has ended the tree is compared with the record, what is harmful is moved
 * away, and the rest is only remembered as named, and judged again at each end until a new record is taken: what was
 * harmless when one command ended may not be when another one does. A tree that is pending although no command runs in
 * it was left by a cordon that died, or could not be judged to the end: it is judged against the same record before the
 * next command starts.
 *
 *     judged_open(); judged_lock();
 *     if (judged_is_alone() && judged_is_pending()) compare with judged_load(), move away, judged_store();
 *     if (judged_is_alone()) judged_store(what is there now);
 *     judged_begin(); judged_unlock();
 *     the command runs;
 *     judged_lock(); compare with judged_load(), move away, judged_store(); judged_end(); judged_free();
 *
 * Two files for each tree, in a directory that only cordon can write: the record, replaced as a whole, and a file for
 * the locks, which also says whether the tree is pending and how many commands were begun in it. Locks belong to an
 * open file, so threads and processes are alike. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "paths/planted/planted.h"

struct cordon_error;
struct judged;

struct judged_record {
	struct names names;             /* the protected and the judged ones */
	struct planted_before planted;  /* what they were; its names are these */
	uint64_t *made;                 /* hashes of names to be covered that came while a command ran; sorted */
	size_t made_count;
	uint64_t *told;                 /* hashes of paths that were named as kept since the record was taken; sorted */
	size_t told_count;
};

/* More names than this that commands made are not told apart. */
#define JUDGED_MADE_MAX (256 * 1024)
/* Bytes. */
#define JUDGED_RECORD_MAX (64 * 1024 * 1024)

/* The tree is identified by the inode of `root_fd`, whatever path leads there; `root_path` is for display. Makes the
 * directory `judged` in `data_dir`, and the file. */
int judged_open(const char *data_dir, int root_fd, const char *root_path, struct judged **ret_judged,
                struct cordon_error *err) must_check;
/* NULL is allowed. Without judged_end(), a tree in which a command was begun stays pending. */
void judged_free(struct judged *judged);

/* An order of trees; 0: they are the same. */
int judged_compare(const struct judged *one, const struct judged *other);

/* One process or thread at a time, for everything below. Waits for a bounded time. */
int judged_lock(struct judged *judged, struct cordon_error *err) must_check;
void judged_unlock(struct judged *judged);

/* Whether no other command runs in this tree. */
bool judged_is_alone(struct judged *judged);
bool judged_is_pending(const struct judged *judged);

/* False: there is no record that can be read. */
bool judged_load(struct judged *judged, struct arena *arena, struct judged_record *ret_record);
/* Nothing is written where the record would be the same. Refused where it would be too large. */
int judged_store(struct judged *judged, const struct judged_record *record, struct cordon_error *err) must_check;

/* A command is about to start. */
int judged_begin(struct judged *judged, struct cordon_error *err) must_check;
/* It has ended, or did not start. `complete`: nothing that it may have left is unjudged. */
void judged_end(struct judged *judged, bool complete);

/* When the record was taken, if this command has been the only one in the tree since, on the clock of change times:
 * what has not changed since then is the owner's, even if the search before the command did not come to it. 0: that
 * cannot be told. */
int64_t judged_since_ns(const struct judged *judged);
/* The record was taken now. */
void judged_taken(struct judged *judged);

/* The hash of what a name is, as in `made`: of another file by the same name it is another. */
uint64_t judged_hash(int root_fd, const struct name *name);
bool judged_is_made(const struct judged_record *record, int root_fd, const struct name *name);
/* Likewise of a path, as in `told`. */
uint64_t judged_hash_path(const char *path);
bool judged_is_told(const struct judged_record *record, const char *path);

/* The record's bytes, for judged_load() and tests: from malloc(), or NULL. False: they are no record. */
void *judged_write(const struct judged_record *record, size_t *ret_size);
bool judged_parse(struct arena *arena, const void *bytes, size_t size, struct judged_record *ret_record);

/* What is known of a tree: its directories, and the matches that lie directly in each. Both are flat arrays of
 * fixed-size records, with the names in one pool, so that the cache file is the table's own bytes and loading it is one
 * read. A directory's parent has a smaller index. As loaded, the order is breadth first and the children of a directory
 * lie side by side; what a later look adds comes behind, and what it no longer finds is marked dead, so nothing
 * moves. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* A path longer than this is of no use to a mount, and a tree deeper than this is no project: each look at a directory
 * resolves all its components. */
#define NAMES_PATH_MAX 3840
#define NAMES_DEPTH_MAX 512
#define NAMES_DIRECTORIES_MAX (1024 * 1024)
#define NAMES_NAME_MAX 255
/* For an entry of a directory whose path is as long as can be. */
#define NAMES_ENTRY_SIZE (NAMES_PATH_MAX + NAMES_NAME_MAX + 2)

/* ctime_ns of a directory that must be read again. */
#define NAMES_CTIME_NEVER INT64_MIN

enum names_flag {
	NAMES_PARTIAL = 1 << 0,         /* a bound left something in it unseen */
	NAMES_CLOSED = 1 << 1,          /* the caller's, but not readable: masked as a whole */
	NAMES_HOT = 1 << 2,             /* holds a match, or is shallow: checked first */
	NAMES_SAVED = NAMES_PARTIAL | NAMES_CLOSED | NAMES_HOT,
	/* of this call only */
	NAMES_CHECKED = 1 << 8,
	NAMES_REREAD = 1 << 9,          /* its loaded matches no longer count */
	NAMES_DEAD = 1 << 10,
	NAMES_REPLACED = 1 << 11,       /* another directory is in its place, so it may be elsewhere */
};

struct names_directory {
	uint64_t device, inode;
	int64_t ctime_ns;               /* not mtime, which utimensat() sets at will */
	uint32_t parent;
	uint32_t name;                  /* where in the pool; no NUL ends it */
	uint16_t name_length, path_length, depth, flags;
};

enum names_type { NAMES_TYPE_OTHER, NAMES_TYPE_DIRECTORY, NAMES_TYPE_LINK, NAMES_TYPE_FIFO, NAMES_TYPE_MAX };

struct names_match {
	uint32_t directory, name;
	uint8_t name_length;
	uint8_t reserved;
	uint8_t kind, type;             /* enum name_kind, enum names_type */
};

struct names_table {
	struct names_directory *directories;
	struct names_match *matches;
	char *pool;
	size_t directory_count, match_count, pool_size;
	size_t directory_capacity, match_capacity, pool_capacity;   /* 0: lies in `file` */
	size_t loaded_directories, loaded_matches;
	void *file;                     /* what was loaded, or NULL */
	int *watches;                   /* in memory only: of the first directories, by which each is watched */
	size_t watch_count, watch_capacity;
};

/* How far searches have come. */
struct names_progress {
	uint32_t cursor;                /* where the next rechecking begins */
	uint32_t reserved;
};

/* Starts a table with the root alone, not yet read. -1 when memory is short, as in all of these. */
int names_table_init(struct names_table *table) must_check;
void names_table_free(struct names_table *table);

int names_table_add_directory(struct names_table *table, uint32_t parent, const char *name, size_t length) must_check;
int names_table_add_match(struct names_table *table, uint32_t directory, const char *name, size_t length, unsigned kind,
                          unsigned type) must_check;

/* By which watch a directory is watched, or one of these. */
#define NAMES_NOT_WATCHED (-1)
#define NAMES_NOT_TO_BE_WATCHED (-2)
int names_table_watch(const struct names_table *table, uint32_t directory);
int names_table_set_watch(struct names_table *table, uint32_t directory, int watch) must_check;

/* Writes the path relative to the root, ended by NUL; "" for the root. `buffer` has NAMES_PATH_MAX + 1 bytes. */
void names_table_path(const struct names_table *table, uint32_t directory, char *buffer);

/* The length of the path of something named `length` bytes long in this directory. */
size_t names_table_path_length(const struct names_table *table, uint32_t directory, size_t length);

/* The loaded children of a loaded directory: from *ret_first, this many. */
size_t names_table_children(const struct names_table *table, uint32_t directory, uint32_t *ret_first);

/* Whatever lies beneath a dead directory is dead too. */
void names_table_bury(struct names_table *table);
bool names_table_match_counts(const struct names_table *table, size_t match);

/* A directory that could not be read to its end keeps its loaded matches. Of those from `first` on, all of which are
 * its own, the ones that were loaded, too, are removed; returns how many are left. */
size_t names_table_keep_matches(struct names_table *table, uint32_t directory, size_t first);

/* A copy of what lives, breadth first, flags of this call removed, ready to be stored. */
int names_table_pack(const struct names_table *table, struct names_table *ret_packed) must_check;

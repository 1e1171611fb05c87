/* Reading the directories of a tree that may be hostile into a table: by descriptor, no symbolic link followed. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "paths/index/globs.h"
#include "paths/index/table.h"

#define NAMES_ENTRIES_MAX (16 * 1000 * 1000)
#define NAMES_WALK_US (2 * 1000 * 1000)
#define NAMES_BUFFER_SIZE (32 * 1024)

struct names_walk {
	int root_fd;
	const char *root_path;
	struct names_globs globs;
	struct host_watch_set *watches;        /* watches each directory before it is looked at; or NULL */
	uint32_t user;
	struct names_table table;
	uint64_t deadline_us;           /* of reading; on names_now_us()'s clock */
	uint64_t entries;               /* read in this call */
	size_t directories;             /* read in this call */
	size_t matches[NAME_KIND_MAX];  /* in the table, or too many for it */
	bool stopped;                   /* by the deadline or by the number of entries */
	bool overflowed;                /* the table is full, perhaps of what is dead */
	int root_errno;                 /* why the root itself could not be read, or 0 */
	char *path;                     /* of what is looked at: the root's, then the entry's */
	void *buffer;                   /* what getdents64() fills: NAMES_BUFFER_SIZE bytes */
	uint32_t *lookup;               /* loaded children by name, while their directory is read again */
	size_t lookup_size, lookup_capacity;
};

/* Begins with no table. Borrows everything. */
int names_walk_init(struct names_walk *walk, int root_fd, const char *root_path, struct cordon_error *err) must_check;
void names_walk_free(struct names_walk *walk);

/* Whether what had this change time when it was looked at may have changed since and have the same. */
bool names_walk_is_racy(int64_t ctime_ns, int64_t looked_ns);

/* Looks whether a loaded directory is as it was, and reads it again if not. -1 when memory is short. */
int names_walk_check(struct names_walk *walk, uint32_t directory) must_check;
/* Reads every directory that was added since the table was loaded, and those found in them. */
int names_walk_new(struct names_walk *walk) must_check;

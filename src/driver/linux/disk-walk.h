/* Counting what directory trees hold, a little at a time, while others change them.
 *
 * What counts is what is taken from the filesystem: the blocks of every file, directory and link, and 4 KiB for each
 * at least, since files without blocks use it up, too. A file with several names counts once, and so does one that is
 * moved while the count is under way. Nothing is followed: neither symbolic links nor mounts. Any depth takes the same
 * few descriptors. Directories are entered in another order each time, so that nobody knows ahead where the count is
 * not. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_INODE_BYTES 4096
#define DISK_ROOTS 4

/* What a look at a file tells. */
struct disk_stat {
	uint64_t device, inode, bytes;
	int64_t born_ns, changed_ns;    /* born: INT64_MIN where the filesystem does not know */
	uint32_t mode, user, links;
	bool mount_root;
};

struct disk_count {
	uint64_t bytes;
	uint64_t fresh_bytes;           /* of it: made since the time that was given */
	uint64_t changed_bytes;         /* of it: there before, and changed since */
	bool closed, moved;             /* directories could not be looked into: closed since then, moved on the way */
};

struct disk_walk {
	struct disk_count count;
	int64_t since_ns, until_ns;     /* dates after that are those of another clock */
	uint32_t user;
	uint32_t order;                 /* chosen at random */
	int roots[DISK_ROOTS];
	size_t root_count, next_root;
	struct disk_level *levels;      /* from a root to where the walk is */
	size_t depth, capacity;
	char *buffer;                   /* entries of the innermost directory that were read and not yet looked at */
	size_t buffer_at, buffer_length;
	uint64_t *seen;                 /* those that might be met again */
	size_t seen_count, seen_size;
};

/* Of `name` in the directory; of the descriptor itself where it is empty. False: errno tells why. */
bool disk_stat(int fd, const char *name, bool follow, struct disk_stat *ret_stat);
/* Device numbers as in disk_stat. */
uint64_t disk_device(uint64_t major, uint64_t minor);

/* The roots are borrowed; those below 0 do not count. False when memory is short. */
bool disk_walk_begin(struct disk_walk *walk, const int roots[DISK_ROOTS], int64_t since_ns);
/* Goes on until then; true at the end. Then `count` is what there is. */
bool disk_walk_step(struct disk_walk *walk, uint64_t until_us);
/* Adds one that no directory has, unless it was met. */
void disk_walk_add(struct disk_walk *walk, const struct disk_stat *stat);
void disk_walk_end(struct disk_walk *walk);

uint64_t disk_now_us(void);

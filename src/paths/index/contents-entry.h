/* Between contents.c, which finds what a file has in it, and contents-file.c, which keeps that. */
#pragma once
#include "paths/index/contents.h"

struct contents_entry {
	uint64_t device, inode, size;
	int64_t ctime_ns;
	struct content content;
};
struct contents {
	char name[80];                          /* of the file */
	char *file;                             /* as it was read, or entries; or NULL */
	const struct contents_entry *known;              /* in it, sorted by inode */
	size_t known_count;
	struct contents_entry *used;                     /* by this command, in the order of their use */
	size_t used_count, capacity;
	bool changed;                           /* something was read */
};

/* For qsort() and bsearch(). */
int contents_by_inode(const void *one, const void *other);

/* The entries of one directory, judged by the rules and put into the table. */
#pragma once
#include "session/names-walk.h"

struct names_listing {
	int fd;
	uint32_t directory;
	char *relative, *name_at;       /* in the walk's path: where the root's ends, and where the entry's name goes */
	uint32_t first_child;
	size_t children;                /* loaded ones, which stay if they are still what they were */
	uint64_t entries;
	bool partial;                   /* something in it was left out for good */
	bool crowded;                   /* so were names, since there are too many */
	bool incomplete;                /* reading stopped before the end */
};

/* Reads `listing->fd` to its end. -1 when memory is short. */
int names_listing_read(struct names_walk *walk, struct names_listing *listing) must_check;

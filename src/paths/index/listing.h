/* The entries of one directory, judged by the rules and put into the table. */
#pragma once
#include "paths/index/walk.h"

/* What a repository has in it (setup.c of git, is_git_directory()), and what git reads of it. */
enum names_part {
	PART_HEAD = 1 << 0, PART_OBJECTS = 1 << 1, PART_REFS = 1 << 2, PART_COMMONDIR = 1 << 3, PART_CONFIG = 1 << 4,
	PART_WORKTREE = 1 << 5, PART_HOOKS = 1 << 6,
};
#define NAMES_PARTS 7

struct names_listing {
	int fd;
	uint32_t directory;
	char *relative, *name_at;       /* in the walk's path: where the root's ends, and where the entry's name goes */
	uint32_t first_child;
	size_t children;                /* loaded ones, which stay if they are still what they were */
	uint64_t entries;
	unsigned parts;                 /* of enum names_part: those that are there */
	uint8_t part_types[NAMES_PARTS];        /* d_type of each; DT_UNKNOWN: not there, or a rule covers it */
	bool partial;                   /* something in it was left out for good */
	bool crowded;                   /* so were names or subdirectories, since the table is full */
	bool incomplete;                /* reading stopped before the end */
};

/* Reads `listing->fd` to its end. -1 when memory is short. */
int names_listing_read(struct names_walk *walk, struct names_listing *listing) must_check;

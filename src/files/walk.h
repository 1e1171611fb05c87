/* Going through a directory tree by descriptor: no link is followed, and depth, count and time are bounded. */
#pragma once
#include <stdint.h>

#include "base/json.h"
#include "files/place.h"

#define FILES_ENTRIES_MAX 200000        /* looked at in one call */

struct files_entry {
	const char *path;               /* relative to where the walk began */
	const char *name;
	const char *absolute;
	int directory_fd;               /* in which it has this name */
	struct stat info;
	bool hidden;                    /* by a deny glob or a tool rule */
};

/* 0 continues; 1 ends the walk; -1 is an error of the visitor's. */
typedef int (*files_visit_fn)(void *arg, const struct files_entry *entry, struct cordon_error *err);

struct files_walk {
	bool ignore;                    /* leave out what .gitignore does, and `.git` */
	size_t depth;                   /* 1: only the directory itself; 0: without a limit of its own */
	bool hidden;                    /* visit what is hidden, too */
	files_visit_fn visit;
	void *arg;
};

/* What was left out, where there was too much. */
struct files_walked {
	bool too_deep, too_many, too_long;      /* deeper than FILES_DEPTH_MAX, more than FILES_ENTRIES_MAX, longer
	                                           than FILES_TIME_MS */
	size_t unreadable;              /* directories that could not be opened */
	size_t hidden;                  /* names that were not visited, because they are hidden */
};

/* Entries in the order of their names, a directory before what is in it. What is hidden is not entered. */
int files_walk(const struct files *files, const struct files_place *place, const struct files_walk *walk,
               struct files_walked *ret_walked, struct cordon_error *err) must_check;
/* Is what is, or was, at this canonical path beneath the root hidden from the tool: by a deny glob, or a tool rule? */
bool files_hides(const struct files *files, const struct files_root *root, const char *path);
void files_walked_write(struct json *json, const struct files_walked *walked);

/* Refuses where something hidden or protected lies in the directory `place`, or would be protected if that were called
 * `becomes` (may be NULL); also where that cannot be told. */
int files_refuse_kept(const struct files *files, const struct files_place *place, const char *becomes,
                      struct cordon_error *err) must_check;

/* What is there: one entry, the entries of a directory, names in a tree. Each writes the keys of an object that its
 * caller has begun. */
#pragma once
#include "base/json.h"
#include "files/place.h"

#define FILES_LIST_MAX 10000            /* entries that a call returns at most, and how many unless it says */
#define FILES_LIST_USUAL 1000

struct files_find {
	const char *const *globs;       /* one of them must match; none: everything does */
	size_t glob_count;
	char kind;                      /* 'f', 'd', 'l', or 0 for any */
	bool all;                       /* also what .gitignore leaves out, and `.git` */
	size_t limit;
};

void files_stat(struct json *json, const struct files_place *place);
int files_list(const struct files *files, const struct files_place *place, size_t limit, struct json *json,
               struct cordon_error *err) must_check;
/* The entries of a tree with what files_list() tells of each, by their paths beneath it; what is hidden is not entered.
 */
struct files_tree {
	bool all;                       /* also what .gitignore leaves out, and `.git` */
	size_t depth;                   /* 1: the directory itself; 0: without a limit */
	uint64_t offset;                /* so many entries are passed over */
	size_t limit;
};
int files_tree(const struct files *files, const struct files_place *place, const struct files_tree *tree,
               struct json *json, struct cordon_error *err) must_check;
int files_find(const struct files *files, const struct files_place *place, const struct files_find *find,
               struct json *json, struct cordon_error *err) must_check;

/* A path as the caller would give it, beneath the one that was given. */
const char *files_shown(struct arena *arena, const struct files_place *place, const char *path);
/* The globs, compiled; relative ones are relative to the directory that is searched. */
int files_globs_compile(struct arena *arena, const char *const *texts, size_t count, struct glob **ret_globs,
                        struct cordon_error *err) must_check;
bool files_globs_match(const struct glob *globs, size_t count, const char *path);

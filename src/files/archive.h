/* A tree as a whole: into an archive and out of one, and as a copy. What is put into place is put there entry by entry,
 * each path judged as that of a write by itself; nothing is put where a link would lead it. */
#pragma once
#include "base/json.h"
#include "files/place.h"
#include "files/read.h"

#define FILES_IMPORT_MAX 100000         /* entries of an archive */

/* What is in the directory as a tar archive of at most FILES_SEND_MAX, in ret_content->data. Files, directories and
 * symbolic links; without what is hidden, and unless `all` without what .gitignore leaves out and `.git`. */
int files_export(const struct files *files, const struct files_place *place, bool all, struct json *json,
                 struct files_content *ret_content, struct cordon_error *err) must_check;

struct files_import {
	const char *data;
	size_t length;
	bool skip;                      /* what may not be written is left out and named, instead of refused */
};
/* Into the directory, over files that are there. Everything that the paths and kinds of the archive tell is judged
 * before the first entry is written. */
int files_import(const struct files *files, const struct files_place *place, const struct files_import *import,
                 struct json *json, struct cordon_error *err) must_check;

/* A file; or, with `recursive`, a directory with what is in it, of which nothing may be hidden or protected, to where
 * nothing is. Opened as for files_rename(), but that links at `from` are followed. */
int files_copy(const struct files *files, const struct files_place *from, const struct files_place *to, bool recursive,
               bool replace, struct json *json, struct cordon_error *err) must_check;

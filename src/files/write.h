/* Changing files: whole, by an edit, or what is in a directory. Content comes into place by rename, so that a reader
 * sees the old or the new, and a name that is linked elsewhere, too, loses the link instead of changing what lies
 * there. */
#pragma once
#include "files/edit.h"
#include "files/place.h"
#include "files/read.h"

struct files_write {
	const char *data;
	size_t length;
	bool create;                    /* refuse to replace what is there */
	const char *version;            /* what is there must have this version; or NULL */
	bool executable;                /* who may read it may run it */
	bool unsynced;                  /* its caller sees to it that it reaches the disk */
	const struct files_screen *screen;      /* what it must have kept of secrets; or NULL */
};

struct files_written {
	bool created;
	uint64_t size;
	size_t count, line;             /* of an edit: replacements, and where the first is */
	char version[FILES_VERSION_SIZE];
};

/* All places were opened with FILES_WRITE, those of the last three with FILES_NO_FOLLOW as well. */
int files_write(const struct files *files, const struct files_place *place, const struct files_write *write,
                struct files_written *ret_written, struct cordon_error *err) must_check;
/* `version` may be NULL. A file that changes while it is edited is not replaced: `session_busy`. */
int files_edit(const struct files *files, const struct files_place *place, const struct edit *edit, const char *version,
               struct files_written *ret_written, struct cordon_error *err) must_check;
/* The second half of it: comes into place only if the file is still as `before` and its content as `text` say. */
int files_replace(const struct files *files, const struct files_place *place, const struct stat *before,
                  const char *text, size_t length, const struct edited *edited, struct cordon_error *err) must_check;

int files_mkdir(const struct files *files, const struct files_place *place, struct cordon_error *err) must_check;
/* What has just been made there is taken away again (unlinkat(), with these flags) where it may not be by now: because
 * its directory has another name, or for what came beside it. */
int files_settle(const struct files *files, const struct files_place *place, int flags,
                 struct cordon_error *err) must_check;
/* A directory must be empty, unless `recursive`; then nothing in it may be hidden or protected. */
int files_remove(const struct files *files, const struct files_place *place, bool recursive,
                 struct cordon_error *err) must_check;
/* Nothing may be there, unless `replace`: then a file may. Neither here nor there may anything in it be hidden or
 * protected. */
int files_rename(const struct files *files, const struct files_place *from, const struct files_place *to, bool replace,
                 struct cordon_error *err) must_check;

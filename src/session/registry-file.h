/* One session's directory: its record and its locks as files. What registry.c makes of them is in registry.h. */
#pragma once
#include <limits.h>

#include "session/registry.h"

#define REGISTRY_DIRECTORY "sessions"
#define REGISTRY_RECORD "session.json"
#define REGISTRY_LOCK "lock"            /* exclusive while the record is made, changed or removed */
#define REGISTRY_USE "use"              /* shared while a command runs in the session, exclusive while it is removed */

/* Where one session is, and what errors name. */
struct where {
	const char *id;                 /* NULL: whichever the directory is named after */
	char path[PATH_MAX];
	size_t parent_length;           /* of the path of all sessions */
	bool takes_newer;               /* records of newer versions, too */
};

int where_find(const char *data_dir, const char *id, struct where *where, struct cordon_error *err) must_check;
int where_name(const char *data_dir, const char *name, struct where *where, struct cordon_error *err) must_check;

/* The directory; *ret_fd stays as it is where there is none and none is to be made. */
int where_open(const struct where *where, bool make, int *ret_fd, struct cordon_error *err) must_check;

/* The directory, and one of its locks: LOCK_SH or LOCK_EX. Both stay as they are if there is none and none is to be
 * made. A lock that is not available in time is `session_busy`; a session that is in use is not waited for. */
int where_lock(const struct where *where, const char *name, int operation, bool make, int *ret_directory, int *ret_lock,
               struct cordon_error *err) must_check;

/* The record, for which no lock is needed. */
int where_read(struct arena *arena, const struct where *where, int directory, struct session_record *ret_record,
               bool *ret_found, struct cordon_error *err) must_check;
/* Replaces the record; under REGISTRY_LOCK. */
int where_write(const struct where *where, int directory, const struct session_record *record, struct cordon_error *err)
	must_check;
/* Removes the record, and all that lies beside it but the locks; under REGISTRY_LOCK. *ret_found: was there a
 * record? */
int where_clear(const struct where *where, int directory, bool *ret_found, struct cordon_error *err) must_check;
/* Removes the locks and the directory, unless the session was just begun again. */
void where_remove(const struct where *where, int directory);

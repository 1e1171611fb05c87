/* The session's directory: which one it is, and what is refused as one. */
#pragma once
#include <sys/types.h>

#include "session/beneath.h"

/* Where the data directory is, or will be, and what led there. `named` may be NULL: $XDG_DATA_HOME/cordon or
 * ~/.local/share/cordon. */
int workspace_data_dir(struct arena *arena, const char *named, const char **ret_path, const char **ret_named,
                       struct cordon_error *err) must_check;

/* Makes it, with mode 0700, if it is missing. */
int workspace_make_data_dir(const char *path, struct cordon_error *err) must_check;

/* The caller's home directory, `home`, links resolved; NULL where it names none. */
const char *workspace_home(struct arena *arena, const char *home);

/* The directory a caller named. Refused, with the reason: "/", a home directory itself, system directories, what
 * contains cordon's data, what is not a directory or not the caller's. */
int workspace_named(struct arena *arena, const char *path, const char *data_dir, const char *home,
                    struct place *ret_place, int *ret_fd, struct cordon_error *err) must_check;

/* A directory of the system's, or beneath one of which everything is. */
bool workspace_is_system(const char *path);

/* The error for a path in, or around, the directory where the workspaces of sessions are made. `root` may be NULL, or a
 * link. */
int workspace_refuse_among(struct arena *arena, const char *path, const char *root,
                           struct cordon_error *err) must_check;

/* What a session's directories are called: the first 16 bytes, in hex, of SHA-256 over the id as a JSON string. */
#define WORKSPACE_HASH_LENGTH 32
/* NULL when memory is short. */
char *workspace_hash(struct arena *arena, const char *session_id);
/* The same, to where it is wanted: 0, or -1 when memory is short. */
int workspace_hash_to(const char *session_id, char ret_hash[WORKSPACE_HASH_LENGTH + 1]) must_check;

/* A directory of the session's own: <parent>/<hash of the id>. With `make`, made on first use with mode 0700, and so is
 * the parent; two callers that race get one. Without, it may not exist, and *ret_fd is then -1. */
int workspace_of_session(struct arena *arena, const char *session_id, const char *parent, bool make,
                         struct place *ret_place, int *ret_fd, struct cordon_error *err) must_check;

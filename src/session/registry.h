/* Sessions on disk: <data_dir>/sessions/<hash of the id>/session.json, replaced whole by rename under a lock, so that
 * it is there and valid whatever dies when. A record that is damaged, or not the caller's, is an error and stays as it
 * is. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/place.h"
#include "policy/capability.h"

enum session_state { SESSION_ACTIVE, SESSION_PAUSED, SESSION_ENDED, SESSION_STATE_MAX };
extern const char *const session_state_names[SESSION_STATE_MAX];

/* What a human approved for this session, and what the paths in it were at that moment. */
struct session_grant {
	const char *card;               /* the approval's id: no grant is added twice */
	const char *hash;               /* of what was approved: where no path is in it, the same is not asked again */
	const char *time;
	struct capability_set set;
	struct places places;           /* path, device and inode of each path in `set`, as approved */
};

struct session_denial {
	const char *hash;               /* of the request's content; the same is refused without asking */
	const char *reason, *time;
};

struct session_record {
	const char *id;
	enum session_state state;
	const char *why;                /* why it is paused or ended; or NULL */
	const char *workspace;          /* the directory the caller named; NULL: of cordon's own making */
	const char *own_root;           /* where cordon made it, or will: <own_root>/<hash>; NULL: the data
	                                   directory's */
	const char *created, *changed;  /* UTC */
	bool has_baseline;              /* something was given when it was made */
	struct capability_set baseline; /* on top of the configuration's; its `spawn` can only take away */
	struct session_grant *grants;
	size_t grant_count;
	struct session_denial *denials;
	size_t denial_count;
	unsigned denied_in_a_row;       /* since the last approval or resume */
	const char *labels;             /* texts by name, as JSON; NULL: none */
	uint64_t idle_expiry_s;         /* after so long without a command it is ended; 0: never */
	bool is_newer;                  /* of a version that this one cannot read: only the id, the state, the workspace
	                                   and own_root are known */
	const char *before;             /* as it was read, where it may say more than this version knows; or NULL */
};

#define SESSION_ID_MAX ((size_t)64 * 1024)

/* May a session of this id be made? Agents' sessions only by an agent's door. */
int registry_check_new(const char *id, bool of_agent, struct cordon_error *err) must_check;
/* Is this an id at all: not empty, not longer than SESSION_ID_MAX, UTF-8, no control characters. */
int registry_check_id(const char *id, struct cordon_error *err) must_check;

/* Of the following, those without _any refuse a record of a newer version, which is_newer tells. */

typedef int (*registry_change_fn)(struct arena *arena, struct session_record *record, void *arg,
                                  struct cordon_error *err);

/* The session's record; made from `first` (NULL: plain) where there is none yet, and then *ret_made is true. Of callers
 * that race, one makes it. `first` that contradicts an existing record (another workspace, another baseline) is
 * `invalid_request`. */
int registry_open(struct arena *arena, const char *data_dir, const char *id, const struct session_record *first,
                  struct session_record *ret_record, bool *ret_made, struct cordon_error *err) must_check;
/* The same, with a say in the making: `making` is called by the one that makes it, before it is there; negative leaves
 * it unmade. */
int registry_make(struct arena *arena, const char *data_dir, const char *id, const struct session_record *first,
                  registry_change_fn making, void *arg, struct session_record *ret_record, bool *ret_made,
                  struct cordon_error *err) must_check;
/* The same without making: *ret_found is false where there is none. */
int registry_read(struct arena *arena, const char *data_dir, const char *id, struct session_record *ret_record,
                  bool *ret_found, struct cordon_error *err) must_check;

int registry_read_any(struct arena *arena, const char *data_dir, const char *id, struct session_record *ret_record,
                      bool *ret_found, struct cordon_error *err) must_check;

/* The error for a session that is not there. Returns -1. */
int registry_missing(const char *id, struct cordon_error *err);

/* Reads, changes and replaces it under the session's lock. `change` gets the record in `arena`; 0 writes it, 1 leaves
 * it as it is, negative is an error that it filled. A missing session is `invalid_request`. */
int registry_change(struct arena *arena, const char *data_dir, const char *id, registry_change_fn change, void *arg,
                    struct session_record *ret_record, struct cordon_error *err) must_check;

int registry_change_any(struct arena *arena, const char *data_dir, const char *id, registry_change_fn change, void *arg,
                        struct session_record *ret_record, struct cordon_error *err) must_check;
/* When a command last began or ended in it, or it was changed; in seconds since 1970, 0 where that cannot be told. */
int64_t registry_used_s(const char *data_dir, const char *id);

/* Calls `each` for every session, also those of newer versions; damaged ones with `record` NULL and the directory's
 * name. Non-zero ends it. */
typedef int (*registry_each_fn)(void *arg, const struct session_record *record, const char *name);
int registry_list(const char *data_dir, registry_each_fn each, void *arg, struct cordon_error *err) must_check;

/* The state of a session, for repeated checks: the record is read only if it is another file than at the last check. A
 * record that cannot be read counts as unchanged; one that is gone has ended. Starts from zero. */
struct session_look {
	bool known;
	enum session_state state;
	uint64_t idle_expiry_s;
	uint64_t inode, size;
	int64_t changed_s, changed_ns;
};
enum session_state registry_look(const char *data_dir, const char *id, struct session_look *look);

/* Held for a command's life, so that its session is not removed meanwhile; the descriptor is the caller's to close.
 * With it comes the record, or *ret_found is false: it makes none, and is followed by registry_open() then. `first` is
 * as there. */
int registry_use(struct arena *arena, const char *data_dir, const char *id, const struct session_record *first,
                 int *ret_lock_fd, struct session_record *ret_record, bool *ret_found,
                 struct cordon_error *err) must_check;
/* The opposite: no command uses the session and none begins, or `session_busy`. A missing session is
 * `invalid_request`. */
int registry_exclude(const char *data_dir, const char *id, int *ret_lock_fd, struct cordon_error *err) must_check;

/* Forgets it, and whatever lies beside its record. The caller holds registry_exclude(). Its workspace and home are the
 * caller's to remove. */
int registry_remove(const char *data_dir, const char *id, struct cordon_error *err) must_check;

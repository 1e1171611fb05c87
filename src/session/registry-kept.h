/* Sessions that one process uses again and again: the record as it was read, and the lock, held while a command of the
 * session runs. Both stand as long as nothing is heard of a change (base/vigil.h). Shared by threads. */
#pragma once
#include "base/vigil.h"
#include "session/registry.h"

struct registry_kept;
/* NULL when memory is short. */
struct registry_kept *registry_kept_new(struct vigil *vigil, const char *data_dir);
void registry_kept_free(struct registry_kept *kept);

/* A session that a command is using. */
struct session_hold {
	struct kept_session *kept;      /* with others of this process; or NULL */
	int lock_fd;                    /* or its own; or -1 */
};
#define SESSION_HOLD_NONE ((struct session_hold){ .lock_fd = -1 })

/* As registry_use(). The record may be the kept one's, and is there until the hold is released. `mounts` is the version of
 * the posts. */
int registry_kept_use(struct registry_kept *kept, struct arena *arena, const char *id, const struct session_record *first,
                      uint64_t mounts, struct session_hold *ret_hold, struct session_record *ret_record, bool *ret_found,
                      struct cordon_error *err) must_check;
void registry_kept_release(struct registry_kept *kept, struct session_hold *hold);

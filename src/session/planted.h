/* What a command left behind under a protected name, to run later: found when it has ended, named, and by policy moved
 * out of the workspace. The pattern of use:
 *
 *     names_find(…, &names_before); planted_record(…, &names_before, contents, &before);
 *     the command runs;
 *     do names_find(…, &names_after); while (planted_unlock(root_fd, &names_before, &names_after));
 *     planted_check(…, &before, &names_after, quarantine_fd, &planted);
 *
 * Two names at the same path are taken for the same where the driver kept them from change; where it could not, the
 * record holds what they contained, and what changed is judged as well. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "session/names.h"

struct cordon_error;

/* A protected file, or one directly in a protected directory, as it was. */
struct planted_seen {
	const char *path;
	uint64_t device, inode, size, digest;
	int64_t ctime_ns;
};

struct planted_before {
	const struct names *names;      /* borrowed */
	bool contents;
	struct planted_seen *seen;
	size_t count, capacity;
};

struct planted_file {
	const char *path;               /* relative to the root */
	const char *note;               /* why, and what was done about it */
	const char *quarantined_as;     /* its name in the quarantine directory, or NULL: it is where it was */
};

struct planted {
	struct planted_file *items;
	size_t count, capacity;
};

/* `contents`: the driver does not keep existing names from change, so remember what is in them. */
int planted_record(struct arena *arena, int root_fd, const struct names *names, bool contents,
                   struct planted_before *ret_before, struct cordon_error *err) must_check;

/* Gives the owner's rights back on directories that the command took them from, lest something hide there. True: look for
 * names again. At most as often as directories nest; a caller may stop after a few rounds. */
bool planted_unlock(int root_fd, const struct names *before, const struct names *after);

/* Judges every protected name that is new, or changed as far as that was recorded. Harmful files are moved to
 * `quarantine_fd` (a directory that only cordon can write), without their right to be executed; -1 leaves them. Nothing
 * harmful: named as kept. A file that cannot be moved is no error, its note says so. */
int planted_check(struct arena *arena, int root_fd, const struct planted_before *before, const struct names *after,
                  int quarantine_fd, struct planted *ret_planted, struct cordon_error *err) must_check;

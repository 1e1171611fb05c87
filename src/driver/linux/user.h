/* The user namespace of a caller that is not dumpable: one that has set PR_SET_DUMPABLE to 0, or that was root and
 * became another user. The files in /proc of every process in such a caller's memory are root's, so `first` cannot
 * write its own maps; and only the caller may decide to make its memory readable, even for a moment. A process with
 * memory of its own, init in another role, makes the namespace and hands it out; `first` is born in it. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"

struct launch;

/* One message to init in this role. */
struct user_maps {
	char uid_map[64], gid_map[64];
};

/* Whether this launch's maps have to be written elsewhere. */
bool user_is_needed(const struct launch *launch);
/* A descriptor of the namespace, the caller's to close. */
int user_make(const struct launch *launch, int *ret_fd, struct cordon_error *err) must_check;
/* In init: takes the maps, and answers with a struct reply and the namespace. */
void user_serve(void) __attribute__((noreturn));

/* Which toolchains a person installed under their home, and what they need to work where HOME is another directory and
 * the home cannot be seen: toolchains.def. Looks at the file system, starts nothing, reads at most one level of a
 * directory. What it returns lives in the arena. */
#pragma once
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/host-watch.h"
#include "cordon-internal.h"

struct toolchains {
	struct strings names;           /* which were found */
	/* Absolute host paths to show read-only at the same path inside: each by its canonical path and, where that
	 * differs, also as it was named, which is then to be bound from what it leads to. They exist; none is within
	 * another; none is a home, a parent of the caller's, or a place of secrets. Some are files. They may lie in
	 * /tmp, /run/user or a writable root: show them after the former, and not at all within the latter. */
	struct strings show;
	struct strings mask;            /* existing files and directories within `show` to hide: they may hold
	                                   credentials */
	struct strings environment;     /* K=V; a V that begins with "~/" lies beneath the sandbox's own home */
};

/* `home` and `environment` (K=V, ended by NULL) are the caller's; either may be NULL. `chosen`: NULL is all, an empty
 * list none; an unknown name is invalid_request. `writable` (or NULL): what commands can change; a root in there is not
 * looked at, since its links lead wherever a command wants them to. A root that would show too much is passed over in
 * silence. `watches` (or NULL) watches all that the answer comes from. */
int toolchain_find(struct arena *arena, const char *home, const char *const *environment, const struct strings *chosen,
                   const struct strings *writable, struct host_watch_set *watches, struct toolchains *ret,
                   struct cordon_error *err) must_check;

/* Adds `found->environment` to `list`, its "~/" written as `inside_home`. */
int toolchain_environment(struct arena *arena, const struct toolchains *found, const char *inside_home,
                          struct strings *list, struct cordon_error *err) must_check;

/* Every name that may be chosen, aliases included. */
const char *const *toolchain_names(size_t *ret_count);

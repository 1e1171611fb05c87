/* What a command may reach, as data. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"

enum network_mode { NETWORK_NONE, NETWORK_HOSTS, NETWORK_ALL, NETWORK_MODE_MAX };
extern const char *const network_mode_names[NETWORK_MODE_MAX];

/* 0 is absent: no limit. */
struct limits {
	uint64_t memory_bytes, cpu_percent, processes, disk_bytes, wall_ms, stdout_bytes, stderr_bytes, open_files,
		tmp_bytes;
};

struct capability_set {
	struct strings fs_read, fs_write;       /* absolute, normalised */
	struct strings hosts;                   /* host:port; only with NETWORK_HOSTS */
	struct strings publish;                 /* "HOST_PORT:PORT": ports inside at which this machine's loopback
	                                           answers, too */
	struct strings programs;                /* absolute; empty = any visible */
	struct strings devices, sockets;        /* absolute */
	struct strings deny;                    /* globs, masked even where a parent is granted */
	struct strings protect;                 /* relative names, read-only inside writable roots */
	struct strings exempt;                  /* what these mean and yet must stay free; from the baseline alone */
	enum network_mode network;
	bool spawn;
	struct limits limits;
};

/* The baseline a session has without asking. 0, or -1 when memory is short. */
int capability_baseline(struct arena *arena, bool spawn, struct capability_set *ret_set) must_check;

/* Everything `set` allows is allowed by `ceiling`. On false, *ret_excess names the first part that exceeds it
 * ("fs_write", "network", "limits", …) and *ret_subject which value (a path, a host, a limit's name); both borrowed,
 * both may be NULL. Paths must be normalised: one that is not is within nothing, and nothing is within it.
 * Deny and protect are not compared: they hold whatever was granted. */
bool capability_within(const struct capability_set *set, const struct capability_set *ceiling, const char **ret_excess,
                       const char **ret_subject);

/* The part of `set` that goes beyond `ceiling`: the entries and limits that are not within it, and nothing else. The
 * strings are borrowed. 0, or -1 when memory is short. */
int capability_excess(struct arena *arena, const struct capability_set *set, const struct capability_set *ceiling,
                      struct capability_set *ret_excess) must_check;

/* What either allows; the strings are borrowed from both. Where `grant` has a limit, it replaces the base's, smaller or
 * larger. Deny and protect add up: no grant lifts them. Programs, where an empty list is any, never become any by
 * silence: one list alone is taken as it is, two are joined. 0, or -1 when memory is short. */
int capability_merge(struct arena *arena, const struct capability_set *base, const struct capability_set *grant,
                     struct capability_set *ret_set) must_check;

/* Puts these limits in the place of the set's; 0 leaves one as it is. */
void capability_choose_limits(struct capability_set *set, const struct limits *chosen);

/* The same set in its one smallest form: paths resolved by text, sorted, and without what another entry covers already;
 * hosts in lower case and without a trailing dot; no hosts is no network. Two sets that are within each other have the
 * same. 0, or -1 when memory is short or a path is not absolute; *ret_subject is then that path, or NULL. */
int capability_normalise(struct arena *arena, const struct capability_set *set, struct capability_set *ret_set,
                         const char **ret_subject) must_check;

/* What a command may reach, as data. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum network_mode { NETWORK_NONE, NETWORK_HOSTS, NETWORK_ALL, NETWORK_MODE_MAX };
extern const char *const network_mode_names[NETWORK_MODE_MAX];

struct limits {
	uint64_t memory_bytes, cpu_percent, processes, disk_bytes, wall_ms, stdout_bytes, stderr_bytes, open_files,
		tmp_bytes;
};

struct capability_set {
	struct strings fs_read, fs_write;       /* absolute, normalised */
	struct strings hosts;                   /* host:port; only with NETWORK_HOSTS */
	struct strings programs;                /* absolute; empty = any visible */
	struct strings devices, sockets;        /* absolute */
	struct strings deny;                    /* globs, masked even where a parent is granted */
	struct strings protect;                 /* relative names, read-only inside writable roots */
	enum network_mode network;
	bool spawn;
	struct limits limits;
};

/* The baseline a session has without asking. 0, or -1 when memory is short. */
int capability_baseline(struct arena *arena, bool spawn, struct capability_set *ret_set);

/* Everything `set` allows is allowed by `ceiling`. On false, *ret_excess names the first part that exceeds it
 * ("fs_write", "network", …) and *ret_subject which value; both borrowed, both may be NULL. */
bool capability_within(const struct capability_set *set, const struct capability_set *ceiling, const char **ret_excess,
                       const char **ret_subject);

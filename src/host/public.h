/* What of the base view may be shown: of /etc only what every user may read by its mode bits. */
#pragma once
#include <sys/stat.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/place.h"
#include "base/host-watch.h"

/* Replaces each entry of /etc by itself, by those parts of it that are public, or by nothing. Links, and entries
 * elsewhere, stay. What is looked at is watched by `watches` (may be NULL). Strings are borrowed from `entries` or
 * allocated in `arena`. -1 when memory is short. */
int host_public_keep(struct arena *arena, struct host_watch_set *watches, struct host_entries *entries) must_check;

/* Changes whenever a small public file changes; 0 for other files. */
uint64_t host_file_stamp(const struct stat *info);

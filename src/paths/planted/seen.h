/* What was there before a command ran (planted.h), as a set: filled, sorted once, then asked. */
#pragma once
#include "paths/planted/planted.h"

struct names_stat;

/* -1 when memory is short, by which the path may be NULL, too. `stat` and `config` may be NULL. Path and `config` are
 * borrowed. */
int seen_add(struct arena *arena, struct planted_before *before, const char *path, const struct names_stat *stat,
             const struct git_config_before *config) must_check;
void seen_sort(struct planted_before *before);

/* NULL: it was not. */
const struct planted_seen *seen_find(const struct planted_before *before, const char *path);
bool seen_is_same(const struct planted_before *before, const char *path, const struct names_stat *stat);
/* Whether a file in a directory that is itself unchanged, so that it has the same names in it, is other than it was. */
bool seen_entries_changed(const struct planted_before *before, int root_fd, const char *directory);

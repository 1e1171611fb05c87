/* The hosts that a package manager of this machine fetches from, by its own configuration: registries.def. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"

struct registry_row {
	const char *tool, *main_key, *keys, *variables, *files, *default_files, *default_keys;
	bool bare;
};
extern const struct registry_row registry_rows[];
extern const size_t registry_row_count;

/* What the files of one tool say, as far as they were read. */
struct registry_scan {
	struct arena *arena;
	const struct registry_row *row;
	struct strings hosts;           /* "name:port", each once */
	struct strings sources;         /* the files and variables that named one */
	struct strings settled, fresh;  /* keys that sources before this one set, and this one */
	bool failed;                    /* memory is short */
};

/* The lines of one file. `by_default`: it is where the tool keeps its own default. */
void registry_scan_text(struct registry_scan *scan, const char *text, size_t length, bool by_default);
/* What comes next is another source. */
void registry_scan_next(struct registry_scan *scan);

/* All of it for one tool. `environment` ends with a NULL; `home` may be NULL. -1 when memory is short. */
int registries_find(struct arena *arena, const struct registry_row *row, const char *home, char *const *environment,
                    struct strings *ret_hosts, struct strings *ret_sources) must_check;

/* .gitignore: which names a search leaves out. A convenience, not a boundary: nothing is kept secret by it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/glob.h"

#define IGNORE_BYTES_MAX (256u << 10)   /* of one file; what comes after is not read */
#define IGNORE_PATTERNS_MAX 4096

struct ignore_pattern {
	struct glob glob;
	bool negated, directories_only;
};

struct ignore {
	struct ignore_pattern *patterns;        /* the arena's; the last that matches decides */
	size_t count;
};

enum ignore_verdict { IGNORE_UNDECIDED, IGNORE_LEFT_OUT, IGNORE_KEPT };

/* Lines that are no pattern are skipped. 0, or -1 when memory is short. */
int ignore_parse(struct arena *arena, const char *text, size_t length, struct ignore *ret_ignore) must_check;
/* `path` is relative to the directory of the file. */
enum ignore_verdict ignore_judge(const struct ignore *ignore, const char *path, bool is_directory);

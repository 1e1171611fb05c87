/* Lines that match a pattern, in one file or in a tree. */
#pragma once
#include "base/json.h"
#include "files/list.h"
#include "files/pattern.h"

#define FILES_LINE_SHOWN 512            /* bytes of a line that are returned */
#define FILES_LINE_MAX                                                                                                 \
	(1u << 20) /* bytes that are searched as one line; the rest of a longer one is searched by itself */

struct files_grep {
	const char *pattern;
	size_t pattern_length;
	unsigned options;               /* enum pattern_option */
	const char *const *globs;       /* names of files, as in struct files_find */
	size_t glob_count;
	bool all;
	bool names_only;                /* only which files have a match */
	size_t limit;                   /* of matches, or of files */
};

/* Writes keys as files_find() does: `matches` with `path`, `line`, `text`; or `files`. Binary files are left out and
 * counted. */
int files_grep(const struct files *files, const struct files_place *place, const struct files_grep *grep,
               struct json *json, struct cordon_error *err) must_check;

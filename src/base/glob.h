/* Globs over paths: `*`, `?`, `[a-z]` and `[!a-z]` stay within one component, a component `**` stands for any number of
 * them (none as well), a backslash takes the next byte literally. Bytes, not characters; `*` matches a leading dot too.
 * A glob that begins with `/` is absolute and matched against absolute paths; any other against paths relative to a
 * root; one without a slash matches at any depth, as in .gitignore. Matching takes at most (glob × path) steps. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct arena;
struct cordon_error;

#define GLOB_LENGTH_MAX 1024

/* How the last component is compared: most globs need no general matching. */
enum glob_shape { GLOB_LITERAL, GLOB_PREFIX, GLOB_SUFFIX, GLOB_ANY, GLOB_GENERAL, GLOB_SHAPE_MAX };

enum glob_option { GLOB_FOLD_CASE = 1 << 0 };

struct glob {
	const char *pattern;            /* normalised: no doubled slash, no `.` component, no leading slash */
	const char *last;               /* what its last component is compared with, by `shape` */
	size_t last_length;
	enum glob_shape shape;
	bool absolute;
	bool anywhere;                  /* `**` and one component: the name alone decides */
	bool fold_case;
	bool directory;                 /* it ended in a slash; for the caller: matching does not ask what a path is */
};

/* Everything in *ret_glob is the arena's. Refused as `config_invalid`: empty, too long, with a `..` component. */
int glob_compile(struct arena *arena, const char *pattern, unsigned options, struct glob *ret_glob,
                 struct cordon_error *err) must_check;

/* May a path whose last component is `name` match? For a glob that matches `anywhere` this is the whole answer. */
bool glob_match_name(const struct glob *glob, const char *name, size_t length);

/* `path`: without a leading slash where the glob is relative; normalised. */
bool glob_match(const struct glob *glob, const char *path);

/* May anything beneath the absolute directory `root` match? Relative globs: always. */
bool glob_reaches(const struct glob *glob, const char *root);

/* One text that is no path: `*` takes slashes as well. Nothing to compile. */
bool glob_match_text(const char *pattern, const char *text);

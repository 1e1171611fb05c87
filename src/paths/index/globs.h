/* The rules about names, compiled: which paths they mean, without a look at what is there. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/glob.h"
#include "paths/index/names.h"

struct names_globs {
	bool compiled;
	struct glob *deny, *protect, *exempt;
	size_t deny_count, protect_count, exempt_count;
};

/* Compiles the rules for one root into `arena`; with "/", for whatever root. */
int names_globs_compile(struct arena *arena, const char *root_path, const struct name_rules *rules,
                        struct names_globs *ret_globs, struct cordon_error *err) must_check;

/* From now on `deny` holds whatever the case, as `protect` does: for file tools. */
void names_globs_fold_deny(struct names_globs *globs);

/* Is a path of this tree, canonical and absolute as its root is, hidden by its own name? */
bool names_globs_hide(const struct names_globs *globs, const char *root_path, const char *path);
/* Is it, or a directory that it lies in, to be kept as it is? Looks only whether something exempt lies in a
 * repository. */
bool names_globs_keep(const struct names_globs *globs, const char *path, bool is_directory);
/* Would a link of this name lead to what is kept by its path, such as one called .claude where .claude/settings.json
 * is? What it leads to bears another name. */
bool names_globs_keep_link(const struct names_globs *globs, const char *name, size_t length);

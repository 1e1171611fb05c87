/* A manifest declares a tool: which programs it starts with which arguments, and what it may reach while it does. Same
 * language as the configuration; see cordon-manifest(5). */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "policy/capability.h"

#define MANIFEST_PATTERNS_MAX 256
#define MANIFEST_WORDS_MAX 256

struct cordon_error;
struct toml_value;

/* One word of a pattern. The argument that a placeholder matches is never empty, and begins with a dash only if the
 * pattern allows it. */
struct manifest_word {
	enum { WORD_LITERAL, WORD_ONE, WORD_REST } kind;
	bool option;                    /* may begin with a dash */
	const char *text;               /* the literal, or the placeholder's name */
	const char *before, *after;     /* WORD_ONE: the text around the placeholder in the same word */
};

struct manifest_pattern {
	struct manifest_word *words;    /* the arguments after the program */
	size_t count;
	struct strings written;         /* the same words as they were written */
	const char *where;              /* FILE:LINE:COLUMN */
};

struct manifest {
	const char *name, *description;         /* description: or NULL */
	struct strings programs;                /* absolute, normalised; also in `set` */
	struct manifest_pattern *patterns;      /* none: any arguments */
	size_t pattern_count;
	struct capability_set set;              /* what it declares */
	struct strings env_pass;
};

/* `home` is the caller's HOME, or NULL. */
int manifest_read(struct arena *arena, const char *path, const char *home, struct manifest *ret_manifest,
                  struct cordon_error *err) must_check;

/* The same from a text. `file` is its name in errors; `home` replaces ~/, or NULL. */
int manifest_parse(struct arena *arena, const char *file, const char *home, const char *text, size_t length,
                   struct manifest *ret_manifest, struct cordon_error *err) must_check;

/* Does the command fit? `program` is the path of what argv[0] means; links in it are resolved here, and in the
 * manifest's as well. A program that goes by several names must be called by the one that is listed, since it may do
 * other things under another. If not: `program_not_allowed`, naming the nearest pattern and never what was given. */
int manifest_match(const struct manifest *manifest, const char *program, const struct strings *argv,
                   struct cordon_error *err) must_check;

/* One pattern: a text whose words are separated by spaces, or an array of words. */
int manifest_pattern_read(struct arena *arena, const char *file, const struct toml_value *value,
                          struct manifest_pattern *ret_pattern, struct cordon_error *err) must_check;
/* Do both fit the same arguments, whatever their placeholders are called? */
bool manifest_pattern_equal(const struct manifest_pattern *one, const struct manifest_pattern *other);
/* NULL if the arguments after the program fit; else *ret_place is how many of them did, and the text, in `buffer`, says
 * what the next should have been. */
const char *manifest_pattern_misfit(const struct manifest_pattern *pattern, const char *const *arguments, size_t count,
                                    size_t *ret_place, char buffer[160]);

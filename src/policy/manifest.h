/* A manifest declares a tool: which programs it starts with which arguments, and what it may reach while it does. Same
 * language as the configuration; see cordon-manifest(5). */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "policy/capability.h"

struct manifest_word {
	enum { WORD_LITERAL, WORD_PLACEHOLDER, WORD_OPTION_PLACEHOLDER, WORD_REST } kind;
	const char *text;               /* the literal, or the placeholder's name */
};

struct manifest_pattern {
	struct manifest_word *words;    /* the arguments after the program */
	size_t count;
	const char *where;              /* FILE:LINE:COLUMN */
};

struct manifest {
	const char *name;
	struct strings programs;        /* absolute */
	struct manifest_pattern *patterns;      /* none: any arguments */
	size_t pattern_count;
	struct capability_set set;      /* what it declares */
	struct strings env_pass;
};

int manifest_read(struct arena *arena, const char *path, struct manifest *ret_manifest, struct cordon_error *err) must_check;

/* Does the command fit? `program` is resolved. If not: `program_not_allowed`, naming the nearest pattern. A
 * placeholder stands for one word that is not empty and does not begin with a dash. */
int manifest_match(const struct manifest *manifest, const char *program, const struct strings *argv,
                   struct cordon_error *err) must_check;

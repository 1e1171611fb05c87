/* Between pattern.c, which reads a pattern and makes steps of it, and pattern-match.c, which follows them. */
#pragma once
#include <stdint.h>

#include "files/pattern.h"

enum step_kind {
	STEP_SET,
	STEP_SPLIT,
	STEP_JUMP,
	STEP_LINE_START,
	STEP_LINE_END,
	STEP_WORD_EDGE,
	STEP_NO_WORD_EDGE,
	STEP_MATCH
};

struct pattern_set {
	uint64_t bits[4];               /* of bytes */
};

struct pattern_step {
	enum step_kind kind;
	uint32_t next, other;           /* the next step; `other` of STEP_SPLIT */
	struct pattern_set set;
};

/* Those that are reached, each once. */
struct pattern_reached {
	uint32_t *steps, count;
};

struct pattern {
	struct pattern_step *steps;
	uint32_t count, emitted;
	struct pattern_set first;       /* bytes that a match may begin with, */
	bool anchored, empty;           /* if it is not at the start of the line only, or may be of no bytes at all */
	const char *required;
	size_t required_length;
	struct pattern_reached now, next;
	uint32_t *marks, mark;          /* which of them are in `next` */
	uint32_t *stack;
	bool (*is_late)(const void *arg);
	const void *late_arg;
	uint64_t work;                  /* since it was asked */
	bool was_ended;
};

static inline bool set_has(const struct pattern_set *set, unsigned char byte)
{
	return set->bits[byte >> 6] >> (byte & 63) & 1;
}

/* What the pattern may begin with, and room to follow it. -1 when memory is short. */
int pattern_prepare(struct arena *arena, struct pattern *pattern) must_check;

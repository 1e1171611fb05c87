/* Following all ways of a pattern at once: see pattern.h. */
#include <string.h>

#include "base/arena.h"
#include "files/pattern-parts.h"

#define LOOK_AGAIN (1 << 20)    /* steps taken from one look at the clock to the next: some milliseconds */

static bool is_word(unsigned char byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
	       byte == '_';
}

struct edge {
	bool start, end, word;          /* of the line; between a character of a word and another one */
};

static struct edge edge_at(const char *line, size_t length, size_t at)
{
	bool before = at && is_word((unsigned char)line[at - 1]),
	     after = at < length && is_word((unsigned char)line[at]);
	return (struct edge){ .start = !at, .end = at == length, .word = before != after };
}

static bool passes(enum step_kind kind, const struct edge *edge)
{
	switch (kind) {
	case STEP_LINE_START:
		return edge->start;
	case STEP_LINE_END:
		return edge->end;
	case STEP_WORD_EDGE:
		return edge->word;
	case STEP_NO_WORD_EDGE:
		return !edge->word;
	default:
		return true;
	}
}

/* Adds a step, and all that is reached from it without a byte. True: a match is. */
static bool reach(struct pattern *pattern, struct pattern_reached *reached, uint32_t from, const struct edge *edge)
{
	uint32_t depth = 0;
	pattern->stack[depth++] = from;
	while (depth) {
		uint32_t at = pattern->stack[--depth];
		const struct pattern_step *step = &pattern->steps[at];
		if (pattern->marks[at] == pattern->mark)
			continue;
		pattern->marks[at] = pattern->mark;
		if (step->kind == STEP_MATCH)
			return true;
		if (step->kind == STEP_SET) {
			reached->steps[reached->count++] = at;
		} else if (passes(step->kind, edge)) {
			if (step->kind == STEP_SPLIT)
				pattern->stack[depth++] = step->other;
			pattern->stack[depth++] = step->next;
		}
	}
	return false;
}

static void next_mark(struct pattern *pattern)
{
	if (++pattern->mark)
		return;
	memset(pattern->marks, 0, pattern->count * sizeof(*pattern->marks));
	pattern->mark = 1;
}

void pattern_set_end(struct pattern *pattern, bool (*is_late)(const void *arg), const void *arg)
{
	pattern->is_late = is_late;
	pattern->late_arg = arg;
	pattern->was_ended = false;
}

bool pattern_was_ended(const struct pattern *pattern)
{
	return pattern->was_ended;
}

/* A byte costs as much as there are ways under way. */
static bool is_late(struct pattern *pattern)
{
	pattern->work += 1 + pattern->now.count;
	if (pattern->work < LOOK_AGAIN)
		return false;
	pattern->work = 0;
	pattern->was_ended = pattern->is_late && pattern->is_late(pattern->late_arg);
	return pattern->was_ended;
}

bool pattern_match(struct pattern *pattern, const char *line, size_t length)
{
	pattern->now.count = 0;
	if (pattern->was_ended)
		return false;
	for (size_t at = 0;; at++) {
		/* Nothing is under way: where could a match begin? */
		while (!pattern->now.count && !pattern->empty && at < length &&
		       !set_has(&pattern->first, (unsigned char)line[at]))
			at++;
		if (is_late(pattern))
			return false;
		struct edge edge = edge_at(line, length, at);
		next_mark(pattern);
		for (uint32_t i = 0; i < pattern->now.count; i++)
			pattern->marks[pattern->now.steps[i]] = pattern->mark;
		if ((!pattern->anchored || !at) && reach(pattern, &pattern->now, 0, &edge))
			return true;
		if (at == length || (pattern->anchored && !pattern->now.count))
			return false;
		edge = edge_at(line, length, at + 1);
		next_mark(pattern);
		pattern->next.count = 0;
		for (uint32_t i = 0; i < pattern->now.count; i++) {
			const struct pattern_step *step = &pattern->steps[pattern->now.steps[i]];
			if (set_has(&step->set, (unsigned char)line[at]) &&
			    reach(pattern, &pattern->next, step->next, &edge))
				return true;
		}
		struct pattern_reached swap = pattern->now;
		pattern->now = pattern->next;
		pattern->next = swap;
	}
}

const char *pattern_required(const struct pattern *pattern, size_t *ret_length)
{
	*ret_length = pattern->required_length;
	return pattern->required;
}

/* What a match may begin with: as if every edge were there. */
static void find_first(struct pattern *pattern)
{
	uint32_t depth = 0;
	pattern->mark = 1;
	pattern->stack[depth++] = 0;
	while (depth) {
		uint32_t at = pattern->stack[--depth];
		const struct pattern_step *step = &pattern->steps[at];
		if (pattern->marks[at])
			continue;
		pattern->marks[at] = 1;
		if (step->kind == STEP_MATCH) {
			pattern->empty = true;
		} else if (step->kind == STEP_SET) {
			for (int i = 0; i < 4; i++)
				pattern->first.bits[i] |= step->set.bits[i];
		} else {
			if (step->kind == STEP_SPLIT)
				pattern->stack[depth++] = step->other;
			pattern->stack[depth++] = step->next;
		}
	}
	pattern->anchored = pattern->steps[0].kind == STEP_LINE_START;
}

int pattern_prepare(struct arena *arena, struct pattern *pattern)
{
	size_t size = (pattern->count + 1) * sizeof(uint32_t);
	pattern->now.steps = arena_alloc(arena, size);
	pattern->next.steps = arena_alloc(arena, size);
	pattern->marks = arena_alloc(arena, size);
	/* Each step is put there at most twice: by those that lead to it. */
	pattern->stack = arena_alloc(arena, 2 * size);
	if (!pattern->now.steps || !pattern->next.steps || !pattern->marks || !pattern->stack)
		return -1;
	find_first(pattern);
	return 0;
}

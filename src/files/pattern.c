/* Reading a pattern, and making steps of it: see pattern.h. A pattern becomes a tree first, since a part that is
 * repeated becomes as many copies of its steps. */
#include "files/pattern.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/utf8.h"
#include "files/pattern-parts.h"
#include "files/pattern-set.h"

#define REPEATED_MAX 8                  /* as in a{2}{3} */
#define EMITTED_MAX (16 * PATTERN_STEPS_MAX)    /* parts written out: an empty one that is repeated has no step */

enum node_kind { NODE_SET, NODE_ALL_OF, NODE_ONE_OF, NODE_REPEAT, NODE_EDGE };

struct node {
	enum node_kind kind;
	struct node *parts, *last, *sibling;
	struct pattern_set set;
	unsigned least, most;           /* of NODE_REPEAT; UINT32_MAX: any number */
	enum step_kind edge;
};

struct reader {
	struct arena *arena;
	const char *text, *at, *end;
	bool fold_case;
	unsigned depth;
	struct cordon_error *err;
};

static void *refuse(struct reader *reader, const char *why)
{
	fail(reader->err, CORDON_E_INVALID_REQUEST, 0, reader->text, "the pattern is not understood at byte %zu: %s",
	     (size_t)(reader->at - reader->text) + 1, why);
	fail_boundary(reader->err, "pattern");
	fail_remedy(reader->err,
	            "put \\ before a character to match it literally, or search for a fixed text: --fixed");
	return NULL;
}

static struct node *new_node(struct reader *reader, enum node_kind kind)
{
	struct node *node = arena_alloc(reader->arena, sizeof(*node));
	if (!node)
		fail_oom(reader->err);
	else
		node->kind = kind;
	return node;
}

static void add_part(struct node *node, struct node *part)
{
	if (node->last)
		node->last->sibling = part;
	else
		node->parts = part;
	node->last = part;
}

static struct node *new_set(struct reader *reader, const struct pattern_set *set)
{
	struct node *node = new_node(reader, NODE_SET);
	if (node)
		node->set = *set;
	return node;
}

static struct node *new_byte(struct reader *reader, unsigned char byte)
{
	struct pattern_set set = { { 0 } };
	set_add(&set, byte);
	if (reader->fold_case)
		set_fold(&set);
	return new_set(reader, &set);
}

/* The bytes of one character, in their order. */
static struct node *new_character(struct reader *reader, const char *bytes, size_t length)
{
	struct node *all = new_node(reader, NODE_ALL_OF);
	for (size_t i = 0; all && i < length; i++) {
		struct node *part = new_byte(reader, (unsigned char)bytes[i]);
		if (!part)
			return NULL;
		add_part(all, part);
	}
	return all;
}

/* These bytes of ASCII, and with `beyond` every other character. */
static struct node *new_class(struct reader *reader, const struct pattern_set *ascii, bool beyond)
{
	struct node *one_of = new_node(reader, NODE_ONE_OF), *part = new_set(reader, ascii);
	if (!one_of || !part)
		return NULL;
	add_part(one_of, part);
	for (unsigned length = 1; beyond && length <= 4; length++) {
		struct node *all = new_node(reader, NODE_ALL_OF);
		for (unsigned i = 0; all && i < length; i++) {
			struct pattern_set set;
			set_of_utf8(&set, length, i);
			if (!(part = new_set(reader, &set)))
				return NULL;
			add_part(all, part);
		}
		if (!all)
			return NULL;
		add_part(one_of, all);
	}
	return one_of;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static struct node *read_choice(struct reader *reader);

static struct node *read_set(struct reader *reader)
{
	struct set_reading reading = { .at = reader->at, .end = reader->end };
	const char *why = set_read(&reading);
	if (why)
		return refuse(reader, why);
	reader->at = reading.at;
	if (reader->fold_case)
		set_fold(&reading.set);
	if (reading.negated) {
		if (reading.character_count)
			return refuse(reader, "a negated set cannot list characters beyond ASCII");
		set_negate_ascii(&reading.set);
		return new_class(reader, &reading.set, true);
	}
	struct node *one_of = new_class(reader, &reading.set, reading.beyond);
	for (size_t i = 0; one_of && i < reading.character_count; i++) {
		struct node *part = new_character(reader, reading.characters[i].bytes, reading.characters[i].length);
		if (!part)
			return NULL;
		add_part(one_of, part);
	}
	return one_of;
}

static struct node *read_escape(struct reader *reader)
{
	struct pattern_set set = { { 0 } };
	char bytes[4];
	size_t length;
	bool beyond;
	if (reader->at == reader->end)
		return refuse(reader, "a \\ at the end");
	char letter = *reader->at;
	if (letter == 'b' || letter == 'B') {
		struct node *node = new_node(reader, NODE_EDGE);
		reader->at++;
		if (node)
			node->edge = letter == 'b' ? STEP_WORD_EDGE : STEP_NO_WORD_EDGE;
		return node;
	}
	if (set_of_class(letter, &set, &beyond)) {
		reader->at++;
		return new_class(reader, &set, beyond);
	}
	const char *why = set_read_escape(&reader->at, reader->end, bytes, &length);
	return why ? refuse(reader, why) : new_character(reader, bytes, length);
}

/* After the parenthesis. */
static struct node *read_group(struct reader *reader)
{
	size_t left = (size_t)(reader->end - reader->at);
	if (left >= 2 && !memcmp(reader->at, "?:", 2))
		reader->at += 2;
	else if (left && *reader->at == '?')
		return refuse(reader, "of groups that begin with ? only (?: is known; there is no look-around");
	if (++reader->depth > PATTERN_DEPTH_MAX)
		return refuse(reader, "too many groups in groups");
	struct node *node = read_choice(reader);
	if (!node)
		return NULL;
	reader->depth--;
	if (reader->at == reader->end)
		return refuse(reader, "a group that is not closed");
	reader->at++;
	return node;
}

static struct node *new_edge(struct reader *reader, enum step_kind edge)
{
	struct node *node = new_node(reader, NODE_EDGE);
	if (node)
		node->edge = edge;
	return node;
}

static struct node *read_item(struct reader *reader)
{
	struct pattern_set ascii;
	size_t length;
	switch (*reader->at++) {
	case '(':
		return read_group(reader);
	case '[':
		return read_set(reader);
	case '\\':
		return read_escape(reader);
	case '^':
		return new_edge(reader, STEP_LINE_START);
	case '$':
		return new_edge(reader, STEP_LINE_END);
	case '.':
		ascii = (struct pattern_set){ { UINT64_MAX, UINT64_MAX, 0, 0 } };
		return new_class(reader, &ascii, true);
	case '*':
	case '+':
	case '?':
		reader->at--;
		return refuse(reader, "nothing to repeat");
	default:
		reader->at--;
		length = utf8_sequence(reader->at, (size_t)(reader->end - reader->at));
		length = length ? length : 1;
		reader->at += length;
		return new_character(reader, reader->at - length, length);
	}
}

/* "{2}", "{2,}", "{2,5}"; anything else is literal. */
static bool read_braces(struct reader *reader, unsigned *ret_least, unsigned *ret_most)
{
	char text[16], rest;
	const char *close = memchr(reader->at, '}', (size_t)(reader->end - reader->at));
	unsigned least, most;
	if (!close || (size_t)(close - reader->at) >= sizeof(text) || reader->at[1] < '0' || reader->at[1] > '9')
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)(close - reader->at - 1), reader->at + 1);
	if (sscanf(text, "%5u%c", &least, &rest) == 1)
		most = least;
	else if (sscanf(text, "%5u,%5u%c", &least, &most, &rest) != 2) {
		if (sscanf(text, "%5u%c%c", &least, &rest, &rest) != 2 || rest != ',')
			return false;
		most = UINT32_MAX;
	}
	*ret_least = least;
	*ret_most = most;
	reader->at = close + 1;
	return true;
}

static struct node *read_repeated(struct reader *reader)
{
	struct node *node = read_item(reader);
	unsigned repeated = 0;
	while (node && reader->at < reader->end) {
		unsigned least = *reader->at == '+', most = *reader->at == '?' ? 1 : UINT32_MAX;
		if (*reader->at == '{') {
			if (!read_braces(reader, &least, &most))
				break;
			if (least > PATTERN_REPEAT_MAX ||
			    (most != UINT32_MAX && (most > PATTERN_REPEAT_MAX || most < least)))
				return refuse(reader, "the number of repetitions is out of range");
		} else if (strchr("*+?", *reader->at)) {
			reader->at++;
		} else {
			break;
		}
		reader->at += reader->at < reader->end && *reader->at == '?';
		struct node *repeat = new_node(reader, NODE_REPEAT);
		if (!repeat)
			return NULL;
		if (++repeated > REPEATED_MAX)
			return refuse(reader, "too many repetitions of repetitions");
		repeat->least = least;
		repeat->most = most;
		add_part(repeat, node);
		node = repeat;
	}
	return node;
}

static struct node *read_choice(struct reader *reader)
{
	struct node *one_of = new_node(reader, NODE_ONE_OF), *all = new_node(reader, NODE_ALL_OF);
	if (!one_of || !all)
		return NULL;
	add_part(one_of, all);
	while (reader->at < reader->end && *reader->at != ')') {
		if (*reader->at == '|') {
			reader->at++;
			if (!(all = new_node(reader, NODE_ALL_OF)))
				return NULL;
			add_part(one_of, all);
			continue;
		}
		struct node *part = read_repeated(reader);
		if (!part)
			return NULL;
		add_part(all, part);
	}
	return one_of;
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static uint32_t add_step(struct pattern *pattern, enum step_kind kind)
{
	if (pattern->count < PATTERN_STEPS_MAX)
		pattern->steps[pattern->count] = (struct pattern_step){ .kind = kind, .next = pattern->count + 1 };
	/* An excess one is reported at the end; until then it replaces the last. */
	return pattern->count < PATTERN_STEPS_MAX ? pattern->count++ : PATTERN_STEPS_MAX - 1;
}

static void emit(struct pattern *pattern, const struct node *node);

static void emit_choice(struct pattern *pattern, const struct node *node)
{
	uint32_t ends = 0;              /* a chain by `next` of the jumps to the end; a number and one, or 0 */
	for (const struct node *part = node->parts; part; part = part->sibling) {
		uint32_t split = part->sibling ? add_step(pattern, STEP_SPLIT) : 0;
		emit(pattern, part);
		if (!part->sibling)
			break;
		uint32_t jump = add_step(pattern, STEP_JUMP);
		pattern->steps[jump].next = ends;
		ends = jump + 1;
		pattern->steps[split].other = pattern->count;
	}
	while (ends && pattern->count < PATTERN_STEPS_MAX) {
		uint32_t jump = ends - 1;
		ends = pattern->steps[jump].next;
		pattern->steps[jump].next = pattern->count;
	}
}

static void emit_repeat(struct pattern *pattern, const struct node *node)
{
	uint32_t splits = 0;
	for (unsigned i = 0; i < node->least && pattern->count < PATTERN_STEPS_MAX; i++)
		emit(pattern, node->parts);
	if (node->most == UINT32_MAX) {
		uint32_t split = add_step(pattern, STEP_SPLIT);
		emit(pattern, node->parts);
		uint32_t jump = add_step(pattern, STEP_JUMP);
		pattern->steps[jump].next = split;
		pattern->steps[split].other = pattern->count;
		return;
	}
	for (unsigned i = node->least; i < node->most && pattern->count < PATTERN_STEPS_MAX; i++) {
		uint32_t split = add_step(pattern, STEP_SPLIT);
		pattern->steps[split].other = splits;
		splits = split + 1;
		emit(pattern, node->parts);
	}
	while (splits && pattern->count < PATTERN_STEPS_MAX) {
		uint32_t split = splits - 1;
		splits = pattern->steps[split].other;
		pattern->steps[split].other = pattern->count;
	}
}

static void emit(struct pattern *pattern, const struct node *node)
{
	if (++pattern->emitted > EMITTED_MAX)
		pattern->count = PATTERN_STEPS_MAX;
	if (pattern->count >= PATTERN_STEPS_MAX)
		return;
	switch (node->kind) {
	case NODE_SET:
		pattern->steps[add_step(pattern, STEP_SET)].set = node->set;
		break;
	case NODE_EDGE:
		add_step(pattern, node->edge);
		break;
	case NODE_ALL_OF:
		for (const struct node *part = node->parts; part; part = part->sibling)
			emit(pattern, part);
		break;
	case NODE_ONE_OF:
		emit_choice(pattern, node);
		break;
	case NODE_REPEAT:
		emit_repeat(pattern, node);
		break;
	}
}

/* ---- what is required ------------------------------------------------------------------------------------------- */

struct literal {
	char *bytes;                    /* of every run, one after another */
	size_t start, used, best, best_length;
};

static void end_run(struct literal *literal)
{
	if (literal->used - literal->start > literal->best_length) {
		literal->best = literal->start;
		literal->best_length = literal->used - literal->start;
	}
	literal->start = literal->used;
}

/* Runs of single bytes in what every match goes through. */
static void find_runs(struct literal *literal, const struct node *node)
{
	int byte = node->kind == NODE_SET ? set_single(&node->set) : -1;
	if (byte >= 0) {
		literal->bytes[literal->used++] = (char)byte;
	} else if (node->kind == NODE_ALL_OF || (node->kind == NODE_ONE_OF && node->parts == node->last)) {
		for (const struct node *part = node->parts; part; part = part->sibling)
			find_runs(literal, part);
	} else if (node->kind != NODE_EDGE) {
		end_run(literal);
	}
}

static struct node *read_literal(struct reader *reader)
{
	struct node *all = new_character(reader, reader->text, (size_t)(reader->end - reader->text));
	reader->at = reader->end;
	return all;
}

int pattern_compile(struct arena *arena, const char *text, size_t length, unsigned options,
                    struct pattern **ret_pattern, struct cordon_error *err)
{
	struct reader reader = { .arena = arena,
		                 .text = text,
		                 .at = text,
		                 .end = text + length,
		                 .fold_case = options & PATTERN_FOLD_CASE,
		                 .err = err };
	struct literal literal = { .bytes = arena_alloc(arena, PATTERN_LENGTH_MAX + 1) };
	struct pattern *pattern = arena_alloc(arena, sizeof(*pattern));
	if (!pattern || !literal.bytes ||
	    !(pattern->steps = arena_alloc(arena, PATTERN_STEPS_MAX * sizeof(*pattern->steps))))
		return fail_oom(err);
	if (!length || length > PATTERN_LENGTH_MAX)
		return refuse(&reader, length ? "it is longer than 1024 bytes" : "it is empty"), -1;
	if (!(options & PATTERN_LITERAL) && length >= 4 && !memcmp(text, "(?i)", 4)) {
		reader.fold_case = true;
		reader.at += 4;
	}
	const struct node *tree = options & PATTERN_LITERAL ? read_literal(&reader) : read_choice(&reader);
	if (!tree)
		return -1;
	if (reader.at < reader.end)
		return refuse(&reader, "a ) without its ("), -1;
	emit(pattern, tree);
	add_step(pattern, STEP_MATCH);
	if (pattern->count >= PATTERN_STEPS_MAX)
		return refuse(&reader, "it is too large when its repetitions are written out"), -1;
	find_runs(&literal, tree);
	end_run(&literal);
	pattern->required = literal.best_length ? literal.bytes + literal.best : NULL;
	pattern->required_length = literal.best_length;
	if (pattern_prepare(arena, pattern) < 0)
		return fail_oom(err);
	*ret_pattern = pattern;
	return 0;
}

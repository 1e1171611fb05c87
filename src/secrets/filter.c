/* A window over the stream:
 *
 *     | context | held | new |         context: a few bytes that are out already, so that a word's start is known
 *     ^ base    ^ released   ^ length
 *
 * After each look the window is cut down to what may still become a secret, with its context. Where that is long and
 * bytes come singly, a look waits until a quarter more is there, so that the whole costs a constant factor. */
#include "secrets/filter.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

#define BLOCK 65536                     /* looked at together */
#define HOLD_MAX 65536                  /* the longest secret, encoded twice */
#define CONTEXT 32
#define PATIENT 256                     /* from here on a look waits for a quarter more */

struct secret_filter {
	struct secret_set *set;
	struct secret_policy policy;
	struct secret_scanner scanner;
	secret_deliver *deliver;
	void *context;
	char *window;
	size_t length, capacity, released, looked_at;
	uint64_t base, total, held_since_ms, count, hidden;
	uint64_t noted_to[2];           /* in the stream: what was reported, and what hidden, before this is noted */
	bool is_passive;                /* nothing is changed, so nothing is held */
	bool is_blocked, is_holding;
	struct secret_finding findings[SECRET_FINDINGS];
	size_t finding_count;
};

static const char *const action_names[SECRET_ACTION_MAX] = { "redact", "report", "block", "ignore" };

const char *secret_action_name(enum secret_action action)
{
	return action_names[action];
}

enum secret_action secret_action_from_name(const char *name)
{
	unsigned action = 0;
	while (action < SECRET_ACTION_MAX && strcmp(action_names[action], name) != 0)
		action++;
	return (enum secret_action)action;
}

void secret_policy_set(struct secret_policy *policy, enum secret_action action)
{
	memset(policy, (int)action, sizeof(*policy));
}

bool secret_policy_set_kind(struct secret_policy *policy, const char *kind, enum secret_action action)
{
	bool is_own = !strcmp(kind, "own");
	if (is_own)
		policy->own = (uint8_t)action;
	for (size_t i = 0; i < secret_row_count; i++)
		if (!strcmp(secret_rows[i].name, kind))
			policy->rows[i] = (uint8_t)action;
	return is_own || secret_kind_known(kind);
}

enum secret_action secret_policy_for(const struct secret_policy *policy, const struct secret_set *set,
                                     const struct secret_found *found)
{
	if (found->member < SECRET_ROWS)
		return policy->rows[found->member];
	return secret_set_own(set, found->member - SECRET_ROWS)->is_exempt ? SECRET_EXEMPT : policy->own;
}

void secret_finding_fill(struct secret_finding *finding, const struct secret_set *set,
                         const struct secret_found *found)
{
	snprintf(finding->name, sizeof(finding->name), "%s", secret_found_name(set, found));
	secret_layer_text(found->layers, finding->layer);
	sodium_bin2hex(finding->fingerprint, sizeof(finding->fingerprint), found->fingerprint,
	               sizeof(found->fingerprint));
	finding->length = found->end - found->start;
	finding->action = (enum secret_action)found->action;
	finding->is_own = found->member >= SECRET_ROWS;
}

void secret_filter_load_key(struct secret_filter *filter, void (*load)(void *arg, unsigned char *ret_key), void *arg)
{
	filter->scanner.load_key = load;
	filter->scanner.load_key_arg = arg;
}

static enum secret_action judge(const void *arg, const struct secret_found *found)
{
	const struct secret_filter *filter = arg;
	return secret_policy_for(&filter->policy, filter->set, found);
}

struct secret_filter *secret_filter_new(struct secret_set *set, const struct secret_policy *policy,
                                        const unsigned char *key, secret_deliver *deliver, void *context)
{
	struct secret_filter *filter = calloc(1, sizeof(*filter));
	if (!filter)
		return NULL;
	filter->set = secret_set_ref(set);
	filter->policy = *policy;
	filter->deliver = deliver;
	filter->context = context;
	filter->is_passive = policy->own == SECRET_REPORT || policy->own == SECRET_IGNORE || !secret_set_count(set);
	for (size_t i = 0; i < secret_row_count; i++)
		filter->is_passive &= policy->rows[i] == SECRET_REPORT || policy->rows[i] == SECRET_IGNORE;
	secret_scanner_init(&filter->scanner, set, key);
	filter->scanner.judge = judge;
	filter->scanner.judge_arg = filter;
	return filter;
}

void secret_filter_free(struct secret_filter *filter)
{
	if (!filter)
		return;
	if (filter->window)
		sodium_memzero(filter->window, filter->capacity);
	free(filter->window);
	secret_scanner_free(&filter->scanner);
	secret_set_unref(filter->set);
	free(filter);
}

static void pass(struct secret_filter *filter, const void *bytes, size_t length)
{
	if (length && !filter->is_blocked)
		filter->deliver(filter->context, bytes, length);
}

static void note(struct secret_filter *filter, const struct secret_found *found)
{
	uint64_t offset = filter->base + found->start, end = filter->base + found->end;
	uint64_t *noted_to = &filter->noted_to[found->action != SECRET_REPORT];
	bool is_known = offset < *noted_to;
	*noted_to = end > *noted_to ? end : *noted_to;
	/* Noted already, in an earlier look. */
	if (is_known)
		return;
	filter->count++;
	filter->hidden += found->action != SECRET_REPORT;
	if (filter->finding_count == SECRET_FINDINGS)
		return;
	struct secret_finding *finding = &filter->findings[filter->finding_count++];
	secret_finding_fill(finding, filter->set, found);
	finding->offset = offset;
}

static void hide(struct secret_filter *filter, const char *name)
{
	char text[SECRET_NAME + 16];
	int length = snprintf(text, sizeof(text), "[REDACTED:%.*s]", SECRET_NAME - 1, name);
	pass(filter, text, (size_t)length);
}

/* Delivers the window up to `limit`, and a secret that begins before it whole. */
static void deliver(struct secret_filter *filter, size_t limit)
{
	for (size_t i = 0; i < filter->scanner.found_count; i++) {
		const struct secret_found *found = &filter->scanner.found[i];
		if (found->start >= limit)
			continue;
		note(filter, found);
		if (found->action == SECRET_REPORT || found->end <= filter->released)
			continue;
		if (found->start > filter->released)
			pass(filter, filter->window + filter->released, found->start - filter->released);
		hide(filter, secret_found_name(filter->set, found));
		filter->released = found->end;
		filter->is_blocked |= found->action == SECRET_BLOCK;
	}
	if (limit > filter->released) {
		pass(filter, filter->window + filter->released, limit - filter->released);
		filter->released = limit;
	}
}

/* Forgets the window up to what is undecided or held, and the context before that. */
static void cut_window(struct secret_filter *filter, size_t open)
{
	size_t keep = open < filter->released ? open : filter->released;
	keep = keep > CONTEXT ? keep - CONTEXT : 0;
	memmove(filter->window, filter->window + keep, filter->length - keep);
	filter->length -= keep;
	filter->released -= keep;
	filter->base += keep;
	filter->looked_at = filter->length;
}

enum look {
	LOOK_MORE_COMES,
	LOOK_RELEASE,                   /* more may come, but what is held goes out now */
	LOOK_LAST,
};

static void look(struct secret_filter *filter, enum look when)
{
	struct secret_scanner *scanner = &filter->scanner;
	size_t open = filter->length, limit = filter->length;
	int status = secret_scan(scanner, filter->window, filter->length, when == LOOK_LAST);
	open = scanner->open;
	if (when == LOOK_RELEASE && !status)
		status = secret_scan(scanner, filter->window, filter->length, true);
	if (status < 0) {
		/* Not judged, so not passed on. */
		if (!filter->is_passive && filter->released < filter->length)
			hide(filter, "unread: memory is short");
		else
			pass(filter, filter->window + filter->released, filter->length - filter->released);
		filter->released = filter->length;
		cut_window(filter, filter->length);
		return;
	}
	if (open + HOLD_MAX < filter->length)
		open = filter->length - HOLD_MAX;
	if (when != LOOK_LAST && !filter->is_passive) {
		limit -= utf8_cut_tail(filter->window, filter->length);
		if (when == LOOK_MORE_COMES && open < limit)
			limit = open;
	}
	deliver(filter, limit);
	cut_window(filter, open);
}

static bool grow(struct secret_filter *filter, size_t wanted)
{
	if (wanted <= filter->capacity)
		return true;
	size_t capacity = filter->capacity ? filter->capacity : 4096;
	while (capacity < wanted)
		capacity *= 2;
	/* Not realloc(): the old bytes are wiped. */
	char *grown = malloc(capacity);
	if (!grown)
		return false;
	if (filter->window) {
		memcpy(grown, filter->window, filter->length);
		sodium_memzero(filter->window, filter->capacity);
		free(filter->window);
	}
	filter->window = grown;
	filter->capacity = capacity;
	return true;
}

static void add_block(struct secret_filter *filter, const char *bytes, size_t length, uint64_t now_ms)
{
	uint64_t held_to = filter->base + filter->length;
	if (!grow(filter, filter->length + length)) {
		if (filter->is_passive)
			pass(filter, bytes, length);
		else
			hide(filter, "unread: memory is short");
		return;
	}
	memcpy(filter->window + filter->length, bytes, length);
	filter->length += length;
	size_t unread = filter->length - filter->looked_at;
	if (filter->looked_at < PATIENT || unread >= filter->looked_at / 4 || filter->is_passive)
		look(filter, LOOK_MORE_COMES);
	if (!filter->is_holding || filter->base + filter->released >= held_to)
		filter->held_since_ms = now_ms;
	filter->is_holding = filter->released < filter->length;
}

void secret_filter_add(struct secret_filter *filter, const void *bytes, size_t length, uint64_t now_ms)
{
	const char *next = bytes;
	filter->total += length;
	for (size_t part; length; next += part, length -= part) {
		part = length < BLOCK ? length : BLOCK;
		add_block(filter, next, part, now_ms);
	}
}

uint64_t secret_filter_deadline(const struct secret_filter *filter)
{
	return filter->is_holding ? filter->held_since_ms + SECRET_HOLD_MS : 0;
}

void secret_filter_release(struct secret_filter *filter)
{
	if (filter->is_holding)
		look(filter, LOOK_RELEASE);
	filter->is_holding = false;
}

void secret_filter_finish(struct secret_filter *filter)
{
	if (filter->length)
		look(filter, LOOK_LAST);
	filter->is_holding = false;
}

uint64_t secret_filter_total(const struct secret_filter *filter)
{
	return filter->total;
}

uint64_t secret_filter_count(const struct secret_filter *filter, uint64_t *ret_hidden)
{
	if (ret_hidden)
		*ret_hidden = filter->hidden;
	return filter->count;
}

size_t secret_filter_findings(const struct secret_filter *filter, const struct secret_finding **ret_findings)
{
	*ret_findings = filter->findings;
	return filter->finding_count;
}

bool secret_filter_is_blocked(const struct secret_filter *filter)
{
	return filter->is_blocked;
}

/* Tool policy: see rules.h.
 *
 * Judging must not grow with the number of rules, so a rule is found by what a path must have for it to match: one key
 * each, in one hash table, and the rules of one key in a chain by their order.
 *
 *     without a match     the tool
 *     …/NAME              the last component       where there are wildcards before it
 *     …*.EXTENSION        what follows its last dot
 *     /LITERAL/LITERAL/…  the components before the first wildcard
 *     BEGINNING*          what the last component begins with, where there is no such component
 *
 * A call looks up its tool, its path's name, extension and beginnings, and every directory above it. A rule with none
 * of these, such as `*key*`, is looked at every time. */
#include "policy/rules.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "policy/cover.h"

const char *const rule_decision_names[] = { "allow", "deny", "ask" };
_Static_assert(ARRAY_SIZE(rule_decision_names) == RULE_DECISION_MAX, "every decision has a name");

enum key_kind { KEY_TOOL, KEY_NAME, KEY_EXTENSION, KEY_TREE, KEY_BEGINNING };

#define BEGINNING_MAX 63        /* of longer ones, as much */

struct key {
	enum key_kind kind;
	const char *text;
	size_t length;
	uint64_t hash;
};

struct rule_slot {
	struct key key;
	size_t first, last;             /* the chain's ends: a rule's number and one; 0: an empty slot */
};

static struct key key_make(enum key_kind kind, const char *text, size_t length)
{
	return (struct key){ kind, text, length, text_hash(TEXT_HASH + kind, text, length) };
}

static struct key key_of(const struct rule *rule)
{
	if (!rule->match)
		return key_make(KEY_TOOL, rule->tool, strlen(rule->tool));
	const struct glob *glob = &rule->glob;
	size_t literal = strcspn(glob->pattern, "*?[\\");
	if (!glob->pattern[literal])
		return key_make(KEY_TREE, glob->pattern, literal);
	if (glob->shape == GLOB_LITERAL)
		return key_make(KEY_NAME, glob->last, glob->last_length);
	const char *dot = glob->shape == GLOB_SUFFIX ? memrchr(glob->last, '.', glob->last_length) : NULL;
	if (dot)
		return key_make(KEY_EXTENSION, dot + 1, (size_t)(glob->last + glob->last_length - dot - 1));
	while (literal && glob->pattern[literal] != '/')
		literal--;
	if (!literal && glob->shape == GLOB_PREFIX)
		return key_make(KEY_BEGINNING, glob->last,
		                glob->last_length < BEGINNING_MAX ? glob->last_length : BEGINNING_MAX);
	return key_make(KEY_TREE, glob->pattern, literal);
}

/* The key's slot, or the empty one where it belongs. */
static struct rule_slot *slot_find(struct rule_slot *slots, size_t capacity, const struct key *key)
{
	size_t at = (key->hash ^ key->hash >> 32) & (capacity - 1);
	while (slots[at].first && (slots[at].key.hash != key->hash || slots[at].key.kind != key->kind ||
	                           slots[at].key.length != key->length ||
	                           memcmp(slots[at].key.text, key->text, key->length) != 0))
		at = (at + 1) & (capacity - 1);
	return &slots[at];
}

static int slots_grow(struct arena *arena, struct tool_rules *rules)
{
	if (2 * (rules->slot_count + 1) <= rules->slot_capacity)
		return 0;
	size_t capacity = rules->slot_capacity ? rules->slot_capacity * 2 : 16;
	struct rule_slot *slots = arena_alloc(arena, capacity * sizeof(*slots));
	if (!slots)
		return -1;
	for (size_t i = 0; i < rules->slot_capacity; i++)
		if (rules->slots[i].first)
			*slot_find(slots, capacity, &rules->slots[i].key) = rules->slots[i];
	rules->slots = slots;
	rules->slot_capacity = capacity;
	return 0;
}

static int items_grow(struct arena *arena, struct tool_rules *rules)
{
	if (rules->count < rules->capacity)
		return 0;
	size_t capacity = rules->capacity ? rules->capacity * 2 : 16;
	struct rule *items = arena_alloc(arena, capacity * sizeof(*items));
	if (!items)
		return -1;
	if (rules->count)
		memcpy(items, rules->items, rules->count * sizeof(*items));
	rules->items = items;
	rules->capacity = capacity;
	return 0;
}

static int check_match(const char *match, const char *where, struct cordon_error *err)
{
	size_t length = strlen(match);
	if (match[0] != '/' && strchr(match, '/') && strncmp(match, "**/", 3) != 0) {
		fail(err, CORDON_E_CONFIG_INVALID, 0, where, "the rule's match \"%s\" begins in no directory", match);
		return fail_remedy(err, "begin it with a slash, or with \"**/\" for any depth");
	}
	if (length && match[length - 1] == '/') {
		fail(err, CORDON_E_CONFIG_INVALID, 0, where, "the rule's match \"%s\" ends in a slash", match);
		return fail_remedy(err, "\"%s**\" is what lies beneath it", match);
	}
	return 0;
}

int rules_add(struct arena *arena, struct tool_rules *rules, const char *tool, const char *match,
              enum rule_decision decision, const char *where, struct cordon_error *err)
{
	struct rule rule = { .tool = arena_strdup(arena, tool), .decision = decision, .layer = rules->layer,
	                     .match = match ? arena_strdup(arena, match) : NULL,
	                     .where = where ? arena_strdup(arena, where) : NULL };
	if (!rule.tool || (match && !rule.match) || (where && !rule.where))
		return fail_oom(err);
	if (!tool[0])
		return fail(err, CORDON_E_CONFIG_INVALID, 0, where, "the rule names no tool");
	if (match && check_match(match, where, err) < 0)
		return -1;
	if (match && glob_compile(arena, match, 0, &rule.glob, err) < 0)
		return where && err ?
		               fail(err, err->class, 0, where, "the rule's match \"%s\": %s", match, err->reason) :
		               -1;
	if (items_grow(arena, rules) < 0 || slots_grow(arena, rules) < 0)
		return fail_oom(err);

	struct key key = key_of(&rule);
	struct rule_slot *slot = slot_find(rules->slots, rules->slot_capacity, &key);
	rules->items[rules->count++] = rule;
	if (key.kind == KEY_BEGINNING)
		rules->beginnings |= UINT64_C(1) << key.length;
	if (slot->first) {
		rules->items[slot->last - 1].next = rules->count;
		slot->last = rules->count;
	} else {
		*slot = (struct rule_slot){ key, rules->count, rules->count };
		rules->slot_count++;
	}
	return 0;
}

void rules_next_layer(struct tool_rules *rules)
{
	assert(rules->layer + 1 < RULE_LAYERS_MAX);
	rules->layer++;
}

struct search {
	const struct tool_rules *rules;
	const char *tool, *subject, *name;      /* `subject` may be NULL; `name`: its last component */
	size_t first[RULE_LAYERS_MAX];          /* each layer's first match so far: its number and one, or 0 */
};

static bool rule_matches(const struct search *search, const struct rule *rule)
{
	if (strcmp(rule->tool, "*") != 0 && strcmp(rule->tool, search->tool) != 0)
		return false;
	if (!rule->match)
		return true;
	return search->subject && glob_match_name(&rule->glob, search->name, strlen(search->name)) &&
	       (rule->glob.anywhere || glob_match(&rule->glob, search->subject));
}

static void look_up(struct search *search, const struct key *key)
{
	const struct tool_rules *rules = search->rules;
	const struct rule_slot *slot = slot_find(rules->slots, rules->slot_capacity, key);
	for (size_t at = slot->first; at; at = rules->items[at - 1].next) {
		size_t *first = &search->first[rules->items[at - 1].layer];
		if ((!*first || at < *first) && rule_matches(search, &rules->items[at - 1]))
			*first = at;
	}
}

static void look_up_text(struct search *search, enum key_kind kind, const char *text)
{
	struct key key = key_make(kind, text, strlen(text));
	look_up(search, &key);
}

static void look_up_beginnings(struct search *search)
{
	struct key key = key_make(KEY_BEGINNING, search->name, 0);
	for (uint64_t left = search->rules->beginnings >> 1; left && search->name[key.length]; left >>= 1) {
		key.hash = text_hash(key.hash, search->name + key.length++, 1);
		if (left & 1)
			look_up(search, &key);
	}
}

static void look_up_subject(struct search *search)
{
	const char *path = search->subject + 1, *dot = strrchr(search->name, '.');
	look_up_text(search, KEY_NAME, search->name);
	look_up_beginnings(search);
	if (dot)
		look_up_text(search, KEY_EXTENSION, dot + 1);
	struct key key = key_make(KEY_TREE, path, 0);
	look_up(search, &key);
	while (path[key.length]) {
		size_t more = key.length + (key.length > 0);
		more += strcspn(path + more, "/");
		key.hash = text_hash(key.hash, path + key.length, more - key.length);
		key.length = more;
		look_up(search, &key);
	}
}

bool rule_is_stricter(enum rule_decision one, enum rule_decision other)
{
	static const int strictness[] = { [RULE_ALLOW] = 0, [RULE_ASK] = 1, [RULE_DENY] = 2 };
	_Static_assert(ARRAY_SIZE(strictness) == RULE_DECISION_MAX, "every decision has its strictness");
	return strictness[one] > strictness[other];
}

static int judge_by_rules(struct arena *arena, const struct tool_rules *rules, const char *tool, const char *subject,
                          struct rule_verdict *verdict)
{
	struct search search = { .rules = rules, .tool = tool, .subject = subject,
	                         .name = subject ? strrchr(subject, '/') + 1 : "" };
	const struct rule *decides = NULL;
	if (!rules->count)
		return 0;
	look_up_text(&search, KEY_TOOL, tool);
	look_up_text(&search, KEY_TOOL, "*");
	if (subject)
		look_up_subject(&search);
	for (size_t i = 0; i < ARRAY_SIZE(search.first); i++) {
		const struct rule *rule = search.first[i] ? &rules->items[search.first[i] - 1] : NULL;
		if (rule && (!decides || rule_is_stricter(rule->decision, decides->decision)))
			decides = rule;
	}
	if (!decides)
		return 0;
	verdict->decision = decides->decision;
	verdict->hard = decides->decision == RULE_DENY;
	verdict->where = decides->where;
	verdict->why = "a rule allows it";
	if (decides->decision != RULE_ALLOW)
		verdict->why = arena_printf(arena, "a rule says %s for %s%s%s", rule_decision_names[decides->decision],
		                            strcmp(decides->tool, "*") ? decides->tool : "any tool",
		                            decides->match ? " on " : "", decides->match ? decides->match : "");
	return verdict->why ? 0 : -1;
}

/* Why the path lists refuse it, or NULL. */
static const char *judge_by_paths(const struct tool_rules *rules, const char *subject)
{
	if (subject && cover_path(&rules->denied_paths, subject, false))
		return "it lies in denied_paths";
	if (rules->allowed_paths.count && (!subject || !cover_path(&rules->allowed_paths, subject, false)))
		return "it lies outside allowed_paths";
	return NULL;
}

int rules_judge(struct arena *arena, const struct tool_rules *rules, const char *tool, const char *subject,
                bool file_tool, bool writes_held, struct rule_verdict *ret_verdict)
{
	struct rule_verdict verdict = { RULE_ALLOW, false, "no rule is about it", NULL };
	const char *refused = subject && !path_is_normal(subject) ? "its path is not canonical" :
	                      file_tool ? judge_by_paths(rules, subject) : NULL;
	if (refused)
		verdict = (struct rule_verdict){ RULE_DENY, true, refused, NULL };
	else if (judge_by_rules(arena, rules, tool, subject, &verdict) < 0)
		return -1;
	if (verdict.decision == RULE_ALLOW && !file_tool && !writes_held && rules->allowed_paths.count)
		verdict = (struct rule_verdict){ RULE_ASK, false,
			"allowed_paths is set, and nothing here keeps a command from writing elsewhere", NULL };
	*ret_verdict = verdict;
	return 0;
}

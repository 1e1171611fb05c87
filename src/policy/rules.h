/* Tool policy: ordered rules over (tool, subject); the first that matches decides. The subject is a path that the
 * kernel resolved (of a file tool: the file; of `run`: the program), never a text that an agent wrote. A name that
 * leads there through a symbolic link is another path: a caller that has both asks about both, and the stricter answer
 * counts.
 *
 * Rules come in layers, one per file of the configuration: each layer answers by its own first match, and the
 * strictest of the answers counts. So a later layer can narrow what an earlier one allows, and never widen it. */
#pragma once
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/glob.h"

enum rule_decision { RULE_ALLOW, RULE_DENY, RULE_ASK, RULE_DECISION_MAX };
extern const char *const rule_decision_names[RULE_DECISION_MAX];

#define RULE_LAYERS_MAX 8

struct rule {
	const char *tool;               /* "run", "read", "write", …; "*" for any */
	const char *match;              /* the glob as it was written; NULL: whatever the call is about */
	struct glob glob;               /* compiled, where there is a `match` */
	enum rule_decision decision;
	const char *where;              /* FILE:LINE:COLUMN */
	unsigned layer;
	size_t next;                    /* of those that are looked up alike: its number and one, or 0 */
};

struct rule_slot;

/* Zeroed, it has no rules. The rules are added by rules_add() alone, which also keeps what finds them. */
struct tool_rules {
	struct rule *items;
	size_t count, capacity;
	unsigned layer;                 /* that the next rule belongs to */
	struct rule_slot *slots;
	size_t slot_count, slot_capacity;
	uint64_t beginnings;            /* a bit for each length that names are looked up by */
	/* For file tools, absolute and normalised paths, compared byte for byte as the filesystems here do; a tree is
	 * what lies beneath. Empty `allowed_paths`: no restriction by it. */
	struct strings allowed_paths, denied_paths;
};

struct rule_verdict {
	enum rule_decision decision;
	bool hard;                      /* a denial that no approval lifts */
	const char *why;                /* one line, for display; the arena's or static */
	const char *where;              /* of the rule, or NULL */
};

/* Adds a copy; compiles the glob. Refused as `config_invalid`, besides what no glob can be: one that is neither
 * absolute nor meant at any depth, since there is no directory it could begin in, and one that ends in a slash, since
 * it would not hold for what lies beneath. */
int rules_add(struct arena *arena, struct tool_rules *rules, const char *tool, const char *match,
              enum rule_decision decision, const char *where, struct cordon_error *err) must_check;

/* What is added from now on is a layer of its own. At most RULE_LAYERS_MAX. */
void rules_next_layer(struct tool_rules *rules);

/* `subject`: an absolute, canonical path, or NULL; one that is not canonical is denied. No rule: allowed.
 * `file_tool`: the path lists apply to it; any other tool starts programs. `writes_held`: the driver really keeps those
 * from writing outside their grants; where it does not and `allowed_paths` is set, they are at least asked about.
 * Every denial is hard. -1 when memory is short. */
int rules_judge(struct arena *arena, const struct tool_rules *rules, const char *tool, const char *subject,
                bool file_tool, bool writes_held, struct rule_verdict *ret_verdict) must_check;

/* allow, ask, deny: is `one` stricter than `other`? */
bool rule_is_stricter(enum rule_decision one, enum rule_decision other);

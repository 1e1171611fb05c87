/* Tool policy: ordered rules over (tool, what the call is about); the first that matches decides. What a call is about is
 * a path the kernel resolved (of a file tool: the file; of `run`: the program), never a text an agent wrote. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/glob.h"

enum rule_decision { RULE_ALLOW, RULE_DENY, RULE_ASK, RULE_DECISION_MAX };
extern const char *const rule_decision_names[RULE_DECISION_MAX];

struct rule {
	const char *tool;               /* "run", "read", "write", …; "*" for any */
	const char *match;              /* the glob as it was written; NULL: whatever the call is about */
	struct glob glob;               /* compiled, where there is a `match` */
	enum rule_decision decision;
	const char *where;              /* FILE:LINE:COLUMN */
};

struct tool_rules {
	struct rule *items;
	size_t count, capacity;
	/* For file tools, absolute paths; a tree is what lies beneath. Empty `allowed_paths`: no restriction by it. */
	struct strings allowed_paths, denied_paths;
};

struct rule_verdict {
	enum rule_decision decision;
	bool hard;                      /* a denial that no approval lifts */
	const char *why;                /* one line for people; the arena's or static */
	const char *where;              /* of the rule, or NULL */
};

/* Adds a copy; compiles the glob. */
int rules_add(struct arena *arena, struct tool_rules *rules, const char *tool, const char *match,
              enum rule_decision decision, const char *where, struct cordon_error *err) must_check;

/* `subject`: an absolute, canonical path, or NULL. No rule: allowed. `writes_held`: the driver really keeps the command
 * from writing outside its grants; where it does not and `allowed_paths` is set, `run` is at least asked about.
 * `file_tool`: the path lists apply to it. */
int rules_judge(struct arena *arena, const struct tool_rules *rules, const char *tool, const char *subject,
                bool file_tool, bool writes_held, struct rule_verdict *ret_verdict) must_check;

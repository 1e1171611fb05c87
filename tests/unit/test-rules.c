/* Tool policy: single cases, and finding rules by their keys beside looking at each in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena-ground.h"
#include "cordon-internal.h"
#include "policy/rules.h"

static void add(struct tool_rules *rules, const char *tool, const char *match, enum rule_decision decision)
{
	struct cordon_error err = { 0 };
	char where[32];
	snprintf(where, sizeof(where), "c.toml:%zu:1", rules->count + 1);
	if (rules_add(&arena, rules, tool, match, decision, where, &err) < 0)
		fail_msg("%s: %s", match, err.reason);
}

static struct rule_verdict judge(const struct tool_rules *rules, const char *tool, const char *subject, bool file_tool,
                                 bool writes_held)
{
	struct rule_verdict verdict;
	assert_int_equal(rules_judge(&arena, rules, tool, subject, file_tool, writes_held, &verdict), 0);
	assert_non_null(verdict.why);
	assert_int_equal(verdict.hard, verdict.decision == RULE_DENY);
	return verdict;
}

static enum rule_decision decide(const struct tool_rules *rules, const char *tool, const char *subject)
{
	return judge(rules, tool, subject, strcmp(tool, "run") != 0, true).decision;
}

static void nothing_said_is_allowed(void **state)
{
	(void)state;
	struct tool_rules rules = { 0 };
	assert_int_equal(decide(&rules, "run", "/usr/bin/ls"), RULE_ALLOW);
	assert_int_equal(decide(&rules, "run", NULL), RULE_ALLOW);
	add(&rules, "write", "/data/**", RULE_DENY);
	struct rule_verdict verdict = judge(&rules, "write", "/etc/x", true, true);
	assert_int_equal(verdict.decision, RULE_ALLOW);
	assert_null(verdict.where);
	for (int i = 0; i < RULE_DECISION_MAX; i++)
		assert_string_equal(rule_decision_names[i], ((const char *[]){ "allow", "deny", "ask" })[i]);
}

static void the_first_match_decides(void **state)
{
	(void)state;
	struct tool_rules rules = { 0 };
	add(&rules, "run", "/usr/bin/git", RULE_ALLOW);
	add(&rules, "run", "/usr/bin/*", RULE_ASK);
	add(&rules, "run", "/usr/bin/curl", RULE_DENY);         /* never reached */
	add(&rules, "write", "**/*.pem", RULE_DENY);
	add(&rules, "write", "/data/keys/**", RULE_ALLOW);
	add(&rules, "read", NULL, RULE_ASK);
	add(&rules, "*", "Makefile", RULE_DENY);
	add(&rules, "*", NULL, RULE_ASK);
	static const struct {
		const char *tool, *subject;
		enum rule_decision decision;
		int line;
	} rows[] = {
		{ "run", "/usr/bin/git", RULE_ALLOW, 1 },
		{ "run", "/usr/bin/curl", RULE_ASK, 2 },
		{ "run", "/usr/bin/x/y", RULE_ASK, 8 },
		{ "run", "/opt/Makefile", RULE_DENY, 7 },
		{ "run", "/opt/makefile", RULE_ASK, 8 },        /* exact case: these are two files */
		{ "write", "/data/keys/a.pem", RULE_DENY, 4 },
		{ "write", "/data/keys/a", RULE_ALLOW, 5 },
		{ "write", "/data/keys/Makefile", RULE_ALLOW, 5 },
		{ "write", "/data/keys", RULE_ASK, 8 },
		{ "write", "/", RULE_ASK, 8 },
		{ "read", "/a/Makefile", RULE_ASK, 6 },
		{ "read", NULL, RULE_ASK, 6 },
		{ "write", NULL, RULE_ASK, 8 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char where[32];
		snprintf(where, sizeof(where), "c.toml:%d:1", rows[i].line);
		struct rule_verdict verdict =
			judge(&rules, rows[i].tool, rows[i].subject, strcmp(rows[i].tool, "run") != 0, true);
		if (verdict.decision != rows[i].decision || strcmp(verdict.where, where) != 0)
			fail_msg("%s %s: %s at %s", rows[i].tool, rows[i].subject,
			         rule_decision_names[verdict.decision], verdict.where);
	}
	struct rule_verdict verdict = judge(&rules, "write", "/data/a.pem", true, true);
	assert_string_equal(verdict.why, "a rule says deny for write on **/*.pem");
	verdict = judge(&rules, "list", "/data", true, true);
	assert_string_equal(verdict.why, "a rule says ask for any tool");
}

static void path_lists(void **state)
{
	(void)state;
	struct tool_rules rules = { 0 };
	assert_int_equal(strings_add(&arena, &rules.allowed_paths, "/work"), 0);
	assert_int_equal(strings_add(&arena, &rules.allowed_paths, "/data/a"), 0);
	assert_int_equal(strings_add(&arena, &rules.denied_paths, "/work/secret"), 0);
	add(&rules, "*", NULL, RULE_ALLOW);     /* lifts none of them */
	static const struct {
		const char *subject;
		enum rule_decision decision;
	} rows[] = {
		{ "/work", RULE_ALLOW },
		{ "/work/x", RULE_ALLOW },
		{ "/data/a", RULE_ALLOW },
		{ "/data/a/b", RULE_ALLOW },
		{ "/data/ab", RULE_DENY },
		{ "/data", RULE_DENY },
		{ "/", RULE_DENY },
		{ "/work/secret", RULE_DENY },
		{ "/work/secret/x", RULE_DENY },
		{ "/work/secrets", RULE_ALLOW },
		{ "/work/Secret", RULE_ALLOW },
		{ NULL, RULE_DENY },
		/* Not canonical: not what the kernel resolved. */
		{ "/work/../etc", RULE_DENY },
		{ "work", RULE_DENY },
		{ "", RULE_DENY },
		{ "/work/", RULE_DENY },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (decide(&rules, "write", rows[i].subject) != rows[i].decision)
			fail_msg("%s", rows[i].subject);
	assert_string_equal(judge(&rules, "write", "/work/secret", true, true).why, "it lies in denied_paths");
	assert_string_equal(judge(&rules, "write", "/etc", true, true).why, "it lies outside allowed_paths");
	/* They are about files: a program may lie anywhere. */
	assert_int_equal(decide(&rules, "run", "/usr/bin/ls"), RULE_ALLOW);
	assert_int_equal(decide(&rules, "run", "bin/ls"), RULE_DENY);
}

static void denied_wins_over_allowed(void **state)
{
	(void)state;
	struct tool_rules rules = { 0 };
	assert_int_equal(strings_add(&arena, &rules.allowed_paths, "/work/a/b"), 0);
	assert_int_equal(strings_add(&arena, &rules.denied_paths, "/work/a"), 0);
	assert_int_equal(decide(&rules, "read", "/work/a/b"), RULE_DENY);
	assert_int_equal(decide(&rules, "read", "/work/a/b/c"), RULE_DENY);
}

static void writes_that_nothing_holds(void **state)
{
	(void)state;
	struct tool_rules rules = { 0 };
	assert_int_equal(judge(&rules, "run", "/usr/bin/ls", false, false).decision, RULE_ALLOW);
	assert_int_equal(strings_add(&arena, &rules.allowed_paths, "/work"), 0);
	assert_int_equal(judge(&rules, "run", "/usr/bin/ls", false, true).decision, RULE_ALLOW);
	assert_int_equal(judge(&rules, "run", "/usr/bin/ls", false, false).decision, RULE_ASK);
	assert_int_equal(judge(&rules, "run", NULL, false, false).decision, RULE_ASK);
	assert_int_equal(judge(&rules, "read", "/work/x", true, false).decision, RULE_ALLOW);
	add(&rules, "run", "/usr/bin/ls", RULE_ALLOW);
	add(&rules, "run", "/usr/bin/rm", RULE_DENY);
	struct rule_verdict verdict = judge(&rules, "run", "/usr/bin/ls", false, false);
	assert_int_equal(verdict.decision, RULE_ASK);
	assert_null(verdict.where);
	assert_non_null(strstr(verdict.why, "allowed_paths"));
	assert_int_equal(judge(&rules, "run", "/usr/bin/rm", false, false).decision, RULE_DENY);
}

static void the_strictest_layer_counts(void **state)
{
	(void)state;
	struct tool_rules rules = { 0 };
	add(&rules, "run", "/usr/bin/git", RULE_ALLOW);
	add(&rules, "run", "/usr/bin/curl", RULE_DENY);
	add(&rules, "run", NULL, RULE_ASK);
	rules_next_layer(&rules);
	add(&rules, "run", "/usr/bin/git", RULE_ASK);
	add(&rules, "run", "/usr/bin/git", RULE_DENY);
	add(&rules, "run", "curl", RULE_ALLOW);
	add(&rules, "run", "ls", RULE_ALLOW);
	rules_next_layer(&rules);
	add(&rules, "run", "ssh", RULE_DENY);
	assert_int_equal(decide(&rules, "run", "/usr/bin/git"), RULE_ASK);
	assert_int_equal(decide(&rules, "run", "/usr/bin/curl"), RULE_DENY);
	assert_int_equal(decide(&rules, "run", "/usr/bin/ls"), RULE_ASK);
	assert_int_equal(decide(&rules, "run", "/usr/bin/ssh"), RULE_DENY);
	assert_string_equal(judge(&rules, "run", "/usr/bin/ls", false, true).where, "c.toml:3:1");
	static const enum rule_decision order[] = { RULE_ALLOW, RULE_ASK, RULE_DENY };
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		for (size_t j = 0; j < ARRAY_SIZE(order); j++)
			assert_int_equal(rule_is_stricter(order[i], order[j]), i > j);
}

static void what_is_no_rule(void **state)
{
	(void)state;
	static const struct {
		const char *tool, *match;
	} rows[] = {
		{ "", NULL }, { "run", "" }, { "run", "/" }, { "run", "/a/../b" }, { "run", "a/b" }, { "run", "~/x" },
		{ "run", "./a" }, { "run", "/etc/" }, { "run", "**/.ssh/" }, { "run", "*/x" },
	};
	struct tool_rules rules = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cordon_error err = { 0 };
		assert_int_equal(rules_add(&arena, &rules, rows[i].tool, rows[i].match, RULE_DENY, "c.toml:7:1", &err),
		                 -1);
		assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
		assert_string_equal(err.subject, "c.toml:7:1");
		assert_int_equal(rules.count, 0);
	}
	struct cordon_error err = { 0 };
	assert_int_equal(rules_add(&arena, &rules, "run", "/a/../b", RULE_DENY, NULL, &err), -1);
	assert_int_equal(rules_add(&arena, &rules, "run", "/a/../b", RULE_DENY, NULL, NULL), -1);
	assert_int_equal(rules_add(&arena, &rules, "run", "/a", RULE_DENY, NULL, &err), 0);
	assert_null(judge(&rules, "run", "/a", false, true).where);
}

/* ---- By keys as by turns ---------------------------------------------------------------------------------------- */

static const char *pick(const char *const *from, size_t count)
{
	return from[(size_t)random() % count];
}
#define PICK(list) pick(list, ARRAY_SIZE(list))

static enum rule_decision by_turns(const struct tool_rules *rules, const char *tool, const char *subject,
                                   const char **ret_where)
{
	enum rule_decision strictest = RULE_ALLOW;
	const char *where = NULL;
	for (unsigned layer = 0; layer <= rules->layer; layer++)
		for (size_t i = 0; i < rules->count; i++) {
			const struct rule *rule = &rules->items[i];
			if (rule->layer != layer || (strcmp(rule->tool, "*") && strcmp(rule->tool, tool)) ||
			    (rule->match && (!subject || !glob_match(&rule->glob, subject))))
				continue;
			if (!where || rule_is_stricter(rule->decision, strictest)) {
				strictest = rule->decision;
				where = rule->where;
			}
			break;
		}
	*ret_where = where;
	return strictest;
}

/* As long as what is looked up by a beginning. */
#define LONG "long567890123456789012345678901234567890123456789012345678901234"
_Static_assert(sizeof(LONG) == 65, "it is about that");

static void keys_change_nothing(void **state)
{
	(void)state;
	static const char *const tools[] = { "run", "read", "write", "*" };
	static const char *const matches[] = { NULL,       "/a",      "/a/b",    "/a/b/c.x",  "/a/**",   "/a/*",
		                               "/a/b/**",  "/**",     "/**/b",   "b",         "*.x",     "**/*.x",
		                               "/a/*.x",   "*.c.x",   "*~",      "c*",        "?",       "[ab]",
		                               "/a/?/c.x", "**/b/*",  "/a*/b",   "/a/b*",     "**/a/**", "/a/**/c.x",
		                               "/a/\\b",   "*.",      "a.*",     "/a/**/*.x", "**/c.*",  "/**/a*",
		                               LONG "*",   LONG "n*", LONG "nn*" };
	static const char *const subjects[] = { NULL,           "/",          "/a",
		                                "/b",           "/a/b",       "/a/c",
		                                "/ab/b",        "/a/b/c.x",   "/a/b/c.y",
		                                "/a/c.x",       "/x/a/b/c.x", "/b/b",
		                                "/b/c.c.x",     "/a/x~",      "/a/b/c/d/e/f.x",
		                                "/a.",          "/a/a.b",     "/a/b.",
		                                "/.x",          "/" LONG,     "/a/" LONG "n",
		                                "/" LONG "nnn", "/a/c" };
	int found = 0;
	srandom(5);
	for (int round = 0; round < 3000; round++) {
		struct tool_rules rules = { 0 };
		for (long i = random() % 40; i; i--) {
			if (random() % 16 == 0 && rules.layer + 1 < RULE_LAYERS_MAX)
				rules_next_layer(&rules);
			add(&rules, PICK(tools), PICK(matches), (enum rule_decision)(random() % RULE_DECISION_MAX));
		}
		for (int i = 0; i < 20; i++) {
			const char *tool = pick(tools, 3), *subject = PICK(subjects), *where = NULL;
			enum rule_decision expected = by_turns(&rules, tool, subject, &where);
			struct rule_verdict verdict = judge(&rules, tool, subject, true, true);
			found += where != NULL;
			if (verdict.decision != expected || !verdict.where != !where ||
			    (where && strcmp(verdict.where, where)))
				fail_msg("%s %s: %s instead of %s", tool, subject, verdict.where, where);
		}
		arena_free(&arena);
	}
	assert_true(found > 10000);
}

static void a_thousand_rules(void **state)
{
	(void)state;
	struct tool_rules rules = { 0 };
	char match[64];
	for (int i = 0; i < 1000; i++) {
		snprintf(match, sizeof(match), i % 2 ? "/srv/app-%d/**" : "name-%d", i);
		add(&rules, "write", match, (enum rule_decision)(i % RULE_DECISION_MAX));
	}
	for (int i = 0; i < 1000; i++) {
		snprintf(match, sizeof(match), i % 2 ? "/srv/app-%d/x/y" : "/tmp/name-%d", i);
		assert_int_equal(decide(&rules, "write", match), i % RULE_DECISION_MAX);
		assert_int_equal(decide(&rules, "read", match), RULE_ALLOW);
	}
	/* A path of two thousand directories is no trouble. */
	char deep[4001] = "";
	for (size_t i = 0; i < 4000; i += 2)
		memcpy(deep + i, "/d", 2);
	assert_int_equal(decide(&rules, "write", deep), RULE_ALLOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(nothing_said_is_allowed, free_arena),
		cmocka_unit_test_teardown(the_first_match_decides, free_arena),
		cmocka_unit_test_teardown(path_lists, free_arena),
		cmocka_unit_test_teardown(denied_wins_over_allowed, free_arena),
		cmocka_unit_test_teardown(writes_that_nothing_holds, free_arena),
		cmocka_unit_test_teardown(the_strictest_layer_counts, free_arena),
		cmocka_unit_test_teardown(what_is_no_rule, free_arena),
		cmocka_unit_test_teardown(keys_change_nothing, free_arena),
		cmocka_unit_test_teardown(a_thousand_rules, free_arena),
	};
	return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}

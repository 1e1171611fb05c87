/* [[policy.rules]]: tables of tool, match and decision. The names of the tools are known, so that a misspelt rule is a
 * mistake and not one that never matches. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "config/parse.h"

static const char *const tools[] = { "run", "read", "write", "edit", "list", "find", "grep", "stat", "send", "*" };
static const char *const rule_keys[] = { "tool", "match", "decision" };

/* The member of this name as text; NULL where it is not there. */
static int read_member(const struct config_reader *reader, const struct toml_value *table, const char *key,
                       const char **ret_text, struct cordon_error *err)
{
	const struct toml_value *member = toml_member(table, key);
	*ret_text = NULL;
	if (!member)
		return 0;
	if (member->type != TOML_STRING)
		return toml_fail(err, reader->file, member, "%s must be a string, and this is %s", key,
		                 toml_type_names[member->type]);
	if (!member->length || strlen(member->text) != member->length || text_has_control(member->text))
		return toml_fail(err, reader->file, member,
		                 "%s must be a text without control characters, and not empty", key);
	*ret_text = member->text;
	return 0;
}

static int read_word(const struct config_reader *reader, const struct toml_value *table, const char *key,
                     const char *const *words, size_t count, size_t *ret_index, struct cordon_error *err)
{
	const char *text;
	if (read_member(reader, table, key, &text, err) < 0)
		return -1;
	if (!text)
		return toml_fail(err, reader->file, table, "a rule needs a %s", key);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(words[i], text)) {
			*ret_index = i;
			return 0;
		}
	const char *what = arena_printf(reader->arena, "a %s", key);
	struct strings list = { .items = (const char **)words, .count = count };
	return what ? config_fail_word(err, reader->file, toml_member(table, key), text, &list, what) : fail_oom(err);
}

static int check_keys(const struct config_reader *reader, const struct toml_value *table, struct cordon_error *err)
{
	const struct strings keys = { .items = (const char **)rule_keys, .count = ARRAY_SIZE(rule_keys) };
	for (size_t i = 0; i < table->count; i++) {
		const struct toml_value *member = table->items[i];
		if (strings_find(&keys, member->key) < 0 || strlen(member->key) != member->key_length)
			return config_fail_word(err, reader->file, member, member->key, &keys, "a key of a rule");
	}
	return 0;
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* The decision is the only difference: which one was meant? */
static int check_contradiction(const struct config_reader *reader, const struct tool_rules *rules,
                               const struct toml_value *table, struct cordon_error *err)
{
	const struct rule *last = &rules->items[rules->count - 1];
	for (const struct rule *rule = rules->items; rule < last; rule++)
		if (rule->decision != last->decision && is_same(rule->tool, last->tool) &&
		    is_same(rule->match, last->match)) {
			toml_fail(err, reader->file, table,
			          "this rule contradicts the one at %s: the same tool and match, but %s and not %s",
			          rule->where, rule_decision_names[last->decision],
			          rule_decision_names[rule->decision]);
			return fail_remedy(err, "remove one of them");
		}
	return 0;
}

static int read_rule(const struct config_reader *reader, const struct toml_value *table, struct tool_rules *rules,
                     struct cordon_error *err)
{
	size_t tool = 0, decision = 0;
	const char *match;
	struct cordon_error why;
	if (check_keys(reader, table, err) < 0 ||
	    read_word(reader, table, "tool", tools, ARRAY_SIZE(tools), &tool, err) < 0 ||
	    read_word(reader, table, "decision", rule_decision_names, RULE_DECISION_MAX, &decision, err) < 0 ||
	    read_member(reader, table, "match", &match, err) < 0)
		return -1;
	const char *where = arena_printf(reader->arena, "%s:%u:%u", reader->file, table->line, table->column);
	if (!where)
		return fail_oom(err);
	if (match && config_expand_glob(reader, toml_member(table, "match"), &match, err) < 0)
		return -1;
	if (rules_add(reader->arena, rules, tools[tool], match, (enum rule_decision)decision, where, &why) < 0)
		return toml_fail(err, reader->file, match ? toml_member(table, "match") : table, "%s", why.reason);
	return check_contradiction(reader, rules, table, err);
}

int config_rules_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                      struct config_value *ret_value, struct cordon_error *err)
{
	struct tool_rules rules = { 0 };
	if (at->type != TOML_ARRAY)
		return toml_fail(err, reader->file, at, "%s must be %s, each beginning with [[%s]]", row->path,
		                 config_type_texts[row->type], row->path);
	if (at->count > CONFIG_LIST_MAX)
		return toml_fail(err, reader->file, at, "%s has more than %d rules", row->path, CONFIG_LIST_MAX);
	for (size_t i = 0; i < at->count; i++) {
		if (at->items[i]->type != TOML_TABLE)
			return toml_fail(err, reader->file, at->items[i],
			                 "a rule must be a table: tool, match, decision");
		if (read_rule(reader, at->items[i], &rules, err) < 0)
			return -1;
	}
	ret_value->rules = rules.items;
	ret_value->rule_count = rules.count;
	return 0;
}

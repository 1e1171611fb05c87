/* Judged is what the paths really are, not how they were named: a link inside a granted directory grants nothing of
 * what it leads to. A grant counts for a path only while that is still the file or directory it was when a human
 * approved it. */
#include "approval/authorize.h"

#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "policy/env.h"
#include "session/beneath.h"
#include "host/program.h"
#include "session/registry.h"

struct paths {
	struct strings *list;
	const struct places *places;
};

/* The set with every path as it really is. */
static int canonical(const struct authorize_facts *facts, struct grants *grants, struct capability_set *ret_set)
{
	struct capability_set set = grants->set;
	const struct paths lists[] = {
		{ &set.fs_read, &grants->reads },      { &set.fs_write, &grants->writes },
		{ &set.devices, &grants->devices },    { &set.sockets, &grants->sockets },
		{ &set.programs, &grants->programs },
	};
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		*lists[i].list = (struct strings){ 0 };
		for (size_t j = 0; j < lists[i].places->count; j++)
			if (strings_add(facts->arena, lists[i].list, lists[i].places->items[j].path) < 0)
				return -1;
	}
	*ret_set = set;
	return 0;
}

/* The paths of a ceiling as they really are. One that is gone, or that `still` does not vouch for, allows nothing. */
static int keep_paths(struct arena *arena, struct strings *list, const struct places *still)
{
	struct strings kept = { 0 };
	for (size_t i = 0; i < list->count; i++) {
		struct place place;
		bool counts = beneath_resolve(arena, list->items[i], &place, NULL, NULL) == 0;
		bool vouched = !still;
		for (size_t j = 0; still && counts && j < still->count && !vouched; j++)
			vouched = !strcmp(still->items[j].path, place.path) && still->items[j].device == place.device &&
			          still->items[j].inode == place.inode;
		if (counts && vouched && strings_add(arena, &kept, place.path) < 0)
			return -1;
	}
	*list = kept;
	return 0;
}

static int ceiling_of(struct arena *arena, const struct capability_set *from, const struct places *still,
                      struct capability_set *ret_set)
{
	struct capability_set set = *from;
	struct strings *const lists[] = { &set.fs_read, &set.fs_write, &set.devices, &set.sockets, &set.programs };
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		size_t before = lists[i]->count;
		if (keep_paths(arena, lists[i], still) < 0)
			return -1;
		/* No program left is not any program. */
		if (lists[i] == &set.programs && before && !set.programs.count && strings_add(arena, lists[i], "/") < 0)
			return -1;
	}
	*ret_set = set;
	return 0;
}

/* The common case, told without looking at the disk: the set has the baseline's own paths and no other. */
static bool no_path_asked(const struct capability_set *set, const struct capability_set *baseline)
{
	return set->fs_read.count == baseline->fs_read.count && set->fs_write.count == baseline->fs_write.count &&
	       set->devices.count == baseline->devices.count && set->sockets.count == baseline->sockets.count &&
	       set->programs.count == baseline->programs.count;
}

static void name_hidden(const struct capability_set *excess, struct gate_question *question, bool *ret_beyond)
{
	const bool writable = !excess->fs_read.count;
	question->excess_name = writable ? "fs_write" : "fs_read";
	question->excess_subject = (writable ? &excess->fs_write : &excess->fs_read)->items[0];
	*ret_beyond = true;
}

/* What goes beyond the baseline and every grant; *ret_beyond is false where nothing does. */
static int find_excess(const struct authorize_facts *facts, struct grants *grants,
                       const struct capability_set *baseline, struct capability_set *ret_excess,
                       struct gate_question *question, bool *ret_beyond, struct cordon_error *err)
{
	struct arena *arena = facts->arena;
	const struct session_record *record = facts->record;
	struct capability_set wanted, *ceiling = arena_alloc(arena, sizeof(*ceiling));
	*ret_beyond = false;
	if (facts->one_off || (no_path_asked(&grants->set, baseline) &&
	                                   capability_within(&grants->set, baseline, NULL, NULL)))
		return 0;
	if (!ceiling || canonical(facts, grants, &wanted) < 0 || ceiling_of(arena, baseline, NULL, ceiling) < 0)
		return fail_oom(err);
	for (size_t i = 0; i < record->grant_count; i++) {
		struct capability_set grant;
		if (capability_within(&wanted, ceiling, NULL, NULL))
			break;
		if (ceiling_of(arena, &record->grants[i].set, &record->grants[i].places, &grant) < 0 ||
		    capability_merge(arena, ceiling, &grant, ceiling) < 0)
			return fail_oom(err);
	}
	*ret_beyond = !capability_within(&wanted, ceiling, &question->excess_name, &question->excess_subject);
	question->ceiling = ceiling;
	if (*ret_beyond && capability_excess(arena, &wanted, ceiling, ret_excess) < 0)
		return fail_oom(err);
	if (by_name_excess(facts, grants, baseline, ret_excess, err) < 0)
		return -1;
	if (!*ret_beyond && (ret_excess->fs_read.count || ret_excess->fs_write.count))
		name_hidden(ret_excess, question, ret_beyond);
	return 0;
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

static int path_inside(const struct authorize_facts *facts, const char **ret_path, struct cordon_error *err)
{
	struct arena *arena = facts->arena;
	const struct config *config = facts->config;
	const struct strings *const sets[] = { &config->env_set, &facts->about.env };
	struct strings set = { 0 }, environment;
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		for (size_t j = 0; j < sets[i]->count; j++)
			if (strings_add(arena, &set, sets[i]->items[j]) < 0)
				return fail_oom(err);
	const struct env_request wanted = { .set = &set, .tools_dir = config->tools_dir };
	if (env_build(arena, facts->environment, &wanted, &environment, err) < 0)
		return -1;
	*ret_path = "";
	for (size_t i = 0; i < environment.count; i++)
		if (!strncmp(environment.items[i], "PATH=", 5))
			*ret_path = environment.items[i] + 5;
	return 0;
}

int authorize_program(const struct authorize_facts *facts, struct grants *grants, bool *ret_found,
                      struct cordon_error *err)
{
	struct place *program = &grants->program;
	const char *path;
	if (!program->path) {
		if (path_inside(facts, &path, err) < 0)
			return -1;
		program_find(facts->arena, facts->about.argv->items[0], path, facts->about.cwd, program);
	}
	*ret_found = program->path != NULL;
	return 0;
}

/* Every path that the first word could mean: of a program that is found, both its names; else, since it may still be
 * one that is only there inside, in the session's home for instance, wherever it would be looked for. */
static int name_program(const struct authorize_facts *facts, struct grants *grants, struct strings *names,
                        struct cordon_error *err)
{
	struct arena *arena = facts->arena;
	const struct place *program = &grants->program;
	const char *word = facts->about.argv->items[0], *path;
	if (program->path && (strings_add(arena, names, program->path) < 0 ||
	                      (program->alias && strings_add(arena, names, program->alias) < 0)))
		return fail_oom(err);
	if (program->path)
		return 0;
	if (strchr(word, '/')) {
		const char *name = *word == '/' ? word : arena_printf(arena, "%s/%s", facts->about.cwd, word);
		return name && strings_add(arena, names, path_normalise(arena, name)) == 0 ? 0 : fail_oom(err);
	}
	if (path_inside(facts, &path, err) < 0)
		return -1;
	for (size_t length; *path; path += length + (path[length] == ':')) {
		length = strcspn(path, ":");
		const char *name = arena_printf(arena, "%.*s/%s", (int)length, path, word);
		if (!name || strings_add(arena, names, path_normalise(arena, name)) < 0)
			return fail_oom(err);
	}
	return 0;
}

/* The strictest of what the rules say about any of them. */
static int judge(const struct authorize_facts *facts, struct grants *grants, struct rule_verdict *ret_verdict,
                 struct cordon_error *err)
{
	const struct tool_rules *rules = &facts->config->rules;
	bool held = facts->holds_writes;
	struct strings names = { 0 };
	struct rule_verdict strictest = { .decision = RULE_ALLOW }, verdict;
	if (name_program(facts, grants, &names, err) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (rules_judge(facts->arena, rules, facts->about.tool, names.items[i], false, held, &verdict) < 0)
			return fail_oom(err);
		if (rule_is_stricter(verdict.decision, strictest.decision))
			strictest = verdict;
	}
	*ret_verdict = strictest;
	return 0;
}

static int refuse_by_rule(const struct rule_verdict *verdict, const char *program, struct cordon_error *err)
{
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, program, "%s", verdict->why);
	fail_boundary(err, "policy");
	return verdict->where ? fail_remedy(err, "the rule stands at %s", verdict->where) : -1;
}

/* What is passed on besides what the configuration passes on to every command. */
static int name_passed(const struct authorize_facts *facts, struct grants *grants, struct strings *ret_names)
{
	const struct strings *const lists[] = { facts->pass_env, &grants->env_pass };
	struct strings names = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t j = 0; j < lists[i]->count; j++)
			if (strings_find(&facts->config->env_pass, lists[i]->items[j]) < 0 &&
			    strings_find(&names, lists[i]->items[j]) < 0 &&
			    strings_add(facts->arena, &names, lists[i]->items[j]) < 0)
				return -1;
	*ret_names = names;
	return 0;
}

int authorize_question(const struct authorize_facts *facts, struct grants *grants, struct gate_question *ret_question,
                       struct cordon_error *err)
{
	struct gate_question question = facts->about;
	bool found = false;
	if (!facts->file && authorize_program(facts, grants, &found, err) < 0)
		return -1;
	question.program = facts->file ? facts->file : found ? grants->program.path : facts->about.argv->items[0];
	if (name_passed(facts, grants, &question.env_pass) < 0)
		return fail_oom(err);
	*ret_question = question;
	return 0;
}

int authorize_decide(const struct authorize_facts *facts, struct grants *grants, const struct capability_set *baseline,
                     struct authorization *ret, struct cordon_error *err)
{
	const struct tool_rules *rules = &facts->config->rules;
	struct rule_verdict verdict = { .decision = RULE_ALLOW };
	/* The rules about paths are for a file tool to judge, by the file that it has open. */
	bool ruled = !facts->file && (rules->count || rules->allowed_paths.count), beyond;
	struct gate_question question, named = { 0 };
	*ret = (struct authorization){ 0 };
	if (find_excess(facts, grants, baseline, &ret->excess, &named, &beyond, err) < 0)
		return -1;
	if (!ruled && !beyond)
		return 0;
	if (authorize_question(facts, grants, &question, err) < 0 || (ruled && judge(facts, grants, &verdict, err) < 0))
		return -1;
	question.excess = &ret->excess;
	question.ceiling = named.ceiling;
	question.excess_name = named.excess_name;
	question.excess_subject = named.excess_subject;
	if (verdict.decision == RULE_DENY)
		return refuse_by_rule(&verdict, question.program, err);
	if (verdict.decision == RULE_ASK)
		question.rule =
			verdict.where ? arena_printf(facts->arena, "%s (%s)", verdict.why, verdict.where) : verdict.why;
	ret->ask = beyond || verdict.decision == RULE_ASK;
	ret->question = question;
	return 0;
}

int authorize(const struct authorize_facts *facts, const struct gate *gate, struct grants *grants,
              const struct capability_set *baseline, bool *ret_asked, struct cordon_error *err)
{
	struct authorization authorization;
	struct gate_answer answer;
	if (authorize_decide(facts, grants, baseline, &authorization, err) < 0)
		return -1;
	*ret_asked = authorization.ask;
	grants->excess = authorization.excess;
	grants->rule = authorization.question.rule;
	/* A dry walk asks no approver: the profile is shown as if everything had been approved. */
	if (authorization.ask && !facts->dry &&
	    gate_ask(gate, facts->arena, facts->config, &authorization.question, &answer, err) < 0)
		return -1;
	return by_name_note(facts, grants, &authorization.excess, err);
}

/* What deciding costs, with ten, a hundred and a thousand rules or entries: tool policy, and whether one capability set
 * is within another. Prints the nanoseconds of one evaluation with each (the median of many short rounds).
 *
 *     policy ROUNDS */
#include <stdio.h>
#include <stdlib.h>

#include "policy/capability.h"
#include "policy/rules.h"
#include "sample.h"

enum { SIZES = 3, ROUNDS_MAX = 5000, EACH = 64 };
static const int sizes[SIZES] = { 10, 100, 1000 };

/* One size of one kind: the rules or the sets, and what is asked of them. */
struct subject {
	struct tool_rules rules;
	struct capability_set set, ceiling;
	const char *path;
	bool expect;
};

static struct arena arena;

static void must(bool holds, const char *what)
{
	if (!holds)
		give_up("policy: %s", what);
}

/* ---- What is asked ---------------------------------------------------------------------------------------------- */

static void evaluate_rules(const struct subject *subject)
{
	struct rule_verdict verdict;
	must(rules_judge(&arena, &subject->rules, "write", subject->path, true, true, &verdict) == 0, "out of memory");
	must((verdict.where != NULL) == subject->expect, "the wrong rule");
}

static void evaluate_within(const struct subject *subject)
{
	must(capability_within(&subject->set, &subject->ceiling, NULL, NULL) == subject->expect, "the wrong answer");
}

static void add_rules(struct subject *subject, int count, const char *format)
{
	for (int i = 0; i < count; i++)
		must(rules_add(&arena, &subject->rules, "write", arena_printf(&arena, format, i), RULE_ALLOW,
		               "bench:1:1", NULL) == 0,
		     "the rule is refused");
}

static void last_tree(struct subject *subject, int count)
{
	add_rules(subject, count, "/srv/tenants/app-%d/**");
	subject->path = arena_printf(&arena, "/srv/tenants/app-%d/data/file.txt", count - 1);
	subject->expect = true;
}

static void last_name(struct subject *subject, int count)
{
	add_rules(subject, count, "/srv/**/name-%d");
	subject->path = arena_printf(&arena, "/srv/tenants/name-%d", count - 1);
	subject->expect = true;
}

static void no_rule(struct subject *subject, int count)
{
	add_rules(subject, count, "*.type-%d");
	subject->path = "/srv/tenants/app/data/file.txt";
}

static void no_beginning(struct subject *subject, int count)
{
	add_rules(subject, count, "name-%d-*");
	subject->path = "/srv/tenants/app/data/name-x";
}

/* The worst: nothing in the glob says where to look it up. */
static void every_rule(struct subject *subject, int count)
{
	add_rules(subject, count, "*name-%d-*");
	subject->path = "/srv/tenants/app/data/file.txt";
}

static void lists(struct subject *subject, int count, int asked, const char *read)
{
	struct capability_set set = { .network = NETWORK_HOSTS }, ceiling = { .network = NETWORK_HOSTS };
	for (int i = 0; i < count; i++)
		must(strings_add(&arena, &ceiling.fs_read, arena_printf(&arena, "/srv/tenants/app-%d", i)) == 0 &&
		             strings_add(&arena, &ceiling.hosts, arena_printf(&arena, "*.app-%d.example.org:443", i)) ==
		                     0,
		     "memory");
	for (int i = count - asked; i < count; i++)
		must(strings_add(&arena, &set.fs_read, arena_printf(&arena, read, i)) == 0 &&
		             strings_add(&arena, &set.hosts, arena_printf(&arena, "api.app-%d.example.org:443", i)) ==
		                     0,
		     "memory");
	must(capability_normalise(&arena, &set, &subject->set, NULL) == 0 &&
	     capability_normalise(&arena, &ceiling, &subject->ceiling, NULL) == 0, "out of memory");
	subject->expect = true;
}

static void few_within(struct subject *subject, int count)
{
	lists(subject, count, 5, "/srv/tenants/app-%d/data");
}

static void one_beyond(struct subject *subject, int count)
{
	lists(subject, count, 1, "/srv/tenants/other-%d/data");
	subject->expect = false;
}

static void all_within(struct subject *subject, int count)
{
	lists(subject, count, count, "/srv/tenants/app-%d/data");
}

static const struct kind {
	const char *name;
	void (*make)(struct subject *subject, int count);
	void (*evaluate)(const struct subject *subject);
	bool per_entry;
} kinds[] = {
	{ "rules: trees, the last one matches", last_tree, evaluate_rules, false },
	{ "rules: names, the last one matches", last_name, evaluate_rules, false },
	{ "rules: extensions, none matches", no_rule, evaluate_rules, false },
	{ "rules: beginnings, none matches", no_beginning, evaluate_rules, false },
	{ "rules: no key, none matches", every_rule, evaluate_rules, false },
	{ "within: 5 paths, 5 hosts, in N of each", few_within, evaluate_within, false },
	{ "within: a path beyond N", one_beyond, evaluate_within, false },
	{ "within: N of each in N, per entry", all_within, evaluate_within, true },
};

static double measure(const struct kind *kind, const struct subject *subject, int rounds)
{
	static double samples[ROUNDS_MAX];
	for (int round = -2; round < rounds; round++) {
		double start = now_us();
		for (int i = 0; i < EACH; i++)
			kind->evaluate(subject);
		if (round >= 0)
			samples[round] = (now_us() - start) * 1000 / EACH;
	}
	return percentile(samples, (size_t)rounds, 0.5);
}

int main(int argc, char **argv)
{
	int rounds = argc == 2 ? atoi(argv[1]) : 0;
	must(rounds > 0 && rounds <= ROUNDS_MAX, "usage: policy ROUNDS");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		double took[SIZES];
		for (int size = 0; size < SIZES; size++) {
			struct subject subject = { .path = NULL };
			kinds[i].make(&subject, sizes[size]);
			took[size] = measure(&kinds[i], &subject, rounds) / (kinds[i].per_entry ? 2 * sizes[size] : 1);
			arena_free(&arena);
		}
		printf("%s\t%.0f\t%.0f\t%.0f\n", kinds[i].name, took[0], took[1], took[2]);
	}
	return 0;
}

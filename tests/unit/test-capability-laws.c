/* The laws of capability sets, over generated ones. What a set means is written down here a second time, in the
 * plainest way there is: a list of single things (read this path, reach that host, use so much memory), and for each
 * whether the set allows it. Within must then be inclusion, merging union, and normalising no change at all. */
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
#include "policy/capability.h"

enum { ROUNDS = 8000, PATHS = 85, HOSTS = 316, PATH_LISTS = 5, LIMITS = 9, LEVELS = 4 };

/* ---- All there is to allow -------------------------------------------------------------------------------------- */

static char paths[PATHS][32], hosts[HOSTS][32];
static size_t host_count;

static void add_host(const char *one, const char *two, const char *three)
{
	for (int port = 0; port < 2; port++)
		snprintf(hosts[host_count++], sizeof(hosts[0]), "%s%s%s%s%s:%s", one, *two ? "." : "", two,
		         *three ? "." : "", three, port ? "443" : "80");
}

/* Every path of up to three of these; no set names z, so that a set of all the others is not everything. */
static const char *const components[] = { "a", "ab", "b", "z" };

static int make_everything(void **state)
{
	(void)state;
	static const char *const labels[] = { "a", "b", "com", "4", "z" };
	static const char *const addresses[] = { "1.2.3.4", "[::1]", "[::a.com]" };
	size_t made = 1;
	strcpy(paths[0], "/");
	for (size_t from = 0, depth = 0; depth < 3; depth++) {
		size_t end = made;
		for (; from < end; from++)
			for (size_t i = 0; i < ARRAY_SIZE(components); i++)
				snprintf(paths[made++], sizeof(paths[0]), "%s/%s", from ? paths[from] : "",
				         components[i]);
	}
	assert_int_equal(made, PATHS);
	for (size_t i = 0; i < 5; i++) {
		add_host(labels[i], "", "");
		for (size_t j = 0; j < 5; j++) {
			add_host(labels[i], labels[j], "");
			for (size_t k = 0; k < 5; k++)
				add_host(labels[i], labels[j], labels[k]);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		add_host(addresses[i], "", "");
	assert_int_equal(host_count, HOSTS);
	return 0;
}

struct meaning {
	bool path[PATH_LISTS][PATHS];           /* read, write, start, device, socket */
	bool other_program;                     /* one that no list names */
	bool host[HOSTS], any_network, spawn;
	bool limit[LIMITS][LEVELS];             /* may use 1, 2, 3, without end */
};

/* ---- What one entry means --------------------------------------------------------------------------------------- */

/* Whatever the form: the components that remain. */
static size_t split(char *copy, char *parts[16])
{
	size_t count = 0;
	for (char *save, *part = strtok_r(copy, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
		if (!strcmp(part, ".."))
			count -= count > 0;
		else if (strcmp(part, ".") != 0)
			parts[count++] = part;
	}
	return count;
}

static bool path_means(const char *entry, const char *path)
{
	char entry_copy[128], path_copy[128], *above[16], *below[16];
	strcpy(entry_copy, entry);
	strcpy(path_copy, path);
	size_t count = split(entry_copy, above);
	if (split(path_copy, below) < count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (strcmp(above[i], below[i]) != 0)
			return false;
	return true;
}

static bool host_means(const char *entry, const char *host)
{
	char plain[64];
	size_t used = 0;
	for (const char *at = entry; *at; at++)
		if (!(*at == '.' && at[1] == ':'))
			plain[used++] = *at >= 'A' && *at <= 'Z' ? (char)(*at | 32) : *at;
	plain[used] = '\0';
	if (!strcmp(plain, host))
		return true;
	/* A star is one label or more of a name; a name does not end in a number. */
	const char *end = strstr(host, plain + 1), *colon = strrchr(host, ':');
	return plain[0] == '*' && host[0] != '[' && !strchr("0123456789", *(colon - 1)) && end && end > host &&
	       strlen(end) == strlen(plain + 1);
}

static struct meaning mean(const struct capability_set *set)
{
	static const uint64_t levels[LEVELS] = { 1, 2, 3, UINT64_MAX };
	const struct strings *const lists[] = { &set->fs_read, &set->fs_write, &set->programs, &set->devices,
		                                &set->sockets };
	struct meaning meaning = { .spawn = set->spawn, .any_network = set->network == NETWORK_ALL,
	                           .other_program = !set->programs.count };
	for (size_t list = 0; list < PATH_LISTS; list++)
		for (size_t at = 0; at < PATHS; at++) {
			bool *allowed = &meaning.path[list][at];
			for (size_t i = 0; i < lists[list]->count; i++)
				*allowed |= path_means(lists[list]->items[i], paths[at]);
			for (size_t i = 0; list == 0 && i < set->fs_write.count; i++)
				*allowed |= path_means(set->fs_write.items[i], paths[at]);
			*allowed |= lists[list] == &set->programs && !set->programs.count;
		}
	for (size_t at = 0; at < host_count; at++) {
		meaning.host[at] = meaning.any_network;
		for (size_t i = 0; set->network == NETWORK_HOSTS && i < set->hosts.count; i++)
			meaning.host[at] |= host_means(set->hosts.items[i], hosts[at]);
	}
	for (size_t at = 0; at < LIMITS; at++) {
		uint64_t limit = ((const uint64_t *)&set->limits)[at];
		for (size_t i = 0; i < LEVELS; i++)
			meaning.limit[at][i] = !limit || levels[i] <= limit;
	}
	return meaning;
}

static bool includes(const struct meaning *more, const struct meaning *less)
{
	const bool *a = (const bool *)more, *b = (const bool *)less;
	for (size_t i = 0; i < sizeof(*more) / sizeof(bool); i++)
		if (b[i] && !a[i])
			return false;
	return true;
}

/* ---- Generated sets --------------------------------------------------------------------------------------------- */

/* A path of up to two names, written in some way. */
static const char *some_path(bool messy)
{
	static const char *const ways[] = { "/", "//", "/./", "/b/../", "/../", "///./" };
	char path[96] = "";
	bool rooted = false;
	for (long depth = random() % 3; depth; depth--) {
		/* `..` beyond what was written would take a name away. */
		strcat(path, messy ? ways[(size_t)random() % (rooted ? 4 : ARRAY_SIZE(ways))] : "/");
		strcat(path, components[random() % 3]);
		rooted = true;
	}
	if (!rooted || (messy && random() % 3 == 0))
		strcat(path, "/");
	return arena_strdup(&arena, path);
}

static const char *some_host(bool messy)
{
	static const char *const names[] = { "a",       "com",   "a.com", "b.a.com", "*.com", "*.a", "*.a.com",
		                             "*.b.com", "*.b.a", "b.4",   "1.2.3.4", "[::1]", "4",   "a.b" };
	const char *name = names[random() % (long)ARRAY_SIZE(names)];
	char *host =
		arena_printf(&arena, "%s%s:%s", name, messy && random() % 2 ? "." : "", random() % 3 ? "443" : "80");
	for (char *at = host; messy && *at; at++)
		if (*at >= 'a' && *at <= 'z' && random() % 3 == 0)
			*at &= ~32;
	return host;
}

static void some(struct strings *list, const char *(*make)(bool messy), bool messy, int most)
{
	for (long i = random() % (most + 1); i; i--)
		assert_int_equal(strings_add(&arena, list, make(messy)), 0);
}

/* What sets differ in. Of two that differ in everything, hardly ever one is within the other. */
enum { FILES = 1, NETWORK = 2, PROGRAMS = 4, NODES = 8, LIMITING = 16, SPAWNING = 32, EVERYTHING = 63 };
static int aspects;

static void new_round(void)
{
	arena_free(&arena);
	aspects = random() % 3 ? 1 << random() % 6 : EVERYTHING;
}

static struct capability_set generate(bool messy)
{
	struct capability_set set = { .network = NETWORK_NONE };
	if (aspects & FILES) {
		some(&set.fs_read, some_path, messy, 3);
		some(&set.fs_write, some_path, messy, 2);
	}
	if (aspects & NETWORK) {
		set.network = (enum network_mode)(random() % NETWORK_MODE_MAX);
		some(&set.hosts, some_host, messy, 4);
	}
	if (aspects & PROGRAMS)
		some(&set.programs, some_path, messy, 2);
	if (aspects & NODES) {
		some(&set.devices, some_path, messy, 2);
		some(&set.sockets, some_path, messy, 2);
	}
	/* Programs of all paths and of any are not the same to compare, and no test of them here. */
	for (size_t i = 0; i < set.programs.count; i++)
		if (!strpbrk(set.programs.items[i], "ab"))
			set.programs.count = 0;
	for (long i = aspects & LIMITING ? random() % 4 : 0; i; i--)
		((uint64_t *)&set.limits)[random() % LIMITS] =
			(const uint64_t[]){ 0, 1, 2, 3, UINT64_MAX }[random() % 5];
	set.spawn = aspects & SPAWNING && random() % 2;
	return set;
}

static struct capability_set normal(const struct capability_set *set)
{
	struct capability_set made;
	assert_int_equal(capability_normalise(&arena, set, &made, NULL), 0);
	return made;
}

static struct capability_set merge(const struct capability_set *base, const struct capability_set *grant)
{
	struct capability_set made;
	assert_int_equal(capability_merge(&arena, base, grant, &made), 0);
	return made;
}

/* A set with something taken away or narrowed. */
static struct capability_set narrow(const struct capability_set *set)
{
	struct capability_set less = *set;
	switch (random() % 7) {
	case 0: less.fs_read.count -= less.fs_read.count > 0; break;
	case 1: less.fs_write.count -= less.fs_write.count > 0; break;
	case 2: less.spawn = false; break;
	case 3: less.network = NETWORK_NONE; break;
	case 4: less.limits.memory_bytes = 1; break;
	case 5: less.devices.count = less.sockets.count = 0; break;
	case 6: less.programs.count -= less.programs.count > 1; break;
	}
	return normal(&less);
}

static bool within(const struct capability_set *a, const struct capability_set *b)
{
	return capability_within(a, b, NULL, NULL);
}

static bool same(const struct capability_set *a, const struct capability_set *b)
{
	return strings_same(&a->fs_read, &b->fs_read) && strings_same(&a->fs_write, &b->fs_write) &&
	       strings_same(&a->hosts, &b->hosts) && strings_same(&a->programs, &b->programs) &&
	       strings_same(&a->devices, &b->devices) && strings_same(&a->sockets, &b->sockets) &&
	       a->network == b->network && a->spawn == b->spawn && !memcmp(&a->limits, &b->limits, sizeof(a->limits));
}

/* ---- The laws --------------------------------------------------------------------------------------------------- */

static struct capability_set next(int round, const struct capability_set *from)
{
	struct capability_set set = generate(false);
	return round % 3 ? narrow(from) : normal(&set);
}

static void within_is_inclusion(void **state)
{
	(void)state;
	int held = 0, refused = 0;
	srandom(11);
	for (int round = 0; round < ROUNDS; round++) {
		new_round();
		struct capability_set some_set = generate(false), b = normal(&some_set), a = next(round, &b);
		struct meaning less = mean(&a), more = mean(&b);
		const char *excess = NULL, *subject = NULL;
		bool holds = capability_within(&a, &b, &excess, &subject);
		if (holds != includes(&more, &less))
			fail_msg("round %d: within %d (%s %s)", round, holds, excess, subject);
		assert_int_equal(holds, !excess);
		/* In whatever order the entries are. */
		assert_int_equal(within(&a, &some_set), holds);
		held += holds;
		refused += !holds;
	}
	assert_true(held > 500 && refused > 500);
}

static void within_is_an_order(void **state)
{
	(void)state;
	int chains = 0, equals = 0;
	srandom(12);
	for (int round = 0; round < ROUNDS; round++) {
		new_round();
		struct capability_set some_set = generate(true), c = normal(&some_set), b = next(round, &c),
				      a = next(round, &b);
		assert_true(within(&a, &a));
		if (within(&a, &b) && within(&b, &c)) {
			chains++;
			assert_true(within(&a, &c));
		}
		bool equal = within(&a, &b) && within(&b, &a);
		equals += equal;
		assert_int_equal(equal, same(&a, &b));
	}
	assert_true(chains > 500 && equals > 200);
}

static void normalising_changes_the_form_alone(void **state)
{
	(void)state;
	int changed = 0;
	srandom(13);
	for (int round = 0; round < ROUNDS; round++) {
		new_round();
		struct capability_set set = generate(true), made = normal(&set), again = normal(&made);
		struct meaning before = mean(&set), after = mean(&made);
		assert_memory_equal(&before, &after, sizeof(before));
		assert_true(same(&made, &again));
		assert_true(within(&made, &made));
		changed += !same(&set, &made);
	}
	assert_true(changed > 500);
}

/* Lists, network and spawn: what either allows. Two rules of its own: a limit of the grant's replaces the base's; and
 * programs, where none is any, are joined where both list some, and otherwise those of the one that does. */
static void merging_is_union(void **state)
{
	(void)state;
	srandom(14);
	for (int round = 0; round < ROUNDS; round++) {
		new_round();
		struct capability_set base = generate(round % 2), grant = generate(round % 2),
				      made = merge(&base, &grant);
		struct meaning a = mean(&base), b = mean(&grant), expected = a;
		for (size_t i = 0; i < sizeof(a) / sizeof(bool); i++)
			((bool *)&expected)[i] = ((bool *)&a)[i] || ((bool *)&b)[i];
		const struct meaning *listed = base.programs.count ? &a : &b;
		if (!base.programs.count || !grant.programs.count) {
			memcpy(expected.path[2], listed->path[2], sizeof(listed->path[2]));
			expected.other_program = listed->other_program;
		}
		for (size_t i = 0; i < LIMITS; i++)
			memcpy(expected.limit[i], (((uint64_t *)&grant.limits)[i] ? &b : &a)->limit[i],
			       sizeof(a.limit[i]));
		struct meaning merged = mean(&made);
		assert_memory_equal(&merged, &expected, sizeof(expected));
	}
}

/* Adding never takes away, where it adds no limit and does not begin to list programs. */
static void adding_is_monotone(void **state)
{
	(void)state;
	int held = 0;
	srandom(15);
	for (int round = 0; round < ROUNDS; round++) {
		new_round();
		struct capability_set some_set = generate(false), b = normal(&some_set), a = next(round, &b),
				      more = generate(false);
		memset(&more.limits, 0, sizeof(more.limits));
		if (!b.programs.count)
			more.programs.count = 0;
		more = normal(&more);
		struct capability_set ceiling = merge(&b, &more), form = normal(&ceiling);
		assert_true(within(&b, &ceiling) && within(&b, &form));
		if (!within(&a, &b))
			continue;
		held++;
		assert_true(within(&a, &ceiling) && within(&a, &form));
		struct capability_set asked = merge(&a, &more);
		assert_true(within(&asked, &ceiling));
	}
	assert_true(held > 500);
}

/* What is said to exceed does so by itself, and comes from the set. */
static void the_excess_is_true(void **state)
{
	(void)state;
	int seen = 0;
	srandom(16);
	for (int round = 0; round < ROUNDS; round++) {
		new_round();
		struct capability_set one = generate(false), two = generate(false), a = normal(&one), b = normal(&two);
		const char *excess = NULL, *subject = NULL;
		const struct strings *const lists[] = { &a.fs_read, &a.fs_write, &a.devices, &a.sockets, &a.hosts };
		static const char *const names[] = { "fs_read", "fs_write", "devices", "sockets", "network" };
		bool holds = capability_within(&a, &b, &excess, &subject);
		for (size_t i = 0; !holds && i < ARRAY_SIZE(lists); i++) {
			if (strcmp(excess, names[i]) != 0 || a.network == NETWORK_ALL)
				continue;
			seen++;
			assert_true(strings_find(lists[i], subject) >= 0);
			struct capability_set alone = { .limits = b.limits, .programs = b.programs,
			                                .network = i == 4 ? NETWORK_HOSTS : NETWORK_NONE };
			struct strings *list = i == 0   ? &alone.fs_read
			                       : i == 1 ? &alone.fs_write
			                       : i == 2 ? &alone.devices
			                       : i == 3 ? &alone.sockets
			                                : &alone.hosts;
			assert_int_equal(strings_add(&arena, list, subject), 0);
			assert_false(within(&alone, &b));
		}
	}
	assert_true(seen > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(within_is_inclusion, free_arena),
		cmocka_unit_test_teardown(within_is_an_order, free_arena),
		cmocka_unit_test_teardown(normalising_changes_the_form_alone, free_arena),
		cmocka_unit_test_teardown(merging_is_union, free_arena),
		cmocka_unit_test_teardown(adding_is_monotone, free_arena),
		cmocka_unit_test_teardown(the_excess_is_true, free_arena),
	};
	return cmocka_run_group_tests_name("capability-laws", tests, make_everything, NULL);
}

/* What covers what: single cases, and the search by halves beside a plain one over generated lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena-ground.h"
#include "base/cleanup.h"
#include "policy/cover.h"

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The same items in order, and therefore searched. */
static struct strings sorted(const struct strings *list)
{
	struct strings copy = { 0 };
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), by_text);
	for (size_t i = 0; i < list->count; i++)
		assert_int_equal(strings_add(&arena, &copy, list->items[i]), 0);
	assert_false(copy.unsorted);
	return copy;
}

/* By the definition: component after component. */
static bool plainly_beneath(const char *path, const char *root)
{
	while (*root) {
		root += strspn(root, "/");
		path += strspn(path, "/");
		size_t length = strcspn(root, "/");
		if (length && (strcspn(path, "/") != length || strncmp(path, root, length)))
			return false;
		root += length;
		path += length;
	}
	return true;
}

static const char *some_path(void)
{
	/* Bytes on both sides of the slash, and names that begin as others do. */
	static const char *const names[] = { "a", "ab", "a-", "a.b", "a0", "b", "..." };
	char path[64] = "/";
	size_t used = 0;
	for (int depth = (int)(random() % 5); depth > 0; depth--)
		used += (size_t)sprintf(path + used, "/%s", names[random() % (long)ARRAY_SIZE(names)]);
	return arena_strdup(&arena, path);
}

static void searching_paths_is_looking_at_each(void **state)
{
	(void)state;
	int found = 0, missed = 0;
	srandom(3);
	for (int round = 0; round < 20000; round++) {
		struct strings roots = { 0 };
		for (size_t i = (size_t)random() % 12; i; i--)
			assert_int_equal(strings_add(&arena, &roots, some_path()), 0);
		const char *path = some_path();
		bool any = false, another = false;
		for (size_t i = 0; i < roots.count; i++) {
			bool beneath = plainly_beneath(path, roots.items[i]);
			any |= beneath;
			another |= beneath && strcmp(path, roots.items[i]);
		}
		found += any;
		missed += !any;
		assert_int_equal(cover_path(&roots, path, false), any);
		assert_int_equal(cover_path(&roots, path, true), another);
		struct strings ordered = sorted(&roots);
		assert_int_equal(cover_path(&ordered, path, false), any);
		assert_int_equal(cover_path(&ordered, path, true), another);
		arena_free(&arena);
	}
	assert_true(found > 2000 && missed > 2000);
}

static void paths_that_are_not_normal(void **state)
{
	(void)state;
	static const char *const paths[] = { "", ".", "..", "a", "/a/", "//", "//a", "/a//b", "/a/.", "/a/./b", "/a/..",
		"/a/../a", "/." };
	struct strings roots = { 0 };
	static const char *const items[] = { "", "/", "/a", "/a/" };
	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		assert_int_equal(strings_add(&arena, &roots, items[i]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_false(cover_path(&roots, paths[i], false));
	struct strings empty = { 0 }, slashed = { 0 };
	assert_false(cover_path(&empty, "/", false));
	assert_int_equal(strings_add(&arena, &slashed, "/a/"), 0);
	assert_false(cover_path(&slashed, "/a/b", false));
	assert_false(cover_path(&slashed, "/a", false));
}

static const struct {
	const char *root, *host;
	bool covers;
} hosts[] = {
	{ "a.com:443", "a.com:443", true },
	{ "a.com:443", "A.COM:443", true },
	{ "A.com:443", "a.com:443", true },
	{ "a.com:443", "a.com.:443", true },
	{ "a.com.:443", "a.com:443", true },
	{ "a.com:443", "a.com..:443", false },
	{ "a.com..:443", "a.com:443", false },
	{ "a.com..:443", "a.com.:443", false },
	{ "a.com:443", "a.com:44", false },
	{ "a.com:443", "a.com:4433", false },
	{ "a.com:443", "a.com", false },
	{ "a.com", "a.com", true },
	{ "a.com", "a.com:443", false },
	{ "*.a.com:443", "b.a.com:443", true },
	{ "*.a.com:443", "c.b.a.com:443", true },
	{ "*.a.com:443", "B.A.com.:443", true },
	{ "*.A.com.:443", "b.a.com:443", true },
	{ "*.a.com:443", "*.a.com:443", true },
	{ "*.a.com:443", "*.b.a.com:443", true },
	{ "*.b.a.com:443", "*.a.com:443", false },
	{ "*.a.com:443", "a.com:443", false },
	{ "*.a.com:443", "a.com.:443", false },
	{ "*.a.com:443", ".a.com:443", false },
	{ "*.a.com:443", "ba.com:443", false },
	{ "*.a.com:443", "b.a.com:80", false },
	{ "*.a.com:443", "b.a.com", false },
	{ "*.a.com:443", "b.a.com.evil.org:443", false },
	{ "b.a.com:443", "*.a.com:443", false },
	{ "*.com:443", "b.a.com:443", true },
	{ "*:443", "a.com:443", false },
	{ "*.:443", "a.:443", false },
	{ "*.:443", "*:443", false },
	{ "*.3.4:443", "1.2.3.4:443", false },
	{ "*.3.4:443", "*.3.4:443", true },
	{ "1.2.3.4:443", "1.2.3.4:443", true },
	{ "1.2.3.4:443", "1.2.3.4.:443", true },
	{ "1.2.3.4:443", "1.2.3.40:443", false },
	{ "*.1]:443", "[::ffff:1.1]:443", false },
	{ "[::A]:443", "[::a]:443", true },
	{ "[::1]:443", "[::1]:80", false },
	{ "[::1]:443", "[::2]:443", false },
	{ "", "", true },
	{ "", "a.com:443", false },
	{ "a.com:443", "", false },
};

static void one_host_covers_another(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		struct strings roots = { 0 };
		assert_int_equal(strings_add(&arena, &roots, hosts[i].root), 0);
		if (cover_host(&roots, hosts[i].host, false) != hosts[i].covers)
			fail_msg("%s, %s", hosts[i].root, hosts[i].host);
		/* Normalised they are in the same relation. */
		const char *host = cover_host_normalise(&arena, hosts[i].host);
		roots.items[0] = cover_host_normalise(&arena, hosts[i].root);
		if (cover_host(&roots, host, false) != hosts[i].covers)
			fail_msg("normalised: %s, %s", roots.items[0], host);
		assert_int_equal(cover_host(&roots, host, true), hosts[i].covers && strcmp(roots.items[0], host));
		assert_string_equal(cover_host_normalise(&arena, host), host);
	}
}

static void searching_hosts_is_looking_at_each(void **state)
{
	(void)state;
	int found = 0;
	srandom(4);
	for (int round = 0; round < 20000; round++) {
		struct strings roots = { 0 };
		for (size_t i = (size_t)random() % 12; i; i--)
			assert_int_equal(strings_add(&arena, &roots, hosts[random() % (long)ARRAY_SIZE(hosts)].root),
			                 0);
		const char *host = hosts[random() % (long)ARRAY_SIZE(hosts)].host;
		bool any = false;
		for (size_t i = 0; i < roots.count; i++) {
			struct strings single = { .items = &roots.items[i], .count = 1 };
			any |= cover_host(&single, host, false);
		}
		found += any;
		struct strings ordered = sorted(&roots);
		assert_int_equal(cover_host(&ordered, host, false), any);
		assert_int_equal(cover_host(&roots, host, false), any);
		arena_free(&arena);
	}
	assert_true(found > 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(searching_paths_is_looking_at_each, free_arena),
		cmocka_unit_test_teardown(paths_that_are_not_normal, free_arena),
		cmocka_unit_test_teardown(one_host_covers_another, free_arena),
		cmocka_unit_test_teardown(searching_hosts_is_looking_at_each, free_arena),
	};
	return cmocka_run_group_tests_name("cover", tests, NULL, NULL);
}

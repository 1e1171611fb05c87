/* The arena: zeroed, aligned, never moved; and its lists of strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

static void memory_is_zeroed_aligned_and_apart(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	unsigned char *blocks[400];
	for (size_t i = 0; i < 400; i++) {
		size_t size = i * 7 % 1000;
		blocks[i] = arena_alloc(&arena, size);
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % 16, 0);
		for (size_t j = 0; j < size; j++)
			assert_int_equal(blocks[i][j], 0);
		memset(blocks[i], (int)(i % 255) + 1, size);
	}
	for (size_t i = 0; i < 400; i++)
		for (size_t j = 0; j < i * 7 % 1000; j++)
			assert_int_equal(blocks[i][j], i % 255 + 1);
	arena_free(&arena);
	assert_null(arena.chunks);
	arena_free(&arena);
}

static void large_and_impossible_sizes(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	char *small = arena_strdup(&arena, "small"), *large = arena_alloc(&arena, 1 << 20);
	assert_non_null(large);
	memset(large, 'x', 1 << 20);
	assert_string_equal(small, "small");
	assert_string_equal(arena_strdup(&arena, "after"), "after");
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_null(arena_alloc(&arena, SIZE_MAX - 8));
	assert_null(arena_alloc(&arena, SIZE_MAX / 2 + 1));
	arena_free(&arena);
}

static void texts_are_copied(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	char source[] = "hello";
	char *whole = arena_strdup(&arena, source), *part = arena_strndup(&arena, source, 2);
	char *bytes = arena_strndup(&arena, "a\0b", 3), *none = arena_strndup(&arena, "x", 0);
	char *made = arena_printf(&arena, "%s-%d-%.3f", source, 42, 0.5);
	memset(source, 'z', 5);
	assert_string_equal(whole, "hello");
	assert_string_equal(part, "he");
	assert_memory_equal(bytes, "a\0b", 4);
	assert_string_equal(none, "");
	assert_string_equal(made, "hello-42-0.500");
	char *padded = arena_printf(&arena, "%*s", 100000, "x");
	assert_int_equal(strlen(padded), 100000);
	arena_free(&arena);
}

/* Whatever is left of a chunk: what did not fit there leaves nothing behind, what did is not written over. */
static void texts_are_made_where_they_fit(void **state)
{
	(void)state;
	for (int length = 0; length < 200; length++) {
		struct arena arena = { 0 };
		char *texts[600];
		for (int i = 0; i < 600; i++) {
			texts[i] = arena_printf(&arena, "%0*d", length + i % 3, i);
			unsigned char *after = arena_alloc(&arena, 16);
			for (int j = 0; j < 16; j++)
				assert_int_equal(after[j], 0);
		}
		for (int i = 0; i < 600; i++)
			assert_int_equal(strtol(texts[i], NULL, 10), i);
		arena_free(&arena);
	}
}

static void lists_grow_and_end_in_null(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	struct strings list = { 0 };
	char name[16];
	assert_int_equal(strings_find(&list, "0"), -1);
	assert_int_equal(strings_add(&arena, &list, NULL), -1);
	assert_int_equal(list.count, 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(strings_add(&arena, &list, arena_strdup(&arena, name)), 0);
		assert_null(list.items[list.count]);
	}
	assert_int_equal(list.count, 1000);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(strings_find(&list, name), i);
	}
	assert_int_equal(strings_find(&list, "1000"), -1);
	struct strings twice = { 0 };
	assert_int_equal(strings_add_all(&arena, &twice, &(struct strings){ 0 }), 0);
	assert_int_equal(twice.count, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(strings_add_all(&arena, &twice, &list), 0);
	assert_int_equal(twice.count, 2000);
	assert_string_equal(twice.items[0], "0");
	assert_string_equal(twice.items[1999], "999");
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
		cmocka_unit_test(large_and_impossible_sizes),
		cmocka_unit_test(texts_are_copied),
		cmocka_unit_test(texts_are_made_where_they_fit),
		cmocka_unit_test(lists_grow_and_end_in_null),
	};
	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}

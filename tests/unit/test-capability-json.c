/* Capability sets as JSON: what was written is read back the same, whatever is in it; anything else is refused. */
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
#include "policy/capability-json.h"
#include "base/json.h"

static char *written(const struct capability_set *set)
{
	struct json json;
	json_init(&json);
	capability_write_json(&json, set);
	char *text = json_take(&json);
	assert_non_null(text);
	return text;
}

static int read_text(const char *text, struct capability_set *ret_set)
{
	json_t *object = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
	int result = object ? capability_read_json(&arena, object, false, ret_set) : -1;
	json_decref(object);
	return result;
}

#define LISTS 9
static struct strings *list_at(struct capability_set *set, int i)
{
	struct strings *lists[LISTS] = { &set->fs_read, &set->fs_write, &set->hosts,   &set->programs, &set->devices,
		                         &set->sockets, &set->deny,     &set->protect, &set->exempt };
	return lists[i];
}

static void assert_same(struct capability_set *a, struct capability_set *b)
{
	for (int i = 0; i < LISTS; i++) {
		assert_int_equal(list_at(a, i)->count, list_at(b, i)->count);
		for (size_t j = 0; j < list_at(a, i)->count; j++)
			assert_string_equal(list_at(a, i)->items[j], list_at(b, i)->items[j]);
	}
	assert_int_equal(a->network, b->network);
	assert_int_equal(a->spawn, b->spawn);
	assert_memory_equal(&a->limits, &b->limits, sizeof(a->limits));
}

static void round_trip(struct capability_set *set)
{
	struct capability_set back;
	char *text = written(set);
	if (read_text(text, &back) < 0)
		fail_msg("not read back: %s", text);
	assert_same(set, &back);
	free(text);
}

static const char *any_text(void)
{
	static const char *const known[] = {
		"/", "/data/a b",     "/with\nline", "/q\"u\\o", "/\xc3\xbc", "/\xff", "/\xed\xa0\x80",
		"",  "/\xef\xbf\xbd", "*.a.com:443", "/\x7f\x01"
	};
	size_t which = (size_t)random() % (ARRAY_SIZE(known) + 2);
	if (which < ARRAY_SIZE(known))
		return known[which];
	char *text = arena_alloc(&arena, 40);
	size_t length = (size_t)random() % 40;
	for (size_t i = 0; i < length; i++)
		text[i] = (char)(1 + random() % 255);
	return text;
}

static void generated_sets(void **state)
{
	(void)state;
	static const uint64_t numbers[] = {
		0, 1, 4096, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX - 1, UINT64_MAX
	};
	srandom(3);
	for (int round = 0; round < 20000; round++) {
		struct capability_set set = { .network = (enum network_mode)(random() % NETWORK_MODE_MAX),
			                      .spawn = random() % 2 };
		for (int i = 0; i < LISTS; i++)
			for (int left = (int)(random() % 4); left; left--)
				assert_int_equal(strings_add(&arena, list_at(&set, i), any_text()), 0);
		for (size_t i = 0; i < sizeof(set.limits) / sizeof(uint64_t); i++)
			((uint64_t *)&set.limits)[i] = numbers[(size_t)random() % ARRAY_SIZE(numbers)];
		round_trip(&set);
		arena_free(&arena);
	}
}

static void the_baseline(void **state)
{
	(void)state;
	struct capability_set set;
	assert_int_equal(capability_baseline(&arena, true, &set), 0);
	round_trip(&set);
}

static void the_form(void **state)
{
	(void)state;
	const char *reads[] = { "/data", "/\xff", NULL };
	struct capability_set set = { .fs_read = { .items = reads, .count = 2, .capacity = 2 }, .network = NETWORK_ALL,
	                              .limits.wall_ms = 5, .limits.tmp_bytes = UINT64_MAX };
	char *text = written(&set);
	assert_string_equal(text, "{\"fs_read\":[\"/data\",{\"hex\":\"2fff\"}],\"network\":\"all\",\"spawn\":false,"
	                          "\"limits\":{\"wall_ms\":5,\"tmp_bytes\":\"unlimited\"}}");
	free(text);
}

/* Two that differ never look the same, as they would if what is not UTF-8 were replaced. */
static void different_stays_different(void **state)
{
	(void)state;
	const char *first[] = { "/\xff", NULL }, *second[] = { "/\xfe", NULL }, *third[] = { "/\xef\xbf\xbd", NULL };
	struct capability_set a = { .fs_read = { .items = first, .count = 1, .capacity = 1 } };
	struct capability_set b = { .fs_read = { .items = second, .count = 1, .capacity = 1 } };
	struct capability_set c = { .fs_read = { .items = third, .count = 1, .capacity = 1 } };
	char *texts[] = { written(&a), written(&b), written(&c) };
	assert_string_not_equal(texts[0], texts[1]);
	assert_string_not_equal(texts[0], texts[2]);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(texts[i]);
}

#define WITH(more) "{\"network\":\"none\",\"spawn\":true,\"limits\":{}" more "}"
static void what_is_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"",
		"[]",
		"null",
		"1",
		"\"x\"",
		"{}",
		"{\"network\":\"none\",\"spawn\":true}",
		"{\"spawn\":true,\"limits\":{}}",
		"{\"network\":\"none\",\"limits\":{}}",
		"{\"network\":\"some\",\"spawn\":true,\"limits\":{}}",
		"{\"network\":1,\"spawn\":true,\"limits\":{}}",
		"{\"network\":\"none\",\"spawn\":1,\"limits\":{}}",
		"{\"network\":\"none\",\"spawn\":true,\"limits\":[]}",
		"{\"network\":\"none\",\"spawn\":true,\"limits\":{\"memory\":1}}",
		"{\"network\":\"none\",\"spawn\":true,\"limits\":{\"wall_ms\":0}}",
		"{\"network\":\"none\",\"spawn\":true,\"limits\":{\"wall_ms\":-1}}",
		"{\"network\":\"none\",\"spawn\":true,\"limits\":{\"wall_ms\":1.5}}",
		"{\"network\":\"none\",\"spawn\":true,\"limits\":{\"wall_ms\":\"5\"}}",
		"{\"network\":\"none\",\"spawn\":true,\"limits\":{\"wall_ms\":\"18446744073709551615\"}}",
		"{\"network\":\"none\",\"spawn\":true,\"limits\":{\"wall_ms\":\"18446744073709551616\"}}",
		WITH(",\"unknown\":[\"/x\"]"),
		WITH(",\"fs_read\":[]"),
		WITH(",\"fs_read\":\"/x\""),
		WITH(",\"fs_read\":[1]"),
		WITH(",\"fs_read\":[null]"),
		WITH(",\"fs_read\":[{\"hex\":\"2f\"}]"),
		WITH(",\"fs_read\":[{\"hex\":\"ff0\"}]"),
		WITH(",\"fs_read\":[{\"hex\":\"FF\"}]"),
		WITH(",\"fs_read\":[{\"hex\":\"ff00\"}]"),
		WITH(",\"fs_read\":[{\"hex\":\"\"}]"),
		WITH(",\"fs_read\":[{\"hex\":\"ff\",\"more\":1}]"),
		WITH(",\"fs_read\":{\"0\":\"/x\"}"),
		WITH(",\"read_only\":[\"/x\"]"),
	};
	struct capability_set set = { .spawn = true, .limits.wall_ms = 7 };
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (read_text(wrong[i], &set) == 0)
			fail_msg("taken: %s", wrong[i]);
		assert_true(set.spawn && set.limits.wall_ms == 7);
	}
	assert_int_equal(read_text(WITH(""), &set), 0);
	assert_int_equal(read_text(WITH(",\"fs_read\":[\"/x\"]"), &set), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(generated_sets, free_arena),
		cmocka_unit_test_teardown(the_baseline, free_arena),
		cmocka_unit_test(the_form),
		cmocka_unit_test(different_stays_different),
		cmocka_unit_test_teardown(what_is_refused, free_arena),
	};
	return cmocka_run_group_tests_name("capability-json", tests, NULL, NULL);
}

/* Frames of whole, cut and wrong bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "door/wire/wire-read.h"

struct bytes {
	char data[512];
	size_t length;
};

static void add(struct bytes *bytes, const void *data, size_t length)
{
	assert_true(bytes->length + length <= sizeof(bytes->data));
	memcpy(bytes->data + bytes->length, data, length);
	bytes->length += length;
}

static struct bytes frame_of(uint8_t kind, const void *body, uint32_t length)
{
	struct bytes bytes = { .length = 0 };
	add(&bytes, &(struct wire_head){ .kind = kind, .length = length }, sizeof(struct wire_head));
	if (length)
		add(&bytes, body, length);
	return bytes;
}

/* `count`: how many words and variables it claims to have; `strings` are joined as they are. */
static struct bytes hello_of(uint32_t version, uint32_t words, uint32_t variables, const char *strings, size_t length)
{
	struct bytes body = { .length = 0 };
	struct wire_hello hello = { version, WIRE_NO_STDIN, words, variables, 027 };
	add(&body, &hello, sizeof(hello));
	add(&body, strings, length);
	return body;
}

static void test_whole(void **state)
{
	(void)state;
	struct bytes bytes = frame_of(WIRE_STDIN, "abc", 3);
	struct wire_frame frame;
	add(&bytes, "\x82", 1);
	assert_int_equal(wire_next(bytes.data, bytes.length, true, &frame), WIRE_WHOLE);
	assert_int_equal(frame.head.kind, WIRE_STDIN);
	assert_int_equal(frame.size, sizeof(struct wire_head) + 3);
	assert_memory_equal(frame.body, "abc", 3);
	for (size_t length = 0; length < frame.size; length++)
		assert_int_equal(wire_next(bytes.data, length, true, &frame), WIRE_PARTIAL);
}

static void test_broken(void **state)
{
	(void)state;
	static const struct {
		uint8_t kind;
		uint32_t length;
		bool from_client;
	} rows[] = {
		{ '{', 0, true },                       /* JSON is told from frames by this */
		{ 0, 0, true },
		{ WIRE_STDOUT, 3, true },               /* not for this side to send */
		{ WIRE_STDIN, 3, false },
		{ WIRE_STDIN, WIRE_BODY_MAX + 1, true },
		{ WIRE_HELLO, WIRE_HELLO_MAX + 1, true },
		{ WIRE_HELLO, sizeof(struct wire_hello) - 1, true },
		{ WIRE_SIGNAL, 3, true },
		{ WIRE_SIGNAL, 5, true },
		{ WIRE_ANSWER, sizeof(struct wire_answer) - 1, true },
		{ WIRE_END, 0, false },
		{ WIRE_ASK, sizeof(struct wire_ask), false },
		{ WIRE_DECLINE, 1, false },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wire_frame frame;
		struct wire_head head = { .kind = rows[i].kind, .length = rows[i].length };
		assert_int_equal(wire_next((const char *)&head, sizeof(head), rows[i].from_client, &frame),
		                 WIRE_BROKEN);
	}
}

static void test_hello(void **state)
{
	(void)state;
	static const char strings[] = "run\0-c\0A=1\0B=\0/home";
	struct bytes body = hello_of(WIRE_VERSION, 2, 2, strings, sizeof(strings));
	struct wire_words words;
	assert_true(wire_hello(body.data, body.length, &words));
	assert_string_equal(words.words[0], "run");
	assert_string_equal(words.words[1], "-c");
	assert_null(words.words[2]);
	assert_string_equal(words.environment[0], "A=1");
	assert_string_equal(words.environment[1], "B=");
	assert_null(words.environment[2]);
	assert_string_equal(words.cwd, "/home");
	assert_int_equal(words.flags, WIRE_NO_STDIN);
	free(words.words);
	for (size_t length = 0; length < body.length; length++)
		assert_false(wire_hello(body.data, length, &words));
}

static void test_bad_hello(void **state)
{
	(void)state;
	static const char strings[] = "run\0A=1\0/home";
	const struct bytes rows[] = {
		hello_of(WIRE_VERSION + 1, 1, 1, strings, sizeof(strings)),
		hello_of(WIRE_VERSION, 1, 1, strings, sizeof(strings) - 1),     /* the last has no end */
		hello_of(WIRE_VERSION, 1, 0, strings, sizeof(strings)),         /* more than was told of */
		hello_of(WIRE_VERSION, 2, 1, strings, sizeof(strings)),         /* less */
		hello_of(WIRE_VERSION, UINT32_MAX, 1, strings, sizeof(strings)),
		hello_of(WIRE_VERSION, 1, UINT32_MAX, strings, sizeof(strings)),
		hello_of(WIRE_VERSION, UINT32_MAX, UINT32_MAX, strings, sizeof(strings)),
		hello_of(WIRE_VERSION, 0, 0, "", 0),
	};
	struct wire_words words;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_false(wire_hello(rows[i].data, rows[i].length, &words));
	struct bytes empty = hello_of(WIRE_VERSION, 0, 0, "", 1);
	assert_true(wire_hello(empty.data, empty.length, &words));
	assert_null(words.words[0]);
	assert_null(words.environment[0]);
	free(words.words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_hello),
		cmocka_unit_test(test_bad_hello),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

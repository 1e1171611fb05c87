/* Frames as they come from a socket: cut anywhere, long, wrong, and none any more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "cordon-internal.h"
#include "door/wire/inbox.h"

struct ends {
	int here, there;
	struct inbox inbox;
	struct cordon_error err;
};

static int setup(void **state)
{
	struct ends *ends = calloc(1, sizeof(*ends));
	int fds[2];
	assert_non_null(ends);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	ends->here = fds[0];
	ends->there = fds[1];
	*state = ends;
	return 0;
}

static int teardown(void **state)
{
	struct ends *ends = *state;
	close(ends->here);
	close(ends->there);
	inbox_free(&ends->inbox);
	free(ends);
	return 0;
}

static void say(const struct ends *ends, const void *bytes, size_t length)
{
	assert_int_equal(send(ends->there, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT), length);
}

static bool hear(struct ends *ends)
{
	bool any;
	assert_int_equal(inbox_receive(&ends->inbox, ends->here, &any, &ends->err), 0);
	return any;
}

static int next(struct ends *ends, struct wire_frame *ret_frame)
{
	return inbox_next(&ends->inbox, ret_frame, &ends->err);
}

static void test_cut_anywhere(void **state)
{
	struct ends *ends = *state;
	const struct wire_head head = { .kind = WIRE_STDOUT, .length = 3 };
	struct wire_frame frame;
	char bytes[2 * (sizeof(head) + 3)];
	for (size_t i = 0; i < 2; i++) {
		memcpy(bytes + i * sizeof(bytes) / 2, &head, sizeof(head));
		memcpy(bytes + i * sizeof(bytes) / 2 + sizeof(head), i ? "def" : "abc", 3);
	}
	assert_false(hear(ends));
	for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
		say(ends, bytes, cut);
		assert_int_equal(hear(ends), cut > 0);
		size_t found = 0;
		for (int part = 0; part < 2; part++) {
			for (; next(ends, &frame) > 0; found++) {
				assert_memory_equal(frame.body, found ? "def" : "abc", 3);
				inbox_drop(&ends->inbox, &frame);
			}
			if (part)
				break;
			say(ends, bytes + cut, sizeof(bytes) - cut);
			assert_int_equal(hear(ends), cut < sizeof(bytes));
		}
		assert_int_equal(found, 2);
	}
	assert_false(ends->inbox.is_closed);
}

/* A question can be longer than anything else. */
static void test_long(void **state)
{
	struct ends *ends = *state;
	const struct wire_head head = { .kind = WIRE_ASK, .length = WIRE_BODY_MAX * 3 };
	static char body[WIRE_BODY_MAX * 3];
	struct wire_frame frame;
	body[0] = 'a';
	body[sizeof(body) - 1] = 'z';
	say(ends, &head, sizeof(head));
	for (size_t sent = 0; sent < sizeof(body); sent += WIRE_BODY_MAX / 2) {
		assert_true(hear(ends));
		assert_int_equal(next(ends, &frame), 0);
		say(ends, body + sent, WIRE_BODY_MAX / 2);
	}
	assert_true(hear(ends));
	assert_int_equal(next(ends, &frame), 1);
	assert_int_equal(frame.head.length, sizeof(body));
	assert_memory_equal(frame.body, body, sizeof(body));
}

static void test_wrong(void **state)
{
	struct ends *ends = *state;
	struct wire_frame frame;
	say(ends, &(struct wire_head){ .kind = WIRE_STDIN, .length = 0 }, sizeof(struct wire_head));
	assert_true(hear(ends));
	assert_int_equal(next(ends, &frame), -1);
	assert_string_equal(ends->err.reason, "what the daemon says makes no sense");
}

/* What came before the end counts; what was begun does not. */
static void test_gone(void **state)
{
	struct ends *ends = *state;
	const struct wire_head settled = { .kind = WIRE_SETTLED };
	struct wire_frame frame;
	say(ends, &settled, sizeof(settled));
	say(ends, &settled, sizeof(settled) - 1);
	assert_int_equal(shutdown(ends->there, SHUT_WR), 0);
	assert_true(hear(ends));
	assert_false(hear(ends));
	assert_true(ends->inbox.is_closed);
	assert_int_equal(next(ends, &frame), 1);
	inbox_drop(&ends->inbox, &frame);
	assert_int_equal(next(ends, &frame), -1);
	assert_string_equal(ends->err.reason, "the daemon went away, and the command with it");
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = { ROW(test_cut_anywhere), ROW(test_long), ROW(test_wrong), ROW(test_gone) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

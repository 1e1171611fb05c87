/* What of the proxy's words is taken, and what the ledger says then. The ledger is this test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "audit/row.h"
#include "config/config.h"
#include "egress/egress.h"

int egress_send(const struct egress *egress, const struct proxy_message *message, int fd)
{
	(void)egress, (void)message, (void)fd;
	return 0;
}
/* After ours: it has a macro of the name of our fail(). */
#include <cmocka.h>

/* What a command may have of them here. */
#define CONNECTIONS 3

static char *rows[EGRESS_ROWS_MAX + 8];
static size_t row_count;
static bool broken;

void audit_row_begin(struct json *json, const char *kind, const char *id, const char *session_id)
{
	assert_null(id);
	json_init(json);
	json_object_begin(json);
	json_key_string(json, "row", kind);
	json_key_string(json, "session", session_id);
}

int audit_row_end_in(struct json *json, struct ledger *ledger, struct ledger_room *room, struct cordon_error *err)
{
	(void)ledger, (void)room;
	json_object_end(json);
	char *line = json_take(json);
	if (broken) {
		free(line);
		err->class = CORDON_E_AUDIT_UNAVAILABLE;
		return -1;
	}
	assert_true(row_count < ARRAY_SIZE(rows));
	rows[row_count++] = line;
	return 0;
}

struct ground {
	struct arena arena;
	struct strings hosts;
	struct config config;
	struct egress_plan plan;
	struct egress egress;
	struct egress_command command, other;   /* the other one runs beside it only in a test of its own */
	struct cordon_error err;
};

static int set_up(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	ground->config.network.total_connections = CONNECTIONS;
	strings_add(&ground->arena, &ground->hosts, "*.good.test:80");
	ground->egress.facts = (struct egress_facts){
		.config = &ground->config, .hosts = &ground->hosts, .plan = &ground->plan, .session_id = "s"
	};
	ground->command = (struct egress_command){ .egress = &ground->egress,
		                                   .facts = { .program = "curl", .audit_id = "AUDIT" } };
	ground->egress.commands = &ground->command;
	ground->egress.idle.egress = &ground->egress;
	broken = false;
	*state = ground;
	return 0;
}

static int tear_down(void **state)
{
	struct ground *ground = *state;
	arena_free(&ground->arena);
	free(ground->command.denied);
	free(ground->other.denied);
	while (row_count)
		free(rows[--row_count]);
	free(ground);
	return 0;
}

static struct proxy_message connection(const char *host, enum proxy_decision decision)
{
	struct proxy_message message = { .kind = PROXY_CONNECTION };
	message.connection.way = PROXY_BY_SOCKS;
	message.connection.decision = (uint8_t)decision;
	message.connection.count = 1;
	snprintf(message.host, sizeof(message.host), "%s", host);
	return message;
}

static void sound_and_unsound(void **state)
{
	(void)state;
	static const struct { uint32_t kind; const char *host; bool sound; } cases[] = {
		{ PROXY_READY, "", true },                  { PROXY_TOTALS, "", true },
		{ PROXY_CONNECTION, "", true },             { PROXY_CONNECTION, "a.test:80", true },
		{ PROXY_CONNECTION, "[::1]:80", true },     { PROXY_CONNECTION, "10.0.0.1:80", true },
		{ PROXY_CONNECTION, "a.test", false },      { PROXY_CONNECTION, "A.test:80", false },
		{ PROXY_CONNECTION, "a.test.:80", false },  { PROXY_CONNECTION, "a\nb:80", false },
		{ PROXY_CONNECTION, "*.test:80", false },   { PROXY_CONNECTION, "a.test:0080", false },
		{ PROXY_NAME_DENIED, "a.test", true },      { PROXY_NAME_DENIED, "", false },
		{ PROXY_NAME_DENIED, "a.test:80", false },  { PROXY_QUESTION, "a.test:80", true },
		{ PROXY_QUESTION, "", false },              { PROXY_QUESTION, "a.test", false },
		{ PROXY_QUESTION, "*.test:80", false },     { PROXY_BEGIN, "", false },
		{ PROXY_ANSWER, "", false },                { 0, "", false },
		{ PROXY_KIND_MAX, "", false },              { UINT32_MAX, "", false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct proxy_message message = connection(cases[i].host, PROXY_ALLOWED);
		message.kind = cases[i].kind;
		if (egress_message_is_sound(&message) != cases[i].sound)
			fail_msg("%u %s", cases[i].kind, cases[i].host);
	}
	struct proxy_message message = connection("a.test:80", PROXY_DECISION_MAX);
	assert_false(egress_message_is_sound(&message));
	message = connection("a.test:80", PROXY_ALLOWED);
	message.connection.way = PROXY_WAY_MAX;
	assert_false(egress_message_is_sound(&message));
	message = connection("a.test:80", PROXY_ALLOWED);
	message.connection.address.length = 5;
	assert_false(egress_message_is_sound(&message));
	message = connection("a.test:80", PROXY_ALLOWED);
	message.connection.open = 1;
	assert_true(egress_message_is_sound(&message));
	message.connection.open = 2;
	assert_false(egress_message_is_sound(&message));
	message = connection("a.test:80", PROXY_DENIED);
	message.connection.open = 1;
	assert_false(egress_message_is_sound(&message));
	message = connection("", PROXY_ALLOWED);
	message.connection.open = 1;
	assert_false(egress_message_is_sound(&message));
	message = connection("a.test:80", PROXY_FAILED);
	message.connection.outside = 1;
	assert_true(egress_message_is_sound(&message));
	message.connection.outside = 2;
	assert_false(egress_message_is_sound(&message));
	message = connection("", PROXY_FAILED);
	message.connection.outside = 1;
	assert_false(egress_message_is_sound(&message));
	message = connection("a.test", PROXY_DENIED);
	message.kind = PROXY_NAME_DENIED;
	message.connection.outside = 1;
	assert_false(egress_message_is_sound(&message));
	message = connection("", PROXY_ALLOWED);
	memset(message.host, 'a', sizeof(message.host));
	assert_false(egress_message_is_sound(&message));
	message = connection("", PROXY_ALLOWED);
	memset(message.text, 'a', sizeof(message.text));
	assert_false(egress_message_is_sound(&message));
}

static void a_row_for_each(void **state)
{
	struct ground *ground = *state;
	struct proxy_message message = connection("a.test:8080", PROXY_ALLOWED);
	message.connection.bytes_in = 7;
	message.connection.bytes_out = 8;
	message.connection.duration_us = 9999;
	message.connection.address = (struct address){ .bytes = { 10, 0, 0, 1 }, .length = 4 };
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_string_equal(rows[0],
	                    "{\"row\":\"network\",\"session\":\"s\",\"audit_id\":\"AUDIT\",\"program\":\"curl\","
	                    "\"decision\":\"allowed\",\"host\":\"a.test\",\"port\":8080,\"address\":\"10.0.0.1\","
	                    "\"way\":\"socks\",\"bytes_in\":7,\"bytes_out\":8,\"duration_ms\":9,\"why\":\"\"}");
	/* One that is open has a row and counts for nothing yet. */
	struct egress_counts before = ground->command.counts;
	message.connection.open = 1;
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_non_null(strstr(rows[1], "\"bytes_out\":8,\"duration_ms\":9,\"open\":true,\"why\":\"\"}"));
	assert_memory_equal(&ground->command.counts, &before, sizeof(before));
	free(rows[--row_count]);
	message = connection("b.test", PROXY_DENIED);
	message.kind = PROXY_NAME_DENIED;
	message.connection.way = PROXY_BY_DNS;
	message.connection.count = 3;
	snprintf(message.text, sizeof(message.text), "because");
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_string_equal(rows[1],
	                    "{\"row\":\"network\",\"session\":\"s\",\"audit_id\":\"AUDIT\",\"program\":\"curl\","
	                    "\"decision\":\"denied\",\"host\":\"b.test\",\"port\":null,\"address\":null,"
	                    "\"way\":\"dns\",\"bytes_in\":0,\"bytes_out\":0,\"duration_ms\":0,\"count\":3,"
	                    "\"why\":\"because\"}");
	message = connection("", PROXY_FAILED);
	message.connection.status = 400;
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_non_null(strstr(rows[2], "\"decision\":\"failed\",\"host\":\"\",\"port\":null"));
	assert_non_null(strstr(rows[2], "\"status\":400"));
	const struct egress_counts *counts = &ground->command.counts;
	assert_true(counts->connections == 1 && counts->denied == 3 && counts->failed == 1 && counts->bytes_in == 7 &&
	            counts->bytes_out == 8);
}

/* Where something of the host was reached, and only there. */
static void services_of_the_host_are_marked(void **state)
{
	struct ground *ground = *state;
	static const struct {
		const char *host;
		bool outside, marked;
	} cases[] = {
		{ "localhost:80", true, true }, { "127.0.0.1:80", true, true }, { "[::1]:80", true, true },
		{ "localhost:80", false, false }, { "127.0.0.2:80", true, false }, { "a.test:80", true, false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct proxy_message message = connection(cases[i].host, PROXY_FAILED);
		message.connection.outside = cases[i].outside;
		assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
		if ((strstr(rows[i], "\"host_service\":true") != NULL) != cases[i].marked)
			fail_msg("%s", rows[i]);
	}
}

/* Without a network a name is one thing to allow, and its port is told where it is known. */
static void one_host_without_a_network(void **state)
{
	struct ground *ground = *state;
	static const char *const asked[] = { "a.test", "b.test:22", "a.test:80", "b.test", "b.test:23", "[::1]:22" };
	static const char *const wanted[] = { "a.test:80", "b.test:22", "b.test:23", "[::1]:22" };
	ground->plan.is_offline = true;
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		struct proxy_message message = connection(asked[i], PROXY_DENIED);
		assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	}
	assert_int_equal(ground->command.denied_count, ARRAY_SIZE(wanted));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		assert_string_equal(ground->command.denied[i].host, wanted[i]);
}

static void denials_by_host(void **state)
{
	struct ground *ground = *state;
	struct proxy_message message = connection("b.test:80", PROXY_DENIED);
	for (int i = 0; i < 3; i++)
		assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	message = connection("x.good.test:80", PROXY_DENIED);
	message.connection.address = (struct address){ .bytes = { 10, 0, 0, 1 }, .length = 4 };
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_int_equal(ground->command.denied_count, 2);
	assert_true(ground->command.denied[0].count == 3 && !ground->command.denied[0].covered);
	assert_true(ground->command.denied[1].covered);
	assert_string_equal(ground->command.denied[1].address, "10.0.0.1");
	for (int i = 0; i < 2 * EGRESS_DENIED_MAX; i++) {
		char host[32];
		snprintf(host, sizeof(host), "h%d.test:1", i);
		message = connection(host, PROXY_DENIED);
		assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	}
	assert_int_equal(ground->command.denied_count, EGRESS_DENIED_MAX);
	assert_int_equal(ground->command.denied_more, EGRESS_DENIED_MAX + 2);
}

static void rows_are_bounded(void **state)
{
	struct ground *ground = *state;
	struct proxy_message message = connection("a.test:80", PROXY_FAILED);
	message.connection.bytes_in = UINT64_MAX / 2 + 1;
	for (int i = 0; i < EGRESS_ROWS_MAX; i++)
		assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_int_equal(egress_tell_rest(&ground->command, &ground->err), 0);
	assert_int_equal(row_count, EGRESS_ROWS_MAX);
	message.connection.bytes_in = 1;
	for (int i = 0; i < 5; i++)
		assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_int_equal(row_count, EGRESS_ROWS_MAX);
	/* One that gets through has its rows all the same, up to what a command may have of them. */
	message = connection("a.test:80", PROXY_ALLOWED);
	for (int i = 0; i < 2 * (CONNECTIONS + 2); i++) {
		message.connection.open = i % 2 == 0;
		assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	}
	assert_int_equal(ground->command.counts.connections, CONNECTIONS + 2);
	assert_int_equal(row_count, EGRESS_ROWS_MAX + 2 * CONNECTIONS);
	assert_int_equal(egress_tell_rest(&ground->command, &ground->err), 0);
	assert_int_equal(row_count, EGRESS_ROWS_MAX + 2 * CONNECTIONS + 1);
	assert_non_null(strstr(rows[EGRESS_ROWS_MAX + 2 * CONNECTIONS],
	                       "\"decision\":\"more\",\"connections\":2,\"denied\":0,"
	                       "\"failed\":5,\"bytes_in\":5"));
	assert_true(ground->command.counts.bytes_in == UINT64_MAX);
	assert_int_equal(ground->command.counts.failed, EGRESS_ROWS_MAX + 5);
}

/* What was asked for or dialled outside and then failed has its row, too. */
static void what_went_out_has_its_row(void **state)
{
	struct ground *ground = *state;
	struct proxy_message message = connection("a.test:80", PROXY_FAILED);
	ground->command.rows = EGRESS_ROWS_MAX;
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_int_equal(row_count, 0);
	message.connection.outside = 1;
	for (int i = 0; i < 2 * CONNECTIONS + 1; i++)
		assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_int_equal(row_count, 2 * CONNECTIONS);
	assert_int_equal(ground->command.beyond.failed, 2);
}

/* Whose a connection is cannot be known where several run: the row names all of them, and each is told what was denied.
 */
static void two_commands(void **state)
{
	struct ground *ground = *state;
	struct proxy_message message = connection("a.test:80", PROXY_DENIED);
	ground->other = (struct egress_command){ .next = &ground->command, .egress = &ground->egress,
	                                         .facts = { .program = "wget", .audit_id = "OTHER" } };
	ground->egress.commands = &ground->other;
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_int_equal(row_count, 1);
	assert_non_null(
		strstr(rows[0],
	               "\"audit_id\":null,\"program\":null,\"running\":[\"OTHER\",\"AUDIT\"],\"decision\":\"denied\""));
	assert_true(ground->command.counts.denied == 1 && ground->other.counts.denied == 1);
	assert_true(ground->command.denied_count == 1 && ground->other.denied_count == 1);
}

/* One that reached the proxy at its own address is known by it, whichever else runs. */
static void a_command_with_an_address(void **state)
{
	struct ground *ground = *state;
	struct proxy_message message = connection("a.test:80", PROXY_DENIED);
	ground->other = (struct egress_command){ .next = &ground->command, .egress = &ground->egress,
	                                         .facts = { .program = "wget", .audit_id = "OTHER" } };
	ground->egress.commands = &ground->other;
	ground->command.facts.address = egress_command_address("AUDIT");
	ground->other.facts.address = egress_command_address("OTHER");
	message.connection.inside = ground->command.facts.address;
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_non_null(strstr(rows[0], "\"audit_id\":\"AUDIT\",\"program\":\"curl\",\"decision\":\"denied\""));
	assert_true(ground->command.counts.denied == 1 && ground->other.counts.denied == 0 &&
	            ground->other.denied_count == 0);
	/* Of nobody's. */
	message.connection.inside = egress_command_address("ANOTHER");
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_non_null(strstr(rows[1], "\"running\":[\"OTHER\",\"AUDIT\"]"));
}

static void leave(struct egress *egress, const char *audit_id, int64_t ended_ms)
{
	struct egress_left *left = &egress->left[egress->left_count++ % EGRESS_LEFT_MAX];
	*left = (struct egress_left){ .address = egress_command_address(audit_id), .ended_ms = ended_ms };
	snprintf(left->audit_id, sizeof(left->audit_id), "%s", audit_id);
}

/* A connection may end after its command: it is not of the one that is left. */
static void a_command_that_has_ended(void **state)
{
	struct ground *ground = *state;
	struct proxy_message message = connection("a.good.test:80", PROXY_ALLOWED);
	ground->command.facts.address = egress_command_address("AUDIT");
	leave(&ground->egress, "ENDED", clock_ms());
	leave(&ground->egress, "LONGAGO", clock_ms() - 100000);
	message.connection.inside = egress_command_address("ENDED");
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_non_null(strstr(rows[0], "\"audit_id\":\"ENDED\",\"program\":null,\"decision\":\"allowed\""));
	assert_int_equal(ground->command.counts.connections, 0);
	/* Without an address it may be of any that ran then. */
	message.connection.inside = (struct address){ .length = 0 };
	message.connection.duration_us = 5000000;
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_non_null(strstr(rows[1], "\"audit_id\":null,\"program\":null,\"running\":[\"AUDIT\",\"ENDED\"]"));
	ground->egress.commands = NULL;
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_non_null(strstr(rows[2], "\"audit_id\":null,\"program\":null,\"running\":[\"ENDED\"]"));
	ground->egress.commands = &ground->command;
	ground->egress.left[0].ended_ms -= 50000;
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
	assert_non_null(strstr(rows[3], "\"audit_id\":\"AUDIT\",\"program\":\"curl\",\"decision\""));
}

static void a_ledger_that_cannot_be_written(void **state)
{
	struct ground *ground = *state;
	struct proxy_message message = connection("a.test:80", PROXY_ALLOWED);
	broken = true;
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), -1);
	assert_int_equal(ground->err.class, CORDON_E_AUDIT_UNAVAILABLE);
	/* A probe has none. */
	ground->egress.facts.probe = true;
	assert_int_equal(egress_tell(&ground->egress, &message, &ground->err), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(sound_and_unsound),
		TEST(a_row_for_each),
		TEST(services_of_the_host_are_marked),
		TEST(one_host_without_a_network),
		TEST(denials_by_host),
		TEST(rows_are_bounded),
		TEST(what_went_out_has_its_row),
		TEST(two_commands),
		TEST(a_command_with_an_address),
		TEST(a_command_that_has_ended),
		TEST(a_ledger_that_cannot_be_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Lines of JSON-RPC: which are calls, what is wrong with the others, and bytes that are no text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "door/rpc/rpc.h"

static const struct {
	const char *line, *id;
	enum rpc_code code;
} rows[] = {
	{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\"}", "7", RPC_OK },
	{ "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"method\":\"m\",\"params\":{}}", "\"a\\\"b\"", RPC_OK },
	{ "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", "null", RPC_OK },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[[[[[\\\\\"}", "1", RPC_OK },
	{ "{\"jsonrpc\":\"2.0\",\"id\":7}", "7", RPC_NO_REQUEST },
	{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":1}", "7", RPC_NO_REQUEST },
	{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":[]}", "7", RPC_NO_REQUEST },
	{ "{\"jsonrpc\":2,\"id\":7,\"method\":\"m\"}", "7", RPC_NO_REQUEST },
	{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}", "null", RPC_NO_REQUEST },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"m\"}", "null", RPC_NO_REQUEST },
	{ "[]", "null", RPC_NO_REQUEST },
	{ "", "null", RPC_NOT_JSON },
	{ "{", "null", RPC_NOT_JSON },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\\\\",\"params\":{\"a\":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}}",
	  "null", RPC_NOT_JSON },
	{ "\"", "null", RPC_NOT_JSON },
	{ "\"\\", "null", RPC_NOT_JSON },
	{ "{\"id\":1,\"id\":2}", "null", RPC_NO_REQUEST },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"\\u0069d\":2,\"method\":\"m\"}", "null", RPC_NO_REQUEST },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"method\":\"n\"}", "null", RPC_NO_REQUEST },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a:\":\"\\\":\",\"b\":1,\"b\":2}}", "1",
	  RPC_NO_REQUEST },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":\"\\u0000\"}}", "1", RPC_OK },
	{ "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0000\",\"method\":\"m\"}", "\"\\u0000\"", RPC_OK },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\\u0000n\"}", "1", RPC_NO_REQUEST },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"} x", "null", RPC_NOT_JSON },
};

static void test_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rpc_call call;
		const char *why;
		assert_int_equal(rpc_parse(rows[i].line, strlen(rows[i].line), &call, &why), rows[i].code);
		assert_string_equal(call.id, rows[i].id);
		assert_true(rows[i].code != RPC_OK || (json_is_object(call.params) && call.method));
		json_decref(call.whole);
	}
}

/* As deep as may be is parsed, one more is not; an id as long as may be is kept, one more is not. */
static void test_limits(void **state)
{
	(void)state;
	char line[512];
	struct rpc_call call;
	const char *why;
	for (int more = 0; more < 2; more++) {
		int depth = RPC_DEPTH_MAX - 2 + more, id = RPC_ID_MAX - 3 + more;
		memset(line, 0, sizeof(line));
		strcpy(line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":");
		for (int i = 0; i < depth; i++)
			strcat(line, "[");
		for (int i = 0; i < depth; i++)
			strcat(line, "]");
		strcat(line, "}}");
		assert_int_equal(rpc_parse(line, strlen(line), &call, &why), more ? RPC_NOT_JSON : RPC_OK);
		json_decref(call.whole);
		snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":\"%0*d\"}", id, 0);
		assert_int_equal(rpc_parse(line, strlen(line), &call, &why), more ? RPC_NO_REQUEST : RPC_OK);
		json_decref(call.whole);
	}
}

static void test_answers(void **state)
{
	(void)state;
	struct cordon_error err = { .class = CORDON_E_SESSION_ENDED, .reason = "it is over" };
	struct json json;
	size_t length;
	rpc_result_begin(&json, "\"x\"");
	json_bool(&json, true);
	char *line = rpc_end(&json, &length);
	assert_int_equal(length, strlen("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":true}\n"));
	assert_memory_equal(line, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":true}\n", length);
	free(line);
	line = rpc_error("1", RPC_REFUSED, err.reason, &err, &length);
	json_t *said = json_loadb(line, length, 0, NULL);
	json_t *error = json_object_get(said, "error");
	assert_int_equal(json_integer_value(json_object_get(error, "code")), RPC_REFUSED);
	assert_string_equal(json_string_value(json_object_get(json_object_get(error, "data"), "class")),
	                    "session_ended");
	json_decref(said);
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

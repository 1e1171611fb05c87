/* cordon_call(): the methods of the table, and what it refuses. */
#include <stdarg.h>

#include "embed.h"

static struct cordon *cordon;
static struct cordon_error err;

static struct cordon_value *call(const char *method, const char *format, ...)
{
	static char params[8 << 20];
	struct cordon_value *value;
	va_list args;
	va_start(args, format);
	vsnprintf(params, sizeof(params), format, args);
	va_end(args);
	MUST(cordon_call(cordon, method, params, &value, &err));
	return value;
}

static void check_refused(const char *method, const char *params, enum cordon_class class)
{
	struct cordon_value *value;
	if (cordon_call(cordon, method, params, &value, &err) < 0 && (enum cordon_class)err.class == class)
		return;
	fprintf(stderr, "%s %.200s: %s %s\n", method, params, cordon_class_name(err.class), err.reason);
	exit(1);
}

static void check_bad_input(void)
{
	static const char *const params[] = {
		"",
		"[]",
		"null",
		"3",
		"{",
		"{\"id\":\"a\",\"id\":\"b\"}",
		"{\"id\":3}",
		"{\"id\":null}",
		"{}",
		"{\"id\":\"a\",\"more\":1}",
		"{\"id\":\"a\\u0000b\"}",
		"{\"id\":[\"a\"]}",
		"{\"id\":\"\xff\"}",
	};
	for (size_t i = 0; i < sizeof(params) / sizeof(*params); i++)
		check_refused("process.stat", params[i], CORDON_E_INVALID_REQUEST);
	char *deep = malloc(200001);
	memset(deep, '[', 200000);
	deep[200000] = '\0';
	check_refused("process.stat", deep, CORDON_E_INVALID_REQUEST);
	memset(deep, 'a', 200000);
	memcpy(deep, "{\"id\":\"", 7);
	memcpy(deep + 199998, "\"}", 2);
	check_refused("process.stat", deep, CORDON_E_INVALID_REQUEST);
	free(deep);
	check_refused("process.stat", "{\"id\":\"gone\"}", CORDON_E_NOT_FOUND);
	check_refused("process.attach", "{\"id\":\"gone\",\"stdout_from\":-1}", CORDON_E_INVALID_REQUEST);
	check_refused("process.resize", "{\"id\":\"gone\",\"rows\":10000,\"columns\":1}", CORDON_E_INVALID_REQUEST);
	check_refused("process.signal", "{\"id\":\"gone\",\"signal\":\"NONE\"}", CORDON_E_INVALID_REQUEST);
	check_refused("process.write", "{\"id\":\"gone\",\"data\":\"a\",\"data_base64\":\"YQ==\"}",
	              CORDON_E_INVALID_REQUEST);
	check_refused("process.write", "{\"id\":\"gone\",\"data_base64\":\"*\"}", CORDON_E_INVALID_REQUEST);
	check_refused("process.write", "{\"id\":\"gone\"}", CORDON_E_INVALID_REQUEST);
	check_refused("approvals.answer", "{\"card\":\"gone\",\"answer\":\"maybe\"}", CORDON_E_INVALID_REQUEST);
	check_refused("process.start", "{\"argv\":[]}", CORDON_E_INVALID_REQUEST);
	check_refused("process.start", "{\"argv\":[\"a\",1]}", CORDON_E_INVALID_REQUEST);
	check_refused("process.start", "{\"argv\":[\"true\"],\"settings\":{\"bogus\":1}}", CORDON_E_INVALID_REQUEST);
	check_refused("process.start", "{\"argv\":[\"true\"],\"settings\":{\"timeout\":{}}}", CORDON_E_INVALID_REQUEST);
	check_refused("no.such", NULL, CORDON_E_NOT_FOUND);
	check_refused("process.lst", NULL, CORDON_E_NOT_FOUND);
	CHECK(strstr(err.remediation, "process.list"));
}

static void check_processes(void)
{
	const char *place = getenv("WORKSPACE");
	struct cordon_value *value = call("process.start",
	                                  "{\"argv\":[\"sh\",\"-c\",\"cat; printf '\\\\377' >&2\"],"
	                                  "\"environment\":[\"PATH=%s\"],\"settings\":{\"workspace\":\"%s\",\"stdin\":"
	                                  "\"stream\",\"timeout\":30}}",
	                                  getenv("PATH"), place);
	char id[64];
	snprintf(id, sizeof(id), "%s", cordon_value_text(value, "id", NULL));
	cordon_value_unref(value);
	value = call("process.write", "{\"id\":\"%s\",\"data_base64\":\"aMO8\"}", id);
	CHECK(cordon_value_int(value, "taken") == 3);
	cordon_value_unref(value);
	value = call("process.wait", "{\"id\":\"%s\",\"timeout_ms\":10}", id);
	CHECK(!cordon_value_int(value, "ended") && cordon_value_type(value, "result") == CORDON_NULL);
	cordon_value_unref(value);
	cordon_value_unref(call("process.close_stdin", "{\"id\":\"%s\"}", id));
	value = call("process.wait", "{\"id\":\"%s\"}", id);
	CHECK(cordon_value_int(value, "ended") &&
	      !strcmp(cordon_value_text(value, "result.stdout", NULL), "h\303\274"));
	char *json = cordon_value_json(value, "result");
	CHECK(strstr(json, "\"stderr_base64\":\"/w==\"") && !strstr(json, "stdout_base64"));
	free(json);
	cordon_value_unref(value);
	value = call("process.stat", "{\"id\":\"%s\"}", id);
	CHECK(!strcmp(cordon_value_text(value, "state", NULL), "ended") &&
	      cordon_value_int(value, "stdout.bytes") == 3);
	cordon_value_unref(value);
	value = call(
		"process.start",
		"{\"argv\":[\"sleep\",\"1000\"],\"environment\":[\"PATH=%s\"],\"settings\":{\"workspace\":\"%s\"}}",
		getenv("PATH"), place);
	snprintf(id, sizeof(id), "%s", cordon_value_text(value, "id", NULL));
	cordon_value_unref(value);
	cordon_value_unref(call("process.cancel", "{\"id\":\"%s\",\"grace_ms\":0}", id));
	value = call("process.wait", "{\"id\":\"%s\"}", id);
	CHECK(cordon_value_int(value, "ended"));
	cordon_value_unref(value);
}

static void check_files(void)
{
	cordon_value_unref(call("session.new", "{\"id\":\"calls\"}"));
	cordon_value_unref(
		call("fs.write", "{\"path\":\"a\",\"data_base64\":\"AP8=\",\"settings\":{\"session\":\"calls\"}}"));
	struct cordon_value *value = call("fs.send", "{\"path\":\"a\",\"settings\":{\"session\":\"calls\"}}");
	size_t length;
	const char *data = cordon_value_text(value, "data", &length);
	CHECK(length == 2 && !memcmp(data, "\0\377", 2));
	cordon_value_unref(value);
	check_refused("fs.read", "{\"path\":\"/etc/hostname\",\"settings\":{\"session\":\"calls\"}}",
	              CORDON_E_CAPABILITY_DENIED);
	cordon_value_unref(call("session.end", "{\"id\":\"calls\",\"remove_workspace\":true}"));
	cordon_value_unref(call("session.remove", "{\"id\":\"calls\"}"));
}

/* What needs no more than a name is there and answers. */
static void check_table(void)
{
	struct cordon_value *table = call("rpc.discover", "{}"), *hello = call("hello", "{}");
	size_t count = cordon_value_count(table, "methods");
	CHECK(count > 40 && count == cordon_value_count(hello, "methods"));
	for (size_t i = 0; i < count; i++) {
		char path[64];
		snprintf(path, sizeof(path), "methods.%zu.name", i);
		const char *name = cordon_value_text(table, path, NULL);
		if (i) {
			snprintf(path, sizeof(path), "methods.%zu.name", i - 1);
			CHECK(strcmp(cordon_value_text(table, path, NULL), name) < 0);
		}
		snprintf(path, sizeof(path), "methods.%zu.params.required", i);
		struct cordon_value *value;
		int result = cordon_call(cordon, name, NULL, &value, &err);
		if (cordon_value_count(table, path)) {
			CHECK(result < 0 && err.class == CORDON_E_INVALID_REQUEST);
		} else if (result == 0) {
			cordon_value_unref(value);
		} else {
			CHECK(err.class != CORDON_E_INTERNAL && err.class != CORDON_E_NOT_FOUND);
		}
	}
	cordon_value_unref(table);
	cordon_value_unref(hello);
	char *settings = cordon_settings_json();
	CHECK(strstr(settings, "\"key\":\"timeout\""));
	free(settings);
}

int main(void)
{
	MUST(cordon_open(NULL, &cordon, &err));
	check_bad_input();
	check_processes();
	check_files();
	check_table();
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

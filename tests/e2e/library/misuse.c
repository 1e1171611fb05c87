/* Wrong calls are errors with a reason, `ret_` arguments stay untouched on failure, `err` on success. */
#include "embed.h"

static const struct {
	const char *key, *value;
	enum cordon_class class;
} wrong[] = {
	{ "no-such-key", "x", CORDON_E_INVALID_REQUEST },
	{ "", "x", CORDON_E_INVALID_REQUEST },
	{ "timeout", "soon", CORDON_E_INVALID_REQUEST },
	{ "timeout", "", CORDON_E_INVALID_REQUEST },
	{ "timeout", "0", CORDON_E_INVALID_REQUEST },
	{ "memory", "-1", CORDON_E_INVALID_REQUEST },
	{ "processes", "0", CORDON_E_INVALID_REQUEST },
	{ "read", "relative", CORDON_E_INVALID_REQUEST },
	{ "read", "", CORDON_E_INVALID_REQUEST },
	{ "write", "/with\nline", CORDON_E_INVALID_REQUEST },
	{ "tty", "maybe", CORDON_E_INVALID_REQUEST },
	{ "no-spawn", "1", CORDON_E_INVALID_REQUEST },
	{ "view", "all", CORDON_E_INVALID_REQUEST },
	{ "env", "novalue", CORDON_E_INVALID_REQUEST },
	{ "session", "", CORDON_E_INVALID_REQUEST },
	{ "session", "a\nb", CORDON_E_INVALID_REQUEST },
	{ "net", "host.example", CORDON_E_INVALID_REQUEST },
	{ "net", "a host:443", CORDON_E_INVALID_REQUEST },
};

static void check_settings(void)
{
	struct cordon_error err, untouched;
	struct cordon_request *request = shell("true");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memset(&err, 0, sizeof(err));
		CHECK(cordon_request_set(request, wrong[i].key, wrong[i].value, &err) < 0);
		if (err.class != (int)wrong[i].class || !err.reason[0]) {
			fprintf(stderr, "%s=%s: %s\n", wrong[i].key, wrong[i].value, cordon_class_name(err.class));
			exit(1);
		}
	}
	memset(&err, 0x5a, sizeof(err));
	untouched = err;
	CHECK(cordon_request_set(request, "timeout", "1s", &err) == 0 && !memcmp(&err, &untouched, sizeof(err)));
	cordon_request_unref(request);
}

static void check_commands(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_request *request;
	struct cordon_result *result = (void *)&err;
	struct cordon_execution *execution = (void *)&err;
	char *json = (void *)&err;
	const char *const none[] = { NULL }, *const empty[] = { "", NULL };
	MUST(cordon_request_new(&request, &err));
	CHECK(cordon_request_command(request, none, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	CHECK(cordon_request_command(request, empty, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	CHECK(cordon_request_command(request, NULL, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	/* A request without a command. */
	CHECK(cordon_result_run(cordon, request, &result, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	CHECK(cordon_execution_start(cordon, request, &execution, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	CHECK(cordon_profile(cordon, request, &json, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	CHECK((void *)result == (void *)&err && (void *)execution == (void *)&err && (void *)json == (void *)&err);
	char *text = cordon_error_json(&err);
	CHECK(text && !strncmp(text, "{\"error\":{\"class\":\"invalid_request\"", 35));
	free(text);
	cordon_request_unref(request);
}

/* A request may be used again, and what it was given is its own copy. */
static void check_reuse(struct cordon *cordon)
{
	struct cordon_error err;
	char line[] = "echo one", key[] = "timeout", value[] = "5s";
	struct cordon_request *request = shell(line);
	MUST(cordon_request_set(request, key, value, &err));
	memset(line, 'x', sizeof(line) - 1);
	memset(value, 'x', sizeof(value) - 1);
	for (int i = 0; i < 3; i++) {
		struct cordon_result *result;
		MUST(cordon_result_run(cordon, request, &result, &err));
		CHECK(!strcmp(result->stdout_data, "one\n"));
		cordon_result_unref(result);
	}
	char *json;
	MUST(cordon_profile(cordon, request, &json, &err));
	CHECK(strstr(json, "\"wall_ms\": 5000") || strstr(json, "\"wall_ms\":5000"));
	free(json);
	cordon_request_unref(request);
}

static void check_opening(void)
{
	struct cordon_error err;
	struct cordon *cordon = NULL;
	struct cordon_options relative = { .data_dir = "relative" };
	CHECK(cordon_open(&relative, &cordon, &err) < 0 && !cordon && err.reason[0]);
	unsetenv("XDG_DATA_HOME");
	unsetenv("HOME");
	CHECK(cordon_open(NULL, &cordon, &err) < 0 && err.class == CORDON_E_AUDIT_UNAVAILABLE && err.retriable &&
	      !cordon);
}

int main(void)
{
	struct cordon_error err;
	struct cordon *cordon;
	MUST(cordon_open(NULL, &cordon, &err));
	check_settings();
	check_commands(cordon);
	check_reuse(cordon);
	cordon_unref(cordon);
	check_opening();
	cordon_unref(NULL);
	cordon_request_unref(NULL);
	cordon_result_unref(NULL);
	cordon_execution_unref(NULL);
	CHECK(!strcmp(cordon_class_name(CORDON_E_LEAK_BLOCKED), "leak_blocked"));
	CHECK(cordon_class_name(CORDON_CLASS_MAX) && cordon_step_name(CORDON_STEP_MAX) &&
	      cordon_wall_name(CORDON_WALL_MAX));
	puts("fine");
	return 0;
}

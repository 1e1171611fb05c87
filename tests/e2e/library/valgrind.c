/* For a run under valgrind: what starts no process works, and a command is refused with the reason. */
#include "embed.h"

static void check_refused(int result, const struct cordon_error *err)
{
	CHECK(result < 0 && err->class == CORDON_E_SPAWN_SANDBOX_UNAVAILABLE && err->step == CORDON_STEP_RUN);
	CHECK(strstr(err->reason, "valgrind") && strstr(err->remediation, "without valgrind"));
}

int main(void)
{
	struct cordon_error err;
	struct cordon *cordon;
	struct cordon_result *result = NULL;
	struct cordon_request *request = shell("echo out");
	char *json;
	MUST(cordon_open(NULL, &cordon, &err));
	MUST(cordon_session_list(cordon, &json, &err));
	free(json);
	MUST(cordon_config_show(cordon, NULL, &json, &err));
	free(json);
	check_refused(cordon_result_run(cordon, request, &result, &err), &err);
	MUST(cordon_request_set(request, "session", "valgrind", &err));
	/* Where a session may name a driver at all, it comes as far as this. */
	if (!getenv("DRIVER")) {
		check_refused(cordon_result_run(cordon, request, &result, &err), &err);
	}
	CHECK(!result);
	cordon_request_unref(request);
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

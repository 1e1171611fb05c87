/* NULL where a call needs something is `invalid_request`, never a crash; for `err` it is a caller that does not want to
 * know why. What is optional may be NULL, and so may what is released. */
#include "embed.h"

static struct cordon *cordon;
static struct cordon_request *request;
static struct cordon_execution *execution;
static struct cordon_error err;

static int on_row(void *arg, const char *row, size_t length)
{
	(void)arg, (void)row, (void)length;
	return 1;
}

static int check_refused(int line, int result)
{
	if (result < 0 && err.class == CORDON_E_INVALID_REQUEST && strstr(err.reason, "NULL") && err.subject[0]) {
		memset(&err, 0, sizeof(err));
		return 0;
	}
	fprintf(stderr, "%s:%d: %d, %s: %s\n", __FILE__, line, result, cordon_class_name(err.class), err.reason);
	exit(1);
}

#define REFUSED(call) check_refused(__LINE__, (call))

static void check_requests(void)
{
	static const char *const argv[] = { "true", NULL };
	REFUSED(cordon_request_new(NULL, &err));
	REFUSED(cordon_request_set(NULL, "timeout", "1s", &err));
	REFUSED(cordon_request_set(request, NULL, "1s", &err));
	REFUSED(cordon_request_set(request, "timeout", NULL, &err));
	REFUSED(cordon_request_set(NULL, NULL, NULL, &err));
	REFUSED(cordon_request_command(NULL, argv, &err));
	REFUSED(cordon_request_environment(NULL, argv, &err));
	REFUSED(cordon_request_environment(request, NULL, &err));
	cordon_request_stdin(NULL, 0);
	cordon_request_output(NULL, NULL, NULL);
	cordon_request_approver(NULL, NULL, NULL, -1, 0);
}

static void check_commands(void)
{
	struct cordon_result *result = NULL;
	struct cordon_execution *other = NULL;
	const char *path;
	char *json = NULL;
	bool flag;
	REFUSED(cordon_open(NULL, NULL, &err));
	REFUSED(cordon_data_dir(NULL, &path, &err));
	REFUSED(cordon_data_dir(cordon, NULL, &err));
	REFUSED(cordon_result_run(NULL, request, &result, &err));
	REFUSED(cordon_result_run(cordon, NULL, &result, &err));
	REFUSED(cordon_result_run(cordon, request, NULL, &err));
	REFUSED(cordon_execution_start(NULL, request, &other, &err));
	REFUSED(cordon_execution_start(cordon, NULL, &other, &err));
	REFUSED(cordon_execution_start(cordon, request, NULL, &err));
	REFUSED(cordon_execution_step(NULL, &flag, &err));
	REFUSED(cordon_execution_step(execution, NULL, &err));
	REFUSED(cordon_execution_result(NULL, &result, &err));
	REFUSED(cordon_execution_result(execution, NULL, &err));
	REFUSED(cordon_profile(NULL, request, &json, &err));
	REFUSED(cordon_preflight(NULL, request, &json, &err));
	REFUSED(cordon_preflight(cordon, NULL, &json, &err));
	REFUSED(cordon_preflight(cordon, request, NULL, &err));
	REFUSED(cordon_profile(cordon, NULL, &json, &err));
	REFUSED(cordon_profile(cordon, request, NULL, &err));
	CHECK(cordon_execution_fd(NULL) == -1 && cordon_execution_kept(NULL, CORDON_STDOUT) == 0);
	cordon_execution_signal(NULL, 15);
	cordon_execution_resize(NULL, 1, 1);
	CHECK(!cordon_result_json(NULL) && !cordon_error_json(NULL) && !result && !other && !json);
}

static void check_sessions(void)
{
	static const char *const argv[] = { "true", NULL };
	struct cordon_result *result = NULL;
	char *json = NULL;
	REFUSED(cordon_session_new(NULL, "s", NULL, &json, &err));
	REFUSED(cordon_session_new(cordon, NULL, NULL, &json, &err));
	REFUSED(cordon_session_new(cordon, "s", NULL, NULL, &err));
	REFUSED(cordon_session_show(NULL, "s", &json, &err));
	REFUSED(cordon_session_show(cordon, NULL, &json, &err));
	REFUSED(cordon_session_show(cordon, "s", NULL, &err));
	REFUSED(cordon_session_list(NULL, &json, &err));
	REFUSED(cordon_session_list(cordon, NULL, &err));
	REFUSED(cordon_session_pause(NULL, "s", NULL, &err));
	REFUSED(cordon_session_pause(cordon, NULL, NULL, &err));
	REFUSED(cordon_session_resume(NULL, "s", &err));
	REFUSED(cordon_session_resume(cordon, NULL, &err));
	REFUSED(cordon_session_end(NULL, "s", false, &err));
	REFUSED(cordon_session_end(cordon, NULL, true, &err));
	REFUSED(cordon_session_remove(NULL, "s", &err));
	REFUSED(cordon_session_remove(cordon, NULL, &err));
	REFUSED(cordon_session_enter(NULL, "s", &err));
	REFUSED(cordon_session_enter(cordon, NULL, &err));
	REFUSED(cordon_result_run_current(NULL, &result, &err));
	REFUSED(cordon_result_run_current(argv, NULL, &err));
	CHECK(!json && !result);
}

static void check_jobs(void)
{
	struct cordon_job_output output;
	char *json = NULL, buffer[8];
	REFUSED(cordon_job_start(NULL, request, &json, &err));
	REFUSED(cordon_job_start(cordon, NULL, &json, &err));
	REFUSED(cordon_job_start(cordon, request, NULL, &err));
	REFUSED(cordon_job_list(NULL, NULL, &json, &err));
	REFUSED(cordon_job_list(cordon, NULL, NULL, &err));
	REFUSED(cordon_job_poll(NULL, "j", 0, 0, &json, &err));
	REFUSED(cordon_job_poll(cordon, NULL, 0, 0, &json, &err));
	REFUSED(cordon_job_poll(cordon, "j", 0, 0, NULL, &err));
	REFUSED(cordon_job_read(NULL, "j", CORDON_STDOUT, 0, buffer, sizeof(buffer), 0, &output, &err));
	REFUSED(cordon_job_read(cordon, NULL, CORDON_STDOUT, 0, buffer, sizeof(buffer), 0, &output, &err));
	REFUSED(cordon_job_read(cordon, "j", CORDON_STDOUT, 0, NULL, sizeof(buffer), 0, &output, &err));
	REFUSED(cordon_job_read(cordon, "j", CORDON_STDOUT, 0, buffer, sizeof(buffer), 0, NULL, &err));
	REFUSED(cordon_job_wait(NULL, "j", 0, &json, &err));
	REFUSED(cordon_job_wait(cordon, NULL, 0, &json, &err));
	REFUSED(cordon_job_wait(cordon, "j", 0, NULL, &err));
	REFUSED(cordon_job_kill(NULL, "j", 0, &err));
	REFUSED(cordon_job_kill(cordon, NULL, 0, &err));
	CHECK(!json);
}

static void check_others(void)
{
	char *json = NULL;
	bool flag;
	cordon_approver(NULL, NULL, NULL);
	cordon_approver_interrupt(NULL, -1);
	REFUSED(cordon_approvals_list(NULL, &json, &err));
	REFUSED(cordon_approvals_list(cordon, NULL, &err));
	REFUSED(cordon_approvals_answer(NULL, "c", NULL, CORDON_DENIED, NULL, &err));
	REFUSED(cordon_approvals_answer(cordon, NULL, NULL, CORDON_DENIED, NULL, &err));
	REFUSED(cordon_config_show(NULL, NULL, &json, &err));
	REFUSED(cordon_config_show(cordon, NULL, NULL, &err));
	REFUSED(cordon_config_check(NULL, NULL, &err));
	REFUSED(cordon_manifest_check(NULL, "/f", &json, &err));
	REFUSED(cordon_manifest_check(cordon, NULL, &json, &err));
	REFUSED(cordon_manifest_check(cordon, "/f", NULL, &err));
	REFUSED(cordon_net_list(NULL, &json, &err));
	REFUSED(cordon_net_list(cordon, NULL, &err));
	REFUSED(cordon_cache_list(NULL, &json, &err));
	REFUSED(cordon_cache_list(cordon, NULL, &err));
	REFUSED(cordon_cache_clear(NULL, NULL, NULL, &json, &err));
	REFUSED(cordon_cache_clear(cordon, NULL, NULL, NULL, &err));
	REFUSED(cordon_url_check(NULL, "http://h/", &json, &flag, &err));
	REFUSED(cordon_url_check(cordon, NULL, &json, &flag, &err));
	REFUSED(cordon_url_check(cordon, "http://h/", NULL, &flag, &err));
	REFUSED(cordon_url_check(cordon, "http://h/", &json, NULL, &err));
	REFUSED(cordon_wsl_setup(NULL, "/a", "0", NULL, &err));
	REFUSED(cordon_wsl_setup(cordon, NULL, "0", NULL, &err));
	REFUSED(cordon_wsl_setup(cordon, "/a", NULL, NULL, &err));
	REFUSED(cordon_wsl_status(NULL, &json, &flag, &err));
	REFUSED(cordon_wsl_status(cordon, NULL, &flag, &err));
	REFUSED(cordon_wsl_status(cordon, &json, NULL, &err));
	REFUSED(cordon_wsl_reset(NULL, "x", &err));
	REFUSED(cordon_wsl_reset(cordon, NULL, &err));
	REFUSED(cordon_audit_read(NULL, NULL, on_row, NULL, &err));
	REFUSED(cordon_audit_read(cordon, NULL, NULL, NULL, &err));
	REFUSED(cordon_audit_verify(NULL, &json, &flag, &err));
	REFUSED(cordon_audit_verify(cordon, NULL, &flag, &err));
	REFUSED(cordon_audit_verify(cordon, &json, NULL, &err));
	REFUSED(cordon_doctor(NULL, &json, &flag, &err));
	REFUSED(cordon_doctor(cordon, NULL, &flag, &err));
	REFUSED(cordon_doctor(cordon, &json, NULL, &err));
	CHECK(!json);
}

/* Without `err` a call fails, and works, as it does with one. */
static void check_without_error(void)
{
	struct cordon_request *wrong = shell("exit 3");
	struct cordon_result *result = NULL;
	char *json = NULL;
	CHECK(cordon_result_run(cordon, wrong, &result, NULL) == 0 && result->exit_code == 3);
	cordon_result_unref(result);
	CHECK(cordon_request_set(wrong, "timeout", "soon", NULL) < 0);
	MUST(cordon_request_set(wrong, "read", "/nonexistent/at/all", &err));
	result = NULL;
	CHECK(cordon_result_run(cordon, wrong, &result, NULL) < 0 && !result);
	CHECK(cordon_session_show(cordon, "missing", &json, NULL) < 0 &&
	      cordon_session_end(cordon, "missing", false, NULL) < 0);
	CHECK(cordon_job_wait(cordon, "missing", 0, &json, NULL) < 0 &&
	      cordon_config_check(cordon, "relative", NULL) < 0);
	CHECK(cordon_result_run(NULL, NULL, NULL, NULL) < 0 && !json);
	cordon_request_unref(wrong);
}

int main(void)
{
	MUST(cordon_open(NULL, &cordon, &err));
	request = shell("true");
	MUST(cordon_execution_start(cordon, request, &execution, &err));
	check_requests();
	check_commands();
	check_sessions();
	check_jobs();
	check_others();
	check_without_error();
	cordon_execution_unref(execution);
	cordon_request_unref(request);
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

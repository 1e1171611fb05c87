/* A child that was forked, and uses what its parent opened, is told so at once; nothing of its parent's is hurt. It may
 * open a handle of its own. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "embed.h"

static struct cordon *cordon;
static struct cordon_request *request;
static struct cordon_execution *execution;
static struct cordon_process *process;

static int on_row(void *arg, const char *row, size_t length)
{
	(void)arg, (void)row, (void)length;
	return 1;
}

static void check_told(int line, int result, struct cordon_error *err)
{
	if (result < 0 && err->class == CORDON_E_INVALID_REQUEST && strstr(err->reason, "opened before fork()")) {
		memset(err, 0, sizeof(*err));
		return;
	}
	fprintf(stderr, "%s:%d: %d, %s: %s\n", __FILE__, line, result, cordon_class_name(err->class), err->reason);
	_exit(1);
}

#define TOLD(call) check_told(__LINE__, (call), &err)

static void use_commands(void)
{
	struct cordon_error err = { 0 };
	struct cordon_result *result = NULL;
	struct cordon_execution *other = NULL;
	struct cordon_value *value = NULL;
	const char *path;
	char *json = NULL;
	bool finished;
	TOLD(cordon_result_run(cordon, request, &result, &err));
	TOLD(cordon_execution_start(cordon, request, &other, &err));
	TOLD(cordon_profile(cordon, request, &json, &err));
	TOLD(cordon_data_dir(cordon, &path, &err));
	TOLD(cordon_execution_step(execution, &finished, &err));
	TOLD(cordon_execution_result(execution, &result, &err));
	TOLD(cordon_process_next(process, &value, &err));
	TOLD(cordon_process_wait(process, -1, &value, &err));
	TOLD(cordon_process_cancel(process, 0, &err));
	cordon_process_unref(process);
	cordon_execution_signal(execution, SIGKILL);
	cordon_execution_unref(execution);
}

static void use_others(void)
{
	struct cordon_error err = { 0 };
	struct cordon_job_output output;
	char *json = NULL, buffer[8];
	bool flag;
	TOLD(cordon_session_new(cordon, "s", NULL, &json, &err));
	TOLD(cordon_session_show(cordon, "s", &json, &err));
	TOLD(cordon_session_list(cordon, &json, &err));
	TOLD(cordon_session_pause(cordon, "s", NULL, &err));
	TOLD(cordon_session_resume(cordon, "s", &err));
	TOLD(cordon_session_end(cordon, "s", false, &err));
	TOLD(cordon_session_end(cordon, "s", true, &err));
	TOLD(cordon_session_remove(cordon, "s", &err));
	TOLD(cordon_session_enter(cordon, "s", &err));
	TOLD(cordon_job_start(cordon, request, &json, &err));
	TOLD(cordon_job_list(cordon, NULL, &json, &err));
	TOLD(cordon_job_poll(cordon, "j", 0, 0, &json, &err));
	TOLD(cordon_job_read(cordon, "j", CORDON_STDOUT, 0, buffer, sizeof(buffer), -1, &output, &err));
	TOLD(cordon_job_wait(cordon, "j", -1, &json, &err));
	TOLD(cordon_job_kill(cordon, "j", 0, &err));
	TOLD(cordon_approvals_list(cordon, &json, &err));
	TOLD(cordon_approvals_answer(cordon, "c", NULL, CORDON_DENIED, NULL, &err));
	TOLD(cordon_config_show(cordon, NULL, &json, &err));
	TOLD(cordon_config_check(cordon, NULL, &err));
	TOLD(cordon_manifest_check(cordon, "/f", &json, &err));
	TOLD(cordon_net_list(cordon, &json, &err));
	TOLD(cordon_url_check(cordon, "http://192.0.2.1/", &json, &flag, &err));
	TOLD(cordon_wsl_setup(cordon, "/a", "0", NULL, &err));
	TOLD(cordon_wsl_status(cordon, &json, &flag, &err));
	TOLD(cordon_wsl_reset(cordon, "x", &err));
	TOLD(cordon_audit_read(cordon, NULL, on_row, NULL, &err));
	TOLD(cordon_audit_verify(cordon, &json, &flag, &err));
	TOLD(cordon_doctor(cordon, &json, &flag, &err));
	cordon_unref(cordon);
}

static void use_own(void)
{
	struct cordon_error err;
	struct cordon *own;
	struct cordon_result *result = NULL;
	MUST(cordon_open(NULL, &own, &err));
	MUST(cordon_result_run(own, request, &result, &err));
	CHECK(!strcmp(result->stdout_data, "out\n"));
	cordon_result_unref(result);
	cordon_unref(own);
}

static void check_child(void)
{
	int status;
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		alarm(30);
		use_commands();
		use_others();
		use_own();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A session's walls stay up, and threads see to them: what a child does not have. */
int main(void)
{
	struct cordon_error err;
	struct cordon_result *result = NULL;
	struct cordon_request *of_session = shell("echo out");
	struct cordon_value *ended = NULL;
	char *json;
	bool finished = false;
	MUST(cordon_open(NULL, &cordon, &err));
	MUST(cordon_request_set(of_session, "session", "forked", &err));
	request = shell("sleep 0.5; echo out");
	MUST(cordon_result_run(cordon, of_session, &result, &err));
	cordon_result_unref(result);
	MUST(cordon_job_start(cordon, of_session, &json, &err));
	free(json);
	MUST(cordon_execution_start(cordon, request, &execution, &err));
	MUST(cordon_start(cordon, request, &process, &err));
	check_child();
	while (!finished) {
		pause_ms(10);
		MUST(cordon_execution_step(execution, &finished, &err));
	}
	MUST(cordon_execution_result(execution, &result, &err));
	CHECK(result->exit_code == 0 && !strcmp(result->stdout_data, "out\n"));
	cordon_result_unref(result);
	cordon_execution_unref(execution);
	MUST(cordon_process_wait(process, -1, &ended, &err));
	CHECK(cordon_value_int(ended, "exit_code") == 0);
	cordon_value_unref(ended);
	cordon_process_unref(process);
	MUST(cordon_result_run(cordon, of_session, &result, &err));
	cordon_result_unref(result);
	cordon_request_unref(of_session);
	cordon_request_unref(request);
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

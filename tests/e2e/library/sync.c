/* The synchronous call, its result, live output, input, and many runs without a descriptor or a child left over. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "embed.h"

static char live[4096];
static size_t live_length;

static void on_output(void *arg, enum cordon_stream stream, const void *data, size_t length)
{
	CHECK(arg == live && (stream == CORDON_STDOUT || stream == CORDON_STDERR));
	memcpy(live + live_length, data, length);
	live_length += length;
}

static void check_result(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_result *result;
	struct cordon_request *request = shell("echo out; echo err >&2; exit 3");
	cordon_request_output(request, on_output, live);
	MUST(cordon_result_run(cordon, request, &result, &err));
	CHECK(result->exit_code == 3 && result->signal == 0 && !result->timed_out && !result->limit_hit);
	CHECK(result->stdout_length == 4 && !memcmp(result->stdout_data, "out\n", 5));
	CHECK(result->stderr_length == 4 && !strcmp(result->stderr_data, "err\n"));
	CHECK(result->isolation[CORDON_WALL_FILESYSTEM] && !result->isolation[CORDON_WALL_SPAWN]);
	CHECK(live_length == 8 && strlen(result->audit_id) == 26);
	char *json = cordon_result_json(result);
	CHECK(json && strstr(json, "\"exit_code\":3"));
	free(json);
	/* It outlives the request. */
	cordon_request_unref(request);
	CHECK(!strcmp(result->stdout_data, "out\n"));
	cordon_result_unref(result);
}

/* Everything read from the descriptor goes on; the descriptor stays ours, and where it was left. */
static void check_input(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_result *result;
	struct cordon_request *request = shell("wc -c; ls /proc/self/fd | wc -l");
	int file = open(getenv("INPUT"), O_RDONLY | O_CLOEXEC);
	CHECK(file >= 0);
	cordon_request_stdin(request, file);
	MUST(cordon_result_run(cordon, request, &result, &err));
	CHECK(!strcmp(result->stdout_data, "300000\n4\n"));
	CHECK(fcntl(file, F_GETFD) == FD_CLOEXEC && close(file) == 0);
	cordon_result_unref(result);
	cordon_request_unref(request);
}

/* A command that does not read its input: no SIGPIPE for us. */
static void check_no_sigpipe(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_result *result;
	struct cordon_request *request = shell("exec 0<&-; sleep 0.1");
	int file = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	signal(SIGPIPE, SIG_DFL);
	cordon_request_stdin(request, file);
	MUST(cordon_result_run(cordon, request, &result, &err));
	CHECK(result->exit_code == 0);
	sigset_t pending;
	CHECK(sigpending(&pending) == 0 && !sigismember(&pending, SIGPIPE));
	close(file);
	cordon_result_unref(result);
	cordon_request_unref(request);
}

static void check_no_leak(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_result *result;
	int before = 0;
	for (int i = 0; i < 200; i++) {
		struct cordon_request *request = shell(i % 10 ? "exit 0" : "sleep 9 & exit 0");
		if (i % 7 == 0)
			CHECK(cordon_request_set(request, "cwd", "missing", &err) == 0);
		if (cordon_result_run(cordon, request, &result, &err) == 0)
			cordon_result_unref(result);
		else
			CHECK(i % 7 == 0 && err.class == CORDON_E_CAPABILITY_DENIED && strlen(err.audit_id) == 26);
		cordon_request_unref(request);
		if (i == 20)
			before = open_descriptors();
	}
	/* A few inits may still be on their way out, each with a descriptor and three of its control group; never more.
	 */
	CHECK(open_descriptors() <= before + 8 * 4);
}

/* The memory that the command is begun in is ours. */
static void check_memory(struct cordon *cordon)
{
	enum { LARGE = 64 << 20, SMALL_KB = 32 << 10 };
	struct cordon_error err;
	struct cordon_result *result;
	char *large = malloc(LARGE);
	CHECK(large);
	memset(large, 1, LARGE);
	free(large);
	struct cordon_request *request = shell("exit 0");
	MUST(cordon_result_run(cordon, request, &result, &err));
	CHECK(result->max_rss_kb < SMALL_KB);
	cordon_result_unref(result);
	cordon_request_unref(request);
}

int main(void)
{
	struct cordon_error err;
	struct cordon *cordon;
	int before = open_descriptors();
	MUST(cordon_open(NULL, &cordon, &err));
	check_result(cordon);
	check_input(cordon);
	check_no_sigpipe(cordon);
	check_no_leak(cordon);
	check_memory(cordon);
	cordon_unref(cordon);
	/* What is kept for the life of the process: the init program, the machine's load, and as root the namespace of
	 * mapped owners. */
	CHECK(open_descriptors() <= before + 3);
	CHECK(waitpid(-1, NULL, __WALL | WNOHANG) == -1);
	puts("fine");
	return 0;
}

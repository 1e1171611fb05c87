/* Shell lines in one session whose walls stay up: whatever changed since the last line, the next one sees it as it is
 * now. A refused line runs nothing. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "embed.h"

static struct cordon *cordon;
static const char *workspace;

struct asked {
	const char *shell, *line;
	const char *cwd, *env;          /* or NULL */
};

static const char *path_of(const char *name)
{
	static char path[4096];
	snprintf(path, sizeof(path), "%s/%s", workspace, name);
	return path;
}

static int run(struct asked asked, struct cordon_result **ret_result, struct cordon_error *ret_error)
{
	struct cordon_error err;
	struct cordon_request *request;
	const char *const argv[] = { asked.shell, "-c", asked.line, NULL };
	MUST(cordon_request_new(&request, &err));
	MUST(cordon_request_set(request, "session", "changes", &err));
	if (asked.cwd)
		MUST(cordon_request_set(request, "cwd", asked.cwd, &err));
	if (asked.env)
		MUST(cordon_request_set(request, "env", asked.env, &err));
	MUST(cordon_request_command(request, argv, &err));
	int result = cordon_result_run(cordon, request, ret_result, ret_error);
	cordon_request_unref(request);
	return result;
}

static void says(struct asked asked, int code, const char *output)
{
	struct cordon_error err;
	struct cordon_result *result;
	MUST(run(asked, &result, &err));
	if (result->exit_code != code || strcmp(result->stdout_data, output))
		fprintf(stderr, "%s: %d, %s%s", asked.line, result->exit_code, result->stdout_data,
		        result->stderr_data);
	CHECK(result->exit_code == code && !strcmp(result->stdout_data, output));
	cordon_result_unref(result);
}

/* Runs it a few times, so that the next command finds walls that are up. */
static void repeat(struct asked asked)
{
	for (int i = 0; i < 3; i++) {
		says(asked, 0, "");
		pause_ms(30);
	}
}

static void check_changes(void)
{
	char expected[4096];
	repeat((struct asked){ "sh", ":", NULL, NULL });
	CHECK(mkdir(path_of("sub"), 0755) == 0);
	snprintf(expected, sizeof(expected), "%s\n", path_of("sub"));
	says((struct asked){ "sh", "pwd", "sub", NULL }, 0, expected);
	says((struct asked){ "sh", "echo $COLOUR", NULL, "COLOUR=red" }, 0, "red\n");
	repeat((struct asked){ "sh", ":", NULL, "COLOUR=red" });
	says((struct asked){ "sh", "echo $COLOUR", NULL, "COLOUR=blue" }, 0, "blue\n");
	says((struct asked){ "bash", "echo ${BASH_VERSION:+bash}", NULL, "COLOUR=blue" }, 0, "bash\n");
	/* Its id is that of its row. */
	struct cordon_error err;
	struct cordon_result *result;
	MUST(run((struct asked){ "sh", "printf %s $CORDON_SANDBOX_ID", NULL, NULL }, &result, &err));
	CHECK(!strcmp(result->stdout_data, result->audit_id));
	cordon_result_unref(result);
}

/* Another directory by the same name, and another program. */
static void check_replaced(void)
{
	repeat((struct asked){ "sh", ":", "sub", NULL });
	CHECK(rmdir(path_of("sub")) == 0 && mkdir(path_of("sub"), 0755) == 0);
	says((struct asked){ "sh", ": > here; cd ..; echo sub/*", "sub", NULL }, 0, "sub/here\n");
	CHECK(unlink(path_of("sub/here")) == 0 && rmdir(path_of("sub")) == 0);

	char shell[4096], command[16384];
	snprintf(shell, sizeof(shell), "%s", path_of("sh"));
	snprintf(command, sizeof(command), "cp /bin/dash %s", shell);
	CHECK(system(command) == 0);
	repeat((struct asked){ shell, ":", NULL, NULL });
	snprintf(command, sizeof(command), "cp /bin/bash %s.new && mv %s.new %s", shell, shell, shell);
	CHECK(system(command) == 0);
	says((struct asked){ shell, "echo ${BASH_VERSION:+bash}", NULL, NULL }, 0, "bash\n");
	CHECK(unlink(shell) == 0);
}

static void check_options(void)
{
	struct cordon_error err;
	struct cordon_result *result;
	repeat((struct asked){ "bash", ":", NULL, NULL });
	MUST(run((struct asked){ "bash", "-x", NULL, NULL }, &result, &err));
	CHECK(result->exit_code == 2 && strstr(result->stderr_data, "option requires an argument"));
	cordon_result_unref(result);
}

static void check_refused(void)
{
	struct cordon_error err;
	struct cordon_result *result;
	CHECK(run((struct asked){ "sh", ": > ran", "no-such-directory", NULL }, &result, &err) < 0);
	repeat((struct asked){ "sh", ":", NULL, NULL });
	CHECK(access(path_of("ran"), F_OK) < 0 && errno == ENOENT);
}

int main(void)
{
	struct cordon_error err;
	struct cordon_request *settings;
	char *json;
	workspace = getenv("WORKSPACE");
	MUST(cordon_open(NULL, &cordon, &err));
	MUST(cordon_request_new(&settings, &err));
	MUST(cordon_request_set(settings, "workspace", workspace, &err));
	MUST(cordon_session_new(cordon, "changes", settings, &json, &err));
	free(json);
	cordon_request_unref(settings);
	check_changes();
	check_replaced();
	check_options();
	check_refused();
	MUST(cordon_session_end(cordon, "changes", false, &err));
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

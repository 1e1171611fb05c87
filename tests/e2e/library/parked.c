/* A parked shell is taken only by a command that would start the very same: whatever changed since, the command sees it as it is
 * now. What is refused runs nothing, and a shell that is gone is not missed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
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

/* Whether it was by a parked shell. */
static int run(struct asked asked, struct cordon_result **ret_result, struct cordon_error *ret_error)
{
	struct cordon_error err;
	struct cordon_request *request;
	const char *const argv[] = { asked.shell, "-c", asked.line, NULL };
	MUST(cordon_request_new(&request, &err));
	MUST(cordon_request_set(request, "session", "parked", &err));
	if (asked.cwd)
		MUST(cordon_request_set(request, "cwd", asked.cwd, &err));
	if (asked.env)
		MUST(cordon_request_set(request, "env", asked.env, &err));
	MUST(cordon_request_command(request, argv, &err));
	int result = cordon_run(cordon, request, ret_result, ret_error);
	cordon_request_unref(request);
	return result < 0 ? result : was_parked(*ret_result);
}

static void park(struct asked asked)
{
	struct cordon_error err;
	struct cordon_result *result;
	for (uint64_t begun = now_ms();;) {
		int parked = run(asked, &result, &err);
		CHECK(parked >= 0);
		cordon_result_unref(result);
		if (parked)
			break;
		CHECK(now_ms() - begun < PATIENCE_MS);
	}
	/* The next one is there, or will soon be. */
	pause_ms(100);
}

/* What a command can have written would be code that runs while nobody asked for it. */
static void never_parks(struct asked asked)
{
	struct cordon_error err;
	struct cordon_result *result;
	for (int i = 0; i < 4; i++) {
		CHECK(run(asked, &result, &err) == 0);
		cordon_result_unref(result);
		pause_ms(50);
	}
}

static void says(struct asked asked, int code, const char *output)
{
	struct cordon_error err;
	struct cordon_result *result;
	MUST(run(asked, &result, &err));
	if (result->exit_code != code || strcmp(result->stdout_data, output))
		fprintf(stderr, "%s: %d, %s%s", asked.line, result->exit_code, result->stdout_data, result->stderr_data);
	CHECK(result->exit_code == code && !strcmp(result->stdout_data, output));
	cordon_result_unref(result);
}

static void check_changes(void)
{
	char expected[4096];
	park((struct asked){ "sh", "pwd", NULL, NULL });
	CHECK(mkdir(path_of("sub"), 0755) == 0);
	snprintf(expected, sizeof(expected), "%s\n", path_of("sub"));
	says((struct asked){ "sh", "pwd", "sub", NULL }, 0, expected);
	park((struct asked){ "sh", ":", NULL, NULL });
	says((struct asked){ "sh", "echo $COLOUR", NULL, "COLOUR=red" }, 0, "red\n");
	park((struct asked){ "sh", ":", NULL, "COLOUR=red" });
	says((struct asked){ "sh", "echo $COLOUR", NULL, "COLOUR=blue" }, 0, "blue\n");
	says((struct asked){ "bash", "echo ${BASH_VERSION:+bash}", NULL, "COLOUR=blue" }, 0, "bash\n");
	/* Its id is that of its row. */
	struct cordon_error err;
	struct cordon_result *result;
	park((struct asked){ "sh", ":", NULL, NULL });
	MUST(run((struct asked){ "sh", "printf %s $CORDON_SANDBOX_ID", NULL, NULL }, &result, &err));
	CHECK(!strcmp(result->stdout_data, result->audit_id));
	cordon_result_unref(result);
}

/* Another directory by the same name, and another program. */
static void check_replaced(void)
{
	park((struct asked){ "sh", ":", "sub", NULL });
	CHECK(rmdir(path_of("sub")) == 0 && mkdir(path_of("sub"), 0755) == 0);
	says((struct asked){ "sh", ": > here; cd ..; echo sub/*", "sub", NULL }, 0, "sub/here\n");
	CHECK(unlink(path_of("sub/here")) == 0 && rmdir(path_of("sub")) == 0);

	char shell[4096], command[16384];
	snprintf(shell, sizeof(shell), "%s", path_of("sh"));
	snprintf(command, sizeof(command), "cp /bin/dash %s", shell);
	CHECK(system(command) == 0);
	never_parks((struct asked){ shell, ":", NULL, NULL });
	snprintf(command, sizeof(command), "cp /bin/bash %s.new && mv %s.new %s", shell, shell, shell);
	CHECK(system(command) == 0);
	says((struct asked){ shell, "echo ${BASH_VERSION:+bash}", NULL, NULL }, 0, "bash\n");
	CHECK(unlink(shell) == 0);
}

static void check_options(void)
{
	struct cordon_error err;
	struct cordon_result *result;
	park((struct asked){ "bash", ":", NULL, NULL });
	MUST(run((struct asked){ "bash", "-x", NULL, NULL }, &result, &err));
	CHECK(result->exit_code == 2 && strstr(result->stderr_data, "option requires an argument"));
	cordon_result_unref(result);
}

static void check_refused(void)
{
	struct cordon_error err;
	struct cordon_result *result;
	park((struct asked){ "sh", ":", NULL, NULL });
	CHECK(run((struct asked){ "sh", ": > ran", "no-such-directory", NULL }, &result, &err) < 0);
	park((struct asked){ "sh", ":", NULL, NULL });
	CHECK(access(path_of("ran"), F_OK) < 0 && errno == ENOENT);
}

/* Calls `each` for every process that has this text among those of a file of its own; returns how often it said yes. */
static int find(const char *file_name, const char *wanted, bool (*each)(pid_t pid))
{
	char path[64], text[32768];
	int found = 0;
	struct dirent *entry;
	DIR *processes = opendir("/proc");
	CHECK(processes);
	while ((entry = readdir(processes))) {
		snprintf(path, sizeof(path), "/proc/%.20s/%s", entry->d_name, file_name);
		FILE *file = fopen(path, "r");
		size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
		text[length] = '\0';
		for (size_t at = 0; at < length; at += strlen(text + at) + 1)
			if (!strcmp(text + at, wanted))
				found += each((pid_t)atoi(entry->d_name));
		if (file)
			fclose(file);
	}
	closedir(processes);
	return found;
}

static bool is_held(pid_t pid)
{
	char path[64], text[512];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "r");
	size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[length] = '\0';
	if (file)
		fclose(file);
	const char *state = strrchr(text, ')');
	return state && !strncmp(state, ") t", 3);
}

static char held_line[4200];
static bool held;

/* While nothing can be recorded the shell has its line, and does not run. If it is not to be seen, none was parked in time. */
static void *look(void *arg)
{
	const int *head = arg;
	for (uint64_t begun = now_ms(); !held && now_ms() - begun < 1000; pause_ms(1)) {
		CHECK(access(path_of("ran"), F_OK) < 0);
		held = find("cmdline", held_line, is_held);
	}
	pause_ms(100);
	CHECK(!held || find("cmdline", held_line, is_held) == 1);
	CHECK(access(path_of("ran"), F_OK) < 0 && errno == ENOENT);
	CHECK(flock(*head, LOCK_UN) == 0);
	return NULL;
}

static void check_held(void)
{
	struct cordon_error err;
	struct cordon_result *result;
	char path[4200];
	pthread_t thread;
	snprintf(path, sizeof(path), "%s/cordon/ledger/head", getenv("XDG_DATA_HOME"));
	snprintf(held_line, sizeof(held_line), ": > %s", path_of("ran"));
	int head = open(path, O_RDWR | O_CLOEXEC);
	for (uint64_t begun = now_ms(); !held;) {
		park((struct asked){ "sh", ":", NULL, NULL });
		CHECK(flock(head, LOCK_EX) == 0);
		CHECK(pthread_create(&thread, NULL, look, &head) == 0);
		int parked = run((struct asked){ "sh", held_line, NULL, NULL }, &result, &err);
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(parked >= 0 && result->exit_code == 0);
		cordon_result_unref(result);
		held = held && parked;
		CHECK(unlink(path_of("ran")) == 0);
		CHECK(now_ms() - begun < PATIENCE_MS);
	}
	close(head);
}

static bool is_killed(pid_t pid)
{
	return kill(pid, SIGKILL) == 0;
}

/* From outside, whoever may; by the workspace in its environment. */
static int kill_parked(void)
{
	char wanted[4200];
	snprintf(wanted, sizeof(wanted), "CORDON_WORKSPACE=%s", workspace);
	return find("environ", wanted, is_killed);
}

static void check_killed(void)
{
	park((struct asked){ "sh", ":", NULL, NULL });
	for (uint64_t begun = now_ms(); !kill_parked();)
		CHECK(now_ms() - begun < PATIENCE_MS);
	says((struct asked){ "sh", "echo there", NULL, NULL }, 0, "there\n");
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
	MUST(cordon_session_new(cordon, "parked", settings, &json, &err));
	free(json);
	cordon_request_unref(settings);
	check_changes();
	check_replaced();
	check_options();
	check_refused();
	check_held();
	check_killed();
	MUST(cordon_session_end(cordon, "parked", false, &err));
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

/* Commands of a caller whose memory nobody may read: one that asked for that, or one that was root and became another
 * user (BECOME), which the kernel treats alike. They run, and at no moment is the caller's memory open to others. */
#include <grp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "embed.h"

static atomic_bool over, was_open;

static void *watch(void *arg)
{
	while (!over)
		if (prctl(PR_GET_DUMPABLE) == 1)
			was_open = true;
	return arg;
}

static void close_memory(void)
{
	const char *become = getenv("BECOME");
	if (become) {
		unsigned id = (unsigned)strtoul(become, NULL, 10);
		CHECK(setgroups(0, NULL) == 0 && setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0);
	} else {
		CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
	}
	CHECK(prctl(PR_GET_DUMPABLE) != 1);
}

static void run(struct cordon *cordon, const struct cordon_request *request)
{
	struct cordon_error err;
	struct cordon_result *result = NULL;
	char want[32];
	snprintf(want, sizeof(want), "%u\n", (unsigned)geteuid());
	MUST(cordon_result_run(cordon, request, &result, &err));
	if (result->exit_code)
		fprintf(stderr, "%s%s", result->stdout_data, result->stderr_data);
	CHECK(result->exit_code == 0 && (geteuid() == 0 || !strcmp(result->stdout_data, want)));
	CHECK(!result->error && result->denial_count == 0);
	cordon_result_unref(result);
}

/* A root caller's memory is opened for a moment while a process becomes another user: that is not looked at here. */
int main(void)
{
	struct cordon_error err;
	struct cordon *cordon;
	pthread_t watcher;
	close_memory();
	struct cordon_request *one = shell("echo >made; id -u"), *many = shell("echo >made; id -u"),
			      *few = shell("id -u");
	struct cordon_request *hosts = shell("id -u");
	const char *driver = getenv("DRIVER");
	MUST(cordon_request_set(hosts, "net", "example.com:443", &err));
	MUST(cordon_request_set(many, "session", "undumpable", &err));
	MUST(cordon_request_set(few, "processes", "2", &err));
	CHECK(pthread_create(&watcher, NULL, watch, NULL) == 0);
	MUST(cordon_open(NULL, &cordon, &err));
	for (int i = 0; i < 3; i++)
		run(cordon, one);
	run(cordon, few);
	for (int i = 0; i < 4 && !driver; i++)
		run(cordon, many);
	if (!driver || !strcmp(driver, "bwrap"))
		run(cordon, hosts);
	cordon_unref(cordon);
	over = true;
	CHECK(pthread_join(watcher, NULL) == 0 && (!was_open || geteuid() == 0) && prctl(PR_GET_DUMPABLE) != 1);
	cordon_request_unref(one);
	cordon_request_unref(many);
	cordon_request_unref(few);
	cordon_request_unref(hosts);
	puts("fine");
	return 0;
}

/* When few descriptors are left, a command runs or is refused at once, for that reason and with what helps against it;
 * nothing is left open, and all is well when there are enough again. */
#include <sys/resource.h>
#include <unistd.h>

#include "embed.h"

#define ROOMS 160               /* for a root caller each toolchain and each cache takes some */
#define AT_ONCE_MS 5000

static struct rlimit whole;

static void run_well(struct cordon *cordon, const struct cordon_request *request)
{
	struct cordon_error err;
	struct cordon_result *result = NULL;
	MUST(cordon_result_run(cordon, request, &result, &err));
	CHECK(result->exit_code == 0 && !strcmp(result->stdout_data, "out\n"));
	cordon_result_unref(result);
}

/* `room` numbers above the lowest that is free may be used. */
static bool run_with(struct cordon *cordon, const struct cordon_request *request, unsigned room)
{
	struct cordon_error err;
	struct cordon_result *result = NULL;
	int lowest = dup(0);
	close(lowest);
	CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)lowest + room, whole.rlim_max }) == 0);
	uint64_t begun = now_ms();
	int ran = cordon_result_run(cordon, request, &result, &err);
	uint64_t took = now_ms() - begun;
	CHECK(setrlimit(RLIMIT_NOFILE, &whole) == 0);
	bool told = ran == 0 ||
	            ((err.class == CORDON_E_RESOURCE_EXHAUSTED || err.class == CORDON_E_AUDIT_UNAVAILABLE) &&
	             err.retriable && strstr(err.reason, "open files") && strstr(err.remediation, "open files"));
	if (!told || took > AT_ONCE_MS) {
		fprintf(stderr, "room %u, %d ms: %s: %s (%s) %s\n", room, (int)took, cordon_class_name(err.class),
		        err.reason, err.subject, err.remediation);
		exit(1);
	}
	cordon_result_unref(result);
	return ran == 0;
}

static int use(const struct cordon_request *request, unsigned rooms)
{
	struct cordon_error err;
	struct cordon *cordon;
	bool ran = false;
	MUST(cordon_open(NULL, &cordon, &err));
	run_well(cordon, request);
	for (unsigned room = 0; room < rooms; room++)
		ran = run_with(cordon, request, room);
	CHECK(ran || !rooms);
	run_well(cordon, request);
	cordon_unref(cordon);
	return open_descriptors();
}

int main(void)
{
	struct cordon_error err;
	struct cordon_request *one = shell("echo out"), *many = shell("echo out");
	MUST(cordon_request_set(many, "session", "few", &err));
	CHECK(getrlimit(RLIMIT_NOFILE, &whole) == 0);
	int before = use(one, 0);
	CHECK(use(many, 0) == before);
	CHECK(use(one, ROOMS) == before && use(many, ROOMS) == before);
	cordon_request_unref(one);
	cordon_request_unref(many);
	puts("fine");
	return 0;
}

/* What the walk costs without the driver: steps 1 to 4, and step 6 with a durable intent row. Links the library's own
 * parts. walk RUNS DATA_DIR WORKSPACE: prints NAME, p50, p90 and p99 in microseconds, for the whole and for each step,
 * once for a one-off and once for a session. */
#include <stdio.h>
#include <stdlib.h>

#include "walk.h"
#include "sample.h"

static int take_session(struct execution *execution, struct cordon_error *err)
{
	return session_step(&execution->facts, &execution->held, &execution->verdict.session, err);
}

static int take_cwd(struct execution *execution, struct cordon_error *err)
{
	const struct verdict_session *session = &execution->verdict.session;
	const struct cwd_facts facts = { &execution->arena,   execution->request->cwd, session->here,
		                         &session->workspace, session->workspace_fd,   { 0 } };
	return cwd_step(&facts, &execution->verdict.cwd, err);
}

static int take_capability(struct execution *execution, struct cordon_error *err)
{
	struct verdict *verdict = &execution->verdict;
	return capability_step(&execution->facts, &execution->held, verdict, &verdict->grants, &execution->asked, err);
}

static int take_profile(struct execution *execution, struct cordon_error *err)
{
	struct verdict *verdict = &execution->verdict;
	return profile_step(&execution->facts, &execution->held, verdict, &execution->trees, &verdict->profile, err);
}

static const struct {
	const char *name;
	int (*take)(struct execution *execution, struct cordon_error *err);
} steps[] = {
	{ "session", take_session },       { "cwd", take_cwd },
	{ "capability", take_capability }, { "profile", take_profile },
	{ "audit", audit_step_intent },
};
enum { STEPS = ARRAY_SIZE(steps) };

static int measure(struct cordon *cordon, const struct cordon_request *request, const char *kind, size_t runs,
                   struct cordon_error *err)
{
	double *took = calloc(runs * (STEPS + 1), sizeof(*took));
	for (size_t run = 0; took && run < runs; run++) {
		struct execution *execution;
		double begin = now_us(), at = begin;
		if (walk_new(cordon, request, false, &execution, err) < 0)
			return -1;
		for (size_t step = 0; step < STEPS; step++) {
			if (steps[step].take(execution, err) < 0)
				return -1;
			double now = now_us();
			took[(step + 1) * runs + run] = now - at;
			at = now;
		}
		took[run] = at - begin;
		walk_free(execution);
	}
	for (size_t step = 0; took && step <= STEPS; step++) {
		char name[64];
		snprintf(name, sizeof(name), "%s %s", kind, step ? steps[step - 1].name : "whole");
		print_sample(name, took + step * runs, runs);
	}
	free(took);
	return 0;
}

static int measure_both(char **argv, struct cordon_error *err)
{
	static const char *const command[] = { "/bin/true", NULL };
	const struct cordon_options options = { .data_dir = argv[2] };
	struct cordon *cordon = NULL;
	struct cordon_request *one_off = NULL, *session = NULL;
	size_t runs = strtoul(argv[1], NULL, 10);
	int failed = cordon_open(&options, &cordon, err) < 0 || cordon_request_new(&one_off, err) < 0 ||
	             cordon_request_set(one_off, "workspace", argv[3], err) < 0 ||
	             cordon_request_command(one_off, command, err) < 0 || cordon_request_new(&session, err) < 0 ||
	             cordon_request_set(session, "session", "bench", err) < 0 ||
	             cordon_request_command(session, command, err) < 0 ||
	             measure(cordon, one_off, "one-off", runs, err) < 0 ||
	             measure(cordon, session, "session", runs, err) < 0;
	cordon_request_unref(session);
	cordon_request_unref(one_off);
	cordon_unref(cordon);
	return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct cordon_error err;
	if (argc != 4 || measure_both(argv, &err) < 0)
		give_up("walk: %s", argc == 4 ? err.reason : "RUNS DATA_DIR WORKSPACE");
	return 0;
}

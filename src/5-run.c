/* Step 5: the driver prepares, the launch raises the walls and starts the command, the supervision follows it to its
 * end, and what it left behind under a protected name is judged (paths/trees.h). */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "driver/linux/control.h"
#include "driver/linux/linger.h"
#include "driver/linux/processes.h"
#include "egress/egress.h"
#include "paths/trees.h"
#include "walk.h"

#define PLAIN_CAPTURE_BYTES (UINT64_C(64) << 10)

void run_init(struct execution *execution)
{
	execution->run.launch.report_fd = execution->run.launch.pidfd = -1;
	execution->run.launch.ready_fd = execution->run.launch.go_fd = -1;
}

void run_release(struct execution *execution)
{
	egress_free(execution->run.egress);
	driver_release(&execution->run.held);
	if (execution->run.prepared)
		supervise_free(&execution->run.supervision);
	leaks_free(execution);
	cgroup_remove(&execution->run.group);
	disk_watch_end(&execution->run.disk);
	cleanup_close(&execution->run.launch.report_fd);
	cleanup_close(&execution->run.launch.ready_fd);
	cleanup_close(&execution->run.launch.go_fd);
}

/* A weaker tier runs only where it was named: here, a driver other than the default one was. */
static int require_walls(const struct execution *execution, struct cordon_error *err)
{
	const struct driver *driver = execution->verdict.session.driver;
	const char *const *isolation = execution->run.isolation;
	if (limits_require(execution, err) < 0)
		return -1;
	if (strcmp(driver->name, DRIVER_DEFAULT))
		return 0;
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++) {
		bool may_miss = wall == CORDON_WALL_FILESYSTEM_SECOND || limits_are_optional(wall);
		if (isolation[wall] && !strcmp(isolation[wall], "none") && !may_miss) {
			fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, cordon_wall_name(wall), "this wall cannot be raised here");
			fail_boundary(err, cordon_wall_name(wall));
			return fail_remedy(err, "run `cordon doctor`");
		}
	}
	return 0;
}

/* What is judged by its file must be that file inside, too. */
static void judge_program(struct execution *execution)
{
	struct launch *launch = &execution->run.launch;
	if (!execution->verdict.grants.program.path || launch->candidates != execution->verdict.profile.candidates.items)
		return;
	launch->program_judged = true;
	launch->program_device = execution->verdict.grants.program.device;
	launch->program_inode = execution->verdict.grants.program.inode;
}

/* Who is no pid 1, nor alone in a domain, ends by their numbers what the command has left. */
static int check_numbers(const struct launch *launch, struct cordon_error *err)
{
	if (*launch->init_mode != *INIT_SUBREAPER || processes_have_our_numbers())
		return 0;
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "/proc",
	     "it is of another pid namespace: what a command leaves running could not be ended, and others could be instead");
	fail_boundary(err, "lifetime");
	return fail_remedy(err, "mount a /proc of this namespace, or choose --driver namespaces");
}

/* From nothing: the walls are raised for this command. */
static int prepare(struct execution *execution, struct cordon_error *err)
{
	const struct profile *profile = &execution->verdict.profile;
	const struct driver *driver = execution->verdict.session.driver;
	struct launch *launch = &execution->run.launch;
	const struct driver_facts *facts = &execution->run.facts;
	execution->run.facts = (struct driver_facts){
		.cwd_fd = execution->verdict.cwd.fd, .caller_is_root = geteuid() == 0, .uid = geteuid(), .gid = getegid(),
		.landlock_abi = driver_landlock_abi(), .data_dir = execution->cordon->data_dir,
	};
	if (driver->prepare(&execution->arena, profile, facts, launch, &execution->run.held, err) < 0)
		return -1;
	launch->init_fd = launch_init_fd(err);
	if (launch->init_fd < 0 || check_numbers(launch, err) < 0 || limits_begin(execution, err) < 0)
		return -1;
	launch->rows = execution->request->rows;
	launch->columns = execution->request->columns;
#ifdef CORDON_UNWALL
	if (!(profile->walls & WALL_BIT(LIFETIME)))
		launch->init_mode = *launch->init_mode == *INIT_PID_NAMESPACE ? INIT_PID_NAMESPACE INIT_CARELESS
		                                                              : INIT_SUBREAPER INIT_CARELESS;
#endif
	driver->describe(&execution->arena, profile, facts, launch, execution->run.isolation);
	return 0;
}

static int find_walls(struct execution *execution, struct cordon_error *err)
{
	if (prepare(execution, err) < 0)
		return -1;
	execution->run.launch.umask = execution->request->umask;
	judge_program(execution);
	limits_describe(execution);
	return require_walls(execution, err);
}

static uint64_t output_limit(const struct execution *execution, int stream)
{
	const struct limits *limits = &execution->verdict.profile.limits;
	uint64_t limit = stream == CORDON_STDERR ? limits->stderr_bytes : limits->stdout_bytes;
	return limit ? limit : UINT64_MAX;
}

/* Output without a limit that is handed on as it comes is not kept, but for as much as tells why a command failed. */
static bool is_handed_on(const struct execution *execution, int stream)
{
	return execution->request->plain && output_limit(execution, stream) == UINT64_MAX;
}

static uint64_t capture_cap(const struct execution *execution, int stream)
{
	return is_handed_on(execution, stream) ? PLAIN_CAPTURE_BYTES : output_limit(execution, stream);
}

static void hold_input(void *supervision, bool hold)
{
	supervise_hold_input(supervision, hold);
}

/* The network of a command that may reach listed hosts. */
static int begin_egress(struct execution *execution, struct cordon_error *err)
{
	const struct verdict *verdict = &execution->verdict;
	const struct egress_facts facts = {
		.config = verdict->session.config, .plan = &verdict->profile.egress, .hosts = &verdict->grants.set.hosts,
		.private_hosts = &execution->request->private_hosts, .gate = handle_gate(execution->cordon),
		.question = verdict->grants.host_question, .room = &execution->audit.network_room,
		.program = execution->request->argv.items[0], .session_id = verdict->session.id, .audit_id = execution->audit.id,
		.probe = execution->facts.probe, .hold_input = hold_input, .hold_input_arg = &execution->run.supervision,
	};
	return facts.plan->count ? egress_begin(&facts, &execution->run.egress, err) : 0;
}

static int end_egress(struct execution *execution, struct cordon_error *err)
{
	struct egress_report report = { .arena = &execution->arena, .denials = &execution->denials };
	if (!execution->run.egress)
		return 0;
	int result = egress_end(execution->run.egress, &report, err);
	execution->run.network = report.counts;
	execution->run.offline_hint = report.offline_hint;
	egress_free(execution->run.egress);
	execution->run.egress = NULL;
	return result;
}

/* All that comes before something runs: the walls and the pipes. */
static int get_ready(struct execution *execution, struct cordon_error *err)
{
	const struct cordon_request *request = execution->request;
	const struct profile *profile = &execution->verdict.profile;
	struct launch *launch = &execution->run.launch;
	struct supervision *supervision = &execution->run.supervision;
	const struct supervise_options options = {
		.stdin_fd = request->stdin_fd, .tty = request->tty, .one_stream = request->one_stream, .wall_ms = profile->limits.wall_ms,
		.stdout_cap = capture_cap(execution, CORDON_STDOUT), .stderr_cap = capture_cap(execution, CORDON_STDERR),
		.output = request->output, .output_arg = request->output_arg, .filter = leaks_filter(execution), .group = &execution->run.group,
		.disk = profile->walls & WALL_BIT(LIMIT_DISK) ? &execution->run.disk : NULL, .memory = &execution->run.memory,
		.wish = execution->verdict.session.one_off ? NULL : session_wish, .wish_arg = execution,
	};
	if (begin_egress(execution, err) < 0 || find_walls(execution, err) < 0)
		return -1;
	execution->run.prepared = true;
	return supervise_prepare(supervision, &options, launch, err);
}

int run_step_start(struct execution *execution, struct cordon_error *err)
{
	const struct driver *driver = execution->verdict.session.driver;
	struct launch *launch = &execution->run.launch;
	struct supervision *supervision = &execution->run.supervision;
	if (launch_check(err) < 0 || leaks_begin(execution, err) < 0 || get_ready(execution, err) < 0)
		return -1;
	execution->run.patience = (struct patience){ supervision->deadline_us, walk_approver(execution->cordon, execution->request)->interrupt_fd };
	launch->patience = &execution->run.patience;
	if (launch_start(launch, err) < 0)
		return -1;
	driver_release(&execution->run.held);
	limits_started(execution);
	/* Whatever becomes of it, what has started is supervised from here on. */
	int entered = driver->enter && !launch->cut_short ? driver->enter(launch, err) : 0;
	if (supervise_begin(supervision, launch, entered < 0 ? NULL : err) < 0 || entered < 0) {
		err->retriable = false;
		return -1;
	}
	struct egress *egress = execution->run.egress;
	if (egress && !launch->cut_short)
		egress_started(egress, supervise_take_listeners(supervision, egress_listeners(egress),
		                                                execution->verdict.profile.egress.count, NULL) == 0);
	execution->run.started = true;
	return 0;
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

static void note_end(struct execution *execution)
{
	int status = execution->run.supervision.status;
	execution->run.ended = true;
	execution->run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	execution->run.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int run_step_finish(struct execution *execution, struct cordon_error *err)
{
	struct supervision *supervision = &execution->run.supervision;
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++) {
		capture_finish(&supervision->captures[stream], &execution->run.streams[stream]);
		execution->run.streams[stream].truncated &= !is_handed_on(execution, stream);
	}
	bool told = leaks_end(execution) == 0;
	const struct driver *driver = execution->verdict.session.driver;
	int status = driver->conclude ? driver->conclude(&execution->run.launch, supervision->status,
	                                                 execution->run.streams[CORDON_STDERR].data, err) : 0;
	if (status == 0)
		note_end(execution);
	/* That nothing ran is the first thing to tell. */
	struct cordon_error *untold = status < 0 ? NULL : err;
	if (end_egress(execution, untold) < 0 || limits_end(execution, untold) < 0)
		status = -1;
	bool failed = status == 0 && (execution->run.exit_code || execution->run.signal);
	if (failed && execution->verdict.profile.walls & WALL_BIT(MASKED) && trees_tell_hidden(execution->trees) < 0)
		status = fail_oom(untold);
	if (status == 0 && execution->verdict.profile.walls & WALL_BIT(MASKED) && trees_keep_shown(execution->trees) < 0)
		status = fail_oom(untold);
	/* Whatever has failed: what was left is there. */
	bool judged = !(execution->verdict.profile.walls & WALL_BIT(PROTECTED)) || trees_judge(execution->trees) == 0;
	return status < 0 || (judged && told) ? status : fail_oom(err);
}

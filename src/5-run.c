/* Step 5: the sandbox is raised, or the session has one; the command is started in it, and followed to its end. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "config/config.h"
#include "egress/egress.h"
#include "egress/publish.h"
#include "git-broker.h"
#include "host/kernel-mounts.h"
#include "paths/index/globs.h"
#include "paths/trees.h"
#include "session/registry.h"
#include "secrets/guard.h"
#include "run/complaint.h"
#include "walk.h"

#define PLAIN_CAPTURE_BYTES (UINT64_C(64) << 10)

static void leave_egress(struct execution *execution)
{
	if (execution->run.connections)
		(void)!egress_leave(execution->run.connections, NULL, NULL);
	execution->run.connections = NULL;
}

void run_release(struct execution *execution)
{
	leave_egress(execution);
	publish_free(execution->run.publish);
	egress_free(execution->run.egress);
	sandbox_set_running(&execution->run.place, NULL);
	if (execution->run.running)
		execution->run.running->ops->free(execution->run.running);
	git_broker_free(execution->run.git_broker);
	if (execution->run.own_sandbox)
		execution->run.own_sandbox->driver->lower(execution->run.own_sandbox);
	sandboxes_leave(execution->cordon->sandboxes, &execution->run.place,
	                execution->run.outcome.sandbox_ended ? SANDBOX_ENDED : SANDBOX_STAYS);
	credentials_wipe(execution);
	leaks_free(execution);
}

/* ---- the sandbox ------------------------------------------------------------------------------------------------ */

/* For what is sent, and for the rows about hosts that are asked for. */
static int find_terms(const struct execution *execution, struct secret_terms *ret_terms, struct cordon_error *err)
{
	const struct egress_plan *plan = &execution->verdict.profile.egress;
	return plan->count && secret_guard_terms(execution->run.guard, !plan->is_offline, ret_terms) < 0 ? fail_oom(err)
	                                                                                                 : 0;
}

/* Does the request ask for walls that its session does not have for all of its commands? */
static bool asks_for_walls(const struct cordon_request *request)
{
	const struct capability_set *set = &request->granted;
	const struct strings *const lists[] = { &set->fs_read, &set->fs_write,          &set->hosts,     &set->programs,
		                                &set->devices, &set->sockets,           &set->publish,   &set->deny,
		                                &set->protect, &request->private_hosts, &request->groups };
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		if (lists[i]->count)
			return true;
	return set->network != NETWORK_NONE || set->limits.tmp_bytes || request->manifest || request->no_spawn ||
	       request->no_network || request->view_named || request->driver || request->choose_toolchains;
}

static struct sandbox_request describe_sandbox(struct execution *execution, const struct walls *walls)
{
	const struct verdict *verdict = &execution->verdict;
	const struct cordon_request *request = execution->request;
	return (struct sandbox_request){
		.session_id = verdict->session.id,
		.session_made = verdict->session.record->created ? verdict->session.record->created : "",
		.audit_id = execution->audit.id,
		.argv = &request->argv,
		.is_usual = !asks_for_walls(request),
		.hides_names = request->granted.deny.count || request->granted.protect.count,
		.is_job = request->job,
		.driver = verdict->session.driver,
		.walls = *walls,
		.config = verdict->session.config,
		.hosts = &verdict->grants.set.hosts,
		.private_hosts = &request->private_hosts,
		.publish = &verdict->grants.set.publish,
		.gate = handle_gate(execution->cordon),
		.asks = verdict->grants.host_question,
		.environment = request_environment(request),
	};
}

static struct walls walls_of(struct execution *execution)
{
	return (struct walls){
		.arena = &execution->arena, .profile = &execution->verdict.profile, .cwd_fd = execution->verdict.cwd.fd,
		.data_dir = execution->cordon->data_dir,
	};
}

int run_step_refresh(struct execution *execution, struct cordon_error *err)
{
	const struct walls walls = walls_of(execution);
	struct sandbox_request wanted = describe_sandbox(execution, &walls);
	if (leaks_begin(execution, err) < 0 || find_terms(execution, &wanted.terms, err) < 0)
		return -1;
	return sandboxes_refresh(execution->cordon->sandboxes, &wanted, err);
}

/* The session's sandbox, for a command that can be started there. */
static int enter_sandbox(struct execution *execution, const struct walls *walls, struct cordon_error *err)
{
	const struct verdict *verdict = &execution->verdict;
	const struct cordon_request *request = execution->request;
	struct sandbox_request wanted = describe_sandbox(execution, walls);
	if (verdict->session.one_off || request->fresh || execution->facts.probe || !verdict->session.driver->keeping)
		return 0;
	wanted.walls.stays = true;
	if (find_terms(execution, &wanted.terms, err) < 0)
		return -1;
	wanted.walls.mounts = kernel_mounts_version();
	return sandboxes_enter(execution->cordon->sandboxes, &wanted, &execution->run.place, err);
}

/* The session's, or one of the command's own. */
static int get_sandbox(struct execution *execution, struct sandbox **ret_sandbox, struct cordon_error *err)
{
	const struct driver *driver = execution->verdict.session.driver;
	const struct walls walls = walls_of(execution);
	if (enter_sandbox(execution, &walls, err) < 0)
		return -1;
	if (!execution->run.place.live && driver->raise(driver, &walls, &execution->run.own_sandbox, err) < 0)
		return -1;
	*ret_sandbox = execution->run.place.live ? sandbox_of(&execution->run.place) : execution->run.own_sandbox;
	driver->describe(*ret_sandbox, &execution->arena, walls.profile, execution->run.isolation);
	/* What jobs leave running the session's next command can reach. */
	if (execution->run.place.live && !execution->cordon->one_command)
		execution->run.isolation[CORDON_WALL_PROCESSES] = "pid namespace of the session";
	return 0;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static uint64_t output_limit(const struct execution *execution, int stream)
{
	const struct limits *limits = &execution->verdict.profile.limits;
	uint64_t limit = stream == CORDON_STDERR ? limits->stderr_bytes : limits->stdout_bytes;
	return limit ? limit : UINT64_MAX;
}

/* Output without a limit that is handed on as it comes is not kept, but for as much as tells why a command failed. */
static bool is_handed_on(const struct execution *execution, int stream)
{
	return (execution->request->plain || execution->request->hand_on) &&
	       output_limit(execution, stream) == UINT64_MAX;
}

static uint64_t capture_cap(const struct execution *execution, int stream)
{
	return is_handed_on(execution, stream) ? PLAIN_CAPTURE_BYTES : output_limit(execution, stream);
}

/* From the thread that asks, which may be there before the command has started. */
static void hold_input(void *arg, bool hold)
{
	struct execution *execution = arg;
	atomic_store(&execution->run.input_held, hold);
	struct running *running = atomic_load(&execution->run.holdable);
	if (running)
		running->ops->hold_input(running, hold);
}

static void set_running(struct execution *execution, struct running *running)
{
	execution->run.running = running;
	atomic_store(&execution->run.holdable, running);
	sandbox_set_running(&execution->run.place, running);
	if (atomic_load(&execution->run.input_held))
		running->ops->hold_input(running, true);
}

/* A directory that was named is the caller's own: what was in it before does not count. */
static void fill_disk(const struct execution *execution, struct command *command)
{
	const struct walk_held *held = &execution->held;
	command->disk_roots[0] = execution->verdict.session.workspace_fd;
	command->disk_roots[1] = held->home_fd;
	command->disk_roots[2] = held->tmp_fd >= 0 ? held->tmp_fd : held->scratch_fd;
	command->disk_roots[3] = held->layers_fd;
	command->disk_growth = execution->request->workspace || execution->verdict.session.record->workspace;
}

static void fill_command(struct execution *execution)
{
	const struct cordon_request *request = execution->request;
	struct command *command = &execution->run.command;
	*command = (struct command){
		.arena = &execution->arena,
		.profile = &execution->verdict.profile,
		.environment = &execution->run.environment,
		.view = execution->run.place.view,
		.cwd_fd = execution->verdict.cwd.fd,
		.program = execution->verdict.grants.program.path ? &execution->verdict.grants.program : NULL,
		.stdin_fd = request->stdin_fd,
		.tty = request->tty,
		.one_stream = request->one_stream,
		.rows = request->rows,
		.columns = request->columns,
		.umask = request->umask,
		.ulimits = &request->ulimits,
		.stdout_cap = capture_cap(execution, CORDON_STDOUT),
		.stderr_cap = capture_cap(execution, CORDON_STDERR),
		.output = request->output,
		.output_arg = request->output_arg,
		.filter = leaks_filter(execution),
		.wish = execution->verdict.session.one_off ? NULL : session_wish,
		.wish_arg = execution,
		.interrupt_fd = walk_approver(execution->cordon, request)->interrupt_fd,
		.isolation = execution->run.isolation,
		.renames = git_broker_renames(execution->run.git_broker),
	};
	fill_disk(execution, command);
}

/* ---- its network ------------------------------------------------------------------------------------------------- */

/* The network of a sandbox of the command's own, where that has listeners. */
static int begin_egress(struct execution *execution, struct cordon_error *err)
{
	const struct verdict *verdict = &execution->verdict;
	struct egress_facts facts = {
		.config = verdict->session.config,
		.plan = &verdict->profile.egress,
		.hosts = &verdict->grants.set.hosts,
		.private_hosts = &execution->request->private_hosts,
		.gate = handle_gate(execution->cordon),
		.session_id = verdict->session.id,
		.asks = verdict->grants.host_question,
		.probe = execution->facts.probe,
		.environment = request_environment(execution->request),
	};
	if (!execution->facts.probe && find_terms(execution, &facts.terms, err) < 0)
		return -1;
	return facts.plan->count && !execution->run.place.live ? egress_begin(&facts, &execution->run.egress, err) : 0;
}

/* Before anything runs: a port that is in use refuses the command. */
static int begin_publish(struct execution *execution, struct cordon_error *err)
{
	const struct verdict *verdict = &execution->verdict;
	const struct publish_facts facts = {
		.config = verdict->session.config,
		.ports = &verdict->grants.set.publish,
		.required = &execution->request->granted.publish,
		.gate = handle_gate(execution->cordon),
		.session_id = verdict->session.id,
	};
	return facts.ports->count && execution->run.own_sandbox ? publish_begin(&facts, &execution->run.publish, err)
	                                                        : 0;
}

static int join_egress(struct execution *execution, struct cordon_error *err)
{
	const struct egress_command_facts facts = {
		.question = execution->verdict.grants.host_question,
		.room = &execution->audit.network_room,
		.program = execution->request->argv.items[0],
		.audit_id = execution->audit.id,
		.address = egress_command_address(execution->audit.id),
		.hold_input = hold_input,
		.hold_input_arg = execution,
	};
	if (execution->run.place.live)
		return sandbox_join_egress(&execution->run.place, &facts, &execution->run.connections, err);
	return execution->run.egress ? egress_join(execution->run.egress, &facts, &execution->run.connections, err) : 0;
}

/* Only what has the command's environment may use a proxy that others can connect to. */
static int deliver_proxy(struct execution *execution, const struct sandbox *sandbox, struct cordon_error *err)
{
	const char *token = execution->run.connections ? egress_command_token(execution->run.connections) : NULL;
	return !token ? 0 : credentials_deliver_proxy(execution, token, sandbox->driver->loopback_port(sandbox), err);
}

/* Those of a sandbox that stays have a thread. */
static void watch(struct execution *execution, struct egress *egress)
{
	struct command *command = &execution->run.command;
	if (egress)
		command->watched[command->watched_count++] =
			(struct watched){ egress_fd(egress), egress_handle, egress };
}

/* The listeners of a sandbox of the command's own. */
static void take_listeners(struct execution *execution)
{
	struct egress *egress = execution->run.egress;
	struct sandbox *sandbox = execution->run.own_sandbox;
	if (egress)
		egress_started(egress, sandbox->driver->take_listeners(sandbox, egress_listeners(egress)) == 0);
}

static int end_egress(struct execution *execution, struct cordon_error *err)
{
	struct egress_report report = { .arena = &execution->arena, .denials = &execution->denials };
	struct egress_command *connections = execution->run.connections;
	const struct captured *said = remarks_source(execution);
	struct complaint_connection named;
	if (!connections)
		return 0;
	if (complaint_find_connection(said->data, said->length, &named)) {
		report.named_host = named.host;
		report.named_port = named.port;
	}
	int result = execution->run.egress ? egress_end(execution->run.egress, err) : 0;
	execution->run.connections = NULL;
	if (egress_leave(connections, &report, result < 0 ? NULL : err) < 0)
		result = -1;
	execution->run.network = report.counts;
	execution->run.offline_hint = report.offline_hint;
	egress_free(execution->run.egress);
	execution->run.egress = NULL;
	return result;
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

/* Where the sandbox does not answer, it is lowered, and the walk begins again, with another one. */
static int refuse_lost(struct execution *execution, struct cordon_error *err)
{
	/* Its network is freed with it. */
	leave_egress(execution);
	sandboxes_leave(execution->cordon->sandboxes, &execution->run.place, SANDBOX_LOST);
	fail(err, CORDON_E_SESSION_BUSY, 0, execution->verdict.session.id,
	     "the session's sandbox did not answer and was ended");
	return fail_boundary(err, "lifetime");
}

int run_step_start(struct execution *execution, struct cordon_error *err)
{
	const struct driver *driver = execution->verdict.session.driver;
	struct sandbox *sandbox;
	struct running *running;
	if (execution->request->ulimits.given && !driver->sets_ulimits) {
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "ulimit",
		     "this driver sets no resource limits of a command");
		fail_boundary(err, "request");
		return fail_remedy(err, "leave --ulimit out");
	}
	/* The profile's stays as step 4 decided it: a secret is put into the command's alone. */
	if (strings_add_all(&execution->arena, &execution->run.environment, &execution->verdict.profile.environment) <
	    0)
		return fail_oom(err);
	if (leaks_begin(execution, err) < 0 || get_sandbox(execution, &sandbox, err) < 0 ||
	    begin_egress(execution, err) < 0 || begin_publish(execution, err) < 0 || join_egress(execution, err) < 0 ||
	    deliver_proxy(execution, sandbox, err) < 0 ||
	    git_broker_begin(execution, &execution->run.git_broker, err) < 0)
		return -1;
	execution->run.denied_before = execution->denials.count;
	fill_command(execution);
	watch(execution, execution->run.egress);
	watch(execution, execution->run.publish ? publish_egress(execution->run.publish) : NULL);
	int started = driver->start(sandbox, &execution->run.command, &running, err);
	credentials_wipe(execution);
	if (started != 0)
		return started < 0 ? -1 : refuse_lost(execution, err);
	set_running(execution, running);
	take_listeners(execution);
	if (execution->run.publish)
		publish_started(execution->run.publish, execution->run.own_sandbox);
	return 0;
}

bool run_failed(const struct execution *execution)
{
	return execution->run.outcome.exit_code || execution->run.outcome.signal;
}

/* What became of the command, or of its session's sandbox, besides its own end. */
static int tell_lifetime(struct execution *execution)
{
	static const char *const notes[2][2] = {
		/* [init_lost][sandbox_ended] */
		{ NULL, "what the command had started could not be ended by itself, so the session's sandbox was "
		        "ended, with everything "
		        "that ran in it" },
		{ "a process of cordon's beside the command (cordon-init, cordon-starter or cordon-reaper) was killed "
		  "or stopped, so the "
		  "command was ended, with everything that it had started",
		  "a process of cordon's beside the command (cordon-init, cordon-starter or cordon-reaper) was killed "
		  "or stopped, so the "
		  "session's sandbox was ended, with everything that ran in it" },
	};
	const struct outcome *outcome = &execution->run.outcome;
	const char *note = notes[outcome->init_lost][outcome->sandbox_ended];
	const char *what =
		execution->verdict.session.one_off ? execution->request->argv.items[0] : execution->verdict.session.id;
	return note ? denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIFETIME, what, note, "") : 0;
}

static int tell_sandbox_lost(struct execution *execution)
{
	return denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIFETIME, execution->verdict.session.id,
	                   "the session's sandbox had ended or did not answer, and this command ran in a new one: "
	                   "files are as they "
	                   "were, but what ran before and /dev/shm are gone",
	                   "");
}

/* Jobs that run on without what the commands to come have, or that had to end. */
static int tell_others(struct execution *execution)
{
	const struct sandbox_place *place = &execution->run.place;
	const char *left = !place->left ? ""
	                                : arena_printf(&execution->arena,
	                                               "from this command on the session's network is %s; what had "
	                                               "begun keeps its own, and its ports do not answer here: %s",
	                                               place->in_host_network ? "the host's" : "no longer the host's",
	                                               place->left);
	const char *ended = !place->ended ? ""
	                                  : arena_printf(&execution->arena,
	                                                 "the session's walls have changed, and its sandbox could not "
	                                                 "be changed while it was up: it was ended, and with it what "
	                                                 "ran there: %s",
	                                                 place->ended);
	if (!left || !ended)
		return -1;
	if (*left && denials_add(&execution->denials, &execution->arena, CORDON_WALL_NETWORK,
	                         execution->verdict.session.id, left, "") < 0)
		return -1;
	return !*ended ? 0
	               : denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIFETIME,
	                             execution->verdict.session.id, ended, "");
}

int run_step_finish(struct execution *execution, struct cordon_error *err)
{
	struct outcome *outcome = &execution->run.outcome;
	int status = execution->run.running->ops->end(execution->run.running, outcome, err);
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
		outcome->streams[stream].truncated &= !is_handed_on(execution, stream);
	bool told = leaks_end(execution) == 0;
	execution->run.ended = status == 0;
	/* That nothing ran is the first thing to tell. */
	struct cordon_error *untold = status < 0 ? NULL : err;
	publish_free(execution->run.publish);
	execution->run.publish = NULL;
	if (end_egress(execution, untold) < 0 || limits_end(execution, untold) < 0)
		status = -1;
	if (tell_lifetime(execution) < 0 ||
	    (execution->run.place.follows_lost && tell_sandbox_lost(execution) < 0) || tell_others(execution) < 0)
		status = fail_oom(untold);
	if (status == 0 && (run_failed(execution) ? remarks_add(execution) : remarks_add_success(execution)) < 0)
		status = fail_oom(untold);
	if (status == 0 && execution->verdict.profile.walls & WALL_BIT(MASKED) &&
	    trees_keep_shown(execution->trees) < 0)
		status = fail_oom(untold);
	/* Whatever has failed: what was left is there. */
	bool judged = !(execution->verdict.profile.walls & WALL_BIT(PROTECTED)) || trees_judge(execution->trees) == 0;
	told &= leaks_clean_denials(execution) == 0;
	return status < 0 || (judged && told) ? status : fail_oom(err);
}

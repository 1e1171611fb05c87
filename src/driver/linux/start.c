/* Raising, starting and lowering, for all drivers of Linux. Walls for one command are raised together with it: the
 * namespaces are made while its process seals itself, by one clone, so raise() makes the plan and start() carries it
 * out. A session's sandbox is raised at once, and start() sends orders to its starter (shared.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/linux/control.h"
#include "driver/linux/pidfd.h"
#include "driver/linux/processes.h"
#include "driver/linux/running.h"
#include "profile/seccomp.h"

static struct linux_sandbox *of(struct sandbox *sandbox)
{
	return (struct linux_sandbox *)sandbox;
}

/* ---- raising --------------------------------------------------------------------------------------------------- */

int linux_raise(const struct driver *driver, const struct walls *walls, struct sandbox **ret_sandbox,
                struct cordon_error *err)
{
	struct linux_sandbox *sandbox = calloc(1, sizeof(*sandbox));
	if (!sandbox)
		return fail_oom(err);
	*sandbox = (struct linux_sandbox){
		.sandbox = { driver },
		.launch = { .report_fd = -1, .ready_fd = -1, .go_fd = -1 },
		.facts = { .cwd_fd = walls->cwd_fd,
		           .caller_is_root = geteuid() == 0,
		           .uid = geteuid(),
		           .gid = getegid(),
		           .landlock_abi = driver_landlock_abi(),
		           .data_dir = walls->data_dir },
	};
	int result = launch_check(err);
	if (result == 0)
		result = walls->stays ? shared_new(sandbox, walls, err) :
		                        linux_driver(driver)->prepare(walls->arena, walls->profile, &sandbox->facts,
		                                                      &sandbox->launch, &sandbox->held, err);
	if (result < 0)
		linux_lower(&sandbox->sandbox);
	else
		*ret_sandbox = &sandbox->sandbox;
	return result;
}

void linux_describe(const struct sandbox *sandbox, struct arena *arena, const struct profile *profile,
                    const char *isolation[CORDON_WALL_MAX])
{
	const struct linux_sandbox *ours = (const struct linux_sandbox *)sandbox;
	linux_driver(sandbox->driver)->describe(arena, profile, &ours->facts, &ours->launch, isolation);
}

int linux_take_listeners(struct sandbox *sandbox, int *ret_fds)
{
	struct linux_sandbox *ours = of(sandbox);
	if (ours->shared)
		return shared_take_listeners(ours->shared, ret_fds);
	if (!ours->running || ours->running->launch.cut_short)
		return -1;
	return supervise_receive_listeners(ours->running->supervision.control_fd, ret_fds,
	                                   ours->running->launch.listener_count, NULL);
}

int linux_network(const struct sandbox *sandbox, int *ret_user, int *ret_network)
{
	const struct linux_sandbox *ours = (const struct linux_sandbox *)sandbox;
	if (ours->shared)
		return shared_network(ours->shared, ret_user, ret_network);
	return !ours->running ? -ESRCH : pidfd_network(ours->running->supervision.pidfd, ret_user, ret_network);
}

void linux_lower(struct sandbox *sandbox)
{
	struct linux_sandbox *ours = of(sandbox);
	driver_release(&ours->held);
	shared_free(ours->shared);
	cleanup_close(&ours->launch.report_fd);
	cleanup_close(&ours->launch.ready_fd);
	cleanup_close(&ours->launch.go_fd);
	free(ours);
}

/* ---- starting -------------------------------------------------------------------------------------------------- */

/* A process that is neither pid 1 nor alone in a Landlock domain ends by their numbers what the command has left. */
static int check_numbers(const struct launch *launch, struct cordon_error *err)
{
	if (*launch->init_mode != *INIT_SUBREAPER || processes_have_our_numbers())
		return 0;
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "/proc",
	     "it is of another pid namespace: what a command leaves running could not be ended, and others could be "
	     "instead");
	fail_boundary(err, "lifetime");
	return fail_remedy(err, "mount a /proc of this namespace, or choose --driver namespaces");
}

/* For the starter of a session's sandbox, which has raised the walls. */
static void plan_order(struct linux_running *running)
{
	const struct profile *profile = running->command->profile;
	struct launch *launch = &running->launch;
	driver_set_common(profile, launch);
	launch->init_mode = INIT_REAPER;
	launch->narrow = profile->seccomp & SECCOMP_NO_SPAWN;
	launch->helpers = shared_helpers(running->sandbox->shared);
	launch->become = running->sandbox->launch.become;
	launch->seal.landlock_abi = running->sandbox->launch.seal.landlock_abi;
}

static int plan(struct linux_running *running, struct cordon_error *err)
{
	const struct command *command = running->command;
	struct launch *launch = &running->launch;
	if (running->sandbox->shared)
		plan_order(running);
	else
		*launch = running->sandbox->launch;
	launch->rows = command->rows;
	launch->columns = command->columns;
	launch->umask = command->umask;
	launch->environment = command->environment->items;
	launch->tells_renames = command->renames;
	/* What is judged by its file must be that file inside, too. */
	if (command->program && launch->candidates == command->profile->candidates.items) {
		launch->program_judged = true;
		launch->program_device = command->program->device;
		launch->program_inode = command->program->inode;
	}
	launch->init_fd = launch_init_fd(err);
	if (launch->init_fd < 0 || check_numbers(launch, err) < 0)
		return -1;
#ifdef CORDON_UNWALL
	if (!(command->profile->walls & WALL_BIT(LIFETIME)) && !running->sandbox->shared)
		launch->init_mode = *launch->init_mode == *INIT_PID_NAMESPACE ? INIT_PID_NAMESPACE INIT_CARELESS
		                                                              : INIT_SUBREAPER INIT_CARELESS;
#endif
	return 0;
}

/* The pipes and their readers. */
static int prepare(struct linux_running *running, struct cordon_error *err)
{
	const struct command *command = running->command;
	const struct supervise_options options = {
		.stdin_fd = command->stdin_fd,
		.tty = command->tty,
		.one_stream = command->one_stream,
		.wall_ms = command->profile->limits.wall_ms,
		.stdout_cap = command->stdout_cap,
		.stderr_cap = command->stderr_cap,
		.output = command->output,
		.output_arg = command->output_arg,
		.filter = command->filter,
		.group = &running->group,
		.sandbox = running->sandbox->shared ? shared_up(running->sandbox->shared) : NULL,
		.disk = command->profile->walls & WALL_BIT(LIMIT_DISK) ? &running->disk : NULL,
		.memory = &running->memory,
		.renames = command->renames ? &running->renames : NULL,
		.watched = command->watched,
		.watched_count = command->watched_count,
		.wish = command->wish,
		.wish_arg = command->wish_arg,
	};
	running->prepared = true;
	if (supervise_prepare(&running->supervision, &options, &running->launch, err) < 0)
		return -1;
	running->patience = (struct patience){ running->supervision.deadline_us, command->interrupt_fd };
	running->launch.patience = &running->patience;
	return 0;
}

static int carry_out(struct linux_running *running, struct cordon_error *err)
{
	const struct linux_driver *driver = linux_driver(running->sandbox->sandbox.driver);
	struct launch *launch = &running->launch;
	int started = running->sandbox->shared ? shared_start(shared_view_of(running->command->view), launch, err)
	                                       : launch_start(launch, err);
	if (started != 0)
		return started;
	/* Commands of a sandbox that stays start beside each other: they change nothing of it. */
	if (!running->sandbox->shared)
		driver_release(&running->sandbox->held);
	linux_limits_started(running);
	/* In any case, what has started is supervised from here on. */
	int entered = driver->enter && !launch->cut_short ? driver->enter(launch, err) : 0;
	if (supervise_begin(&running->supervision, launch, entered < 0 ? NULL : err) < 0 || entered < 0) {
		err->retriable = false;
		return -1;
	}
	return 0;
}

int linux_start(struct sandbox *sandbox, const struct command *command, struct running **ret_running,
                struct cordon_error *err)
{
	struct linux_running *running = calloc(1, sizeof(*running));
	if (!running)
		return fail_oom(err);
	*running = (struct linux_running){ .running = { .ops = &linux_running_ops },
		                           .sandbox = of(sandbox),
		                           .command = command,
		                           .renames = { -1, command->renames } };
	int result = driver_require_limits(sandbox->driver, command->profile, err);
	if (result == 0)
		result = plan(running, err);
	if (result == 0)
		result = linux_limits_begin(running, err);
	if (result == 0)
		result = linux_limits_require(running, err);
	if (result == 0)
		result = driver_require(sandbox->driver, command->isolation, err);
	if (result == 0)
		result = prepare(running, err);
	if (result == 0)
		result = carry_out(running, err);
	if (result != 0) {
		linux_running_ops.free(&running->running);
		return result;
	}
	if (!of(sandbox)->shared)
		of(sandbox)->running = running;
	*ret_running = &running->running;
	return 0;
}

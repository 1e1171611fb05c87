/* Step 5: the driver prepares, the launch raises the walls and starts the command, the supervision follows it to its
 * end, and what it left behind under a protected name is judged. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/remove.h"
#include "base/text.h"
#include "execute.h"
#include "run/control.h"

/* A weaker tier runs only where it was named: here, a driver other than the default one was. */
static int require_walls(const struct execution *execution, struct cordon_error *err)
{
	const struct driver *driver = execution->profile.driver;
	const char *const *isolation = execution->run.isolation;
	static const enum cordon_wall optional[] = { CORDON_WALL_FILESYSTEM_SECOND, CORDON_WALL_LIMIT_PROCESSES };
	if (strcmp(driver->name, DRIVER_DEFAULT))
		return 0;
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++) {
		bool may_miss = false;
		for (size_t i = 0; i < ARRAY_SIZE(optional); i++)
			may_miss |= optional[i] == (enum cordon_wall)wall;
		if (isolation[wall] && !strcmp(isolation[wall], "none") && !may_miss) {
			fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, cordon_wall_name(wall), "this wall cannot be raised here");
			fail_boundary(err, cordon_wall_name(wall));
			return fail_remedy(err, "run `cordon doctor`");
		}
	}
	return 0;
}

int run_step_start(struct execution *execution, struct cordon_error *err)
{
	assert(execution->done == CORDON_STEP_PROFILE);
	const struct cordon_request *request = execution->request;
	const struct profile *profile = &execution->profile.profile;
	const struct driver *driver = execution->profile.driver;
	struct launch *launch = &execution->run.launch;
	struct supervision *supervision = &execution->run.supervision;
	const struct supervise_options options = {
		.stdin_fd = request->stdin_fd, .tty = request->tty, .wall_ms = profile->limits.wall_ms,
		.stdout_cap = profile->limits.stdout_bytes, .stderr_cap = profile->limits.stderr_bytes,
		.output = request->output, .output_arg = request->output_arg,
	};
	int init = launch_init_fd(err);
	if (init < 0 || driver->prepare(&execution->arena, profile, &execution->profile.facts, launch, &execution->run.held, err) < 0)
		return -1;
	launch->init_fd = init;
	launch->rows = request->rows;
	launch->columns = request->columns;
#ifdef CORDON_UNWALL
	if (!(profile->walls & WALL_BIT(LIFETIME)))
		launch->init_mode = *launch->init_mode == *INIT_SUBREAPER ? INIT_SUBREAPER INIT_CARELESS
		                                                          : INIT_PID_NAMESPACE INIT_CARELESS;
#endif
	driver->describe(&execution->arena, profile, &execution->profile.facts, launch, execution->run.isolation);
	if (require_walls(execution, err) < 0)
		return -1;
	execution->run.prepared = true;
	if (supervise_prepare(supervision, &options, launch, err) < 0 || launch_start(launch, err) < 0)
		return -1;
	driver_release(&execution->run.held);
	if (supervise_begin(supervision, launch, err) < 0)
		return -1;
	execution->run.started = true;
	execution->done = CORDON_STEP_RUN;
	return 0;
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

static int add_denial(struct execution *execution, struct cordon_denial denial)
{
	struct cordon_denial *grown = arena_alloc(&execution->arena, (execution->run.denial_count + 1) * sizeof(*grown));
	if (!grown || !denial.what)
		return -1;
	if (execution->run.denial_count)
		memcpy(grown, execution->run.denials, execution->run.denial_count * sizeof(*grown));
	grown[execution->run.denial_count++] = denial;
	execution->run.denials = grown;
	return 0;
}

static int open_quarantine(const struct execution *execution)
{
	char path[4096];
	if (snprintf(path, sizeof(path), "%s/quarantine", execution->cordon->data_dir) >= (int)sizeof(path) - ID_SIZE)
		return -1;
	mkdir(path, 0700);
	strcat(path, "/");
	strcat(path, execution->audit.id);
	mkdir(path, 0700);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* Looks again for names, and judges what is new under a protected one. */
static int judge_tree(struct execution *execution, struct looked_at *tree, struct cordon_error *err)
{
	const struct name_rules rules = { &execution->capability.set.deny, &execution->capability.set.protect };
	struct names after;
	int rounds = 0;
	do
		if (names_find(&execution->arena, tree->fd, tree->place.path, &rules, execution->profile.cache_fd, 800, &after,
		               err) < 0)
			return -1;
	while (rounds++ < 8 && planted_unlock(tree->fd, &tree->before, &after));
	/* Where mounts keep what was there before, only what is new can have been planted. */
	bool fresh = !execution->profile.driver->private_root;
	for (size_t i = 0; i < after.count && !fresh; i++)
		fresh = after.items[i].kind == NAME_PROTECTED && !names_get(&tree->before, NAME_PROTECTED, after.items[i].path);
	if (!fresh)
		return 0;
	struct planted planted = { 0 };
	if (planted_check(&execution->arena, tree->fd, &tree->planted, &after, -1, &planted, err) < 0)
		return -1;
	if (!planted.count)
		return 0;
	auto_close int quarantine = open_quarantine(execution);
	if (planted_check(&execution->arena, tree->fd, &tree->planted, &after, quarantine, &planted, err) < 0)
		return -1;
	for (size_t i = 0; i < planted.count; i++) {
		const struct planted_file *file = &planted.items[i];
		struct cordon_denial denial = {
			.what = arena_printf(&execution->arena, "%s/%s", tree->place.path, file->path),
			.wall = cordon_wall_name(CORDON_WALL_PROTECTED), .note = file->note, .grant = "",
		};
		if (add_denial(execution, denial) < 0)
			return fail_oom(err);
	}
	return 0;
}

void run_step_clean(struct execution *execution)
{
	if (execution->session.scratch && !execution->dry)
		remove_tree(AT_FDCWD, execution->session.scratch);
}

int run_step_finish(struct execution *execution, struct cordon_error *err)
{
	assert(execution->done == CORDON_STEP_RUN);
	struct supervision *supervision = &execution->run.supervision;
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
		capture_finish(&supervision->captures[stream], &execution->run.streams[stream]);
	bool judged = execution->profile.profile.walls & WALL_BIT(PROTECTED);
	for (size_t i = 0; judged && i < execution->profile.tree_count; i++)
		if (execution->profile.trees[i].writable && judge_tree(execution, &execution->profile.trees[i], err) < 0)
			return -1;
	return 0;
}

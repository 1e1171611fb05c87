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
#include "permit.h"
#include "run/control.h"
#include "warm.h"

/* How long rechecking the names in a tree may take when a command has ended; what is left over is said. With the check
 * before it, this is what a large tree costs, and that is to be less than 2 ms. */
#define NAMES_AFTER_BUDGET_US 900
#define UNLOCK_ROUNDS_MAX 8

#define DENIALS_MAX 256
#define DENIAL_WHAT_MAX 4096
#define DENIAL_NOTE_MAX 256

/* A weaker tier runs only where it was named: here, a driver other than the default one was. */
static int require_walls(const struct execution *execution, struct cordon_error *err)
{
	const struct driver *driver = execution->session.driver;
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
	if (!execution->capability.program.path || launch->candidates != execution->profile.profile.candidates.items)
		return;
	launch->program_judged = true;
	launch->program_device = execution->capability.program.device;
	launch->program_inode = execution->capability.program.inode;
}

/* From nothing: the walls are raised for this command. */
static int prepare(struct execution *execution, struct cordon_error *err)
{
	const struct profile *profile = &execution->profile.profile;
	const struct driver *driver = execution->session.driver;
	struct launch *launch = &execution->run.launch;
	const struct driver_facts *facts = &execution->profile.facts;
	if (driver->prepare(&execution->arena, profile, facts, launch, &execution->run.held, err) < 0)
		return -1;
	launch->init_fd = launch_init_fd(err);
	if (launch->init_fd < 0 || limits_begin(execution, err) < 0)
		return -1;
	launch->awaited = execution->only;
	launch->rows = execution->request->rows;
	launch->columns = execution->request->columns;
#ifdef CORDON_UNWALL
	if (!(profile->walls & WALL_BIT(LIFETIME)))
		launch->init_mode = *launch->init_mode == *INIT_SUBREAPER ? INIT_SUBREAPER INIT_CARELESS
		                                                          : INIT_PID_NAMESPACE INIT_CARELESS;
#endif
	driver->describe(&execution->arena, profile, facts, launch, execution->run.isolation);
	return 0;
}

/* Walls that are up already, or such as will stay, or the driver's. */
static int find_walls(struct execution *execution, struct cordon_error *err)
{
	if (warm_take(execution)) {
		driver_set_common(&execution->profile.profile, &execution->run.launch);
		limits_adopt(execution);
	} else {
		warm_unreserve(execution);
		if (prepare(execution, err) < 0)
			return -1;
	}
	judge_program(execution);
	limits_describe(execution);
	return require_walls(execution, err);
}

/* Nothing ran: the next attempt has another place, or none. */
static int fail_gone(struct cordon_error *err)
{
	return fail(err, CORDON_E_SESSION_BUSY, 0, "slot", "the walls that were kept for the session are gone");
}

static int start_program(struct execution *execution, struct cordon_error *err)
{
	if (!execution->run.in_slot)
		return launch_start(&execution->run.launch, err);
	if (execution->run.in_shell)
		return slot_run_line(execution->run.supervision.control_fd, err);
	if (slot_go(&execution->run.slot, execution->run.supervision.control_fd, &execution->run.patience, err) < 0)
		return -1;
	/* What is left to do here keeps this processor busy while its init, woken by the program, lets it go on the other one. */
	if (execution->run.slot.held)
		slot_is_program(&execution->run.slot, true);
	return 0;
}

/* In a slot that takes a while, in which everything else was done. */
static int await_program(struct execution *execution, struct cordon_error *err)
{
	struct supervision *supervision = &execution->run.supervision;
	if (!execution->run.in_slot)
		return 0;
	int there = execution->run.in_shell ? 0 : slot_await_program(&execution->run.slot, &execution->run.patience, err);
	if (there > 0)
		supervise_cut_short(supervision, execution->run.slot.held);
	/* Nobody is at the other end any more. */
	if (there == 0)
		slot_end(&execution->run.slot);
	return there < 0 ? -1 : 0;
}

/* All that comes before something runs: the walls, the pipes, and the orders for a place in a slot. */
static int get_ready(struct execution *execution, struct cordon_error *err)
{
	const struct cordon_request *request = execution->request;
	const struct profile *profile = &execution->profile.profile;
	struct launch *launch = &execution->run.launch;
	struct supervision *supervision = &execution->run.supervision;
	struct supervise_options options = {
		.stdin_fd = request->stdin_fd, .tty = request->tty, .wall_ms = profile->limits.wall_ms,
		.stdout_cap = profile->limits.stdout_bytes, .stderr_cap = profile->limits.stderr_bytes,
		.output = request->output, .output_arg = request->output_arg, .group = &execution->run.group,
		.disk = profile->walls & WALL_BIT(LIMIT_DISK) ? &execution->run.disk : NULL,
		.wish = execution->session.one_off ? NULL : session_wish, .wish_arg = execution,
	};
	if (egress_begin(execution, err) < 0 || find_walls(execution, err) < 0)
		return -1;
	run_step_await_expected(execution);
	bool waited = execution->run.in_slot;
	if (!waited && warm_make(execution, err) < 0)
		return -1;
	if (!waited && execution->run.in_slot)
		limits_started(execution);
	options.control_fd = execution->run.in_slot ? take_fd(&execution->run.slot.control_fd) : -1;
	int shell_fd[3];
	for (int i = 0; i < 3; i++)
		shell_fd[i] = take_fd(&execution->run.stdio_fd[i]);
	options.stdio_fd = execution->run.in_shell || execution->run.guess ? shell_fd : NULL;
	bool begun = execution->run.prepared;
	execution->run.prepared = true;
	if (begun)
		supervise_settle(supervision, &options);
	else if (supervise_prepare(supervision, &options, launch, err) < 0)
		return -1;
	if (!execution->run.in_slot)
		return 0;
	supervision->pidfd = take_fd(&execution->run.slot.pidfd);
	supervision->in_slot = true;
	for (int i = 0; execution->run.guess && i < 3; i++)
		supervision->child_fd[i] = take_fd(&execution->run.guess->theirs[i]);
	return !options.stdio_fd && slot_order(&execution->run.slot, launch, err) < 0 ? fail_gone(err) : 0;
}

void run_step_ready(struct execution *execution)
{
	assert(execution->done == CORDON_STEP_PROFILE);
	if ((execution->run.reserved && !execution->run.guess) || execution->profile.profile.egress.count || !warm_expects(execution))
		return;
	execution->run.readied = true;
	execution->run.unready = get_ready(execution, &execution->run.not_ready) < 0;
}

int run_step_start(struct execution *execution, struct cordon_error *err)
{
	assert(execution->done == CORDON_STEP_PROFILE);
	const struct driver *driver = execution->session.driver;
	struct launch *launch = &execution->run.launch;
	struct supervision *supervision = &execution->run.supervision;
	if (execution->run.unready) {
		*err = execution->run.not_ready;
		return -1;
	}
	if (!execution->run.readied && get_ready(execution, err) < 0)
		return -1;
	supervise_begin_time(supervision);
	execution->run.patience = (struct patience){ supervision->deadline_us, permit_approver(execution)->interrupt_fd };
	launch->patience = &execution->run.patience;
	if (start_program(execution, err) < 0)
		return execution->run.slot.held ? warm_not_held(execution, err) : -1;
	driver_release(&execution->run.held);
	if (!execution->run.in_slot)
		limits_started(execution);
	/* Whatever becomes of it, what has started is supervised from here on. */
	int entered = driver->enter && !launch->cut_short ? driver->enter(launch, err) : 0;
	if (supervise_begin(supervision, launch, entered < 0 ? NULL : err) < 0 || entered < 0)
		return -1;
	if (await_program(execution, err) < 0)
		return execution->run.slot.held ? warm_not_held(execution, err) : -1;
	if (!launch->cut_short)
		egress_started(execution);
	execution->run.started = true;
	execution->done = CORDON_STEP_RUN;
	return 0;
}

int run_step_warm(struct execution *execution, struct cordon_error *err)
{
	assert(execution->done == CORDON_STEP_PROFILE);
	if (warm_expects(execution))
		return 0;
	if (prepare(execution, err) < 0)
		return -1;
	limits_describe(execution);
	return require_walls(execution, err) < 0 ? -1 : warm_raise(execution, err);
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

/* Past a number of denials, the last one only counts. */
int run_add_denial(struct execution *execution, enum cordon_wall wall, const char *what, const char *note,
                   const char *grant)
{
	size_t *count = &execution->run.denial_count;
	bool last = *count >= DENIALS_MAX - 1;
	if (!execution->run.denials)
		execution->run.denials = arena_alloc(&execution->arena, DENIALS_MAX * sizeof(*execution->run.denials));
	if (!execution->run.denials)
		return -1;
	struct cordon_denial *denial = &execution->run.denials[last ? DENIALS_MAX - 1 : *count];
	*denial = (struct cordon_denial){ .wall = cordon_wall_name(wall) };
	denial->what = last ? "and more" : arena_printf(&execution->arena, "%.*s", DENIAL_WHAT_MAX, what);
	denial->note = last ? execution->run.more_denials : arena_printf(&execution->arena, "%.*s", DENIAL_NOTE_MAX, note);
	denial->grant = last ? "" : arena_printf(&execution->arena, "%.*s", DENIAL_NOTE_MAX, grant);
	if (last)
		snprintf(execution->run.more_denials, sizeof(execution->run.more_denials), "%zu that are not listed",
		         ++execution->run.denials_unlisted);
	*count = last ? DENIALS_MAX : *count + 1;
	return denial->what && denial->note && denial->grant ? 0 : -1;
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

struct names_keep run_names_keep(struct execution *execution)
{
	bool once = execution->session.one_off && !execution->request->workspace;
	return (struct names_keep){ &execution->profile.names, once ? NULL : execution->cordon->names, execution->mounts };
}

/* Was it, or what it lies in, masked before? Then it was covered, and the command had no way to it. */
static bool was_masked(struct arena *arena, const struct names *before, const char *path)
{
	char *part = arena_strdup(arena, path);
	for (char *end = part; end; end = strrchr(part, '/')) {
		if (end != part)
			*end = '\0';
		if (names_get(before, NAME_MASKED, part))
			return true;
	}
	return false;
}

/* What is masked is not judged, and a command may make what a glob would have masked: then protected names are looked for
 * without the masks. */
static int look_behind_masks(struct execution *execution, struct arena *arena, const struct looked_at *tree,
                             struct names *after, struct cordon_error *err)
{
	const struct names_search search = { .budget_us = UINT64_MAX };
	struct names all;
	bool fresh = false;
	for (size_t i = 0; i < after->count && after->items[i].kind == NAME_MASKED && !fresh; i++)
		fresh = !was_masked(arena, &tree->before, after->items[i].path);
	if (!fresh)
		return 0;
	if (tree_names_find(execution, arena, tree, &search, &all, err) < 0)
		return -1;
	size_t kept = 0;
	for (size_t i = 0; i < all.count; i++)
		if (!was_masked(arena, &tree->before, all.items[i].path))
			all.items[kept++] = all.items[i];
	all.count = kept;
	*after = all;
	return 0;
}

/* Looks again for names, and judges what is new or changed under a protected one. What that takes is the arena's, which
 * is not the request's: a command may have left a great deal. */
static int judge_names(struct execution *execution, struct arena *arena, const struct looked_at *tree,
                       struct planted *ret_planted, struct cordon_error *err)
{
	struct names_search search = { true, run_names_keep(execution), NAMES_AFTER_BUDGET_US };
	struct names after;
	int rounds = 0;
	do {
		arena_free(arena);
		search.keep.mounts = execute_hear(execution->cordon, true);
		if (tree_names_find(execution, arena, tree, &search, &after, err) < 0)
			return -1;
	} while (rounds++ < UNLOCK_ROUNDS_MAX && planted_unlock(tree->fd, &tree->before, &after));
	if (after.note && run_add_denial(execution, CORDON_WALL_PROTECTED, tree->place.path, after.note, "") < 0)
		return fail_oom(err);
	if (look_behind_masks(execution, arena, tree, &after, err) < 0 ||
	    planted_check(arena, tree->fd, &tree->planted, &after, -1, ret_planted, err) < 0)
		return -1;
	if (!ret_planted->harmful)
		return 0;
	auto_close int quarantine = open_quarantine(execution);
	return planted_check(arena, tree->fd, &tree->planted, &after, quarantine, ret_planted, err);
}

/* What is harmful comes first, lest it be left out. */
static int report_planted(struct execution *execution, const struct looked_at *tree, const struct planted *planted)
{
	for (int harmful = 1; harmful >= 0; harmful--)
		for (size_t i = 0; i < planted->count; i++) {
			char what[DENIAL_WHAT_MAX + 1];
			if (planted->items[i].harmful != harmful)
				continue;
			snprintf(what, sizeof(what), "%s/%s", tree->place.path, planted->items[i].path);
			if (run_add_denial(execution, CORDON_WALL_PROTECTED, what, planted->items[i].note, "") < 0)
				return -1;
		}
	return 0;
}

static int judge_tree(struct execution *execution, const struct looked_at *tree, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct planted planted = { 0 };
	int status = judge_names(execution, &arena, tree, &planted, err);
	if (status == 0 && report_planted(execution, tree, &planted) < 0)
		status = fail_oom(err);
	arena_free(&arena);
	return status;
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
	if (execution->only)
		supervise_dismiss(supervision);
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
		capture_finish(&supervision->captures[stream], &execution->run.streams[stream]);
	if (egress_end(execution, err) < 0 || limits_end(execution, err) < 0)
		return -1;
	const struct driver *driver = execution->session.driver;
	if (driver->conclude && driver->conclude(&execution->run.launch, supervision->status,
	                                         execution->run.streams[CORDON_STDERR].data, err) < 0)
		return -1;
	bool judged = execution->profile.profile.walls & WALL_BIT(PROTECTED);
	for (size_t i = 0; judged && i < execution->profile.tree_count; i++)
		if (execution->profile.trees[i].writable && judge_tree(execution, &execution->profile.trees[i], err) < 0)
			return -1;
	return 0;
}

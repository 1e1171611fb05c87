/* Step 1: which session, under which policy, in which workspace, with which home. A request that names no session, where
 * none is current, is a one-off: a session of one command that leaves no record. A workspace of cordon's own making is
 * also the home, and is removed with a one-off; where the caller named a directory, the home is the session's own private one,
 * or in memory for a one-off, so that caches and history never litter a project. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "approval/gate.h"
#include "audit/ledger.h"
#include "base/remove.h"
#include "base/text.h"
#include "execute.h"
#include "session/current.h"
#include "session/session-row.h"
#include "host/git-tree.h"
#include "session/workspace.h"

#define HOME_INSIDE "/home/cordon"
/* All of the host's tree is shown read-only there, so a home can only be where memory is mounted anyway. */
#define HOME_IN_WHOLE_VIEW "/tmp/home"

/* ---- the policy ------------------------------------------------------------------------------------------------- */

/* Twice: before the workspace is known, for where that is, keeping nothing, since nothing may be made where the sandbox
 * is switched off; and with it, for what the project's own file narrows. */
static int take_config(struct execution *execution, enum config_keeping keeping, struct cordon_error *err)
{
	const struct config *config;
	const char *session = execution->session.one_off ? NULL : execution->session.id;
	int taken = execution->probe ? config_builtin(&config, err)
	                             : config_store_take(execution->cordon->config, session, execution->session.workspace_fd,
	                                                 execution->session.workspace.path, keeping, execution->mounts,
	                                                 &config, err);
	if (taken < 0)
		return -1;
	config_unref(execution->session.config);
	execution->session.config = config;
	if (config->note && !(execution->session.note = arena_strdup(&execution->arena, config->note)))
		return fail_oom(err);
	if (config->enabled) {
		ledger_set_sync(execution->cordon->ledger, config->sync_disk);
		return 0;
	}
	fail(err, CORDON_E_SANDBOX_DISABLED, 0, "sandbox.enabled", "the sandbox is switched off, so nothing runs");
	return fail_remedy(err, "set sandbox.enabled = true in the configuration");
}

/* A job's caller has gone by the time there is a result to read. */
static enum config_keeping keeping(const struct execution *execution)
{
	if (execution->dry)
		return CONFIG_KEEP_NOTHING;
	return execution->request->job ? CONFIG_KEEP_UNSAID : CONFIG_KEEP;
}

static enum view configured_view(const struct config *config)
{
	for (int view = 0; config->view && view < VIEW_MAX; view++)
		if (!strcmp(config->view, view_names[view]))
			return view;
	return VIEW_SYSTEM;
}

/* The walls of a session are the configuration's: its commands may choose stronger ones, never weaker ones. The
 * setting that would, or NULL. */
static const char *weakens(const struct cordon_request *request, const struct config *config, const char *driver)
{
	static const int width[VIEW_MAX] = { [VIEW_BARE] = 0, [VIEW_SYSTEM] = 1, [VIEW_HOST_READONLY] = 2 };
	enum view view = configured_view(config);
	if (request->driver && strcmp(request->driver, driver) && strcmp(request->driver, DRIVER_DEFAULT))
		return "driver";
	if (request->view_named && width[request->view] > width[view])
		return "view";
	for (size_t i = 0; i < request->toolchains.count; i++) {
		bool listed = strings_find(&config->toolchains, request->toolchains.items[i]) >= 0;
		if (config->choose_toolchains ? !listed : view == VIEW_BARE)
			return "toolchain";
	}
	return NULL;
}

/* All of the host's tree is in that view, and only cordon's own data is covered there. */
static int hide_others(const struct execution *execution, struct cordon_error *err)
{
	const char *const roots[] = { execution->session.config->workspace_root, execution->session.record.own_root };
	for (size_t i = 0; execution->session.view == VIEW_HOST_READONLY && i < ARRAY_SIZE(roots); i++) {
		if (!roots[i] || path_within(roots[i], execution->cordon->data_dir))
			continue;
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, roots[i],
		     "in a view of the whole host the workspaces of other sessions cannot be hidden there");
		fail_boundary(err, "filesystem");
		return fail_remedy(err, "choose another view, or leave sandbox.workspace_root where it is by default");
	}
	return 0;
}

static int choose_driver(struct execution *execution, struct cordon_error *err)
{
	const struct cordon_request *request = execution->request;
	const struct config *config = execution->session.config;
	/* A weaker tier runs only where the configuration names it. */
	const char *name = config->driver ? config->driver : config->degrade ? "auto" : DRIVER_DEFAULT;
	const char *weak = execution->session.one_off ? NULL : weakens(request, config, name);
	if (weak) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, weak,
		     "a command of a session cannot have weaker walls than the configuration gives it");
		fail_boundary(err, "policy");
		return fail_remedy(err, "leave it out, or set sandbox.%s in the configuration",
		                   strcmp(weak, "toolchain") ? weak : "toolchains");
	}
	execution->session.view = request->view_named ? request->view : configured_view(config);
	if (hide_others(execution, err) < 0)
		return -1;
	return probe_driver(execution->cordon, request->driver ? request->driver : name, execution->dry,
	                    &execution->session.driver, err);
}

/* ---- the session ------------------------------------------------------------------------------------------------ */

static int check_state(const struct session_record *record, struct cordon_error *err)
{
	const char *why = record->why ? record->why : "";
	if (record->state == SESSION_PAUSED) {
		fail(err, CORDON_E_SESSION_PAUSED, 0, record->id, "the session is paused%s%s", *why ? ": " : "", why);
		return fail_remedy(err, "look at what it did (cordon audit query --session ID), then: cordon session resume ID");
	}
	if (record->state == SESSION_ENDED) {
		fail(err, CORDON_E_SESSION_ENDED, 0, record->id, "the session has ended%s%s", *why ? ": " : "", why);
		return fail_remedy(err, "use another id, or remove this one first: cordon session rm ID");
	}
	return 0;
}

/* The directory this request names, or the one the session has had from its beginning. */
static int open_named(struct execution *execution, const char *path, struct cordon_error *err)
{
	const char *home = workspace_home(&execution->arena, request_variable(execution->request, "HOME"));
	if (workspace_named(&execution->arena, path, execution->cordon->data_dir, home, &execution->session.workspace,
	                    &execution->session.workspace_fd, err) < 0)
		return -1;
	return execution->probe ? 0 : workspace_refuse_among(&execution->arena, execution->session.workspace.path,
	                                                     execution->session.config->workspace_root, err);
}

/* The git working tree around the directory that was named, where that may be a workspace; else the directory itself. */
static int open_around(struct execution *execution, const char *path, struct cordon_error *err)
{
	static const char note[] = "the top of this git working tree cannot be the workspace, so it is the current directory";
	if (open_named(execution, path, err) < 0)
		return -1;
	const struct place here = execution->session.workspace;
	const char *home = workspace_home(&execution->arena, request_variable(execution->request, "HOME")), *top, *why;
	if (git_tree_top(&execution->arena, here.path, home, &top, &why) < 0)
		return fail_oom(err);
	if (!top || !strcmp(top, here.path))
		return 0;
	struct cordon_error refused;
	int here_fd = execution->session.workspace_fd;
	execution->session.workspace_fd = -1;
	if (!why && open_named(execution, top, &refused) < 0)
		why = refused.reason;
	if (!why) {
		close(here_fd);
		execution->session.here = here.path;
		return 0;
	}
	close_fd(&execution->session.workspace_fd);
	execution->session.workspace = here;
	execution->session.workspace_fd = here_fd;
	const char *text = arena_printf(&execution->arena, "%s: %s", note, why);
	return !text || run_add_denial(execution, CORDON_WALL_FILESYSTEM, top, text, "") < 0 ? fail_oom(err) : 0;
}

/* Without the repository git does not work in a linked worktree or submodule. */
static int find_git_common(struct execution *execution, struct cordon_error *err)
{
	const char *path = execution->session.workspace.path, *refused;
	if (execution->session.own_workspace || execution->probe || execution->session.workspace_fd < 0)
		return 0;
	if (git_tree_common(&execution->arena, execution->session.workspace_fd, path, &execution->session.git_common, &refused) < 0)
		return fail_oom(err);
	if (!refused)
		return 0;
	const char *file = arena_printf(&execution->arena, "%s/.git", path);
	const char *note = arena_printf(&execution->arena, "%s, so the repository is not shown", refused);
	return !file || !note || run_add_denial(execution, CORDON_WALL_FILESYSTEM, file, note, "") < 0 ? fail_oom(err) : 0;
}

static int open_record(struct execution *execution, struct cordon_error *err)
{
	struct session_record *record = &execution->session.record;
	const char *named = execution->session.workspace.path;
	const struct session_record first = { .workspace = named,
	                                      .own_root = named ? NULL : execution->session.config->workspace_root };
	const char *data_dir = execution->cordon->data_dir, *id = execution->session.id;
	const struct gate gate = cordon_gate(execution->cordon);
	bool found = false, made = false;
	/* Before it is read: what was approved for one that died is in it then. */
	if (!execution->dry)
		gate_sweep(&gate);
	int opened = execution->dry ? registry_read(&execution->arena, data_dir, id, record, &found, err)
	                            : registry_use(&execution->arena, data_dir, id, &first, &execution->session.use_fd,
	                                           record, &found, err);
	if (opened < 0)
		return -1;
	if (!found && !execution->dry &&
	    session_row_open(execution->cordon->ledger, &execution->arena, data_dir, id, &first, record, &made, err) < 0)
		return -1;
	if (!found && execution->dry)
		*record = first;
	return check_state(record, err);
}

/* A link that was put in its place since would choose what the session works on. */
static int reopen_workspace(struct execution *execution, struct cordon_error *err)
{
	const char *path = execution->session.record.workspace;
	if (open_named(execution, path, err) < 0)
		return -1;
	if (!strcmp(execution->session.workspace.path, path))
		return 0;
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "the session's workspace was replaced by a symbolic link");
	fail_boundary(err, "filesystem");
	return fail_remedy(err, "put the directory back, or begin a new session");
}

static const char *own_place(struct execution *execution, const char *kind)
{
	return arena_printf(&execution->arena, "%s/%s", execution->cordon->data_dir, kind);
}

static int own_workspace(struct execution *execution, struct cordon_error *err)
{
	const char *root = execution->session.one_off ? execution->session.config->workspace_root
	                                              : execution->session.record.own_root;
	struct place *workspace = &execution->session.workspace;
	int *fd = &execution->session.workspace_fd;
	if (workspace_of_session(&execution->arena, execution->session.id, root ? root : own_place(execution, "workspaces"),
	                         !execution->dry, workspace, fd, err) < 0)
		return -1;
	execution->session.own_workspace = true;
	execution->session.disposable = execution->session.one_off && !execution->dry;
	/* A root that somebody named may be a link, or lie behind one. */
	if (root && *fd >= 0 && !(workspace->path = beneath_path(&execution->arena, *fd)))
		return fail(err, CORDON_E_INTERNAL, 0, root, "cannot tell where the session's directory is");
	return 0;
}

static int open_workspace(struct execution *execution, struct cordon_error *err)
{
	const char *named = execution->request->workspace;
	if (named && (execution->request->find_top ? open_around(execution, named, err) : open_named(execution, named, err)) < 0)
		return -1;
	if (!execution->session.one_off && open_record(execution, err) < 0)
		return -1;
	if (named)
		return 0;
	return execution->session.record.workspace ? reopen_workspace(execution, err) : own_workspace(execution, err);
}

static int choose_home(struct execution *execution, struct cordon_error *err)
{
	bool named = execution->request->workspace || execution->session.record.workspace;
	if (!named) {
		execution->session.home = execution->session.workspace.path;
		return 0;
	}
	execution->session.home = execution->session.view == VIEW_HOST_READONLY ? HOME_IN_WHOLE_VIEW : HOME_INSIDE;
	if (execution->session.one_off)
		return 0;
	struct place place;
	if (workspace_of_session(&execution->arena, execution->session.id, own_place(execution, "homes"), !execution->dry, &place,
	                         &execution->session.home_fd, err) < 0)
		return -1;
	execution->session.home_source = place.path;
	return 0;
}

/* Nobody knows where it is once the command has ended. */
void session_step_clean(struct execution *execution)
{
	struct stat held, named;
	const char *path = execution->session.workspace.path;
	if (!execution->session.disposable)
		return;
	const char *name = strrchr(path, '/') + 1;
	char *parent = arena_strndup(&execution->arena, path, (size_t)(name - path));
	auto_close int fd = parent ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0 && fstat(execution->session.workspace_fd, &held) == 0 && fstatat(fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    held.st_dev == named.st_dev && held.st_ino == named.st_ino)
		remove_tree(fd, name);
}

static int check_job(const struct execution *execution, struct cordon_error *err)
{
	if (!execution->request->job || !execution->session.one_off)
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, "session", "a job belongs to a session, and none is named");
	return fail_remedy(err, "name one: --session ID");
}

/* A job's place is taken first, and then the session looked at once more: who ends a session says so before looking for its
 * jobs. */
static int enter_job(struct execution *execution, struct cordon_error *err)
{
	const char *data_dir = execution->cordon->data_dir, *id = execution->session.id;
	struct session_record record;
	bool found = false;
	if (!execution->request->job)
		return 0;
	if (jobs_enter(data_dir, id, execution->audit.id, execution->request->job, err) < 0)
		return -1;
	execution->session.job = execution->request->job;
	if (registry_read(&execution->arena, data_dir, id, &record, &found, err) < 0)
		return -1;
	return found ? check_state(&record, err) : registry_missing(id, err);
}

enum supervise_wish session_wish(void *argument)
{
	static const enum supervise_wish wishes[SESSION_STATE_MAX] = {
		[SESSION_ACTIVE] = SUPERVISE_GO_ON, [SESSION_PAUSED] = SUPERVISE_STAND_STILL, [SESSION_ENDED] = SUPERVISE_END,
	};
	struct execution *execution = argument;
	return wishes[registry_look(execution->cordon->data_dir, execution->session.id, &execution->session.look)];
}

int session_step(struct execution *execution, struct cordon_error *err)
{
	const char *named = execution->request->session;
	if (!named && !execution->probe)
		named = current_session();
	execution->mounts = execute_hear(execution->cordon, false);
	execution->session.one_off = !named;
	execution->session.id = named ? named : execution->audit.id;
	if ((named && registry_check_id(named, err) < 0) || take_config(execution, CONFIG_KEEP_NOTHING, err) < 0 ||
	    check_job(execution, err) < 0)
		return -1;
	if (!execution->dry && workspace_make_data_dir(execution->cordon->data_dir, err) < 0)
		return -1;
	if (open_workspace(execution, err) < 0 || find_git_common(execution, err) < 0 ||
	    take_config(execution, keeping(execution), err) < 0 || choose_driver(execution, err) < 0 || choose_home(execution, err) < 0 || enter_job(execution, err) < 0)
		return -1;
	execution->done = CORDON_STEP_SESSION;
	return 0;
}

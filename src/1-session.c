/* Step 1: which session, under which policy, in which workspace, with which home. A request that names no session,
 * where none is current, is a one-off: a session of one command that leaves no record. A workspace of cordon's own
 * making is also the home, and is removed with a one-off; where the caller named a directory, the home is the
 * session's own private one, or in memory for a one-off, so that caches and history never litter a project. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "approval/gate.h"
#include "audit/ledger.h"
#include "base/lock.h"
#include "base/remove.h"
#include "base/text.h"
#include "config/config.h"
#include "session/current.h"
#include "session/session-row.h"
#include "host/git-tree.h"
#include "session/jobs.h"
#include "session/home.h"
#include "session/workspace.h"
#include "walk.h"

/* The step in progress. */
struct resolving {
	const struct walk_facts *facts;
	struct walk_held *held;
	struct verdict_session *session;        /* filled as far as it is known */
	struct session_record *record;          /* what session->record is */
	uint64_t mounts;                        /* the version of the host's mounts */
};

/* ---- the policy ------------------------------------------------------------------------------------------------- */

/* Twice: before the workspace is known, for where that is, keeping nothing, since nothing may be made where the sandbox
 * is switched off; and with it, for what the project's own file narrows. */
static int take_config(struct resolving *resolving, enum config_keeping keeping, struct cordon_error *err)
{
	const struct config *config;
	const char *session = resolving->session->one_off ? NULL : resolving->session->id;
	int taken =
		resolving->facts->probe ?
			config_builtin(&config, err) :
			config_store_take(resolving->facts->cordon->config, session, resolving->session->workspace_fd,
	                                  resolving->session->workspace.path, keeping, resolving->mounts, &config, err);
	if (taken < 0)
		return -1;
	config_unref(resolving->session->config);
	resolving->session->config = config;
	if (config->note && !(resolving->session->note = arena_strdup(resolving->facts->arena, config->note)))
		return fail_oom(err);
	if (config->enabled) {
		ledger_set_sync(resolving->facts->cordon->ledger, config->sync_disk);
		return 0;
	}
	fail(err, CORDON_E_SANDBOX_DISABLED, 0, "sandbox.enabled", "the sandbox is switched off, so nothing runs");
	return fail_remedy(err, "set sandbox.enabled = true in the configuration");
}

/* A job's caller has gone by the time there is a result to read. */
static enum config_keeping keeping(const struct resolving *resolving)
{
	if (resolving->facts->dry)
		return CONFIG_KEEP_NOTHING;
	return resolving->facts->request->job ? CONFIG_KEEP_UNSAID : CONFIG_KEEP;
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
	if (request->driver && strcmp(request->driver, driver) && strcmp(request->driver, driver_default()->name))
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
static int hide_others(const struct resolving *resolving, struct cordon_error *err)
{
	const char *const roots[] = { resolving->session->config->workspace_root, resolving->record->own_root };
	for (size_t i = 0; resolving->session->view == VIEW_HOST_READONLY && i < ARRAY_SIZE(roots); i++) {
		if (!roots[i] || path_within(roots[i], resolving->facts->cordon->data_dir))
			continue;
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, roots[i],
		     "in a view of the whole host the workspaces of other sessions cannot be hidden there");
		fail_boundary(err, "filesystem");
		return fail_remedy(err, "choose another view, or leave sandbox.workspace_root where it is by default");
	}
	return 0;
}

const char *session_step_driver(const struct config *config)
{
	return config->driver ? config->driver : config->degrade ? "auto" : driver_default()->name;
}

static int choose_driver(struct resolving *resolving, struct cordon_error *err)
{
	const struct cordon_request *request = resolving->facts->request;
	const struct config *config = resolving->session->config;
	/* A weaker tier runs only where the configuration names it. */
	const char *name = session_step_driver(config);
	const char *weak = resolving->session->one_off ? NULL : weakens(request, config, name);
	if (weak) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, weak,
		     "a command of a session cannot have weaker walls than the configuration gives it");
		fail_boundary(err, "policy");
		return fail_remedy(err, "leave it out, or set sandbox.%s in the configuration",
		                   strcmp(weak, "toolchain") ? weak : "toolchains");
	}
	resolving->session->view = request->view_named ? request->view : configured_view(config);
	if (hide_others(resolving, err) < 0)
		return -1;
	return probe_driver(resolving->facts->cordon, request->driver ? request->driver : name, resolving->facts->dry,
	                    &resolving->session->driver, err);
}

/* ---- the session ------------------------------------------------------------------------------------------------ */

static int check_state(const struct session_record *record, struct cordon_error *err)
{
	const char *why = record->why ? record->why : "";
	if (record->state == SESSION_PAUSED) {
		fail(err, CORDON_E_SESSION_PAUSED, 0, record->id, "the session is paused%s%s", *why ? ": " : "", why);
		return fail_remedy(
			err, "look at what it did (cordon audit query --session ID), then: cordon session resume ID");
	}
	if (record->state == SESSION_ENDED) {
		fail(err, CORDON_E_SESSION_ENDED, 0, record->id, "the session has ended%s%s", *why ? ": " : "", why);
		return fail_remedy(err, "use another id, or remove this one first: cordon session rm ID");
	}
	return 0;
}

/* The directory this request names, or the one the session has had from its beginning. */
static int open_named(struct resolving *resolving, const char *path, struct cordon_error *err)
{
	const char *home = workspace_home(resolving->facts->arena, request_variable(resolving->facts->request, "HOME"));
	if (workspace_named(resolving->facts->arena, path, resolving->facts->cordon->data_dir, home,
	                    &resolving->session->workspace, &resolving->session->workspace_fd, err) < 0)
		return -1;
	return resolving->facts->probe ?
	               0 :
	               workspace_refuse_among(resolving->facts->arena, resolving->session->workspace.path,
	                                      resolving->session->config->workspace_root, err);
}

/* The git working tree around the directory that was named, where that may be a workspace; else the directory
 * itself. */
static int open_around(struct resolving *resolving, const char *path, struct cordon_error *err)
{
	static const char note[] =
		"the top of this git working tree cannot be the workspace, so it is the current directory";
	if (open_named(resolving, path, err) < 0)
		return -1;
	const struct place here = resolving->session->workspace;
	const char *home = workspace_home(resolving->facts->arena, request_variable(resolving->facts->request, "HOME")),
		   *top, *why;
	if (git_tree_top(resolving->facts->arena, here.path, home, &top, &why) < 0)
		return fail_oom(err);
	if (!top || !strcmp(top, here.path))
		return 0;
	struct cordon_error refused;
	int here_fd = resolving->session->workspace_fd;
	resolving->session->workspace_fd = -1;
	if (!why && open_named(resolving, top, &refused) < 0)
		why = refused.reason;
	if (!why) {
		close(here_fd);
		resolving->session->here = here.path;
		return 0;
	}
	close_fd(&resolving->session->workspace_fd);
	resolving->session->workspace = here;
	resolving->session->workspace_fd = here_fd;
	const char *text = arena_printf(resolving->facts->arena, "%s: %s", note, why);
	return !text || denials_add(resolving->facts->denials, resolving->facts->arena, CORDON_WALL_FILESYSTEM, top,
	                            text, "") < 0 ? fail_oom(err) : 0;
}

/* Without the repository git does not work in a linked worktree or submodule. */
static int find_git_common(struct resolving *resolving, struct cordon_error *err)
{
	const char *path = resolving->session->workspace.path, *refused;
	if (resolving->session->own_workspace || resolving->facts->probe || resolving->session->workspace_fd < 0)
		return 0;
	if (git_tree_common(resolving->facts->arena, resolving->session->workspace_fd, path,
	                    &resolving->session->git_common, &refused) < 0)
		return fail_oom(err);
	if (!refused)
		return 0;
	const char *file = arena_printf(resolving->facts->arena, "%s/.git", path);
	const char *note = arena_printf(resolving->facts->arena, "%s, so the repository is not shown", refused);
	return !file || !note ||
	       denials_add(resolving->facts->denials, resolving->facts->arena, CORDON_WALL_FILESYSTEM,
	                                   file, note, "") < 0 ? fail_oom(err) : 0;
}

/* One that was idle for too long has ended, whoever comes first to see it. */
static int use_record(struct resolving *resolving, const struct session_record *first, bool *ret_found,
                      struct cordon_error *err)
{
	const char *data_dir = resolving->facts->cordon->data_dir, *id = resolving->session->id;
	struct session_record *record = resolving->record;
	bool ended = false;
	struct arena *arena = resolving->facts->arena;
	int *use_fd = &resolving->held->use_fd;
	if (registry_use(arena, data_dir, id, first, use_fd, record, ret_found, err) < 0)
		return -1;
	if (!*ret_found || !record->idle_expiry_s)
		return 0;
	if (session_is_idle(data_dir, id, record->idle_expiry_s)) {
		lock_release(use_fd);
		if (session_row_end_idle(resolving->facts->cordon->ledger, data_dir, id, &ended, err) < 0 ||
		    registry_use(arena, data_dir, id, first, use_fd, record, ret_found, err) < 0)
			return -1;
	}
	resolving->held->is_timed = *ret_found && record->state == SESSION_ACTIVE;
	return resolving->held->is_timed && futimens(*use_fd, NULL) < 0
	               ? fail(err, CORDON_E_INTERNAL, errno, id, "the session's time of use cannot be written") : 0;
}

static int open_record(struct resolving *resolving, struct cordon_error *err)
{
	struct session_record *record = resolving->record;
	const char *named = resolving->session->workspace.path;
	const struct session_record first = { .workspace = named,
	                                      .own_root = named ? NULL : resolving->session->config->workspace_root };
	const char *data_dir = resolving->facts->cordon->data_dir, *id = resolving->session->id;
	const struct gate gate = handle_gate(resolving->facts->cordon);
	bool found = false, made = false;
	/* Before it is read: what was approved for one that died is in it then. */
	if (!resolving->facts->dry)
		gate_sweep(&gate);
	int opened = resolving->facts->dry ? registry_read(resolving->facts->arena, data_dir, id, record, &found, err) :
	                                     use_record(resolving, &first, &found, err);
	if (opened < 0)
		return -1;
	if (!found && registry_check_new(id, false, err) < 0)
		return -1;
	if (!found && !resolving->facts->dry &&
	    session_row_open(resolving->facts->cordon->ledger, resolving->facts->arena, data_dir, id, &first, record,
	                     &made, err) < 0)
		return -1;
	if (!found && resolving->facts->dry)
		*record = first;
	return check_state(record, err);
}

/* A link that was put in its place since would choose what the session works on. */
static int reopen_workspace(struct resolving *resolving, struct cordon_error *err)
{
	const char *path = resolving->record->workspace;
	if (open_named(resolving, path, err) < 0)
		return -1;
	if (!strcmp(resolving->session->workspace.path, path))
		return 0;
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "the session's workspace was replaced by a symbolic link");
	fail_boundary(err, "filesystem");
	return fail_remedy(err, "put the directory back, or begin a new session");
}

static const char *own_place(struct resolving *resolving, const char *kind)
{
	return arena_printf(resolving->facts->arena, "%s/%s", resolving->facts->cordon->data_dir, kind);
}

static int own_workspace(struct resolving *resolving, struct cordon_error *err)
{
	const char *root = resolving->session->one_off ? resolving->session->config->workspace_root
	                                              : resolving->record->own_root;
	struct place *workspace = &resolving->session->workspace;
	int *fd = &resolving->session->workspace_fd;
	if (workspace_of_session(resolving->facts->arena, resolving->session->id,
	                         root ? root : own_place(resolving, "workspaces"), !resolving->facts->dry, workspace,
	                         fd, err) < 0)
		return -1;
	resolving->session->own_workspace = true;
	resolving->held->disposable = resolving->session->one_off && !resolving->facts->dry;
	/* A configured root may be a link, or lie behind one. */
	if (root && *fd >= 0 && !(workspace->path = beneath_path(resolving->facts->arena, *fd)))
		return fail(err, CORDON_E_INTERNAL, 0, root, "cannot tell where the session's directory is");
	return 0;
}

static int open_workspace(struct resolving *resolving, struct cordon_error *err)
{
	const char *named = resolving->facts->request->workspace;
	bool around = resolving->facts->request->find_top;
	if (named && (around ? open_around(resolving, named, err) : open_named(resolving, named, err)) < 0)
		return -1;
	if (!resolving->session->one_off && open_record(resolving, err) < 0)
		return -1;
	if (named)
		return 0;
	return resolving->record->workspace ? reopen_workspace(resolving, err) : own_workspace(resolving, err);
}

/* A HOME that cannot be one is replaced, and that is said. */
static int tell_home(struct resolving *resolving)
{
	const struct walk_facts *facts = resolving->facts;
	const char *named = request_variable(facts->request, "HOME"), *own = resolving->session->home_alias;
	own = own ? own : resolving->session->home;
	if (!named || !*named || strcmp(resolving->session->home, HOME_INSIDE) != 0)
		return 0;
	const char *whole = *named == '/' ? path_normalise(facts->arena, named) : named;
	if (!whole)
		return -1;
	return !strcmp(whole, own)
	               ? 0
	               : denials_add(facts->denials, facts->arena, CORDON_WALL_FILESYSTEM, named,
	                             "HOME names no directory that can be a home inside: it is " HOME_INSIDE " there",
	                             "");
}

static int choose_home(struct resolving *resolving, struct cordon_error *err)
{
	bool named = resolving->facts->request->workspace || resolving->record->workspace;
	if (!named) {
		resolving->session->home = resolving->session->workspace.path;
		return 0;
	}
	const bool whole = resolving->session->view == VIEW_HOST_READONLY;
	resolving->session->home = whole ? HOME_IN_WHOLE_VIEW : HOME_INSIDE;
	if (!resolving->facts->probe &&
	    home_choose(resolving->facts->arena, request_variable(resolving->facts->request, "HOME"), geteuid(), whole,
	                &resolving->session->home, &resolving->session->home_alias, err) < 0)
		return -1;
	if (!resolving->facts->probe && tell_home(resolving) < 0)
		return fail_oom(err);
	if (resolving->session->one_off)
		return 0;
	struct place place;
	if (workspace_of_session(resolving->facts->arena, resolving->session->id, own_place(resolving, "homes"),
	                         !resolving->facts->dry, &place, &resolving->held->home_fd, err) < 0)
		return -1;
	resolving->session->home_source = place.path;
	return 0;
}

/* Of a session, unless the command is to share nothing with others. */
static int choose_tmp(struct resolving *resolving, struct cordon_error *err)
{
	struct place *tmp = &resolving->session->tmp;
	int *fd = &resolving->held->tmp_fd;
	struct stat info;
	if (resolving->session->one_off || resolving->facts->request->fresh)
		return 0;
	if (workspace_of_session(resolving->facts->arena, resolving->session->id, own_place(resolving, "tmp"),
	                         !resolving->facts->dry, tmp, fd, err) < 0)
		return -1;
	/* As it was made. A command may give its /tmp another mode, and finds it so. */
	if (*fd >= 0 && fstat(*fd, &info) == 0 && (info.st_mode & 07777) == 0700 &&
	    fchmodat(AT_FDCWD, tmp->path, 01777, 0) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, tmp->path,
		            "cannot change the mode of the session's directory");
	return 0;
}

/* The caller does not know where it is. */
static void remove_workspace(const struct walk_facts *facts, const struct verdict_session *session)
{
	struct stat held, named;
	const char *path = session->workspace.path, *name = strrchr(path, '/') + 1;
	char *parent = arena_strndup(facts->arena, path, (size_t)(name - path));
	auto_close int fd = parent ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0 && fstat(session->workspace_fd, &held) == 0 &&
	    fstatat(fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && held.st_dev == named.st_dev &&
	    held.st_ino == named.st_ino)
		remove_tree(fd, name);
}

void session_release(const struct walk_facts *facts, struct walk_held *held, struct verdict_session *session)
{
	if (held->scratch && !facts->dry)
		remove_tree(AT_FDCWD, held->scratch);
	if (held->disposable)
		remove_workspace(facts, session);
	cleanup_close(&session->workspace_fd);
	cleanup_close(&held->home_fd);
	cleanup_close(&held->tmp_fd);
	cleanup_close(&held->layers_fd);
	cleanup_close(&held->scratch_fd);
	if (held->is_timed && held->use_fd >= 0)
		(void)!futimens(held->use_fd, NULL);
	lock_release(&held->use_fd);
	config_unref(session->config);
}

static int check_job(const struct resolving *resolving, struct cordon_error *err)
{
	if (!resolving->facts->request->job || !resolving->session->one_off)
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, "session", "a job belongs to a session, and none is named");
	return fail_remedy(err, "name one: --session ID");
}

/* A job's place is taken first, and then the session looked at once more: who ends a session says so before looking
 * for its jobs. */
static int enter_job(struct resolving *resolving, struct cordon_error *err)
{
	const char *data_dir = resolving->facts->cordon->data_dir, *id = resolving->session->id;
	struct session_record record;
	bool found = false;
	if (!resolving->facts->request->job)
		return 0;
	if (jobs_enter(data_dir, id, resolving->facts->audit_id, resolving->facts->request->job, err) < 0)
		return -1;
	resolving->held->job = resolving->facts->request->job;
	if (registry_read(resolving->facts->arena, data_dir, id, &record, &found, err) < 0)
		return -1;
	return found ? check_state(&record, err) : registry_missing(id, err);
}

enum command_wish session_wish(void *argument)
{
	static const enum command_wish wishes[SESSION_STATE_MAX] = {
		[SESSION_ACTIVE] = COMMAND_GO_ON, [SESSION_PAUSED] = COMMAND_STAND_STILL, [SESSION_ENDED] = COMMAND_END,
	};
	struct execution *execution = argument;
	return wishes[registry_look(execution->cordon->data_dir, execution->verdict.session.id, execution->held.look)];
}

int session_step(const struct walk_facts *facts, struct walk_held *held, struct verdict_session *ret,
                 struct cordon_error *err)
{
	struct resolving resolving = { facts, held, ret, arena_alloc(facts->arena, sizeof(*resolving.record)), 0 };
	const char *named = facts->request->session;
	if (!named && !facts->probe)
		named = current_session();
	held->look = arena_alloc(facts->arena, sizeof(*held->look));
	if (!resolving.record || !held->look)
		return fail_oom(err);
	*resolving.record = (struct session_record){ 0 };
	*held->look = (struct session_look){ 0 };
	*ret = (struct verdict_session){
		.id = named ? named : facts->audit_id, .one_off = !named, .record = resolving.record, .workspace_fd = -1
	};
	resolving.mounts = handle_mounts(facts->cordon, false);
	if ((named && registry_check_id(named, err) < 0) || take_config(&resolving, CONFIG_KEEP_NOTHING, err) < 0 ||
	    check_job(&resolving, err) < 0)
		return -1;
	if (!facts->dry && workspace_make_data_dir(facts->cordon->data_dir, err) < 0)
		return -1;
	return open_workspace(&resolving, err) < 0 || find_git_common(&resolving, err) < 0 ||
	       take_config(&resolving, keeping(&resolving), err) < 0 ||
	       choose_driver(&resolving, err) < 0 || choose_home(&resolving, err) < 0 ||
	       choose_tmp(&resolving, err) < 0 || enter_job(&resolving, err) < 0 ? -1 : 0;
}

/* Step 4: the walls as data. Gathers the facts (what the host has, which names must be hidden, which toolchains are
 * there) and hands them to profile/, which makes no system call. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "driver/idmap.h"
#include "execute.h"
#include "policy/egress.h"
#include "policy/env.h"
#include "profile/unwall.h"
#include "session/beneath.h"
#include "session/host-tools.h"
#include "session/host-view.h"
#include "session/host.h"
#include "session/names-look.h"
#include "session/scratch.h"
#include "session/whole-view.h"

/* How long rechecking the names in a tree may take; what is left over is rechecked by later commands. */
#define NAMES_BUDGET_US 600

/* How long following the links among them may: far longer than it takes but where somebody made it so. */
#define LINKS_US (2 * 1000 * 1000)

/* ---- names ------------------------------------------------------------------------------------------------------ */

static bool is_masked(const struct profile_input *input, const char *path)
{
	for (size_t i = 0; i < input->masked.count; i++)
		if (path_within(path, input->masked.items[i].path))
			return true;
	return false;
}

static bool is_granted_socket(const struct execution *execution, const char *path)
{
	for (size_t i = 0; i < execution->capability.sockets.count; i++)
		if (!strcmp(execution->capability.sockets.items[i].path, path))
			return true;
	return false;
}

static bool is_writable(const struct execution *execution, const char *path)
{
	const struct places *writes = &execution->capability.writes;
	bool within = path_within(path, execution->session.workspace.path);
	for (size_t i = 0; i < writes->count && !within; i++)
		within = path_within(path, writes->items[i].path);
	return within;
}

/* Beneath a directory that was granted? One that was granted as a file is meant to be seen. */
static bool is_in_a_tree(const struct execution *execution, const char *path)
{
	const struct strings *roots = &execution->profile.roots;
	for (size_t i = 0; i < roots->count; i++)
		if (path_within(path, roots->items[i]))
			return true;
	return false;
}

/* What a link leads to, where that is in a tree that was granted; elsewhere it is not there to be seen. 0, or a negative errno:
 * -ETIME where that takes too long. */
static int follow(struct execution *execution, const char *link, struct place *ret_place, struct strings *ret_way)
{
	uint64_t start_us = names_now_us();
	int result = beneath_follow(&execution->arena, link, &execution->profile.roots, ret_place, ret_way);
	execution->profile.links_us += names_now_us() - start_us;
	if (execution->profile.links_us > LINKS_US)
		return -ETIME;
	if (result < 0)
		return result;
	/* A directory that the link or the whole workspace lies in is more than any name is meant to cover. */
	bool too_much = ret_place->is_directory && (path_within(link, ret_place->path) ||
	                                            path_within(execution->session.workspace.path, ret_place->path));
	return too_much || !is_in_a_tree(execution, ret_place->path) ? -ENOENT : 0;
}

/* A repository that a link or its own name passes off as what is read-only: commits must work. */
static bool must_stay_writable(const struct looked_at *tree, const struct name *name, bool is_directory)
{
	const char *slash = strrchr(name->path, '/');
	return is_directory && (planted_is_repository(tree->fd, name) ||
	                        (name->is_link && !strcasecmp(slash ? slash + 1 : name->path, ".git")));
}

/* Of so many some would be left open. */
static int refuse_crowd(const char *path, struct cordon_error *err)
{
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "there are more names in it to hide or to keep as they are than can be: over %d",
	     NAMES_MATCHES_MAX);
	return fail_remedy(err, "remove what matches capabilities.deny or capabilities.protect there, or grant a smaller directory");
}

static int refuse_maze(const char *path, struct cordon_error *err)
{
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "the symbolic links in it that must be followed take too long");
	return fail_remedy(err, "remove what matches capabilities.deny or capabilities.protect there, or grant a smaller directory");
}

static int add_all(struct arena *arena, struct strings *list, const struct strings *items)
{
	for (size_t i = 0; i < items->count; i++)
		if (strings_add(arena, list, items->items[i]) < 0)
			return -1;
	return 0;
}

static int take_name(struct execution *execution, const struct looked_at *tree, const struct name *name,
                     struct profile_input *input)
{
	struct place place = { .is_directory = name->is_directory };
	struct strings way = { 0 };
	const char *link = place.path = arena_printf(&execution->arena, "%s/%s", tree->place.path, name->path);
	if (!link)
		return -ENOMEM;
	int followed = name->is_link ? follow(execution, link, &place, &way) : 0;
	if (followed < 0)
		return followed == -ENOMEM || followed == -ETIME ? followed : 0;
	/* Beneath what is covered as a whole there is nothing left to cover. */
	if (is_masked(input, place.path) || (path_within(place.path, execution->cordon->data_dir) &&
	                                     !path_within(place.path, execution->session.workspace.path)))
		return 0;
	if (name->kind == NAME_PROTECTED) {
		bool writable = name->is_link ? is_writable(execution, place.path) : tree->writable;
		if (!writable || must_stay_writable(tree, name, place.is_directory))
			return 0;
		return strings_add(&execution->arena, &input->protect, place.path) < 0 ||
		       add_all(&execution->arena, &input->ways, &way) < 0 ? -ENOMEM : 0;
	}
	if (name->kind == NAME_SOCKET && is_granted_socket(execution, place.path))
		return 0;
	if (places_add(&execution->arena, &input->masked, &place) < 0 || add_all(&execution->arena, &input->ways, &way) < 0)
		return -ENOMEM;
	place.alias = link;
	return name->is_link && places_add(&execution->arena, &execution->profile.links, &place) < 0 ? -ENOMEM : 0;
}

static int take_names(struct execution *execution, const struct looked_at *tree, struct profile_input *input,
                      struct cordon_error *err)
{
	for (size_t i = 0; i < tree->before.count; i++) {
		int taken = take_name(execution, tree, &tree->before.items[i], input);
		if (taken < 0)
			return taken == -ETIME ? refuse_maze(tree->place.path, err) : fail_oom(err);
	}
	if (!tree->before.note)
		return 0;
	input->unmasked = !input->unmasked ? tree->before.note
	                  : arena_printf(&execution->arena, "%s; %s: %s", input->unmasked, tree->place.path, tree->before.note);
	/* In what it may write, the command's end tells. */
	bool told = tree->writable || !tree->before.unseen;
	return !input->unmasked || (!told && run_add_denial(execution, CORDON_WALL_MASKED, tree->place.path, tree->before.note, "") < 0)
		? fail_oom(err) : 0;
}

/* Names are looked for in what was granted, which is what will be mounted. */
static int require_same(const struct place *place, int fd, struct cordon_error *err)
{
	struct stat info;
	if (fstat(fd, &info) == 0 && info.st_dev == place->device && info.st_ino == place->inode)
		return 0;
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, place->path,
	     "the path was replaced by something else while the command was being started");
	return fail_boundary(err, "filesystem");
}

/* `fd` is the place where that is open already, or -1. */
static int look_at(struct execution *execution, const struct place *place, int fd, bool writable,
                   struct profile_input *input, struct cordon_error *err)
{
	struct looked_at *tree = &execution->profile.trees[execution->profile.tree_count];
	if (!place->is_directory)
		return 0;
	*tree = (struct looked_at){ .place = *place, .writable = writable,
	                            .fd = fd >= 0 ? fd : open(place->path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) };
	if (tree->fd < 0)
		return execution->dry ? 0 : fail(err, CORDON_E_CAPABILITY_DENIED, errno, place->path, "cannot look for names to protect");
	execution->profile.tree_count++;
	if (fd < 0 && require_same(place, tree->fd, err) < 0)
		return -1;
	const struct names_search search = { true, run_names_keep(execution), NAMES_BUDGET_US };
	if (tree_names_find(execution, &execution->arena, tree, &search, &tree->before, err) < 0)
		return -1;
	if (tree->before.too_many)
		return refuse_crowd(place->path, err);
	uint64_t budget_us = execution->session.driver->keeps_names ? NAMES_BUDGET_US : UINT64_MAX;
	if (writable && planted_record(&execution->arena, tree->fd, place->path, &tree->before, budget_us, &tree->planted,
	                               err) < 0)
		return -1;
	return take_names(execution, tree, input, err);
}

/* Of the base view, /opt is where services of third parties live; a socket of theirs is no more granted than another. */
static int find_system_sockets(struct execution *execution, struct profile_input *input, struct cordon_error *err)
{
	const struct strings none = { 0 };
	const struct name_rules rules = { &none, &none, &none };
	struct looked_at tree = { .place = { .path = "/opt", .is_directory = true } };
	auto_close int fd = open(tree.place.path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return 0;
	tree.fd = fd;
	const struct names_keep keep = run_names_keep(execution);
	if (names_find(&execution->arena, fd, tree.place.path, &rules, &keep, NAMES_BUDGET_US, &tree.before, err) < 0)
		return -1;
	return take_names(execution, &tree, input, err);
}

static int add_names(struct arena *arena, struct strings *list, const struct place *place)
{
	return strings_add(arena, list, place->path) < 0 || (place->alias && strings_add(arena, list, place->alias) < 0) ? -1 : 0;
}

static int add_roots(struct arena *arena, const struct places *places, struct strings *roots)
{
	for (size_t i = 0; i < places->count; i++)
		if (places->items[i].is_directory && add_names(arena, roots, &places->items[i]) < 0)
			return -1;
	return 0;
}

/* With all of the host in view, names are looked for in the caller's home as in a granted tree. */
static bool find_home(struct execution *execution, enum view view, struct place *ret_home)
{
	const char *named = view == VIEW_HOST_READONLY ? request_variable(execution->request, "HOME") : NULL;
	return named && beneath_resolve(&execution->arena, named, ret_home, NULL, NULL) == 0 && ret_home->path[1];
}

static int find_roots(struct execution *execution, enum view view)
{
	struct strings *roots = &execution->profile.roots;
	struct arena *arena = &execution->arena;
	struct place home;
	return add_names(arena, roots, &execution->session.workspace) < 0 ||
	       add_roots(arena, &execution->capability.writes, roots) < 0 ||
	       add_roots(arena, &execution->capability.reads, roots) < 0 ||
	       (find_home(execution, view, &home) && add_names(arena, roots, &home) < 0) ? -1 : 0;
}

static int find_names(struct execution *execution, struct profile_input *input, struct cordon_error *err)
{
	const struct places *reads = &execution->capability.reads, *writes = &execution->capability.writes;
	const char *cache = arena_printf(&execution->arena, "%s/names", execution->cordon->data_dir);
	execution->profile.trees = arena_alloc(&execution->arena, (reads->count + writes->count + 2) *
	                                                                  sizeof(*execution->profile.trees));
	if (!execution->profile.trees || !cache || find_roots(execution, input->view) < 0)
		return fail_oom(err);
	execution->profile.names = (struct names_place){ .path = cache, .may_make = !execution->dry, .fd = -1 };
	if (look_at(execution, &execution->session.workspace, execution->session.workspace_fd, true, input, err) < 0)
		return -1;
	for (size_t i = 0; i < writes->count; i++)
		if (look_at(execution, &writes->items[i], -1, true, input, err) < 0)
			return -1;
	for (size_t i = 0; i < reads->count; i++)
		if (look_at(execution, &reads->items[i], -1, false, input, err) < 0)
			return -1;
	return input->view == VIEW_SYSTEM ? find_system_sockets(execution, input, err) : 0;
}

/* What the configuration keeps read-only inside writable roots. */
static int keep_read_only(struct execution *execution, struct profile_input *input, struct cordon_error *err)
{
	const struct strings *paths = &execution->session.config->read_only;
	for (size_t i = 0; i < paths->count; i++) {
		struct place place;
		/* By whatever name it is called. What is missing elsewhere is no matter here. */
		bool found = beneath_resolve(&execution->arena, paths->items[i], &place, NULL, err) == 0;
		if (!found && is_writable(execution, paths->items[i]))
			return fail_boundary(err, "filesystem");
		if (found && is_writable(execution, place.path) && strings_add(&execution->arena, &input->protect, place.path) < 0)
			return fail_oom(err);
	}
	return 0;
}

/* With all of the host in view: the caller's home like a granted tree, and what is known to hold secrets elsewhere. */
static int mask_whole_view(struct execution *execution, struct profile_input *input, struct cordon_error *err)
{
	struct place home;
	if (input->view != VIEW_HOST_READONLY)
		return 0;
	if (find_home(execution, input->view, &home) && look_at(execution, &home, -1, false, input, err) < 0)
		return -1;
	struct places masks = { 0 };
	if (whole_view_masks(&execution->arena, request_variable(execution->request, "HOME"), &masks) < 0)
		return fail_oom(err);
	for (size_t i = 0; i < masks.count; i++)
		if (!is_granted_socket(execution, masks.items[i].path) && !is_masked(input, masks.items[i].path) &&
		    places_add(&execution->arena, &input->masked, &masks.items[i]) < 0)
			return fail_oom(err);
	return 0;
}

/* ---- toolchains, programs, environment -------------------------------------------------------------------------- */

static int find_toolchains(struct execution *execution, struct profile_input *input, struct strings *environment,
                           struct cordon_error *err)
{
	const struct cordon_request *request = execution->request;
	const struct config *config = execution->session.config;
	bool choose = request->choose_toolchains || config->choose_toolchains;
	const struct strings *chosen = request->choose_toolchains ? &request->toolchains : &config->toolchains;
	struct arena *arena = &execution->arena;
	struct strings writable = { 0 };
	struct host_tools tools;
	if (add_names(arena, &writable, &input->workspace) < 0)
		return fail_oom(err);
	for (size_t i = 0; i < input->writes.count; i++)
		if (add_names(arena, &writable, &input->writes.items[i]) < 0)
			return fail_oom(err);
	const struct host_tools_request wanted = {
		.environment = (const char *const *)request_environment(request), .chosen = choose ? chosen : NULL,
		.writable = &writable, .workspace = input->workspace.path, .inside_home = input->home,
		.tools_dir = config->tools_dir, .only_tools_dir = input->view == VIEW_BARE && !choose,
		.mounts = execution->mounts, .user = execution->profile.facts.uid,
	};
	if (host_tools_find(arena, execution->cordon->tools, &wanted, &tools, err) < 0)
		return -1;
	input->shown = tools.shown;
	input->git_config = tools.git_config;
	*environment = tools.environment;
	for (size_t i = 0; i < tools.masked.count; i++)
		if (places_add(arena, &input->masked, &tools.masked.items[i]) < 0)
			return fail_oom(err);
	return 0;
}

static int find_program_parts(struct execution *execution, struct profile_input *input, struct cordon_error *err)
{
	for (size_t i = 0; i < input->programs.count; i++)
		if (host_program_parts(&execution->arena, input->programs.items[i].path, &input->interpreters, err) < 0)
			return -1;
	return input->programs.count ? host_library_directories(&execution->arena, &input->libraries, err) : 0;
}

static int make_environment(struct execution *execution, const struct strings *toolchains, struct profile_input *input,
                            struct cordon_error *err)
{
	const struct cordon_request *request = execution->request;
	const struct config *config = execution->session.config;
	struct strings pass = { 0 }, set = { 0 };
	if (add_all(&execution->arena, &pass, &config->env_pass) < 0 ||
	    add_all(&execution->arena, &pass, &execution->capability.env_pass) < 0 ||
	    add_all(&execution->arena, &pass, &request->pass_env) < 0 ||
	    add_all(&execution->arena, &set, &config->env_set) < 0 || add_all(&execution->arena, &set, &request->env) < 0)
		return fail_oom(err);
	const struct env_request wanted = {
		.passthrough = &pass, .set = &set, .toolchains = toolchains, .tools_dir = config->tools_dir, .user = input->user,
		.home = input->home, .workspace = input->workspace.path, .session_id = input->session_id,
		.sandbox_id = input->sandbox_id, .driver = execution->session.driver->name,
		.network = network_mode_names[execution->capability.set.network], .tmpdir = input->scratch,
		.proxy = execution->capability.set.network == NETWORK_HOSTS ? EGRESS_PROXY_URL : NULL,
	};
	if (env_build(&execution->arena, request_environment(request), &wanted, &input->environment, err) < 0)
		return -1;
	/* A profile is for people to look at; what was configured or passed on may be a secret. */
	return execution->dry && (env_hide(&execution->arena, &config->env_set, &input->environment, err) < 0 ||
	                          env_hide(&execution->arena, &pass, &input->environment, err) < 0) ? -1 : 0;
}

/* Without a private root there is no private /tmp and no home in memory: one directory of the command's own is both. */
static int make_scratch(struct execution *execution, struct profile_input *input, struct cordon_error *err)
{
	if (execution->session.driver->private_root)
		return 0;
	const char *path = arena_printf(&execution->arena, "%s/scratch/%s", execution->cordon->data_dir, execution->audit.id);
	if (!path)
		return fail_oom(err);
	if (!execution->dry && scratch_make(&execution->arena, execution->cordon->data_dir, execution->audit.id, &path,
	                                    &execution->session.scratch_fd, err) < 0)
		return -1;
	execution->session.scratch = input->scratch = path;
	if (strcmp(input->home, input->workspace.path))
		input->home = input->home_source ? input->home_source : path;
	return 0;
}

/* What was judged is what starts. A script sees the path it was started by: one that was written out is kept as it is
 * (NULL). But a link that the command can write, or that means something else inside, would choose again. */
static const char *judged_program(const struct execution *execution)
{
	const struct place *program = &execution->capability.program, *workspace = &execution->session.workspace;
	const char *alias = program->alias;
	if (alias && (is_writable(execution, alias) || (workspace->alias && path_within(alias, workspace->alias)) ||
	              path_within(alias, "/proc")))
		return program->path;
	if (strchr(execution->request->argv.items[0], '/'))
		return NULL;
	return alias ? alias : program->path;
}

int profile_step(struct execution *execution, struct cordon_error *err)
{
	assert(execution->done == CORDON_STEP_CAPABILITY);
	struct arena *arena = &execution->arena;
	execution->profile.facts = (struct driver_facts){
		.cwd_fd = execution->cwd.fd, .caller_is_root = geteuid() == 0, .uid = geteuid(), .gid = getegid(),
		.landlock_abi = driver_landlock_abi(), .data_dir = execution->cordon->data_dir,
		/* A directory of cordon's own making is the session's alone. */
		.kept_elsewhere = execution->cordon->warm && !execution->session.one_off && !execution->session.record.workspace,
	};
	const struct driver *driver = execution->session.driver;
	bool root = execution->profile.facts.caller_is_root;
	/* Once more: somebody may have been waited for since the walk began. */
	uint64_t mounts = execution->mounts = execute_hear(execution->cordon, true);
	struct strings toolchains = { 0 };
	struct profile_input input = {
		.abilities = { driver->name, driver->private_root, driver->network_namespace,
		               execution->profile.facts.landlock_abi, root },
		.capabilities = &execution->capability.set,
		.view = execution->session.view,
		.session_id = execution->session.id,
		.sandbox_id = execution->audit.id,
		.workspace = execution->session.workspace,
		.reads = execution->capability.reads,
		.writes = execution->capability.writes,
		.devices = execution->capability.devices,
		.sockets = execution->capability.sockets,
		.programs = execution->capability.programs,
		.cwd = execution->cwd.path,
		.home = execution->session.home,
		.home_source = execution->session.home_source,
		.data_dir = execution->cordon->data_dir,
		.user = root ? "user" : host_view_user(arena, execution->cordon->view, mounts, execution->profile.facts.uid),
		.uid = root ? IDMAP_INSIDE : execution->profile.facts.uid,
		.gid = root ? IDMAP_INSIDE : execution->profile.facts.gid,
		.argv = execution->request->argv,
		.program = judged_program(execution),
		.tty = execution->request->tty,
		.required = execution->session.config->required_limits,
		.cgroup = execution->session.config->cgroup,
	};
	if (make_scratch(execution, &input, err) < 0 ||
	    host_base_view(arena, execution->cordon->view, mounts, &input.host, err) < 0 ||
	    find_names(execution, &input, err) < 0 || keep_read_only(execution, &input, err) < 0 ||
	    find_toolchains(execution, &input, &toolchains, err) < 0 ||
	    find_program_parts(execution, &input, err) < 0 || make_environment(execution, &toolchains, &input, err) < 0)
		return -1;
	if (mask_whole_view(execution, &input, err) < 0)
		return -1;
	if (profile_make(arena, &input, &execution->profile.profile) < 0)
		return fail_oom(err);
	if (execution->capability.set.network == NETWORK_HOSTS &&
	    egress_make(arena, &execution->capability.set.hosts, &execution->profile.profile.egress, err) < 0)
		return -1;
#ifdef CORDON_UNWALL
	profile_unwall(&execution->profile.profile, request_variable(execution->request, "CORDON_UNWALL"));
#endif
	execution->done = CORDON_STEP_PROFILE;
	return 0;
}

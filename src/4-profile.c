/* Step 4: the walls as data. Gathers the facts (what the host has, which names must be hidden, which toolchains are
 * there) and hands them to profile/, which makes no system call. */
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "driver/linux/idmap.h"
#include "execute.h"
#include "policy/egress.h"
#include "policy/env.h"
#include "profile/unwall.h"
#include "host/tools.h"
#include "host/view.h"
#include "host/host.h"
#include "session/scratch.h"

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
	if (place_add_names(arena, &writable, &input->workspace) < 0)
		return fail_oom(err);
	for (size_t i = 0; i < input->writes.count; i++)
		if (place_add_names(arena, &writable, &input->writes.items[i]) < 0)
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
		if (!profile_is_own_word(execution, tools.masked.items[i].path) &&
		    places_add(arena, &input->masked, &tools.masked.items[i]) < 0)
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
	if (strings_add_all(&execution->arena, &pass, &config->env_pass) < 0 ||
	    strings_add_all(&execution->arena, &pass, &execution->capability.env_pass) < 0 ||
	    strings_add_all(&execution->arena, &pass, &request->pass_env) < 0 ||
	    strings_add_all(&execution->arena, &set, &config->env_set) < 0 ||
	    strings_add_all(&execution->arena, &set, &request->env) < 0)
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
	if (alias && (profile_is_writable(execution, alias) || (workspace->alias && path_within(alias, workspace->alias)) ||
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
	    host_base_view(arena, execution->cordon->view, &execution->session.config->etc, mounts, &input.host, err) < 0 ||
	    profile_find_names(execution, &input, err) < 0 || profile_keep_read_only(execution, &input, err) < 0 ||
	    own_files_keep(execution, &input, err) < 0 ||
	    find_toolchains(execution, &input, &toolchains, err) < 0 ||
	    find_program_parts(execution, &input, err) < 0 || make_environment(execution, &toolchains, &input, err) < 0)
		return -1;
	if (profile_mask_whole_view(execution, &input, err) < 0)
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

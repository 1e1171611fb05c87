/* Step 4: the walls as data. Gathers the facts (what the host has, which names must be hidden, which toolchains are
 * there) and hands them to profile/, which makes no system call. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "config/store.h"
#include "driver/machine.h"
#include "paths/trees.h"
#include "policy/egress.h"
#include "policy/cover.h"
#include "policy/env.h"
#include "policy/gateway.h"
#include "profile/unwall.h"
#include "host/tools.h"
#include "host/view.h"
#include "host/host.h"
#include "secrets/credential.h"
#include "session/beneath.h"
#include "session/home.h"
#include "session/layers.h"
#include "session/scratch.h"
#include "walk.h"

/* The step in progress. */
struct profiling {
	const struct walk_facts *facts;
	struct walk_held *held;
	const struct verdict *verdict;          /* the parts of steps 1 to 3 */
	uint64_t mounts;                        /* the version of the host's mounts */
};

/* What is written to them goes to the session's layers, or the workspace's; of a one-off to memory. */
static int find_caches(const struct profiling *profiling, const struct host_caches *caches, struct profile_input *input,
                       struct cordon_error *err)
{
	const struct verdict_session *session = &profiling->verdict->session;
	const struct config *config = session->config;
	const struct layers_owner owner = { config->caches == CACHES_OF_WORKSPACE && !session->own_workspace,
		                            config->caches == CACHES_OF_WORKSPACE && !session->own_workspace
		               ? session->workspace.path : session->id };
	if (config->caches == CACHES_OFF || profiling->facts->request->no_caches || !session->driver->layers ||
	    profiling->facts->probe)
		return 0;
	input->caches = *caches;
	if (!caches->count || profiling->facts->dry || (session->one_off && !owner.of_workspace))
		return 0;
	return layers_open(profiling->facts->arena, profiling->facts->cordon->data_dir, &owner, &input->layers,
	                   &profiling->held->layers_fd, err);
}

static int find_toolchains(const struct profiling *profiling, struct profile_input *input, struct strings *environment,
                           struct cordon_error *err)
{
	const struct cordon_request *request = profiling->facts->request;
	const struct config *config = profiling->verdict->session.config;
	bool choose = request->choose_toolchains || config->choose_toolchains;
	const struct strings *chosen = request->choose_toolchains ? &request->toolchains : &config->toolchains;
	struct arena *arena = profiling->facts->arena;
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
		.mounts = profiling->mounts, .user = geteuid(),
	};
	if (host_tools_find(arena, profiling->facts->cordon->tools, &wanted, &tools, err) < 0)
		return -1;
	input->shown = tools.shown;
	input->git_config = tools.git_config;
	input->git_ignore = tools.git_ignore;
	/* A cache is of use where its toolchain is: with none there is none. */
	if (!(choose && !chosen->count) && find_caches(profiling, &tools.caches, input, err) < 0)
		return -1;
	*environment = tools.environment;
	for (size_t i = 0; i < tools.masked.count; i++)
		if (strings_find(&profiling->verdict->grants.by_name, tools.masked.items[i].path) < 0 &&
		    places_add(arena, &input->masked, &tools.masked.items[i]) < 0)
			return fail_oom(err);
	return 0;
}

/* Where a credential is kept nothing of the command's may read it, except if that very file was granted. */
static int mask_credentials(const struct profiling *profiling, struct profile_input *input, struct cordon_error *err)
{
	const struct config *config = profiling->verdict->session.config;
	for (size_t i = 0; i < config->credential_count; i++) {
		struct place place;
		struct cordon_error ignored;
		if (!config->credentials[i].file ||
		    beneath_resolve(profiling->facts->arena, config->credentials[i].file, &place, NULL, &ignored) < 0)
			continue;
		bool is_visible = input->view == VIEW_HOST_READONLY ||
		                  place_is_within(place.path, &input->workspace, &input->reads) ||
		                  place_is_within(place.path, &input->workspace, &input->writes);
		if (is_visible && strings_find(&profiling->verdict->grants.by_name, place.path) < 0 &&
		    places_add(profiling->facts->arena, &input->masked, &place) < 0)
			return fail_oom(err);
	}
	return 0;
}

static int find_program_parts(const struct profiling *profiling, struct profile_input *input, struct cordon_error *err)
{
	for (size_t i = 0; i < input->programs.count; i++)
		if (host_program_parts(profiling->facts->arena, input->programs.items[i].path, &input->interpreters,
		                       err) < 0)
			return -1;
	return input->programs.count ? host_library_directories(profiling->facts->arena, &input->libraries, err) : 0;
}

/* There is a proxy's address inside, be it only to say that there is no network. */
static bool has_proxy(const struct verdict *verdict)
{
	enum network_mode mode = verdict->grants.set.network;
	return mode == NETWORK_HOSTS || (mode == NETWORK_NONE && verdict->session.driver->answers_offline);
}

static bool is_on_loopback(const struct verdict *verdict)
{
	return verdict->grants.set.network == NETWORK_HOSTS && verdict->session.driver->loopback_port;
}

static const char *proxy_url(const struct profiling *profiling)
{
	const struct verdict *verdict = profiling->verdict;
	char text[ADDRESS_TEXT_SIZE];
	if (!has_proxy(verdict))
		return NULL;
	if (is_on_loopback(verdict))
		return EGRESS_LOOPBACK_URL;
	if (verdict->session.one_off || verdict->grants.set.network != NETWORK_HOSTS)
		return EGRESS_PROXY_URL;
	struct address address = egress_command_address(profiling->facts->audit_id);
	address_text(&address, text);
	return arena_printf(profiling->facts->arena, "http://%s:%d", text, EGRESS_PORT);
}

/* Where the gateways are that lead to a host of the command's. What the caller sets itself comes later, and counts. */
static int set_gateways(const struct profiling *profiling, struct strings *set)
{
	const struct config *config = profiling->verdict->session.config;
	const struct capability_set *granted = &profiling->verdict->grants.set;
	struct arena *arena = profiling->facts->arena;
	for (size_t i = 0; granted->network == NETWORK_HOSTS && i < config->gateway_count; i++) {
		const struct gateway *gateway = &config->gateways[i];
		char host[HOST_TEXT_SIZE];
		host_text(&gateway->upstream.host, host);
		if (!cover_host(&granted->hosts, host, false))
			continue;
		if (strings_add(arena, set,
		                arena_printf(arena, "%s=http://127.0.0.1:%zu%s", gateway->base_url, GATEWAY_PORT + i,
		                             gateway->upstream.path)) < 0 ||
		    (gateway->placeholder &&
		     strings_add(arena, set, arena_printf(arena, "%s=" GATEWAY_PLACEHOLDER, gateway->placeholder)) < 0))
			return -1;
	}
	return 0;
}

static int make_environment(const struct profiling *profiling, const struct strings *toolchains,
                            struct profile_input *input, struct cordon_error *err)
{
	const struct cordon_request *request = profiling->facts->request;
	const struct config *config = profiling->verdict->session.config;
	struct strings pass = { 0 }, set = { 0 };
	if (strings_add_all(profiling->facts->arena, &pass, &config->env_pass) < 0 ||
	    strings_add_all(profiling->facts->arena, &pass, &profiling->verdict->grants.env_pass) < 0 ||
	    strings_add_all(profiling->facts->arena, &pass, &request->pass_env) < 0 ||
	    set_gateways(profiling, &set) < 0 || strings_add_all(profiling->facts->arena, &set, &config->env_set) < 0 ||
	    strings_add_all(profiling->facts->arena, &set, &request->env) < 0 ||
	    credentials_set_variables(profiling->facts->arena, profiling->verdict, &set) < 0)
		return fail_oom(err);
	const struct env_request wanted = {
		.passthrough = &pass,
		.set = &set,
		.toolchains = toolchains,
		.tools_dir = config->tools_dir,
		.user = input->user,
		.home = input->home_alias ? input->home_alias : input->home,
		.workspace = input->workspace.path,
		.session_id = input->session_id,
		.sandbox_id = input->sandbox_id,
		.driver = profiling->verdict->session.driver->name,
		.network = network_mode_names[profiling->verdict->grants.set.network],
		.tmpdir = input->scratch,
		.proxy = proxy_url(profiling),
		.proxies_all = is_on_loopback(profiling->verdict),
	};
	if (env_build(profiling->facts->arena, request_environment(request), &wanted, &input->environment, err) < 0)
		return -1;
	/* A profile is for display; values that were configured or passed on may be secrets. */
	return profiling->facts->dry &&
	                       (env_hide(profiling->facts->arena, &config->env_set, &input->environment, err) < 0 ||
	                        env_hide(profiling->facts->arena, &pass, &input->environment, err) < 0) ? -1 : 0;
}

/* Would something be mounted in the session's /tmp? A driver that makes mount points by their paths follows the links
 * there. */
static bool mounts_in_tmp(const struct profile_input *input)
{
	const struct places *const grants[] = { &input->reads, &input->writes, &input->sockets };
	static const char *const roots[] = { "/tmp", "/var/tmp" };
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		if (path_within(input->workspace.path, roots[i]) || path_within(input->home, roots[i]) ||
		    (input->home_alias && path_within(input->home_alias, roots[i])))
			return true;
		for (size_t j = 0; j < ARRAY_SIZE(grants); j++)
			for (size_t k = 0; k < grants[j]->count; k++)
				if (path_within(grants[j]->items[k].path, roots[i]) ||
				    (grants[j]->items[k].alias && path_within(grants[j]->items[k].alias, roots[i])))
					return true;
		for (size_t j = 0; j < input->shown.count; j++)
			if (path_within(input->shown.items[j].path, roots[i]))
				return true;
	}
	return false;
}

static const struct place *choose_tmp(const struct profiling *profiling, const struct profile_input *input)
{
	const struct verdict_session *session = &profiling->verdict->session;
	bool can = session->driver->private_root && (session->driver->keeps_names || !mounts_in_tmp(input));
	return session->tmp.path && can ? &session->tmp : NULL;
}

/* Without a private root there is no private /tmp and no home in memory: one directory, the session's or the command's
 * own, is both. */
static int make_scratch(const struct profiling *profiling, struct profile_input *input, struct cordon_error *err)
{
	if (profiling->verdict->session.driver->private_root)
		return 0;
	const char *tmp = profiling->verdict->session.tmp.path;
	const char *path = tmp ? tmp :
	                         arena_printf(profiling->facts->arena, "%s/scratch/%s",
	                                      profiling->facts->cordon->data_dir, profiling->facts->audit_id);
	if (!path)
		return fail_oom(err);
	if (!tmp && !profiling->facts->dry &&
	    scratch_make(profiling->facts->arena, profiling->facts->cordon->data_dir, profiling->facts->audit_id, &path,
	                 &profiling->held->scratch_fd, err) < 0)
		return -1;
	input->scratch = path;
	if (!tmp)
		profiling->held->scratch = path;
	input->home_alias = NULL;
	if (strcmp(input->home, input->workspace.path))
		input->home = input->home_source ? input->home_source : path;
	return 0;
}

/* What was judged is what starts. A script sees the path it was started by: one that was written out is kept as it is
 * (NULL). But a link that the command can write, or that means something else inside, would choose again. */
static const char *judged_program(const struct profiling *profiling)
{
	const struct place *program = &profiling->verdict->grants.program,
			   *workspace = &profiling->verdict->session.workspace;
	const char *alias = program->alias;
	if (alias && (place_is_within(alias, workspace, &profiling->verdict->grants.writes) ||
	              (workspace->alias && path_within(alias, workspace->alias)) || path_within(alias, "/proc")))
		return program->path;
	if (strchr(profiling->facts->request->argv.items[0], '/'))
		return NULL;
	return alias ? alias : program->path;
}

static uint64_t mounts_now(void *cordon)
{
	return handle_mounts(cordon, true);
}

static struct trees_facts trees_facts(const struct profiling *profiling)
{
	const struct walk_facts *facts = profiling->facts;
	const struct verdict_session *session = &profiling->verdict->session;
	const struct grants *grants = &profiling->verdict->grants;
	const struct config_files *files = config_store_files(facts->cordon->config);
	bool once = (session->one_off && !facts->request->workspace) || !atomic_load(&facts->cordon->stays);
	return (struct trees_facts){
		.data_dir = facts->cordon->data_dir,
		.data_named = facts->cordon->data_named,
		.audit_id = facts->audit_id,
		.session_id = session->one_off ? NULL : session->id,
		.dry = facts->dry,
		.workspace = session->workspace,
		.workspace_fd = session->workspace_fd,
		.own_workspace = session->own_workspace,
		.disposable = profiling->held->disposable,
		.set = &grants->set,
		.reads = grants->reads,
		.writes = grants->writes,
		.sockets = grants->sockets,
		.by_name = &grants->by_name,
		.project_deny = &session->config->project_deny,
		.project_protect = &session->config->project_protect,
		.read_only = &session->config->read_only,
		.config_files = { files->only ? files->only : files->system, files->only ? NULL : files->user },
		.manifest = facts->request->manifest,
		.home = request_variable(facts->request, "HOME"),
		.private_home = session->home,
		.driver = { session->driver->name, session->driver->private_root, session->driver->holds_writes,
		            session->driver->keeps_names },
		/* A directory made for one command is searched once. */
		.memory = once ? NULL : facts->cordon->names,
		.mounts = mounts_now,
		.mounts_arg = facts->cordon,
	};
}

static struct profile_input profile_input(const struct profiling *profiling)
{
	const struct verdict *verdict = profiling->verdict;
	const struct verdict_session *session = &verdict->session;
	const struct cordon *cordon = profiling->facts->cordon;
	const struct cordon_request *request = profiling->facts->request;
	bool root = geteuid() == 0;
	return (struct profile_input){
		.abilities = { session->driver->name, session->driver->private_root, session->driver->network_namespace,
		               driver_landlock_abi(), root },
		.answers_offline = session->driver->answers_offline,
		.capabilities = &verdict->grants.set,
		.view = session->view,
		.session_id = session->id,
		.sandbox_id = profiling->facts->audit_id,
		.workspace = session->workspace,
		.reads = verdict->grants.reads,
		.writes = verdict->grants.writes,
		.devices = verdict->grants.devices,
		.sockets = verdict->grants.sockets,
		.programs = verdict->grants.programs,
		.cwd = verdict->cwd.path,
		.home = session->home,
		.home_source = session->home_source,
		.home_alias = session->home_alias,
		.data_dir = cordon->data_dir,
		.user = root ? "user" :
		               host_view_user(profiling->facts->arena, cordon->view, profiling->mounts, geteuid()),
		.uid = driver_inside_uid(),
		.gid = driver_inside_gid(),
		.argv = request->argv,
		.program = judged_program(profiling),
		.tty = request->tty,
		.required = session->config->required_limits,
		.cgroup = session->config->cgroup,
	};
}

static int keep_search_path(const struct profiling *profiling, struct profile_input *input, struct cordon_error *err)
{
	return strings_add_all(profiling->facts->arena, &input->protect, &profiling->verdict->grants.kept) < 0
	               ? fail_oom(err) : 0;
}

/* Commands have a home of their own where the caller's is: under the name of what was judged there could be another
 * program. */
static int check_program(const struct place *program, const struct profile_input *input, struct cordon_error *err)
{
	const char *path = program->path;
	if (!path || !input->abilities.private_root || !strcmp(input->home, input->workspace.path) ||
	    !path_within(path, input->home))
		return 0;
	bool shown = place_is_within(path, &input->workspace, &input->reads) ||
	             place_is_within(path, &input->workspace, &input->writes);
	for (size_t i = 0; i < input->shown.count; i++)
		shown = shown || path_within(path, input->shown.items[i].path);
	if (shown)
		return 0;
	fail(err, CORDON_E_PROGRAM_NOT_FOUND, 0, path,
	     "the program is in the home directory, of which commands see nothing that is not granted");
	fail_boundary(err, "filesystem");
	fail_grant(err, "read", path);
	return fail_remedy(err, "grant it: --read %s", path);
}

static int add_home_links(struct arena *arena, const struct places *grants, struct places *points)
{
	for (size_t i = 0; i < grants->count; i++) {
		const struct place link = { .path = grants->items[i].alias, .alias = grants->items[i].path };
		if (link.path && places_add(arena, points, &link) < 0)
			return -1;
	}
	return 0;
}

/* Is it mounted in something else that is mounted beneath `root`? */
static bool is_nested(const struct mount_plan *plan, size_t at, const char *root)
{
	for (size_t i = 0; i < at; i++) {
		const struct mount_op *op = &plan->ops[i];
		if ((op->kind == MOUNT_BIND || op->kind == MOUNT_SCRATCH) && path_within(op->target, root) &&
		    strcmp(op->target, root) && path_within(plan->ops[at].target, op->target))
			return true;
	}
	return false;
}

/* In a directory of the session's that is on disk, and that commands have written to: its home, its /tmp. */
static int make_points(const struct profiling *profiling, const struct profile_input *input,
                       const struct mount_plan *plan, int root_fd, const char *root, struct cordon_error *err)
{
	struct arena *arena = profiling->facts->arena;
	struct place workspace = input->workspace, home = { .path = input->home, .alias = input->home_alias };
	const struct places named = { &workspace, 1, 1 }, homes = { &home, 1, 1 };
	struct places points = { 0 };
	struct stat info;
	if (profiling->facts->dry || root_fd < 0 || !input->abilities.private_root)
		return 0;
	for (size_t i = 0; i < plan->count; i++) {
		const struct mount_op *op = &plan->ops[i];
		if ((op->kind != MOUNT_BIND && op->kind != MOUNT_LAYER) || !path_within(op->target, root) ||
		    !strcmp(op->target, root) || is_nested(plan, i, root) || lstat(op->source, &info) < 0)
			continue;
		const struct place point = { .path = op->target, .is_directory = S_ISDIR(info.st_mode) };
		if (places_add(arena, &points, &point) < 0)
			return fail_oom(err);
	}
	if (add_home_links(arena, &named, &points) < 0 || add_home_links(arena, &input->reads, &points) < 0 ||
	    add_home_links(arena, &input->writes, &points) < 0 ||
	    (strcmp(root, input->home) && add_home_links(arena, &homes, &points) < 0))
		return fail_oom(err);
	return home_make_points(root_fd, root, &points, err);
}

/* In a workspace that is the home. */
static int make_cache_points(const struct profiling *profiling, const struct profile_input *input,
                             struct cordon_error *err)
{
	const char *root = input->workspace.path;
	int fd = profiling->verdict->session.workspace_fd;
	struct places points = { 0 };
	if (profiling->facts->dry || fd < 0 || strcmp(input->home, root))
		return 0;
	for (size_t i = 0; i < input->caches.count; i++) {
		const struct place point = { .path = input->caches.items[i].target, .is_directory = true };
		if (places_add(profiling->facts->arena, &points, &point) < 0)
			return fail_oom(err);
	}
	return home_make_points(fd, root, &points, err);
}

static int make_all_points(const struct profiling *profiling, const struct profile_input *input,
                           const struct mount_plan *plan, struct cordon_error *err)
{
	int tmp_fd = input->tmp ? profiling->held->tmp_fd : -1;
	return make_cache_points(profiling, input, err) < 0 ||
	       make_points(profiling, input, plan, profiling->held->home_fd, input->home, err) < 0 ||
	       make_points(profiling, input, plan, tmp_fd, "/tmp", err) < 0 ||
	       make_points(profiling, input, plan, tmp_fd, "/var/tmp", err) < 0 ? -1 : 0;
}

int profile_step(const struct walk_facts *facts, struct walk_held *held, const struct verdict *verdict,
                 struct trees **ret_trees, struct profile *ret, struct cordon_error *err)
{
	/* A human may have been waited for since step 1: what is mounted now counts. */
	const struct profiling profiling = { facts, held, verdict, handle_mounts(facts->cordon, true) };
	struct arena *arena = facts->arena;
	struct strings toolchains = { 0 };
	struct profile_input input = profile_input(&profiling);
	struct trees *trees = arena_alloc(arena, sizeof(*trees));
	if (!trees)
		return fail_oom(err);
	*trees = (struct trees){ .facts = trees_facts(&profiling),
		                 .arena = arena,
		                 .denials = facts->denials,
		                 .names.fd = -1,
		                 .mounts = profiling.mounts };
	*ret_trees = trees;
	if (make_scratch(&profiling, &input, err) < 0 ||
	    host_base_view(arena, facts->cordon->view, &verdict->session.config->etc, profiling.mounts, &input.host,
	                   err) < 0 ||
	    trees_find(trees, &input, err) < 0 || trees_keep_read_only(trees, &input, err) < 0 ||
	    keep_search_path(&profiling, &input, err) < 0 || own_files_keep(trees, &input, err) < 0 ||
	    find_toolchains(&profiling, &input, &toolchains, err) < 0 ||
	    mask_credentials(&profiling, &input, err) < 0 || find_program_parts(&profiling, &input, err) < 0 ||
	    make_environment(&profiling, &toolchains, &input, err) < 0 ||
	    trees_mask_whole_view(trees, &input, err) < 0 || check_program(&verdict->grants.program, &input, err) < 0)
		return -1;
	input.tmp = choose_tmp(&profiling, &input);
	if (profile_make(arena, &input, ret) < 0)
		return fail_oom(err);
	if (make_all_points(&profiling, &input, &ret->mounts, err) < 0)
		return -1;
	/* Of a one-off it is known whose a connection is. */
	if (verdict->grants.set.network == NETWORK_HOSTS ?
	    egress_make(arena, &verdict->grants.set.hosts, &ret->egress, err) < 0 :
	    has_proxy(verdict) && egress_make_offline(arena, &ret->egress, err) < 0)
		return -1;
	if (is_on_loopback(verdict))
		egress_on_loopback(&ret->egress);
	if (verdict->grants.set.network == NETWORK_HOSTS &&
	    egress_add_gateways(arena, &verdict->grants.set.hosts, verdict->session.config->gateways,
	                        verdict->session.config->gateway_count, &ret->egress) < 0)
		return fail_oom(err);
	if (!verdict->session.one_off && verdict->grants.set.network == NETWORK_HOSTS && !is_on_loopback(verdict))
		egress_share(&ret->egress);
#ifdef CORDON_UNWALL
	profile_unwall(ret, request_variable(facts->request, "CORDON_UNWALL"));
#endif
	return 0;
}

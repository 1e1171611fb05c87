/* Step 3: what the command may reach: the session's baseline, and what the request asks for on top. A one-off has what
 * it asks for, since the caller is the one to grant it; in a session it must be authorized (approval/authorize.h).
 * Each path is resolved here, once; what it was at this moment is checked again when it is mounted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "approval/authorize.h"
#include "base/text.h"
#include "config/groups.h"
#include "config/manifest.h"
#include "driver/machine.h"
#include "host/kernel-mounts.h"
#include "host/plain-limits.h"
#include "paths/index/globs.h"
#include "host/search-path.h"
#include "session/beneath.h"
#include "session/jobs.h"
#include "session/registry.h"
#include "session/workspace.h"
#include "walk.h"

/* The step in progress. */
struct deciding {
	const struct walk_facts *facts;
	const struct verdict_session *session;
	struct authorize_facts authorize;
	struct grants *grants;                  /* filled as far as it is known */
};

static int resolve_all(const struct deciding *deciding, const struct strings *paths, struct places *ret_places,
                       struct cordon_error *err)
{
	struct places places = { .capacity = paths->count };
	places.items = arena_alloc(deciding->facts->arena, (paths->count + 1) * sizeof(*places.items));
	if (!places.items)
		return fail_oom(err);
	for (size_t i = 0; i < paths->count; i++)
		if (beneath_resolve(deciding->facts->arena, paths->items[i], &places.items[places.count++], NULL, err) <
		    0) {
			fail_boundary(err, "filesystem");
			return -1;
		}
	*ret_places = places;
	return 0;
}

/* `fd` is what is there, where that is open already; or -1. */
static int refuse_kernel(const char *path, int fd, struct cordon_error *err)
{
	if (driver_groups_show(path, fd)) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, path,
		     "control groups cannot be granted: they hold the limits");
		return fail_boundary(err, "cgroup_view");
	}
	const char *type = NULL;
	int known = kernel_mounts_beneath(path, &type);
	if (known < 0) {
		fail(err, CORDON_E_CAPABILITY_DENIED, -known, path,
		     "the table of mounts cannot be read, so what is granted with it is unknown");
		return fail_boundary(err, "kernel_surface");
	}
	if (!type)
		return 0;
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "a kernel filesystem is mounted in it: %s", type);
	fail_boundary(err, strncmp(type, "cgroup", strlen("cgroup")) ? "kernel_surface" : "cgroup_view");
	return fail_remedy(err, "grant what is beside it, or unmount it: see findmnt");
}

/* What must never be granted whole, because the walls are made of it or hide it. */
static int refuse_places(const struct deciding *deciding, const struct places *places, struct cordon_error *err)
{
	static const char *const refused[] = { "/", "/proc", "/dev", "/sys", "/run" };
	for (size_t i = 0; i < places->count; i++) {
		const char *path = places->items[i].path;
		for (size_t j = 0; j < ARRAY_SIZE(refused); j++)
			if (!strcmp(path, refused[j])) {
				fail(err, CORDON_E_CAPABILITY_DENIED, 0, path,
				     "this path cannot be granted as a whole");
				fail_boundary(err, "filesystem");
				return fail_remedy(
					err, "grant what is needed inside it, or see --view, --device and --socket");
			}
		if (refuse_kernel(path, -1, err) < 0)
			return -1;
		bool own = path_within(path, deciding->session->workspace.path);
		if (!own && path_within(path, deciding->facts->cordon->data_dir)) {
			fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "cordon's own data cannot be granted");
			return fail_boundary(err, "filesystem");
		}
		if (!own && workspace_refuse_among(deciding->facts->arena, path,
		                                   deciding->session->config->workspace_root, err) < 0)
			return -1;
	}
	return 0;
}

/* Does one of these directories lie in something the command can write, out of which the path then leads? */
static bool leads_out(const struct deciding *deciding, const struct strings *directories, const char *path)
{
	const struct places *writes = &deciding->grants->writes;
	const struct place *root = &deciding->session->workspace;
	for (size_t i = 0; i <= writes->count; root = &writes->items[i++])
		for (size_t j = 0; j < directories->count; j++)
			if (path_within(directories->items[j], root->path) && !path_within(path, root->path))
				return true;
	return false;
}

/* What is in a writable root is the command's own doing: a link there, whatever led to it, must not choose what a
 * person grants. */
static int refuse_planted_links(const struct deciding *deciding, const struct strings *paths,
                                const struct places *places, struct cordon_error *err)
{
	for (size_t i = 0; i < places->count; i++) {
		const struct place *place = &places->items[i];
		struct strings directories;
		int known = place->alias
		               ? beneath_links(deciding->facts->arena, paths->items[i], place->path, &directories) : 0;
		if (known == -ENOMEM)
			return fail_oom(err);
		if (!place->alias || (known == 0 && !leads_out(deciding, &directories, place->path)))
			continue;
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, place->alias,
		     known < 0 ? "the symbolic links on this path change while it is looked at"
		               : "a symbolic link in what the command can write leads this path out of it");
		fail_boundary(err, "filesystem");
		return fail_remedy(err, "if it is meant, grant what the link leads to by its own name");
	}
	return 0;
}

static int require_kind(const struct places *places, mode_t kinds, const char *what, struct cordon_error *err)
{
	for (size_t i = 0; i < places->count; i++) {
		struct stat info;
		if (stat(places->items[i].path, &info) == 0 && (info.st_mode & S_IFMT) != kinds &&
		    !(kinds == S_IFCHR &&
		      (S_ISBLK(info.st_mode) || (S_ISDIR(info.st_mode) && path_within(places->items[i].path, "/dev")))))
			return fail(err, CORDON_E_INVALID_REQUEST, 0, places->items[i].path, "this is not %s", what);
	}
	return 0;
}

static int refuse_on_path(const struct deciding *deciding, const struct place *root, struct cordon_error *err)
{
	const bool own = root == &deciding->session->workspace;
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, root->path,
	     own ? "a directory of PATH cannot be the workspace: what lies there runs outside"
	         : "a directory of PATH cannot be granted to be written: what lies there runs outside");
	fail_boundary(err, "filesystem");
	return fail_remedy(err,
	                   own ? "choose the directory around it, in which it stays as it is, or leave it out of PATH"
	                       : "grant it to be read, or another directory to be written");
}

static int refuse_link_on_path(const struct place *root, struct cordon_error *err)
{
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, root->path,
	     "a symbolic link directly in it is on PATH: a command could replace it, and what it leads to runs "
	     "outside");
	fail_boundary(err, "filesystem");
	return fail_remedy(err, "put what the link leads to on PATH");
}

/* Only mounts take away beneath what was given. A driver that holds no writes at all has nothing to lose by it. */
static int require_kept(const struct deciding *deciding, const char *directory, struct cordon_error *err)
{
	const struct driver *driver = deciding->session->driver;
	if (!driver || driver->keeps_names || !driver->holds_writes)
		return 0;
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, directory,
	     "the driver %s cannot keep this directory of PATH read-only in what was granted", driver->name);
	fail_boundary(err, "filesystem");
	return fail_remedy(err, "grant a narrower directory, or choose --driver namespaces");
}

static int keep_directory(const struct deciding *deciding, const char *directory, struct cordon_error *err)
{
	if (strings_find(&deciding->grants->kept, directory) >= 0)
		return 0;
	if (require_kept(deciding, directory, err) < 0)
		return -1;
	return strings_add(deciding->facts->arena, &deciding->grants->kept, directory) < 0 ? fail_oom(err) : 0;
}

/* Of the workspace, what lies in a directory of PATH without being it is not found there. */
static int keep_beneath(const struct deciding *deciding, const struct place *root, const struct strings *directories,
                        const struct strings *links, struct cordon_error *err)
{
	const bool own = root == &deciding->session->workspace;
	for (size_t i = 0; i < directories->count; i++) {
		const char *directory = directories->items[i];
		if (own ? !strcmp(root->path, directory) : path_within(root->path, directory))
			return refuse_on_path(deciding, root, err);
		if (path_within(directory, root->path) &&
		    !(path_within(directory, deciding->session->workspace.path) &&
		      search_path_is_of_packages(directory)) &&
		    keep_directory(deciding, directory, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < links->count; i++) {
		if (!strcmp(links->items[i], root->path))
			return refuse_link_on_path(root, err);
		if (path_within(links->items[i], root->path) && keep_directory(deciding, links->items[i], err) < 0)
			return -1;
	}
	return 0;
}

/* What lies on the host's PATH runs there when a person types its name. */
static int keep_search_path(const struct deciding *deciding, struct cordon_error *err)
{
	const struct places *writes = &deciding->grants->writes;
	const char *path = request_variable(deciding->facts->request, "PATH");
	struct strings directories, links;
	int known = search_path_directories(deciding->facts->arena, path ? path : getenv("PATH"), &directories, &links);
	if (known == -ENOMEM)
		return fail_oom(err);
	if (known < 0) {
		fail(err, CORDON_E_CAPABILITY_DENIED, -known, "PATH",
		     "the symbolic links on it change while it is looked at");
		return fail_boundary(err, "filesystem");
	}
	if (deciding->session->driver && !deciding->session->driver->holds_writes)
		return 0;
	if (keep_beneath(deciding, &deciding->session->workspace, &directories, &links, err) < 0)
		return -1;
	for (size_t i = 0; i < writes->count; i++)
		if (keep_beneath(deciding, &writes->items[i], &directories, &links, err) < 0)
			return -1;
	return 0;
}

static int resolve(const struct deciding *deciding, struct cordon_error *err)
{
	const struct capability_set *set = &deciding->grants->set;
	if (resolve_all(deciding, &set->fs_read, &deciding->grants->reads, err) < 0 ||
	    resolve_all(deciding, &set->fs_write, &deciding->grants->writes, err) < 0 ||
	    resolve_all(deciding, &set->devices, &deciding->grants->devices, err) < 0 ||
	    resolve_all(deciding, &set->sockets, &deciding->grants->sockets, err) < 0 ||
	    resolve_all(deciding, &set->programs, &deciding->grants->programs, err) < 0)
		return -1;
	if (refuse_kernel(deciding->session->workspace.path, deciding->session->workspace_fd, err) < 0 ||
	    refuse_places(deciding, &deciding->grants->reads, err) < 0 ||
	    refuse_places(deciding, &deciding->grants->writes, err) < 0 ||
	    refuse_places(deciding, &deciding->grants->devices, err) < 0 ||
	    refuse_places(deciding, &deciding->grants->sockets, err) < 0 ||
	    refuse_planted_links(deciding, &set->fs_read, &deciding->grants->reads, err) < 0 ||
	    refuse_planted_links(deciding, &set->fs_write, &deciding->grants->writes, err) < 0 ||
	    refuse_planted_links(deciding, &set->programs, &deciding->grants->programs, err) < 0 ||
	    refuse_planted_links(deciding, &set->devices, &deciding->grants->devices, err) < 0 ||
	    refuse_planted_links(deciding, &set->sockets, &deciding->grants->sockets, err) < 0 ||
	    keep_search_path(deciding, err) < 0 ||
	    by_name_refuse_protected(&deciding->authorize, deciding->grants, err) < 0 ||
	    require_kind(&deciding->grants->devices, S_IFCHR, "a device", err) < 0 ||
	    require_kind(&deciding->grants->sockets, S_IFSOCK, "a unix socket", err) < 0 ||
	    require_kind(&deciding->grants->programs, S_IFREG, "a program", err) < 0)
		return -1;
	return 0;
}

/* What a file of the configuration sets counts here, too. */
static void use_plain_limits(const struct deciding *deciding, struct limits *ret_limits)
{
	struct capability_set set = { 0 };
	plain_limits(deciding->session->workspace_fd, &set.limits);
	capability_choose_limits(&set, &deciding->session->config->chosen);
	*ret_limits = set.limits;
}

static bool is_as_approved(const struct session_grant *grant, const struct place *place)
{
	for (size_t i = 0; i < grant->places.count; i++) {
		const struct place *was = &grant->places.items[i];
		if (!strcmp(was->path, place->path) && was->device == place->device && was->inode == place->inode)
			return true;
	}
	return false;
}

/* Those of `paths` that are still what was approved. What is hidden by its name is for the commands that name it. */
static int add_approved(const struct deciding *deciding, const struct session_grant *grant, const struct strings *paths,
                        const struct names_globs *hidden, struct strings *ret_paths)
{
	struct place place;
	for (size_t i = 0; i < paths->count; i++)
		if (beneath_resolve(deciding->facts->arena, paths->items[i], &place, NULL, NULL) == 0 &&
		    is_as_approved(grant, &place) && !names_globs_hide(hidden, "/", place.path) &&
		    strings_add(deciding->facts->arena, ret_paths, place.path) < 0)
			return -1;
	return 0;
}

/* What a human approved for the session is what all its later commands have, without asking for it. Limits are not:
 * they were approved for one kind of command. */
static int add_session_grants(const struct deciding *deciding, struct capability_set *set, struct cordon_error *err)
{
	const struct session_record *record = deciding->session->record;
	const struct name_rules rules = { &set->deny, NULL, NULL };
	struct names_globs hidden;
	if (record->grant_count && names_globs_compile(deciding->facts->arena, "/", &rules, &hidden, err) < 0)
		return -1;
	for (size_t i = 0; i < record->grant_count; i++) {
		const struct session_grant *grant = &record->grants[i];
		struct capability_set more = { .network = grant->set.network, .hosts = grant->set.hosts,
		                               .publish = grant->set.publish };
		if (add_approved(deciding, grant, &grant->set.fs_read, &hidden, &more.fs_read) < 0 ||
		    add_approved(deciding, grant, &grant->set.fs_write, &hidden, &more.fs_write) < 0 ||
		    add_approved(deciding, grant, &grant->set.devices, &hidden, &more.devices) < 0 ||
		    add_approved(deciding, grant, &grant->set.sockets, &hidden, &more.sockets) < 0 ||
		    capability_merge(deciding->facts->arena, set, &more, set) < 0)
			return fail_oom(err);
	}
	return 0;
}

/* What the configuration gives, what the session was given on top when it was made, and what was approved for it
 * since. */
static int find_baseline(const struct deciding *deciding, struct capability_set *ret_set, struct cordon_error *err)
{
	const struct session_record *record = deciding->session->record;
	struct capability_set set = deciding->session->config->baseline;
	bool spawn = set.spawn && !deciding->facts->request->no_spawn;
	if (record->has_baseline) {
		spawn = spawn && record->baseline.spawn;
		if (capability_merge(deciding->facts->arena, &set, &record->baseline, &set) < 0)
			return fail_oom(err);
	}
	if (add_session_grants(deciding, &set, err) < 0)
		return -1;
	set.spawn = spawn;
	if (deciding->facts->request->plain && deciding->session->one_off)
		use_plain_limits(deciding, &set.limits);
	/* A job may take longer without approval. */
	uint64_t job_ms = deciding->session->config->usual.job_ms;
	if (deciding->facts->request->job && set.limits.wall_ms && (!job_ms || set.limits.wall_ms < job_ms))
		set.limits.wall_ms = job_ms;
	*ret_set = set;
	return 0;
}

/* The path that a file tool needs: itself, or its directory where there may be nothing yet. NULL: it is in the
 * workspace. */
static int tool_path(const struct deciding *deciding, const char *given, const char **ret_path,
                     struct cordon_error *err)
{
	struct arena *arena = deciding->facts->arena;
	const struct place *workspace = &deciding->session->workspace;
	const char *joined = *given == '/' ? given : arena_printf(arena, "%s/%s", deciding->authorize.about.cwd, given);
	const char *path = joined ? path_normalise(arena, joined) : NULL;
	struct place place;
	*ret_path = NULL;
	if (!path)
		return fail_oom(err);
	if (path_within(path, workspace->path) || (workspace->alias && path_within(path, workspace->alias)))
		return 0;
	const char *slash = strrchr(path, '/');
	if (deciding->facts->tool->may_miss && slash > path && beneath_resolve(arena, path, &place, NULL, NULL) < 0)
		path = arena_strndup(arena, path, (size_t)(slash - path));
	*ret_path = path;
	return path ? 0 : fail_oom(err);
}

static int add_tool_paths(const struct deciding *deciding, struct capability_set *set, struct cordon_error *err)
{
	const struct walk_tool *tool = deciding->facts->tool;
	struct capability_set wanted = { 0 };
	/* Naming a path is not granting it: a one-off has what its other settings say. */
	if (deciding->session->one_off)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(tool->paths) && tool->paths[i]; i++) {
		const char *path;
		if (tool_path(deciding, tool->paths[i], &path, err) < 0)
			return -1;
		if (path && text_has_control(path))
			return fail(err, CORDON_E_INVALID_REQUEST, 0, tool->paths[i],
			            "the path has a control character in it");
		if (path && strings_add(deciding->facts->arena,
		                        tool->writes && (i || !tool->reads_first) ? &wanted.fs_write : &wanted.fs_read,
		                        path) < 0)
			return fail_oom(err);
	}
	return capability_merge(deciding->facts->arena, set, &wanted, set) < 0 ? fail_oom(err) : 0;
}

int capability_granted(const struct cordon_request *request, const struct config *config, struct arena *arena,
                       struct capability_set *ret_set, struct cordon_error *err)
{
	const struct group_facts facts = { arena, config, request_variable(request, "HOME"),
		                           request_environment(request) };
	struct capability_set set = request->granted;
	struct strings hosts = { 0 };
	if (request->groups.count) {
		if (strings_add_all(arena, &hosts, &set.hosts) < 0)
			return fail_oom(err);
		if (groups_expand(&facts, &request->groups, &hosts, err) < 0)
			return -1;
		set.hosts = hosts;
	}
	*ret_set = set;
	return 0;
}

/* The request's own, and what the manifest it names declares for the command, if that is one it describes. */
static int find_asked(const struct deciding *deciding, struct capability_set *ret_set, struct cordon_error *err)
{
	const struct cordon_request *request = deciding->facts->request;
	struct arena *arena = deciding->facts->arena;
	struct manifest manifest;
	struct capability_set granted;
	if (capability_granted(request, deciding->session->config, arena, &granted, err) < 0)
		return -1;
	*ret_set = granted;
	if (deciding->facts->tool)
		return add_tool_paths(deciding, ret_set, err);
	if (!request->manifest)
		return 0;
	if (manifest_read(arena, request->manifest, request_variable(request, "HOME"), &manifest, err) < 0)
		return -1;
	const struct place *program = &deciding->grants->program;
	const char *name = request->argv.items[0];
	bool found;
	if (authorize_program(&deciding->authorize, deciding->grants, &found, err) < 0)
		return -1;
	if (found)
		name = program->alias ? program->alias : program->path;
	if (manifest_match(&manifest, name, &request->argv, err) < 0)
		return -1;
	deciding->grants->env_pass = manifest.env_pass;
	return capability_merge(arena, &manifest.set, &granted, ret_set) < 0 ? fail_oom(err) : 0;
}

static uint64_t either(uint64_t named, uint64_t otherwise)
{
	return named ? named : otherwise;
}

/* What a command has that asks for nothing of its own may be less than what it might ask for. What was named when its
 * session was made is what that one's commands have. */
static void use_usual_limits(const struct deciding *deciding, const struct limits *asked)
{
	const struct session_record *record = deciding->session->record;
	const struct limits own = record->has_baseline ? record->baseline.limits : (struct limits){ 0 };
	const struct config *config = deciding->session->config;
	struct limits *limits = &deciding->grants->set.limits;
	const struct {
		uint64_t asked, usual, *limit;
	} rows[] = {
		{ asked->wall_ms,
		  deciding->facts->request->job ? config->usual.job_ms : either(own.wall_ms, config->usual.wall_ms),
		  &limits->wall_ms },
		{ asked->stdout_bytes, either(own.stdout_bytes, config->usual.stdout_bytes), &limits->stdout_bytes },
		{ asked->stderr_bytes, either(own.stderr_bytes, config->usual.stderr_bytes), &limits->stderr_bytes },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!rows[i].asked && rows[i].usual && (!*rows[i].limit || rows[i].usual < *rows[i].limit))
			*rows[i].limit = rows[i].usual;
}

/* What was said on purpose takes away what the baseline has: no network, or these hosts instead of all. */
static void narrow_network(const struct deciding *deciding, const struct capability_set *asked)
{
	struct capability_set *set = &deciding->grants->set;
	if (deciding->facts->request->no_network) {
		set->network = NETWORK_NONE;
		set->hosts = (struct strings){ 0 };
	} else if (asked->network == NETWORK_HOSTS && set->network == NETWORK_ALL) {
		set->network = NETWORK_HOSTS;
		set->hosts = asked->hosts;
	}
}

/* In a session a human may be asked about a host that was not granted, while the connection waits. */
static int prepare_host_question(const struct deciding *deciding, struct cordon_error *err)
{
	/* The approver of the request need not be there any more while a job runs. */
	const struct approver *approver = deciding->facts->request->job ? &deciding->facts->cordon->approver
	                                                                : deciding->authorize.about.approver;
	const struct config *config = deciding->session->config;
	bool reachable = approver_fn(approver, config) || config->approval.queue;
	if (deciding->session->one_off || deciding->facts->dry || deciding->grants->set.network != NETWORK_HOSTS ||
	    !reachable)
		return 0;
	struct gate_question *question = arena_alloc(deciding->facts->arena, sizeof(*question));
	if (!question)
		return fail_oom(err);
	if (authorize_question(&deciding->authorize, deciding->grants, question, err) < 0)
		return -1;
	question->ceiling = &deciding->grants->set;
	question->approver = approver;
	deciding->grants->host_question = question;
	return 0;
}

/* A person at the command line may say where a host is, an agent that asks in its session may not. */
static int check_private_hosts(const struct deciding *deciding, struct cordon_error *err)
{
	const struct strings *hosts = &deciding->facts->request->private_hosts;
	if (!hosts->count || deciding->session->one_off)
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, hosts->items[0], "a session cannot ask for a host at a private address");
	fail_boundary(err, "network");
	return fail_remedy(err, "write network.private_hosts = [\"%s\"] into your configuration", hosts->items[0]);
}

/* Only where the sandbox has a network of its own that a process of cordon's can be put into. */
static int check_publish(const struct deciding *deciding, struct cordon_error *err)
{
	const struct capability_set *set = &deciding->grants->set;
	const struct driver *driver = deciding->session->driver;
	if (!set->publish.count)
		return 0;
	if (set->network == NETWORK_ALL) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, set->publish.items[0],
		     "there is nothing to publish: with the network of this machine, "
		     "a program's ports are this machine's");
		fail_boundary(err, "network");
		return fail_remedy(err, "leave out --publish, or --net all");
	}
	if (driver->network)
		return 0;
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, set->publish.items[0], "the driver %s cannot publish ports",
	     driver->name);
	fail_boundary(err, "network");
	return fail_remedy(err, "choose --driver namespaces");
}

/* Found by cordon, not asked for: it is the rest of what the caller named as the workspace. */
static int add_git_common(const struct deciding *deciding, struct cordon_error *err)
{
	struct place common = deciding->session->git_common;
	const struct places places = { &common, 1, 1 };
	if (!common.path)
		return 0;
	if (refuse_places(deciding, &places, err) < 0)
		return -1;
	return places_add(deciding->facts->arena, &deciding->grants->writes, &common) < 0 ? fail_oom(err) : 0;
}

/* Credentials are for a program, so that one must be known. */
static int choose_credentials(const struct deciding *deciding, struct cordon_error *err)
{
	bool found;
	if (deciding->facts->tool || deciding->facts->probe || !credentials_are_configured(deciding->session->config))
		return 0;
	return authorize_program(&deciding->authorize, deciding->grants, &found, err) < 0 ? -1 :
	       credentials_choose(deciding->facts, deciding->session, deciding->grants, err);
}

static struct authorize_facts authorize_facts(const struct walk_facts *facts, const struct walk_held *held,
                                              const struct verdict *verdict)
{
	const struct cordon_request *request = facts->request;
	const struct verdict_session *session = &verdict->session;
	return (struct authorize_facts){
		.arena = facts->arena, .dry = facts->dry, .one_off = session->one_off, .record = session->record,
		.config = session->config, .workspace = &session->workspace, .requested = &request->granted,
		.holds_writes = session->driver->holds_writes, .environment = request_environment(request),
		.pass_env = &request->pass_env,
		.file = !facts->tool ? NULL : facts->tool->paths[0] ? facts->tool->paths[0] : facts->tool->name,
		.about = {
			.session_id = session->id, .audit_id = facts->audit_id, .tool = facts->tool ? facts->tool->name : "run", .argv = &request->argv,
			.cwd = verdict->cwd.path, .env = request->env, .for_session = facts->tool && facts->tool->for_session,
			.approver = walk_approver(facts->cordon, request),
			/* Any message to a job before it runs means that it is to end. */
			.ended_fd = held->job ? held->job->control_fd : -1,
		},
	};
}

int capability_question(const struct walk_facts *facts, const struct walk_held *held, const struct verdict *verdict,
                        struct gate_question *ret_question, struct cordon_error *err)
{
	const struct authorize_facts authorize = authorize_facts(facts, held, verdict);
	struct grants grants = verdict->grants;
	return authorize_question(&authorize, &grants, ret_question, err);
}

int capability_step(const struct walk_facts *facts, const struct walk_held *held, const struct verdict *verdict,
                    struct grants *ret, bool *ret_asked, struct cordon_error *err)
{
	const struct deciding deciding = { facts, &verdict->session, authorize_facts(facts, held, verdict), ret };
	const struct gate gate = handle_gate(facts->cordon);
	struct capability_set baseline, asked;
	*ret = (struct grants){ 0 };
	*ret_asked = false;
	if (check_private_hosts(&deciding, err) < 0 || find_baseline(&deciding, &baseline, err) < 0 ||
	    find_asked(&deciding, &asked, err) < 0)
		return -1;
	if (capability_merge(facts->arena, &baseline, &asked, &ret->set) < 0)
		return fail_oom(err);
	narrow_network(&deciding, &asked);
	if (!facts->request->plain)
		use_usual_limits(&deciding, &asked.limits);
	return check_publish(&deciding, err) < 0 || resolve(&deciding, err) < 0 ||
	       authorize(&deciding.authorize, &gate, ret, &baseline, ret_asked, err) < 0 ||
	       add_git_common(&deciding, err) < 0 || choose_credentials(&deciding, err) < 0 ||
	       prepare_host_question(&deciding, err) < 0 ? -1 : 0;
}

/* Step 3: what the command may reach: the session's baseline, and what the request asks for on top. A one-off has what
 * it asks for, since whoever makes the request is the one to grant it; in a session it must be permitted (permit.c).
 * Each path is resolved here, once; what it was at this moment is checked again when it is mounted. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "execute.h"
#include "permit.h"
#include "config/manifest.h"
#include "driver/linux/kernel-mounts.h"
#include "host/plain-limits.h"
#include "session/beneath.h"
#include "session/workspace.h"

static int resolve_all(struct execution *execution, const struct strings *paths, struct places *ret_places,
                       struct cordon_error *err)
{
	struct places places = { .capacity = paths->count };
	places.items = arena_alloc(&execution->arena, (paths->count + 1) * sizeof(*places.items));
	if (!places.items)
		return fail_oom(err);
	for (size_t i = 0; i < paths->count; i++)
		if (beneath_resolve(&execution->arena, paths->items[i], &places.items[places.count++], NULL, err) < 0) {
			fail_boundary(err, "filesystem");
			return -1;
		}
	*ret_places = places;
	return 0;
}

/* `fd` is what is there, where that is open already; or -1. */
static int refuse_kernel(const char *path, int fd, struct cordon_error *err)
{
	if (cgroup_shows(path, fd)) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "control groups cannot be granted: they hold the limits");
		return fail_boundary(err, "cgroup_view");
	}
	const char *type = kernel_mounts_beneath(path);
	if (!type)
		return 0;
	fail(err, CORDON_E_CAPABILITY_DENIED, errno, path, "a filesystem by which the kernel is steered is mounted in it: %s", type);
	fail_boundary(err, strncmp(type, "cgroup", strlen("cgroup")) ? "kernel_surface" : "cgroup_view");
	return fail_remedy(err, "grant what is beside it, or unmount it: see findmnt");
}

/* What must never be granted whole, because the walls are made of it or hide it. */
static int refuse_places(struct execution *execution, const struct places *places, struct cordon_error *err)
{
	static const char *const refused[] = { "/", "/proc", "/dev", "/sys", "/run" };
	for (size_t i = 0; i < places->count; i++) {
		const char *path = places->items[i].path;
		for (size_t j = 0; j < ARRAY_SIZE(refused); j++)
			if (!strcmp(path, refused[j])) {
				fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "this path cannot be granted as a whole");
				fail_boundary(err, "filesystem");
				return fail_remedy(err, "grant what is needed inside it, or see --view, --device and --socket");
			}
		if (refuse_kernel(path, -1, err) < 0)
			return -1;
		bool own = path_within(path, execution->session.workspace.path);
		if (!own && path_within(path, execution->cordon->data_dir)) {
			fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "cordon's own data cannot be granted");
			return fail_boundary(err, "filesystem");
		}
		if (!own && workspace_refuse_among(&execution->arena, path, execution->session.config->workspace_root, err) < 0)
			return -1;
	}
	return 0;
}

/* Does one of these directories lie in something the command can write, out of which the path then leads? */
static bool leads_out(const struct execution *execution, const struct strings *directories, const char *path)
{
	const struct places *writes = &execution->capability.writes;
	const struct place *root = &execution->session.workspace;
	for (size_t i = 0; i <= writes->count; root = &writes->items[i++])
		for (size_t j = 0; j < directories->count; j++)
			if (path_within(directories->items[j], root->path) && !path_within(path, root->path))
				return true;
	return false;
}

/* What is in a writable root is the command's own doing: a link there, whatever led to it, must not choose what a person
 * grants. */
static int refuse_planted_links(struct execution *execution, const struct strings *paths, const struct places *places,
                                struct cordon_error *err)
{
	for (size_t i = 0; i < places->count; i++) {
		const struct place *place = &places->items[i];
		struct strings directories;
		int known = place->alias ? beneath_links(&execution->arena, paths->items[i], place->path, &directories) : 0;
		if (known == -ENOMEM)
			return fail_oom(err);
		if (!place->alias || (known == 0 && !leads_out(execution, &directories, place->path)))
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
		    !(kinds == S_IFCHR && (S_ISBLK(info.st_mode) || (S_ISDIR(info.st_mode) && path_within(places->items[i].path, "/dev")))))
			return fail(err, CORDON_E_INVALID_REQUEST, 0, places->items[i].path, "this is not %s", what);
	}
	return 0;
}

static int resolve(struct execution *execution, struct cordon_error *err)
{
	const struct capability_set *set = &execution->capability.set;
	if (resolve_all(execution, &set->fs_read, &execution->capability.reads, err) < 0 ||
	    resolve_all(execution, &set->fs_write, &execution->capability.writes, err) < 0 ||
	    resolve_all(execution, &set->devices, &execution->capability.devices, err) < 0 ||
	    resolve_all(execution, &set->sockets, &execution->capability.sockets, err) < 0 ||
	    resolve_all(execution, &set->programs, &execution->capability.programs, err) < 0)
		return -1;
	if (refuse_kernel(execution->session.workspace.path, execution->session.workspace_fd, err) < 0 ||
	    refuse_places(execution, &execution->capability.reads, err) < 0 ||
	    refuse_places(execution, &execution->capability.writes, err) < 0 ||
	    refuse_places(execution, &execution->capability.devices, err) < 0 ||
	    refuse_places(execution, &execution->capability.sockets, err) < 0 ||
	    refuse_planted_links(execution, &set->fs_read, &execution->capability.reads, err) < 0 ||
	    refuse_planted_links(execution, &set->fs_write, &execution->capability.writes, err) < 0 ||
	    refuse_planted_links(execution, &set->programs, &execution->capability.programs, err) < 0 ||
	    refuse_planted_links(execution, &set->devices, &execution->capability.devices, err) < 0 ||
	    refuse_planted_links(execution, &set->sockets, &execution->capability.sockets, err) < 0 ||
	    granted_refuse_protected(execution, err) < 0 ||
	    require_kind(&execution->capability.devices, S_IFCHR, "a device", err) < 0 ||
	    require_kind(&execution->capability.sockets, S_IFSOCK, "a unix socket", err) < 0 ||
	    require_kind(&execution->capability.programs, S_IFREG, "a program", err) < 0)
		return -1;
	return 0;
}

/* What a file of the configuration sets counts here, too. */
static void use_plain_limits(const struct execution *execution, struct limits *ret_limits)
{
	struct capability_set set = { 0 };
	plain_limits(execution->session.workspace_fd, &set.limits);
	capability_choose_limits(&set, &execution->session.config->chosen);
	*ret_limits = set.limits;
}

/* What the configuration gives, and what the session was given on top when it was made. */
static int find_baseline(struct execution *execution, struct capability_set *ret_set, struct cordon_error *err)
{
	const struct session_record *record = &execution->session.record;
	struct capability_set set = execution->session.config->baseline;
	bool spawn = set.spawn && !execution->request->no_spawn;
	if (record->has_baseline) {
		spawn = spawn && record->baseline.spawn;
		if (capability_merge(&execution->arena, &set, &record->baseline, &set) < 0)
			return fail_oom(err);
	}
	set.spawn = spawn;
	if (execution->request->plain && execution->session.one_off)
		use_plain_limits(execution, &set.limits);
	/* A job takes longer, and nobody has to be asked about that. */
	if (execution->request->job && set.limits.wall_ms < execution->session.config->usual.job_ms)
		set.limits.wall_ms = execution->session.config->usual.job_ms;
	*ret_set = set;
	return 0;
}

/* The request's own, and what the manifest it names declares for the command, if that is one it describes. */
static int find_asked(struct execution *execution, struct capability_set *ret_set, struct cordon_error *err)
{
	const struct cordon_request *request = execution->request;
	struct arena *arena = &execution->arena;
	struct manifest manifest;
	*ret_set = request->granted;
	if (!request->manifest)
		return 0;
	if (manifest_read(arena, request->manifest, request_variable(request, "HOME"), &manifest, err) < 0)
		return -1;
	const struct place *program = &execution->capability.program;
	const char *name = request->argv.items[0];
	bool found;
	if (permit_program(execution, &found, err) < 0)
		return -1;
	if (found)
		name = program->alias ? program->alias : program->path;
	if (manifest_match(&manifest, name, &request->argv, err) < 0)
		return -1;
	execution->capability.env_pass = manifest.env_pass;
	return capability_merge(arena, &manifest.set, &request->granted, ret_set) < 0 ? fail_oom(err) : 0;
}

static uint64_t either(uint64_t named, uint64_t otherwise)
{
	return named ? named : otherwise;
}

/* What a command has that asks for nothing of its own may be less than what it might ask for. What was named when its session was made
 * is what that one's commands have. */
static void use_usual_limits(struct execution *execution, const struct limits *asked)
{
	const struct session_record *record = &execution->session.record;
	const struct limits own = record->has_baseline ? record->baseline.limits : (struct limits){ 0 };
	const struct config *config = execution->session.config;
	struct limits *limits = &execution->capability.set.limits;
	const struct {
		uint64_t asked, usual, *limit;
	} rows[] = {
		{ asked->wall_ms, execution->request->job ? config->usual.job_ms : either(own.wall_ms, config->usual.wall_ms), &limits->wall_ms },
		{ asked->stdout_bytes, either(own.stdout_bytes, config->usual.stdout_bytes), &limits->stdout_bytes },
		{ asked->stderr_bytes, either(own.stderr_bytes, config->usual.stderr_bytes), &limits->stderr_bytes },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!rows[i].asked && rows[i].usual && (!*rows[i].limit || rows[i].usual < *rows[i].limit))
			*rows[i].limit = rows[i].usual;
}

/* What was said on purpose takes away what the baseline has: no network, or these hosts instead of all. */
static void narrow_network(struct execution *execution, const struct capability_set *asked)
{
	struct capability_set *set = &execution->capability.set;
	if (execution->request->no_network) {
		set->network = NETWORK_NONE;
		set->hosts = (struct strings){ 0 };
	} else if (asked->network == NETWORK_HOSTS && set->network == NETWORK_ALL) {
		set->network = NETWORK_HOSTS;
		set->hosts = asked->hosts;
	}
}

/* Whoever approved a host for the session meant its later commands, too: they have it without naming it. */
static int add_granted_hosts(struct execution *execution, struct cordon_error *err)
{
	const struct session_record *record = &execution->session.record;
	struct capability_set *set = &execution->capability.set;
	for (size_t i = 0; i < record->grant_count && set->network == NETWORK_HOSTS; i++) {
		const struct capability_set hosts = { .network = record->grants[i].set.network,
		                                      .hosts = record->grants[i].set.hosts };
		if (hosts.network == NETWORK_HOSTS && capability_merge(&execution->arena, set, &hosts, set) < 0)
			return fail_oom(err);
	}
	return 0;
}

/* A one-off has what it was given; in a session somebody may be asked about a host that is not among them, while the
 * connection waits. */
static int prepare_to_ask(struct execution *execution, struct cordon_error *err)
{
	/* Whoever started a job need not be there any more. */
	const struct approver *approver = execution->request->job ? &execution->cordon->approver : permit_approver(execution);
	bool somebody = approver->fn || execution->session.config->approval.queue;
	if (execution->session.one_off || execution->dry || execution->capability.set.network != NETWORK_HOSTS || !somebody)
		return 0;
	struct gate_question *question = arena_alloc(&execution->arena, sizeof(*question));
	if (!question)
		return fail_oom(err);
	if (permit_question(execution, question, err) < 0)
		return -1;
	question->ceiling = &execution->capability.set;
	question->approver = approver;
	execution->capability.may_ask = question;
	return 0;
}

/* A person at the command line may say where a host is, an agent that asks in its session may not. */
static int check_private_hosts(const struct execution *execution, struct cordon_error *err)
{
	const struct strings *hosts = &execution->request->private_hosts;
	if (!hosts->count || execution->session.one_off)
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, hosts->items[0], "a session cannot ask for a host at a private address");
	fail_boundary(err, "network");
	return fail_remedy(err, "write network.private_hosts = [\"%s\"] into your configuration", hosts->items[0]);
}

/* Found by cordon, not asked for: it is the rest of what the caller named as the workspace. */
static int add_git_common(struct execution *execution, struct cordon_error *err)
{
	struct place *common = &execution->session.git_common;
	const struct places places = { common, 1, 1 };
	if (!common->path)
		return 0;
	if (refuse_places(execution, &places, err) < 0)
		return -1;
	return places_add(&execution->arena, &execution->capability.writes, common) < 0 ? fail_oom(err) : 0;
}

int capability_step(struct execution *execution, struct cordon_error *err)
{
	assert(execution->done == CORDON_STEP_CWD);
	struct capability_set baseline, asked;
	if (check_private_hosts(execution, err) < 0 || find_baseline(execution, &baseline, err) < 0 || find_asked(execution, &asked, err) < 0)
		return -1;
	if (capability_merge(&execution->arena, &baseline, &asked, &execution->capability.set) < 0)
		return fail_oom(err);
	narrow_network(execution, &asked);
	if (!execution->request->plain)
		use_usual_limits(execution, &asked.limits);
	if (resolve(execution, err) < 0 || permit(execution, &baseline, err) < 0 ||
	    add_git_common(execution, err) < 0 || add_granted_hosts(execution, err) < 0 || prepare_to_ask(execution, err) < 0)
		return -1;
	execution->done = CORDON_STEP_CAPABILITY;
	return 0;
}

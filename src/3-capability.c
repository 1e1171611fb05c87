/* Step 3: what the command may reach: the session's baseline, and what the request asks for on top. A one-off has what
 * it asks for, since the caller is the one to grant it; in a session it must be authorized (approval/authorize.h).
 * Its paths are resolved in granted-paths.c. */
#include <stdlib.h>
#include <string.h>

#include "approval/authorize.h"
#include "base/text.h"
#include "config/groups.h"
#include "config/manifest.h"
#include "host/plain-limits.h"
#include "paths/index/globs.h"
#include "session/beneath.h"
#include "session/jobs.h"
#include "session/registry.h"
#include "walk.h"

/* The step in progress. */
struct deciding {
	const struct walk_facts *facts;
	const struct verdict_session *session;
	struct authorize_facts authorize;
	struct grants *grants;                  /* filled as far as it is known */
};

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
	if (granted_paths_refuse(deciding->facts, deciding->session, &places, err) < 0)
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
	return check_publish(&deciding, err) < 0 || granted_paths_resolve(facts, deciding.session, ret, err) < 0 ||
	       by_name_refuse_protected(&deciding.authorize, ret, err) < 0 ||
	       authorize(&deciding.authorize, &gate, ret, &baseline, ret_asked, err) < 0 ||
	       add_git_common(&deciding, err) < 0 || choose_credentials(&deciding, err) < 0 ||
	       prepare_host_question(&deciding, err) < 0 ? -1 : 0;
}

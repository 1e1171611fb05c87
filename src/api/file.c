/* cordon_file_call(): a file tool takes the walk. Its roots are the workspace and what was granted, as step 3 resolved them; each is
 * opened anew and must still be what it was then. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "config/config.h"
#include "files/call.h"
#include "session/beneath.h"
#include "walk.h"

struct file_walk {
	const struct cordon *cordon;
	const struct files_tool *tool;
	const struct cordon_file *arguments;
	struct files files;
	struct files_root *roots;               /* the first is the workspace, whose descriptor is the verdict's */
	size_t root_count;
	struct names_globs globs;
	struct strings hidden;
	struct files_call call;
	bool called;
	struct files_result result;
	char audit_id[ID_SIZE];
};

/* ---- roots ------------------------------------------------------------------------------------------------------ */

static int add_root(struct file_walk *walk, const struct place *place, bool writable, struct cordon_error *err)
{
	struct stat info;
	auto_close int fd = open(place->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &info) < 0 || info.st_dev != place->device || info.st_ino != place->inode) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, place->path, "the granted path is no longer what it was when it was granted");
		fail_boundary(err, "filesystem");
		return fail_remedy(err, "try again");
	}
	walk->roots[walk->root_count++] = (struct files_root){ take_fd(&fd), place->path, place->alias, writable };
	return 0;
}

static bool is_in_root(const struct file_walk *walk, const char *path)
{
	for (size_t i = 0; i < walk->root_count; i++)
		if (path_within(path, walk->roots[i].path))
			return true;
	return false;
}

/* What the configuration keeps read-only is a root that is not writable: of those that lie in each other the deepest counts. */
static int add_read_only(struct file_walk *walk, struct arena *arena, const struct strings *paths, struct cordon_error *err)
{
	for (size_t i = 0; i < paths->count; i++) {
		struct place place;
		if (beneath_resolve(arena, paths->items[i], &place, NULL, NULL) == 0 && is_in_root(walk, place.path) &&
		    add_root(walk, &place, false, err) < 0)
			return -1;
	}
	return 0;
}

static int find_roots(struct file_walk *walk, struct arena *arena, const struct verdict *verdict, struct cordon_error *err)
{
	const struct grants *grants = &verdict->grants;
	const struct strings *read_only = &verdict->session.config->read_only;
	size_t most = 1 + grants->reads.count + grants->writes.count + read_only->count + grants->kept.count;
	walk->roots = calloc(most, sizeof(*walk->roots));
	if (!walk->roots)
		return fail_oom(err);
	const struct place *workspace = &verdict->session.workspace;
	walk->roots[walk->root_count++] = (struct files_root){ verdict->session.workspace_fd, workspace->path, workspace->alias, true };
	for (size_t i = 0; i < grants->reads.count; i++)
		if (add_root(walk, &grants->reads.items[i], false, err) < 0)
			return -1;
	for (size_t i = 0; i < grants->writes.count; i++)
		if (add_root(walk, &grants->writes.items[i], true, err) < 0)
			return -1;
	return add_read_only(walk, arena, read_only, err) < 0 || add_read_only(walk, arena, &grants->kept, err) < 0 ? -1 : 0;
}

/* ---- the walk's two halves -------------------------------------------------------------------------------------- */

static int judge(void *arg, struct arena *arena, const struct verdict *verdict, const char **ret_rule, struct cordon_error *err)
{
	struct file_walk *walk = arg;
	const char *const own[] = { walk->cordon->data_dir, verdict->session.config->workspace_root };
	const struct capability_set *set = &verdict->grants.set;
	const struct name_rules rules = { .deny = &set->deny, .protect = &set->protect, .exempt = &set->exempt };
	if (find_roots(walk, arena, verdict, err) < 0 || names_globs_compile(arena, "/", &rules, &walk->globs, err) < 0)
		return -1;
	names_globs_fold_deny(&walk->globs);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (own[i] && strings_add(arena, &walk->hidden, own[i]) < 0)
			return fail_oom(err);
	walk->files = (struct files){
		.arena = arena, .roots = walk->roots, .root_count = walk->root_count, .cwd = verdict->cwd.path, .globs = &walk->globs,
		.deny = &set->deny, .hidden = &walk->hidden, .rules = &verdict->session.config->rules,
	};
	walk->called = true;
	if (files_call_open(&walk->files, walk->tool, walk->arguments, walk->audit_id, &walk->call, err) < 0)
		return -1;
	const struct files_place *const places[] = { &walk->call.place, &walk->call.to };
	for (size_t i = 0; i < ARRAY_SIZE(places) && !*ret_rule; i++)
		*ret_rule = places[i]->rule;
	return 0;
}

static int act(void *arg, struct arena *arena, const struct verdict *verdict, uint64_t *ret_bytes, struct cordon_error *err)
{
	struct file_walk *walk = arg;
	(void)arena;
	(void)verdict;
	if (files_call_act(&walk->files, &walk->call, &walk->result, err) < 0)
		return -1;
	*ret_bytes = walk->result.data ? walk->result.length : files_tool_writes(walk->tool) ? walk->arguments->length : 0;
	return 0;
}

static void release(struct file_walk *walk)
{
	if (walk->called)
		files_call_close(&walk->call);
	for (size_t i = 1; i < walk->root_count; i++)
		close(walk->roots[i].fd);
	free(walk->roots);
}

/* ---- the public call -------------------------------------------------------------------------------------------- */

static int check_tool(const char *name, const struct files_tool **ret_tool, struct cordon_error *err)
{
	const char *nearest;
	*ret_tool = files_tool_find(name, &nearest);
	if (*ret_tool)
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, name, "there is no such file tool");
	fail_boundary(err, "request");
	return nearest ? fail_remedy(err, "did you mean %s?", nearest) : -1;
}

struct owned_result {
	struct cordon_file_result result;       /* first: it is what the caller has */
	char *json;
	void *data;
};

int cordon_file_call(struct cordon *cordon, const struct cordon_request *request, const char *tool, const struct cordon_file *file,
                     struct cordon_file_result **ret_result, struct cordon_error *err)
{
	struct file_walk file_walk = { .cordon = cordon, .arguments = file };
	if (call_check(err, cordon, request, tool, file, ret_result) < 0 || check_tool(tool, &file_walk.tool, err) < 0)
		return -1;
	struct owned_result *owned = calloc(1, sizeof(*owned));
	if (!owned)
		return fail_oom(err);
	const struct walk_tool call = {
		.name = tool, .paths = { file->path ? file->path : ".", files_tool_renames(file_walk.tool) ? file->to : NULL },
		.writes = files_tool_writes(file_walk.tool), .may_miss = files_tool_may_miss(file_walk.tool),
		.judge = judge, .act = act, .arg = &file_walk, .ret_audit_id = file_walk.audit_id,
	};
	int result = walk_tool(cordon, request, &call, err);
	release(&file_walk);
	if (result < 0) {
		free(file_walk.result.json);
		free(file_walk.result.data);
		free(owned);
		return -1;
	}
	*owned = (struct owned_result){ { file_walk.result.json, file_walk.result.data, file_walk.result.length },
	                                file_walk.result.json, file_walk.result.data };
	*ret_result = &owned->result;
	return 0;
}

void cordon_file_result_unref(struct cordon_file_result *result)
{
	struct owned_result *owned = (struct owned_result *)(void *)result;
	if (!owned)
		return;
	free(owned->json);
	free(owned->data);
	free(owned);
}

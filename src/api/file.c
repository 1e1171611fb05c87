/* cordon_file_do(): a file tool takes the walk. Its roots are the workspace and what was granted, as step 3 resolved
 * them; each is opened anew and must still be what it was then. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path-given.h"
#include "base/text.h"
#include "config/config.h"
#include "api/watch.h"
#include "files/call.h"
#include "files/screen.h"
#include "secrets/credential.h"
#include "secrets/screen.h"
#include "session/beneath.h"
#include "walk.h"

struct file_walk {
	const struct cordon *cordon;
	const struct files_tool *tool;
	const struct cordon_file *arguments;
	struct watch *watch;                    /* or NULL */
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
	if (fd < 0 || fstat(fd, &info) < 0 || (uint64_t)info.st_dev != place->device || info.st_ino != place->inode) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, place->path,
		     "the granted path is no longer what it was when it was granted");
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

/* What the configuration keeps read-only is a root that is not writable: of those that lie in each other the deepest
 * counts. */
static int add_read_only(struct file_walk *walk, struct arena *arena, const struct strings *paths,
                         struct cordon_error *err)
{
	for (size_t i = 0; i < paths->count; i++) {
		struct place place;
		if (beneath_resolve(arena, paths->items[i], &place, NULL, NULL) == 0 && is_in_root(walk, place.path) &&
		    add_root(walk, &place, false, err) < 0)
			return -1;
	}
	return 0;
}

static int find_roots(struct file_walk *walk, struct arena *arena, const struct verdict *verdict,
                      struct cordon_error *err)
{
	const struct grants *grants = &verdict->grants;
	const struct strings *read_only = &verdict->session.config->read_only;
	size_t most = 1 + grants->reads.count + grants->writes.count + read_only->count + grants->kept.count;
	walk->roots = calloc(most, sizeof(*walk->roots));
	if (!walk->roots)
		return fail_oom(err);
	const struct place *workspace = &verdict->session.workspace;
	walk->roots[walk->root_count++] =
		(struct files_root){ verdict->session.workspace_fd, workspace->path, workspace->alias, true };
	for (size_t i = 0; i < grants->reads.count; i++)
		if (add_root(walk, &grants->reads.items[i], false, err) < 0)
			return -1;
	for (size_t i = 0; i < grants->writes.count; i++)
		if (add_root(walk, &grants->writes.items[i], true, err) < 0)
			return -1;
	return add_read_only(walk, arena, read_only, err) < 0 || add_read_only(walk, arena, &grants->kept, err) < 0
	               ? -1 : 0;
}

static int watch(void *arg, const struct files *files, const struct files_place *place, struct json *json,
                 struct cordon_error *err)
{
	return watch_act(arg, files, place, json, err);
}

/* ---- the walk's two halves -------------------------------------------------------------------------------------- */

static int judge(void *arg, struct arena *arena, const struct verdict *verdict, const char **ret_rule,
                 struct cordon_error *err)
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
	for (size_t i = 0; i < verdict->session.config->credential_count; i++)
		if (verdict->session.config->credentials[i].file &&
		    strings_add(arena, &walk->hidden, verdict->session.config->credentials[i].file) < 0)
			return fail_oom(err);
	walk->files = (struct files){
		.arena = arena,
		.roots = walk->roots,
		.root_count = walk->root_count,
		.cwd = verdict->cwd.path,
		.globs = &walk->globs,
		.deny = &set->deny,
		.hidden = &walk->hidden,
		.rules = &verdict->session.config->rules,
		.untold = walk->arguments->untold,
	};
	walk->called = true;
	if (files_call_open(&walk->files, walk->tool, walk->arguments, walk->audit_id, &walk->call, err) < 0)
		return -1;
	walk->call.watch = walk->watch ? watch : NULL;
	walk->call.watch_arg = walk->watch;
	const struct files_place *const places[] = { &walk->call.place, &walk->call.to };
	for (size_t i = 0; i < ARRAY_SIZE(places) && !*ret_rule; i++)
		*ret_rule = places[i]->rule;
	return 0;
}

static int look(void *arg, const char *text, size_t length, uint64_t offset)
{
	return secret_screen_look(arg, text, length, offset);
}

static int show(void *arg, size_t from, size_t to, char **ret_text, size_t *ret_length)
{
	return secret_screen_show(arg, from, to, true, ret_text, ret_length);
}

static bool hides(void *arg, const char *name, size_t length)
{
	return secret_screen_hides(arg, name, length);
}

/* Takes finished JSON and gives it back with `change` made to it. */
static int change_json(char **text, int (*change)(void *arg, struct json *json), void *arg, struct cordon_error *err)
{
	struct json json = { .text = *text, .length = strlen(*text), .capacity = strlen(*text) + 1 };
	int changed = change(arg, &json);
	*text = json_take(&json);
	return changed < 0 || !*text ? fail_oom(err) : 0;
}

static int clean(void *screen, struct json *json)
{
	return secret_screen_json(screen, json);
}

static int act(void *arg, struct arena *arena, const struct verdict *verdict, struct secret_screen *screen,
               uint64_t *ret_bytes, struct cordon_error *err)
{
	struct file_walk *walk = arg;
	const struct files_screen of_files = { look, show, hides, screen };
	(void)arena;
	(void)verdict;
	walk->files.screen = &of_files;
	int acted = files_call_act(&walk->files, &walk->call, &walk->result, err);
	walk->files.screen = NULL;
	/* The others have screened all that they return. */
	if (acted < 0 ||
	    (files_tool_returns_names(walk->tool) && change_json(&walk->result.json, clean, screen, err) < 0))
		return -1;
	*ret_bytes = walk->result.data             ? walk->result.length :
	             files_tool_writes(walk->tool) ? walk->arguments->length :
	                                             0;
	return 0;
}

/* Before the brace that ends the object. */
static int add_told(void *arg, struct json *json)
{
	const struct execution *execution = arg;
	json->length--;
	json->depth = 1;
	json->need_comma = true;
	leaks_write_json(json, execution->run.secrets, execution->run.secret_count, execution->run.secrets_found);
	json_key(json, "denials");
	json_array_begin(json);
	for (size_t i = 0; i < execution->denials.count; i++) {
		const struct cordon_denial *denial = &execution->denials.items[i];
		json_object_begin(json);
		json_key_string(json, "what", denial->what);
		json_key_string(json, "wall", denial->wall);
		json_key_string(json, "note", denial->note);
		json_key_string(json, "grant", denial->grant);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
	return json->failed ? -1 : 0;
}

static int tell(void *arg, const struct execution *execution, struct cordon_error *err)
{
	struct file_walk *walk = arg;
	return execution->run.secrets_found ? change_json(&walk->result.json, add_told, (void *)execution, err) : 0;
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

/* As cordon writes it, which may be in `room`. */
static int take_path(const char **path, char room[PATH_MAX], struct cordon_error *err)
{
	const char *why, *given = *path ? path_given(*path, room, PATH_MAX, &why) : NULL;
	if (*path && !given) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, *path, "%s", why);
		return fail_boundary(err, "request");
	}
	*path = given;
	return 0;
}

struct owned_result {
	struct cordon_file_result result;       /* first: it is what the caller has */
	char *json;
	void *data;
};

static int call_tool(struct cordon *cordon, const struct cordon_request *request, const char *tool,
                     const struct cordon_file *asked, struct watch *watched, struct cordon_file_result **ret_result,
                     struct cordon_error *err)
{
	struct cordon_file taken = *asked;
	const struct cordon_file *file = &taken;
	struct file_walk file_walk = { .cordon = cordon, .arguments = file, .watch = watched };
	char rooms[2][PATH_MAX];
	if (check_tool(tool, &file_walk.tool, err) < 0 || take_path(&taken.path, rooms[0], err) < 0 ||
	    take_path(&taken.to, rooms[1], err) < 0)
		return -1;
	struct owned_result *owned = calloc(1, sizeof(*owned));
	if (!owned)
		return fail_oom(err);
	const char *looked_for = file->old ? file->old : file->pattern;
	size_t looked_for_length = file->old ? file->old_length : file->pattern ? strlen(file->pattern) : 0;
	const struct walk_tool call = {
		.name = tool,
		.paths = { file->path ? file->path : ".", files_tool_has_to(file_walk.tool) ? file->to : NULL },
		.writes = files_tool_writes(file_walk.tool),
		.reads_first = files_tool_reads_first(file_walk.tool),
		.may_miss = files_tool_may_miss(file_walk.tool),
		.texts = { { "the path", file->path, file->path ? strlen(file->path) : 0 },
		           { "the new path", file->to, file->to ? strlen(file->to) : 0 },
		           { "the content", file->data, file->length },
		           { "the text to find", looked_for, looked_for_length } },
		.judge = judge,
		.act = act,
		.tell = tell,
		.arg = &file_walk,
		.ret_audit_id = file_walk.audit_id,
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

int cordon_file_do(struct cordon *cordon, const struct cordon_request *request, const char *tool,
                   const struct cordon_file *file, struct cordon_file_result **ret_result, struct cordon_error *err)
{
	if (call_check(err, cordon, request, tool, file, ret_result) < 0)
		return -1;
	return call_tool(cordon, request, tool, file, NULL, ret_result, err);
}

int file_watch_call(struct cordon *cordon, const struct cordon_request *request, const char *path,
                    struct watch *watched, char **ret_json, struct cordon_error *err)
{
	const struct cordon_file file = { .path = path };
	struct cordon_file_result *result;
	if (call_tool(cordon, request, "watch", &file, watched, &result, err) < 0)
		return -1;
	char *text = strdup(result->json);
	cordon_file_result_unref(result);
	*ret_json = text;
	return text ? 0 : fail_oom(err);
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

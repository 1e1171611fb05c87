/* Would a command start? The dry walk, and what a human would be asked.
 *
 * An agent may ask this about any path. So for a path outside what its session may use the answer must not depend on
 * whether there is something: the walk looks at the disk, and what it says about such a path is replaced by what can be
 * said from its name alone. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "policy/capability-json.h"
#include "session/beneath.h"
#include "session/registry.h"
#include "walk.h"

/* Whether the path is beneath the root, by its name and by its links. What is not there is not outside. */
static bool is_beneath(const char *path, const char *root)
{
	if (!root || !path_within(path, root))
		return false;
	const char *relative = path + strlen(root);
	relative += strspn(relative, "/");
	auto_close int root_fd = *relative ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (root_fd < 0)
		return true;
	auto_close int fd = beneath_open(root_fd, relative, O_PATH);
	return fd != -EXDEV;
}

static bool is_beneath_any(const char *path, const struct strings *roots)
{
	for (size_t i = 0; i < roots->count; i++)
		if (is_beneath(path, roots->items[i]))
			return true;
	return false;
}

/* What the session may use: its workspace, its baseline, and what was approved for it. */
static int find_ceiling(struct arena *arena, const struct verdict_session *session, struct capability_set *ret_set)
{
	const struct session_record *record = session->record;
	struct capability_set set = session->config->baseline;
	if (record->has_baseline && capability_merge(arena, &set, &record->baseline, &set) < 0)
		return -1;
	for (size_t i = 0; i < record->grant_count; i++)
		if (capability_merge(arena, &set, &record->grants[i].set, &set) < 0)
			return -1;
	struct strings writes = { 0 };
	if (strings_add_all(arena, &writes, &set.fs_write) < 0 ||
	    (session->workspace.path && strings_add(arena, &writes, session->workspace.path) < 0) ||
	    (session->workspace.alias && strings_add(arena, &writes, session->workspace.alias) < 0))
		return -1;
	set.fs_write = writes;
	*ret_set = set;
	return 0;
}

/* The requested paths that lie outside, as they are named. */
static int find_outside(struct execution *execution, struct capability_set *ret_outside)
{
	struct arena *arena = &execution->arena;
	const struct capability_set *asked = &execution->request->granted;
	struct capability_set ceiling, outside = { 0 };
	if (find_ceiling(arena, &execution->verdict.session, &ceiling) < 0)
		return -1;
	const struct {
		const struct strings *asked, *roots, *more;
		struct strings *outside;
	} lists[] = {
		{ &asked->fs_read, &ceiling.fs_read, &ceiling.fs_write, &outside.fs_read },
		{ &asked->fs_write, &ceiling.fs_write, NULL, &outside.fs_write },
		{ &asked->devices, &ceiling.devices, NULL, &outside.devices },
		{ &asked->sockets, &ceiling.sockets, NULL, &outside.sockets },
	};
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t j = 0; j < lists[i].asked->count; j++) {
			const char *path = path_normalise(arena, lists[i].asked->items[j]);
			if (!path)
				return -1;
			if (!is_beneath_any(path, lists[i].roots) &&
			    !(lists[i].more && is_beneath_any(path, lists[i].more)) &&
			    strings_add(arena, lists[i].outside, path) < 0)
				return -1;
		}
	*ret_outside = outside;
	return 0;
}

static bool has_paths(const struct capability_set *set)
{
	return set->fs_read.count || set->fs_write.count || set->devices.count || set->sockets.count;
}

/* Cordon's own data is refused, not asked about. */
static bool is_own_data(const struct execution *execution, const struct capability_set *outside,
                        struct cordon_error *ret_refused)
{
	const struct strings *const lists[] = { &outside->fs_read, &outside->fs_write, &outside->devices,
		                                &outside->sockets };
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t j = 0; j < lists[i]->count; j++)
			if (path_within(lists[i]->items[j], execution->cordon->data_dir)) {
				fail(ret_refused, CORDON_E_CAPABILITY_DENIED, 0, lists[i]->items[j],
				     "cordon's own data cannot be granted");
				fail_boundary(ret_refused, "filesystem");
				ret_refused->step = CORDON_STEP_CAPABILITY;
				return true;
			}
	return false;
}

static void write_asks(struct json *json, const struct capability_set *excess, const char *rule)
{
	json_key(json, "asks");
	capability_write_json(json, excess);
	if (rule)
		json_key_string(json, "rule", rule);
}

static int judge(struct execution *execution, struct json *json, struct cordon_error *err)
{
	const struct verdict *verdict = &execution->verdict;
	struct cordon_error refused;
	struct capability_set outside = { 0 };
	bool starts = walk(execution, WALK_DECIDED, &refused) == 0, asks = starts && execution->asked;
	bool in_session = (starts || refused.step != CORDON_STEP_SESSION) && !verdict->session.one_off;
	if (in_session && (!starts || asks) && find_outside(execution, &outside) < 0)
		return fail_oom(err);
	json_key_bool(json, "allowed", starts && !asks);
	if (has_paths(&outside) && !is_own_data(execution, &outside, &refused))
		write_asks(json, &outside, NULL);
	else if (!has_paths(&outside) && asks)
		write_asks(json, &verdict->grants.excess, verdict->grants.rule);
	else if (!starts || asks) {
		json_key(json, "error");
		error_write_json(json, &refused);
	}
	return 0;
}

int cordon_preflight(struct cordon *cordon, const struct cordon_request *request, char **ret_json,
                     struct cordon_error *err)
{
	struct execution *execution;
	struct json json;
	if (call_check(err, cordon, request, ret_json) < 0 || walk_new(cordon, request, true, &execution, err) < 0)
		return -1;
	json_init(&json);
	json_object_begin(&json);
	int result = judge(execution, &json, err);
	json_object_end(&json);
	walk_free(execution);
	auto_free char *text = json_take(&json);
	if (result == 0 && !text)
		return fail_oom(err);
	if (result == 0) {
		*ret_json = text;
		text = NULL;
	}
	return result;
}

/* A session asks for more, without a command that needs it: the walk of a tool that does nothing. */
#include "base/error.h"
#include "walk.h"

static int judge(void *arg, struct arena *arena, const struct verdict *verdict, const char **ret_rule,
                 struct cordon_error *err)
{
	(void)arg;
	(void)arena;
	(void)verdict;
	(void)ret_rule;
	(void)err;
	return 0;
}

static int act(void *arg, struct arena *arena, const struct verdict *verdict, struct secret_screen *screen,
               uint64_t *ret_bytes, struct cordon_error *err)
{
	(void)arg;
	(void)arena;
	(void)verdict;
	(void)screen;
	(void)ret_bytes;
	(void)err;
	return 0;
}

int cordon_capability_request(struct cordon *cordon, const struct cordon_request *request, struct cordon_error *err)
{
	const struct walk_tool tool = { .name = "request_capability", .for_session = true, .judge = judge, .act = act };
	if (call_check(err, cordon, request) < 0)
		return -1;
	if (!request->session) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, "session", "only a session can ask for more");
		return fail_boundary(err, "request");
	}
	const struct capability_set *granted = &request->granted;
	if (!granted->fs_read.count && !granted->fs_write.count && !granted->hosts.count && !request->groups.count &&
	    granted->network != NETWORK_ALL && !granted->devices.count && !granted->sockets.count) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, "", "nothing is asked for");
		fail_remedy(err, "name paths to read or to write, or hosts");
		return fail_boundary(err, "request");
	}
	return walk_tool(cordon, request, &tool, err);
}

/* Step 1: which session, which workspace, which home. A workspace of cordon's own making is also the home; where the
 * caller named a directory, the home is the session's own private one, or in memory for a one-off, so that caches and
 * history never litter a project. */
#include <fcntl.h>
#include <string.h>
#include <stdlib.h>

#include "base/text.h"
#include "execute.h"
#include "session/workspace.h"

#define HOME_INSIDE "/home/cordon"
/* All of the host's tree is shown read-only there, so a home can only be where memory is mounted anyway. */
#define HOME_IN_WHOLE_VIEW "/tmp/home"

static const char *canonical_home(struct arena *arena)
{
	struct place place;
	const char *home = getenv("HOME");
	return home && *home == '/' && beneath_resolve(arena, home, &place, NULL, NULL) == 0 ? place.path : NULL;
}

static int choose_home(struct execution *execution, struct cordon_error *err)
{
	const struct cordon_request *request = execution->request;
	if (!request->workspace) {
		execution->session.home = execution->session.workspace.path;
		return 0;
	}
	execution->session.home = request->view == VIEW_HOST_READONLY ? HOME_IN_WHOLE_VIEW : HOME_INSIDE;
	if (!request->session)
		return 0;
	struct place place;
	auto_close int fd = -1;
	if (workspace_of_session(&execution->arena, request->session, execution->cordon->data_dir, "homes", !execution->dry,
	                         &place, &fd, err) < 0)
		return -1;
	execution->session.home_source = place.path;
	return 0;
}

int session_step(struct execution *execution, struct cordon_error *err)
{
	const struct cordon_request *request = execution->request;
	const char *data_dir = execution->cordon->data_dir;
	execution->session.workspace_fd = -1;
	if (request->session && (strlen(request->session) > 64 * 1024))
		return fail(err, CORDON_E_INVALID_REQUEST, 0, "session", "the session's id is too long");
	execution->session.id = request->session ? request->session : execution->audit.id;
	int taken = request->workspace
		? workspace_named(&execution->arena, request->workspace, data_dir, canonical_home(&execution->arena),
		                  &execution->session.workspace, &execution->session.workspace_fd, err)
		: workspace_of_session(&execution->arena, execution->session.id, data_dir, "workspaces", !execution->dry,
		                       &execution->session.workspace, &execution->session.workspace_fd, err);
	if (taken < 0 || choose_home(execution, err) < 0)
		return -1;
	execution->done = CORDON_STEP_SESSION;
	return 0;
}

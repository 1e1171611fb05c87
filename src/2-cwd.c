/* Step 2: where the command starts: the workspace, or a directory beneath it or beneath a granted root. Decided by
 * opening it there without leaving, never by comparing strings. */
#include <assert.h>
#include <fcntl.h>
#include <string.h>

#include "base/text.h"
#include "execute.h"
#include "session/beneath.h"

static int denied(struct cordon_error *err, int os_errno, const char *cwd)
{
	const char *why = os_errno == EXDEV ? "the working directory leads out of the workspace and of every granted path"
	                  : os_errno == ELOOP ? "the working directory is a loop of symbolic links"
	                                      : "cannot enter the working directory";
	fail(err, CORDON_E_CAPABILITY_DENIED, os_errno == EXDEV ? 0 : os_errno, cwd, "%s", why);
	fail_boundary(err, "filesystem");
	return fail_remedy(err, "name a directory inside the workspace, or grant it: --read PATH or --write PATH");
}

static int enter(struct execution *execution, int root_fd, const char *relative, struct cordon_error *err)
{
	int fd = beneath_open(root_fd, relative, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return denied(err, -fd, execution->request->cwd);
	execution->cwd.fd = fd;
	execution->cwd.path = beneath_path(&execution->arena, fd);
	return execution->cwd.path ? 0 : denied(err, EXDEV, execution->request->cwd);
}

/* An absolute path: beneath which root is it? The widest root does as well as the narrowest. */
static int enter_granted(struct execution *execution, const char *path, const struct strings *roots,
                         struct cordon_error *err)
{
	for (size_t i = 0; i < roots->count; i++) {
		const char *root = path_normalise(&execution->arena, roots->items[i]);
		if (!root || !path_within(path, root))
			continue;
		auto_close int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		return fd < 0 ? denied(err, errno, path) : enter(execution, fd, path + strlen(root) + (root[1] && path[strlen(root)]), err);
	}
	return 1;
}

static int find_cwd(struct execution *execution, const char *cwd, struct cordon_error *err)
{
	const struct place *workspace = &execution->session.workspace;
	const struct capability_set *const granted[] = { &execution->request->granted, &execution->session.config->baseline,
	                                                 &execution->session.record.baseline };
	if (text_has_control(cwd))
		return fail(err, CORDON_E_INVALID_REQUEST, 0, cwd, "the path has a control character in it");
	if (*cwd != '/')
		return enter(execution, execution->session.workspace_fd, cwd, err);
	const char *path = path_normalise(&execution->arena, cwd);
	if (!path)
		return fail_oom(err);
	const char *const roots[] = { workspace->path, workspace->alias };
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
		if (roots[i] && path_within(path, roots[i]))
			return enter(execution, execution->session.workspace_fd,
			             path + strlen(roots[i]) + (path[strlen(roots[i])] == '/'), err);
	int result = 1;
	for (size_t i = 0; i < ARRAY_SIZE(granted) && result > 0; i++) {
		result = enter_granted(execution, path, &granted[i]->fs_write, err);
		if (result > 0)
			result = enter_granted(execution, path, &granted[i]->fs_read, err);
	}
	return result > 0 ? denied(err, EXDEV, cwd) : result;
}

int cwd_step(struct execution *execution, struct cordon_error *err)
{
	assert(execution->done == CORDON_STEP_SESSION);
	const char *cwd = execution->request->cwd, *here = execution->session.here;
	if (here && !(cwd = !cwd || *cwd == '/' ? (cwd ? cwd : here) : arena_printf(&execution->arena, "%s/%s", here, cwd)))
		return fail_oom(err);
	execution->cwd.fd = -1;
	if (!cwd) {
		execution->cwd.path = execution->session.workspace.path;
		execution->cwd.fd = execution->session.workspace_fd;
	} else if (find_cwd(execution, cwd, err) < 0) {
		return -1;
	}
	execution->done = CORDON_STEP_CWD;
	return 0;
}

/* Step 2: where the command starts: the workspace, or a directory beneath it or beneath a granted root. Decided by
 * opening it there without leaving, never by comparing strings. */
#include <fcntl.h>
#include <string.h>

#include "base/text.h"
#include "session/beneath.h"
#include "walk.h"

static int denied(const struct cwd_facts *facts, int os_errno, const char *cwd, struct cordon_error *err)
{
	const char *path = path_normalise(facts->arena, cwd);
	const char *why = os_errno == EXDEV ?
	                          "the working directory leads out of the workspace and of every granted path" :
	                  os_errno == ELOOP ? "the working directory is a loop of symbolic links" :
	                                      "cannot enter the working directory";
	fail(err, CORDON_E_CAPABILITY_DENIED, os_errno == EXDEV ? 0 : os_errno, cwd, "%s", why);
	fail_boundary(err, "filesystem");
	if (os_errno == EXDEV && *cwd == '/' && path && path[1])
		fail_grant(err, "read", path);
	return fail_remedy(err, "name a directory inside the workspace, or grant it: --read PATH or --write PATH");
}

/* Opens `relative` beneath a root, without leaving it. */
static int enter(const struct cwd_facts *facts, int root_fd, const char *relative, struct verdict_cwd *ret,
                 struct cordon_error *err)
{
	auto_close int fd = beneath_open(root_fd, relative, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return denied(facts, -fd, facts->cwd, err);
	const char *path = beneath_path(facts->arena, fd);
	if (!path)
		return denied(facts, EXDEV, facts->cwd, err);
	*ret = (struct verdict_cwd){ path, take_fd(&fd) };
	return 0;
}

/* An absolute path: beneath which root is it? The widest root does as well as the narrowest. 1: beneath none. */
static int enter_granted(const struct cwd_facts *facts, const char *path, const struct strings *roots,
                         struct verdict_cwd *ret, struct cordon_error *err)
{
	for (size_t i = 0; i < roots->count; i++) {
		const char *root = path_normalise(facts->arena, roots->items[i]);
		if (!root || !path_within(path, root))
			continue;
		auto_close int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		const char *relative = path + strlen(root) + (root[1] && path[strlen(root)]);
		return fd < 0 ? denied(facts, errno, path, err) : enter(facts, fd, relative, ret, err);
	}
	return 1;
}

static int find_cwd(const struct cwd_facts *facts, struct verdict_cwd *ret, struct cordon_error *err)
{
	if (text_has_control(facts->cwd))
		return fail(err, CORDON_E_INVALID_REQUEST, 0, facts->cwd, "the path has a control character in it");
	if (*facts->cwd != '/')
		return enter(facts, facts->workspace_fd, facts->cwd, ret, err);
	const char *path = path_normalise(facts->arena, facts->cwd);
	if (!path)
		return fail_oom(err);
	const char *const roots[] = { facts->workspace->path, facts->workspace->alias };
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
		if (roots[i] && path_within(path, roots[i]))
			return enter(facts, facts->workspace_fd,
			             path + strlen(roots[i]) + (path[strlen(roots[i])] == '/'), ret, err);
	int result = 1;
	for (size_t i = 0; i < ARRAY_SIZE(facts->granted) && result > 0; i++) {
		result = enter_granted(facts, path, &facts->granted[i]->fs_write, ret, err);
		if (result > 0)
			result = enter_granted(facts, path, &facts->granted[i]->fs_read, ret, err);
	}
	return result > 0 ? denied(facts, EXDEV, facts->cwd, err) : result;
}

int cwd_step(const struct cwd_facts *facts, struct verdict_cwd *ret, struct cordon_error *err)
{
	struct cwd_facts wanted = *facts;
	if (facts->here && !facts->cwd)
		wanted.cwd = facts->here;
	else if (facts->here && *facts->cwd != '/' &&
	         !(wanted.cwd = arena_printf(facts->arena, "%s/%s", facts->here, facts->cwd)))
		return fail_oom(err);
	if (wanted.cwd)
		return find_cwd(&wanted, ret, err);
	*ret = (struct verdict_cwd){ facts->workspace->path, facts->workspace_fd };
	return 0;
}

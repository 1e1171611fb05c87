/* Of step 3: the paths that are granted. Each is resolved here, once; what it was at this moment is checked again when
 * it is mounted. Refused are those that the walls are made of, those that a command could have led elsewhere, and those
 * that would let it write what a person runs outside. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "driver/machine.h"
#include "host/kernel-mounts.h"
#include "host/search-path.h"
#include "session/beneath.h"
#include "session/workspace.h"
#include "walk.h"

/* What is being resolved, for whom. */
struct resolving {
	const struct walk_facts *facts;
	const struct verdict_session *session;
	struct grants *grants;                  /* of its places, those that are resolved so far */
};

static int resolve_all(struct arena *arena, const struct strings *paths, struct places *ret_places,
                       struct cordon_error *err)
{
	struct places places = { .capacity = paths->count };
	places.items = arena_alloc(arena, (paths->count + 1) * sizeof(*places.items));
	if (!places.items)
		return fail_oom(err);
	for (size_t i = 0; i < paths->count; i++)
		if (beneath_resolve(arena, paths->items[i], &places.items[places.count++], NULL, err) < 0)
			return fail_boundary(err, "filesystem");
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

int granted_paths_refuse(const struct walk_facts *facts, const struct verdict_session *session,
                         const struct places *places, struct cordon_error *err)
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
		bool own = path_within(path, session->workspace.path);
		if (!own && path_within(path, facts->cordon->data_dir)) {
			fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "cordon's own data cannot be granted");
			return fail_boundary(err, "filesystem");
		}
		if (!own && workspace_refuse_among(facts->arena, path,
		                                   session->config->workspace_root, err) < 0)
			return -1;
	}
	return 0;
}

/* Does one of these directories lie in something the command can write, out of which the path then leads? */
static bool leads_out(const struct resolving *resolving, const struct strings *directories, const char *path)
{
	const struct places *writes = &resolving->grants->writes;
	const struct place *root = &resolving->session->workspace;
	for (size_t i = 0; i <= writes->count; root = &writes->items[i++])
		for (size_t j = 0; j < directories->count; j++)
			if (path_within(directories->items[j], root->path) && !path_within(path, root->path))
				return true;
	return false;
}

/* What is in a writable root is the command's own doing: a link there, whatever led to it, must not choose what a
 * person grants. */
static int refuse_planted_links(const struct resolving *resolving, const struct strings *paths,
                                const struct places *places, struct cordon_error *err)
{
	for (size_t i = 0; i < places->count; i++) {
		const struct place *place = &places->items[i];
		struct strings directories;
		int known = place->alias
		               ? beneath_links(resolving->facts->arena, paths->items[i], place->path, &directories) : 0;
		if (known == -ENOMEM)
			return fail_oom(err);
		if (!place->alias || (known == 0 && !leads_out(resolving, &directories, place->path)))
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

static int refuse_on_path(const struct resolving *resolving, const struct place *root, struct cordon_error *err)
{
	const bool own = root == &resolving->session->workspace;
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
static int require_kept(const struct resolving *resolving, const char *directory, struct cordon_error *err)
{
	const struct driver *driver = resolving->session->driver;
	if (!driver || driver->keeps_names || !driver->holds_writes)
		return 0;
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, directory,
	     "the driver %s cannot keep this directory of PATH read-only in what was granted", driver->name);
	fail_boundary(err, "filesystem");
	return fail_remedy(err, "grant a narrower directory, or choose --driver namespaces");
}

static int keep_directory(const struct resolving *resolving, const char *directory, struct cordon_error *err)
{
	if (strings_find(&resolving->grants->kept, directory) >= 0)
		return 0;
	if (require_kept(resolving, directory, err) < 0)
		return -1;
	return strings_add(resolving->facts->arena, &resolving->grants->kept, directory) < 0 ? fail_oom(err) : 0;
}

/* Of the workspace, what lies in a directory of PATH without being it is not found there. */
static int keep_beneath(const struct resolving *resolving, const struct place *root, const struct strings *directories,
                        const struct strings *links, struct cordon_error *err)
{
	const bool own = root == &resolving->session->workspace;
	for (size_t i = 0; i < directories->count; i++) {
		const char *directory = directories->items[i];
		if (own ? !strcmp(root->path, directory) : path_within(root->path, directory))
			return refuse_on_path(resolving, root, err);
		if (path_within(directory, root->path) &&
		    !(path_within(directory, resolving->session->workspace.path) &&
		      search_path_is_of_packages(directory)) &&
		    keep_directory(resolving, directory, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < links->count; i++) {
		if (!strcmp(links->items[i], root->path))
			return refuse_link_on_path(root, err);
		if (path_within(links->items[i], root->path) && keep_directory(resolving, links->items[i], err) < 0)
			return -1;
	}
	return 0;
}

/* What lies on the host's PATH runs there when a person types its name. */
static int keep_search_path(const struct resolving *resolving, struct cordon_error *err)
{
	const struct places *writes = &resolving->grants->writes;
	const char *path = request_variable(resolving->facts->request, "PATH");
	struct strings directories, links;
	int known = search_path_directories(resolving->facts->arena, path ? path : getenv("PATH"), &directories, &links);
	if (known == -ENOMEM)
		return fail_oom(err);
	if (known < 0) {
		fail(err, CORDON_E_CAPABILITY_DENIED, -known, "PATH",
		     "the symbolic links on it change while it is looked at");
		return fail_boundary(err, "filesystem");
	}
	if (resolving->session->driver && !resolving->session->driver->holds_writes)
		return 0;
	if (keep_beneath(resolving, &resolving->session->workspace, &directories, &links, err) < 0)
		return -1;
	for (size_t i = 0; i < writes->count; i++)
		if (keep_beneath(resolving, &writes->items[i], &directories, &links, err) < 0)
			return -1;
	return 0;
}

int granted_paths_resolve(const struct walk_facts *facts, const struct verdict_session *session, struct grants *grants,
                          struct cordon_error *err)
{
	const struct resolving resolving = { facts, session, grants };
	const struct capability_set *set = &grants->set;
	if (resolve_all(facts->arena, &set->fs_read, &grants->reads, err) < 0 ||
	    resolve_all(facts->arena, &set->fs_write, &grants->writes, err) < 0 ||
	    resolve_all(facts->arena, &set->devices, &grants->devices, err) < 0 ||
	    resolve_all(facts->arena, &set->sockets, &grants->sockets, err) < 0 ||
	    resolve_all(facts->arena, &set->programs, &grants->programs, err) < 0)
		return -1;
	if (refuse_kernel(session->workspace.path, session->workspace_fd, err) < 0 ||
	    granted_paths_refuse(facts, session, &grants->reads, err) < 0 ||
	    granted_paths_refuse(facts, session, &grants->writes, err) < 0 ||
	    granted_paths_refuse(facts, session, &grants->devices, err) < 0 ||
	    granted_paths_refuse(facts, session, &grants->sockets, err) < 0 ||
	    refuse_planted_links(&resolving, &set->fs_read, &grants->reads, err) < 0 ||
	    refuse_planted_links(&resolving, &set->fs_write, &grants->writes, err) < 0 ||
	    refuse_planted_links(&resolving, &set->programs, &grants->programs, err) < 0 ||
	    refuse_planted_links(&resolving, &set->devices, &grants->devices, err) < 0 ||
	    refuse_planted_links(&resolving, &set->sockets, &grants->sockets, err) < 0 ||
	    keep_search_path(&resolving, err) < 0 ||
	    require_kind(&grants->devices, S_IFCHR, "a device", err) < 0 ||
	    require_kind(&grants->sockets, S_IFSOCK, "a unix socket", err) < 0 ||
	    require_kind(&grants->programs, S_IFREG, "a program", err) < 0)
		return -1;
	return 0;
}

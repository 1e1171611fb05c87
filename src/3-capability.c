/* Step 3: what the command may reach: the baseline, and what the person at the command line grants on top. Each granted
 * path is resolved here, once; what it was at this moment is checked again when it is mounted. */
#include <assert.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "execute.h"
#include "session/beneath.h"

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

/* What must never be granted whole, because the walls are made of it or hide it. */
static int refuse_places(const struct execution *execution, const struct places *places, struct cordon_error *err)
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
		if (path_within(path, execution->cordon->data_dir) && !path_within(path, execution->session.workspace.path)) {
			fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "cordon's own data cannot be granted");
			return fail_boundary(err, "filesystem");
		}
	}
	return 0;
}

/* What is in a writable root is the command's own doing: a link there must not choose what a person grants. */
static int refuse_planted_links(const struct execution *execution, const struct places *places, struct cordon_error *err)
{
	const struct places *writes = &execution->capability.writes;
	for (size_t i = 0; i < places->count; i++) {
		const struct place *place = &places->items[i], *root = &execution->session.workspace;
		for (size_t j = 0; place->alias && j <= writes->count; root = &writes->items[j++]) {
			bool by_name = path_within(place->alias, root->path) || (root->alias && path_within(place->alias, root->alias));
			if (root == place || !by_name || path_within(place->path, root->path))
				continue;
			fail(err, CORDON_E_CAPABILITY_DENIED, 0, place->alias,
			     "a symbolic link in what the command can write leads this path out of it");
			fail_boundary(err, "filesystem");
			return fail_remedy(err, "if it is meant, grant what the link leads to by its own name");
		}
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

int capability_step(struct execution *execution, struct cordon_error *err)
{
	assert(execution->done == CORDON_STEP_CWD);
	const struct cordon_request *request = execution->request;
	struct capability_set baseline, *set = &execution->capability.set;
	if (capability_baseline(&execution->arena, !request->no_spawn, &baseline) < 0 ||
	    capability_merge(&execution->arena, &baseline, &request->granted, set) < 0)
		return fail_oom(err);
	if (resolve_all(execution, &set->fs_read, &execution->capability.reads, err) < 0 ||
	    resolve_all(execution, &set->fs_write, &execution->capability.writes, err) < 0 ||
	    resolve_all(execution, &set->devices, &execution->capability.devices, err) < 0 ||
	    resolve_all(execution, &set->sockets, &execution->capability.sockets, err) < 0 ||
	    resolve_all(execution, &set->programs, &execution->capability.programs, err) < 0)
		return -1;
	if (refuse_places(execution, &execution->capability.reads, err) < 0 ||
	    refuse_places(execution, &execution->capability.writes, err) < 0 ||
	    refuse_places(execution, &execution->capability.devices, err) < 0 ||
	    refuse_planted_links(execution, &execution->capability.reads, err) < 0 ||
	    refuse_planted_links(execution, &execution->capability.writes, err) < 0 ||
	    refuse_planted_links(execution, &execution->capability.programs, err) < 0 ||
	    require_kind(&execution->capability.devices, S_IFCHR, "a device", err) < 0 ||
	    require_kind(&execution->capability.sockets, S_IFSOCK, "a unix socket", err) < 0 ||
	    require_kind(&execution->capability.programs, S_IFREG, "a program", err) < 0)
		return -1;
	execution->done = CORDON_STEP_CAPABILITY;
	return 0;
}

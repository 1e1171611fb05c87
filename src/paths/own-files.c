/* Of step 4: what of cordon's own decides about later commands, where this one could change it: the configuration's
 * files, the manifest that was named, and the way to cordon's data.
 *
 * A path is every directory and link by which it leads to what it is. What of that lies in a writable tree is held
 * there: nothing on the way can be moved or replaced, and a file is read-only. What is not there cannot be held, and
 * would be the command's to make: that is refused, and so is a driver that holds no names. Trees are told by device
 * and inode, since they may be mounted under another name too. What has a second name besides is compared when the
 * command has ended. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "paths/trees.h"
#include "profile/profile.h"
#include "session/beneath.h"

struct own_file {
	const char *what;               /* for display */
	const char *end;                /* what it leads to, or would */
	bool is_data, is_there;
	bool in_reach;                  /* of the command, so that it is compared afterwards: */
	struct stat before;
	struct own_file *next;
};

struct holding {
	struct trees *trees;
	struct profile_input *input;
	struct own_file *own;
};

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static int refuse_driver(const struct holding *holding, const char *path, struct cordon_error *err)
{
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, path,
	     "the way to %s is in what the command may write, where the driver %s cannot keep it", holding->own->what,
	     holding->trees->facts.driver.name);
	fail_boundary(err, "filesystem");
	return fail_remedy(err, "grant a narrower path, or choose --driver namespaces");
}

static int refuse_missing(const struct own_file *own, const char *path, struct cordon_error *err)
{
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "the command could make %s here, and decide about later ones",
	     own->what);
	fail_boundary(err, "filesystem");
	return fail_remedy(err, "make it yourself, an empty one will do; or grant a narrower path");
}

static int refuse_whole(const struct own_file *own, const char *path, struct cordon_error *err)
{
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, path,
	     "%s cannot be granted to be written: later commands are decided by it", own->what);
	fail_boundary(err, "filesystem");
	return fail_remedy(err, "leave it out, or grant it to be read");
}

static int refuse_shown(const struct trees *trees, const char *path, struct cordon_error *err)
{
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, path,
	     "cordon's data is in what the command may read, where the driver %s cannot hide it",
	     trees->facts.driver.name);
	fail_boundary(err, "filesystem");
	return fail_remedy(err, "grant a narrower path, or choose --driver namespaces");
}

/* ---- holding ---------------------------------------------------------------------------------------------------- */

static int add_once(struct arena *arena, struct strings *list, const char *path)
{
	return strings_find(list, path) < 0 ? strings_add(arena, list, path) : 0;
}

/* `path` is of the way, or its end, as it is called inside a writable tree. */
static int hold(const struct holding *holding, const char *path, bool is_end, struct cordon_error *err)
{
	const struct trees_driver *driver = &holding->trees->facts.driver;
	struct arena *arena = holding->trees->arena;
	struct profile_input *input = holding->input;
	struct own_file *own = holding->own;
	own->in_reach = true;
	if (!driver->holds_writes)
		return 0;
	if (!driver->keeps_names)
		return refuse_driver(holding, path, err);
	if (is_end && !own->is_there)
		return refuse_missing(own, path, err);
	if (is_end && !own->is_data)
		return add_once(arena, &input->protect, path) < 0 ? fail_oom(err) : 0;
	/* The data itself is under a mount of its own. */
	const char *way = is_end ? arena_strndup(arena, path, (size_t)(strrchr(path, '/') - path)) : path;
	return !way || add_once(arena, &input->ways, way) < 0 ? fail_oom(err) : 0;
}

/* In the writable tree of which `path`, cut there, is the root. */
static int hold_beneath(const struct holding *holding, const struct place *root, const char *path, size_t cut,
                        bool is_end, struct cordon_error *err)
{
	if (!path[cut])
		return is_end && !holding->own->is_data ? refuse_whole(holding->own, root->path, err) : 0;
	const char *inside = arena_printf(holding->trees->arena, "%s%s", root->path, path + cut);
	return inside ? hold(holding, inside, is_end, err) : fail_oom(err);
}

static int hold_everywhere(const struct holding *holding, const char *path, bool is_end, struct cordon_error *err)
{
	const struct places *writes = &holding->input->writes;
	struct stat info;
	/* Beneath cordon's data all but the workspace is covered. */
	if (path_within(path, holding->input->data_dir) && strcmp(path, holding->input->data_dir) &&
	    !path_within(path, holding->input->workspace.path))
		return 0;
	for (size_t cut = strlen(path); cut; cut = (size_t)((const char *)memrchr(path, '/', cut) - path)) {
		const char *above = arena_strndup(holding->trees->arena, path, cut);
		if (!above)
			return fail_oom(err);
		const struct place *root = &holding->input->workspace;
		if (lstat(above, &info) < 0)
			continue;
		for (size_t i = 0; i <= writes->count; root = &writes->items[i++])
			if (root->inode == info.st_ino && root->device == (uint64_t)info.st_dev &&
			    hold_beneath(holding, root, path, cut, is_end, err) < 0)
				return -1;
	}
	return 0;
}

/* Read access is enough to lock the ledger's files, which stops every other command, and to read the ledger's key. A
 * private root covers the data; without one it must not be in anything readable. */
static int refuse_reads(struct trees *trees, const struct profile_input *input, const char *data,
                        struct cordon_error *err)
{
	const struct trees_driver *driver = &trees->facts.driver;
	if (driver->private_root || !driver->holds_writes)
		return 0;
	if (input->view == VIEW_HOST_READONLY)
		return refuse_shown(trees, "/", err);
	for (size_t cut = strlen(data); cut; cut = (size_t)((const char *)memrchr(data, '/', cut) - data)) {
		const char *above = arena_strndup(trees->arena, data, cut);
		struct stat info;
		if (!above)
			return fail_oom(err);
		for (size_t i = 0; lstat(above, &info) == 0 && i < input->reads.count; i++)
			if (input->reads.items[i].inode == info.st_ino &&
			    input->reads.items[i].device == (uint64_t)info.st_dev)
				return refuse_shown(trees, input->reads.items[i].path, err);
	}
	return 0;
}

static int keep(struct trees *trees, struct profile_input *input, const char *what, const char *path,
                struct cordon_error *err)
{
	struct own_file *own = arena_alloc(trees->arena, sizeof(*own));
	struct strings way;
	if (!own)
		return fail_oom(err);
	*own = (struct own_file){ .what = what, .is_data = path == trees->facts.data_named, .next = trees->own };
	int led = beneath_way(trees->arena, path, &own->end, &way);
	if (led == -ENOMEM)
		return fail_oom(err);
	own->is_there = led == 0 && stat(own->end, &own->before) == 0;
	const struct holding holding = { trees, input, own };
	for (size_t i = 0; i < way.count; i++)
		if (hold_everywhere(&holding, way.items[i], false, err) < 0)
			return -1;
	if (hold_everywhere(&holding, own->end, true, err) < 0 ||
	    (own->is_data && refuse_reads(trees, input, own->end, err) < 0))
		return -1;
	own->in_reach |= !trees->facts.driver.holds_writes || own->before.st_nlink > 1;
	if (own->in_reach && !own->is_data)
		trees->own = own;
	return 0;
}

int own_files_keep(struct trees *trees, struct profile_input *input, struct cordon_error *err)
{
	const char *manifest = trees->facts.manifest;
	uncleared char here[PATH_MAX];
	if (manifest && *manifest != '/')
		manifest = getcwd(here, sizeof(here)) ? arena_printf(trees->arena, "%s/%s", here, manifest) : NULL;
	if (trees->facts.manifest && !manifest)
		return fail_oom(err);
	const struct {
		const char *what, *path;
	} rows[] = {
		{ "cordon's configuration", trees->facts.config_files[0] },
		{ "cordon's configuration", trees->facts.config_files[1] },
		{ "the manifest", manifest },
		{ "cordon's data", trees->facts.data_named },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].path && keep(trees, input, rows[i].what, rows[i].path, err) < 0)
			return -1;
	return 0;
}

/* ---- afterwards ------------------------------------------------------------------------------------------------- */

static bool is_same(const struct own_file *own)
{
	const struct stat *before = &own->before;
	struct stat now;
	if (stat(own->end, &now) < 0)
		return !own->is_there;
	return own->is_there && now.st_dev == before->st_dev && now.st_ino == before->st_ino &&
	       now.st_size == before->st_size && now.st_ctim.tv_sec == before->st_ctim.tv_sec &&
	       now.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

int own_files_judge(struct trees *trees)
{
	for (const struct own_file *own = trees->own; own; own = own->next)
		if (!is_same(own) &&
		    denials_add(trees->denials, trees->arena, CORDON_WALL_PROTECTED, own->end,
		                "decides about later commands, and was changed while this one ran: look at it", "") < 0)
			return -1;
	return 0;
}

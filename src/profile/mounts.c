/* The private root as an ordered list of operations. Order is the design: the base first, then what is granted (parents
 * before children, so that the narrower grant wins), then what must win over every grant: covers, pins, masks. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "profile/mounts.h"

struct mount_op *mounts_add(struct arena *arena, struct mount_plan *plan, enum mount_kind kind, const char *target,
                            const char *source, unsigned flags)
{
	if (!target)
		return NULL;
	if (plan->count == plan->capacity) {
		size_t capacity = plan->capacity ? plan->capacity * 2 : 96;
		struct mount_op *ops = arena_alloc(arena, capacity * sizeof(*ops));
		if (!ops)
			return NULL;
		if (plan->count)
			memcpy(ops, plan->ops, plan->count * sizeof(*ops));
		plan->ops = ops;
		plan->capacity = capacity;
	}
	struct mount_op *op = &plan->ops[plan->count++];
	*op = (struct mount_op){ .kind = kind, .target = target, .source = source, .flags = flags };
	return op;
}

int mounts_add_scratch(struct arena *arena, struct mount_plan *plan, const char *target, uint64_t size, unsigned mode,
                       unsigned flags)
{
	struct mount_op *op = mounts_add(arena, plan, MOUNT_SCRATCH, target, NULL, flags);
	if (!op)
		return -1;
	op->size = size == UINT64_MAX ? 0 : size;
	op->mode = mode;
	return 0;
}

int mounts_add_point(struct arena *arena, struct mount_plan *plan, const char *target, bool is_directory)
{
	bool brought = false;
	for (size_t i = 0; i < plan->count; i++) {
		const struct mount_op *op = &plan->ops[i];
		if ((op->kind == MOUNT_BIND || op->kind == MOUNT_SCRATCH) && path_within(target, op->target))
			brought = op->kind == MOUNT_BIND;
	}
	if (brought)
		return 0;
	return mounts_add(arena, plan, is_directory ? MOUNT_DIRECTORY : MOUNT_FILE, target, NULL, 0) ? 0 : -1;
}

/* ---- what is granted -------------------------------------------------------------------------------------------- */

struct grant {
	const struct place *place;
	bool writable;
};

static bool wider(const struct grant *a, const struct grant *b)
{
	int order = strcmp(a->place->path, b->place->path);
	return order ? order < 0 : !a->writable && b->writable;
}

/* Sorted so that a parent comes before its children, and on the same path the writable one last. */
static struct grant *collect(struct arena *arena, const struct profile_input *input, size_t *ret_count)
{
	size_t count = 0, most = input->reads.count + input->writes.count + input->sockets.count + 1;
	struct grant *grants = arena_alloc(arena, most * sizeof(*grants));
	if (!grants)
		return NULL;
	for (size_t i = 0; i < input->reads.count; i++)
		grants[count++] = (struct grant){ &input->reads.items[i], false };
	for (size_t i = 0; i < input->sockets.count; i++)
		grants[count++] = (struct grant){ &input->sockets.items[i], false };
	for (size_t i = 0; i < input->writes.count; i++)
		grants[count++] = (struct grant){ &input->writes.items[i], true };
	grants[count++] = (struct grant){ &input->workspace, true };
	for (size_t i = 1; i < count; i++) {
		struct grant grant = grants[i];
		size_t at = i;
		for (; at > 0 && wider(&grant, &grants[at - 1]); at--)
			grants[at] = grants[at - 1];
		grants[at] = grant;
	}
	*ret_count = count;
	return grants;
}

/* The name under which it was granted leads to it, unless that name comes with another mount anyway. */
static int add_alias(struct arena *arena, struct mount_plan *plan, const struct place *place)
{
	if (!place->alias)
		return 0;
	for (size_t i = 0; i < plan->count; i++)
		if ((plan->ops[i].kind == MOUNT_BIND || plan->ops[i].kind == MOUNT_LINK) &&
		    path_within(place->alias, plan->ops[i].target))
			return 0;
	const char *slash = strrchr(place->alias, '/');
	const char *parent =
		slash > place->alias ? arena_strndup(arena, place->alias, (size_t)(slash - place->alias)) : "/";
	return parent && mounts_add(arena, plan, MOUNT_DIRECTORY, parent, NULL, 0) &&
	       mounts_add(arena, plan, MOUNT_LINK, place->alias, place->path, 0) ? 0 : -1;
}

static bool shows(const struct grant *grants, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++)
		if (path_within(path, grants[i].place->path) && strcmp(path, grants[i].place->path))
			return true;
	return false;
}

/* Would cordon's own data be visible, so that it must be covered? */
static bool is_data_shown(const struct profile_input *input, const struct grant *grants, size_t count)
{
	for (size_t i = 0; input->view == VIEW_SYSTEM && i < input->host.count; i++)
		if (path_within(input->data_dir, input->host.items[i].path))
			return true;
	for (size_t i = 0; i < input->shown.count; i++)
		if (path_within(input->data_dir, input->shown.items[i].path))
			return true;
	return input->view == VIEW_HOST_READONLY || shows(grants, count, input->data_dir);
}

/* Is it beneath something writable of the command's own, or the cover, which is mounted later than the base? */
static bool is_in_scratch(const struct profile_input *input, bool covered, const char *path)
{
	bool own_home = strcmp(input->home, input->workspace.path);
	return path_within(path, "/tmp") || path_within(path, "/dev/shm") || path_within(path, "/run") ||
	       (own_home && path_within(path, input->home)) || (covered && path_within(path, input->data_dir)) ||
	       (mounts_has_var_tmp(input) && path_within(path, "/var/tmp"));
}

static int add_grant_points(struct arena *arena, const struct profile_input *input, const struct grant *grants,
                            size_t count, struct mount_plan *plan)
{
	bool covered = is_data_shown(input, grants, count);
	for (size_t i = 0; i < count; i++) {
		const struct place *place = grants[i].place;
		bool within = is_in_scratch(input, covered, place->path);
		for (size_t j = 0; j < i && !within; j++)
			within = path_within(place->path, grants[j].place->path);
		if (!within && mounts_add_point(arena, plan, place->path, place->is_directory) < 0)
			return -1;
		if (!is_in_scratch(input, covered, place->alias ? place->alias : "/tmp") &&
		    add_alias(arena, plan, place) < 0)
			return -1;
	}
	const struct place home = { .path = input->home, .alias = input->home_alias };
	return home.alias && !is_in_scratch(input, covered, home.alias) ? add_alias(arena, plan, &home) : 0;
}

static int add_grant(struct arena *arena, const struct profile_input *input, struct mount_plan *plan,
                     const struct grant *grant, bool covered, unsigned exec)
{
	const struct place *place = grant->place;
	unsigned flags = MOUNT_GRANTED | exec | (grant->writable ? 0 : MOUNT_READ_ONLY);
	if (is_in_scratch(input, covered, place->path) &&
	    mounts_add_point(arena, plan, place->path, place->is_directory) < 0)
		return -1;
	struct mount_op *op = mounts_add(arena, plan, MOUNT_BIND, place->path, place->path, flags);
	if (!op)
		return -1;
	op->device = place->device;
	op->inode = place->inode;
	return place->alias && is_in_scratch(input, covered, place->alias) ? add_alias(arena, plan, place) : 0;
}

/* cordon's own data is hidden even where a parent was granted; a workspace inside it is mounted on top again. */
static int add_cover(struct arena *arena, const struct profile_input *input, struct mount_plan *plan, unsigned exec)
{
	return mounts_add_scratch(arena, plan, input->data_dir, 1 << 16, 0755, MOUNT_OPTIONAL | exec) < 0 ? -1 : 0;
}

static int add_grants(struct arena *arena, const struct profile_input *input, const struct grant *grants, size_t count,
                      struct mount_plan *plan, unsigned exec)
{
	bool covered = is_data_shown(input, grants, count), cover = covered;
	for (size_t i = 0; i < count; i++) {
		if (cover && strcmp(grants[i].place->path, input->data_dir) > 0) {
			cover = false;
			if (add_cover(arena, input, plan, exec) < 0)
				return -1;
		}
		if (add_grant(arena, input, plan, &grants[i], covered, exec) < 0)
			return -1;
	}
	return cover ? add_cover(arena, input, plan, exec) : 0;
}

/* With the base; or, `late`, those beneath what is mounted over it, such as /tmp. */
static int add_shown(struct arena *arena, const struct profile_input *input, struct mount_plan *plan, bool late,
                     unsigned exec)
{
	const unsigned flags = MOUNT_READ_ONLY | MOUNT_OWNED | MOUNT_OPTIONAL | (late ? 0 : MOUNT_BASE) | exec;
	for (size_t i = 0; i < input->shown.count; i++) {
		const struct host_entry *entry = &input->shown.items[i];
		if (is_in_scratch(input, false, entry->path) != late)
			continue;
		if (mounts_add_point(arena, plan, entry->path, entry->kind != HOST_FILE) < 0)
			return -1;
		struct mount_op *op = mounts_add(arena, plan, MOUNT_BIND, entry->path, entry->source, flags);
		if (!op)
			return -1;
		op->device = entry->device;
		op->inode = entry->inode;
	}
	return 0;
}

/* Where the caller knows the home by a link in what is mounted after the base. */
static int add_home_alias(struct arena *arena, const struct profile_input *input, struct mount_plan *plan)
{
	const struct place home = { .path = input->home, .alias = input->home_alias };
	bool late = home.alias && input->view != VIEW_HOST_READONLY && is_in_scratch(input, false, home.alias);
	return late ? add_alias(arena, plan, &home) : 0;
}

/* ---- what wins over every grant --------------------------------------------------------------------------------- */

/* What is not of the base view may be where only the caller gets to: then it is opened as the caller's own. */
static unsigned owner_flag(const struct profile_input *input, const char *path)
{
	for (size_t i = 0; i < input->host.count; i++)
		if (path_within(path, input->host.items[i].source))
			return 0;
	return MOUNT_OWNED;
}

/* What it was when it was named is what is started: a program in a writable tree could be swapped meanwhile. */
static int add_program(struct arena *arena, const struct profile_input *input, struct mount_plan *plan,
                       const struct place *place)
{
	unsigned flags = MOUNT_READ_ONLY | owner_flag(input, place->path);
	struct mount_op *op = mounts_add(arena, plan, MOUNT_BIND, place->path, place->path, flags);
	if (!op)
		return -1;
	op->device = place->device;
	op->inode = place->inode;
	return 0;
}

/* Only listed programs: everything was mounted without execution; what they are made of is mounted again with it. */
static int add_programs(struct arena *arena, const struct profile_input *input, struct mount_plan *plan)
{
	const unsigned flags = MOUNT_READ_ONLY | MOUNT_OPTIONAL;
	for (size_t i = 0; i < input->libraries.count; i++)
		if (!mounts_add(arena, plan, MOUNT_BIND, input->libraries.items[i], input->libraries.items[i], flags))
			return -1;
	for (size_t i = 0; i < input->interpreters.count; i++)
		if (add_program(arena, input, plan, &input->interpreters.items[i]) < 0)
			return -1;
	for (size_t i = 0; i < input->programs.count; i++)
		if (add_program(arena, input, plan, &input->programs.items[i]) < 0)
			return -1;
	return 0;
}

static const char *writable_root(const struct profile_input *input, const char *path)
{
	if (path_within(path, input->workspace.path))
		return input->workspace.path;
	for (size_t i = 0; i < input->writes.count; i++)
		if (path_within(path, input->writes.items[i].path))
			return input->writes.items[i].path;
	return NULL;
}

/* The directories between a writable root and a protected name, so that none can be renamed away. */
static int add_pins(struct arena *arena, struct mount_plan *plan, const char *root, const char *path,
                    const char *before)
{
	for (const char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		const char *parent = arena_strndup(arena, path, (size_t)(slash - path));
		/* The paths are sorted: what is shared with another one is shared with the one before. */
		bool known = parent && before && path_within(before, parent) && strcmp(before, parent);
		if (!parent || (!known && !mounts_add(arena, plan, MOUNT_PIN, parent, NULL, 0)))
			return -1;
	}
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Protected and masked names in writable roots: a command that could move the directory around a secret would show it
 * to the next one under another name. So would one that could replace a link on the way: a link can be mounted on
 * itself, and still leads on. */
static int add_all_pins(struct arena *arena, const struct profile_input *input, struct mount_plan *plan)
{
	size_t count = 0;
	const char **paths = arena_alloc(arena, (input->protect.count + input->masked.count + input->ways.count + 1) *
	                                         sizeof(*paths));
	if (!paths)
		return -1;
	for (size_t i = 0; i < input->protect.count; i++)
		paths[count++] = input->protect.items[i];
	for (size_t i = 0; i < input->masked.count; i++)
		paths[count++] = input->masked.items[i].path;
	/* As if there were something in it, for whose sake it is to stay. */
	for (size_t i = 0; i < input->ways.count; i++)
		if (!(paths[count++] = arena_printf(arena, "%s/", input->ways.items[i])))
			return -1;
	qsort(paths, count, sizeof(*paths), by_path);
	const char *before = NULL;
	for (size_t i = 0; i < count; i++) {
		const char *root = writable_root(input, paths[i]);
		if (!root || !strcmp(root, paths[i]))
			continue;
		if (add_pins(arena, plan, root, paths[i], before) < 0)
			return -1;
		before = paths[i];
	}
	return 0;
}

static bool is_cached(const struct profile_input *input, const char *path)
{
	for (size_t i = 0; i < input->caches.count; i++)
		if (path_within(path, input->caches.items[i].target))
			return true;
	return false;
}

/* In the command's own memory only what was granted or shown is there to be hidden: a caller's home may be beneath
 * /tmp. */
static bool is_there(const struct profile_input *input, const struct grant *grants, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++)
		if (path_within(path, grants[i].place->path))
			return true;
	for (size_t i = 0; i < input->shown.count; i++)
		if (path_within(path, input->shown.items[i].path))
			return true;
	return is_cached(input, path) || !is_in_scratch(input, is_data_shown(input, grants, count), path);
}

static int add_protection(struct arena *arena, const struct profile_input *input, const struct grant *grants,
                          size_t count, struct mount_plan *plan)
{
	if (add_all_pins(arena, input, plan) < 0)
		return -1;
	for (size_t i = 0; i < input->protect.count; i++)
		if (!mounts_add(arena, plan, MOUNT_FREEZE, input->protect.items[i], NULL, MOUNT_READ_ONLY))
			return -1;
	for (size_t i = 0; i < input->masked.count; i++) {
		const struct place *place = &input->masked.items[i];
		if (!is_there(input, grants, count, place->path))
			continue;
		/* Of a cache a command may have removed it, in the layer. */
		unsigned flags = MOUNT_READ_ONLY | (is_cached(input, place->path) ? MOUNT_OPTIONAL : 0);
		struct mount_op *op = mounts_add(arena, plan, MOUNT_MASK, place->path, NULL, flags);
		if (!op)
			return -1;
		op->is_directory = place->is_directory;
	}
	return 0;
}

/* The base: everything the root's own tmpfs will ever hold, and the system read-only; then it is locked. */
static int add_base(struct arena *arena, const struct profile_input *input, const struct grant *grants, size_t count,
                    struct mount_plan *plan, unsigned exec)
{
	if (input->view == VIEW_HOST_READONLY)
		return mounts_add(arena, plan, MOUNT_BIND, "/", "/", MOUNT_READ_ONLY | exec)
		               ? mounts_add_covers(arena, input, plan) : -1;
	if ((input->view == VIEW_SYSTEM && mounts_add_host(arena, input, plan, exec) < 0) ||
	    mounts_add_texts(arena, input, plan) < 0 ||
	    mounts_add_points(arena, input, plan) < 0 || add_shown(arena, input, plan, false, exec) < 0 ||
	    add_grant_points(arena, input, grants, count, plan) < 0)
		return -1;
	return mounts_add(arena, plan, MOUNT_LOCK, "/", NULL, exec) ? 0 : -1;
}

int profile_make_mounts(struct arena *arena, const struct profile_input *input, struct mount_plan *ret_plan)
{
	struct mount_plan plan = { 0 };
	size_t count;
	struct grant *grants = collect(arena, input, &count);
	unsigned exec = input->capabilities->programs.count ? MOUNT_NO_EXEC : 0;
	if (!grants || add_base(arena, input, grants, count, &plan, exec) < 0 ||
	    mounts_add_proc(arena, input, &plan) < 0 || mounts_add_devices(arena, input, &plan, exec) < 0 ||
	    mounts_add_tmp(arena, input, &plan, exec) < 0 || mounts_add_run(arena, input, &plan, exec) < 0 ||
	    mounts_add_home(arena, input, &plan, exec) < 0 || add_home_alias(arena, input, &plan) < 0 ||
	    add_shown(arena, input, &plan, true, exec) < 0 ||
	    add_grants(arena, input, grants, count, &plan, exec) < 0 ||
	    mounts_add_caches(arena, input, &plan, exec) < 0 || mounts_replace_texts(arena, input, &plan) < 0)
		return -1;
	if (input->capabilities->programs.count && add_programs(arena, input, &plan) < 0)
		return -1;
	if (add_protection(arena, input, grants, count, &plan) < 0)
		return -1;
	*ret_plan = plan;
	return 0;
}

/* A package cache under a private layer: an overlay mount whose lower directory is the host's and whose upper one is
 * the session's, or memory. Overlayfs takes its directories by path, of mounts that are attached: so they are put
 * together in a tmpfs of their own, the stage, and are named relative to it. Overlayfs keeps clones of them. The stage
 * covers the host's /dev in this namespace (the private root has its own by then) and leaves with the host's tree: to
 * unmount it by itself would take the kernel up to a millisecond. In a user namespace overlayfs exists from Linux 5.11
 * on, with owners mapped from 5.19 on, and not every filesystem can be its upper one: then the layer is in memory.
 * Where not even that can be, the cache inside is what would have been the upper directory, and nothing of the host's
 * is in it: no tool works with a cache that it cannot write. */
#include <fcntl.h>
#include <sys/mount.h>

#include "base/compat.h"
#include "driver/linux/child-root.h"
#include "driver/linux/sys.h"

#define NAME_SIZE 64

static long make_private(long tree)
{
	struct mount_attr attributes = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .propagation = MS_PRIVATE };
	return sys_5(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof(attributes));
}

/* "NAME/part" */
static const char *part_of(char text[static NAME_SIZE], const char *name, const char *part)
{
	size_t at = 0;
	for (; *name && at < NAME_SIZE / 2; name++)
		text[at++] = *name;
	text[at++] = '/';
	for (; *part && at < NAME_SIZE - 1; part++)
		text[at++] = *part;
	text[at] = '\0';
	return text;
}

static long begin_stage(struct builder *builder, const struct mount_op *op)
{
	if (builder->stage >= 0)
		return 0;
	long stage = root_new_tmpfs(op->size, 0755);
	if (stage < 0)
		return stage;
	builder->stage = (int)stage;
	return sys_5(SYS_move_mount, stage, "", AT_FDCWD, "/dev", MOVE_MOUNT_F_EMPTY_PATH);
}

static long put(const struct builder *builder, const char *name, const char *part, long tree)
{
	char path[NAME_SIZE];
	long result = tree < 0 ? tree : make_private(tree);
	if (result >= 0)
		result = sys_5(SYS_move_mount, tree, "", builder->stage, part_of(path, name, part),
		               MOVE_MOUNT_F_EMPTY_PATH);
	return result;
}

static long clone_path(const char *path)
{
	return sys_3(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

static long set_option(long context, const char *key, const char *name, const char *part)
{
	char path[NAME_SIZE];
	return sys_5(SYS_fsconfig, context, FSCONFIG_SET_STRING, key, part_of(path, name, part), 0);
}

static long new_overlay(const char *name, bool on_disk)
{
	long context = sys_2(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);
	if (context < 0)
		return context;
	long result = set_option(context, "lowerdir", name, "lower");
	if (result >= 0)
		result = set_option(context, "upperdir", name, on_disk ? "disk/upper" : "upper");
	if (result >= 0)
		result = set_option(context, "workdir", name, on_disk ? "disk/work" : "work");
	if (result >= 0)
		result = sys_5(SYS_fsconfig, context, FSCONFIG_SET_FLAG, "userxattr", NULL, 0);
	if (result >= 0)
		result = sys_5(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (result >= 0)
		result = sys_3(SYS_fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	sys_1(SYS_close, context);
	return result;
}

static long make_directory(const struct builder *builder, const char *name, const char *part)
{
	char path[NAME_SIZE];
	return sys_3(SYS_mkdirat, builder->stage, part_of(path, name, part), 0755);
}

static long new_layer_on_disk(struct builder *builder, const struct mount_op *op, const struct launch_layer *layer)
{
	/* Without the lock another sandbox may have it. */
	if (!layer->directory || builder->launch->root->layers_lock < 0)
		return -EINVAL;
	long result = make_directory(builder, op->layer, "disk");
	long tree = layer->directory_tree >= 0 ? layer->directory_tree : clone_path(layer->directory);
	if (result >= 0)
		result = put(builder, op->layer, "disk", tree);
	return result < 0 ? result : new_overlay(op->layer, true);
}

static long new_layer_in_memory(const struct builder *builder, const struct mount_op *op)
{
	long result = make_directory(builder, op->layer, "upper");
	if (result >= 0)
		result = make_directory(builder, op->layer, "work");
	return result < 0 ? result : new_overlay(op->layer, false);
}

/* By then, the directories are there that an overlay would have had. */
static long without_overlay(const struct builder *builder, const char *name)
{
	char path[NAME_SIZE];
	long tree = sys_3(SYS_open_tree, builder->stage, part_of(path, name, "disk/upper"),
	                  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return tree >= 0 ? tree
	                 : sys_3(SYS_open_tree, builder->stage, part_of(path, name, "upper"),
	                         OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

long launch_make_layer(struct builder *builder, const struct mount_op *op, const struct launch_layer *layer)
{
	long source = layer->source_tree >= 0 ? layer->source_tree : clone_path(op->source);
	if (source < 0)
		return source;
	if (op->inode && !root_is_same(source, op))
		return -ESTALE;
	long result = begin_stage(builder, op);
	if (result >= 0)
		result = sys_3(SYS_mkdirat, builder->stage, op->layer, 0755);
	if (result >= 0)
		result = make_directory(builder, op->layer, "lower");
	if (result >= 0)
		result = put(builder, op->layer, "lower", source);
	if (result >= 0)
		result = sys_1(SYS_fchdir, builder->stage);
	if (result < 0)
		return result;
	result = new_layer_on_disk(builder, op, layer);
	if (result < 0)
		result = new_layer_in_memory(builder, op);
	sys_1(SYS_chdir, "/");
	return result < 0 ? without_overlay(builder, op->layer) : result;
}

/* The private root, built by `first` of launch.h's picture with the new mount API: a tmpfs is put over "/", everything
 * granted is cloned into it detached, given its attributes in one recursive call, and attached by descriptor. Then the
 * old root is pivoted away and unmounted, so that no mount of the host's is left in the namespace. Descriptors of which
 * there are few stay open until exec closes them.
 *
 * Sources are named by path, because a descriptor of the caller's mount namespace cannot be cloned in this one. What
 * was opened is therefore compared with the device and inode the walk saw: a swapped place is refused. Targets are
 * opened without following any link, since a writable tree may be changed meanwhile by whoever shares it. */
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/compat.h"
#include "driver/linux/child-root.h"
#include "driver/linux/sys.h"

static long new_filesystem(const char *type, const char *const (*options)[2], unsigned attributes)
{
	long context = sys_2(SYS_fsopen, type, FSOPEN_CLOEXEC);
	if (context < 0)
		return context;
	long result = 0;
	for (; (*options)[0] && result >= 0; options++)
		result = sys_5(SYS_fsconfig, context, FSCONFIG_SET_STRING, (*options)[0], (*options)[1], 0);
	if (result >= 0)
		result = sys_5(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	return result < 0 ? result : sys_3(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes);
}

static long set_attributes(long tree, unsigned flags)
{
	struct mount_attr attributes = { .attr_set = MOUNT_ATTR_NOSUID, .propagation = MS_PRIVATE };
	if (flags & MOUNT_READ_ONLY)
		attributes.attr_set |= MOUNT_ATTR_RDONLY;
	if (flags & MOUNT_NO_EXEC)
		attributes.attr_set |= MOUNT_ATTR_NOEXEC;
	if (!(flags & MOUNT_DEVICE))
		attributes.attr_set |= MOUNT_ATTR_NODEV;
	return sys_5(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof(attributes));
}

static long attach(long tree, int root, const char *target)
{
	long at = root_open_target(root, target);
	if (at < 0)
		return at;
	long result = sys_5(SYS_move_mount, tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	sys_1(SYS_close, at);
	return result;
}

/* The same if every directory on the way was made by this process. */
static long attach_directly(long tree, int root, const char *target)
{
	return sys_5(SYS_move_mount, tree, "", root, root_relative(target), MOVE_MOUNT_F_EMPTY_PATH);
}

static long attach_new(long tree, int root, const char *target)
{
	return tree < 0 ? tree : attach_directly(tree, root, target);
}

/* ---- one function per kind of mount_op -------------------------------------------------------------------------- */

/* The whole of the host's tree as the root to be; masks still come from the base. */
static long attach_as_root(struct builder *builder, long clone)
{
	long at = root_open_view(builder);
	long result = at;
	if (at >= 0) {
		result = sys_5(SYS_move_mount, clone, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
		sys_1(SYS_close, at);
	}
	if (result >= 0)
		result = root_open_view(builder);
	if (result >= 0)
		builder->root = (int)result;
	return result;
}

/* The base lies over "/" and would be cloned along with it, covering everything: for that moment it is unbindable. */
static long clone_source(const struct builder *builder, const struct mount_op *op)
{
	bool whole = root_is_whole(op->source);
	struct mount_attr skip = { .propagation = MS_UNBINDABLE }, keep = { .propagation = MS_PRIVATE };
	long result = whole ? sys_5(SYS_mount_setattr, builder->base, "", AT_EMPTY_PATH, &skip, sizeof(skip)) : 0;
	if (result >= 0)
		result = sys_3(SYS_open_tree, AT_FDCWD, op->source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (whole)
		sys_5(SYS_mount_setattr, builder->base, "", AT_EMPTY_PATH, &keep, sizeof(keep));
	return result;
}

static int play_bind(struct builder *builder, const struct mount_op *op)
{
	long clone = builder->tree;
	if (clone < 0)
		clone = clone_source(builder, op);
	if ((clone == -ENOENT || clone == -EACCES) && (op->flags & MOUNT_OPTIONAL))
		return 0;
	if (clone < 0)
		return root_refuse(builder, clone, op->source, "cannot show this path inside");
	if (op->inode && !root_is_same(clone, op))
		return root_refuse_swapped(builder, op);
	bool ours = !(op->flags & (MOUNT_GRANTED | MOUNT_OWNED)) && (op->flags & (MOUNT_BASE | MOUNT_DEVICE));
	long result = op->flags & MOUNT_BASE ? 0 : set_attributes(clone, op->flags);
	if (result >= 0)
		result = root_is_whole(op->target) ? attach_as_root(builder, clone)
		         : ours                    ? attach_directly(clone, builder->root, op->target)
		                                   : attach(clone, builder->root, op->target);
	if (builder->tree < 0)
		sys_1(SYS_close, clone);
	/* A view of the host's whole tree may have no /var/tmp to mount on. */
	if ((op->flags & MOUNT_OWNED) && !(op->flags & MOUNT_READ_ONLY) && root_may_skip(op, result))
		return 0;
	return result < 0 ? root_refuse(builder, result, op->target, "cannot mount this path inside") : 0;
}

long root_new_tmpfs(uint64_t size, unsigned mode)
{
	char size_text[24];
	root_number_text(size_text, size);
	const char *const options[][2] = { { "mode", root_mode_text(mode) }, { "size", size_text }, { NULL, NULL } };
	return new_filesystem("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int play_scratch(struct builder *builder, const struct mount_op *op)
{
	long clone = builder->tree >= 0 ? builder->tree : root_new_tmpfs(op->size, op->mode);
	long result = clone;
	if (clone >= 0 && (op->flags & MOUNT_NO_EXEC))
		result = set_attributes(clone, op->flags);
	if (result >= 0)
		result = attach(clone, builder->root, op->target);
	if (root_may_skip(op, result))
		return 0;
	return result < 0 ? root_refuse(builder, result, op->target, "cannot mount a private tmpfs") : 0;
}

static int play_layer(struct builder *builder, const struct mount_op *op)
{
	const struct launch_root *plan = builder->launch->root;
	long tree = builder->tree >= 0 ? builder->tree : launch_make_layer(builder, op, &plan->layers[op - plan->ops]);
	/* Without its cache a tool fetches what it needs. */
	if (tree < 0)
		return 0;
	long result = set_attributes(tree, op->flags);
	if (result >= 0)
		result = attach(tree, builder->root, op->target);
	if (root_may_skip(op, result))
		return 0;
	return result < 0 ?
	               root_refuse(builder, result, op->target, "cannot mount a package cache of the host inside") :
	               0;
}

static int play_proc(struct builder *builder, const struct mount_op *op)
{
	/* "ptraceable": a process of another owner or of init's is not even listed. In a session's sandbox nor would
	 * be what another view's commands have started, which ps is to show: there all are, and what is not to be
	 * traced has no more than its name. */
	static const char *const options[][2] = { { "hidepid", "ptraceable" }, { NULL, NULL } }, *const all[][2] = {
		{ NULL, NULL }
	};
	unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	long result = attach_new(new_filesystem("proc", builder->launch->starter ? all : options, attributes),
	                         builder->root, op->target);
	return result < 0 ? root_refuse_proc(builder, result, op->target) : 0;
}

static int play_pts(struct builder *builder, const struct mount_op *op)
{
	static const char *const options[][2] = { { "ptmxmode", "0666" }, { "mode", "0620" }, { NULL, NULL } };
	long result = attach_new(new_filesystem("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC),
	                               builder->root,
	                               op->target);
	return result < 0 ? root_refuse(builder, result, op->target, "cannot mount a fresh devpts") : 0;
}

/* Mounts `clone` on what is open as `at`; takes both. */
static int cover(struct builder *builder, const struct mount_op *op, long at, long clone)
{
	long result = clone < 0 ? clone : set_attributes(clone, op->flags);
	if (result >= 0)
		result = sys_5(SYS_move_mount, clone, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	if (clone >= 0)
		sys_1(SYS_close, clone);
	if (at >= 0)
		sys_1(SYS_close, at);
	return result < 0 ? root_refuse_cover(builder, op, result) : 0;
}

/* Covers what is there with itself, under other attributes. */
static int play_cover(struct builder *builder, const struct mount_op *op)
{
	long at = root_open_target(builder->root, op->target);
	if (root_may_skip(op, at))
		return 0;
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE;
	return cover(builder, op, at, at < 0 ? at : sys_3(SYS_open_tree, at, "", flags));
}

/* Covers what is there with nothing readable of the same kind. */
static int play_mask(struct builder *builder, const struct mount_op *op)
{
	long at = root_open_target(builder->root, op->target);
	if (root_may_skip(op, at))
		return 0;
	int mask = op->is_directory ? builder->mask_directory : builder->mask_file;
	long clone = at < 0 ? at : sys_3(SYS_open_tree, mask, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	return cover(builder, op, at, clone);
}

static int play_replace(struct builder *builder, const struct mount_op *op)
{
	long at = root_open_target(builder->root, op->target);
	if (root_may_skip(op, at))
		return 0;
	long text = at < 0 ? at : root_make_text(builder, op->source);
	if (text < 0)
		return root_refuse(builder, text, op->target, "cannot put a file of the sandbox's own over this one");
	int result = cover(builder, op, at,
	                   sys_3(SYS_open_tree, text, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH));
	root_drop_text(builder, text);
	return result;
}

static int play_lock(struct builder *builder, const struct mount_op *op)
{
	bool whole = root_is_whole(op->target);
	long at = whole ? builder->root : root_open_target(builder->root, op->target);
	long result = at < 0 ? at : set_attributes(at, op->flags | MOUNT_READ_ONLY);
	if (at >= 0 && !whole)
		sys_1(SYS_close, at);
	return result < 0 ? root_refuse(builder, result, op->target, "cannot make this mount read-only") : 0;
}

static root_player *const players[MOUNT_KIND_MAX] = {
	[MOUNT_DIRECTORY] = root_play_point,
	[MOUNT_FILE] = root_play_point,
	[MOUNT_LINK] = root_play_link,
	[MOUNT_TEXT] = root_play_text,
	[MOUNT_BIND] = play_bind,
	[MOUNT_SCRATCH] = play_scratch,
	[MOUNT_LAYER] = play_layer,
	[MOUNT_PROC] = play_proc,
	[MOUNT_PTS] = play_pts,
	[MOUNT_MASK] = play_mask,
	[MOUNT_REPLACE] = play_replace,
	[MOUNT_FREEZE] = play_cover,
	[MOUNT_PIN] = play_cover,
	[MOUNT_LOCK] = play_lock,
};

/* What masks are made of lies in the base where /proc is going to cover it. Its name cannot be removed: the kernel
 * does not mount what is unlinked. */
static long open_masks(struct builder *builder)
{
	long result = sys_4(SYS_openat, builder->base, LAUNCH_MASK_FILE, O_PATH | O_CLOEXEC, 0);
	builder->mask_file = (int)result;
	if (result >= 0)
		result = sys_4(SYS_openat, builder->base, LAUNCH_MASK_DIRECTORY, O_PATH | O_CLOEXEC, 0);
	builder->mask_directory = (int)result;
	return result;
}

static long make_masks(struct builder *builder)
{
	int base = builder->base;
	long result = sys_3(SYS_mkdirat, base, "proc", 0755);
	if (result >= 0)
		result = sys_4(SYS_mknodat, base, LAUNCH_MASK_FILE, S_IFREG, 0);
	if (result >= 0)
		result = sys_3(SYS_mkdirat, base, LAUNCH_MASK_DIRECTORY, 0);
	return result < 0 ? result : open_masks(builder);
}

/* Puts the base over "/": the skeleton, or fresh memory. */
static long begin(struct builder *builder)
{
	const struct launch_root *plan = builder->launch->root;
	long base =
		plan->skeleton_tree >= 0 ? plan->skeleton_tree :
		plan->skeleton ? sys_3(SYS_open_tree, AT_FDCWD, plan->skeleton, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) :
				 root_new_tmpfs(plan->root_bytes, 0755);
	builder->base = (int)base;
	return base < 0 ? base : sys_5(SYS_move_mount, base, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH);
}

static int begin_root(struct builder *builder)
{
	const struct launch_root *plan = builder->launch->root;
	long result = begin(builder);
	builder->root = builder->base;
	if (result >= 0)
		result = plan->skeleton ? open_masks(builder) : make_masks(builder);
	return result < 0 ? root_refuse_base(builder, result) : 0;
}

/* A view of the host's whole tree has no hidden place in it, so it is switched to before anything runs inside. Over its
 * root then lie the host's root and, over that, the base. */
static int leave_for_view(struct launch *launch)
{
	long result = sys_1(SYS_fchdir, launch->root_fd);
	if (result >= 0)
		result = sys_2(SYS_pivot_root, ".", ".");
	for (int over = 0; over < 2 && result >= 0; over++)
		result = sys_2(SYS_umount2, ".", MNT_DETACH);
	launch->root_fd = -1;
	return result < 0 ? launch_unavailable(launch, result, "filesystem", "/", "cannot leave the host's root") : 0;
}

int launch_raise_root(struct launch *launch)
{
	const struct launch_root *plan = launch->root;
	struct builder builder = { .launch = launch, .stage = -1 };
	if (begin_root(&builder) < 0)
		return -1;
	for (size_t i = 0; i < plan->count; i++) {
		const struct mount_op *op = &plan->ops[i];
		builder.tree = plan->trees ? plan->trees[i] : -1;
		if (players[op->kind](&builder, op) < 0)
			return -1;
	}
	launch->root_fd = builder.root;
	launch->mask_fd = builder.mask_file;
	launch->hidden_fd = builder.mask_directory;
	return builder.root == builder.base ? 0 : leave_for_view(launch);
}

/* ---- in a sandbox that is up ------------------------------------------------------------------------------------- */

void launch_cover(void *argument)
{
	struct launch *launch = argument;
	const struct launch_root *plan = launch->root;
	struct builder builder = { .launch = launch, .root = launch->root_fd, .tree = -1, .mask_file = launch->mask_fd,
	                           .mask_directory = launch->hidden_fd };
	long result = launch_join(launch);
	if (result < 0)
		launch_unavailable(launch, result, "filesystem", "setns", "cannot enter the sandbox's namespaces");
	for (size_t i = 0; i < plan->count && result >= 0; i++)
		result = players[plan->ops[i].kind](&builder, &plan->ops[i]);
	sys_exit(result < 0);
}

void launch_clone_scratch(void *argument)
{
	struct launch *launch = argument;
	const struct launch_root *plan = launch->root;
	int *trees = (int *)(uintptr_t)plan->trees;
	long result = launch_join(launch);
	if (result < 0)
		launch_unavailable(launch, result, "filesystem", "setns", "cannot enter the sandbox's namespaces");
	for (size_t i = 0; i < plan->count && result >= 0; i++) {
		struct statx info = { 0 };
		if (plan->ops[i].kind != MOUNT_SCRATCH && plan->ops[i].kind != MOUNT_LAYER)
			continue;
		long at = root_open_target(launch->root_fd, plan->ops[i].target);
		if (at < 0)
			continue;
		/* Only what is a mount of the sandbox's own there, too. */
		if (sys_5(SYS_statx, at, "", AT_EMPTY_PATH, STATX_INO, &info) >= 0 &&
		    (info.stx_attributes & STATX_ATTR_MOUNT_ROOT)) {
			long tree = sys_3(SYS_open_tree, at, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
			trees[i] = tree < 0 ? -1 : (int)tree;
		}
		sys_1(SYS_close, at);
	}
	sys_exit(result < 0);
}

int launch_enter_root(struct launch *launch)
{
	long result = sys_1(SYS_fchdir, launch->root_fd);
	if (result >= 0)
		result = sys_1(SYS_chroot, ".");
	return result < 0 ? launch_unavailable(launch, result, "filesystem", "/", "cannot enter the private root") : 0;
}

/* After this the host's root is in no mount of this namespace. Done while the command seals itself, and before it has
 * its network: later the kernel would wait for a processor that has the program, and the program would begin with the
 * host's tree in its namespace. On its way out the host's root goes where /proc covers it, since what lies over the
 * private root is one ".." away from it. The command, if it has not entered the private root yet, is put there by the
 * pivoting like everybody who has the host's. */
int launch_leave_host(struct launch *launch)
{
	if (launch->root_fd < 0)
		return 0;
	struct root_link hidden = root_link_to(launch->hidden_fd);
	long host = sys_4(SYS_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	long result = host < 0 ? host : sys_1(SYS_fchdir, launch->root_fd);
	if (result >= 0)
		result = sys_2(SYS_pivot_root, ".", hidden.text);
	if (result >= 0)
		result = sys_1(SYS_fchdir, host);
	if (result >= 0)
		result = sys_2(SYS_umount2, ".", MNT_DETACH);
	return result < 0 ? launch_unavailable(launch, result, "filesystem", "/", "cannot leave the host's root") : 0;
}

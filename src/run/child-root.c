/* The private root, built by `first` of launch.h's picture with the new mount API: a tmpfs is put over "/", everything
 * granted is cloned into it detached, given its attributes in one recursive call, and attached by descriptor. Then the
 * old root is pivoted away and unmounted, so that no mount of the host's is left in the namespace.
 *
 * Sources are named by path, because a descriptor of the caller's mount namespace cannot be cloned in this one. What
 * was opened is therefore compared with the device and inode the walk saw: a swapped place is refused. Targets are
 * opened without following any link, since a writable tree may be changed meanwhile by whoever shares it. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/compat.h"
#include "run/launch.h"
#include "run/sys.h"

struct builder {
	struct launch *launch;
	int base;       /* the tmpfs over "/"; holds what masks are made of */
	int root;       /* the root to be: the same, or a view of the host's whole tree */
	int tree;       /* a detached mount that the caller made for this operation, or -1 */
	int mask_file, mask_directory;
};

static int refuse(const struct builder *builder, long result, const char *subject, const char *reason)
{
	return launch_unavailable(builder->launch, result, "filesystem", subject, reason);
}

static const char *relative(const char *target)
{
	while (*target == '/')
		target++;
	return *target ? target : ".";
}

static long open_target(int root, const char *target)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
	                        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	return sys_4(SYS_openat2, root, relative(target), &how, sizeof(how));
}

static long make_node(int root, const char *path, bool is_file)
{
	long result = is_file ? sys_4(SYS_mknodat, root, path, S_IFREG | 0444, 0) : sys_3(SYS_mkdirat, root, path, 0755);
	return result == -EEXIST ? 0 : result;
}

/* A directory or an empty file to mount on, with every missing parent. Only for memory of the sandbox's own: beneath a
 * granted tree everything exists already, and nothing is ever created there. */
static long make_target(int root, const char *target, bool is_file)
{
	char path[4096];
	const char *from = relative(target);
	long result = make_node(root, from, is_file);
	for (size_t i = 0; result == -ENOENT && i < sizeof(path); i++) {
		path[i] = from[i];
		if (from[i] == '\0')
			return make_node(root, from, is_file);
		if (from[i] != '/')
			continue;
		path[i] = '\0';
		long made = make_node(root, path, false);
		if (made < 0)
			return made;
		path[i] = '/';
	}
	return result;
}

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
	if (result >= 0)
		result = sys_3(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes);
	sys_1(SYS_close, context);
	return result;
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
	long at = open_target(root, target);
	if (at < 0)
		return at;
	long result = sys_5(SYS_move_mount, tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	sys_1(SYS_close, at);
	return result;
}

/* The same where every directory on the way is of our own making. */
static long attach_directly(long tree, int root, const char *target)
{
	return sys_5(SYS_move_mount, tree, "", root, relative(target), MOVE_MOUNT_F_EMPTY_PATH);
}

static long attach_new(long tree, int root, const char *target)
{
	if (tree < 0)
		return tree;
	long result = attach_directly(tree, root, target);
	sys_1(SYS_close, tree);
	return result;
}

/* ---- one function per kind of mount_op -------------------------------------------------------------------------- */

static int play_point(struct builder *builder, const struct mount_op *op)
{
	long result = make_target(builder->root, op->target, op->kind == MOUNT_FILE);
	return result < 0 ? refuse(builder, result, op->target, "cannot make a mount point in the private root") : 0;
}

static int play_link(struct builder *builder, const struct mount_op *op)
{
	long result = sys_3(SYS_symlinkat, op->source, builder->root, relative(op->target));
	return result < 0 && result != -EEXIST ? refuse(builder, result, op->target, "cannot make a link in the private root")
	                                       : 0;
}

static int play_text(struct builder *builder, const struct mount_op *op)
{
	long fd = sys_4(SYS_openat, builder->root, relative(op->target), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	long result = fd < 0 ? fd : sys_3(SYS_write, fd, op->source, sys_strlen(op->source));
	if (fd >= 0)
		sys_1(SYS_close, fd);
	return result < 0 ? refuse(builder, result, op->target, "cannot write a file in the private root") : 0;
}

static bool is_same(long tree, const struct mount_op *op)
{
	struct stat info;
	if (sys_2(SYS_fstat, tree, &info) < 0)
		return false;
	return info.st_dev == op->device && info.st_ino == op->inode;
}

/* The whole of the host's tree as the root to be; masks still come from the base. */
static long attach_as_root(struct builder *builder, long clone)
{
	static const char point[] = "host";
	long result = sys_3(SYS_mkdirat, builder->base, point, 0755);
	if (result >= 0)
		result = attach(clone, builder->base, point);
	if (result >= 0)
		result = sys_4(SYS_openat, builder->base, point, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (result >= 0)
		builder->root = (int)result;
	return result;
}

static int play_bind(struct builder *builder, const struct mount_op *op)
{
	long clone = builder->tree;
	if (clone < 0)
		clone = sys_3(SYS_open_tree, AT_FDCWD, op->source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (clone == -ENOENT && (op->flags & MOUNT_OPTIONAL))
		return 0;
	if (clone < 0)
		return refuse(builder, clone, op->source, "cannot show this path inside");
	if ((op->flags & MOUNT_GRANTED) && !is_same(clone, op))
		return launch_fail(builder->launch, CORDON_E_CAPABILITY_DENIED, 0, "filesystem", op->source,
		                   "the path was replaced by something else while the command was being started", "");
	bool ours = !(op->flags & (MOUNT_GRANTED | MOUNT_OWNED)) && (op->flags & (MOUNT_BASE | MOUNT_DEVICE));
	long result = op->flags & (MOUNT_BASE | MOUNT_DEVICE) ? 0 : set_attributes(clone, op->flags);
	if (result >= 0)
		result = *relative(op->target) == '.' ? attach_as_root(builder, clone)
		         : ours                       ? attach_directly(clone, builder->root, op->target)
		                                      : attach(clone, builder->root, op->target);
	if (builder->tree < 0)
		sys_1(SYS_close, clone);
	return result < 0 ? refuse(builder, result, op->target, "cannot mount this path inside") : 0;
}

static void number_text(char text[24], uint64_t number)
{
	int at = 24;
	text[--at] = '\0';
	do
		text[--at] = (char)('0' + number % 10);
	while (number /= 10);
	for (int i = 0; at + i < 24; i++)
		text[i] = text[at + i];
}

static long new_tmpfs(uint64_t size, unsigned mode)
{
	char size_text[24];
	number_text(size_text, size);
	const char *mode_text = mode == 01777 ? "1777" : mode == 0700 ? "0700" : "0755";
	const char *const options[][2] = { { "mode", mode_text }, { "size", size_text }, { NULL, NULL } };
	return new_filesystem("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int play_scratch(struct builder *builder, const struct mount_op *op)
{
	long clone = new_tmpfs(op->size, op->mode);
	long result = clone;
	if (clone >= 0 && (op->flags & MOUNT_NO_EXEC))
		result = set_attributes(clone, op->flags);
	if (result >= 0)
		result = attach(clone, builder->root, op->target);
	if (clone >= 0)
		sys_1(SYS_close, clone);
	if (result == -ENOENT && (op->flags & MOUNT_OPTIONAL))
		return 0;
	return result < 0 ? refuse(builder, result, op->target, "cannot mount a private tmpfs") : 0;
}

static int play_proc(struct builder *builder, const struct mount_op *op)
{
	/* "ptraceable": a process of another owner or of init's is not even listed. */
	static const char *const options[][2] = { { "hidepid", "ptraceable" }, { NULL, NULL } };
	unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	long result = attach_new(new_filesystem("proc", options, attributes), builder->root, op->target);
	if (result == -EPERM)
		return launch_fail(builder->launch, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, result, "proc", op->target,
		                   "the kernel refuses a fresh /proc, because parts of the host's /proc are masked",
		                   "give the container an unmasked /proc (docker: --security-opt systempaths=unconfined), or "
		                   "choose --driver landlock");
	return result < 0 ? refuse(builder, result, op->target, "cannot mount a fresh /proc") : 0;
}

static int play_pts(struct builder *builder, const struct mount_op *op)
{
	static const char *const options[][2] = { { "ptmxmode", "0666" }, { "mode", "0620" }, { NULL, NULL } };
	long result = attach_new(new_filesystem("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC),
	                               builder->root,
	                               op->target);
	return result < 0 ? refuse(builder, result, op->target, "cannot mount a fresh devpts") : 0;
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
	return result < 0 ? refuse(builder, result, op->target, "cannot protect this path") : 0;
}

/* Covers what is there with itself, under other attributes. */
static int play_cover(struct builder *builder, const struct mount_op *op)
{
	long at = open_target(builder->root, op->target);
	if ((at == -ENOENT || at == -ENOTDIR || at == -ELOOP) && (op->flags & MOUNT_OPTIONAL))
		return 0;
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE;
	return cover(builder, op, at, at < 0 ? at : sys_3(SYS_open_tree, at, "", flags));
}

/* Covers what is there with nothing readable of the same kind. */
static int play_mask(struct builder *builder, const struct mount_op *op)
{
	long at = open_target(builder->root, op->target);
	if ((at == -ENOENT || at == -ENOTDIR || at == -ELOOP) && (op->flags & MOUNT_OPTIONAL))
		return 0;
	int mask = op->is_directory ? builder->mask_directory : builder->mask_file;
	long clone = at < 0 ? at : sys_3(SYS_open_tree, mask, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	return cover(builder, op, at, clone);
}

static int play_lock(struct builder *builder, const struct mount_op *op)
{
	bool whole = *relative(op->target) == '.';
	long at = whole ? builder->root : open_target(builder->root, op->target);
	long result = at < 0 ? at : set_attributes(at, op->flags | MOUNT_READ_ONLY);
	if (at >= 0 && !whole)
		sys_1(SYS_close, at);
	return result < 0 ? refuse(builder, result, op->target, "cannot make this mount read-only") : 0;
}

static int (*const players[MOUNT_KIND_MAX])(struct builder *, const struct mount_op *) = {
	[MOUNT_DIRECTORY] = play_point, [MOUNT_FILE] = play_point,      [MOUNT_LINK] = play_link, [MOUNT_TEXT] = play_text,
	[MOUNT_BIND] = play_bind,       [MOUNT_SCRATCH] = play_scratch, [MOUNT_PROC] = play_proc, [MOUNT_PTS] = play_pts,
	[MOUNT_MASK] = play_mask,       [MOUNT_FREEZE] = play_cover,    [MOUNT_PIN] = play_cover, [MOUNT_LOCK] = play_lock,
};

/* What masks are made of lies in the base where /proc is going to cover it. Its name cannot be removed: the kernel
 * does not mount what is unlinked. */
static long make_masks(struct builder *builder)
{
	static const char file[] = "proc/file", directory[] = "proc/directory";
	int base = builder->base;
	long result = sys_3(SYS_mkdirat, base, "proc", 0755);
	if (result >= 0)
		result = sys_4(SYS_openat, base, file, O_CREAT | O_EXCL | O_CLOEXEC, 0);
	builder->mask_file = (int)result;
	if (result >= 0)
		result = sys_3(SYS_mkdirat, base, directory, 0);
	if (result >= 0)
		result = sys_4(SYS_openat, base, directory, O_PATH | O_CLOEXEC, 0);
	builder->mask_directory = (int)result;
	return result;
}

static int begin_root(struct builder *builder)
{
	long base = new_tmpfs(builder->launch->root->root_bytes, 0755);
	long result = base;
	if (base >= 0)
		result = sys_5(SYS_move_mount, base, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH);
	builder->base = builder->root = (int)base;
	if (result >= 0)
		result = make_masks(builder);
	return result < 0 ? refuse(builder, result, "/", "cannot mount a private root") : 0;
}

/* After this the host's root is in no mount of this namespace. */
static int switch_root(const struct builder *builder)
{
	long result = sys_1(SYS_fchdir, builder->root);
	if (result >= 0)
		result = sys_2(SYS_pivot_root, ".", ".");
	if (result >= 0)
		result = sys_2(SYS_umount2, ".", MNT_DETACH);
	if (result >= 0)
		result = sys_1(SYS_chdir, "/");
	return result < 0 ? refuse(builder, result, "/", "cannot switch to the private root") : 0;
}

int launch_raise_root(struct launch *launch)
{
	const struct launch_root *plan = launch->root;
	struct builder builder = { .launch = launch };
	if (begin_root(&builder) < 0)
		return -1;
	for (size_t i = 0; i < plan->count; i++) {
		const struct mount_op *op = &plan->ops[i];
		builder.tree = plan->trees ? plan->trees[i] : -1;
		if (players[op->kind](&builder, op) < 0)
			return -1;
	}
	return switch_root(&builder);
}

/* Parts of building the private root that mount nothing: see child-root.h. Compiled like the rest of what runs in the
 * caller's memory: see child.c. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <sys/stat.h>

#include "base/compat.h"
#include "driver/linux/child-root.h"
#include "driver/linux/remedies.h"
#include "driver/linux/sys.h"

int root_refuse(const struct builder *builder, long result, const char *subject, const char *reason)
{
	return launch_unavailable(builder->launch, result, "filesystem", subject, reason);
}

int root_refuse_base(const struct builder *builder, long result)
{
	static const char fix[] =
		REMEDY_APPARMOR "; in a container, lift its seccomp profile; or choose --driver landlock";
	if (result != -EPERM && result != -EACCES)
		return root_refuse(builder, result, "/", "cannot mount a private root");
	return launch_fail(builder->launch, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, result, "filesystem", "/",
	                   "cannot mount a private root", fix);
}

int root_refuse_proc(const struct builder *builder, long result, const char *target)
{
	if (result != -EPERM)
		return root_refuse(builder, result, target, "cannot mount a fresh /proc");
	return launch_fail(builder->launch, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, result, "proc", target,
	                   "the kernel refuses a fresh /proc, because parts of the host's /proc are masked",
	                   "give the container an unmasked /proc (docker: --security-opt systempaths=unconfined), or "
	                   "choose --driver landlock");
}

int root_refuse_swapped(const struct builder *builder, const struct mount_op *op)
{
	return launch_fail(builder->launch, CORDON_E_CAPABILITY_DENIED, 0, "filesystem",
	                   op->source ? op->source : op->target,
	                   "the path was replaced by something else while the command was being started", "");
}

const char *root_relative(const char *target)
{
	while (*target == '/')
		target++;
	return *target ? target : ".";
}

bool root_is_whole(const char *path)
{
	while (*path == '/')
		path++;
	return !*path;
}

/* For where openat2() is refused: a component at a time. */
static long open_stepwise(int root, const char *path)
{
	char name[256];
	long at = root;
	for (;;) {
		size_t length = 0;
		for (; path[length] && path[length] != '/'; length++) {
			if (length == sizeof(name) - 1)
				return -ENAMETOOLONG;
			name[length] = path[length];
		}
		name[length] = '\0';
		path += length;
		while (*path == '/')
			path++;
		bool up = name[0] == '.' && name[1] == '.' && !name[2];
		long next = up ? -EXDEV :
		                 sys_4(SYS_openat, at, name,
		                       O_PATH | O_NOFOLLOW | O_CLOEXEC | (*path ? O_DIRECTORY : 0), 0);
		if (at != root)
			sys_1(SYS_close, at);
		if (next < 0 || !*path)
			return next;
		at = next;
	}
}

long root_open_target(int root, const char *target)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
	                        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	long fd = sys_4(SYS_openat2, root, root_relative(target), &how, sizeof(how));
	return fd == -ENOSYS || fd == -EPERM ? open_stepwise(root, root_relative(target)) : fd;
}

static bool is_gone(long result)
{
	return result == -ENOENT || result == -ENOTDIR || result == -ELOOP;
}

/* Where even this process, with every capability of its namespace, may not go, the command cannot either. */
bool root_may_skip(const struct mount_op *op, long result)
{
	return result == -EACCES || ((op->flags & MOUNT_OPTIONAL) && is_gone(result));
}

/* A name that was to be hidden or protected is elsewhere by now, or of another kind: moving it must gain nothing. */
int root_refuse_cover(const struct builder *builder, const struct mount_op *op, long result)
{
	if (!is_gone(result) && result != -EINVAL)
		return root_refuse(builder, result, op->target, "cannot protect this path");
	return launch_fail(builder->launch, CORDON_E_SESSION_BUSY, result, "masked_names", op->target,
	                   "the workspace was changed by something else while the command was being started",
	                   "try again");
}

static long make_node(int root, const char *path, bool is_file)
{
	long result =
		is_file ? sys_4(SYS_mknodat, root, path, S_IFREG | 0444, 0) : sys_3(SYS_mkdirat, root, path, 0755);
	return result == -EEXIST ? 0 : result;
}

/* A directory or an empty file to mount on, with every missing parent. Only for memory of the sandbox's own: beneath a
 * granted tree everything exists already, and nothing is ever created there. */
static long make_target(int root, const char *target, bool is_file)
{
	char path[4096];
	const char *from = root_relative(target);
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

int root_play_point(struct builder *builder, const struct mount_op *op)
{
	long result = make_target(builder->root, op->target, op->kind == MOUNT_FILE);
	if (result >= 0 && op->mode)
		result = sys_3(SYS_fchmodat, builder->root, root_relative(op->target), op->mode);
	return result < 0 ? root_refuse(builder, result, op->target, "cannot make a mount point in the private root") :
	                    0;
}

int root_play_link(struct builder *builder, const struct mount_op *op)
{
	long result = sys_3(SYS_symlinkat, op->source, builder->root, root_relative(op->target));
	return result < 0 && result != -EEXIST
	               ? root_refuse(builder, result, op->target, "cannot make a link in the private root") : 0;
}

int root_play_text(struct builder *builder, const struct mount_op *op)
{
	long fd = sys_4(SYS_openat, builder->root, root_relative(op->target),
	                O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	long result = fd < 0 ? fd : sys_3(SYS_write, fd, op->source, sys_strlen(op->source));
	if (fd >= 0)
		sys_1(SYS_close, fd);
	return result < 0 ? root_refuse(builder, result, op->target, "cannot write a file in the private root") : 0;
}

#define TEXT_NAME "dev/shm/cordon-text"

/* By then /dev/shm is the command's own memory, where everything else is read-only or kept with the session. */
long root_make_text(const struct builder *builder, const char *text)
{
	long fd = sys_4(SYS_openat, builder->root, TEXT_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0444);
	long result = fd < 0 ? fd : sys_3(SYS_write, fd, text, sys_strlen(text));
	if (result >= 0)
		return fd;
	if (fd >= 0)
		sys_1(SYS_close, fd);
	return result;
}

void root_drop_text(const struct builder *builder, long fd)
{
	sys_3(SYS_unlinkat, builder->root, TEXT_NAME, 0);
	sys_1(SYS_close, fd);
}

bool root_is_same(long tree, const struct mount_op *op)
{
	struct stat info;
	if (sys_2(SYS_fstat, tree, &info) < 0)
		return false;
	return info.st_dev == op->device && info.st_ino == op->inode;
}

long root_open_view(const struct builder *builder)
{
	static const char point[] = "host";
	long result = make_node(builder->base, point, false);
	return result < 0 ? result : sys_4(SYS_openat, builder->base, point, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

void root_number_text(char text[24], uint64_t number)
{
	int at = 24;
	text[--at] = '\0';
	do
		text[--at] = (char)('0' + number % 10);
	while (number /= 10);
	for (int i = 0; at + i < 24; i++)
		text[i] = text[at + i];
}

struct root_link root_link_to(long fd)
{
	static const char directory[] = "/proc/self/fd/";
	struct root_link link;
	char number[24];
	size_t at = 0;
	root_number_text(number, (uint64_t)fd);
	for (; directory[at]; at++)
		link.text[at] = directory[at];
	for (size_t i = 0; number[i]; i++)
		link.text[at++] = number[i];
	link.text[at] = '\0';
	return link;
}

const char *root_mode_text(unsigned mode)
{
	return mode == 01777 ? "1777" : mode == 0700 ? "0700" : "0755";
}

/* The private root with mount(2) alone, for where the new mount API is missing or refused. The same operations as in
 * child-root.c, the same order, the same result.
 *
 * Everything is still named by descriptor: mount(2) takes /proc/self/fd/N of the host's /proc, which stays reachable
 * because this process keeps the host's root until the end. What it cannot do is to give a tree of mounts its
 * attributes at once, so those that came along are looked up in mountinfo, reached one by one and remounted. A mount
 * is reached by a path, which whoever shares a writable tree might be changing: so what was reached is compared with
 * what the table says is there, and where they differ nothing runs.
 *
 * A remount keeps the flags a mount has: those that came from a more privileged namespace are locked, and leaving one
 * out is refused. */
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/compat.h"
#include "run/child-root.h"
#include "run/sys.h"

static long mount_on(const char *source, long at, const char *type, unsigned long flags, const char *options)
{
	struct root_link target = root_link_to(at, "/proc/self/fd/");
	return sys_5(SYS_mount, source, target.text, type, flags, options);
}

static long bind(long source, long at, unsigned long more)
{
	struct root_link from = root_link_to(source, "/proc/self/fd/");
	return mount_on(from.text, at, NULL, MS_BIND | more, NULL);
}

static unsigned long mount_flags(unsigned flags)
{
	return MS_NOSUID | (flags & MOUNT_READ_ONLY ? MS_RDONLY : 0) | (flags & MOUNT_NO_EXEC ? MS_NOEXEC : 0) |
	       (flags & MOUNT_DEVICE ? 0 : MS_NODEV);
}

/* ---- the table of mounts ---------------------------------------------------------------------------------------- */

static long read_all(const char *path, char *text, size_t size)
{
	long fd = sys_4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0), result = fd;
	size_t length = 0;
	if (fd < 0)
		return fd;
	do {
		result = sys_3(SYS_read, fd, text + length, size - 1 - length);
		length += result > 0 ? (size_t)result : 0;
	} while (result > 0 && length < size - 1);
	sys_1(SYS_close, fd);
	text[length] = '\0';
	/* A table that fills the room may go on. */
	return result < 0 ? result : length == size - 1 ? -E2BIG : (long)length;
}

static long number_at(const char **at)
{
	long number = 0;
	for (; **at >= '0' && **at <= '9'; (*at)++)
		number = number * 10 + (**at - '0');
	return number;
}

/* The id of the mount that a descriptor is on. */
static long mount_id(long fd)
{
	static const char key[] = "mnt_id:";
	char text[512];
	long result = read_all(root_link_to(fd, "/proc/self/fdinfo/").text, text, sizeof(text));
	for (const char *line = text; result >= 0 && *line;) {
		size_t same = 0;
		while (key[same] && line[same] == key[same])
			same++;
		if (!key[same]) {
			line += same;
			while (*line == ' ' || *line == '\t')
				line++;
			return number_at(&line);
		}
		while (*line && *line++ != '\n')
			;
	}
	return result < 0 ? result : -ENOENT;
}

static const struct {
	const char *word;
	unsigned long flag;
} option_words[] = {
	{ "ro", MS_RDONLY }, { "nosuid", MS_NOSUID }, { "nodev", MS_NODEV }, { "noexec", MS_NOEXEC },
	{ "nosymfollow", MS_NOSYMFOLLOW },
};

static unsigned long take_options(char **at)
{
	unsigned long flags = 0;
	char *word = *at;
	while (*word && *word != ' ' && *word != '\n') {
		size_t length = 0;
		while (word[length] && word[length] != ',' && word[length] != ' ' && word[length] != '\n')
			length++;
		for (size_t i = 0; i < ARRAY_SIZE(option_words); i++) {
			size_t same = 0;
			while (same < length && option_words[i].word[same] == word[same])
				same++;
			if (same == length && !option_words[i].word[same])
				flags |= option_words[i].flag;
		}
		word += length + (word[length] == ',');
	}
	*at = word;
	return flags;
}

static void skip_word(char **at)
{
	while (**at && **at != ' ' && **at != '\n')
		(*at)++;
	if (**at == ' ')
		(*at)++;
}

/* A path of the table, ended and unescaped in place. */
static const char *take_path(char **at)
{
	char *start = *at, *to = start, *from = start;
	while (*from && *from != ' ' && *from != '\n') {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3') {
			*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*at = from + (*from == ' ');
	*to = '\0';
	return start;
}

/* "36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw" */
static void take_line(char **at, struct launch_mount *mount)
{
	mount->id = number_at((const char **)at);
	skip_word(at);
	mount->parent = number_at((const char **)at);
	skip_word(at);
	skip_word(at);
	skip_word(at);
	mount->path = take_path(at);
	mount->flags = take_options(at);
	while (**at && *(*at)++ != '\n')
		;
}

static long read_mounts(const struct launch_root *plan)
{
	long result = read_all("/proc/self/mountinfo", plan->table, plan->table_size), count = 0;
	if (result < 0)
		return result;
	for (char *at = plan->table; *at; count++) {
		if ((size_t)count == plan->mount_capacity)
			return -E2BIG;
		take_line(&at, &plan->mounts[count]);
	}
	return count;
}

static const struct launch_mount *find(const struct launch_mount *mounts, long count, long id)
{
	for (long i = 0; i < count; i++)
		if (mounts[i].id == id)
			return &mounts[i];
	return NULL;
}

/* Is it the mount `top` or one beneath it? */
static bool belongs(const struct launch_mount *mounts, long count, const struct launch_mount *mount, long top)
{
	for (long steps = 0; mount && steps <= count; steps++) {
		if (mount->id == top)
			return true;
		mount = find(mounts, count, mount->parent);
	}
	return false;
}

/* How long `root` is if `path` is the same or beneath it, else -1. */
static long within(const char *path, const char *root)
{
	long length = 0;
	for (; root[length]; length++)
		if (path[length] != root[length])
			return -1;
	return length == 1 || !path[length] || path[length] == '/' ? length : -1;
}

/* The mount that a path leads to from the base: at each one the child that is met first, until none is in the way. It
 * is another than the one mounted there where that one is covered. */
static long leads_to(const struct launch_mount *mounts, long count, long base, const char *path)
{
	for (long at = base, steps = 0;; steps++) {
		const struct launch_mount *next = NULL;
		for (long i = 0; i < count; i++)
			if (mounts[i].parent == at && mounts[i].id != at && within(path, mounts[i].path) >= 0 &&
			    (!next || within(path, mounts[i].path) < within(path, next->path)))
				next = &mounts[i];
		if (!next || steps > count)
			return at;
		at = next->id;
	}
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static long remount(const struct builder *builder, const struct launch_mount *mount, unsigned long wanted)
{
	if ((mount->flags & wanted) == wanted)
		return 0;
	long fd = root_open_target(builder->base, mount->path);
	/* Where even this process, with every capability of its namespace, may not go, the command cannot either. */
	if (fd == -EACCES)
		return 0;
	if (fd < 0)
		return fd;
	long id = mount_id(fd);
	long result = id < 0 ? id : id != mount->id ? -ESTALE
	                          : mount_on(NULL, fd, NULL, MS_REMOUNT | MS_BIND | mount->flags | wanted, NULL);
	sys_1(SYS_close, fd);
	return result;
}

/* The mount that `fd` is the root of, and every one that is mounted beneath it. */
static long set_attributes(const struct builder *builder, long fd, unsigned flags)
{
	const struct launch_root *plan = builder->launch->root;
	long top = mount_id(fd), base = mount_id(builder->base), count = read_mounts(plan);
	if (top < 0 || base < 0 || count < 0)
		return top < 0 ? top : base < 0 ? base : count;
	bool seen = false;
	long result = 0;
	for (long i = 0; i < count && result >= 0; i++) {
		const struct launch_mount *mount = &plan->mounts[i];
		if (!belongs(plan->mounts, count, mount, top))
			continue;
		seen |= mount->id == top;
		if (mount->id == base || leads_to(plan->mounts, count, base, mount->path) == mount->id)
			result = remount(builder, mount, mount_flags(flags));
	}
	return result < 0 ? result : seen ? 0 : -ESTALE;
}

static bool same_file(long a, long b)
{
	struct stat one, other;
	return sys_2(SYS_fstat, a, &one) >= 0 && sys_2(SYS_fstat, b, &other) >= 0 && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

/* What was just mounted at `target`, which must be another mount of what `source` is. */
static long open_mounted(const struct builder *builder, const char *target, long source, long under)
{
	long fd = root_is_whole(target) ? root_open_view(builder) : root_open_target(builder->root, target);
	if (fd >= 0 && same_file(fd, source) && mount_id(fd) != mount_id(under))
		return fd;
	if (fd >= 0)
		sys_1(SYS_close, fd);
	return fd < 0 ? fd : -ESTALE;
}

/* ---- one function per kind of mount_op -------------------------------------------------------------------------- */

/* The base lies over "/" and would come along with it, covering everything: for that moment it is unbindable. */
static long bind_source(const struct builder *builder, const struct mount_op *op, long source, long at)
{
	bool whole = root_is_whole(op->source);
	long result = whole ? mount_on(NULL, builder->base, NULL, MS_UNBINDABLE, NULL) : 0;
	if (result >= 0)
		result = bind(source, at, MS_REC);
	if (whole && mount_on(NULL, builder->base, NULL, MS_PRIVATE, NULL) < 0)
		return -EINVAL;
	return result;
}

static long show(struct builder *builder, const struct mount_op *op, long source)
{
	bool whole = root_is_whole(op->target), later = op->flags & MOUNT_BASE;
	long at = whole ? root_open_view(builder) : root_open_target(builder->root, op->target);
	if (at < 0)
		return at;
	long result = bind_source(builder, op, source, at);
	long mounted = result < 0 || (later && !whole) ? result : open_mounted(builder, op->target, source, at);
	sys_1(SYS_close, at);
	if (mounted < 0 || (later && !whole))
		return mounted;
	result = later ? 0 : set_attributes(builder, mounted, op->flags);
	if (whole)
		builder->root = (int)mounted;
	else
		sys_1(SYS_close, mounted);
	return result;
}

static int play_bind(struct builder *builder, const struct mount_op *op)
{
	long source = sys_4(SYS_openat, AT_FDCWD, op->source, O_PATH | O_CLOEXEC, 0);
	if (source == -ENOENT && (op->flags & MOUNT_OPTIONAL))
		return 0;
	if (source < 0)
		return root_refuse(builder, source, op->source, "cannot show this path inside");
	if (op->inode && !root_is_same(source, op))
		return root_refuse_swapped(builder, op);
	long result = show(builder, op, source);
	sys_1(SYS_close, source);
	return result < 0 ? root_refuse(builder, result, op->target, "cannot mount this path inside") : 0;
}

/* A filesystem of its own on what is at `target`. */
static long mount_new(const struct builder *builder, const char *target, const char *type, unsigned long flags,
                      const char *options)
{
	long at = root_open_target(builder->root, target);
	long result = at < 0 ? at : mount_on(type, at, type, flags, options);
	if (at >= 0)
		sys_1(SYS_close, at);
	return result;
}

static char *append(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	*to = '\0';
	return to;
}

static void tmpfs_options(char options[64], uint64_t size, unsigned mode)
{
	char number[24];
	root_number_text(number, size);
	char *at = append(append(options, "mode="), root_mode_text(mode));
	append(append(at, ",size="), number);
}

static int play_scratch(struct builder *builder, const struct mount_op *op)
{
	char options[64];
	tmpfs_options(options, op->size, op->mode);
	long result = mount_new(builder, op->target, "tmpfs", mount_flags(op->flags), options);
	if (root_may_skip(op, result))
		return 0;
	return result < 0 ? root_refuse(builder, result, op->target, "cannot mount a private tmpfs") : 0;
}

static int play_proc(struct builder *builder, const struct mount_op *op)
{
	long result = mount_new(builder, op->target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=ptraceable");
	return result < 0 ? root_refuse_proc(builder, result, op->target) : 0;
}

static int play_pts(struct builder *builder, const struct mount_op *op)
{
	long result = mount_new(builder, op->target, "devpts", MS_NOSUID | MS_NOEXEC, "ptmxmode=0666,mode=0620");
	return result < 0 ? root_refuse(builder, result, op->target, "cannot mount a fresh devpts") : 0;
}

/* Mounts `source` (or what is there, with all beneath it) on what is at the target, and gives it its attributes. */
static int cover(struct builder *builder, const struct mount_op *op, long source)
{
	long at = root_open_target(builder->root, op->target), result = at;
	if (root_may_skip(op, at))
		return 0;
	if (at >= 0)
		result = source < 0 ? bind(at, at, MS_REC) : bind(source, at, 0);
	long mounted = result < 0 ? result : open_mounted(builder, op->target, source < 0 ? at : source, at);
	result = mounted < 0 ? mounted : set_attributes(builder, mounted, op->flags);
	if (mounted >= 0)
		sys_1(SYS_close, mounted);
	if (at >= 0)
		sys_1(SYS_close, at);
	return result < 0 ? root_refuse_cover(builder, op, result) : 0;
}

static int play_cover(struct builder *builder, const struct mount_op *op)
{
	return cover(builder, op, -1);
}

static int play_mask(struct builder *builder, const struct mount_op *op)
{
	return cover(builder, op, op->is_directory ? builder->mask_directory : builder->mask_file);
}

static int play_replace(struct builder *builder, const struct mount_op *op)
{
	long text = root_make_text(builder, op->source);
	if (text < 0)
		return root_refuse(builder, text, op->target, "cannot put a file of the sandbox's own over this one");
	int result = cover(builder, op, text);
	root_drop_text(builder, text);
	return result;
}

static int play_lock(struct builder *builder, const struct mount_op *op)
{
	bool whole = root_is_whole(op->target);
	long at = whole ? builder->root : root_open_target(builder->root, op->target);
	long result = at < 0 ? at : set_attributes(builder, at, op->flags | MOUNT_READ_ONLY);
	if (at >= 0 && !whole)
		sys_1(SYS_close, at);
	return result < 0 ? root_refuse(builder, result, op->target, "cannot make this mount read-only") : 0;
}

root_player *const root_classic_players[MOUNT_KIND_MAX] = {
	[MOUNT_DIRECTORY] = root_play_point,
	[MOUNT_FILE] = root_play_point,
	[MOUNT_LINK] = root_play_link,
	[MOUNT_TEXT] = root_play_text,
	[MOUNT_BIND] = play_bind,
	[MOUNT_SCRATCH] = play_scratch,
	[MOUNT_PROC] = play_proc,
	[MOUNT_PTS] = play_pts,
	[MOUNT_MASK] = play_mask,
	[MOUNT_REPLACE] = play_replace,
	[MOUNT_FREEZE] = play_cover,
	[MOUNT_PIN] = play_cover,
	[MOUNT_LOCK] = play_lock,
};

long root_begin_classic(struct builder *builder)
{
	char options[64];
	tmpfs_options(options, builder->launch->root->root_bytes, 0755);
	/* Nothing that is mounted on the host from here on arrives in this namespace. */
	long result = sys_5(SYS_mount, NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	if (result >= 0)
		result = sys_5(SYS_mount, "tmpfs", "/", "tmpfs", MS_NOSUID | MS_NODEV, options);
	/* The root of a process is not looked through to what is mounted over it; ".." from there is. */
	if (result >= 0)
		result = sys_4(SYS_openat, AT_FDCWD, "/..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	builder->base = (int)result;
	return result;
}

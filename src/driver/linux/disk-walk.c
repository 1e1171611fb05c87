/* Counting: see disk-walk.h.
 *
 * A directory is read to its end, its files looked at on the way and the names of its directories kept; then these are
 * entered, one after the other. The outermost levels stay open; of those further in only the innermost is, and the way
 * back is "..", if that is still the directory that was left. */
#include "driver/linux/disk-walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/cleanup.h"

#define BUFFER_SIZE (32 * 1024)
#define ORDER_TURNS 8
#define OPEN_LEVELS 8
/* The difference between clocks, and the longest time that a step may take. */
#define SLACK_S 60
/* Looking at the clock takes time as well. */
#define ENTRIES_PER_LOOK 16
/* What is smaller may count twice where it is moved: that makes no difference. */
#define LARGE_BYTES (64 * 1024)
/* Past that many, a file with several names counts a share for each. */
#define SEEN_MAX (1 << 20)

struct disk_level {
	int fd;                         /* -1: closed on the way further in */
	uint64_t device, inode;
	bool read;
	char *names;                    /* its directories, each ended by NUL */
	size_t names_at, names_length, names_size;
	unsigned turn;                  /* which of them are entered now; ORDER_TURNS: none is left */
};

struct entry {                          /* linux_dirent64 */
	uint64_t inode;
	int64_t offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

uint64_t disk_now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- one file --------------------------------------------------------------------------------------------------- */

uint64_t disk_device(uint64_t major, uint64_t minor)
{
	return major << 32 | minor;
}

/* For where a filter refuses statx(): mounts are not known then. */
static bool stat_plainly(int fd, const char *name, int flags, struct disk_stat *ret_stat)
{
	struct stat stat;
	if (fstatat(fd, name, &stat, flags) < 0)
		return false;
	*ret_stat = (struct disk_stat){
		.device = disk_device(major(stat.st_dev), minor(stat.st_dev)),
		.inode = stat.st_ino,
		.bytes = (uint64_t)stat.st_blocks * 512,
		.born_ns = INT64_MIN,
		.changed_ns = stat.st_ctim.tv_sec * 1000000000 + stat.st_ctim.tv_nsec,
		.mode = stat.st_mode,
		.user = stat.st_uid,
		.links = (uint32_t)stat.st_nlink,
	};
	return true;
}

bool disk_stat(int fd, const char *name, bool follow, struct disk_stat *ret_stat)
{
	struct statx stat;
	int flags = AT_NO_AUTOMOUNT | (follow ? 0 : AT_SYMLINK_NOFOLLOW) | (*name ? 0 : AT_EMPTY_PATH);
	/* Not libc's: its own emulation does not know all the flags, and says EINVAL. */
	if (syscall(SYS_statx, fd, name, flags | AT_STATX_DONT_SYNC, STATX_BASIC_STATS | STATX_BTIME, &stat) < 0)
		return (errno == ENOSYS || errno == EPERM) && stat_plainly(fd, name, flags, ret_stat);
	*ret_stat = (struct disk_stat){
		.device = disk_device(stat.stx_dev_major, stat.stx_dev_minor),
		.inode = stat.stx_ino,
		.bytes = stat.stx_blocks * 512,
		.born_ns = stat.stx_mask & STATX_BTIME ? stat.stx_btime.tv_sec * 1000000000 + stat.stx_btime.tv_nsec :
		                                         INT64_MIN,
		.changed_ns = stat.stx_ctime.tv_sec * 1000000000 + stat.stx_ctime.tv_nsec,
		.mode = stat.stx_mode,
		.user = stat.stx_uid,
		.links = stat.stx_nlink,
		.mount_root = stat.stx_attributes & STATX_ATTR_MOUNT_ROOT,
	};
	return true;
}

/* ---- each once -------------------------------------------------------------------------------------------------- */

/* One to one within a device; never 0. */
static uint64_t key_of(const struct disk_stat *stat)
{
	uint64_t key = (stat->inode + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ stat->device * UINT64_C(0xff51afd7ed558ccd);
	return key ? key : 1;
}

static bool put(uint64_t *slots, size_t size, uint64_t key)
{
	size_t slot = (size_t)(key ^ key >> 32) & (size - 1);
	while (slots[slot] && slots[slot] != key)
		slot = (slot + 1) & (size - 1);
	bool is_new = !slots[slot];
	slots[slot] = key;
	return is_new;
}

static bool make_room(struct disk_walk *walk)
{
	size_t size = walk->seen_size ? walk->seen_size * 2 : 1024;
	if (walk->seen_count * 4 < walk->seen_size * 3)
		return true;
	uint64_t *slots = walk->seen_count < SEEN_MAX ? calloc(size, sizeof(*slots)) : NULL;
	if (!slots)
		return false;
	for (size_t i = 0; i < walk->seen_size; i++)
		if (walk->seen[i])
			put(slots, size, walk->seen[i]);
	free(walk->seen);
	walk->seen = slots;
	walk->seen_size = size;
	return true;
}

/* A clock that was wrong once leaves files from the future, which are no news. */
static bool is_since(const struct disk_walk *walk, int64_t date_ns)
{
	return date_ns >= walk->since_ns && date_ns <= walk->until_ns;
}

/* False: it was met before. */
static bool add(struct disk_walk *walk, const struct disk_stat *stat)
{
	uint64_t bytes = stat->bytes > DISK_INODE_BYTES ? stat->bytes : DISK_INODE_BYTES;
	bool is_directory = S_ISDIR(stat->mode);
	if (is_directory || stat->links != 1 || bytes > LARGE_BYTES) {
		if (make_room(walk)) {
			if (!put(walk->seen, walk->seen_size, key_of(stat)))
				return false;
			walk->seen_count++;
		} else if (!is_directory && stat->links > 1) {
			bytes /= stat->links;
		}
	}
	struct disk_count *count = &walk->count;
	count->bytes += bytes;
	if (is_since(walk, stat->born_ns))
		count->fresh_bytes += bytes;
	else if (is_since(walk, stat->changed_ns))
		count->changed_bytes += bytes;
	return true;
}

void disk_walk_add(struct disk_walk *walk, const struct disk_stat *stat)
{
	add(walk, stat);
}

/* ---- directories ------------------------------------------------------------------------------------------------ */

/* A command that closes a directory of the caller's hides what is in it; a directory of another owner could never be
 * read. */
static void not_opened(struct disk_walk *walk, int parent, const char *name, int why)
{
	struct disk_stat stat;
	if (why != EACCES || (!disk_stat(parent, name, false, &stat) && !disk_stat(parent, "", false, &stat)))
		return;
	walk->count.closed |= stat.user == walk->user && is_since(walk, stat.changed_ns);
	if (S_ISDIR(stat.mode) && !stat.mount_root)
		add(walk, &stat);
}

static bool push(struct disk_walk *walk, int fd, const struct disk_stat *stat)
{
	if (walk->depth == walk->capacity) {
		size_t capacity = walk->capacity ? walk->capacity * 2 : 16;
		struct disk_level *levels = reallocarray(walk->levels, capacity, sizeof(*levels));
		if (!levels)
			return false;
		walk->levels = levels;
		walk->capacity = capacity;
	}
	if (walk->depth > OPEN_LEVELS)
		close(take_fd(&walk->levels[walk->depth - 1].fd));
	walk->levels[walk->depth++] = (struct disk_level){ .fd = fd, .device = stat->device, .inode = stat->inode };
	walk->buffer_at = walk->buffer_length = 0;
	return true;
}

static void enter(struct disk_walk *walk, int parent, const char *name)
{
	auto_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct disk_stat stat;
	if (fd < 0 || !disk_stat(fd, "", false, &stat)) {
		not_opened(walk, parent, name, errno);
		return;
	}
	/* A root may be one, what is mounted beneath it is another filesystem's business. */
	if ((walk->depth && stat.mount_root) || !add(walk, &stat))
		return;
	if (push(walk, fd, &stat))
		take_fd(&fd);
}

static void close_level(struct disk_level *level)
{
	cleanup_close(&level->fd);
	free(level->names);
}

/* Out of the innermost directory. Where the way back leads elsewhere now, the levels between are given up. */
static void leave(struct disk_walk *walk)
{
	struct disk_level *level = &walk->levels[--walk->depth];
	struct disk_level *outer = walk->depth ? level - 1 : NULL;
	if (outer && outer->fd < 0) {
		struct disk_stat stat;
		auto_close int fd = openat(level->fd, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && disk_stat(fd, "", false, &stat) && stat.inode == outer->inode &&
		    stat.device == outer->device)
			outer->fd = take_fd(&fd);
	}
	close_level(level);
	for (; outer && outer->fd < 0; outer = &walk->levels[walk->depth - 1]) {
		walk->count.moved = true;
		close_level(outer);
		walk->depth--;
	}
}

static void keep_name(struct disk_walk *walk, const char *name)
{
	struct disk_level *level = &walk->levels[walk->depth - 1];
	size_t length = strlen(name) + 1;
	if (level->names_length + length > level->names_size) {
		size_t size = (level->names_size + length) * 2 + 64;
		char *names = realloc(level->names, size);
		if (!names)
			return;
		level->names = names;
		level->names_size = size;
	}
	memcpy(level->names + level->names_length, name, length);
	level->names_length += length;
}

/* In which turn a directory is entered. */
static unsigned turn_of(const struct disk_walk *walk, const char *name)
{
	uint32_t hash = walk->order;
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT32_C(16777619);
	return (hash ^ hash >> 15) % ORDER_TURNS;
}

/* The next directory of the innermost that is to be entered, or NULL. */
static const char *next_name(const struct disk_walk *walk, struct disk_level *level)
{
	for (; level->turn < ORDER_TURNS; level->turn++, level->names_at = 0)
		while (level->names_at < level->names_length) {
			const char *name = level->names + level->names_at;
			level->names_at += strlen(name) + 1;
			if (turn_of(walk, name) == level->turn)
				return name;
		}
	return NULL;
}

static void look_at(struct disk_walk *walk, const struct entry *entry)
{
	struct disk_level *level = &walk->levels[walk->depth - 1];
	struct disk_stat stat;
	if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
		return;
	if (entry->type == DT_DIR) {
		keep_name(walk, entry->name);
		return;
	}
	if (!disk_stat(level->fd, entry->name, false, &stat)) {
		if (errno == EACCES)
			not_opened(walk, level->fd, "", EACCES);
		return;
	}
	if (S_ISDIR(stat.mode))
		keep_name(walk, entry->name);
	else if (!stat.mount_root)
		add(walk, &stat);
}

/* ---- the walk --------------------------------------------------------------------------------------------------- */

bool disk_walk_begin(struct disk_walk *walk, const int roots[DISK_ROOTS], int64_t since_ns)
{
	*walk = (struct disk_walk){ .since_ns = since_ns, .user = geteuid(), .buffer = malloc(BUFFER_SIZE) };
	/* Where there is no randomness yet, the clock must do. */
	if (getrandom(&walk->order, sizeof(walk->order), GRND_NONBLOCK) != sizeof(walk->order))
		walk->order = (uint32_t)disk_now_us();
	for (size_t i = 0; i < DISK_ROOTS; i++)
		if (roots[i] >= 0)
			walk->roots[walk->root_count++] = roots[i];
	return walk->buffer;
}

void disk_walk_end(struct disk_walk *walk)
{
	while (walk->depth)
		close_level(&walk->levels[--walk->depth]);
	free(walk->levels);
	free(walk->buffer);
	free(walk->seen);
	*walk = (struct disk_walk){ 0 };
}

/* More of the innermost directory; false at its end. */
static bool read_more(struct disk_walk *walk)
{
	struct disk_level *level = &walk->levels[walk->depth - 1];
	long length = syscall(SYS_getdents64, level->fd, walk->buffer, BUFFER_SIZE);
	walk->buffer_at = 0;
	walk->buffer_length = length > 0 ? (size_t)length : 0;
	return length > 0;
}

static void look_at_next(struct disk_walk *walk)
{
	const struct entry *entry = (const struct entry *)(const void *)(walk->buffer + walk->buffer_at);
	walk->buffer_at += entry->length;
	look_at(walk, entry);
}

/* A step that takes about as long as looking at a file; false when there is nothing left to do. */
static bool advance(struct disk_walk *walk)
{
	if (!walk->depth) {
		if (walk->next_root == walk->root_count)
			return false;
		enter(walk, walk->roots[walk->next_root++], ".");
		return true;
	}
	struct disk_level *level = &walk->levels[walk->depth - 1];
	const char *name;
	if (walk->buffer_at < walk->buffer_length)
		look_at_next(walk);
	else if (!level->read)
		level->read = !read_more(walk);
	else if ((name = next_name(walk, level)))
		enter(walk, level->fd, name);
	else
		leave(walk);
	return true;
}

bool disk_walk_step(struct disk_walk *walk, uint64_t until_us)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	walk->until_ns = (now.tv_sec + SLACK_S) * INT64_C(1000000000);
	do {
		for (int i = 0; i < ENTRIES_PER_LOOK; i++)
			if (!advance(walk))
				return true;
	} while (disk_now_us() < until_us);
	return false;
}

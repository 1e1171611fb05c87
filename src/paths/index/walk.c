/* Reading directories: see walk.h.
 *
 * A directory is known by device, inode and change time. The change time is taken before the entries are read, so a
 * change while reading is seen the next time. A directory that changed so shortly before it was read that a further
 * change could have the same time stamp is not trusted (git calls such an index entry racily clean). A directory that
 * is read again keeps those of its known subdirectories that are still the same; any other subdirectory is new,
 * whatever was known under that name. */
#include "paths/index/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/host-watch.h"
#include "paths/index/listing.h"
#include "paths/index/look.h"

#define SECOND_NS INT64_C(1000000000)
#define RACY_NS (SECOND_NS / 50)
/* Where time stamps are whole seconds, or every other one. */
#define COARSE_RACY_NS (2 * SECOND_NS + RACY_NS)

#ifndef BINFMTFS_MAGIC
#define BINFMTFS_MAGIC 0x42494e4d
#endif
#ifndef MQUEUE_MAGIC
#define MQUEUE_MAGIC 0x19800202
#endif
#ifndef CONFIGFS_MAGIC
#define CONFIGFS_MAGIC 0x62656570
#endif

/* The kernel's own: no project lies there, reading may be endless or start something. */
static const uint32_t pseudo_filesystems[] = {
	PROC_SUPER_MAGIC,   SYSFS_MAGIC,    CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
	DEVPTS_SUPER_MAGIC, DEBUGFS_MAGIC,  TRACEFS_MAGIC,      SECURITYFS_MAGIC,
	SELINUX_MAGIC,      PSTOREFS_MAGIC, EFIVARFS_MAGIC,     BPF_FS_MAGIC,
	AUTOFS_SUPER_MAGIC, BINFMTFS_MAGIC, MQUEUE_MAGIC,       CONFIGFS_MAGIC,
};

static int64_t wall_clock_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int names_walk_init(struct names_walk *walk, int root_fd, const char *root_path, struct cordon_error *err)
{
	*walk = (struct names_walk){
		.root_fd = root_fd,
		.root_path = strcmp(root_path, "/") ? root_path : "",
		.user = geteuid(),
		.deadline_us = names_now_us() + NAMES_WALK_US,
		.path = malloc(strlen(root_path) + NAMES_PATH_MAX + NAMES_NAME_MAX + 4),
	};
	return walk->path ? 0 : fail_oom(err);
}

void names_walk_free(struct names_walk *walk)
{
	names_table_free(&walk->table);
	free(walk->path);
	free(walk->buffer);
	free(walk->lookup);
	walk->path = walk->buffer = NULL;
	walk->lookup = NULL;
}

/* ---- One directory ---------------------------------------------------------------------------------------------- */

static bool is_pseudo(int fd)
{
	struct statfs stat;
	if (fstatfs(fd, &stat) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(pseudo_filesystems); i++)
		if ((uint32_t)stat.f_type == pseudo_filesystems[i])
			return true;
	return false;
}

bool names_walk_is_racy(int64_t ctime_ns, int64_t looked_ns)
{
	return ctime_ns > looked_ns - (ctime_ns % SECOND_NS ? RACY_NS : COARSE_RACY_NS);
}

static void remember(struct names_directory *at, const struct names_stat *stat, int64_t looked_ns)
{
	at->device = stat->device;
	at->inode = stat->inode;
	at->ctime_ns = names_walk_is_racy(stat->ctime_ns, looked_ns) ? NAMES_CTIME_NEVER : stat->ctime_ns;
}

/* Without an identity it is no longer taken for the same, should the parent list this name again. */
static void forget(struct names_directory *at)
{
	at->flags |= NAMES_DEAD;
	at->device = at->inode = 0;
	at->ctime_ns = NAMES_CTIME_NEVER;
}

static void set_children(struct names_table *table, const struct names_listing *listing, bool dead)
{
	for (size_t i = 0; i < listing->children; i++) {
		struct names_directory *child = &table->directories[listing->first_child + i];
		if (dead)
			child->flags |= NAMES_DEAD;
		else if (child->inode)
			child->flags &= (uint16_t)~NAMES_DEAD;
	}
}

static bool is_closed(const struct names_walk *walk, const struct names_stat *stat)
{
	return walk->user && stat->user == walk->user && (stat->mode & (S_IRUSR | S_IXUSR)) != (S_IRUSR | S_IXUSR);
}

/* A directory that was not read to its end: its subdirectories and matches stay known, and it is read again next
 * time. */
static void keep_known(struct names_walk *walk, const struct names_listing *listing, size_t first_match)
{
	struct names_directory *at = &walk->table.directories[listing->directory];
	set_children(&walk->table, listing, false);
	names_table_keep_matches(&walk->table, listing->directory, first_match);
	at->ctime_ns = NAMES_CTIME_NEVER;
	at->flags |= NAMES_PARTIAL;
}

/* A directory that could not be opened: gone, not readable, or a failure to be retried. */
static void take_unreadable(struct names_walk *walk, const struct names_listing *listing, int open_errno)
{
	uint32_t directory = listing->directory;
	const char *path = listing->relative;
	struct names_directory *at = &walk->table.directories[directory];
	struct names_stat stat;
	int64_t looked_ns = wall_clock_ns();
	if (!directory)
		walk->root_errno = open_errno;
	if (open_errno == ENOENT || open_errno == ENOTDIR || open_errno == ELOOP) {
		forget(at);
	} else if (open_errno == EACCES && names_stat(walk->root_fd, path, &stat) && S_ISDIR(stat.mode)) {
		remember(at, &stat, looked_ns);
		/* A command can open up its user's own. With search permission, files in it can be opened by name. */
		if ((walk->user && stat.user == walk->user) ||
		    faccessat(walk->root_fd, *path ? path : ".", X_OK, AT_EACCESS) == 0)
			at->flags |= NAMES_CLOSED;
		else if (!directory)
			walk->root_errno = 0;   /* nor can the command look into it */
	} else {
		keep_known(walk, listing, walk->table.match_count);
	}
}

static int take_listing(struct names_walk *walk, struct names_listing *listing, const struct names_stat *stat,
                        int64_t looked_ns)
{
	struct names_directory *at = &walk->table.directories[listing->directory];
	bool crossed = !listing->directory || walk->table.directories[at->parent].device != stat->device;
	if (at->inode && (at->device != stat->device || at->inode != stat->inode))
		at->flags |= NAMES_REPLACED;
	remember(at, stat, looked_ns);
	if (is_closed(walk, stat)) {
		at->flags |= NAMES_CLOSED;
		if (!listing->directory)
			walk->root_errno = EACCES;
		return 0;
	}
	if (crossed && is_pseudo(listing->fd))
		return 0;
	if (!walk->buffer && !(walk->buffer = malloc(NAMES_BUFFER_SIZE)))
		return -1;
	size_t first_match = walk->table.match_count;
	if (names_listing_read(walk, listing) < 0)
		return -1;
	at = &walk->table.directories[listing->directory];
	int64_t ctime_ns = at->ctime_ns;
	if (listing->partial)
		at->flags |= NAMES_PARTIAL;
	/* The table would not show that there are too many. */
	if (listing->crowded)
		at->ctime_ns = NAMES_CTIME_NEVER;
	if (!listing->incomplete)
		return 0;
	keep_known(walk, listing, first_match);
	/* One that is too large by itself would never be finished. */
	if (listing->entries >= NAMES_ENTRIES_MAX / 2 && !listing->crowded)
		at->ctime_ns = ctime_ns;
	return 0;
}

/* Before it is looked at, and by the descriptor it is looked at by. */
static int begin_watch(struct names_walk *walk, uint32_t directory, int fd)
{
	if (!walk->watches)
		return 0;
	int watch = host_watch_fd(walk->watches, fd);
	return names_table_set_watch(&walk->table, directory, watch < 0 ? NAMES_NOT_TO_BE_WATCHED : watch);
}

static int read_directory(struct names_walk *walk, uint32_t directory)
{
	struct names_listing listing = { .directory = directory };
	struct names_directory *at = &walk->table.directories[directory];
	struct names_stat stat;
	char *end = stpcpy(walk->path, walk->root_path);
	*end = '/';
	listing.relative = end + 1;
	listing.name_at = listing.relative + names_table_path_length(&walk->table, directory, 0);
	names_table_path(&walk->table, directory, listing.relative);
	walk->directories++;
	at->flags &= (uint16_t)~(NAMES_PARTIAL | NAMES_CLOSED);
	at->flags |= NAMES_CHECKED | NAMES_REREAD;
	if (directory < walk->table.loaded_directories)
		listing.children = names_table_children(&walk->table, directory, &listing.first_child);
	set_children(&walk->table, &listing, true);
	int64_t looked_ns = wall_clock_ns();
	auto_close int fd = names_open(walk->root_fd, listing.relative, O_RDONLY | O_DIRECTORY);
	int open_errno = errno;
	if (fd >= 0 && begin_watch(walk, directory, fd) < 0)
		return -1;
	errno = open_errno;
	if (fd < 0 || !names_stat(fd, "", &stat)) {
		take_unreadable(walk, &listing, errno);
		return 0;
	}
	if (directory)
		listing.name_at[-1] = '/';
	listing.fd = fd;
	return take_listing(walk, &listing, &stat, looked_ns);
}

/* Is it as it was? Where it is to be watched from here on, it is opened for that. */
static bool is_unchanged(struct names_walk *walk, uint32_t directory)
{
	const struct names_directory *at = &walk->table.directories[directory];
	struct names_stat stat;
	bool there, to_be_watched = walk->watches && names_table_watch(&walk->table, directory) == NAMES_NOT_WATCHED;
	names_table_path(&walk->table, directory, walk->path);
	if (!to_be_watched) {
		there = names_stat(walk->root_fd, walk->path, &stat);
	} else {
		auto_close int fd = names_open(walk->root_fd, walk->path, O_PATH | O_DIRECTORY);
		there = fd >= 0 && begin_watch(walk, directory, fd) == 0 && names_stat(fd, "", &stat);
	}
	return there && stat.ctime_ns == at->ctime_ns && stat.inode == at->inode && stat.device == at->device &&
	       S_ISDIR(stat.mode);
}

int names_walk_check(struct names_walk *walk, uint32_t directory)
{
	struct names_directory *at = &walk->table.directories[directory];
	if (at->ctime_ns == NAMES_CTIME_NEVER || !is_unchanged(walk, directory))
		return read_directory(walk, directory);
	at->flags |= NAMES_CHECKED;
	return 0;
}

int names_walk_new(struct names_walk *walk)
{
	struct names_table *table = &walk->table;
	for (size_t i = table->loaded_directories; i < table->directory_count && !walk->stopped; i++)
		if (!(table->directories[i].flags & (NAMES_REREAD | NAMES_DEAD)) &&
		    read_directory(walk, (uint32_t)i) < 0)
			return -1;
	return 0;
}

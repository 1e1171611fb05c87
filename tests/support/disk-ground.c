/* See disk-ground.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/remove.h"
#include "driver/linux/disk.h"
#include "disk-ground.h"

struct volume volume;

int fstatfs(int fd, struct statfs *info)
{
	(void)fd;
	volume.asked++;
	*info = (struct statfs){ .f_type = (__typeof__(info->f_type))volume.type, .f_bsize = 4096, .f_frsize = 4096,
	                         .f_blocks = 1 << 30, .f_files = 1 << 30 };
	info->f_bfree = info->f_blocks - volume.bytes / 4096;
	info->f_ffree = info->f_files - volume.inodes;
	return 0;
}

time_t behind_s;
uint64_t skipped_us;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int error = (int)syscall(SYS_clock_gettime, clock, now);
	if (clock == CLOCK_REALTIME)
		now->tv_sec -= behind_s;
	if (clock == CLOCK_MONOTONIC) {
		uint64_t us = skipped_us + (uint64_t)now->tv_nsec / 1000;
		*now = (struct timespec){ .tv_sec = now->tv_sec + (time_t)(us / 1000000),
			                  .tv_nsec = (long)(us % 1000000) * 1000 };
	}
	return error;
}

int ground_setup(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	strcpy(ground->root, "/tmp/cordon-test-disk.XXXXXX");
	assert_non_null(mkdtemp(ground->root));
	ground->fd = open(ground->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(ground->fd >= 0 && mkdirat(ground->fd, "tree", 0700) == 0);
	ground->tree = openat(ground->fd, "tree", O_PATH | O_DIRECTORY | O_CLOEXEC);
	volume.type = EXT4_SUPER_MAGIC;
	volume.bytes = 100 * MiB;
	volume.inodes = 1000;
	*state = ground;
	return 0;
}

int ground_teardown(void **state)
{
	struct ground *ground = *state;
	close(ground->tree);
	int left = remove_tree(ground->fd, "tree");
	close(ground->fd);
	left |= rmdir(ground->root);
	free(ground);
	return left;
}

void ground_fill(int directory, const char *name, uint64_t bytes)
{
	static char part[64 * 1024];
	auto_close int fd = openat(directory, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	memset(part, 'x', sizeof(part));
	for (uint64_t at = 0; at < bytes; at += sizeof(part)) {
		size_t length = bytes - at < sizeof(part) ? (size_t)(bytes - at) : sizeof(part);
		assert_int_equal(write(fd, part, length), length);
	}
	volume.bytes += bytes;
}

int ground_directory(int parent, const char *name)
{
	assert_int_equal(mkdirat(parent, name, 0700), 0);
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

struct disk_count ground_count_since(int root, int64_t since_ns)
{
	struct disk_walk walk;
	const int roots[DISK_ROOTS] = { root, -1, -1, -1 };
	assert_true(disk_walk_begin(&walk, roots, since_ns));
	assert_true(disk_walk_step(&walk, UINT64_MAX));
	struct disk_count count = walk.count;
	disk_walk_end(&walk);
	return count;
}

uint64_t ground_count(int root)
{
	return ground_count_since(root, NEVER).bytes;
}

uint64_t ground_counts(int directory, const char *name)
{
	struct stat info;
	assert_int_equal(fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW), 0);
	uint64_t bytes = (uint64_t)info.st_blocks * 512;
	return bytes > DISK_INODE_BYTES ? bytes : DISK_INODE_BYTES;
}

void ground_watch(struct disk_watch *watch, int tree, uint64_t most, bool growth)
{
	const struct disk_options options = { .roots = { tree, -1, -1, -1 }, .most_bytes = most, .growth = growth };
	disk_watch_begin(watch, &options);
	/* Where the clock only ticks, what is made in the same tick has no date of its own. */
	usleep(30000);
}

bool ground_look_for(struct disk_watch *watch, int pidfd, unsigned ms)
{
	for (uint64_t end = disk_now_us() + ms * 1000; disk_now_us() < end;) {
		int pause = disk_watch_look(watch, pidfd);
		if (pause < 0)
			return true;
		assert_true(pause <= DISK_WATCH_MS);
		usleep((unsigned)pause * 1000);
	}
	return false;
}

void ground_look_first(struct disk_watch *watch, int pidfd)
{
	for (int i = 0; i < 100 && !watch->counted; i++)
		assert_false(ground_look_for(watch, pidfd, 10));
	assert_true(watch->counted);
}

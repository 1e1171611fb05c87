/* The files and locks of a tree's record: see judged.h.
 *
 * Byte 0 of the lock file is locked while the record is read or changed, byte 1 is locked for reading by each running
 * command: if it can be locked for writing, none runs. The file begins with `struct state`; the root's path follows,
 * for display. Changing the state needs no space on a full filesystem. */
#include "paths/planted/judged.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "base/error.h"
#include "base/file.h"
#include "base/lock.h"
#include "paths/index/look.h"

#define PAUSE_NS 200000
#define CLOCK_SLACK_NS INT64_C(10000000)        /* change times are taken from a clock that ticks */
#define KEY_SIZE 32

enum range { RANGE_RECORD, RANGE_RUNNING };

struct state {
	char pending;                   /* '1' or '0' */
	char reserved[7];
	uint64_t begun;                 /* commands, ever */
};

struct judged {
	int directory_fd, lock_fd;
	char name[2 * KEY_SIZE + 1];    /* of the record's file */
	char *root_path;
	struct state state;             /* when it was last locked */
	bool running;                   /* this command was begun */
	uint64_t number;                /* of this command among those that were */
	struct timespec taken, taken_boot;      /* when this command took the record, by two clocks; 0: it did not */
};

static bool set_lock(int fd, short type, enum range range)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = range, .l_len = 1 };
	return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* An inode's number is used again once it is free: the time of its birth is not. */
static void make_name(const struct names_stat *root, char ret_name[2 * KEY_SIZE + 1])
{
	const uint64_t identity[] = { root->device, root->inode, (uint64_t)root->born_ns, geteuid() };
	unsigned char key[KEY_SIZE];
	crypto_generichash(key, sizeof(key), (const unsigned char *)identity, sizeof(identity), NULL, 0);
	sodium_bin2hex(ret_name, 2 * KEY_SIZE + 1, key, sizeof(key));
}

static int open_directory(const char *data_dir)
{
	char path[4096];
	if (snprintf(path, sizeof(path), "%s/judged", data_dir) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 || errno != ENOENT || (mkdir(path, 0700) < 0 && errno != EEXIST))
		return fd;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static int open_lock(const struct judged *judged, const char *root_path)
{
	char name[sizeof(judged->name) + 8];
	struct stat stat;
	snprintf(name, sizeof(name), "%s.lock", judged->name);
	auto_close int fd = openat(judged->directory_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fstat(fd, &stat) < 0)
		return -1;
	if ((size_t)stat.st_size < sizeof(struct state)) {
		char text[sizeof(struct state) + 4200] = { '0' };
		size_t length = sizeof(struct state) +
		                (size_t)snprintf(text + sizeof(struct state), 4200, "\n%.4096s\n", root_path);
		if (pwrite(fd, text, length, 0) != (ssize_t)length) {
			errno = errno ? errno : ENOSPC;
			return -1;
		}
	}
	return take_fd(&fd);
}

static int fail_state(struct cordon_error *err, int reason, const char *subject, const char *what)
{
	fail(err, CORDON_E_AUDIT_UNAVAILABLE, reason, subject, "%s", what);
	return fail_remedy(err, "free some space, or move cordon's data to another filesystem (XDG_DATA_HOME)");
}

int judged_open(const char *data_dir, int root_fd, const char *root_path, struct judged **ret_judged,
                struct cordon_error *err)
{
	struct names_stat root;
	if (!names_stat(root_fd, "", &root))
		return fail(err, CORDON_E_INTERNAL, errno, root_path, "the directory cannot be looked at");
	struct judged *judged = calloc(1, sizeof(*judged));
	if (!judged)
		return fail_oom(err);
	judged->lock_fd = judged->directory_fd = -1;
	judged->root_path = strdup(root_path);
	if (!judged->root_path) {
		judged_free(judged);
		return fail_oom(err);
	}
	make_name(&root, judged->name);
	judged->directory_fd = open_directory(data_dir);
	if (judged->directory_fd >= 0)
		judged->lock_fd = open_lock(judged, root_path);
	if (judged->lock_fd < 0) {
		int reason = errno;
		judged_free(judged);
		return fail_state(err, reason, data_dir,
		                  "the record of what commands may leave behind cannot be opened");
	}
	*ret_judged = judged;
	return 0;
}

void judged_free(struct judged *judged)
{
	if (!judged)
		return;
	if (judged->lock_fd >= 0) {
		/* Closing is not enough: a process that is being started may have a copy for a moment. */
		set_lock(judged->lock_fd, F_UNLCK, RANGE_RUNNING);
		set_lock(judged->lock_fd, F_UNLCK, RANGE_RECORD);
		close(judged->lock_fd);
	}
	if (judged->directory_fd >= 0)
		close(judged->directory_fd);
	free(judged->root_path);
	free(judged);
}

int judged_compare(const struct judged *one, const struct judged *other)
{
	return strcmp(one->name, other->name);
}

int judged_lock(struct judged *judged, struct cordon_error *err)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	for (int64_t waited_ns = 0; !set_lock(judged->lock_fd, F_WRLCK, RANGE_RECORD); waited_ns += PAUSE_NS) {
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return fail_state(err, errno, judged->root_path,
			                  "the record of what commands may leave behind cannot be locked");
		if (waited_ns >= LOCK_PATIENCE_MS * INT64_C(1000000))
			return fail(err, CORDON_E_SESSION_BUSY, 0, judged->root_path,
			            "another command is being judged in the same directory, and does not end");
		nanosleep(&pause, NULL);
	}
	if (pread(judged->lock_fd, &judged->state, sizeof(judged->state), 0) != sizeof(judged->state))
		judged->state = (struct state){ .pending = '1' };
	return 0;
}

void judged_unlock(struct judged *judged)
{
	set_lock(judged->lock_fd, F_UNLCK, RANGE_RECORD);
}

bool judged_is_alone(struct judged *judged)
{
	if (!set_lock(judged->lock_fd, F_WRLCK, RANGE_RUNNING))
		return false;
	/* Converting a lock of this kind is atomic. */
	set_lock(judged->lock_fd, judged->running ? F_RDLCK : F_UNLCK, RANGE_RUNNING);
	return true;
}

bool judged_is_pending(const struct judged *judged)
{
	return judged->state.pending == '1';
}

static int write_state(struct judged *judged)
{
	return pwrite(judged->lock_fd, &judged->state, sizeof(judged->state), 0) == sizeof(judged->state) ? 0 : -1;
}

int judged_begin(struct judged *judged, struct cordon_error *err)
{
	judged->state.pending = '1';
	judged->number = ++judged->state.begun;
	if (!set_lock(judged->lock_fd, F_RDLCK, RANGE_RUNNING) || write_state(judged) < 0)
		return fail_state(err, errno, judged->root_path,
		                  "the record of what commands may leave behind cannot be written");
	judged->running = true;
	return 0;
}

void judged_taken(struct judged *judged)
{
	clock_gettime(CLOCK_REALTIME, &judged->taken);
	clock_gettime(CLOCK_BOOTTIME, &judged->taken_boot);
}

static int64_t in_ns(const struct timespec *time)
{
	return time->tv_sec * INT64_C(1000000000) + time->tv_nsec;
}

int64_t judged_since_ns(const struct judged *judged)
{
	struct timespec now, now_boot;
	if (!judged->taken.tv_sec || judged->state.begun != judged->number)
		return 0;
	/* If the clock was set meanwhile, the times say nothing. */
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &now_boot);
	int64_t drift = (in_ns(&now) - in_ns(&judged->taken)) - (in_ns(&now_boot) - in_ns(&judged->taken_boot));
	return drift < -CLOCK_SLACK_NS || drift > CLOCK_SLACK_NS ? 0 : in_ns(&judged->taken) - 2 * CLOCK_SLACK_NS;
}

void judged_end(struct judged *judged, bool complete)
{
	if (!judged->running)
		return;
	if (complete && judged_is_alone(judged)) {
		judged->state.pending = '0';
		(void)write_state(judged);
	}
	judged->running = false;
	set_lock(judged->lock_fd, F_UNLCK, RANGE_RUNNING);
}

bool judged_load(struct judged *judged, struct arena *arena, struct judged_record *ret_record)
{
	auto_free char *bytes = NULL;
	size_t size;
	return file_read(judged->directory_fd, judged->name, JUDGED_RECORD_MAX, &bytes, &size) == 0 &&
	       judged_parse(arena, bytes, size, ret_record);
}

static bool is_same(const struct judged *judged, const void *bytes, size_t size)
{
	auto_free char *known = NULL;
	size_t known_size;
	return file_read(judged->directory_fd, judged->name, JUDGED_RECORD_MAX, &known, &known_size) == 0 &&
	       known_size == size && !memcmp(known, bytes, size);
}

int judged_store(struct judged *judged, const struct judged_record *record, struct cordon_error *err)
{
	char temporary[sizeof(judged->name) + 8];
	size_t size;
	auto_free void *bytes = judged_write(record, &size);
	if (!bytes) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, judged->root_path,
		     "there are more repositories and protected names in it than can be recorded");
		return fail_remedy(err, "remove those that you do not need, or grant a smaller directory");
	}
	if (is_same(judged, bytes, size))
		return 0;
	snprintf(temporary, sizeof(temporary), "%s.tmp", judged->name);
	unlinkat(judged->directory_fd, temporary, 0);
	int created = file_create(judged->directory_fd, temporary, bytes, size, NULL);
	if (created == 0 && renameat(judged->directory_fd, temporary, judged->directory_fd, judged->name) == 0)
		return 0;
	int reason = created < 0 ? -created : errno;
	unlinkat(judged->directory_fd, temporary, 0);
	return fail_state(err, reason, judged->root_path,
	                  "the record of what commands may leave behind cannot be written");
}

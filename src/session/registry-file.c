/* A session's files: see registry-file.h.
 *
 * The record is replaced whole, by rename, so that readers need no lock. The directory and its locks may be removed
 * while others wait for them: who gets a lock asks whether the file still has a name, and if not begins again from the
 * top. Removing takes the record first and the locks last: whatever dies in between, there is a session or there is
 * none. */
#include "session/registry-file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/compat.h"
#include "base/lock.h"
#include "base/remove.h"
#include "session/registry-json.h"
#include "session/workspace.h"

#define RECORD REGISTRY_RECORD
#define RECORD_NEW "session.json.new"   /* being written, or what a killed writer left */
#define RECORD_SIZE_MAX ((size_t)8 << 20)
#define ATTEMPTS 100                    /* each lost to a process that removed the session */

static int refuse(const struct where *where, int number, const char *name, const char *what, struct cordon_error *err)
{
	char subject[PATH_MAX + 32] uncleared;
	snprintf(subject, sizeof(subject), "%s%s%s", where->path, *name ? "/" : "", name);
	fail(err, CORDON_E_INTERNAL, number, subject, "%s", what);
	fail_remedy(err, "look at the file of that name; move it away if it is not cordon's, or use another session");
	return fail_boundary(err, "session");
}

/* ---- directories ------------------------------------------------------------------------------------------------- */

int where_name(const char *data_dir, const char *name, struct where *where, struct cordon_error *err)
{
	int length = snprintf(where->path, sizeof(where->path), "%s/" REGISTRY_DIRECTORY "/%s", data_dir, name);
	where->id = NULL;
	where->parent_length = strlen(data_dir) + sizeof(REGISTRY_DIRECTORY);
	return (size_t)length < sizeof(where->path) ? 0 : refuse(where, ENAMETOOLONG, "", "the path is too long", err);
}

int where_find(const char *data_dir, const char *id, struct where *where, struct cordon_error *err)
{
	char hash[WORKSPACE_HASH_LENGTH + 1];
	int found = workspace_hash_to(id, hash) < 0 ? fail_oom(err) : where_name(data_dir, hash, where, err);
	where->id = id;
	return found;
}

/* Of this type, owned by the caller, and not writable by others. */
static int check_owned(const struct where *where, int fd, mode_t type, const char *name, struct stat *ret_info,
                       struct cordon_error *err)
{
	if (fstat(fd, ret_info) < 0)
		return refuse(where, errno, name, "cannot be looked at", err);
	if ((ret_info->st_mode & S_IFMT) != type)
		return refuse(where, 0, name, type == S_IFDIR ? "is not a directory" : "is not a regular file", err);
	if (ret_info->st_uid != geteuid())
		return refuse(where, 0, name, "belongs to another user", err);
	if (ret_info->st_mode & (S_IWGRP | S_IWOTH))
		return refuse(where, 0, name, "can be written to by other users", err);
	return 0;
}

/* Link by link, none of them symbolic. errno where the result is -1. */
static int open_both(const struct where *where)
{
	char parent[PATH_MAX] uncleared;
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		                .resolve = RESOLVE_NO_SYMLINKS };
	/* At once where no link leads to the data directory either, which it may. */
	int at_once = compat_openat2(AT_FDCWD, where->path, &how);
	if (at_once >= 0 || errno == ENOENT)
		return at_once;
	memcpy(parent, where->path, where->parent_length);
	parent[where->parent_length] = '\0';
	auto_close int fd = open(parent, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -1 : openat(fd, where->path + where->parent_length + 1,
	                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int make_both(const struct where *where, struct cordon_error *err)
{
	char parent[PATH_MAX] uncleared;
	memcpy(parent, where->path, where->parent_length);
	parent[where->parent_length] = '\0';
	if ((mkdir(parent, 0700) < 0 && errno != EEXIST) ||
	    (mkdir(where->path, 0700) < 0 && errno != EEXIST && errno != ENOENT))
		return refuse(where, errno, "", "the session's directory cannot be made", err);
	return 0;
}

int where_open(const struct where *where, bool make, int *ret_fd, struct cordon_error *err)
{
	struct stat info;
	auto_close int fd = open_both(where);
	for (int attempt = 0; fd < 0 && errno == ENOENT && make && attempt < ATTEMPTS; attempt++) {
		if (make_both(where, err) < 0)
			return -1;
		fd = open_both(where);
	}
	if (fd < 0)
		return errno == ENOENT && !make
		               ? 0 : refuse(where, errno, "", "the session's directory cannot be opened", err);
	if (check_owned(where, fd, S_IFDIR, "", &info, err) < 0)
		return -1;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* ---- locks ------------------------------------------------------------------------------------------------------- */

static int fail_busy(const struct where *where, const char *reason, const char *remedy, struct cordon_error *err)
{
	fail(err, CORDON_E_SESSION_BUSY, 0, where->id, "%s", reason);
	fail_remedy(err, "%s", remedy);
	return fail_boundary(err, "session");
}

static int take_lock(const struct where *where, int fd, const char *name, int operation, bool *ret_there,
                     struct cordon_error *err)
{
	struct stat info;
	/* A command may take hours. */
	bool used = !strcmp(name, REGISTRY_USE) && operation == LOCK_EX;
	if (lock_wait(fd, operation, used ? 0 : LOCK_PATIENCE_MS) < 0) {
		if (errno != EWOULDBLOCK)
			return lock_refused(errno, where->path, err);
		return used ? fail_busy(where, "a command is running in the session",
		                        "wait for it to end, or end it first", err) :
		              fail_busy(where, "the session is locked by another process", "try again", err);
	}
	if (check_owned(where, fd, S_IFREG, name, &info, err) < 0)
		return -1;
	*ret_there = info.st_nlink > 0;
	return 0;
}

int where_lock(const struct where *where, const char *name, int operation, bool make, int *ret_directory, int *ret_lock,
               struct cordon_error *err)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		auto_close int directory = -1;
		auto_unlock int lock = -1;
		bool there = false;
		if (where_open(where, make, &directory, err) < 0)
			return -1;
		if (directory < 0)
			return 0;
		lock = openat(directory, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
		/* The directory was removed since it was opened. */
		if (lock < 0 && errno == ENOENT)
			continue;
		if (lock < 0)
			return refuse(where, errno, name, "the session's lock cannot be opened", err);
		if (take_lock(where, lock, name, operation, &there, err) < 0)
			return -1;
		if (!there)
			continue;
		*ret_directory = take_fd(&directory);
		*ret_lock = take_fd(&lock);
		return 0;
	}
	return fail_busy(where, "the session is made and removed again and again", "try again", err);
}

/* ---- the record -------------------------------------------------------------------------------------------------- */

static int refuse_damaged(const struct where *where, const char *why, struct cordon_error *err)
{
	char reason[sizeof(err->reason)] uncleared;
	snprintf(reason, sizeof(reason), "the session's record cannot be used: %s", why ? why : "memory is short");
	refuse(where, 0, RECORD, reason, err);
	return fail_remedy(err, "mend the file, or move it away to begin the session anew");
}

static int refuse_newer(const struct where *where, struct cordon_error *err)
{
	refuse(where, 0, RECORD, "the session was made or changed by a newer version of cordon, which can use it", err);
	return fail_remedy(err, "use it with that version, or end it: cordon session end ID");
}

static int read_whole(int fd, char *text, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = read(fd, text + done, size - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		done += (size_t)got;
	}
	return 0;
}

static bool is_asked_for(struct arena *arena, const struct where *where, const char *id)
{
	if (where->id)
		return !strcmp(id, where->id);
	const char *hash = registry_check_id(id, NULL) < 0 ? NULL : workspace_hash(arena, id);
	return hash && !strcmp(hash, where->path + where->parent_length + 1);
}

int where_read(struct arena *arena, const struct where *where, int directory, struct session_record *ret_record,
               bool *ret_found, struct cordon_error *err)
{
	auto_close int fd = openat(directory, RECORD, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct session_record record;
	struct stat info;
	const char *why = NULL;
	*ret_found = fd >= 0;
	if (fd < 0)
		return errno == ENOENT ? 0 : refuse(where, errno, RECORD, "the session's record cannot be opened", err);
	if (check_owned(where, fd, S_IFREG, RECORD, &info, err) < 0)
		return -1;
	size_t size = (size_t)info.st_size;
	if (!size || size > RECORD_SIZE_MAX)
		return refuse_damaged(where, size ? "it is too large" : "it is empty", err);
	auto_free char *text = malloc(size);
	if (!text)
		return fail_oom(err);
	if (read_whole(fd, text, size) < 0)
		return refuse(where, errno, RECORD, "the session's record cannot be read", err);
	if (record_read(arena, text, size, &record, &why) < 0)
		return refuse_damaged(where, why, err);
	if (record.is_newer && !where->takes_newer)
		return refuse_newer(where, err);
	if (!is_asked_for(arena, where, record.id))
		return refuse_damaged(where, "it is that of another session", err);
	*ret_record = record;
	return 0;
}

static int write_whole(int fd, const char *text, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t put = write(fd, text + done, size - done);
		if (put < 0 && errno != EINTR)
			return -1;
		done += put < 0 ? 0 : (size_t)put;
	}
	return 0;
}

/* Over the one that is there, within the room that it has; what is read meanwhile may be half of each, which is no
 * record and lets nothing run. */
static int write_over(int directory, const char *text, size_t size)
{
	struct stat info;
	auto_close int fd = openat(directory, RECORD, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
		return -1;
	size_t whole = size > (size_t)info.st_size ? size : (size_t)info.st_size;
	auto_free char *padded = whole > (size_t)info.st_blocks * 512 ? NULL : malloc(whole);
	if (!padded)
		return -1;
	memset(padded, ' ', whole);
	memcpy(padded, text, size);
	return pwrite(fd, padded, whole, 0) == (ssize_t)whole ? fdatasync(fd) : -1;
}

/* A full disk keeps a session from going on, not from being stopped. */
static bool stop_without_room(int number, int directory, const struct session_record *record, const char *text,
                              size_t size)
{
	return (number == ENOSPC || number == EDQUOT) && record->state != SESSION_ACTIVE &&
	       write_over(directory, text, size) == 0;
}

int where_write(const struct where *where, int directory, const struct session_record *record, struct cordon_error *err)
{
	/* An answer to a question is on the disk before it is confirmed; a session that just begins is not worth the
	 * wait. */
	bool precious = record->grant_count || record->denial_count || record->state != SESSION_ACTIVE;
	auto_free char *text = record_write(record);
	size_t size = text ? strlen(text) : 0;
	if (!text)
		return fail_oom(err);
	if (size > RECORD_SIZE_MAX) {
		fail(err, CORDON_E_LIMIT_EXCEEDED, 0, record->id, "the session's record would be larger than 8 MiB");
		fail_remedy(err, "begin a new session");
		return fail_boundary(err, "session");
	}
	unlinkat(directory, RECORD_NEW, 0);
	auto_close int fd = openat(directory, RECORD_NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && write_whole(fd, text, size) == 0 && (!precious || fdatasync(fd) == 0) &&
	    renameat(directory, RECORD_NEW, directory, RECORD) == 0)
		return !precious || fsync(directory) == 0 ? 0 : refuse(where, errno, "", "did not reach the disk", err);
	int number = errno;
	unlinkat(directory, RECORD_NEW, 0);
	if (stop_without_room(number, directory, record, text, size))
		return 0;
	refuse(where, number, RECORD_NEW, "the session's record cannot be written", err);
	return fail_remedy(err, "check that the data directory can be written to");
}

int where_clear(const struct where *where, int directory, bool *ret_found, struct cordon_error *err)
{
	bool found = unlinkat(directory, RECORD, 0) == 0;
	if (!found && errno != ENOENT)
		return refuse(where, errno, RECORD, "cannot be removed", err);
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);
	if (!listing) {
		cleanup_close(&fd);
		return refuse(where, errno, "", "cannot be listed", err);
	}
	for (struct dirent *entry; (entry = readdir(listing));)
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && strcmp(entry->d_name, REGISTRY_LOCK) &&
		    strcmp(entry->d_name, REGISTRY_USE))
			remove_tree(fd, entry->d_name);
	closedir(listing);
	*ret_found = found;
	return 0;
}

void where_remove(const struct where *where, int directory)
{
	unlinkat(directory, REGISTRY_USE, 0);
	unlinkat(directory, REGISTRY_LOCK, 0);
	rmdir(where->path);
}

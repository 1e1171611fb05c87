/* Changing files: see write.h. */
#include "files/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/remove.h"
#include "files/screen.h"
#include "files/walk.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#endif

#define TEMPORARY_SIZE (sizeof(".cordon-") + ID_SIZE)

/* ---- into place ------------------------------------------------------------------------------------------------- */

static int write_all(int fd, const char *data, size_t length)
{
	while (length) {
		ssize_t done = write(fd, data, length);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		data += done;
		length -= (size_t)done;
	}
	return 0;
}

static int rename_if_free(int from_fd, const char *from, int to_fd, const char *to)
{
	if (renameat2(from_fd, from, to_fd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != ENOSYS && errno != EINVAL && errno != EPERM)
		return -errno;
	/* A file system that cannot: for files a link that must not exist does the same. */
	if (linkat(from_fd, from, to_fd, to, 0) < 0)
		return -errno;
	return unlinkat(from_fd, from, 0) < 0 ? -errno : 0;
}

int files_settle(const struct files *files, const struct files_place *place, int flags, struct cordon_error *err)
{
	if (files_place_again(files, place, err) == 0)
		return 0;
	unlinkat(place->parent_fd, place->name, flags);
	return -1;
}

static void sync_directory(int fd)
{
	auto_close int opened = files_reopen(fd, O_RDONLY | O_DIRECTORY);
	if (opened >= 0)
		(void)!fsync(opened);
}

/* The new content beside the place, on the disk, with the mode and the owner of what it replaces. */
static int write_beside(const struct files_place *place, const struct files_write *write, const char *temporary)
{
	const bool replaces = place->fd >= 0;
	const mode_t mode = place->info.st_mode & 0777;
	auto_close int fd = openat(place->parent_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	                           replaces ? 0600 : write->executable ? 0777 : 0666);
	if (fd < 0)
		return -errno;
	int result = write_all(fd, write->data, write->length);
	/* First the owner: it takes bits of the mode away. A user who cannot give files away has the file now. */
	if (result == 0 && replaces && geteuid() == 0 && fchown(fd, place->info.st_uid, place->info.st_gid) < 0)
		result = -errno;
	if (result == 0 && replaces && fchmod(fd, write->executable ? mode | (mode & 0444) >> 2 : mode) < 0)
		result = -errno;
	if (result == 0 && !write->unsynced && fsync(fd) < 0)
		result = -errno;
	if (result < 0)
		unlinkat(place->parent_fd, temporary, 0);
	return result;
}

static int fail_changed(const struct files_place *place, struct cordon_error *err)
{
	fail(err, CORDON_E_SESSION_BUSY, 0, place->given, "the file changed since it was read; nothing was written");
	fail_boundary(err, "filesystem");
	return fail_remedy(err, "read it again, then write");
}

static bool is_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino && one->st_size == other->st_size &&
	       one->st_mtim.tv_sec == other->st_mtim.tv_sec && one->st_mtim.tv_nsec == other->st_mtim.tv_nsec &&
	       one->st_ctim.tv_sec == other->st_ctim.tv_sec && one->st_ctim.tv_nsec == other->st_ctim.tv_nsec;
}

/* Is what has the name now still that file, with that content? */
static bool is_unchanged(const struct files_place *place, const struct stat *before, const char *text, size_t length)
{
	struct stat now;
	auto_free char *data = NULL;
	size_t size;
	return fstatat(place->parent_fd, place->name, &now, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&now, before) &&
	       files_load(place, FILES_EDIT_MAX, &data, &size, NULL) == 0 && size == length &&
	       !memcmp(data, text, length);
}

/* `before` with `text`: what must still be there; or NULL. */
static int put(const struct files *files, const struct files_place *place, const struct files_write *write,
               const struct stat *before, const char *text, size_t text_length, struct cordon_error *err)
{
	char temporary[TEMPORARY_SIZE], id[ID_SIZE];
	id_make(id);
	snprintf(temporary, sizeof(temporary), ".cordon-%s", id);
	int result = write_beside(place, write, temporary);
	if (result < 0)
		return files_fail(err, -result, place->given, "cannot write beside this file");
	if (before && !is_unchanged(place, before, text, text_length)) {
		unlinkat(place->parent_fd, temporary, 0);
		return fail_changed(place, err);
	}
	if (files_place_again(files, place, err) < 0) {
		unlinkat(place->parent_fd, temporary, 0);
		return -1;
	}
	if (place->fd >= 0)
		result = renameat(place->parent_fd, temporary, place->parent_fd, place->name) < 0 ? -errno : 0;
	else
		result = rename_if_free(place->parent_fd, temporary, place->parent_fd, place->name);
	if (result < 0) {
		unlinkat(place->parent_fd, temporary, 0);
		return files_fail(err, -result, place->given, "cannot put the new content in its place");
	}
	if (files_settle(files, place, 0, err) < 0)
		return -1;
	if (!write->unsynced)
		sync_directory(place->parent_fd);
	return 0;
}

/* ---- content ---------------------------------------------------------------------------------------------------- */

static int check_version(const struct files_place *place, const char *data, size_t length, const char *version,
                         struct cordon_error *err)
{
	char now[FILES_VERSION_SIZE];
	files_version(data, length, now);
	return strcmp(now, version) ? fail_changed(place, err) : 0;
}

/* The old content is read only where the new one has a mark. */
static int check_marks(const struct files_place *place, const struct files_write *write, struct cordon_error *err)
{
	auto_free char *old = NULL;
	size_t length = 0, marks = files_screen_marks(write->screen, write->data, write->length);
	if (marks && place->fd >= 0 && files_load(place, FILES_WRITE_MAX, &old, &length, err) < 0)
		return -1;
	return marks > files_screen_marks(write->screen, old ? old : "", length) ? files_screen_fail(place, err) : 0;
}

int files_write(const struct files *files, const struct files_place *place, const struct files_write *write,
                struct files_written *ret_written, struct cordon_error *err)
{
	struct stat before = place->info;
	auto_free char *text = NULL;
	size_t length = 0;
	if (write->length > FILES_WRITE_MAX) {
		fail(err, CORDON_E_LIMIT_EXCEEDED, 0, place->given, "the content is larger than %u bytes",
		     FILES_WRITE_MAX);
		return fail_boundary(err, "limits");
	}
	if (place->fd >= 0 && files_require_regular(place, err) < 0)
		return -1;
	if (place->fd >= 0 && write->create)
		return files_fail(err, EEXIST, place->given, "cannot make this file anew");
	if (write->version && place->fd < 0)
		return fail_changed(place, err);
	if (write->version && (files_load(place, FILES_EDIT_MAX, &text, &length, err) < 0 ||
	                       check_version(place, text, length, write->version, err) < 0))
		return -1;
	if (check_marks(place, write, err) < 0 ||
	    put(files, place, write, write->version ? &before : NULL, text, length, err) < 0)
		return -1;
	*ret_written = (struct files_written){ .created = place->fd < 0, .size = write->length };
	files_version(write->data, write->length, ret_written->version);
	return 0;
}

int files_replace(const struct files *files, const struct files_place *place, const struct stat *before,
                  const char *text, size_t length, const struct edited *edited, struct cordon_error *err)
{
	return put(files, place, &(struct files_write){ .data = edited->data, .length = edited->length }, before, text,
	           length, err);
}

/* What the caller read is not what the file has. */
static int fail_edit(const struct edit *edit, const struct files_screen *screen, struct cordon_error *err)
{
	if (err && err->class == CORDON_E_NOT_FOUND && files_screen_marks(screen, edit->old, edit->old_length))
		return fail_remedy(err,
		                   "where it says [REDACTED:…] the file has a secret: replace only text beside that");
	return -1;
}

int files_edit(const struct files *files, const struct files_place *place, const struct edit *edit, const char *version,
               struct files_written *ret_written, struct cordon_error *err)
{
	const struct files_screen *screen = files->screen;
	struct stat before;
	struct edited edited;
	auto_free char *text = NULL;
	size_t length;
	if (fstat(place->fd, &before) < 0)
		return files_fail(err, errno, place->given, "cannot look at this file");
	if (files_load(place, FILES_EDIT_MAX, &text, &length, err) < 0)
		return -1;
	if (files_is_binary(text, length)) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, place->given, "this is a binary file, which is not edited");
		return fail_boundary(err, "filesystem");
	}
	if (version && check_version(place, text, length, version, err) < 0)
		return -1;
	if (edit_apply(text, length, edit, place->given, &edited, err) < 0)
		return fail_edit(edit, screen, err);
	bool loses = files_screen_marks(screen, edited.data, edited.length) > files_screen_marks(screen, text, length);
	int result = loses ? files_screen_fail(place, err)
	                   : files_replace(files, place, &before, text, length, &edited, err);
	if (result == 0) {
		*ret_written =
			(struct files_written){ .size = edited.length, .count = edited.count, .line = edited.line };
		files_version(edited.data, edited.length, ret_written->version);
	}
	free(edited.data);
	return result;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

int files_mkdir(const struct files *files, const struct files_place *place, struct cordon_error *err)
{
	if (mkdirat(place->parent_fd, place->name, 0777) < 0)
		return files_fail(err, errno, place->given, "cannot make this directory");
	if (files_settle(files, place, AT_REMOVEDIR, err) < 0)
		return -1;
	sync_directory(place->parent_fd);
	return 0;
}

int files_remove(const struct files *files, const struct files_place *place, bool recursive, struct cordon_error *err)
{
	const bool is_directory = S_ISDIR(place->info.st_mode);
	struct stat now;
	if (is_directory && recursive && files_refuse_kept(files, place, NULL, err) < 0)
		return -1;
	if (fstatat(place->parent_fd, place->name, &now, AT_SYMLINK_NOFOLLOW) < 0 || now.st_dev != place->info.st_dev ||
	    now.st_ino != place->info.st_ino)
		return fail_changed(place, err);
	if (is_directory && recursive ? remove_tree(place->parent_fd, place->name) < 0
	                              : unlinkat(place->parent_fd, place->name, is_directory ? AT_REMOVEDIR : 0) < 0)
		return files_fail(err, errno == EEXIST ? ENOTEMPTY : errno, place->given, "cannot remove this");
	sync_directory(place->parent_fd);
	return 0;
}

/* What came into a directory while it was looked through, and is protected by the directory's new name. */
static int check_moved(const struct files *files, const struct files_place *from, const struct files_place *to,
                       struct cordon_error *err)
{
	struct files_place moved = *from;
	moved.path = moved.named = to->path;
	if (files_place_again(files, to, err) < 0)
		return -1;
	return S_ISDIR(from->info.st_mode) ? files_refuse_kept(files, &moved, NULL, err) : 0;
}

static int check_rename(const struct files *files, const struct files_place *from, const struct files_place *to,
                        bool replace, struct cordon_error *err)
{
	if (S_ISDIR(from->info.st_mode) && files_refuse_kept(files, from, to->path, err) < 0)
		return -1;
	/* A file that becomes a protected name is refused already; a directory of such a name may be free, and a file
	 * is not. */
	if (files_is_protected(files, to->path, S_ISDIR(from->info.st_mode)) ||
	    (S_ISLNK(from->info.st_mode) && files_leads_to_protected(files, to->path))) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, to->given, "the name is protected");
		return fail_boundary(err, "filesystem");
	}
	if (to->fd >= 0 && !replace)
		return files_fail(err, EEXIST, to->given, "cannot rename to this");
	if (to->fd >= 0 && files_require_regular(to, err) < 0)
		return -1;
	return files_place_again(files, to, err);
}

int files_rename(const struct files *files, const struct files_place *from, const struct files_place *to, bool replace,
                 struct cordon_error *err)
{
	if (check_rename(files, from, to, replace, err) < 0)
		return -1;
	int result = to->fd >= 0 ? renameat(from->parent_fd, from->name, to->parent_fd, to->name) < 0 ? -errno : 0
	                         : rename_if_free(from->parent_fd, from->name, to->parent_fd, to->name);
	if (result == -EXDEV) {
		fail(err, CORDON_E_INVALID_REQUEST, EXDEV, to->given, "cannot rename across file systems");
		fail_boundary(err, "filesystem");
		return fail_remedy(err, "write it there and remove it here");
	}
	if (result < 0)
		return files_fail(err, -result, from->given, "cannot rename this");
	if (check_moved(files, from, to, err) < 0) {
		(void)!rename_if_free(to->parent_fd, to->name, from->parent_fd, from->name);
		return -1;
	}
	sync_directory(to->parent_fd);
	return 0;
}

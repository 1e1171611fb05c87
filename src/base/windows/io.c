/* Content, locks, directories and waiting: see system.h. */
#include "base/windows/sockets.h"

#include <dirent.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/windows/nt.h"
#include "base/windows/path.h"
#include "base/windows/wide.h"

/* Locks are mandatory here. Those of cordon lie where no content is, so that they bind only who asks for them. */
#define WHOLE_FILE_AT INT64_C(0x20000000000)
#define RANGES_AT INT64_C(0x10000000000)

static int fail_with(int number)
{
	errno = number;
	return number ? -1 : 0;
}

/* ---- content ----------------------------------------------------------------------------------------------------- */

static OVERLAPPED at_offset(int64_t offset)
{
	OVERLAPPED where = { 0 };
	where.Offset = (DWORD)offset;
	where.OffsetHigh = (DWORD)((uint64_t)offset >> 32);
	return where;
}

/* A handle that waits has one position, which these would move. */
static int64_t position(HANDLE handle)
{
	LARGE_INTEGER none = { 0 }, now;
	return SetFilePointerEx(handle, none, &now, FILE_CURRENT) ? now.QuadPart : -1;
}

static void go_back(HANDLE handle, int64_t to)
{
	if (to >= 0)
		SetFilePointerEx(handle, (LARGE_INTEGER){ .QuadPart = to }, NULL, FILE_BEGIN);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
	HANDLE handle = nt_handle(fd);
	OVERLAPPED where = at_offset(offset);
	DWORD done = 0;
	if (!handle)
		return fail_with(EBADF);
	int64_t before = position(handle);
	BOOL read = ReadFile(handle, bytes, (DWORD)(size > INT32_MAX ? INT32_MAX : size), &done, &where);
	DWORD error = read ? 0 : GetLastError();
	go_back(handle, before);
	return read || error == ERROR_HANDLE_EOF ? (ssize_t)done : fail_with(win32_errno(error));
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	HANDLE handle = nt_handle(fd);
	OVERLAPPED where = at_offset(offset);
	DWORD done = 0;
	if (!handle)
		return fail_with(EBADF);
	int64_t before = position(handle);
	BOOL written = WriteFile(handle, bytes, (DWORD)(size > INT32_MAX ? INT32_MAX : size), &done, &where);
	DWORD error = written ? 0 : GetLastError();
	go_back(handle, before);
	return written ? (ssize_t)done : fail_with(win32_errno(error));
}

/* One write, so that whole lines are appended. */
ssize_t writev(int fd, const struct iovec *parts, int count)
{
	size_t size = 0, at = 0;
	for (int i = 0; i < count; i++)
		size += parts[i].iov_len;
	auto_free char *bytes = malloc(size ? size : 1);
	if (!bytes)
		return fail_with(ENOMEM);
	for (int i = 0; i < count; at += parts[i++].iov_len)
		memcpy(bytes + at, parts[i].iov_base, parts[i].iov_len);
	return write(fd, bytes, (unsigned)size);
}

int fsync(int fd)
{
	HANDLE handle = nt_handle(fd);
	if (handle && (FlushFileBuffers(handle) || GetLastError() == ERROR_ACCESS_DENIED))
		return 0;
	return fail_with(handle ? win32_errno(GetLastError()) : EBADF);
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
	HANDLE handle = nt_handle(fd);
	FILE_ALLOCATION_INFO space = { .AllocationSize = { .QuadPart = offset + length } };
	FILE_STANDARD_INFO now;
	(void)mode;
	if (!handle || !GetFileInformationByHandleEx(handle, FileStandardInfo, &now, sizeof(now)))
		return fail_with(EBADF);
	/* A smaller allocation would cut the file. */
	if (now.AllocationSize.QuadPart >= offset + length || now.EndOfFile.QuadPart >= offset + length)
		return 0;
	return SetFileInformationByHandle(handle, FileAllocationInfo, &space, sizeof(space))
	               ? 0 : fail_with(win32_errno(GetLastError()));
}

/* ---- locks and descriptors --------------------------------------------------------------------------------------- */

static int lock_range(HANDLE handle, int64_t at, int64_t length, DWORD flags)
{
	OVERLAPPED where = at_offset(at);
	if (LockFileEx(handle, flags, 0, (DWORD)length, (DWORD)((uint64_t)length >> 32), &where))
		return 0;
	return fail_with(GetLastError() == ERROR_LOCK_VIOLATION ? EWOULDBLOCK : win32_errno(GetLastError()));
}

static int unlock_range(HANDLE handle, int64_t at, int64_t length)
{
	OVERLAPPED where = at_offset(at);
	if (UnlockFileEx(handle, 0, (DWORD)length, (DWORD)((uint64_t)length >> 32), &where) ||
	    GetLastError() == ERROR_NOT_LOCKED || GetLastError() == ERROR_LOCK_VIOLATION) /* wine */
		return 0;
	return fail_with(win32_errno(GetLastError()));
}

/* Windows locks no directory: for each there is a byte of a file of the user's own, by the directory's number. */
#define DIRECTORIES_MAX 2048
static struct {
	pthread_mutex_t lock;
	int fds[DIRECTORIES_MAX]; /* of that file, opened for each locked directory's descriptor; 0: none */
} directories = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int open_directory_lock(void)
{
	wchar_t wide[MAX_PATH + 1];
	char native[PATH_MAX], path[PATH_MAX];
	UINT length = GetTempPathW(MAX_PATH + 1, wide);
	if (!length || length > MAX_PATH || wide_to_text(wide, native, sizeof(native)) < 0 ||
	    windows_path_read(native, path, sizeof(path) - 16))
		return fail_with(ENOENT);
	strcat(path, "/cordon-locks");
	return open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* The handle to lock, and where; NULL with errno. */
static HANDLE lock_place(int fd, int64_t *ret_at)
{
	struct stat info;
	*ret_at = WHOLE_FILE_AT;
	if (fstat(fd, &info) < 0)
		return NULL;
	if (!S_ISDIR(info.st_mode))
		return nt_handle(fd);
	if (fd >= DIRECTORIES_MAX)
		return fail_with(EMFILE), NULL;
	*ret_at = (int64_t)((info.st_ino * UINT64_C(0x9E3779B97F4A7C15) ^ info.st_dev) & (INT64_MAX >> 1));
	pthread_mutex_lock(&directories.lock);
	if (!directories.fds[fd]) {
		int opened = open_directory_lock();
		directories.fds[fd] = opened > 0 ? opened : 0;
	}
	HANDLE handle = directories.fds[fd] ? nt_handle(directories.fds[fd]) : NULL;
	pthread_mutex_unlock(&directories.lock);
	return handle;
}

int system_close(int fd)
{
	int lock_fd = 0;
	if (socket_is(fd))
		return socket_close(fd);
	if (fd >= 0 && fd < DIRECTORIES_MAX) {
		pthread_mutex_lock(&directories.lock);
		lock_fd = directories.fds[fd];
		directories.fds[fd] = 0;
		pthread_mutex_unlock(&directories.lock);
	}
	if (lock_fd)
		_close(lock_fd);
	return _close(fd);
}

int flock(int fd, int operation)
{
	int64_t at;
	HANDLE handle = lock_place(fd, &at);
	if (!handle)
		return -1;
	/* Another lock takes the place of the one that was there; here each is one more. */
	if (unlock_range(handle, at, 1) < 0 || operation & LOCK_UN)
		return operation & LOCK_UN ? 0 : -1;
	return lock_range(handle, at, 1,
	                  (operation & LOCK_EX ? LOCKFILE_EXCLUSIVE_LOCK : 0) |
	                          (operation & LOCK_NB ? LOCKFILE_FAIL_IMMEDIATELY : 0));
}

/* A handle's lock is in its own way, so another kind takes its place: not at once, as elsewhere. Who changes one holds
 * another that all who do so need. Where that fails, the lock that was there was one for reading. */
static int lock_slot(HANDLE handle, int64_t at, short type)
{
	const DWORD kind = type == F_WRLCK ? LOCKFILE_EXCLUSIVE_LOCK : 0;
	OVERLAPPED where = at_offset(at);
	bool held = UnlockFileEx(handle, 0, 1, 0, &where);
	if (lock_range(handle, at, 1, kind | LOCKFILE_FAIL_IMMEDIATELY) == 0)
		return 0;
	if (held)
		lock_range(handle, at, 1, LOCKFILE_FAIL_IMMEDIATELY);
	return -1;
}

/* Slots one by one, since what is locked together can only be unlocked together. */
static int lock_slots(HANDLE handle, const struct flock *lock)
{
	off_t count = lock->l_len ? lock->l_len : 65536;
	if (lock->l_type == F_UNLCK) {
		for (off_t i = 0; i < count; i++)
			unlock_range(handle, RANGES_AT + lock->l_start + i, 1);
		return 0;
	}
	for (off_t i = 0; i < count; i++)
		if (lock_slot(handle, RANGES_AT + lock->l_start + i, lock->l_type) < 0) {
			while (i--)
				unlock_range(handle, RANGES_AT + lock->l_start + i, 1);
			return fail_with(EAGAIN);
		}
	return 0;
}

/* The first that another holds. Nobody says, so each is asked for; a free one ends the search, as slots are taken from
 * below. */
static int find_lock(HANDLE handle, struct flock *lock)
{
	for (off_t i = 0; i < lock->l_len && i < 64; i++) {
		if (lock_range(handle, RANGES_AT + lock->l_start + i, 1,
		               LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY) == 0) {
			unlock_range(handle, RANGES_AT + lock->l_start + i, 1);
			continue;
		}
		lock->l_start += i;
		lock->l_len = 1;
		return 0;
	}
	lock->l_type = F_UNLCK;
	return 0;
}

int fcntl(int fd, int command, ...)
{
	if (socket_is(fd))
		return 0;
	HANDLE handle = nt_handle(fd), copy;
	va_list arguments;
	va_start(arguments, command);
	struct flock *lock =
		command == F_OFD_SETLK || command == F_OFD_GETLK ? va_arg(arguments, struct flock *) : NULL;
	va_end(arguments);
	if (!handle)
		return fail_with(EBADF);
	if (lock)
		return command == F_OFD_SETLK ? lock_slots(handle, lock) : find_lock(handle, lock);
	if (command != F_DUPFD_CLOEXEC)
		return 0;
	if (!DuplicateHandle(GetCurrentProcess(), handle, GetCurrentProcess(), &copy, 0, FALSE, DUPLICATE_SAME_ACCESS))
		return fail_with(win32_errno(GetLastError()));
	return nt_descriptor(copy, O_RDWR);
}

/* ---- directories ------------------------------------------------------------------------------------------------- */

struct system_directory {
	int fd;
	bool begun;
	char *at, *end;
	struct dirent entry;
	union {
		char bytes[32768];
		FILE_ID_BOTH_DIR_INFO aligned;
	} room;
};

DIR *fdopendir(int fd)
{
	struct stat info;
	DIR *directory = NULL;
	if (fstat(fd, &info) < 0 ||
	    (S_ISDIR(info.st_mode) ? !(directory = calloc(1, sizeof(*directory))) : (errno = ENOTDIR)))
		return NULL;
	directory->fd = fd;
	return directory;
}

DIR *opendir(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (directory)
		take_fd(&fd);
	return directory;
}

static bool fill(DIR *directory)
{
	if (!GetFileInformationByHandleEx(nt_handle(directory->fd),
	                                  directory->begun ? FileIdBothDirectoryInfo : FileIdBothDirectoryRestartInfo,
	                                  directory->room.bytes, sizeof(directory->room)))
		return false;
	directory->begun = true;
	directory->at = directory->room.bytes;
	return true;
}

struct dirent *readdir(DIR *directory)
{
	for (;;) {
		wchar_t name[MAX_PATH + 1];
		if (!directory->at && !fill(directory))
			return NULL;
		FILE_ID_BOTH_DIR_INFO *info = (FILE_ID_BOTH_DIR_INFO *)(void *)directory->at;
		directory->at = info->NextEntryOffset ? directory->at + info->NextEntryOffset : NULL;
		size_t length = info->FileNameLength / 2;
		if (length > MAX_PATH)
			continue;
		memcpy(name, info->FileName, 2 * length);
		name[length] = L'\0';
		/* A name that is no text cannot be named in a request either. */
		if (wide_to_text(name, directory->entry.d_name, sizeof(directory->entry.d_name)) < 0)
			continue;
		directory->entry.d_ino = (uint64_t)info->FileId.QuadPart;
		directory->entry.d_type = info->FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT ? DT_UNKNOWN :
		                          info->FileAttributes & FILE_ATTRIBUTE_DIRECTORY ? DT_DIR : DT_REG;
		return &directory->entry;
	}
}

int dirfd(DIR *directory)
{
	return directory->fd;
}

int closedir(DIR *directory)
{
	int result = close(directory->fd);
	free(directory);
	return result;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static short look(int fd, short events)
{
	if (socket_is(fd))
		return socket_look(fd, events);
	HANDLE handle = nt_handle(fd);
	DWORD there = 0;
	if (!handle || GetFileType(handle) != FILE_TYPE_PIPE)
		return POLLIN;
	return PeekNamedPipe(handle, NULL, 0, NULL, &there, NULL) ? (there ? POLLIN : 0) : POLLHUP;
}

int poll(struct pollfd *fds, unsigned count, int timeout_ms)
{
	for (int waited = 0;; waited += 10) {
		int ready = 0;
		for (unsigned i = 0; i < count; i++) {
			fds[i].revents = fds[i].fd < 0 ? 0 : look(fds[i].fd, fds[i].events);
			ready += fds[i].revents != 0;
		}
		if (ready || (timeout_ms >= 0 && waited >= timeout_ms))
			return ready;
		Sleep(timeout_ms >= 0 && timeout_ms - waited < 10 ? (DWORD)(timeout_ms - waited) : 10);
	}
}

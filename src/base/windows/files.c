/* Files by descriptor: see system.h. */
#undef open
#undef fopen
#undef getcwd
#undef chdir
#undef access
#undef fstat
#undef stat
#undef realpath
#include "base/windows/nt.h"

#include <stdarg.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/path-given.h"
#include "base/windows/path.h"
#include "base/windows/wide.h"

static int fail_with(int number)
{
	errno = number;
	return number ? -1 : 0;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static ACCESS_MASK access_of(int flags)
{
	if (flags & O_PATH)
		return FILE_READ_ATTRIBUTES | READ_CONTROL |
		       (flags & O_DIRECTORY ? FILE_TRAVERSE | FILE_LIST_DIRECTORY : 0);
	ACCESS_MASK access = READ_CONTROL | FILE_READ_ATTRIBUTES;
	if ((flags & O_ACCMODE) != O_WRONLY)
		access |= FILE_GENERIC_READ;
	/* Appending alone is appending at once, whatever others do. */
	if ((flags & O_ACCMODE) != O_RDONLY)
		access |= flags & O_APPEND ? (FILE_GENERIC_WRITE & ~FILE_WRITE_DATA) | FILE_APPEND_DATA :
		                             FILE_GENERIC_WRITE;
	return access;
}

static ULONG disposition_of(int flags)
{
	if (flags & O_CREAT)
		return flags & O_EXCL ? FILE_CREATE : flags & O_TRUNC ? FILE_OVERWRITE_IF : FILE_OPEN_IF;
	return flags & O_TRUNC ? FILE_OVERWRITE : FILE_OPEN;
}

static int open_at(int fd, const char *path, int flags, unsigned mode)
{
	ULONG options =
		(flags & O_DIRECTORY ? FILE_DIRECTORY_FILE : 0) | (flags & O_NOFOLLOW ? FILE_OPEN_REPARSE_POINT : 0);
	HANDLE handle;
	int number = nt_open(fd, path, access_of(flags), disposition_of(flags), options,
	                     flags & O_CREAT && !(mode & 077), &handle);
	if (number)
		return fail_with(number);
	if (flags & O_NOFOLLOW && nt_is_link(handle) && (!(flags & O_PATH) || flags & O_DIRECTORY))
		number = flags & O_DIRECTORY ? ENOTDIR : ELOOP;
	else if (!(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY && nt_is_directory(handle))
		number = EISDIR;
	else
		return nt_descriptor(handle, flags);
	CloseHandle(handle);
	return fail_with(number);
}

int system_openat(int fd, const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	unsigned mode = flags & O_CREAT ? va_arg(arguments, unsigned) : 0;
	va_end(arguments);
	return open_at(fd, path, flags, mode);
}

int system_open(const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	unsigned mode = flags & O_CREAT ? va_arg(arguments, unsigned) : 0;
	va_end(arguments);
	return open_at(AT_FDCWD, path, flags, mode);
}

FILE *system_fopen(const char *path, const char *mode)
{
	int flags = strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
	flags |= *mode == 'w' ? O_CREAT | O_TRUNC : *mode == 'a' ? O_CREAT | O_APPEND : 0;
	int fd = open_at(AT_FDCWD, path, flags, 0666);
	FILE *stream = fd < 0 ? NULL :
	                        _fdopen(fd, *mode == 'r' ? (strchr(mode, '+') ? "r+b" : "rb") :
	                                    *mode == 'w' ? "wb" :
	                                                   "ab");
	if (fd >= 0 && !stream)
		_close(fd);
	return stream;
}

int memfd_create(const char *purpose, unsigned flags)
{
	wchar_t directory[MAX_PATH + 1], name[MAX_PATH + 64];
	unsigned long long random;
	(void)purpose;
	(void)flags;
	if (!GetTempPathW(MAX_PATH + 1, directory) || getrandom(&random, sizeof(random), 0) < 0)
		return fail_with(EIO);
	_snwprintf(name, MAX_PATH + 64, L"%lscordon-%016llx", directory, random);
	HANDLE handle = CreateFileW(name, GENERIC_READ | GENERIC_WRITE | DELETE, 0, NULL, CREATE_NEW,
	                            FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
	return handle == INVALID_HANDLE_VALUE ? fail_with(win32_errno(GetLastError())) : nt_descriptor(handle, O_RDWR);
}

FILE *system_temporary(void)
{
	int fd = memfd_create("", MFD_CLOEXEC);
	return fd < 0 ? NULL : _fdopen(fd, "w+b");
}

int mkdirat(int fd, const char *path, unsigned mode)
{
	HANDLE handle;
	int number = nt_open(fd, path, FILE_READ_ATTRIBUTES, FILE_CREATE, FILE_DIRECTORY_FILE, !(mode & 077), &handle);
	if (number == 0)
		CloseHandle(handle);
	/* Of a drive the root is there. */
	return fail_with(number != 0 && number != EEXIST && path[0] == '/' && path[1] && !path[2] ? EEXIST : number);
}

/* ---- access ----------------------------------------------------------------------------------------------------- */

int faccessat(int fd, const char *path, int mode, int flags)
{
	HANDLE handle;
	int number = nt_open(fd, path,
	                     FILE_READ_ATTRIBUTES | (mode & R_OK ? FILE_READ_DATA : 0) |
	                             (mode & W_OK ? FILE_WRITE_DATA : 0) | (mode & X_OK ? FILE_EXECUTE : 0),
	                     FILE_OPEN, flags & AT_SYMLINK_NOFOLLOW ? FILE_OPEN_REPARSE_POINT : 0, false, &handle);
	if (number == 0)
		CloseHandle(handle);
	return fail_with(number);
}

int fchmodat(int fd, const char *path, unsigned mode, int flags)
{
	(void)mode;
	return faccessat(fd, path, F_OK, flags);
}

int fchmod(int fd, unsigned mode)
{
	(void)mode;
	return nt_handle(fd) ? 0 : fail_with(EBADF);
}

int fchown(int fd, uid_t uid, gid_t gid)
{
	(void)fd;
	(void)uid;
	(void)gid;
	return fail_with(ENOSYS);
}

/* ---- where ------------------------------------------------------------------------------------------------------- */

static int text_of_native(wchar_t *wide, char *ret_path, size_t size)
{
	uncleared char native[PATH_MAX];
	if (!wcsncmp(wide, L"\\\\?\\", 4))
		wide += 4;
	if (wide_to_text(wide, native, sizeof(native)) < 0)
		return errno;
	if (windows_path_read(native, ret_path, size))
		return ENAMETOOLONG;
	size_t length = strlen(ret_path);
	if (length > 2 && ret_path[length - 1] == '/')
		ret_path[length - 1] = '\0';
	return 0;
}

NTSTATUS NTAPI NtQueryObject(HANDLE, OBJECT_INFORMATION_CLASS, PVOID, ULONG, PULONG);

/* wine's GetFinalPathNameByHandle() knows no path that is longer than 260; what it asks does, and says there how the
 * file was named. Windows says a device's name there, which begins otherwise. */
static bool object_path(HANDLE handle, wchar_t wide[PATH_MAX])
{
	union {
		UNICODE_STRING name;
		wchar_t room[PATH_MAX + 32];
	} object;
	if (NtQueryObject(handle, (OBJECT_INFORMATION_CLASS)1, &object, sizeof(object) - sizeof(wchar_t), NULL) < 0)
		return false;
	size_t length = object.name.Length / sizeof(wchar_t);
	const wchar_t *path = object.name.Buffer;
	if (length < 7 || length - 4 >= PATH_MAX || wcsncmp(path, L"\\??\\", 4) || path[5] != L':')
		return false;
	memcpy(wide, path + 4, (length - 4) * sizeof(wchar_t));
	wide[length - 4] = L'\0';
	return true;
}

static bool final_path(HANDLE handle, wchar_t wide[PATH_MAX])
{
	DWORD length = GetFinalPathNameByHandleW(handle, wide, PATH_MAX, FILE_NAME_NORMALIZED);
	return length ? length < PATH_MAX : object_path(handle, wide);
}

ssize_t fd_path(int fd, char *ret_path, size_t size)
{
	uncleared wchar_t wide[PATH_MAX];
	uncleared char path[PATH_MAX];
	HANDLE handle = nt_handle(fd);
	if (!handle || !final_path(handle, wide) || text_of_native(wide, path, sizeof(path)) || strlen(path) >= size)
		return -1;
	memcpy(ret_path, path, strlen(path));
	return (ssize_t)strlen(path);
}

int fd_reopen(int fd, int flags)
{
	HANDLE handle = nt_handle(fd);
	HANDLE opened = handle ? ReOpenFile(handle, access_of(flags) | SYNCHRONIZE,
	                                    FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
	                                    FILE_FLAG_BACKUP_SEMANTICS) :
	                         INVALID_HANDLE_VALUE;
	if (opened == INVALID_HANDLE_VALUE && handle) {
		/* Some file systems cannot: by its path, if that is still the same file. */
		uncleared char path[PATH_MAX];
		struct system_stat held, info;
		ssize_t length = fd_path(fd, path, sizeof(path) - 1);
		path[length < 0 ? 0 : length] = '\0';
		auto_close int again = length < 0 ? -1 : open_at(AT_FDCWD, path, flags | O_NOFOLLOW, 0);
		if (again < 0 || system_fstat(fd, &held) < 0 || system_fstat(again, &info) < 0)
			return -1;
		if (held.st_dev == info.st_dev && held.st_ino == info.st_ino)
			return take_fd(&again);
		return fail_with(ESTALE);
	}
	return handle ? nt_descriptor(opened, flags) : fail_with(EBADF);
}

char *system_getcwd(char *path, size_t size)
{
	uncleared wchar_t wide[PATH_MAX];
	DWORD length = GetCurrentDirectoryW(PATH_MAX, wide);
	int number = !length || length >= PATH_MAX ? ENAMETOOLONG : text_of_native(wide, path, size);
	return number ? (errno = number, NULL) : path;
}

int system_chdir(const char *path)
{
	uncleared char native[PATH_MAX];
	uncleared wchar_t wide[PATH_MAX];
	if (windows_path_native(path, native, sizeof(native)))
		return fail_with(ENOENT);
	if (text_to_wide(native, wide, PATH_MAX) < 0)
		return -1;
	return SetCurrentDirectoryW(wide) ? 0 : fail_with(win32_errno(GetLastError()));
}

const char *path_given(const char *text, char *room, size_t size, const char **ret_why)
{
	*ret_why = windows_path_turn(text, room, size);
	return *ret_why ? NULL : room;
}

char *system_realpath(const char *path, char *ret_path)
{
	auto_close int fd = open_at(AT_FDCWD, path, O_PATH, 0);
	char *result = ret_path ? ret_path : malloc(PATH_MAX);
	ssize_t length = fd < 0 || !result ? -1 : fd_path(fd, result, PATH_MAX - 1);
	if (length < 0) {
		if (!ret_path)
			free(result);
		return NULL;
	}
	result[length] = '\0';
	return result;
}

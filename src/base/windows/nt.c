/* See nt.h. */
#include "base/windows/nt.h"

#include <sddl.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/windows/path.h"
#include "base/windows/wide.h"

int text_to_wide(const char *text, wchar_t *ret_wide, size_t size)
{
	if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, ret_wide, (int)size) > 0)
		return 0;
	errno = GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : EILSEQ;
	return -1;
}

int wide_to_text(const wchar_t *wide, char *ret_text, size_t size)
{
	if (WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, wide, -1, ret_text, (int)size, NULL, NULL) > 0)
		return 0;
	errno = GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : EILSEQ;
	return -1;
}

int win32_errno(DWORD error)
{
	switch (error) {
	case ERROR_SUCCESS: return 0;
	case ERROR_FILE_NOT_FOUND:
	case ERROR_PATH_NOT_FOUND:
	case ERROR_INVALID_DRIVE:
	case ERROR_BAD_NETPATH: return ENOENT;
	case ERROR_ACCESS_DENIED:
	case ERROR_SHARING_VIOLATION:
	case ERROR_CANT_ACCESS_FILE: return EACCES;
	case ERROR_PRIVILEGE_NOT_HELD: return EPERM;
	case ERROR_LOCK_VIOLATION:
	case ERROR_IO_PENDING: return EAGAIN;
	case ERROR_ALREADY_EXISTS:
	case ERROR_FILE_EXISTS: return EEXIST;
	case ERROR_DIR_NOT_EMPTY: return ENOTEMPTY;
	case ERROR_DIRECTORY: return ENOTDIR;
	case ERROR_DISK_FULL:
	case ERROR_HANDLE_DISK_FULL: return ENOSPC;
	case 1295: return EDQUOT;               /* ERROR_DISK_QUOTA_EXCEEDED */
	case ERROR_NOT_SAME_DEVICE: return EXDEV;
	case ERROR_WRITE_PROTECT: return EROFS;
	case ERROR_INVALID_HANDLE: return EBADF;
	case ERROR_TOO_MANY_OPEN_FILES: return EMFILE;
	case ERROR_NOT_ENOUGH_MEMORY:
	case ERROR_OUTOFMEMORY: return ENOMEM;
	case ERROR_FILENAME_EXCED_RANGE: return ENAMETOOLONG;
	case ERROR_BROKEN_PIPE:
	case ERROR_NO_DATA: return EPIPE;
	case 681: return ELOOP;                 /* ERROR_STOPPED_ON_SYMLINK */
	case ERROR_INVALID_FUNCTION:
	case ERROR_NOT_SUPPORTED: return EOPNOTSUPP;
	default: return EINVAL;
	}
}

int nt_errno(NTSTATUS status)
{
	switch ((ULONG)status) {
	case 0xC00000BAu: return EISDIR;        /* STATUS_FILE_IS_A_DIRECTORY */
	case 0xC0000103u: return ENOTDIR;       /* STATUS_NOT_A_DIRECTORY */
	case 0xC0000101u: return ENOTEMPTY;     /* STATUS_DIRECTORY_NOT_EMPTY */
	case 0xC0000056u: return ENOENT;        /* STATUS_DELETE_PENDING */
	case 0xC0000033u: return ENOENT;        /* STATUS_OBJECT_NAME_INVALID */
	case 0xC000050Bu: return ELOOP;         /* STATUS_REPARSE_POINT_ENCOUNTERED */
	default: return win32_errno(RtlNtStatusToDosError(status));
	}
}

HANDLE nt_handle(int fd)
{
	intptr_t handle = fd < 0 ? -1 : _get_osfhandle(fd);
	return handle == -1 || handle == -2 ? NULL : (HANDLE)handle;
}

int nt_descriptor(HANDLE handle, int flags)
{
	int fd = _open_osfhandle((intptr_t)handle, (flags & (O_RDONLY | O_APPEND)) | O_NOINHERIT | O_BINARY);
	if (fd < 0)
		CloseHandle(handle);
	return fd;
}

/* Full access for the owner, the system and administrators, inherited by what comes into being beneath, and for nobody
 * else. */
static PSECURITY_DESCRIPTOR private_descriptor(void)
{
	PSECURITY_DESCRIPTOR descriptor = NULL;
	ConvertStringSecurityDescriptorToSecurityDescriptorW(L"D:P(A;OICI;FA;;;OW)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)",
	                                                     SDDL_REVISION_1, &descriptor, NULL);
	return descriptor;
}

/* What NtCreateFile() is told: beneath the handle of `fd`, or \??\C:\… */
static int native_name(int fd, const char *path, wchar_t *ret_name, size_t size, HANDLE *ret_root)
{
	uncleared char native[PATH_MAX + 16], here[PATH_MAX];
	*ret_root = NULL;
	if (!strcmp(path, "/dev/null"))
		return text_to_wide("\\??\\NUL", ret_name, size) < 0 ? errno : 0;
	if (*path != '/' && fd != AT_FDCWD) {
		*ret_root = nt_handle(fd);
		if (!*ret_root)
			return EBADF;
	} else if (*path != '/') {
		if (!getcwd(here, sizeof(here)))
			return errno;
		if (snprintf(native, sizeof(native), "%s%s%s", here, strcmp(path, ".") ? "/" : "",
		             strcmp(path, ".") ? path : "") >= PATH_MAX)
			return ENAMETOOLONG;
		memcpy(here, native, strlen(native) + 1);
		path = here;
	}
	/* A name that no file can have is a file that is not there. */
	strcpy(native, *ret_root ? "" : "\\??\\");
	size_t prefix = strlen(native);
	if (windows_path_native(*ret_root && !strcmp(path, ".") ? "" : path, native + prefix, sizeof(native) - prefix))
		return strlen(path) >= PATH_MAX ? ENAMETOOLONG : ENOENT;
	return text_to_wide(native, ret_name, size) < 0 ? errno : 0;
}

/* Handles do not understand "." and "..": such a way is taken out of the text first. What ".." means is decided by
 * text. */
static int without_dots(int fd, const char *path, char ret_path[PATH_MAX])
{
	uncleared char whole[2 * PATH_MAX];
	size_t length = 0, at = 0;
	if (*path != '/' && fd != AT_FDCWD && strstr(path, "..")) {
		ssize_t known = fd_path(fd, whole, PATH_MAX);
		if (known < 0)
			return EBADF;
		length = (size_t)known;
		whole[length++] = '/';
	}
	if (strlen(path) >= PATH_MAX)
		return ENAMETOOLONG;
	strcpy(whole + length, path);
	const bool absolute = *whole == '/';
	for (const char *rest = whole; *rest;) {
		rest += strspn(rest, "/");
		size_t part = strcspn(rest, "/");
		bool up = part == 2 && rest[0] == '.' && rest[1] == '.';
		if (up) {
			while (at && ret_path[--at] != '/')
				;
		} else if (part && !(part == 1 && *rest == '.')) {
			if (at + part + 2 > PATH_MAX)
				return ENAMETOOLONG;
			if (absolute || at)
				ret_path[at++] = '/';
			memcpy(ret_path + at, rest, part);
			at += part;
		}
		rest += part;
	}
	ret_path[at] = '\0';
	if (!at)
		strcpy(ret_path, ".");
	return 0;
}

static bool has_dots(const char *path)
{
	for (const char *dot = path; (dot = strchr(dot, '.')); dot++)
		if ((dot == path || dot[-1] == '/') &&
		    (!dot[1] || dot[1] == '/' || (dot[1] == '.' && (!dot[2] || dot[2] == '/'))))
			return true;
	return false;
}

int nt_open(int fd, const char *path, ACCESS_MASK access, ULONG disposition, ULONG options, bool private,
            HANDLE *ret_handle)
{
	uncleared char plain[PATH_MAX];
	uncleared wchar_t name[PATH_MAX + 16];
	OBJECT_ATTRIBUTES attributes;
	IO_STATUS_BLOCK status;
	UNICODE_STRING text;
	HANDLE root;
	if (!*path)
		return ENOENT;
	int number = has_dots(path) ? without_dots(fd, path, plain) : 0;
	if (number == 0)
		number = native_name(fd, has_dots(path) ? plain : path, name, sizeof(name) / sizeof(name[0]), &root);
	if (number)
		return number;
	text = (UNICODE_STRING){ (USHORT)(2 * wcslen(name)), (USHORT)(2 * wcslen(name)), name };
	PSECURITY_DESCRIPTOR descriptor = private ? private_descriptor() : NULL;
	InitializeObjectAttributes(&attributes, &text, OBJ_CASE_INSENSITIVE, root, descriptor);
	NTSTATUS result =
		NtCreateFile(ret_handle, access | SYNCHRONIZE, &attributes, &status, NULL, FILE_ATTRIBUTE_NORMAL,
	                     FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, disposition,
	                     options | FILE_SYNCHRONOUS_IO_NONALERT | FILE_OPEN_FOR_BACKUP_INTENT, NULL, 0);
	if (descriptor)
		LocalFree(descriptor);
	/* The object's name collides with what is there. */
	return result < 0 ? ((ULONG)result == 0xC0000035u ? EEXIST : nt_errno(result)) : 0;
}

bool nt_is_link(HANDLE handle)
{
	FILE_ATTRIBUTE_TAG_INFO tag;
	return GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &tag, sizeof(tag)) &&
	       tag.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT &&
	       (tag.ReparseTag == IO_REPARSE_TAG_SYMLINK || tag.ReparseTag == IO_REPARSE_TAG_MOUNT_POINT);
}

bool nt_is_directory(HANDLE handle)
{
	FILE_STANDARD_INFO info;
	return GetFileInformationByHandleEx(handle, FileStandardInfo, &info, sizeof(info)) && info.Directory;
}

/* Giving files names and taking them away: see system.h. */
#include "base/windows/nt.h"

#include "base/windows/path.h"
#include "base/windows/wide.h"

static int fail_with(int number)
{
	errno = number;
	return number ? -1 : 0;
}

#define STATUS_DENIED ((NTSTATUS)0xC0000022)
#define INFORMATION_RENAME 10
#define INFORMATION_LINK 11
#define INFORMATION_DISPOSITION 13
#define INFORMATION_DISPOSITION_EX 64
#define INFORMATION_RENAME_EX 65

NTSTATUS NTAPI NtSetInformationFile(HANDLE, PIO_STATUS_BLOCK, PVOID, ULONG, FILE_INFORMATION_CLASS);

static NTSTATUS set_information(HANDLE handle, void *information, size_t size, int class)
{
	IO_STATUS_BLOCK status;
	return NtSetInformationFile(handle, &status, information, (ULONG)size, (FILE_INFORMATION_CLASS) class);
}

/* Gives the file of `handle` another name: FILE_RENAME_INFORMATION and FILE_LINK_INFORMATION have one form. */
static NTSTATUS give_name(HANDLE handle, HANDLE root, const wchar_t *name, ULONG flags, int class)
{
	struct {
		ULONG flags;
		HANDLE root;
		ULONG length;
		wchar_t name[PATH_MAX + 16];
	} *information = calloc(1, sizeof(*information));
	if (!information)
		return (NTSTATUS)0xC0000017;
	information->flags = flags;
	information->root = root;
	information->length = (ULONG)(2 * wcslen(name));
	wcscpy(information->name, name);
	NTSTATUS status = set_information(handle, information, sizeof(*information), class);
	free(information);
	return status;
}

/* What goes when it is closed has no name where it was any more, if the directory for temporary files is on the same
 * volume: else what is open somewhere would be listed still, and its directory could not be removed. */
static void move_away(HANDLE handle)
{
	wchar_t directory[MAX_PATH + 1], name[MAX_PATH + 64];
	unsigned long long random;
	if (!GetTempPathW(MAX_PATH + 1, directory) || getrandom(&random, sizeof(random), 0) < 0)
		return;
	_snwprintf(name, MAX_PATH + 64, L"\\??\\%lscordon-gone-%016llx", directory, random);
	give_name(handle, NULL, name, 0, INFORMATION_RENAME);
}

/* As POSIX has it: the name goes at once, whoever has the file open. Where the file system cannot (FAT, wine), the file
 * goes when the last closes it. */
static int remove_handle(HANDLE handle)
{
	ULONG how = 0x1 | 0x2 | 0x10; /* delete, POSIX semantics, even if read-only */
	NTSTATUS status = set_information(handle, &how, sizeof(how), INFORMATION_DISPOSITION_EX);
	if (status >= 0 || (ULONG)status == 0xC0000101u)
		return status < 0 ? nt_errno(status) : 0;
	BOOLEAN delete = TRUE;
	status = set_information(handle, &delete, sizeof(delete), INFORMATION_DISPOSITION);
	if (status >= 0)
		move_away(handle);
	return status < 0 ? nt_errno(status) : 0;
}

int unlinkat(int fd, const char *path, int flags)
{
	HANDLE handle;
	int number = nt_open(fd, path, DELETE | FILE_READ_ATTRIBUTES | (flags & AT_REMOVEDIR ? FILE_LIST_DIRECTORY : 0),
	                     FILE_OPEN, FILE_OPEN_REPARSE_POINT, false, &handle);
	if (number)
		return fail_with(number);
	bool directory = nt_is_directory(handle) && !nt_is_link(handle);
	if (directory != !!(flags & AT_REMOVEDIR))
		number = directory ? EISDIR : ENOTDIR;
	else
		number = remove_handle(handle);
	CloseHandle(handle);
	return fail_with(number);
}

/* The name to give, in the directory that it shall be in. */
static int new_name(int fd, const char *path, wchar_t name[PATH_MAX], HANDLE *ret_directory)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
	if (strlen(path) >= sizeof(parent))
		return ENAMETOOLONG;
	if (windows_name_check(last, strlen(last)) || !*last)
		return EINVAL;
	if (text_to_wide(last, name, PATH_MAX) < 0)
		return errno;
	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	return nt_open(fd, parent,
	               FILE_TRAVERSE | FILE_LIST_DIRECTORY | FILE_ADD_FILE | FILE_ADD_SUBDIRECTORY |
	                       FILE_READ_ATTRIBUTES,
	               FILE_OPEN, FILE_DIRECTORY_FILE, false, ret_directory);
}

/* Where a file cannot be replaced while somebody has it open (FAT, wine), it is first given another name, and goes by
 * that. */
static NTSTATUS replace_open(HANDLE handle, HANDLE directory, const wchar_t *name, int to_fd, const char *to)
{
	wchar_t aside[64];
	unsigned long long random;
	HANDLE target;
	if (getrandom(&random, sizeof(random), 0) < 0 ||
	    nt_open(to_fd, to, DELETE | FILE_READ_ATTRIBUTES, FILE_OPEN, FILE_OPEN_REPARSE_POINT, false, &target))
		return STATUS_DENIED;
	_snwprintf(aside, 64, L".cordon-%016llx", random);
	NTSTATUS status =
		nt_is_directory(target) ? STATUS_DENIED : give_name(target, directory, aside, 0, INFORMATION_RENAME);
	if (status >= 0) {
		status = give_name(handle, directory, name, 0, INFORMATION_RENAME);
		if (status < 0)
			give_name(target, directory, name, 0, INFORMATION_RENAME);
		else
			remove_handle(target);
	}
	CloseHandle(target);
	return status;
}

static int name_it(int from_fd, const char *from, int to_fd, const char *to, bool replace, bool link)
{
	wchar_t name[PATH_MAX];
	HANDLE handle, directory;
	int number = nt_open(from_fd, from, (link ? FILE_WRITE_ATTRIBUTES : DELETE) | FILE_READ_ATTRIBUTES, FILE_OPEN,
	                     FILE_OPEN_REPARSE_POINT, false, &handle);
	if (number)
		return fail_with(number);
	number = new_name(to_fd, to, name, &directory);
	if (number == 0) {
		NTSTATUS status = -1;
		if (!link && replace) /* over a file that somebody has open */
			status = give_name(handle, directory, name, 0x1 | 0x2 | 0x40, INFORMATION_RENAME_EX);
		if (status < 0)
			status = give_name(handle, directory, name, replace,
			                   link ? INFORMATION_LINK : INFORMATION_RENAME);
		if (status == STATUS_DENIED && !link && replace)
			status = replace_open(handle, directory, name, to_fd, to);
		number = status >= 0 ? 0 : (ULONG)status == 0xC0000035u ? EEXIST : nt_errno(status);
		CloseHandle(directory);
	}
	CloseHandle(handle);
	return fail_with(number);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	return name_it(from_fd, from, to_fd, to, true, false);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	if (flags & RENAME_EXCHANGE)
		return fail_with(EINVAL);
	return name_it(from_fd, from, to_fd, to, !(flags & RENAME_NOREPLACE), false);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	(void)flags;
	return name_it(from_fd, from, to_fd, to, false, true);
}

/* Only who may make them (developer mode, administrators) can; nothing of cordon's needs any. */
int symlinkat(const char *text, int fd, const char *path)
{
	(void)text;
	(void)fd;
	(void)path;
	return fail_with(EPERM);
}

int mkfifoat(int fd, const char *path, unsigned mode)
{
	(void)fd;
	(void)path;
	(void)mode;
	return fail_with(ENOSYS);
}

int mknodat(int fd, const char *path, unsigned mode, unsigned device)
{
	(void)device;
	return mkfifoat(fd, path, mode);
}

ssize_t readlinkat(int fd, const char *path, char *text, size_t size)
{
	struct {
		ULONG tag;
		USHORT length, reserved, target_at, target_length, print_at, print_length;
		union {
			struct {
				ULONG flags;
				wchar_t text[8000];
			} link;
			wchar_t mount[8000];
		};
	} * reparse;
	HANDLE handle = *path ? NULL : nt_handle(fd);
	DWORD length = 0;
	int number =
		handle ? 0
		       : nt_open(fd, path, FILE_READ_ATTRIBUTES, FILE_OPEN, FILE_OPEN_REPARSE_POINT, false, &handle);
	if (number)
		return fail_with(number);
	if (!nt_is_link(handle)) {
		number = EINVAL;
	} else if (!(reparse = calloc(1, sizeof(*reparse)))) {
		number = ENOMEM;
	} else {
		if (!DeviceIoControl(handle, FSCTL_GET_REPARSE_POINT, NULL, 0, reparse, sizeof(*reparse), &length,
		                     NULL)) {
			number = win32_errno(GetLastError());
		} else {
			/* "\??\C:\x" for an absolute one. */
			wchar_t *target =
				(reparse->tag == IO_REPARSE_TAG_SYMLINK ? reparse->link.text : reparse->mount) +
				reparse->target_at / 2;
			char native[PATH_MAX], mapped[PATH_MAX];
			target[reparse->target_length / 2] = L'\0';
			if (!wcsncmp(target, L"\\??\\", 4))
				target += 4;
			if (wide_to_text(target, native, sizeof(native)) < 0) {
				number = errno;
			} else if (native[0] && native[1] == ':' && windows_path_read(native, mapped, sizeof(mapped))) {
				number = EINVAL;
			} else {
				const char *result = native[0] && native[1] == ':' ? mapped : native;
				for (char *at = native; *at; at++)
					*at = *at == '\\' ? '/' : *at;
				length = (DWORD)strlen(result);
				memcpy(text, result, length < size ? length : size);
			}
		}
		free(reparse);
	}
	if (*path)
		CloseHandle(handle);
	return number ? fail_with(number) : (ssize_t)(length < size ? length : size);
}

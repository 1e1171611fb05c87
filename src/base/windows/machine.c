/* The machine, its signals, and directories as they are listed: see system.h. */
#undef signal
#include "base/windows/nt.h"

#include <dirent.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>

#include "base/cleanup.h"
#include "base/pid.h"
#include "base/windows/path.h"
#include "base/windows/wide.h"

static int fail_with(int number)
{
	errno = number;
	return number ? -1 : 0;
}

int sysinfo(struct sysinfo *ret_info)
{
	MEMORYSTATUSEX memory = { .dwLength = sizeof(memory) };
	if (!GlobalMemoryStatusEx(&memory))
		return fail_with(win32_errno(GetLastError()));
	*ret_info = (struct sysinfo){ memory.ullTotalPhys, 1 };
	return 0;
}

/* What the caller may use of it. */
int fstatvfs(int fd, struct statvfs *ret_info)
{
	wchar_t path[PATH_MAX];
	ULARGE_INTEGER available;
	HANDLE handle = nt_handle(fd);
	DWORD length = handle ? GetFinalPathNameByHandleW(handle, path, PATH_MAX, 0) : 0;
	if (!length || length >= PATH_MAX)
		return fail_with(EBADF);
	if (!GetDiskFreeSpaceExW(path, &available, NULL, NULL))
		return fail_with(win32_errno(GetLastError()));
	*ret_info = (struct statvfs){ 1, available.QuadPart };
	return 0;
}

int pid_own_program(char *ret_path, size_t size)
{
	wchar_t wide[PATH_MAX];
	char native[PATH_MAX];
	DWORD length = GetModuleFileNameW(NULL, wide, PATH_MAX);
	if (!length || length >= PATH_MAX || wide_to_text(wide, native, sizeof(native)) < 0 ||
	    windows_path_read(native, ret_path, size))
		return -ENAMETOOLONG;
	return 0;
}

int futimens(int fd, const struct timespec times[2])
{
	FILETIME now;
	HANDLE handle = nt_handle(fd);
	if (!handle || times)
		return fail_with(handle ? EINVAL : EBADF);
	GetSystemTimeAsFileTime(&now);
	return SetFileTime(handle, NULL, &now, &now) ? 0 : fail_with(win32_errno(GetLastError()));
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

system_handler system_signal(int number, system_handler handler)
{
	switch (number) {
	case SIGINT:
	case SIGILL:
	case SIGABRT:
	case SIGFPE:
	case SIGSEGV:
	case SIGTERM:
		return (signal)(number, handler);
	default:
		return SIG_DFL;
	}
}

const char *sigabbrev_np(int number)
{
	static const struct {
		int number;
		const char *name;
	} names[] = { { SIGHUP, "HUP" },   { SIGINT, "INT" },   { SIGQUIT, "QUIT" }, { SIGILL, "ILL" },
		      { SIGABRT, "ABRT" }, { SIGFPE, "FPE" },   { SIGKILL, "KILL" }, { SIGSEGV, "SEGV" },
		      { SIGPIPE, "PIPE" }, { SIGALRM, "ALRM" }, { SIGTERM, "TERM" } };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].number == number)
			return names[i].name;
	return NULL;
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

#define ALIGNED(length) (((length) + 7) & ~(size_t)7)

static size_t put_entry(char *to, const FILE_ID_BOTH_DIR_INFO *info)
{
	struct dirent64 entry = { .d_ino = (uint64_t)info->FileId.QuadPart };
	wchar_t name[MAX_PATH + 1];
	size_t length = info->FileNameLength / 2;
	if (length > MAX_PATH)
		return 0;
	memcpy(name, info->FileName, 2 * length);
	name[length] = L'\0';
	/* A name that is no text cannot be named in a request either. */
	if (wide_to_text(name, entry.d_name, sizeof(entry.d_name)) < 0)
		return 0;
	entry.d_type = info->FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT ? DT_UNKNOWN
		       : info->FileAttributes & FILE_ATTRIBUTE_DIRECTORY   ? DT_DIR
									   : DT_REG;
	size_t size = ALIGNED(offsetof(struct dirent64, d_name) + strlen(entry.d_name) + 1);
	entry.d_reclen = (unsigned short)size;
	memcpy(to, &entry, size < sizeof(entry) ? size : sizeof(entry));
	return size;
}

/* Where a handle has been listed up to is kept with it, as elsewhere. What is read at a time has room in the buffer:
 * each entry there is the longer one but for its name, of which a unit becomes three bytes at most. */
ssize_t getdents64(int fd, void *buffer, size_t size)
{
	HANDLE handle = nt_handle(fd);
	size_t most = size / 4 * 3, used = 0;
	auto_free char *room = malloc(most);
	if (!handle || !room)
		return fail_with(handle ? ENOMEM : EBADF);
	while (!used) {
		if (!GetFileInformationByHandleEx(handle, FileIdBothDirectoryInfo, room, (DWORD)most))
			return GetLastError() == ERROR_NO_MORE_FILES ? 0 : fail_with(win32_errno(GetLastError()));
		for (const char *at = room;;) {
			const FILE_ID_BOTH_DIR_INFO *info = (const void *)at;
			used += put_entry((char *)buffer + used, info);
			if (!info->NextEntryOffset)
				break;
			at += info->NextEntryOffset;
		}
	}
	return (ssize_t)used;
}

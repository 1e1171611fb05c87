/* What a file is: see system.h. Who owns it and who may write to it is read from its access list. */
#include "base/windows/nt.h"

#include <aclapi.h>

#include "base/cleanup.h"

#define UNIX_EPOCH INT64_C(116444736000000000)

static struct timespec time_of(LARGE_INTEGER time)
{
	int64_t ticks = time.QuadPart - UNIX_EPOCH;
	return (struct timespec){ .tv_sec = ticks / 10000000, .tv_nsec = (long)(ticks % 10000000 * 100) };
}

/* Of the process: who it is, and whom what it makes belongs to, which for an administrator is their group. */
static PSID sid_of_token(TOKEN_INFORMATION_CLASS class)
{
	static struct known {
		union {
			TOKEN_USER user;
			TOKEN_OWNER owner;
		};
		char room[SECURITY_MAX_SID_SIZE];
		int known;
	} both[2];
	struct known *own = &both[class == TokenOwner];
	DWORD length;
	HANDLE token;
	if (!own->known && OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token)) {
		own->known = GetTokenInformation(token, class, own, offsetof(struct known, known), &length) ? 1 : -1;
		CloseHandle(token);
	}
	return own->known <= 0 ? NULL : class == TokenOwner ? own->owner.Owner : own->user.User.Sid;
}

static PSID own_sid(void)
{
	return sid_of_token(TokenUser);
}

static uid_t uid_of(PSID owner)
{
	PSID own = own_sid(), group = sid_of_token(TokenOwner);
	if ((own && EqualSid(owner, own)) || (group && EqualSid(owner, group)))
		return SYSTEM_CALLER;
	return IsWellKnownSid(owner, WinLocalSystemSid) || IsWellKnownSid(owner, WinBuiltinAdministratorsSid)
		       ? SYSTEM_ROOT
		       : SYSTEM_OTHER;
}

static bool is_trusted(PSID sid, PSID owner)
{
	static const WELL_KNOWN_SID_TYPE trusted[] = { WinLocalSystemSid, WinBuiltinAdministratorsSid,
		                                       WinCreatorOwnerSid, WinCreatorOwnerRightsSid };
	PSID own = own_sid();
	if ((own && EqualSid(sid, own)) || EqualSid(sid, owner))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(trusted); i++)
		if (IsWellKnownSid(sid, trusted[i]))
			return true;
	return false;
}

/* Who else may change it, or what is in it? */
static bool others_may_write(PACL list, PSID owner)
{
	const ACCESS_MASK change = FILE_WRITE_DATA | FILE_APPEND_DATA | FILE_DELETE_CHILD | WRITE_DAC | WRITE_OWNER |
	                           GENERIC_WRITE | GENERIC_ALL;
	for (DWORD i = 0; list && i < list->AceCount; i++) {
		ACCESS_ALLOWED_ACE *entry;
		if (GetAce(list, i, (void **)&entry) && entry->Header.AceType == ACCESS_ALLOWED_ACE_TYPE &&
		    !(entry->Header.AceFlags & INHERIT_ONLY_ACE) && entry->Mask & change &&
		    !is_trusted(&entry->SidStart, owner))
			return true;
	}
	return !list;
}

static void read_access(HANDLE handle, struct system_stat *info)
{
	PSECURITY_DESCRIPTOR descriptor = NULL;
	PSID owner = NULL;
	PACL list = NULL;
	/* What cannot be told is another's. */
	info->st_uid = info->st_gid = SYSTEM_OTHER;
	info->st_mode |= S_IWGRP | S_IWOTH;
	if (GetSecurityInfo(handle, SE_FILE_OBJECT, OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION, &owner,
	                    NULL, &list, NULL, &descriptor) != ERROR_SUCCESS)
		return;
	if (owner)
		info->st_uid = info->st_gid = uid_of(owner);
	if (owner && !others_may_write(list, owner))
		info->st_mode &= ~(unsigned)(S_IWGRP | S_IWOTH);
	LocalFree(descriptor);
}

static int read_info(HANDLE handle, struct system_stat *ret_info)
{
	BY_HANDLE_FILE_INFORMATION file;
	FILE_BASIC_INFO basic;
	FILE_STANDARD_INFO standard;
	FILE_ATTRIBUTE_TAG_INFO tag = { 0 };
	struct system_stat info = { .st_blksize = 4096, .st_nlink = 1 };
	DWORD type = GetFileType(handle);
	if (type != FILE_TYPE_DISK) {
		info.st_mode = type == FILE_TYPE_PIPE ? S_IFIFO | 0600 : S_IFCHR | 0600;
		*ret_info = info;
		return 0;
	}
	if (!GetFileInformationByHandle(handle, &file) ||
	    !GetFileInformationByHandleEx(handle, FileBasicInfo, &basic, sizeof(basic)) ||
	    !GetFileInformationByHandleEx(handle, FileStandardInfo, &standard, sizeof(standard)))
		return win32_errno(GetLastError());
	if (file.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT)
		GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &tag, sizeof(tag));
	bool link = tag.ReparseTag == IO_REPARSE_TAG_SYMLINK || tag.ReparseTag == IO_REPARSE_TAG_MOUNT_POINT;
	info.st_dev = file.dwVolumeSerialNumber;
	info.st_ino = (uint64_t)file.nFileIndexHigh << 32 | file.nFileIndexLow;
	info.st_nlink = standard.DeletePending ? 0 : file.nNumberOfLinks;
	info.st_size = standard.EndOfFile.QuadPart;
	info.st_blocks = standard.AllocationSize.QuadPart / 512;
	info.st_atim = time_of(basic.LastAccessTime);
	info.st_mtim = time_of(basic.LastWriteTime);
	info.st_ctim = time_of(basic.ChangeTime.QuadPart ? basic.ChangeTime : basic.LastWriteTime);
	info.st_mode = link ? S_IFLNK | 0700 : standard.Directory ? S_IFDIR | 0700 : S_IFREG | 0600;
	read_access(handle, &info);
	*ret_info = info;
	return 0;
}

int system_fstat(int fd, struct system_stat *ret_info)
{
	HANDLE handle = nt_handle(fd);
	errno = handle ? read_info(handle, ret_info) : EBADF;
	return errno ? -1 : 0;
}

int system_fstatat(int fd, const char *path, struct system_stat *ret_info, int flags)
{
	HANDLE handle;
	if (!*path && flags & AT_EMPTY_PATH)
		return system_fstat(fd, ret_info);
	errno = nt_open(fd, path, FILE_READ_ATTRIBUTES | READ_CONTROL, FILE_OPEN,
	                flags & AT_SYMLINK_NOFOLLOW ? FILE_OPEN_REPARSE_POINT : 0, false, &handle);
	if (errno)
		return -1;
	errno = read_info(handle, ret_info);
	int number = errno;
	CloseHandle(handle);
	errno = number;
	return number ? -1 : 0;
}

#undef stat
int system_stat(const char *path, struct system_stat *ret_info)
{
	return system_fstatat(AT_FDCWD, path, ret_info, 0);
}

int system_lstat(const char *path, struct system_stat *ret_info)
{
	return system_fstatat(AT_FDCWD, path, ret_info, AT_SYMLINK_NOFOLLOW);
}

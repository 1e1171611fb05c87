/* The system calls that take a directory's handle and a name in it, which Win32 has no functions for. */
#pragma once
#include <windows.h>
#include <winternl.h>

/* `access` and `options` as NtCreateFile() takes them; `fd` AT_FDCWD: by an absolute path, or one relative to the
 * current directory. `private`: what is created belongs to the owner, the system and administrators alone. 0, or an
 * errno. */
int nt_open(int fd, const char *path, ACCESS_MASK access, ULONG disposition, ULONG options, bool private,
            HANDLE *ret_handle);
HANDLE nt_handle(int fd);
int nt_errno(NTSTATUS status);
int win32_errno(DWORD error);
/* A new descriptor of it, or -1; the handle is closed where that fails. */
int nt_descriptor(HANDLE handle, int flags);
/* Itself, not what it leads to. */
bool nt_is_link(HANDLE handle);
bool nt_is_directory(HANDLE handle);

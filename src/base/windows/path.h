/* Paths as cordon writes them and as Windows does: "/c/Users/ada/x" is C:\Users\ada\x. Pure, and compiled everywhere,
 * so that its tests run everywhere.
 *
 * What cannot be mapped is refused, with the reason: \\server\share and \\?\ (no drive), C:x (relative to a drive), a
 * name that Windows takes for another (a device such as NUL or COM1, with any extension; a dot or space at the end; a
 * colon, which names a stream), and characters that no name may have. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* As a person writes it on Windows, in a manifest or configuration: C:\x, C:/x, /c/x. NULL, or why it cannot be a
 * path. */
const char *windows_path_read(const char *text, char *ret_path, size_t size);
/* From "/c/x" to C:\x; relative paths only have their slashes turned. NULL, or why it cannot be one. */
const char *windows_path_native(const char *path, char *ret_native, size_t size);
/* The same, where a path may begin in another directory: that is only checked, and its slashes are turned. */
const char *windows_path_turn(const char *text, char *ret_path, size_t size);
/* NULL, or why no file may be called so. */
const char *windows_name_check(const char *name, size_t length);

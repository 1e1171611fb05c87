/* Small files of cordon's own, read and written whole. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* May cordon's data be there? Where others can put something else in its place, it may not. */
static inline bool file_may_hold_data(const struct stat *directory)
{
	return !(directory->st_mode & S_IWOTH) && (directory->st_uid == geteuid() || directory->st_uid == 0);
}

/* A regular file of the caller's own that no other user can change, of 1 to `max` bytes; no link is followed. The text,
 * ended by NUL, is the caller's to free(). 0, or a negative errno: -EPERM where it is another's, -EINVAL where it is no
 * regular file, -EFBIG where it is too large, -ENODATA where it is empty. */
int file_read(int directory_fd, const char *name, size_t max, char **ret_text, size_t *ret_length) must_check;
/* The same, or one of root's. */
int file_read_trusted(int directory_fd, const char *name, size_t max, char **ret_text, size_t *ret_length) must_check;
/* The same, whoever can change it: for what is not to be believed. */
int file_read_any(int directory_fd, const char *name, size_t max, char **ret_text, size_t *ret_length) must_check;

/* A new file, of mode 0600. 0, or a negative errno: -EEXIST where there is one. Nothing is left where it failed.
 * *ret_fd, which may be NULL, is the file, open. */
int file_create(int directory_fd, const char *name, const char *text, size_t length, int *ret_fd) must_check;

/* Readable when one of these events (inotify(7)) happens to the directory or in it; does not block. -1 where the kernel
 * cannot tell. */
int file_watch(int directory_fd, uint32_t events) must_check;

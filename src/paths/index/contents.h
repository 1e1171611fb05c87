/* What files with masked names have in them, read once: a file is read again only where its inode, size or change time
 * differs from what it was when it was read, or where it was read so soon after its last change that another one could
 * have left the time as it is. Kept in a file in cordon's data, which no command can write. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/sha1.h"

#define SHOWN_CONTENT_MAX (1u << 20)    /* what is compared with a git index is no larger */
#define CONTENT_MAX (16u << 20)         /* nor what is searched for a key */
#define CONTENT_SHA256_BYTES 32

struct content {
	unsigned char sha1[SHA1_BYTES], sha256[CONTENT_SHA256_BYTES]; /* as git counts them; up to SHOWN_CONTENT_MAX */
	uint32_t has_key;                                               /* or may have one */
};

struct contents;
/* `path` is the tree's, `directory_fd` where the file of it is kept, or -1. NULL when memory is short. */
struct contents *contents_new(int directory_fd, const char *path);
/* Keeps what was found until now, for later commands and for this one. To be called once. */
void contents_store(struct contents *contents, int directory_fd);
void contents_free(struct contents *contents);

enum content_found {
	CONTENT_FOUND,
	CONTENT_UNREADABLE,             /* or too large, or memory is short */
	CONTENT_LATE,                   /* it would have to be read, and the time (names_now_us()) is over */
};
/* Of the file that `place` and `info` are, of up to `max` bytes. Without `contents`, it is read. */
enum content_found contents_find(struct contents *contents, int place, const struct stat *info, size_t max,
                                 uint64_t deadline_us, struct content *ret_content);

/* The place of a regular file (O_PATH), no link on the way followed; or -1 and errno. */
int contents_open(int root_fd, const char *path, struct stat *ret_info);
/* All of it, to `buffer`, which holds `max` + 1, if it is no more than `max`. */
bool contents_read(int place, char *buffer, size_t max, size_t *ret_length);

/* Does a file of this content hold a private key, or may it? */
bool content_has_private_key(const char *content, size_t length);

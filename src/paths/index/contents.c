/* What files have in them, as it was when they were read: see contents.h. */
#include "paths/index/contents-entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "paths/index/look.h"

/* The clock of change times is this coarse at most. A file that was read so soon after its last change may have been
 * changed again with the same time. */
#define COARSE_NS 20000000

int contents_by_inode(const void *one, const void *other)
{
	const struct contents_entry *a = one, *b = other;
	return a->inode != b->inode   ? (a->inode > b->inode) - (a->inode < b->inode) :
	                                (a->device > b->device) - (a->device < b->device);
}

int contents_open(int root_fd, const char *path, struct stat *ret_info)
{
	auto_close int place = names_open(root_fd, path, O_PATH);
	if (place < 0 || fstat(place, ret_info) < 0)
		return -1;
	if (!S_ISREG(ret_info->st_mode)) {
		errno = EINVAL;
		return -1;
	}
	return take_fd(&place);
}

bool contents_read(int place, char *buffer, size_t max, size_t *ret_length)
{
	size_t length = 0;
	auto_close int fd = fd_reopen(place, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	for (ssize_t got = fd < 0 ? 0 : 1; got && length <= max;) {
		got = read(fd, buffer + length, max + 1 - length);
		if (got < 0 && errno != EINTR)
			return false;
		length += got > 0 ? (size_t)got : 0;
		got = got < 0 ? 1 : got;
	}
	*ret_length = length;
	return fd >= 0 && length <= max;
}

/* As git names the blob of it. */
static void hash_blob(const char *text, size_t length, struct content *content)
{
	char header[32];
	size_t size = (size_t)snprintf(header, sizeof(header), "blob %zu", length) + 1;
	struct sha1 sha1;
	crypto_hash_sha256_state sha256;
	sha1_init(&sha1);
	sha1_update(&sha1, header, size);
	sha1_update(&sha1, text, length);
	sha1_final(&sha1, content->sha1);
	crypto_hash_sha256_init(&sha256);
	sha256_update(&sha256, header, size);
	sha256_update(&sha256, text, length);
	sha256_final(&sha256, content->sha256);
}

static void keep(struct contents *contents, const struct contents_entry *entry)
{
	if (contents->used_count == contents->capacity) {
		size_t capacity = contents->capacity ? 2 * contents->capacity : 64;
		struct contents_entry *used = realloc(contents->used, capacity * sizeof(*used));
		if (!used)
			return;
		contents->used = used;
		contents->capacity = capacity;
	}
	contents->used[contents->used_count++] = *entry;
}

static bool is_same(const struct contents_entry *one, const struct contents_entry *other)
{
	return one->device == other->device && one->inode == other->inode && one->size == other->size &&
	       one->ctime_ns == other->ctime_ns;
}

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

enum content_found contents_find(struct contents *contents, int place, const struct stat *info, size_t max,
                                 uint64_t deadline_us, struct content *ret_content)
{
	struct contents_entry entry = { info->st_dev, info->st_ino, (uint64_t)info->st_size,
		               info->st_ctim.tv_sec * 1000000000 + info->st_ctim.tv_nsec, { .has_key = 0 } };
	const struct contents_entry *known = !contents || !contents->known_count ? NULL :
	        bsearch(&entry, contents->known, contents->known_count, sizeof(entry), contents_by_inode);
	size_t length;
	if (entry.size > max)
		return CONTENT_UNREADABLE;
	if (known && is_same(known, &entry)) {
		keep(contents, known);
		*ret_content = known->content;
		return CONTENT_FOUND;
	}
	if (names_now_us() > deadline_us)
		return CONTENT_LATE;
	bool settled = entry.ctime_ns + COARSE_NS < now_ns();
	auto_free char *text = malloc(entry.size + 1);
	if (!text || !contents_read(place, text, entry.size, &length))
		return CONTENT_UNREADABLE;
	entry.content.has_key = content_has_private_key(text, length);
	if (length <= SHOWN_CONTENT_MAX)
		hash_blob(text, length, &entry.content);
	if (contents && settled && length == entry.size)
		keep(contents, &entry);
	if (contents)
		contents->changed = true;
	*ret_content = entry.content;
	return CONTENT_FOUND;
}

/* The file in which is kept what a tree's files have in them: a header, then the entries, sorted by inode. Only those
 * are written that were looked at for this command, so files that are gone are forgotten. The checksum is against
 * accidents; the file is the caller's own, lies where only cordon writes, and is otherwise not there. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/sha256.h"
#include "paths/index/cache.h"
#include "paths/index/contents-entry.h"

#define ENTRIES_MAX (64 * 1024)

static const char magic[8] = "cordonC1";

struct header {
	char magic[8];
	unsigned char checksum[32];             /* of the entries */
};

_Static_assert(sizeof(struct header) == 40 && sizeof(struct contents_entry) == 88, "the file has no gaps");

static void load(struct contents *contents, int directory_fd)
{
	size_t length;
	struct header header;
	unsigned char sum[sizeof(header.checksum)];
	if (file_read(directory_fd, contents->name, sizeof(header) + ENTRIES_MAX * sizeof(struct contents_entry),
	              &contents->file, &length) < 0)
		return;
	const char *entries = contents->file + sizeof(header);
	if (length < sizeof(header) || (length - sizeof(header)) % sizeof(struct contents_entry))
		return;
	memcpy(&header, contents->file, sizeof(header));
	length -= sizeof(header);
	crypto_generichash(sum, sizeof(sum), (const unsigned char *)entries, length, NULL, 0);
	if (memcmp(header.magic, magic, sizeof(magic)) || memcmp(header.checksum, sum, sizeof(sum)))
		return;
	contents->known = (const void *)entries;
	contents->known_count = length / sizeof(struct contents_entry);
}

struct contents *contents_new(int directory_fd, const char *path)
{
	struct contents *contents = calloc(1, sizeof(*contents));
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof(hash) + 1];
	if (!contents)
		return NULL;
	sha256(hash, path, strlen(path));
	snprintf(contents->name, sizeof(contents->name), "contents-%s",
	         sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash)));
	if (directory_fd >= 0)
		load(contents, directory_fd);
	return contents;
}

static void write_file(struct contents *contents, int directory_fd)
{
	size_t size = sizeof(struct header) + contents->used_count * sizeof(struct contents_entry);
	struct header header = { 0 };
	auto_free char *bytes = malloc(size);
	if (!bytes)
		return;
	memcpy(header.magic, magic, sizeof(magic));
	crypto_generichash(header.checksum, sizeof(header.checksum), (const unsigned char *)contents->used,
	                   size - sizeof(header), NULL, 0);
	memcpy(mempcpy(bytes, &header, sizeof(header)), contents->used, size - sizeof(header));
	names_cache_put(directory_fd, contents->name, bytes, size);
}

void contents_store(struct contents *contents, int directory_fd)
{
	if (!contents->changed || !contents->used_count)
		return;
	qsort(contents->used, contents->used_count, sizeof(*contents->used), contents_by_inode);
	if (directory_fd >= 0 && contents->used_count <= ENTRIES_MAX)
		write_file(contents, directory_fd);
	free(contents->file);
	contents->file = (char *)contents->used;
	contents->known = contents->used;
	contents->known_count = contents->used_count;
	contents->used = NULL;
	contents->used_count = contents->capacity = 0;
	contents->changed = false;
}

void contents_free(struct contents *contents)
{
	if (!contents)
		return;
	free(contents->file);
	free(contents->used);
	free(contents);
}

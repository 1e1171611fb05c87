/* The index of a repository: see git-index.h. */
#include "paths/index/git-index.h"

#include <stdint.h>
#include <string.h>

#define HEADER_SIZE 12
#define STAT_SIZE 40                    /* before the hash; the mode is at 24 */
#define MODE_AT 24
#define FLAG_EXTENDED 0x4000
#define FLAG_STAGES 0x3000

struct reading {
	const unsigned char *at, *end;
	unsigned version;
	size_t hash_size;
	char path[GIT_INDEX_PATH_MAX];          /* the path of the previous entry, which version 4 continues */
	size_t path_length;
};

static uint32_t number(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* As git's varint: each byte but the last has its top bit set, and one is added at each step. */
static bool read_offset(struct reading *reading, size_t *ret_offset)
{
	size_t offset = 0;
	for (unsigned i = 0; i < 4 && reading->at < reading->end; i++) {
		unsigned char byte = *reading->at++;
		offset = (i ? (offset + 1) << 7 : 0) | (byte & 0x7f);
		if (!(byte & 0x80)) {
			*ret_offset = offset;
			return true;
		}
	}
	return false;
}

/* The path, which begins at `start` of the entry. */
static bool read_path(struct reading *reading, const unsigned char *entry)
{
	size_t removed = reading->path_length;
	if (reading->version == 4 && (!read_offset(reading, &removed) || removed > reading->path_length))
		return false;
	const unsigned char *zero = memchr(reading->at, 0, (size_t)(reading->end - reading->at));
	size_t kept = reading->path_length - removed, length = zero ? (size_t)(zero - reading->at) : 0;
	if (!zero || kept + length >= sizeof(reading->path))
		return false;
	memcpy(reading->path + kept, reading->at, length + 1);
	reading->path_length = kept + length;
	if (reading->version == 4) {
		reading->at = zero + 1;
		return true;
	}
	/* With one to eight zeroes the entry is a multiple of eight bytes. */
	size_t size = ((size_t)(zero - entry) + 8) & ~(size_t)7;
	if (size > (size_t)(reading->end - entry))
		return false;
	reading->at = entry + size;
	return true;
}

void git_index_find(const unsigned char *bytes, size_t length, size_t hash_size, struct git_index_entry *entries,
                    size_t count)
{
	struct reading reading = { .at = bytes + HEADER_SIZE, .end = bytes + length, .hash_size = hash_size };
	size_t next = 0;
	if (length < HEADER_SIZE || memcmp(bytes, "DIRC", 4) != 0)
		return;
	reading.version = number(bytes + 4);
	if (reading.version < 2 || reading.version > 4)
		return;
	for (uint32_t left = number(bytes + 8); left && next < count; left--) {
		const unsigned char *entry = reading.at;
		size_t fixed = STAT_SIZE + hash_size + 2;
		if ((size_t)(reading.end - entry) < fixed + 2)
			return;
		unsigned flags = (unsigned)entry[fixed - 2] << 8 | entry[fixed - 1];
		reading.at += fixed + (reading.version > 2 && flags & FLAG_EXTENDED ? 2 : 0);
		if (!read_path(&reading, entry))
			return;
		while (next < count && strcmp(entries[next].path, reading.path) < 0)
			next++;
		if (next == count || strcmp(entries[next].path, reading.path) != 0)
			continue;
		bool is_regular = (number(entry + MODE_AT) & 0170000) == 0100000;
		entries[next].found = is_regular && !(flags & FLAG_STAGES);
		memcpy(entries[next].hash, entry + STAT_SIZE, hash_size);
		next++;
	}
}

/* The cache file: a header, then the three arrays of the table as they are in memory.
 *
 * It lies where only cordon writes, so the checksum is against accidents (a torn write, a bad disk), not forgers.
 * Still nothing in it is followed unchecked: every index, length and name is validated when it is loaded, since a
 * library must not crash its program. The file comes into place by rename, so a reader never has half of one. */
#include "paths/index/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STALE_TEMPORARY_S 10

static const char magic[8] = "cordonN3";

struct header {
	char magic[8];
	uint64_t checksum;              /* of everything from `key` on */
	struct names_progress progress;
	unsigned char key[32];
	uint32_t directories, matches, pool, reserved;
};
_Static_assert(sizeof(struct header) == 72 && sizeof(struct names_directory) == 40 && sizeof(struct names_match) == 12,
               "the file has no gaps");

/* Every step is a bijection of the state, so that no change of a single word goes unseen. */
static uint64_t checksum(const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	uint64_t sum = size, word;
	for (; size; size -= size < 8 ? size : 8, at += 8) {
		word = 0;
		memcpy(&word, at, size < 8 ? size : 8);
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 29;
	}
	return sum;
}

static void hash_strings(crypto_generichash_state *state, const struct strings *list)
{
	uint64_t count = list ? list->count : 0;
	crypto_generichash_update(state, (const unsigned char *)&count, sizeof(count));
	for (size_t i = 0; i < count; i++)
		crypto_generichash_update(state, (const unsigned char *)list->items[i], strlen(list->items[i]) + 1);
}

void names_cache_key_make(uint64_t device, uint64_t inode, const char *root_path, const struct name_rules *rules,
                          struct names_cache_key *ret_key)
{
	crypto_generichash_state state;
	const uint64_t identity[] = { device, inode, geteuid() };
	crypto_generichash_init(&state, NULL, 0, sizeof(ret_key->bytes));
	crypto_generichash_update(&state, (const unsigned char *)identity, sizeof(identity));
	crypto_generichash_update(&state, (const unsigned char *)root_path, strlen(root_path) + 1);
	hash_strings(&state, rules->deny);
	hash_strings(&state, rules->protect);
	hash_strings(&state, rules->exempt);
	crypto_generichash_final(&state, ret_key->bytes, sizeof(ret_key->bytes));
	sodium_bin2hex(ret_key->name, sizeof(ret_key->name), ret_key->bytes, sizeof(ret_key->bytes));
}

int names_cache_place(struct names_place *place)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
	if (!place || place->tried)
		return place ? place->fd : -1;
	place->tried = true;
	place->fd = open(place->path, flags);
	if (place->fd < 0 && place->may_make && (mkdir(place->path, 0700) == 0 || errno == EEXIST))
		place->fd = open(place->path, flags);
	return place->fd;
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

static bool name_is_sound(const struct names_table *table, uint32_t name, size_t length)
{
	const char *text = table->pool + name;
	return length && length <= NAMES_NAME_MAX && name <= table->pool_size && length <= table->pool_size - name &&
	       !(text[0] == '.' && (length == 1 || (length == 2 && text[1] == '.')));
}

static bool directories_are_sound(const struct names_table *table)
{
	const struct names_directory *all = table->directories, *at = all;
	if (at->parent || at->name_length || at->path_length || at->depth || at->flags & ~NAMES_SAVED)
		return false;
	for (size_t i = 1; i < table->directory_count; i++) {
		at = &all[i];
		if (at->parent >= i || at->parent < all[i - 1].parent || at->flags & ~NAMES_SAVED ||
		    !name_is_sound(table, at->name, at->name_length) ||
		    at->depth != all[at->parent].depth + 1 || at->depth > NAMES_DEPTH_MAX ||
		    at->path_length != names_table_path_length(table, at->parent, at->name_length) ||
		    at->path_length > NAMES_PATH_MAX)
			return false;
	}
	return true;
}

static bool matches_are_sound(const struct names_table *table)
{
	for (size_t i = 0; i < table->match_count; i++) {
		const struct names_match *at = &table->matches[i];
		if (at->directory >= table->directory_count || at->kind >= NAME_KIND_MAX ||
		    at->type >= NAMES_TYPE_MAX || !name_is_sound(table, at->name, at->name_length) ||
		    names_table_path_length(table, at->directory, at->name_length) > NAMES_PATH_MAX)
			return false;
	}
	return true;
}

bool names_cache_parse(void *bytes, size_t size, const struct names_cache_key *key, struct names_table *ret_table,
                       struct names_progress *ret_progress)
{
	const struct header *header = bytes;
	if (size < sizeof(*header) || size > NAMES_CACHE_SIZE_MAX || memcmp(header->magic, magic, sizeof(magic)) ||
	    memcmp(header->key, key->bytes, sizeof(header->key)) || !header->directories ||
	    header->directories > NAMES_DIRECTORIES_MAX || header->matches > NAME_KIND_MAX * NAMES_MATCHES_MAX)
		return false;
	struct names_table table = {
		.directory_count = header->directories, .loaded_directories = header->directories,
		.match_count = header->matches, .loaded_matches = header->matches,
		.pool_size = header->pool,
	};
	if (names_cache_size(&table) != size ||
	    checksum(header->key, size - offsetof(struct header, key)) != header->checksum)
		return false;
	table.directories = (void *)((char *)bytes + sizeof(*header));
	table.matches = (void *)(table.directories + table.directory_count);
	table.pool = (char *)(table.matches + table.match_count);
	if (memchr(table.pool, '/', table.pool_size) || memchr(table.pool, '\0', table.pool_size) ||
	    !directories_are_sound(&table) || !matches_are_sound(&table))
		return false;
	table.file = bytes;
	*ret_table = table;
	*ret_progress = header->progress;
	ret_progress->cursor %= header->directories;
	return true;
}

static bool read_all(int fd, char *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = pread(fd, bytes + done, size - done, (off_t)done);
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

int names_cache_load(int dir_fd, const struct names_cache_key *key, struct names_table *ret_table,
                     struct names_progress *ret_progress)
{
	struct stat stat;
	auto_close int fd = openat(dir_fd, key->name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode) || stat.st_uid != geteuid() ||
	    stat.st_mode & (S_IWGRP | S_IWOTH) || stat.st_size > NAMES_CACHE_SIZE_MAX || stat.st_size <= 0)
		return -1;
	size_t size = (size_t)stat.st_size;
	char *bytes = malloc(size);
	if (!bytes || !read_all(fd, bytes, size) || !names_cache_parse(bytes, size, key, ret_table, ret_progress)) {
		free(bytes);
		return -1;
	}
	return take_fd(&fd);
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

size_t names_cache_size(const struct names_table *table)
{
	return sizeof(struct header) + table->directory_count * sizeof(*table->directories) +
	       table->match_count * sizeof(*table->matches) + table->pool_size;
}

void names_cache_seal(void *bytes, size_t size)
{
	struct header *header = bytes;
	header->checksum = checksum(header->key, size - offsetof(struct header, key));
}

void names_cache_write(void *bytes, const struct names_cache_key *key, const struct names_table *table,
                       const struct names_progress *progress)
{
	struct header header = {
		.progress = *progress,
		.directories = (uint32_t)table->directory_count,
		.matches = (uint32_t)table->match_count,
		.pool = (uint32_t)table->pool_size,
	};
	memcpy(header.magic, magic, sizeof(magic));
	memcpy(header.key, key->bytes, sizeof(header.key));
	char *at = mempcpy(bytes, &header, sizeof(header));
	at = mempcpy(at, table->directories, table->directory_count * sizeof(*table->directories));
	if (table->match_count)
		at = mempcpy(at, table->matches, table->match_count * sizeof(*table->matches));
	if (table->pool_size)
		memcpy(at, table->pool, table->pool_size);
	names_cache_seal(bytes, names_cache_size(table));
}

/* One fixed temporary name, so that a crash leaves at most one file behind, and the next writer takes it over. */
static int open_temporary(int dir_fd, const char *name)
{
	struct stat stat;
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, fd = openat(dir_fd, name, flags, 0600);
	if (fd >= 0 || errno != EEXIST || fstatat(dir_fd, name, &stat, AT_SYMLINK_NOFOLLOW) < 0 ||
	    time(NULL) - stat.st_mtime < STALE_TEMPORARY_S)
		return fd;
	unlinkat(dir_fd, name, 0);
	return openat(dir_fd, name, flags, 0600);
}

void names_cache_put(int dir_fd, const char *name, const void *bytes, size_t size)
{
	char temporary[128];
	if (snprintf(temporary, sizeof(temporary), "%s.tmp", name) >= (int)sizeof(temporary))
		return;
	auto_close int fd = open_temporary(dir_fd, temporary);
	if (fd < 0)
		return;
	if (write(fd, bytes, size) != (ssize_t)size) {
		unlinkat(dir_fd, temporary, 0);
		return;
	}
	/* Renaming over a file makes ext4 write the new one to disk at once, which takes longer than all the rest; an
	 * exchange does not. At any time there is a file: without one, what lies beyond a bounded search would not be
	 * known. */
	bool exchanged = renameat2(dir_fd, temporary, dir_fd, name, RENAME_EXCHANGE) == 0;
	if (exchanged || renameat(dir_fd, temporary, dir_fd, name) < 0)
		unlinkat(dir_fd, temporary, 0);
}

void names_cache_store(int dir_fd, const struct names_cache_key *key, const struct names_table *table,
                       const struct names_progress *progress)
{
	size_t size = names_cache_size(table);
	auto_free char *bytes = dir_fd < 0 || size > NAMES_CACHE_SIZE_MAX ? NULL : malloc(size);
	if (!bytes)
		return;
	names_cache_write(bytes, key, table, progress);
	names_cache_put(dir_fd, key->name, bytes, size);
}

void names_cache_set_progress(int fd, const struct names_progress *progress)
{
	/* A full disk does not matter: nothing is added to the file. */
	ssize_t written = pwrite(fd, progress, sizeof(*progress), offsetof(struct header, progress));
	(void)written;
}

/* One directory's entries: see listing.h. Names are bytes; only their place in the tree is trusted. */
#include "paths/index/listing.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/text.h"
#include "paths/planted/git-file.h"
#include "paths/index/look.h"

#define PROBES_MAX 64
#define NO_DIRECTORY UINT32_MAX

/* `path` is what a glob that is not absolute is matched against: the entry's in the tree, or the whole of it. */
static bool any_matches(const struct names_walk *walk, const struct names_listing *listing, const char *path,
                        const struct glob *globs, size_t count, const char *name, size_t length)
{
	for (size_t i = 0; i < count; i++) {
		if (!glob_match_name(&globs[i], name, length))
			continue;
		if (globs[i].anywhere)
			return true;
		memcpy(listing->name_at, name, length + 1);
		if (glob_match(&globs[i], globs[i].absolute ? walk->path : path))
			return true;
	}
	return false;
}

/* A repository, or a further working tree of one, is no branch, whatever the directories above it are called. */
static bool may_be_repository(const struct names_listing *listing)
{
	struct names_stat stat;
	return names_stat(listing->fd, "objects", &stat) || names_stat(listing->fd, "commondir", &stat);
}

static bool is_exempt(const struct names_walk *walk, const struct names_listing *listing, const char *name,
                      size_t length, bool is_directory)
{
	for (size_t i = 0; i < walk->globs.exempt_count; i++) {
		const struct glob *glob = &walk->globs.exempt[i];
		if ((is_directory || !glob->directory) &&
		    any_matches(walk, listing, walk->path, glob, 1, name, length) &&
		    (glob->directory || !may_be_repository(listing)))
			return true;
	}
	return false;
}

/* By which git would read or write elsewhere. */
static bool is_link_of_git(const struct names_walk *walk, const struct names_listing *listing, const char *name,
                           size_t length)
{
	memcpy(listing->name_at, name, length + 1);
	return walk->globs.protect_count && git_file_is_gits_own(walk->path);
}

static size_t hash_name(const char *name, size_t length)
{
	uint64_t hash = text_hash(TEXT_HASH, name, length);
	return (size_t)(hash ^ hash >> 32);
}

/* A slot that cannot be found within a few probes is given up: the child then counts as new, which is only slower. */
static int fill_lookup(struct names_walk *walk, const struct names_listing *listing)
{
	const struct names_table *table = &walk->table;
	size_t size = 16;
	while (size < listing->children * 2)
		size *= 2;
	if (size > walk->lookup_capacity) {
		uint32_t *grown = realloc(walk->lookup, size * sizeof(*grown));
		if (!grown)
			return -1;
		walk->lookup = grown;
		walk->lookup_capacity = size;
	}
	walk->lookup_size = size;
	memset(walk->lookup, 0xff, size * sizeof(*walk->lookup));
	for (size_t i = 0; i < listing->children; i++) {
		uint32_t child = listing->first_child + (uint32_t)i;
		const struct names_directory *at = &table->directories[child];
		size_t slot = hash_name(table->pool + at->name, at->name_length);
		for (size_t probe = 0; probe < PROBES_MAX; probe++, slot++) {
			if (walk->lookup[slot & (size - 1)] != NO_DIRECTORY)
				continue;
			walk->lookup[slot & (size - 1)] = child;
			break;
		}
	}
	return 0;
}

static struct names_directory *find_child(struct names_walk *walk, const char *name, size_t length)
{
	struct names_table *table = &walk->table;
	size_t slot = hash_name(name, length);
	for (size_t probe = 0; probe < PROBES_MAX; probe++, slot++) {
		uint32_t child = walk->lookup[slot & (walk->lookup_size - 1)];
		if (child == NO_DIRECTORY)
			return NULL;
		struct names_directory *at = &table->directories[child];
		if (at->name_length == length && !memcmp(table->pool + at->name, name, length))
			return at;
	}
	return NULL;
}

static bool is_still(const struct names_walk *walk, const struct names_listing *listing,
                     const struct names_directory *child, const char *name, uint64_t entry_inode)
{
	struct names_stat stat;
	/* An entry tells the inode beneath a mount, and on some overlays another number altogether: then ask. */
	if (child->inode == entry_inode && child->device == walk->table.directories[listing->directory].device)
		return true;
	return names_stat(listing->fd, name, &stat) && stat.device == child->device && stat.inode == child->inode;
}

static int take_directory(struct names_walk *walk, struct names_listing *listing, const char *name, size_t length,
                          uint64_t entry_inode)
{
	struct names_table *table = &walk->table;
	struct names_directory *known = listing->children ? find_child(walk, name, length) : NULL;
	if (known && is_still(walk, listing, known, name, entry_inode)) {
		known->flags &= (uint16_t)~NAMES_DEAD;
		return 0;
	}
	bool full = table->directory_count >= NAMES_DIRECTORIES_MAX;
	if (full || table->directories[listing->directory].depth >= NAMES_DEPTH_MAX) {
		walk->overflowed |= full;
		listing->crowded |= full;
		listing->partial = true;
		return 0;
	}
	return names_table_add_directory(table, listing->directory, name, length);
}

/* By these git knows a repository (setup.c, is_git_directory()), and of it reads the second half; commondir is both. */
static const struct part {
	const char *name;
	unsigned bit;
	bool is_read;
} parts[] = {
	{ "HEAD", PART_HEAD, false },    { "objects", PART_OBJECTS, false },
	{ "refs", PART_REFS, false },    { "commondir", PART_COMMONDIR, true },
	{ "config", PART_CONFIG, true }, { "config.worktree", PART_WORKTREE, true },
	{ "hooks", PART_HOOKS, true },
};
_Static_assert(ARRAY_SIZE(parts) == NAMES_PARTS, "every part has a row");

/* `kind` is what the rules say of it; what they cover needs no other entry. */
static void note_part(struct names_listing *listing, const char *name, unsigned type, unsigned kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (strcmp(parts[i].name, name))
			continue;
		listing->parts |= parts[i].bit;
		listing->part_types[i] = kind == NAME_KIND_MAX ? (uint8_t)type : DT_UNKNOWN;
	}
}

static bool is_repository(unsigned parts_found)
{
	const unsigned whole = PART_OBJECTS | PART_REFS;
	return parts_found & PART_HEAD && (parts_found & PART_COMMONDIR || (parts_found & whole) == whole);
}

static unsigned stored_type(unsigned type)
{
	return type == DT_DIR  ? NAMES_TYPE_DIRECTORY :
	       type == DT_LNK  ? NAMES_TYPE_LINK :
	       type == DT_FIFO ? NAMES_TYPE_FIFO :
	                         NAMES_TYPE_OTHER;
}

static int add_match(struct names_walk *walk, struct names_listing *listing, const char *name, size_t length,
                     unsigned kind, unsigned type)
{
	if (walk->matches[kind]++ >= NAMES_MATCHES_MAX) {
		walk->overflowed = listing->partial = listing->crowded = true;
		return 0;
	}
	return names_table_add_match(&walk->table, listing->directory, name, length, kind, stored_type(type));
}

/* A directory that is a repository, whatever it is called: what git reads of it is judged. */
static int take_repository(struct names_walk *walk, struct names_listing *listing)
{
	if (!walk->globs.protect_count || !is_repository(listing->parts))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].is_read && listing->part_types[i] != DT_UNKNOWN &&
		    add_match(walk, listing, parts[i].name, strlen(parts[i].name), NAME_JUDGED,
		              listing->part_types[i]) < 0)
			return -1;
	return 0;
}

static int take_entry(struct names_walk *walk, struct names_listing *listing, const struct dirent64 *entry)
{
	const char *name = entry->d_name;
	size_t length = strlen(name);
	unsigned type = entry->d_type, kind = NAME_KIND_MAX;
	struct names_stat stat;
	if (name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')))
		return 0;
	if (length > NAMES_NAME_MAX ||
	    names_table_path_length(&walk->table, listing->directory, length) > NAMES_PATH_MAX) {
		listing->partial = true;
		return 0;
	}
	if (type == DT_UNKNOWN) {
		if (names_stat(listing->fd, name, &stat))
			type = IFTODT(stat.mode);
		else
			listing->partial |= errno != ENOENT;
	}
	if (any_matches(walk, listing, listing->relative, walk->globs.deny, walk->globs.deny_count, name, length))
		kind = NAME_MASKED;
	else if (type == DT_SOCK)
		kind = NAME_SOCKET;
	else if (any_matches(walk, listing, walk->path, walk->globs.protect, walk->globs.protect_count, name, length) &&
	         !is_exempt(walk, listing, name, length, type == DT_DIR))
		kind = NAME_PROTECTED;
	else if (type == DT_LNK &&
	         (is_link_of_git(walk, listing, name, length) || names_globs_keep_link(&walk->globs, name, length)))
		kind = NAME_JUDGED;
	else if (type == DT_FIFO)
		kind = NAME_FIFO;
	note_part(listing, name, type, kind);
	if (kind != NAME_KIND_MAX && add_match(walk, listing, name, length, kind, type) < 0)
		return -1;
	return type == DT_DIR && kind != NAME_MASKED ? take_directory(walk, listing, name, length, entry->d_ino) : 0;
}

int names_listing_read(struct names_walk *walk, struct names_listing *listing)
{
	if (listing->children && fill_lookup(walk, listing) < 0)
		return -1;
	for (;;) {
		ssize_t size = getdents64(listing->fd, walk->buffer, NAMES_BUFFER_SIZE);
		if (size <= 0) {
			listing->incomplete = size < 0 && errno != ENOENT;
			return take_repository(walk, listing);
		}
		for (char *at = walk->buffer, *end = at + size; at < end;) {
			struct dirent64 *entry = (struct dirent64 *)at;
			if (take_entry(walk, listing, entry) < 0)
				return -1;
			at += entry->d_reclen;
			listing->entries++;
			walk->entries++;
		}
		if (walk->entries > NAMES_ENTRIES_MAX || names_now_us() > walk->deadline_us) {
			walk->stopped = listing->incomplete = true;
			return 0;
		}
	}
}

/* The public part of /etc: see public.h.
 *
 * A caller can often read more than other users can: as root, as a file's owner, or through a supplementary group
 * such as ssl-cert, which a user namespace does not take away. So the mode bits for others decide, not what the caller
 * can open: a file must be readable, a directory readable and searchable, and each directory above it searchable. A
 * directory that holds nothing else is shown as a whole. Of any other one each public entry is shown by itself, which
 * holds for mounts as it does for Landlock, whose rules cannot take away beneath what they gave.
 *
 * The search is bounded; what lies beyond a bound is not shown. */
#include "host/public.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define DEPTH_MAX 8
#define ENTRIES_MAX 16384               /* looked at, for one entry of the view */
#define PARTS_MAX 1024                  /* shown in the place of one entry of the view */
#define SMALL_FILE (128 * 1024)

struct search {
	struct arena *arena;
	struct host_watch_set *watches;
	struct host_entries *entries;
	size_t looked_at, first;        /* for one entry of the view; `first`: how many were shown before it */
};

uint64_t host_file_stamp(const struct stat *info)
{
	if (!S_ISREG(info->st_mode) || info->st_size >= SMALL_FILE || !(info->st_mode & S_IROTH))
		return 0;
	uint64_t stamp = info->st_ino * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)info->st_size;
	stamp = (stamp ^ (uint64_t)info->st_ctim.tv_sec) * UINT64_C(0x9e3779b97f4a7c15);
	return (stamp ^ (uint64_t)info->st_ctim.tv_nsec ^ info->st_dev) | 1;
}

static bool is_public(mode_t mode)
{
	return S_ISDIR(mode) ? (mode & (S_IROTH | S_IXOTH)) == (S_IROTH | S_IXOTH) : S_ISREG(mode) && (mode & S_IROTH);
}

/* Can every user get to what is in the directories above it? */
static bool is_reachable(const char *path)
{
	uncleared char parent[PATH_MAX];
	struct stat info;
	if ((size_t)snprintf(parent, sizeof(parent), "%s", path) >= sizeof(parent))
		return false;
	for (char *slash = strrchr(parent, '/'); slash; slash = strrchr(parent, '/')) {
		*slash = '\0';
		if (stat(*parent ? parent : "/", &info) < 0 || !(info.st_mode & S_IXOTH))
			return false;
	}
	return true;
}

static int append(struct search *search, const struct host_entry *entry)
{
	struct host_entries *entries = search->entries;
	if (entries->count == entries->capacity) {
		size_t capacity = entries->capacity ? entries->capacity * 2 : 64;
		struct host_entry *items = arena_alloc(search->arena, capacity * sizeof(*items));
		if (!items)
			return -1;
		if (entries->count)
			memcpy(items, entries->items, entries->count * sizeof(*items));
		entries->items = items;
		entries->capacity = capacity;
	}
	entries->items[entries->count++] = *entry;
	return 0;
}

/* ---- reading a directory ----------------------------------------------------------------------------------------- */

struct reader {
	int fd;
	ssize_t length, at;
	_Alignas(struct dirent64) char buffer[32768];
};

/* The next entry and what it is; false at the end, or where reading failed (`length` < 0). A link's mode is S_IFLNK
 * alone: nothing else of it matters. What cannot be looked at has the mode 0, which is not public. */
static bool next_entry(struct search *search, struct reader *reader, const char **ret_name, struct stat *ret_info)
{
	for (;;) {
		if (reader->at >= reader->length) {
			reader->at = 0;
			reader->length = getdents64(reader->fd, reader->buffer, sizeof(reader->buffer));
			if (reader->length <= 0)
				return false;
		}
		const struct dirent64 *entry = (const struct dirent64 *)(reader->buffer + reader->at);
		reader->at += entry->d_reclen;
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		search->looked_at++;
		*ret_name = entry->d_name;
		ret_info->st_mode = entry->d_type == DT_LNK ? S_IFLNK : 0;
		if (entry->d_type != DT_LNK && fstatat(reader->fd, entry->d_name, ret_info, AT_SYMLINK_NOFOLLOW) < 0)
			ret_info->st_mode = 0;
		return true;
	}
}

static int open_directory(struct search *search, const char *source)
{
	host_watch_names(search->watches, source);
	return open(source, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- judging it -------------------------------------------------------------------------------------------------- */

/* Is everything in this directory public, at any depth? */
static bool is_whole(struct search *search, const char *source, unsigned depth)
{
	auto_close int fd = depth < DEPTH_MAX ? open_directory(search, source) : -1;
	uncleared struct reader reader;
	const char *name;
	struct stat info;
	if (fd < 0)
		return false;
	reader.fd = fd;
	reader.length = reader.at = 0;
	while (next_entry(search, &reader, &name, &info)) {
		if (search->looked_at > ENTRIES_MAX || (!S_ISLNK(info.st_mode) && !is_public(info.st_mode)))
			return false;
		const char *inner = S_ISDIR(info.st_mode) ? arena_printf(search->arena, "%s/%s", source, name) : NULL;
		if (S_ISDIR(info.st_mode) && (!inner || !is_whole(search, inner, depth + 1)))
			return false;
	}
	return reader.length == 0;
}

static int add_directory(struct search *search, const char *path, const char *source, unsigned depth);

static int add_part(struct search *search, int directory, const struct host_entry *parent, const char *name,
                    const struct stat *info, unsigned depth)
{
	uncleared char text[PATH_MAX];
	const char *path = arena_printf(search->arena, "%s/%s", parent->path, name);
	const char *source = arena_printf(search->arena, "%s/%s", parent->source, name);
	if (!path || !source)
		return -1;
	if (S_ISDIR(info->st_mode))
		return add_directory(search, path, source, depth + 1);
	struct host_entry part = { .path = path, .source = source, .kind = HOST_FILE, .stamp = host_file_stamp(info) };
	if (S_ISLNK(info->st_mode)) {
		ssize_t length = readlinkat(directory, name, text, sizeof(text));
		if (length <= 0 || length == sizeof(text))
			return 0;
		part.kind = HOST_LINK;
		part.link = arena_strndup(search->arena, text, (size_t)length);
		if (!part.link)
			return -1;
	}
	return append(search, &part);
}

static int add_parts(struct search *search, const char *path, const char *source, unsigned depth)
{
	const struct host_entry parent = { .path = path, .source = source, .kind = HOST_PARTS };
	auto_close int fd = depth < DEPTH_MAX ? open_directory(search, source) : -1;
	uncleared struct reader reader;
	const char *name;
	struct stat info;
	if (append(search, &parent) < 0)
		return -1;
	if (fd < 0)
		return 0;
	reader.fd = fd;
	reader.length = reader.at = 0;
	while (search->entries->count - search->first < PARTS_MAX && next_entry(search, &reader, &name, &info))
		if ((S_ISLNK(info.st_mode) || is_public(info.st_mode)) &&
		    add_part(search, fd, &parent, name, &info, depth) < 0)
			return -1;
	return 0;
}

static int add_directory(struct search *search, const char *path, const char *source, unsigned depth)
{
	const struct host_entry whole = { .path = path, .source = source, .kind = HOST_DIRECTORY };
	return is_whole(search, source, depth) ? append(search, &whole) : add_parts(search, path, source, depth);
}

static int add_entry(struct search *search, const struct host_entry *entry, bool is_reachable)
{
	struct stat info;
	if (!is_reachable || stat(entry->source, &info) < 0 || !is_public(info.st_mode))
		return 0;
	search->looked_at = 0;
	search->first = search->entries->count;
	return S_ISDIR(info.st_mode) ? add_directory(search, entry->path, entry->source, 0) : append(search, entry);
}

int host_public_keep(struct arena *arena, struct host_watch_set *watches, struct host_entries *entries)
{
	struct host_entries public = { 0 };
	struct search search = { .arena = arena, .watches = watches, .entries = &public };
	const bool etc_is_reachable = is_reachable("/etc/");
	for (size_t i = 0; i < entries->count; i++) {
		const struct host_entry *entry = &entries->items[i];
		bool as_it_is = entry->kind == HOST_LINK || !path_within(entry->path, "/etc");
		bool reachable =
			!as_it_is && (entry->source == entry->path ? etc_is_reachable : is_reachable(entry->source));
		if ((as_it_is ? append(&search, entry) : add_entry(&search, entry, reachable)) < 0)
			return -1;
	}
	*entries = public;
	return 0;
}

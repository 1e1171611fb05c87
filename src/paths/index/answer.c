/* What a search found, as its caller gets it: the living matches with their paths, and a note on what a bound left
 * unseen. */
#include "paths/index/answer.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/error.h"
#include "paths/index/look.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

static char *copy_path(struct arena *arena, const struct names_table *table, uint32_t directory, const char *name,
                       size_t length)
{
	size_t before = names_table_path_length(table, directory, 0);
	/* names_table_path() wants no more room than the path takes. */
	char *path = arena_alloc(arena, before + length + 1);
	if (!path)
		return NULL;
	names_table_path(table, directory, path);
	if (before && length)
		path[before - 1] = '/';
	memcpy(path + before, name, length);
	return path;
}

/* Whether the entries of a directory are as they were then: it has not changed since, and each directory above it was
 * known at this place, or has not changed since either, which moving it would have done. */
static bool is_older(const struct names_table *table, uint32_t directory, int64_t since_ns)
{
	if (!since_ns || table->directories[directory].ctime_ns == NAMES_CTIME_NEVER ||
	    table->directories[directory].ctime_ns >= since_ns)
		return false;
	while (directory) {
		const struct names_directory *at = &table->directories[directory];
		bool known = directory < table->loaded_directories && !(at->flags & NAMES_REPLACED);
		if (!known && (at->ctime_ns == NAMES_CTIME_NEVER || at->ctime_ns >= since_ns))
			return false;
		directory = at->parent;
	}
	return true;
}

static int add_matches(struct arena *arena, const struct names_walk *walk, int64_t since_ns, struct names *names)
{
	const struct names_table *table = &walk->table;
	for (size_t i = 0; i < table->match_count; i++) {
		const struct names_match *match = &table->matches[i];
		struct names_stat stat = { 0 };
		if (!names_table_match_counts(table, i))
			continue;
		char *path = copy_path(arena, table, match->directory, table->pool + match->name, match->name_length);
		if (!path)
			return -1;
		bool stamped = match->kind == NAME_PROTECTED || match->kind == NAME_JUDGED ||
		               match->type == NAMES_TYPE_LINK || match->type == NAMES_TYPE_DIRECTORY;
		if (stamped && !names_stat(walk->root_fd, path, &stat) && match->kind != NAME_MASKED)
			continue;
		names->items[names->count++] = (struct name){
			.kind = match->kind,
			.path = path,
			.is_directory = match->type == NAMES_TYPE_DIRECTORY,
			.is_link = match->type == NAMES_TYPE_LINK,
			.is_fifo = match->type == NAMES_TYPE_FIFO,
			.is_older = stamped && stat.inode && stat.ctime_ns < since_ns &&
			            is_older(table, match->directory, since_ns),
			.device = stat.device,
			.inode = stat.inode,
			.ctime_ns = stat.ctime_ns,
			.born_ns = stat.born_ns,
			.links = stat.links,
		};
	}
	return 0;
}

/* Directories that no search has read completely, and one of them as an example. */
struct unseen {
	size_t unread, partial;
	const char *example;
};

static int note_example(struct arena *arena, const struct names_table *table, uint32_t directory, struct unseen *unseen)
{
	if (!unseen->example)
		unseen->example = copy_path(arena, table, directory, "", 0);
	return unseen->example ? 0 : -1;
}

static int add_directories(struct arena *arena, const struct names_walk *walk, struct names *names,
                           struct unseen *unseen)
{
	const struct names_table *table = &walk->table;
	for (size_t i = 0; i < table->directory_count; i++) {
		const struct names_directory *at = &table->directories[i];
		if (at->flags & NAMES_DEAD)
			continue;
		names->directories++;
		if (!(at->flags & NAMES_CHECKED) && i < table->loaded_directories && at->ctime_ns != NAMES_CTIME_NEVER)
			names->unchecked++;
		else if (!(at->flags & NAMES_CHECKED))
			unseen->unread++;
		else if (at->flags & NAMES_PARTIAL)
			unseen->partial++;
		if ((unseen->unread || unseen->partial) && note_example(arena, table, (uint32_t)i, unseen) < 0)
			return -1;
		if (!(at->flags & NAMES_CLOSED) || !i)
			continue;
		char *path = copy_path(arena, table, (uint32_t)i, "", 0);
		struct names_stat stat = { 0 };
		if (!path)
			return -1;
		names_stat(walk->root_fd, path, &stat);
		names->items[names->count++] = (struct name){ .kind = NAME_MASKED,
			                                      .path = path,
			                                      .is_directory = true,
			                                      .is_closed = true,
			                                      .device = stat.device,
			                                      .inode = stat.inode,
			                                      .born_ns = stat.born_ns };
	}
	return 0;
}

static int add_note(struct arena *arena, const struct unseen *unseen, struct names *names)
{
	const struct {
		size_t count;
		const char *text;
	} rows[] = {
		{ names->unchecked, "known directories not searched again this time for new names" },
		{ unseen->unread, "directories not searched yet: the tree is too large for one walk" },
		{ unseen->partial, "directories searched in part only: too deep, too long or too many names" },
	};
	char *note = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!rows[i].count)
			continue;
		note = arena_printf(arena, "%s%s%zu %s", note ? note : "", note ? "; " : "", rows[i].count,
		                    rows[i].text);
		if (!note)
			return -1;
	}
	if (note && unseen->example &&
	    !(note = arena_printf(arena, "%s, such as %s", note, *unseen->example ? unseen->example : ".")))
		return -1;
	names->note = note;
	names->unseen = unseen->unread || unseen->partial;
	names->unfinished = unseen->unread || names->unchecked;
	return 0;
}

/* Where moving a file or directory changes its own change time. */
static bool moves_are_timed(int root_fd)
{
	static const uint32_t known[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,  BTRFS_SUPER_MAGIC,
		                          TMPFS_MAGIC,      F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC };
	struct statfs stat;
	if (fstatfs(root_fd, &stat) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if ((uint32_t)stat.f_type == known[i])
			return true;
	return false;
}

int names_answer(struct arena *arena, const struct names_walk *walk, int64_t since_ns, struct names *ret_names,
                 struct cordon_error *err)
{
	const struct names_table *table = &walk->table;
	struct names names = { .since_ns = since_ns && moves_are_timed(walk->root_fd) ? since_ns : 0 };
	struct unseen unseen = { 0 };
	size_t room = table->match_count;
	for (size_t i = 1; i < table->directory_count; i++)
		room += !!(table->directories[i].flags & NAMES_CLOSED);
	names.items = arena_alloc(arena, room * sizeof(*names.items));
	if (!names.items || add_matches(arena, walk, names.since_ns, &names) < 0 ||
	    add_directories(arena, walk, &names, &unseen) < 0 || add_note(arena, &unseen, &names) < 0)
		return fail_oom(err);
	names_sort(&names);
	names.unfinished |= walk->stopped;
	for (size_t kind = 0; kind < NAME_KIND_MAX; kind++)
		names.too_many |= walk->matches[kind] > NAMES_MATCHES_MAX;
	*ret_names = names;
	return 0;
}

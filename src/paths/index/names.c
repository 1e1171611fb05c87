/* Finding names, at a bounded cost per command.
 *
 * The first call walks the tree and stores what it found (names-cache.h). A later call compares each known directory with
 * what is there: unchanged since, its matches and subdirectories stand; changed, it alone is read again. So the cost is one
 * statx() per directory, whatever the number of files. That too is bounded, by `budget_us`: what must be read again comes
 * first, then the hot directories (those with matches, and the shallow ones) for at most half of the
 * budget, then all others in turn, from where the last call stopped; so each has its turn within a few commands.
 * Where a masked name has gone, it may have been moved, hidden directory and all, to where this call would not look:
 * then everything is checked, budget or not. */
#include "paths/index/names.h"

#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/error.h"
#include "paths/index/cache.h"
#include "paths/index/compare.h"
#include "paths/index/look.h"
#include "paths/index/memory.h"
#include "paths/index/table.h"
#include "paths/index/walk.h"

/* However late it is, this many are looked at in each pass, or large trees would never be done. */
#define CHECKED_MIN 128
#define LOOKS_PER_CLOCK 8

/* Estimates in microseconds, to tell when storing is worth it. What is stored for the first time saves its cost again and
 * again: so many times, at least. */
#define FIRST_STORED_SAVES 4
#define READ_DIRECTORY_US 4
#define ENTRIES_PER_US 8
#define STORE_US 80
#define STORED_BYTES_PER_US 1000

const char *const name_kind_names[] = { "masked", "protected", "socket", "judged", "fifo" };
_Static_assert(ARRAY_SIZE(name_kind_names) == NAME_KIND_MAX, "every kind has a name");

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* One call's own. */
struct finding {
	const struct names_keep *keep;
	const struct name_rules *rules;
	struct names_stat root;
	struct names_cache_key key;     /* of the file, once it is asked for */
	struct names_tree *tree;        /* in memory; or NULL */
	bool known;                     /* there was a table */
	struct names_progress progress;
	int cache_fd;                   /* of the file it came from; or -1 */
};

/* ---- Rechecking what is known ----------------------------------------------------------------------------------- */

struct pass {
	size_t first, count;            /* among the loaded directories, going round */
	unsigned flags;                 /* only those with one of these; 0 = all */
	bool unread_only;
	uint64_t deadline_us;
	size_t stopped_at;              /* filled */
};

static bool is_wanted(const struct names_table *table, const struct pass *pass, size_t directory)
{
	const struct names_directory *at = &table->directories[directory];
	if (at->flags & (NAMES_CHECKED | NAMES_DEAD) || table->directories[at->parent].flags & NAMES_DEAD)
		return false;
	/* One that was closed may have been opened to be read. */
	bool unread = at->ctime_ns == NAMES_CTIME_NEVER || at->flags & NAMES_CLOSED;
	return (!pass->flags || at->flags & pass->flags) && (!pass->unread_only || unread);
}

static int run_pass(struct names_walk *walk, struct pass *pass)
{
	size_t loaded = walk->table.loaded_directories, checked = 0;
	pass->stopped_at = pass->first;
	for (size_t i = 0; i < pass->count && !walk->stopped; i++) {
		size_t directory = (pass->first + i) % loaded;
		pass->stopped_at = directory;
		if (!is_wanted(&walk->table, pass, directory))
			continue;
		if (checked >= CHECKED_MIN && !(checked % LOOKS_PER_CLOCK) && names_now_us() > pass->deadline_us)
			return 0;
		if (names_walk_check(walk, (uint32_t)directory) < 0)
			return -1;
		checked++;
	}
	return 0;
}

static int recheck(struct names_walk *walk, uint64_t start_us, uint64_t budget_us, uint32_t *cursor)
{
	size_t loaded = walk->table.loaded_directories;
	struct pass unread = { 0, loaded, 0, true, walk->deadline_us, 0 };
	if (budget_us > NAMES_WALK_US)
		budget_us = NAMES_WALK_US;
	struct pass hot = { 0, loaded, NAMES_HOT, false, start_us + budget_us / 2, 0 };
	struct pass turn = { *cursor, loaded, 0, false, start_us + budget_us, 0 };
	struct pass rest = { 0, loaded, 0, false, walk->deadline_us, 0 };
	if (run_pass(walk, &unread) < 0 || run_pass(walk, &hot) < 0 || run_pass(walk, &turn) < 0 || names_walk_new(walk) < 0)
		return -1;
	*cursor = (uint32_t)turn.stopped_at;
	names_table_bury(&walk->table);
	if (!names_masked_is_lost(&walk->table))
		return 0;
	if (run_pass(walk, &rest) < 0 || names_walk_new(walk) < 0)
		return -1;
	names_table_bury(&walk->table);
	return 0;
}

static void count_matches(struct names_walk *walk)
{
	memset(walk->matches, 0, sizeof(walk->matches));
	for (size_t i = 0; i < walk->table.match_count; i++)
		walk->matches[walk->table.matches[i].kind]++;
}

static int walk_afresh(struct names_walk *walk)
{
	names_table_free(&walk->table);
	memset(walk->matches, 0, sizeof(walk->matches));
	if (names_table_init(&walk->table) < 0 || names_walk_new(walk) < 0)
		return -1;
	names_table_bury(&walk->table);
	return 0;
}

/* ---- The answer ------------------------------------------------------------------------------------------------- */

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

/* Whether the entries of a directory are as they were then: it has not changed since, and each directory above it was known at
 * this place, or has not changed since either, which moving it would have done. */
static bool is_older(const struct names_table *table, uint32_t directory, int64_t since_ns)
{
	if (!since_ns || table->directories[directory].ctime_ns == NAMES_CTIME_NEVER || table->directories[directory].ctime_ns >= since_ns)
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
		bool stamped = match->kind == NAME_PROTECTED || match->kind == NAME_JUDGED || match->type == NAMES_TYPE_LINK || match->type == NAMES_TYPE_DIRECTORY;
		if (stamped && !names_stat(walk->root_fd, path, &stat) && match->kind != NAME_MASKED)
			continue;
		names->items[names->count++] = (struct name){
			.kind = match->kind,
			.path = path,
			.is_directory = match->type == NAMES_TYPE_DIRECTORY,
			.is_link = match->type == NAMES_TYPE_LINK,
			.is_fifo = match->type == NAMES_TYPE_FIFO,
			.is_older = stamped && stat.inode && stat.ctime_ns < since_ns && is_older(table, match->directory, since_ns),
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

static int add_directories(struct arena *arena, const struct names_walk *walk, struct names *names, struct unseen *unseen)
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
		names->items[names->count++] = (struct name){ .kind = NAME_MASKED, .path = path, .is_directory = true, .is_closed = true,
		                                              .device = stat.device, .inode = stat.inode, .born_ns = stat.born_ns };
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
		note = arena_printf(arena, "%s%s%zu %s", note ? note : "", note ? "; " : "", rows[i].count, rows[i].text);
		if (!note)
			return -1;
	}
	if (note && unseen->example && !(note = arena_printf(arena, "%s, such as %s", note, *unseen->example ? unseen->example : ".")))
		return -1;
	names->note = note;
	names->unseen = unseen->unread || unseen->partial;
	names->unfinished = unseen->unread || names->unchecked;
	return 0;
}

/* Where moving a file or directory changes its own change time. */
static bool moves_are_timed(int root_fd)
{
	static const uint32_t known[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, F2FS_SUPER_MAGIC,
	                                  OVERLAYFS_SUPER_MAGIC };
	struct statfs stat;
	if (fstatfs(root_fd, &stat) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if ((uint32_t)stat.f_type == known[i])
			return true;
	return false;
}

static int answer(struct arena *arena, const struct names_walk *walk, int64_t since_ns, struct names *ret_names,
                  struct cordon_error *err)
{
	const struct names_table *table = &walk->table;
	struct names names = { .since_ns = since_ns };
	struct unseen unseen = { 0 };
	size_t room = table->match_count;
	for (size_t i = 1; i < table->directory_count; i++)
		room += !!(table->directories[i].flags & NAMES_CLOSED);
	names.items = arena_alloc(arena, room * sizeof(*names.items));
	if (!names.items || add_matches(arena, walk, since_ns, &names) < 0 || add_directories(arena, walk, &names, &unseen) < 0 ||
	    add_note(arena, &unseen, &names) < 0)
		return fail_oom(err);
	names_sort(&names);
	names.unfinished |= walk->stopped;
	for (size_t kind = 0; kind < NAME_KIND_MAX; kind++)
		names.too_many |= walk->matches[kind] > NAMES_MATCHES_MAX;
	*ret_names = names;
	return 0;
}

static void make_key(const struct names_walk *walk, struct finding *finding)
{
	if (!*finding->key.name)
		names_cache_key_make(finding->root.device, finding->root.inode, walk->root_path, finding->rules, &finding->key);
}

/* Storing pays where reading the same directories once more would take longer. A small tree is never stored. But where the
 * budget did not reach all, the next call may not reach what this one read: what was found would be forgotten again. */
static void store(const struct names_walk *walk, struct finding *finding, size_t unchecked)
{
	struct names_table packed;
	uint64_t again_us = (walk->directories * READ_DIRECTORY_US + walk->entries / ENTRIES_PER_US) *
	                    (finding->known ? 1 : FIRST_STORED_SAVES);
	bool forgets = unchecked && walk->directories;
	struct names_progress progress = finding->progress;
	if (forgets || again_us > STORE_US + names_cache_size(&walk->table) / STORED_BYTES_PER_US) {
		if (names_table_pack(&walk->table, &packed) < 0)
			return;
		make_key(walk, finding);
		names_cache_store(names_cache_place(finding->keep->place), &finding->key, &packed, &progress);
		names_table_free(&packed);
	} else if (finding->cache_fd >= 0) {
		if (unchecked)
			names_cache_set_progress(finding->cache_fd, &progress);
	}
}

/* What is known of the tree: in memory, else in its file. */
static void load(struct names_walk *walk, struct finding *finding)
{
	const struct names_keep *keep = finding->keep;
	if (finding->tree && names_memory_load(finding->tree, keep->mounts, walk)) {
		finding->progress = finding->tree->progress;
		finding->known = true;
	} else if (names_cache_place(keep->place) >= 0) {
		make_key(walk, finding);
		finding->cache_fd = names_cache_load(keep->place->fd, &finding->key, &walk->table, &finding->progress);
		finding->known = finding->cache_fd >= 0;
	}
	if (!finding->known)
		return;
	count_matches(walk);
}

static int find(struct arena *arena, struct names_walk *walk, struct finding *finding, uint64_t budget_us,
                struct names *ret_names, struct cordon_error *err)
{
	uint64_t start_us = names_now_us();
	load(walk, finding);
	if ((finding->known ? recheck(walk, start_us, budget_us, &finding->progress.cursor) : walk_afresh(walk)) < 0)
		return fail_oom(err);
	if (finding->known && walk->overflowed && walk_afresh(walk) < 0)
		return fail_oom(err);
	if (walk->root_errno)
		return fail(err, CORDON_E_CAPABILITY_DENIED, walk->root_errno, walk->root_path,
		            "the directory cannot be searched for names to hide");
	int64_t since_ns = finding->keep->since_ns && moves_are_timed(walk->root_fd) ? finding->keep->since_ns : 0;
	if (answer(arena, walk, since_ns, ret_names, err) < 0)
		return -1;
	if (finding->keep->place)
		store(walk, finding, ret_names->unchecked);
	if (finding->tree)
		names_memory_store(finding->tree, walk, &finding->progress);
	return 0;
}

/* The rules, as this tree's were compiled before. */
static int compile(struct arena *arena, struct names_walk *walk, const char *root_path, const struct name_rules *rules,
                   struct names_tree *tree, struct cordon_error *err)
{
	struct names_globs *globs = tree ? &tree->globs : &walk->globs;
	if (!globs->compiled && names_globs_compile(tree ? &tree->arena : arena, root_path, rules, globs, err) < 0)
		return -1;
	walk->globs = *globs;
	return 0;
}

int names_find(struct arena *arena, int root_fd, const char *root_path, const struct name_rules *rules,
               const struct names_keep *keep, uint64_t budget_us, struct names *ret_names, struct cordon_error *err)
{
	struct finding finding = { .keep = keep, .rules = rules, .cache_fd = -1 };
	struct names_walk walk;
	const struct names_stat *root = &finding.root;
	if (!names_stat(root_fd, "", &finding.root))
		return fail(err, CORDON_E_INTERNAL, errno, root_path, "the directory cannot be looked at");
	if (names_walk_init(&walk, root_fd, root_path, err) < 0)
		return -1;
	if (keep->memory)
		finding.tree = names_memory_take(keep->memory, &(struct names_memory_key){ root->device, root->inode, walk.user,
		                                                                           root_path, rules });
	int status = compile(arena, &walk, root_path, rules, finding.tree, err);
	if (status == 0)
		status = find(arena, &walk, &finding, budget_us, ret_names, err);
	names_walk_free(&walk);
	names_memory_give_back(keep->memory, finding.tree);
	if (finding.cache_fd >= 0)
		close(finding.cache_fd);
	return status;
}

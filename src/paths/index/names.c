/* Finding names, at a bounded cost per command.
 *
 * The first call walks the tree and stores what it found (cache.h). A later call compares each known directory
 * with the table: if it is unchanged, its matches and subdirectories are valid; if it changed, it alone is read again.
 * So the cost is one statx() per directory, whatever the number of files. That, too, is bounded, by `budget_us`:
 * first, what must be read again; then the hot directories (those with matches, and the shallow ones) for at most half
 * of the budget; then all others in turn, from where the last call stopped, so that each is checked within a few
 * commands. If a masked name has disappeared, it may have been moved, with its directory, to a place that this call
 * would not check: then everything is checked, beyond the budget. */
#include "paths/index/names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "paths/index/answer.h"
#include "paths/index/cache.h"
#include "paths/index/compare.h"
#include "paths/index/look.h"
#include "paths/index/memory.h"
#include "paths/index/table.h"
#include "paths/index/walk.h"

/* However late it is, this many are looked at in each pass, or large trees would never be done. */
#define CHECKED_MIN 128
#define LOOKS_PER_CLOCK 8

/* Estimates in microseconds, to tell when storing is worth it. What is stored for the first time saves its cost again
 * and again: so many times, at least. */
#define FIRST_STORED_SAVES 4
#define READ_DIRECTORY_US 4
#define ENTRIES_PER_US 8
#define STORE_US 80
#define STORED_BYTES_PER_US 1000

const char *const name_kind_names[] = { "masked", "protected", "socket", "judged", "fifo" };
_Static_assert(ARRAY_SIZE(name_kind_names) == NAME_KIND_MAX, "every kind has a name");

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
	if (run_pass(walk, &unread) < 0 || run_pass(walk, &hot) < 0 || run_pass(walk, &turn) < 0 ||
	    names_walk_new(walk) < 0)
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

/* The table was full, perhaps of what is dead: a walk with an empty one finds more, unless its time ends before it is
 * through. */
static int walk_again(struct names_walk *walk)
{
	struct names_table known = walk->table;
	size_t matches[NAME_KIND_MAX];
	if (walk->stopped)
		return 0;
	memcpy(matches, walk->matches, sizeof(matches));
	walk->table = (struct names_table){ 0 };
	if (walk_afresh(walk) < 0) {
		names_table_free(&known);
		return -1;
	}
	struct names_table *left_over = walk->stopped ? &walk->table : &known;
	names_table_free(left_over);
	if (!walk->stopped)
		return 0;
	walk->table = known;
	memcpy(walk->matches, matches, sizeof(matches));
	return 0;
}

/* ---- Storing ----------------------------------------------------------------------------------------------------- */

static void make_key(const struct names_walk *walk, struct finding *finding)
{
	if (!*finding->key.name)
		names_cache_key_make(finding->root.device, finding->root.inode, walk->root_path, finding->rules,
		                     &finding->key);
}

/* Was a match found in a directory that the next search may not reach? It reaches the hot ones, if there are not too
 * many of them, and CHECKED_MIN of all others, however little time it has. */
static bool found_more(const struct names_table *table)
{
	size_t hot = 0;
	if (table->directory_count <= CHECKED_MIN)
		return false;
	for (size_t i = 0; i < table->loaded_directories; i++)
		hot += !!(table->directories[i].flags & NAMES_HOT);
	for (size_t i = table->loaded_matches; i < table->match_count; i++) {
		uint32_t directory = table->matches[i].directory;
		bool is_reached = directory < table->loaded_directories &&
		                  table->directories[directory].flags & NAMES_HOT && hot <= CHECKED_MIN;
		if (!is_reached && names_table_match_counts(table, i))
			return true;
	}
	return false;
}

/* Storing pays where reading the same directories once more would take longer. A small tree is never stored. But a
 * match that this search found, and that the next may not reach, is stored whatever it costs: it would be forgotten. */
static void store(const struct names_walk *walk, struct finding *finding, size_t unchecked)
{
	struct names_table packed;
	uint64_t again_us = (walk->directories * READ_DIRECTORY_US + walk->entries / ENTRIES_PER_US) *
	                    (finding->known ? 1 : FIRST_STORED_SAVES);
	bool forgets = (unchecked && walk->directories) || found_more(&walk->table);
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
	if (finding->known && walk->overflowed && walk_again(walk) < 0)
		return fail_oom(err);
	if (walk->root_errno)
		return fail(err, CORDON_E_CAPABILITY_DENIED, walk->root_errno, walk->root_path,
		            "the directory cannot be searched for names to hide");
	if (names_answer(arena, walk, finding->keep->since_ns, ret_names, err) < 0)
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
		finding.tree =
			names_memory_take(keep->memory, &(struct names_memory_key){ root->device, root->inode,
		                                                                    walk.user, root_path, rules });
	int status = compile(arena, &walk, root_path, rules, finding.tree, err);
	if (status == 0)
		status = find(arena, &walk, &finding, budget_us, ret_names, err);
	names_walk_free(&walk);
	names_memory_give_back(keep->memory, finding.tree);
	if (finding.cache_fd >= 0)
		close(finding.cache_fd);
	return status;
}

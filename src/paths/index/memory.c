/* See memory.h. A directory is watched from before it is read or compared, by the descriptor that it is read by,
 * so the watch is on the very inode in the table. All directories of a tree are watched: whatever is created, removed
 * or replaced in the tree is reported by its directory. A directory that cannot be watched is compared each time.
 *
 * The first search of a tree watches nothing: many trees are searched only once. */
#include "paths/index/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A tree with more directories is left to the cache file; so many trees are kept, the one that was used longest ago
 * makes room. */
#define DIRECTORIES_MAX 4096
#define TREES_MAX 128

struct kept {
	struct names_tree tree;         /* first: what is given out */
	struct names_memory_key key;
	struct name_rules rules;        /* of the key, copied, as are the lists */
	struct strings deny, protect, exempt;
	pthread_mutex_t busy;
	unsigned users;
	uint64_t used;
};

struct names_memory {
	pthread_mutex_t mutex;
	struct host_watch *host_watch;
	struct kept *kept[TREES_MAX];
	size_t count;
	uint64_t clock;
};

struct names_memory *names_memory_new(struct host_watch *host_watch)
{
	struct names_memory *memory = calloc(1, sizeof(*memory));
	if (!memory)
		return NULL;
	memory->host_watch = host_watch;
	pthread_mutex_init(&memory->mutex, NULL);
	return memory;
}

static void forget(struct kept *kept)
{
	host_watch_set_free(kept->tree.watches);
	names_table_free(&kept->tree.table);
	arena_free(&kept->tree.arena);
	pthread_mutex_destroy(&kept->busy);
	free(kept);
}

void names_memory_free(struct names_memory *memory)
{
	if (!memory)
		return;
	for (size_t i = 0; i < memory->count; i++)
		forget(memory->kept[i]);
	pthread_mutex_destroy(&memory->mutex);
	free(memory);
}

/* ---- finding ---------------------------------------------------------------------------------------------------- */

static bool same_list(const struct strings *a, const struct strings *b)
{
	if (!a || !b || a->count != b->count)
		return a == b;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->items[i], b->items[i]))
			return false;
	return true;
}

static bool is_about(const struct kept *kept, const struct names_memory_key *key)
{
	return kept->key.inode == key->inode && kept->key.device == key->device && kept->key.user == key->user &&
	       !strcmp(kept->key.root_path, key->root_path) && same_list(kept->rules.deny, key->rules->deny) &&
	       same_list(kept->rules.protect, key->rules->protect) && same_list(kept->rules.exempt, key->rules->exempt);
}

static int copy_list(struct arena *arena, const struct strings *from, struct strings *to,
                     const struct strings **ret_list)
{
	for (size_t i = 0; from && i < from->count; i++)
		if (strings_add(arena, to, arena_strdup(arena, from->items[i])) < 0)
			return -1;
	*ret_list = from ? to : NULL;
	return 0;
}

static struct kept *kept_new(struct host_watch *host_watch, const struct names_memory_key *key)
{
	struct kept *kept = calloc(1, sizeof(*kept));
	if (!kept)
		return NULL;
	struct arena *arena = &kept->tree.arena;
	pthread_mutex_init(&kept->busy, NULL);
	kept->key = *key;
	kept->key.rules = &kept->rules;
	kept->key.root_path = arena_strdup(arena, key->root_path);
	kept->tree.watches = host_watch_set_new(host_watch);
	if (kept->key.root_path && kept->tree.watches &&
	    copy_list(arena, key->rules->deny, &kept->deny, &kept->rules.deny) == 0 &&
	    copy_list(arena, key->rules->protect, &kept->protect, &kept->rules.protect) == 0 &&
	    copy_list(arena, key->rules->exempt, &kept->exempt, &kept->rules.exempt) == 0)
		return kept;
	forget(kept);
	return NULL;
}

/* Where a new one goes; NULL: everything is in use. */
static struct kept **make_room(struct names_memory *memory)
{
	struct kept **oldest = NULL;
	if (memory->count < TREES_MAX)
		return &memory->kept[memory->count++];
	for (size_t i = 0; i < memory->count; i++)
		if (!memory->kept[i]->users && (!oldest || memory->kept[i]->used < (*oldest)->used))
			oldest = &memory->kept[i];
	if (oldest)
		forget(*oldest);
	return oldest;
}

static struct kept *find(struct names_memory *memory, const struct names_memory_key *key)
{
	for (size_t i = 0; i < memory->count; i++)
		if (is_about(memory->kept[i], key))
			return memory->kept[i];
	struct kept *kept = kept_new(memory->host_watch, key), **room = kept ? make_room(memory) : NULL;
	if (room)
		return *room = kept;
	if (kept)
		forget(kept);
	return NULL;
}

struct names_tree *names_memory_take(struct names_memory *memory, const struct names_memory_key *key)
{
	pthread_mutex_lock(&memory->mutex);
	struct kept *kept = find(memory, key);
	if (kept) {
		kept->users++;
		kept->used = ++memory->clock;
	}
	pthread_mutex_unlock(&memory->mutex);
	if (kept)
		pthread_mutex_lock(&kept->busy);
	return kept ? &kept->tree : NULL;
}

void names_memory_give_back(struct names_memory *memory, struct names_tree *tree)
{
	struct kept *kept = (struct kept *)tree;
	if (!kept)
		return;
	pthread_mutex_unlock(&kept->busy);
	pthread_mutex_lock(&memory->mutex);
	kept->users--;
	pthread_mutex_unlock(&memory->mutex);
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static bool was_told(const int *changed, int count, int watch)
{
	for (int i = 0; i < count; i++)
		if (changed[i] == watch)
			return true;
	return false;
}

bool names_memory_load(struct names_tree *tree, uint64_t mounts, struct names_walk *walk)
{
	int changed[HOST_WATCH_CHANGED_MAX], count = host_watch_take_changed(tree->watches, mounts, changed);
	struct names_table *table = &tree->table;
	if (count < 0) {
		host_watch_begin(tree->watches, mounts);
		table->watch_count = 0;
	}
	walk->watches = host_watch_is_active(tree->watches) ? tree->watches : NULL;
	if (!table->directory_count)
		return false;
	for (size_t i = 0; i < table->watch_count; i++) {
		struct names_directory *at = &table->directories[i];
		if (table->watches[i] >= 0 && was_told(changed, count, table->watches[i]))
			at->ctime_ns = NAMES_CTIME_NEVER;
		else if (table->watches[i] >= 0 && !(at->flags & NAMES_PARTIAL))
			at->flags |= NAMES_CHECKED;
	}
	walk->table = *table;
	*table = (struct names_table){ 0 };
	return true;
}

static int by_number(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}

/* Gives up the watches of directories that are no more. What was moved has the watch that it had. */
static void drop_dead(struct names_tree *tree, const struct names_table *before, const struct names_table *after)
{
	size_t count = after->watch_count;
	auto_free int *living = malloc((count + 1) * sizeof(*living));
	if (!living)
		return;
	if (count)
		memcpy(living, after->watches, count * sizeof(*living));
	qsort(living, count, sizeof(*living), by_number);
	for (size_t i = 0; i < before->watch_count; i++)
		if (before->watches[i] >= 0 && (before->directories[i].flags & NAMES_DEAD) &&
		    !bsearch(&before->watches[i], living, count, sizeof(*living), by_number))
			host_watch_remove(tree->watches, before->watches[i]);
}

static bool is_as_loaded(const struct names_table *table)
{
	if (table->directory_count != table->loaded_directories || table->match_count != table->loaded_matches)
		return false;
	for (size_t i = 0; i < table->directory_count; i++)
		if (table->directories[i].flags & (NAMES_REREAD | NAMES_DEAD))
			return false;
	return true;
}

void names_memory_store(struct names_tree *tree, struct names_walk *walk, const struct names_progress *progress)
{
	struct names_table *table = &walk->table, packed;
	tree->progress = *progress;
	if (table->directory_count <= DIRECTORIES_MAX && is_as_loaded(table)) {
		for (size_t i = 0; i < table->directory_count; i++)
			table->directories[i].flags &= NAMES_SAVED;
		tree->table = *table;
		*table = (struct names_table){ 0 };
		return;
	}
	/* Without a table nothing is known, and what is still watched is begun anew. */
	if (table->directory_count > DIRECTORIES_MAX || names_table_pack(table, &packed) < 0) {
		host_watch_begin(tree->watches, 0);
		return;
	}
	drop_dead(tree, table, &packed);
	packed.loaded_directories = packed.directory_count;
	packed.loaded_matches = packed.match_count;
	tree->table = packed;
}

/* TOML's tables and arrays while they grow: see toml-tree.h. */
#include "base/toml-tree.h"

#include <string.h>
#include <sys/random.h>

#include "base/arena.h"
#include "base/error.h"

int toml_tree_init(struct toml_tree *tree, struct arena *arena)
{
	*tree = (struct toml_tree){ .arena = arena, .root = arena_alloc(arena, sizeof(struct toml_node)) };
	if (!tree->root)
		return -1;
	tree->root->value = (struct toml_value){ .type = TOML_TABLE, .line = 1, .column = 1 };
	/* Without it, only the promise about slowness is lost. */
	uintptr_t somewhere = (uintptr_t)tree->root;
	if (getrandom(tree->secret, sizeof(tree->secret), GRND_NONBLOCK) < 0)
		memcpy(tree->secret, &somewhere, sizeof(somewhere));
	return 0;
}

struct toml_node *toml_tree_last(const struct toml_node *array)
{
	return (struct toml_node *)(void *)array->value.items[array->value.count - 1];
}

static uint64_t hash_of(const struct toml_tree *tree, const struct toml_node *parent, const struct toml_key *key)
{
	unsigned char bytes[crypto_shorthash_BYTES];
	uint64_t hash;
	_Static_assert(sizeof(bytes) == sizeof(hash), "a short hash has 64 bits");
	crypto_shorthash(bytes, (const unsigned char *)key->text, key->length, tree->secret);
	memcpy(&hash, bytes, sizeof(hash));
	return hash ^ (uintptr_t)parent * 0x9e3779b97f4a7c15u;
}

static bool is_member(const struct toml_node *node, const struct toml_node *parent, const struct toml_key *key)
{
	return node->parent == parent && node->value.key_length == key->length &&
	       !memcmp(node->value.key, key->text, key->length);
}

struct toml_node *toml_tree_find(const struct toml_tree *tree, const struct toml_node *parent,
                                 const struct toml_key *key)
{
	if (!tree->index_size)
		return NULL;
	uint64_t hash = hash_of(tree, parent, key);
	for (size_t at = hash;; at++) {
		struct toml_node *node = tree->index[at & (tree->index_size - 1)];
		if (!node || (node->hash == hash && is_member(node, parent, key)))
			return node;
	}
}

static void index_put(struct toml_tree *tree, struct toml_node *node)
{
	size_t at = node->hash;
	while (tree->index[at & (tree->index_size - 1)])
		at++;
	tree->index[at & (tree->index_size - 1)] = node;
}

/* Room for one more than there are values. */
static int index_grow(struct toml_tree *tree)
{
	struct toml_node **old = tree->index;
	size_t old_size = tree->index_size;
	if (2 * (tree->values + 1) <= old_size)
		return 0;
	tree->index_size = old_size ? old_size * 2 : 64;
	tree->index = arena_alloc(tree->arena, tree->index_size * sizeof(struct toml_node *));
	if (!tree->index)
		return -1;
	for (size_t i = 0; i < old_size; i++)
		if (old[i])
			index_put(tree, old[i]);
	return 0;
}

static int append(struct toml_tree *tree, struct toml_value *list, struct toml_value *item)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 4;
		struct toml_value **items = arena_alloc(tree->arena, capacity * sizeof(struct toml_value *));
		if (!items)
			return -1;
		if (list->count)
			memcpy(items, list->items, list->count * sizeof(struct toml_value *));
		list->items = items;
		list->capacity = capacity;
	}
	list->items[list->count++] = item;
	return 0;
}

int toml_tree_add(struct toml_tree *tree, struct toml_scan *scan, struct toml_node *parent, const struct toml_key *key,
                  enum toml_type type, enum toml_origin origin, struct toml_node **ret_node)
{
	if (parent->depth == TOML_DEPTH_MAX)
		return toml_refuse(scan, key->where, "this is more than %d levels deep", TOML_DEPTH_MAX);
	if (tree->values == TOML_VALUES_MAX)
		return toml_refuse(scan, key->where, "there are more than %d values", TOML_VALUES_MAX);
	struct toml_node *node = arena_alloc(tree->arena, sizeof(*node));
	if (!node || index_grow(tree) < 0)
		return fail_oom(scan->err);
	*node = (struct toml_node){
		.value = { .type = type, .line = key->line, .column = key->column,
		           .key = key->text, .key_length = key->length },
		.parent = parent, .depth = parent->depth + 1, .origin = origin,
	};
	if (key->text) {
		node->hash = hash_of(tree, parent, key);
		index_put(tree, node);
	}
	tree->values++;
	*ret_node = node;
	return append(tree, &parent->value, &node->value) < 0 ? fail_oom(scan->err) : 0;
}

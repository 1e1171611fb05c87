/* Which name it was that a command could not change or see, for a remark. */
#include <string.h>

#include "base/denials.h"
#include "base/text.h"
#include "paths/trees.h"

/* Does the path end in the first components of `word`, two of them at least? */
static bool ends_like(const char *path, const char *word)
{
	size_t length = strlen(path);
	for (size_t size = strlen(word); size && memchr(word, '/', size); size--)
		if ((!word[size] || word[size] == '/') && size <= length && !memcmp(path + length - size, word, size) &&
		    (size == length || path[length - size - 1] == '/'))
			return true;
	return false;
}

/* `rest` is beneath the tree, and "" the tree itself; NULL: it is elsewhere. */
static bool is_meant(const struct name *name, const char *word, const char *rest)
{
	if (name->kind != NAME_PROTECTED)
		return false;
	return (rest && *rest && (path_within(rest, name->path) || path_within(name->path, rest))) ||
	       (*word != '/' && ends_like(name->path, word));
}

const char *trees_kept_as_it_is(const struct trees *trees, const char *cwd, const char *word)
{
	const char *whole = *word == '/' ? word : arena_printf(trees->arena, "%s/%s", cwd, word);
	whole = whole ? path_normalise(trees->arena, whole) : NULL;
	for (size_t i = 0; whole && i < trees->count; i++) {
		const struct tree *tree = &trees->items[i];
		const char *rest = path_within(whole, tree->place.path) ? whole + strlen(tree->place.path) : NULL;
		rest += rest && *rest == '/';
		for (size_t j = 0; tree->writable && j < tree->before.count; j++)
			if (is_meant(&tree->before.items[j], word, rest))
				return arena_printf(trees->arena, "%s/%s", tree->place.path,
				                    tree->before.items[j].path);
	}
	return NULL;
}

#define NAMES_LOOKED_FOR 256
#define OUTPUT_LOOKED_AT (64u << 10)

/* The hidden name that the output has in it, as a whole path; or NULL. */
static const char *find_named(const struct trees *trees, const char *output, size_t length)
{
	size_t looked_for = 0;
	for (size_t i = 0; i < trees->count; i++) {
		const struct tree *tree = &trees->items[i];
		for (size_t j = 0; j < tree->before.count && looked_for < NAMES_LOOKED_FOR; j++) {
			const struct name *name = &tree->before.items[j];
			if (name->kind != NAME_MASKED || name->is_shown || name->is_closed)
				continue;
			looked_for++;
			if (memmem(output, length, name->path, strlen(name->path)))
				return arena_printf(trees->arena, "%s/%s", tree->place.path, name->path);
		}
	}
	return NULL;
}

int trees_tell_hidden(struct trees *trees, const char *output, size_t length, bool any)
{
	const char *note = "hidden from the command, since such names hold secrets";
	if (!trees || !trees->hidden_count)
		return 0;
	length = length < OUTPUT_LOOKED_AT ? length : OUTPUT_LOOKED_AT;
	const char *named = length ? find_named(trees, output, length) : NULL;
	if (!named && !any)
		return 0;
	const char *what = named ? named : trees->hidden;
	if (!named && trees->hidden_count > 1)
		note = arena_printf(trees->arena, "%s; so %s %zu more", note, trees->hidden_count == 2 ? "is" : "are",
		                    trees->hidden_count - 1);
	if (!named && note)
		note = arena_printf(trees->arena, "%s; that may be why the command failed", note);
	const char *grant = arena_printf(trees->arena, "--read %s", what);
	return !note || !grant ? -1 : denials_add(trees->denials, trees->arena, CORDON_WALL_MASKED, what, note, grant);
}

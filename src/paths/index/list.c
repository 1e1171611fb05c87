/* Lists of names: ordered, searched, and two of the same tree made one (names.h). */
#include <stdlib.h>
#include <string.h>

#include "paths/index/names.h"

static int compare_names(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : strcmp(x->path, y->path);
}

void names_sort(struct names *names)
{
	if (names->count)
		qsort(names->items, names->count, sizeof(*names->items), compare_names);
}

const struct name *names_get(const struct names *names, enum name_kind kind, const char *path)
{
	const struct name key = { .kind = kind, .path = path };
	return names->count ? bsearch(&key, names->items, names->count, sizeof(key), compare_names) : NULL;
}

int names_add(struct arena *arena, struct names *names, const struct names *more)
{
	size_t count = names->count;
	struct name *items = arena_alloc(arena, (count + more->count) * sizeof(*items));
	if (!items)
		return -1;
	if (count)
		memcpy(items, names->items, count * sizeof(*items));
	for (size_t i = 0; i < more->count; i++)
		if (!names_get(names, more->items[i].kind, more->items[i].path))
			items[count++] = more->items[i];
	names->items = items;
	names->count = count;
	names_sort(names);
	return 0;
}

/* What lies beneath a path follows it at once: a slash comes before every other byte. Masked before all else, a socket
 * before what is protected, that before what is only judged. */
static int by_place(const void *a, const void *b)
{
	static const int rank[NAME_KIND_MAX] = {
		[NAME_MASKED] = 0, [NAME_SOCKET] = 1, [NAME_PROTECTED] = 2, [NAME_JUDGED] = 3, [NAME_FIFO] = 4
	};
	const struct name *x = a, *y = b;
	const char *one = x->path, *other = y->path;
	while (*one && *one == *other)
		one++, other++;
	if (*one != *other)
		return !*one || (*other &&
		                 (*one == '/' || (*other != '/' && (unsigned char)*one < (unsigned char)*other)))
		               ? -1 : 1;
	return rank[x->kind] - rank[y->kind];
}

static bool is_at_or_beneath(const char *path, const struct name *name, bool beneath)
{
	size_t length = strlen(name->path);
	return !strncmp(path, name->path, length) && (!path[length] || (beneath && path[length] == '/'));
}

static const char *join_notes(struct arena *arena, const char *one, const char *other)
{
	if (!one || !other || !strcmp(one, other))
		return one ? one : other;
	return arena_printf(arena, "%s; %s", one, other);
}

int names_join(struct arena *arena, const struct names *one, const struct names *other, struct names *ret_names)
{
	struct names all = { .directories = one->directories,
		             .since_ns = one->since_ns,
		             .unchecked = one->unchecked,
		             .unseen = one->unseen || other->unseen,
		             .unfinished = one->unfinished || other->unfinished,
		             .too_many = one->too_many || other->too_many };
	const struct name *last = NULL, *cover = NULL;
	size_t count = one->count + other->count;
	struct name *items = arena_alloc(arena, (count + 1) * sizeof(*items));
	all.note = join_notes(arena, one->note, other->note);
	if (!items || (!all.note && (one->note || other->note)))
		return -1;
	for (size_t i = 0; i < count; i++)
		items[i] = i < one->count ? one->items[i] : other->items[i - one->count];
	if (count)
		qsort(items, count, sizeof(*items), by_place);
	for (size_t i = 0; i < count; i++) {
		const struct name name = items[i];
		if ((last && is_at_or_beneath(name.path, last, false)) ||
		    (cover && is_at_or_beneath(name.path, cover, true)))
			continue;
		items[all.count] = name;
		last = &items[all.count++];
		if (name.kind == NAME_MASKED && name.is_directory)
			cover = last;
	}
	all.items = items;
	names_sort(&all);
	*ret_names = all;
	return 0;
}

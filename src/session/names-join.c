/* What two searches of the same tree found, as one: see names.h. */
#include <stdlib.h>
#include <string.h>

#include "session/names.h"

/* What lies beneath a path follows it at once: a slash comes before every other byte. Masked before all else, a socket before what
 * is protected, that before a link. */
static int by_place(const void *a, const void *b)
{
	static const int rank[NAME_KIND_MAX] = { [NAME_MASKED] = 0, [NAME_SOCKET] = 1, [NAME_PROTECTED] = 2, [NAME_LINK] = 3 };
	const struct name *x = a, *y = b;
	const char *one = x->path, *other = y->path;
	while (*one && *one == *other)
		one++, other++;
	if (*one != *other)
		return !*one || (*other && (*one == '/' || (*other != '/' && (unsigned char)*one < (unsigned char)*other))) ? -1 : 1;
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
	struct names all = { .directories = one->directories, .unchecked = one->unchecked, .unseen = one->unseen || other->unseen,
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
		if ((last && is_at_or_beneath(name.path, last, false)) || (cover && is_at_or_beneath(name.path, cover, true)))
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

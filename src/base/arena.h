/* What lives for one request lives in its arena and is freed with it, never singly.
 * Every function returns NULL when memory is short; memory comes zeroed. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct arena_chunk;
struct arena {
	struct arena_chunk *chunks;
};

void arena_free(struct arena *arena);
/* The same, of what may have secrets in it: its memory is zeroed first. */
void arena_wipe(struct arena *arena);
void *arena_alloc(struct arena *arena, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
/* Exactly `length` bytes, and a NUL. */
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A growing list of strings, borrowed; `items` is NULL while empty, and ended by a NULL from the first item on.
 * `unsorted` says that an item was added that belongs before the one ahead of it, by strcmp(): until then the list can
 * be searched by halves. */
struct strings {
	const char **items;
	size_t count, capacity;
	bool unsorted;
};
/* 0, or -1 when memory is short. */
int strings_add(struct arena *arena, struct strings *list, const char *item);
int strings_add_all(struct arena *arena, struct strings *list, const struct strings *more);
/* The item of this value, or -1. */
long strings_find(const struct strings *list, const char *item);
/* The same, in the same order? */
bool strings_same(const struct strings *a, const struct strings *b);

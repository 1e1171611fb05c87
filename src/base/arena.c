/* A bump allocator over malloc'ed chunks: see arena.h. Memory is zeroed when it is handed out, not before: of a chunk
 * that is hardly used, most pages are never touched, which in a program that runs one command counts for more than all
 * else. */
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first of an arena, of which many hold little; and all others. */
#define FIRST_SIZE (1024 - 64)
#define CHUNK_SIZE (32 * 1024)

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, size;
	_Alignas(16) unsigned char bytes[];
};

void arena_free(struct arena *arena)
{
	for (struct arena_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	arena->chunks = NULL;
}

void arena_wipe(struct arena *arena)
{
	for (struct arena_chunk *chunk = arena->chunks; chunk; chunk = chunk->next) {
		memset(chunk->bytes, 0, chunk->used);
		/* So that the compiler does not take it for a write that nobody reads. */
		__asm__ volatile("" : : "r"(chunk->bytes) : "memory");
	}
	arena_free(arena);
}

static void *take(struct arena *arena, size_t size)
{
	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + 15) & ~(size_t)15;
	struct arena_chunk *chunk = arena->chunks;
	if (!chunk || chunk->size - chunk->used < size) {
		size_t least = chunk ? CHUNK_SIZE : FIRST_SIZE, room = size > least ? size : least;
		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		*chunk = (struct arena_chunk){ .next = arena->chunks, .size = room };
		arena->chunks = chunk;
	}
	void *memory = chunk->bytes + chunk->used;
	chunk->used += size;
	return memory;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	void *memory = take(arena, size);
	return memory ? memset(memory, 0, size) : NULL;
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
	char *copy = length < SIZE_MAX ? take(arena, length + 1) : NULL;
	if (!copy)
		return NULL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
	return arena_strndup(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	struct arena_chunk *chunk = arena->chunks;
	size_t room = chunk ? chunk->size - chunk->used : 0;
	char *text = room ? (char *)chunk->bytes + chunk->used : NULL;
	va_list args;
	/* Straight to where it will lie: mostly it fits there. `room` is a multiple of what take() rounds up to. */
	va_start(args, format);
	int length = vsnprintf(text, room, format, args);
	va_end(args);
	if (length >= 0 && (size_t)length < room)
		return take(arena, (size_t)length + 1);
	text = length < 0 ? NULL : take(arena, (size_t)length + 1);
	if (!text)
		return NULL;
	va_start(args, format);
	vsnprintf(text, (size_t)length + 1, format, args);
	va_end(args);
	return text;
}

int strings_add(struct arena *arena, struct strings *list, const char *item)
{
	if (!item)
		return -1;
	bool belongs_before = list->count && strcmp(list->items[list->count - 1], item) > 0;
	if (list->count + 1 >= list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 8;
		const char **items = arena_alloc(arena, capacity * sizeof(*items));
		if (!items)
			return -1;
		if (list->count)
			memcpy(items, list->items, list->count * sizeof(*items));
		list->items = items;
		list->capacity = capacity;
	}
	list->unsorted |= belongs_before;
	list->items[list->count++] = item;
	list->items[list->count] = NULL;
	return 0;
}

int strings_add_all(struct arena *arena, struct strings *list, const struct strings *more)
{
	for (size_t i = 0; i < more->count; i++)
		if (strings_add(arena, list, more->items[i]) < 0)
			return -1;
	return 0;
}

long strings_find(const struct strings *list, const char *item)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i], item))
			return (long)i;
	return -1;
}

bool strings_same(const struct strings *a, const struct strings *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->items[i], b->items[i]))
			return false;
	return true;
}

/* A path that was resolved once: what it is called, what it really is, and what it was at that moment. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct place {
	const char *path;       /* canonical: no symbolic link, absolute */
	const char *alias;      /* as it was named, where that differs from `path`; else NULL */
	uint64_t device, inode; /* checked again when it is mounted: a place that was swapped is refused */
	bool is_directory;
};

/* A path of the host's that belongs to the system base view. HOST_PARTS: a directory of which only some entries are
 * shown; they follow it. */
enum host_kind { HOST_DIRECTORY, HOST_FILE, HOST_LINK, HOST_PARTS };
struct host_entry {
	const char *path, *source;      /* `source` differs where a link leads out of the view */
	const char *link;               /* HOST_LINK: its text */
	enum host_kind kind;
	uint64_t stamp;                 /* HOST_FILE: another after every change; 0 for one that is large */
	uint64_t device, inode;         /* what it must be when it is shown; 0: whatever it is */
};

struct host_entries {
	struct host_entry *items;
	size_t count, capacity;
};

/* A package cache of the host's: readable at `target` inside, and what is written there goes to a layer of that
 * name. */
struct host_cache {
	const char *name, *source, *target;
	uint64_t device, inode;         /* of the source, when it was found */
};

struct host_caches {
	struct host_cache *items;
	size_t count, capacity;
};

struct places {
	struct place *items;
	size_t count, capacity;
};

struct arena;
struct strings;
/* Adds a copy. 0, or -1 when memory is short. */
int places_add(struct arena *arena, struct places *places, const struct place *place);
/* Adds what it is called: its path, and how it was named. Both are borrowed. Likewise. */
int place_add_names(struct arena *arena, struct strings *list, const struct place *place);

/* Does `path` lie in `root` or in one of `more`? */
bool place_is_within(const char *path, const struct place *root, const struct places *more);

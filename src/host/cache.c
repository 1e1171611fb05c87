/* Finding package caches: see cache.h. */
#include "host/cache.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "host/toolchain-judge.h"

#define WORDS(...) (const char *const[]){ __VA_ARGS__, NULL }
#define PLACES WORDS
#define SET WORDS
#define MASK WORDS
#define NOTHING (const char *const[]){ NULL }

static const struct row {
	const char *name;
	const char *const *places;
	const char *inside;
	const char *const *set, *const *mask;
} rows[] = {
#define CACHE(name, ...) { name, __VA_ARGS__ },
#include "host/caches.def"
#undef CACHE
};

int host_cache_add(struct arena *arena, struct host_caches *caches, const struct host_cache *cache)
{
	if (caches->count == caches->capacity) {
		size_t capacity = caches->capacity ? caches->capacity * 2 : 16;
		struct host_cache *items = arena_alloc(arena, capacity * sizeof(*items));
		if (!items)
			return -1;
		if (caches->count)
			memcpy(items, caches->items, caches->count * sizeof(*items));
		caches->items = items;
		caches->capacity = capacity;
	}
	caches->items[caches->count++] = *cache;
	return 0;
}

static const char *variable(const char *const *environment, const char *name, size_t length)
{
	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

/* False where it stands for nothing. Of a list, as GOPATH may be, the first element. */
static bool place_path(const struct host_cache_search *search, const char *place, char path[static PATH_MAX])
{
	const char *root = search->home, *rest = place + 1;
	if (*place == '$') {
		size_t length = strcspn(rest, "/");
		root = variable(search->environment, rest, length);
		rest += length;
	}
	if (!root || *root != '/')
		return false;
	int length = snprintf(path, PATH_MAX, "%.*s%s", (int)strcspn(root, ":"), root, rest);
	return length > 0 && length < PATH_MAX && !text_has_control(path);
}

/* Both ways: what a command can change there already needs no layer, and nothing of it is to be covered. */
static bool meets_writable(const struct host_cache_search *search, const char *path)
{
	for (size_t i = 0; search->writable && i < search->writable->count; i++)
		if (path_within(path, search->writable->items[i]) || path_within(search->writable->items[i], path))
			return true;
	return false;
}

/* The directory that the row's cache is on the host. */
static bool find_source(const struct host_cache_search *search, struct judge *judge, const struct row *row,
                        char real[static PATH_MAX], struct stat *ret_info)
{
	uncleared char path[PATH_MAX];
	for (const char *const *place = row->places; *place; place++) {
		if (!place_path(search, *place, path))
			continue;
		host_watch_path(search->watches, path);
		if (!realpath(path, real) || stat(real, ret_info) < 0 || !S_ISDIR(ret_info->st_mode))
			continue;
		return judge_may_show(judge, real, NULL) && !meets_writable(search, real);
	}
	return false;
}

static int add_row(struct arena *arena, const struct host_cache_search *search, const struct row *row, const char *real,
                   const struct stat *info, struct host_cache_answer *answer)
{
	const struct host_cache cache = {
		.name = row->name,
		.source = arena_strdup(arena, real),
		.target = arena_printf(arena, "%s/%s", search->inside_home, row->inside),
		.device = info->st_dev,
		.inode = info->st_ino,
	};
	if (!cache.source || !cache.target || host_cache_add(arena, &answer->caches, &cache) < 0)
		return -1;
	for (const char *const *item = row->set; *item; item++)
		if (strings_add(arena, &answer->environment, *item) < 0)
			return -1;
	for (const char *const *sub = row->mask; *sub; sub++) {
		uncleared char path[PATH_MAX];
		struct stat there;
		if (snprintf(path, sizeof(path), "%s/%s", real, *sub) >= (int)sizeof(path))
			continue;
		host_watch_path(search->watches, path);
		if (stat(path, &there) == 0 && S_ISREG(there.st_mode) &&
		    strings_add(arena, &answer->mask, arena_printf(arena, "%s/%s", cache.target, *sub)) < 0)
			return -1;
	}
	return 0;
}

int host_cache_find(struct arena *arena, const struct host_cache_search *search, struct host_cache_answer *ret)
{
	uncleared char real[PATH_MAX], home[PATH_MAX];
	struct host_cache_answer answer = { 0 };
	struct judge judge = { .home = search->home && *search->home == '/' ? path_normalise(arena, search->home) :
		                                                              NULL,
		               .watches = search->watches };
	if (judge.home && realpath(judge.home, home))
		judge.home_real = home;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stat info;
		if (find_source(search, &judge, &rows[i], real, &info) &&
		    add_row(arena, search, &rows[i], real, &info, &answer) < 0)
			return -1;
	}
	*ret = answer;
	return 0;
}

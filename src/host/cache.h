/* Package caches of the host, found by caches.def. Looks at the file system, starts nothing. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/host-watch.h"
#include "base/place.h"

struct host_cache_search {
	const char *home;                       /* the caller's, or NULL */
	const char *const *environment;         /* the caller's, K=V, ended by NULL; or NULL */
	const struct strings *writable;         /* what commands can change: a cache in, or around, one of these is
	                                           left as it is */
	const char *inside_home;
	struct host_watch_set *watches;         /* watches all that the answer comes from; or NULL */
};

struct host_cache_answer {
	struct host_caches caches;              /* sources are canonical; targets lie beneath inside_home, none in
	                                           another */
	struct strings environment;             /* K=V */
	struct strings mask;                    /* paths inside */
};

/* 0, or -1 when memory is short. What would show too much, such as a home, is passed over. */
int host_cache_find(struct arena *arena, const struct host_cache_search *search,
                    struct host_cache_answer *ret) must_check;
int host_cache_add(struct arena *arena, struct host_caches *caches, const struct host_cache *cache) must_check;

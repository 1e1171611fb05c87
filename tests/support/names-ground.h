/* A tree whose names are looked for, and a place for what is known of it; in memory too, where a test says so. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "paths/index/cache.h"
#include "paths/index/names.h"

#define BUDGET_US 60000000 /* more than any machine needs */

struct ground {
	char root[64], cache[64];
	int root_fd, cache_fd;
	struct arena arena;
	struct names names;
	struct strings deny, protect, exempt;
	struct host_watch *host_watch;            /* or NULL: nothing is kept in memory */
	struct names_memory *memory;
};

int ground_setup(void **state);
int ground_setup_memory(void **state);
int ground_teardown(void **state);
void ground_directory(const struct ground *ground, const char *path);
void ground_file(const struct ground *ground, const char *path);

/* Out of the time within which a directory is not trusted to be unchanged. */
void ground_settle(void);

const struct names *ground_find(struct ground *ground, bool cached, uint64_t budget_us);
bool ground_has(const struct ground *ground, enum name_kind kind, const char *path);

/* Enough directories for the cache to be worth it. */
/* Two directories change places. */
void ground_exchange(const struct ground *ground, const char *one, const char *other);
void ground_many(const struct ground *ground, unsigned count);

bool ground_is_cached(const struct ground *ground, struct names_cache_key *ret_key);
void ground_warm(struct ground *ground);

#define ROW(name) cmocka_unit_test_setup_teardown(name, ground_setup, ground_teardown)
#define ROW_MEMORY(name) { #name " (in memory)", name, ground_setup_memory, ground_teardown, NULL }

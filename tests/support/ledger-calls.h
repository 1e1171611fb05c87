/* A ledger whose system calls fail on demand: the linker prefers these. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "ledger-clock.h"
#include "ledger-ground.h"

extern size_t short_write;              /* the next writev() stops after so many bytes */
extern bool fail_truncate, fail_sync, skip_sleep;
extern int syncs, allocations;
extern int fail_allocate;               /* the errno of every fallocate(); 0: it is made */

/* Every line is a JSON object, but for those that a repair row right after accounts for. */
struct tally {
	int rows, repairs, torn;
};

int calls_setup(void **state);
int calls_teardown(void **state);
void ground_must_refuse(struct ledger *ledger, int os_errno, const char *reason);

/* The rows as they were given: without seals, and without the row that every ledger begins with. */
void ground_holds(const char *path, const char *expected);

struct tally ground_read_all(const char *path);

/* Today's file has a row of this kind with this reason. */
void ground_noted(const struct ground *ground, const char *kind, const char *reason);

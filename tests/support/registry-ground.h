/* Sessions on disk, in a directory of their own. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "session/registry.h"

struct ground {
	char data[64];
	struct arena arena;
};

#define MUST(call) do { if ((call) < 0) fail_msg("%s: %s (%s)", #call, err.reason, err.subject); } while (0)

int ground_setup(void **state);
int ground_teardown(void **state);
const char *ground_path(struct ground *ground, const char *id, const char *name);
void ground_put(const char *path, const char *text, size_t length);
char *ground_get(struct ground *ground, const char *path, size_t *ret_length);
struct session_record ground_open(struct ground *ground, const char *id, bool expect_made);

/* The session's lock; with it comes the record, if there is one. */
int ground_use(struct ground *ground, const char *id, bool expect_found);

/* For registry_change(): everything that a record can have. */
int ground_fill(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err);

/* For registry_change(): changes the reason, and answers what `arg`, an int, says. */
int ground_answer(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err);

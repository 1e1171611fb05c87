/* Removing what a session had on disk. A large tree takes its time, and a lock must not be held meanwhile; so it is
 * first moved aside, which is one rename, and removed afterwards. What a killed process left there is removed by the
 * next call. */
#pragma once
#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"

struct discarded {
	char name[48];                  /* in the same parent; "" where there was nothing */
};

/* Moves `name` in the directory `parent` aside; no link is followed. */
int discard_move(const char *parent, const char *name, struct discarded *ret_discarded,
                 struct cordon_error *err) must_check;

/* Removes it, and what others left. An error if something of it stays. */
int discard_remove(const char *parent, const struct discarded *discarded, struct cordon_error *err) must_check;

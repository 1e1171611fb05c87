/* The rows of toolchains.def as data, and the names by which they are chosen. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"

/* Each list is ended by NULL; toolchains.def explains the words. */
struct toolchain {
	const char *name;
	const char *const *places, *const *markers, *const *show, *const *set, *const *mask;
};

const struct toolchain *toolchain_rows(size_t *ret_count);

/* NULL means all. An alias counts as the name it is an alias of. */
bool toolchain_is_chosen(const struct strings *chosen, const char *name);
int toolchain_check_chosen(const struct strings *chosen, struct cordon_error *err) must_check;

/* TOML 1.0 into a tree. Bounded: what is larger than the limits below is refused like any other mistake, with file,
 * line and column. Everything in the tree is the arena's. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct arena;
struct cordon_error;

#define TOML_SIZE_MAX ((size_t)1 << 20)
#define TOML_DEPTH_MAX 32
#define TOML_VALUES_MAX 20000

enum toml_type {
	TOML_STRING, TOML_INTEGER, TOML_FLOAT, TOML_BOOLEAN, TOML_DATETIME, TOML_ARRAY, TOML_TABLE,
	TOML_TYPE_MAX
};
/* "a string", "an integer", … for messages. */
extern const char *const toml_type_names[TOML_TYPE_MAX];

struct toml_value {
	enum toml_type type;
	unsigned line, column;          /* from 1; of a member: where its key begins; of an element: where it begins */
	const char *key;                /* of a member of a table; else NULL */
	size_t key_length;              /* a key may have a NUL in it */
	const char *text;               /* TOML_STRING; TOML_DATETIME as it was written */
	size_t length;                  /* of `text`; a string may have a NUL in it */
	int64_t integer;
	double number;
	bool boolean;
	struct toml_value **items;      /* elements of an array, members of a table in the order they were written */
	size_t count, capacity;
};

/* `file` is the name to use in errors, which are `config_invalid` with the subject FILE:LINE:COLUMN. */
int toml_parse(struct arena *arena, const char *file, const char *text, size_t length,
               const struct toml_value **ret_root, struct cordon_error *err) must_check;

/* The member of this name, or NULL. */
const struct toml_value *toml_member(const struct toml_value *table, const char *key);

/* Reports an error at the position of `value`: `config_invalid`, subject FILE:LINE:COLUMN. Returns -1. */
int toml_fail(struct cordon_error *err, const char *file, const struct toml_value *value, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Values as the public header has them: a JSON tree whose texts may be any bytes. */
#pragma once
#include <jansson.h>

#include "base/cleanup.h"
#include "cordon-internal.h"

struct cordon_value {
	json_t *tree;
};

static inline void value_free_tree(json_t **tree) { json_decref(*tree); }
#define auto_tree __attribute__((cleanup(value_free_tree)))

/* Takes the tree; NULL is memory that was short. */
int value_take(json_t *tree, struct cordon_value **ret_value, struct cordon_error *err) must_check;
/* A text that cordon itself has written as JSON; NULL when memory is short. */
json_t *value_parse(const char *text);
json_t *value_bytes(const void *data, size_t length);
/* The bytes that a string has in base64; NULL: it has not, or memory is short. */
json_t *value_from_base64(const json_t *encoded);
/* In JSON that cordon itself has written: each text that has NAME_base64 beside it becomes what that says. */
void value_exact(json_t *tree);
json_t *value_error(const struct cordon_error *err);
/* As JSON, to be free()d; NULL when memory is short. */
char *value_write(const json_t *tree);
/* A member that is text, or NULL. A text with a NUL in it is none. */
const char *value_member(const json_t *object, const char *key);

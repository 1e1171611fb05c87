/* Changes to JSON that people write: with comments and trailing commas, whose bytes stay where they are. A change
 * replaces or adds a range of bytes and leaves all others; what cannot be parsed, and what has a key twice, is refused.
 */
#pragma once
#include <jansson.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"

#define JSONC_SIZE_MAX (8u << 20)
#define JSONC_DEPTH_MAX 64
#define JSONC_PATH_MAX 8

/* A path is the keys from the root on, ended by NULL; in an array the key is the element's number.
 * Texts end with a NUL and are the arena's; NULL is an empty file. */

/* The value there, to be released with json_decref(), or NULL: there is none, or the text is invalid. */
json_t *jsonc_get(const char *text, const char *const *path);
/* Makes it the value; objects on the way are made. */
int jsonc_set(struct arena *arena, const char *text, const char *const *path, json_t *value, const char **ret_text,
              struct cordon_error *err) must_check;
/* Makes it an element of the array there, if none is the same; the array is made. */
int jsonc_append(struct arena *arena, const char *text, const char *const *path, json_t *value, const char **ret_text,
                 struct cordon_error *err) must_check;
/* Takes away the member, or with `element` the element of the array there that is the same. Without it nothing changes.
 */
int jsonc_remove(struct arena *arena, const char *text, const char *const *path, json_t *element, const char **ret_text,
                 struct cordon_error *err) must_check;

/* What is looked for: every kind of kinds.def, and the secrets of the caller's own as exact bytes. Made once, then
 * constant; any number of streams share it. The bytes of own secrets are wiped when the last reference goes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "secrets/kinds.h"
#include "secrets/prefilter.h"

#define SECRET_OWN_MIN 12
#define SECRET_OWN_MAX 16384            /* bytes of one; a longer value is no secret but a file */
#define SECRET_OWN_COUNT 256
#define SECRET_OWN_NAME 64             /* of the name that is shown for it */

struct secret_own {
	char *name;                     /* the variable or credential it is from */
	unsigned char *bytes;
	size_t length;
	size_t anchor;                  /* of the four bytes that the prefilter looks for */
	bool is_exempt;                 /* the caller gave it to the command by name: it is no finding there */
	uint16_t *border;               /* for each prefix, the longest proper prefix of it that also ends it */
};

struct secret_set;

/* NULL if memory is short. */
struct secret_set *secret_set_new(void);
struct secret_set *secret_set_ref(struct secret_set *set);
void secret_set_unref(struct secret_set *set);

/* Adds a secret before the set is used; both are copied. Surrounding white space does not count. What is too short, too long, a plain
 * word, known already, or one too many is left out. Returns 1 if it was added, 0 if not, -1 if memory is short. */
int secret_set_add(struct secret_set *set, const char *name, const char *value, size_t length);
/* Adds a value that the caller gave to the command: where it is found, nothing is. Before the secrets of which it is one. */
int secret_set_exempt(struct secret_set *set, const char *name, const char *value, size_t length);
size_t secret_set_count(const struct secret_set *set);
/* Not secret by itself: too short, or words, numbers and a path's separators only. */
bool secret_is_plain(const char *value, size_t length);

/* For the scanner. */
const struct prefilter *secret_set_prefilter(const struct secret_set *set);
const struct secret_own *secret_set_own(const struct secret_set *set, size_t index);
/* The rows and own secrets of a bucket: rows come first, then own secrets from SECRET_ROWS on. */
size_t secret_set_bucket(const struct secret_set *set, unsigned bucket, const uint16_t **ret_members);
bool secret_set_is_ascii(const struct secret_set *set);
/* Like secret_tail(), for own secrets. */
size_t secret_set_tail(const struct secret_set *set, const struct secret_text *text);

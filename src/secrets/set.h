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
#define SECRET_OWN_COUNT 4096           /* more are left out, and counted */
#define SECRET_OWN_NAME 64             /* of the name that is shown for it */

struct secret_own {
	char *name;                     /* the variable or credential it is from */
	unsigned char *bytes;
	size_t length;
	size_t anchor;                  /* of the four bytes that the prefilter looks for */
	bool is_exempt;                 /* the caller gave it to the command by name: it is no finding there */
	bool is_secret;                 /* it is not to be in the ledger even so */
	bool is_withheld;               /* a gateway's key: looked for in this process only */
	bool is_escaped;                /* the one before as JSON writes it */
	uint16_t *border;               /* for each prefix, the longest proper prefix of it that also ends it */
	uint16_t next;                  /* the number, plus one, of another one with the same hash of the anchor */
};

struct secret_set;

/* NULL if memory is short. */
struct secret_set *secret_set_new(void);
struct secret_set *secret_set_ref(struct secret_set *set);
void secret_set_unref(struct secret_set *set);

/* Adds a secret before the set is used; both are copied. Surrounding white space does not count. What is too short,
 * too long, a plain word, known already, or one too many is left out. Where JSON writes it otherwise, that form is
 * added, too, under the same name. Returns 1 if it was added, 0 if not, -1 if memory is short. */
int secret_set_add(struct secret_set *set, const char *name, const char *value, size_t length);
/* Adds a value that the caller gave to the command: where it is found, nothing is. Before the secrets of which it is
 * one. `is_secret`: its name says that it is one, so that rows of the ledger are kept free of it all the same. */
int secret_set_exempt(struct secret_set *set, const char *name, const char *value, size_t length, bool is_secret);
/* Adds a gateway's key: like secret_set_add(), but secret_set_without_keys() leaves it out. */
int secret_set_add_key(struct secret_set *set, const char *name, const char *value, size_t length);
/* For another process, and for longer than the command: a reference to this set, or, where it has keys, a set of the
 * others. NULL if memory is short. */
struct secret_set *secret_set_without_keys(struct secret_set *set);
size_t secret_set_count(const struct secret_set *set);
/* How many were one too many. */
size_t secret_set_left_out(const struct secret_set *set);
/* Not secret by itself: too short, or words, numbers and a path's separators only. */
bool secret_is_plain(const char *value, size_t length);

/* For the scanner. */
const struct prefilter *secret_set_prefilter(const struct secret_set *set);
const struct secret_own *secret_set_own(const struct secret_set *set, size_t index);
/* The one that it is an own way to write, or itself. */
const struct secret_own *secret_set_plain(const struct secret_set *set, size_t index);
/* Eight bytes decide about most rows of a bucket before their checks are called: the place is the row's only if they
 * agree where the mask says so. They are those of the prefix, which begins `back` bytes before the anchor. */
struct secret_beginning {
	uint64_t bits, mask;
	uint8_t back;
	uint16_t row;
};
/* Those of the rows of bucket i are from `ret_from[i]` up to `ret_from[i + 1]`. */
const struct secret_beginning *secret_set_beginnings(const struct secret_set *set, const uint16_t **ret_from);
/* The own secrets that may have their anchor at these PREFILTER_BYTES: the number of the first, plus one, and each has
 * that of the next; 0: no more. */
size_t secret_set_first(const struct secret_set *set, const unsigned char *bytes);
bool secret_set_is_ascii(const struct secret_set *set);
/* Like secret_tail(), for own secrets. */
size_t secret_set_tail(const struct secret_set *set, const struct secret_text *text);

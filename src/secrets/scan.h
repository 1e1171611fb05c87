/* Finds secrets in a block of bytes: as they are, and URL-encoded, in base64 or in hexadecimal digits, up to two of
 * these around each other.
 *
 * An encoding is undone where bytes look like it, and what comes out is searched like the block itself; every place is
 * mapped back to the block. Decoding is skipped where no three groups of base64 in a row, or twelve pairs of digits,
 * can be ASCII, as every kind of secret is. The cost is linear in the block, whatever is in it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "secrets/set.h"

enum secret_layer {
	SECRET_RAW,
	SECRET_URL,
	SECRET_BASE64,
	SECRET_HEX,
	SECRET_LAYER_MAX,
};
#define SECRET_DEPTH 2                  /* encodings around each other */

/* What is done about a secret. */
enum secret_action {
	SECRET_REDACT,                  /* the secret is replaced by its name */
	SECRET_REPORT,                  /* it is passed on, and noted */
	SECRET_BLOCK,                   /* it is replaced, nothing after it is passed on, and the call fails with
	                                   leak_blocked */
	SECRET_IGNORE,                  /* neither noted nor changed */
	SECRET_ACTION_MAX,
	SECRET_EXEMPT,                  /* no policy's: ignored, and so is what lies within it */
};

#define SECRET_KEY 32
#define SECRET_FINGERPRINT 8

struct secret_found {
	size_t start, end;              /* in the block, encoding included */
	uint16_t member;                /* a row of the table, or SECRET_ROWS and the number of an own secret */
	uint8_t layers[SECRET_DEPTH];   /* outermost first */
	uint8_t action;                 /* enum secret_action */
	unsigned char fingerprint[SECRET_FINGERPRINT];  /* of the secret itself, keyed: the same in every layer */
};

struct secret_scratch {
	uint32_t *positions;
	unsigned char *values, *decoded;
	size_t capacity;
};

struct secret_scanner {
	const struct secret_set *set;   /* borrowed */
	size_t depth;                   /* how many encodings are undone: SECRET_DEPTH, or 0 for measurements */
	unsigned char key[SECRET_KEY];  /* of the fingerprints */
	void (*load_key)(void *arg, unsigned char *ret_key);    /* asked for it once, with the first finding; or NULL */
	void *load_key_arg;
	struct secret_scratch scratch[SECRET_DEPTH];
	/* Says what is done about a finding; NULL: all are SECRET_REDACT. */
	enum secret_action (*judge)(const void *arg, const struct secret_found *found);
	const void *judge_arg;
	/* Of the last block, by start, without those that are ignored. Those that are hidden and overlap are one, with
	 * the strictest action; so are those that are reported. What is reported and lies within what is hidden is left
	 * out. */
	struct secret_found *found;
	size_t found_count, found_capacity;
	size_t open;                    /* where the earliest secret may begin that is not complete yet; the length
	                                   if none */
	uint64_t steps;                 /* of the checks in the last block: bytes that they looked at one by one */
	bool is_short_of_memory;
};

/* `key` may be NULL: random then. */
void secret_scanner_init(struct secret_scanner *scanner, const struct secret_set *set, const unsigned char *key);
void secret_scanner_free(struct secret_scanner *scanner);

/* Searches a block. `is_final`: nothing follows. Fails, with nothing found, if memory is short. */
int secret_scan(struct secret_scanner *scanner, const void *bytes, size_t length, bool is_final);

/* The name of what was found: a kind, or what an own secret is called. */
const char *secret_found_name(const struct secret_set *set, const struct secret_found *found);
/* "raw", "base64", "url+hex". */
#define SECRET_LAYER_TEXT 16
void secret_layer_text(const uint8_t layers[SECRET_DEPTH], char ret_text[SECRET_LAYER_TEXT]);

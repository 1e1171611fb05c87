/* How rows are chained and sealed, and what the head contains. Bytes in, bytes out: no file is used here.
 *
 * A line of the ledger ends in `,"prev":"…","mac":"…"}`. `prev` is the SHA-256 of the line before it (without its
 * newline; zeros for the first), which can be checked with sha256sum. `mac` is a keyed hash of everything before
 * `,"mac"`: without the key, no row can be written, nor one changed and the chain after it repaired. The head says how
 * far the ledger reaches, with a keyed hash of its own; the signed head says the same for readers who have only the
 * public key. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/utc.h"

#define SEAL_HASH_SIZE 32
#define SEAL_MAC_SIZE 16
#define SEAL_LENGTH ((size_t)116)       /* of what is added to a row */
#define SEAL_HEAD_SIZE ((size_t)512)    /* one sector: written whole or not at all */
#define SEAL_PUBLIC_HEX 65
#define DAY_NAME_LENGTH 16              /* YYYY-MM-DD.jsonl */
#define DAY_NAME_SIZE (DAY_NAME_LENGTH + 1)

struct seal_key {
	unsigned char seed[32], mac[32];
};

/* Where the ledger ends. */
struct tip {
	uint64_t rows;                          /* lines, torn ones included */
	char file[DAY_NAME_SIZE];
	uint64_t offset;                        /* in that file, behind the newline */
	unsigned char hash[SEAL_HASH_SIZE];     /* of the last line */
};

void seal_key_from_seed(const unsigned char seed[32], struct seal_key *ret_key);
void seal_public_hex(const struct seal_key *key, char ret_hex[SEAL_PUBLIC_HEX]);

void seal_hash(const char *line, size_t length, unsigned char ret_hash[SEAL_HASH_SIZE]);
/* `row` is a JSON object with at least one member; the line is all of it but the last byte, then `ret_seal`. */
void seal_row(const struct seal_key *key, const unsigned char prev[SEAL_HASH_SIZE], const char *row, size_t length,
              char ret_seal[SEAL_LENGTH], unsigned char ret_hash[SEAL_HASH_SIZE]);
/* Whether the line ends in a seal, and what it names as the hash of the line before. */
bool seal_prev(const char *line, size_t length, unsigned char ret_prev[SEAL_HASH_SIZE]);
/* Whether a line that ends in a seal was sealed with this key. */
bool seal_holds(const struct seal_key *key, const char *line, size_t length);

/* Whether `a` ends before `b` does. */
bool tip_before(const struct tip *a, const struct tip *b);

void seal_head(const struct seal_key *key, const struct tip *tip, int64_t now, char ret_head[SEAL_HEAD_SIZE]);
/* `key` NULL: what it says, true or not. */
bool seal_head_read(const struct seal_key *key, const char head[SEAL_HEAD_SIZE], struct tip *ret_tip,
                    char ret_time[UTC_SIZE]);

/* The head once more, with a signature (Ed25519) over everything before `,"signature"`. */
void seal_sign(const struct seal_key *key, const struct tip *tip, int64_t now, char ret_signed[SEAL_HEAD_SIZE]);
bool seal_signed_read(const char public[SEAL_PUBLIC_HEX], const char text[SEAL_HEAD_SIZE], struct tip *ret_tip,
                      char ret_time[UTC_SIZE]);

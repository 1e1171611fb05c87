/* Chain, seal and head: see seal.h. The two heads begin alike, with fixed keys in a fixed order, and are filled up with
 * spaces to one size, so that the next one can be written over the last. */
#include "audit/seal.h"

#include "base/sha256.h"

#include <inttypes.h>
#include <sodium/crypto_generichash.h>
#include <sodium/crypto_sign.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <string.h>

#define PREV ",\"prev\":\""
#define MAC "\",\"mac\":\""
#define END "\"}"
#define HASH_HEX (2 * SEAL_HASH_SIZE)
#define MAC_HEX (2 * SEAL_MAC_SIZE)
#define LENGTH(literal) (sizeof(literal) - 1)
#define MAC_AT (LENGTH(PREV) + HASH_HEX + 1)    /* in the seal: where what the MAC covers ends */
_Static_assert(SEAL_LENGTH == LENGTH(PREV) + HASH_HEX + LENGTH(MAC) + MAC_HEX + LENGTH(END), "the parts of a seal");

static const char digits[] = "0123456789abcdef";

static void put_hex(char *at, const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		at[2 * i] = digits[bytes[i] >> 4];
		at[2 * i + 1] = digits[bytes[i] & 15];
	}
}

/* Lower case only: one way to write it, or a line could be changed without a change of meaning. */
static bool get_hex(const char *at, unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < 2 * size; i++) {
		const char *found = at[i] ? memchr(digits, at[i], sizeof(digits) - 1) : NULL;
		if (!found)
			return false;
		unsigned digit = (unsigned)(found - digits);
		bytes[i / 2] = (unsigned char)(i % 2 ? bytes[i / 2] << 4 | digit : digit);
	}
	return true;
}

void seal_key_from_seed(const unsigned char seed[32], struct seal_key *ret_key)
{
	static const unsigned char purpose[] = "cordon ledger: rows and head";
	memcpy(ret_key->seed, seed, sizeof(ret_key->seed));
	crypto_generichash(ret_key->mac, sizeof(ret_key->mac), purpose, sizeof(purpose), seed, sizeof(ret_key->seed));
}

void seal_public_hex(const struct seal_key *key, char ret_hex[SEAL_PUBLIC_HEX])
{
	unsigned char public[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES];
	crypto_sign_seed_keypair(public, secret, key->seed);
	sodium_memzero(secret, sizeof(secret));
	put_hex(ret_hex, public, sizeof(public));
	ret_hex[SEAL_PUBLIC_HEX - 1] = '\0';
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

void seal_hash(const char *line, size_t length, unsigned char ret_hash[SEAL_HASH_SIZE])
{
	sha256(ret_hash, line, length);
}

/* Over the bytes before the MAC, which may be in two pieces. */
static void make_mac(const struct seal_key *key, const char *row, size_t length, const char *more, size_t more_length,
                     unsigned char ret_mac[SEAL_MAC_SIZE])
{
	crypto_generichash_state state;
	crypto_generichash_init(&state, key->mac, sizeof(key->mac), SEAL_MAC_SIZE);
	crypto_generichash_update(&state, (const unsigned char *)row, length);
	crypto_generichash_update(&state, (const unsigned char *)more, more_length);
	crypto_generichash_final(&state, ret_mac, SEAL_MAC_SIZE);
}

void seal_row(const struct seal_key *key, const unsigned char prev[SEAL_HASH_SIZE], const char *row, size_t length,
              char ret_seal[SEAL_LENGTH], unsigned char ret_hash[SEAL_HASH_SIZE])
{
	unsigned char mac[SEAL_MAC_SIZE];
	crypto_hash_sha256_state state;
	char *at = mempcpy(ret_seal, PREV, LENGTH(PREV));
	put_hex(at, prev, SEAL_HASH_SIZE);
	at = mempcpy(at + HASH_HEX, MAC, LENGTH(MAC));
	make_mac(key, row, length - 1, ret_seal, MAC_AT, mac);
	put_hex(at, mac, sizeof(mac));
	memcpy(at + MAC_HEX, END, LENGTH(END));
	crypto_hash_sha256_init(&state);
	sha256_update(&state, row, length - 1);
	sha256_update(&state, ret_seal, SEAL_LENGTH);
	sha256_final(&state, ret_hash);
}

bool seal_prev(const char *line, size_t length, unsigned char ret_prev[SEAL_HASH_SIZE])
{
	unsigned char mac[SEAL_MAC_SIZE];
	if (length <= SEAL_LENGTH + 1 || line[0] != '{')
		return false;
	const char *seal = line + length - SEAL_LENGTH, *after_prev = seal + LENGTH(PREV) + HASH_HEX;
	return !memcmp(seal, PREV, LENGTH(PREV)) && get_hex(seal + LENGTH(PREV), ret_prev, SEAL_HASH_SIZE) &&
	       !memcmp(after_prev, MAC, LENGTH(MAC)) && get_hex(after_prev + LENGTH(MAC), mac, sizeof(mac)) &&
	       !memcmp(after_prev + LENGTH(MAC) + MAC_HEX, END, LENGTH(END));
}

bool seal_holds(const struct seal_key *key, const char *line, size_t length)
{
	unsigned char expected[SEAL_MAC_SIZE], found[SEAL_MAC_SIZE];
	size_t covered = length - SEAL_LENGTH + MAC_AT;
	make_mac(key, line, covered, "", 0, expected);
	return get_hex(line + length - LENGTH(END) - MAC_HEX, found, sizeof(found)) &&
	       !sodium_memcmp(expected, found, sizeof(found));
}

/* ---- The head ---------------------------------------------------------------------------------------------------- */

#define HEAD_MAC ",\"mac\":\""
#define HEAD_KEY ",\"key\":\""
#define HEAD_SIGNATURE ",\"signature\":\""

bool tip_before(const struct tip *a, const struct tip *b)
{
	int order = strcmp(a->file, b->file);
	return order < 0 || (!order && a->offset < b->offset);
}

/* What both heads begin with; the rest is spaces and a newline. */
static size_t write_tip(const struct tip *tip, int64_t now, char ret_head[SEAL_HEAD_SIZE])
{
	char hash[HASH_HEX], when[UTC_SIZE];
	put_hex(hash, tip->hash, sizeof(tip->hash));
	utc_text(now, 0, when);
	int length = snprintf(ret_head, SEAL_HEAD_SIZE,
	                      "{\"ledger\":1,\"rows\":%" PRIu64 ",\"file\":\"%s\",\"offset\":%" PRIu64
	                      ",\"hash\":\"%.*s\",\"time\":\"%.32s\"",
	                      tip->rows, tip->file, tip->offset, (int)sizeof(hash), hash, when);
	memset(ret_head + length, ' ', SEAL_HEAD_SIZE - (size_t)length);
	ret_head[SEAL_HEAD_SIZE - 1] = '\n';
	return (size_t)length;
}

static bool read_tip(const char head[SEAL_HEAD_SIZE], struct tip *ret_tip, char ret_time[UTC_SIZE])
{
	char text[SEAL_HEAD_SIZE + 1], hash[HASH_HEX + 1], when[33];
	struct tip tip;
	memcpy(text, head, SEAL_HEAD_SIZE);
	text[SEAL_HEAD_SIZE] = '\0';
	if (sscanf(text, "{\"ledger\":1,\"rows\":%20" SCNu64 ",\"file\":\"%16[0-9jsonl.-]\",\"offset\":%20" SCNu64
	           ",\"hash\":\"%64[0-9a-f]\",\"time\":\"%32[0-9TZ:.-]\"",
	           &tip.rows, tip.file, &tip.offset, hash, when) != 5 ||
	    strlen(tip.file) != DAY_NAME_LENGTH || strlen(hash) != HASH_HEX ||
	    !get_hex(hash, tip.hash, sizeof(tip.hash)))
		return false;
	*ret_tip = tip;
	memcpy(ret_time, when, sizeof(when));
	return true;
}

/* The position of `key`, or NULL; with space for `hex` digits after it. Our lines have no such text within a string,
 * so the first match is the only one. */
static const char *find_member(const char head[SEAL_HEAD_SIZE], const char *key, size_t hex)
{
	const char *found = memmem(head, SEAL_HEAD_SIZE, key, strlen(key));
	return found && (size_t)(found - head) + strlen(key) + hex + LENGTH(END) <= SEAL_HEAD_SIZE ? found : NULL;
}

void seal_head(const struct seal_key *key, const struct tip *tip, int64_t now, char ret_head[SEAL_HEAD_SIZE])
{
	unsigned char mac[SEAL_MAC_SIZE];
	size_t length = write_tip(tip, now, ret_head);
	make_mac(key, ret_head, length, "", 0, mac);
	char *at = mempcpy(ret_head + length, HEAD_MAC, LENGTH(HEAD_MAC));
	put_hex(at, mac, sizeof(mac));
	memcpy(at + MAC_HEX, END, LENGTH(END));
}

bool seal_head_read(const struct seal_key *key, const char head[SEAL_HEAD_SIZE], struct tip *ret_tip,
                    char ret_time[UTC_SIZE])
{
	unsigned char expected[SEAL_MAC_SIZE], found[SEAL_MAC_SIZE];
	const char *at = find_member(head, HEAD_MAC, MAC_HEX);
	if (!key)
		return read_tip(head, ret_tip, ret_time);
	if (!at || !get_hex(at + LENGTH(HEAD_MAC), found, sizeof(found)))
		return false;
	make_mac(key, head, (size_t)(at - head), "", 0, expected);
	return !sodium_memcmp(expected, found, sizeof(found)) && read_tip(head, ret_tip, ret_time);
}

void seal_sign(const struct seal_key *key, const struct tip *tip, int64_t now, char ret_signed[SEAL_HEAD_SIZE])
{
	unsigned char public[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES];
	unsigned char signature[crypto_sign_BYTES];
	size_t length = write_tip(tip, now, ret_signed);
	crypto_sign_seed_keypair(public, secret, key->seed);
	char *at = mempcpy(ret_signed + length, HEAD_KEY, LENGTH(HEAD_KEY));
	put_hex(at, public, sizeof(public));
	at += 2 * sizeof(public);
	*at++ = '"';
	crypto_sign_detached(signature, NULL, (const unsigned char *)ret_signed, (size_t)(at - ret_signed), secret);
	sodium_memzero(secret, sizeof(secret));
	at = mempcpy(at, HEAD_SIGNATURE, LENGTH(HEAD_SIGNATURE));
	put_hex(at, signature, sizeof(signature));
	memcpy(at + 2 * sizeof(signature), END, LENGTH(END));
}

bool seal_signed_read(const char public[SEAL_PUBLIC_HEX], const char text[SEAL_HEAD_SIZE], struct tip *ret_tip,
                      char ret_time[UTC_SIZE])
{
	unsigned char key[crypto_sign_PUBLICKEYBYTES], signature[crypto_sign_BYTES];
	const char *at = find_member(text, HEAD_SIGNATURE, 2 * sizeof(signature));
	return at && get_hex(public, key, sizeof(key)) &&
	       get_hex(at + LENGTH(HEAD_SIGNATURE), signature, sizeof(signature)) &&
	       !crypto_sign_verify_detached(signature, (const unsigned char *)text, (size_t)(at - text), key) &&
	       read_tip(text, ret_tip, ret_time);
}

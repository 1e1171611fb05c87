/* SHA-256 with the processor's own instructions where it has them, which is ten times as fast; else libsodium's. One
 * state is begun by crypto_hash_sha256_init() and gone on with by these alone. */
#pragma once
#include <sodium/crypto_hash_sha256.h>
#include <stddef.h>

void sha256_update(crypto_hash_sha256_state *state, const void *bytes, size_t length);
void sha256_final(crypto_hash_sha256_state *state, unsigned char ret_hash[crypto_hash_sha256_BYTES]);
void sha256(unsigned char ret_hash[crypto_hash_sha256_BYTES], const void *bytes, size_t length);

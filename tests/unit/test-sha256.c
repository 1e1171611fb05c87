/* The same hash as libsodium's, of every length and however it is cut; and the examples of FIPS 180-2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

#include <cmocka.h>
#include <sodium/utils.h>

static void known_ones(void **state)
{
	static const char *const cases[][2] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned char hash[crypto_hash_sha256_BYTES];
		char hex[2 * sizeof(hash) + 1];
		sha256(hash, cases[i][0], strlen(cases[i][0]));
		assert_string_equal(sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash)), cases[i][1]);
	}
}

static void any_length_however_cut(void **state)
{
	unsigned char bytes[700], hash[crypto_hash_sha256_BYTES], other[crypto_hash_sha256_BYTES];
	unsigned seed = 1;
	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)rand_r(&seed);
	for (size_t length = 0; length <= sizeof(bytes); length++)
		for (int time = 0; time < 4; time++) {
			crypto_hash_sha256_state parts;
			crypto_hash_sha256_init(&parts);
			for (size_t at = 0, part; at < length; at += part) {
				part = time ? (size_t)rand_r(&seed) % (time == 1 ? 3 : 150) : length;
				part = part < length - at ? part : length - at;
				sha256_update(&parts, bytes + at, part);
			}
			sha256_final(&parts, hash);
			crypto_hash_sha256(other, bytes, length);
			assert_memory_equal(hash, other, sizeof(hash));
		}
	sha256_update(&(crypto_hash_sha256_state){ 0 }, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(known_ones), cmocka_unit_test(any_length_however_cut) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

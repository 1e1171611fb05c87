/* The index of a repository as git writes it, and as it does not; SHA-1 beside what FIPS 180-4 says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/sha1.h"
#include "paths/index/git-index.h"

#include <cmocka.h>

static unsigned char index_bytes[4096];
static size_t length;

static void put(const void *bytes, size_t size)
{
	memcpy(index_bytes + length, bytes, size);
	length += size;
}

static void begin(unsigned char version, unsigned char count)
{
	length = 0;
	put("DIRC", 4);
	put((const unsigned char[]){ 0, 0, 0, version, 0, 0, 0, count }, 8);
}

/* The hash is one byte, again and again. */
static void add(unsigned char version, size_t hash_size, const char *path, size_t removed, unsigned char hash,
                unsigned flags, bool link)
{
	size_t start = length;
	unsigned char stat[40] = { 0 }, hashes[32];
	stat[26] = link ? 0xa0 : 0x81;
	stat[27] = link ? 0 : 0xa4;
	memset(hashes, hash, sizeof(hashes));
	put(stat, sizeof(stat));
	put(hashes, hash_size);
	put((const unsigned char[]){ (unsigned char)(flags >> 8), (unsigned char)flags }, 2);
	if (flags & 0x4000)
		put("\0\0", 2);
	if (version == 4)
		put(&(unsigned char){ (unsigned char)removed }, 1);
	put(path, strlen(path) + 1);
	while (version < 4 && (length - start) % 8)
		put("", 1);
}

static void assert_found(size_t hash_size, const char *path, int hash)
{
	struct git_index_entry entry = { .path = path };
	git_index_find(index_bytes, length, hash_size, &entry, 1);
	assert_int_equal(entry.found, hash >= 0);
	if (hash >= 0)
		assert_int_equal(entry.hash[hash_size - 1], hash);
}

static void entries_are_found(void **state)
{
	(void)state;
	for (unsigned char version = 2; version <= 3; version++)
		for (size_t hash_size = 20; hash_size <= 32; hash_size += 12) {
			begin(version, 5);
			add(version, hash_size, ".env", 0, 1, 4, false);
			add(version, hash_size, "a/.env.test", 0, 2, version == 3 ? 0x4000 : 0, false);
			add(version, hash_size, "link", 0, 3, 0, true);
			add(version, hash_size, "merging", 0, 4, 0x1000, false);
			add(version, hash_size, "z.pem", 0, 5, 0, false);
			assert_found(hash_size, ".env", 1);
			assert_found(hash_size, "a/.env.test", 2);
			assert_found(hash_size, "link", -1);
			assert_found(hash_size, "merging", -1);
			assert_found(hash_size, "z.pem", 5);
			assert_found(hash_size, "a", -1);
			assert_found(hash_size, "zz", -1);
		}
}

static void paths_of_version_4(void **state)
{
	(void)state;
	begin(4, 3);
	add(4, 20, "dir/.env", 0, 1, 0, false);
	add(4, 20, ".test", 0, 2, 0, false);
	add(4, 20, "x.pem", 9, 3, 0, false);
	assert_found(20, "dir/.env", 1);
	assert_found(20, "dir/.env.test", 2);
	assert_found(20, "dir/x.pem", 3);
	/* More taken away than there is. */
	begin(4, 2);
	add(4, 20, "a", 0, 1, 0, false);
	add(4, 20, "b", 9, 2, 0, false);
	assert_found(20, "a", 1);
	assert_found(20, "b", -1);
}

static void what_is_cut_off_is_not_read(void **state)
{
	(void)state;
	begin(2, 200);
	add(2, 20, ".env", 0, 1, 0, false);
	size_t whole = length;
	for (length = 0; length < whole; length++)
		assert_found(20, ".env", -1);
	assert_found(20, ".env", 1);
	index_bytes[7] = 5;
	assert_found(20, ".env", -1);
}

static void sha1_of_the_standard(void **state)
{
	static const struct {
		const char *text, *hash;
	} rows[] = {
		{ "", "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
		{ "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sha1 sha1;
		unsigned char hash[SHA1_BYTES];
		char text[2 * SHA1_BYTES + 1];
		sha1_init(&sha1);
		for (const char *at = rows[i].text; *at; at++)
			sha1_update(&sha1, at, 1);
		sha1_final(&sha1, hash);
		for (size_t j = 0; j < SHA1_BYTES; j++)
			snprintf(text + 2 * j, 3, "%02x", hash[j]);
		assert_string_equal(text, rows[i].hash);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_found),
		cmocka_unit_test(paths_of_version_4),
		cmocka_unit_test(what_is_cut_off_is_not_read),
		cmocka_unit_test(sha1_of_the_standard),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

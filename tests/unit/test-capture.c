/* Captured output, compared with a model that has the whole stream in memory and finds characters from its start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "run/capture.h"
#include "skip.h"

struct expected {
	char *data;
	size_t length;
	bool truncated;
};

/* Where the character that lies across `cut` begins and ends; both are the cut itself if there is none. */
static void model_cut(const char *bytes, size_t length, size_t cut, size_t *ret_begin, size_t *ret_end)
{
	size_t at = 0, size = 0;
	for (; at < cut; at += size) {
		size = utf8_sequence(bytes + at, length - at);
		size = size ? size : 1;
		if (at + size > cut) {
			*ret_begin = at;
			*ret_end = at + size;
			return;
		}
	}
	*ret_begin = *ret_end = cut;
}

static struct expected model(const char *bytes, size_t length, size_t cap)
{
	struct expected expected = { calloc(1, length + 64), 0, length > cap };
	size_t head, tail, unused;
	if (length <= cap) {
		memcpy(expected.data, bytes, length);
		expected.length = length;
	} else if (cap) {
		model_cut(bytes, length, cap * 2 / 5, &head, &unused);
		model_cut(bytes, length, length - (cap - cap * 2 / 5), &unused, &tail);
		memcpy(expected.data, bytes, head);
		int marker = sprintf(expected.data + head, "\n[cordon: %zu bytes omitted]\n", tail - head);
		memcpy(expected.data + head + marker, bytes + tail, length - tail);
		expected.length = head + (size_t)marker + length - tail;
	}
	return expected;
}

static void hash(const char *bytes, size_t length, char hex[65])
{
	unsigned char digest[crypto_hash_sha256_BYTES];
	crypto_hash_sha256(digest, (const unsigned char *)bytes, length);
	sodium_bin2hex(hex, 65, digest, sizeof(digest));
}

/* Gives the stream in pieces of up to `most` bytes and compares everything. */
static void check(const char *bytes, size_t length, size_t cap, size_t most)
{
	struct capture capture;
	struct captured captured;
	struct expected expected = model(bytes, length, cap);
	char hex[65];
	capture_init(&capture, cap);
	for (size_t at = 0, size; at < length; at += size) {
		size = 1 + (size_t)random() % most;
		size = size < length - at ? size : length - at;
		capture_add(&capture, bytes + at, size);
	}
	capture_add(&capture, NULL, 0);
	capture_finish(&capture, &captured);
	hash(bytes, length, hex);
	if (captured.length != expected.length || memcmp(captured.data, expected.data, expected.length))
		fail_msg("length %zu cap %zu: got %zu bytes, expected %zu", length, cap, captured.length,
		         expected.length);
	assert_int_equal(captured.data[captured.length], 0);
	assert_int_equal(captured.total, length);
	assert_int_equal(captured.truncated, expected.truncated);
	assert_string_equal(captured.sha256, hex);
	capture_free(&capture);
	free(expected.data);
}

static void examples(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t cap;
		const char *kept;
	} rows[] = {
		{ "", 10, "" }, { "hello", 10, "hello" }, { "0123456789", 10, "0123456789" },
		{ "0123456789a", 10, "0123\n[cordon: 1 bytes omitted]\n56789a" },
		{ "0123456789abcdefghij", 10, "0123\n[cordon: 10 bytes omitted]\nefghij" },
		{ "hello", 0, "" }, { "ab", 1, "\n[cordon: 1 bytes omitted]\nb" },
		/* A euro sign across the end of the head: one of its three bytes would have fitted. */
		{ "012\xe2\x82\xac" "456789abcdef", 12, "012\n[cordon: 7 bytes omitted]\n89abcdef" },
		{ "hello", UINT64_MAX, "hello" }, { "hello", INT64_MAX, "hello" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct capture capture;
		struct captured captured;
		size_t length = strlen(rows[i].text);
		capture_init(&capture, rows[i].cap);
		capture_add(&capture, rows[i].text, length);
		capture_finish(&capture, &captured);
		assert_string_equal(captured.data, rows[i].kept);
		assert_int_equal(captured.length, strlen(captured.data));
		assert_int_equal(captured.total, length);
		assert_int_equal(captured.truncated, length > rows[i].cap);
		capture_free(&capture);
	}
}

/* ASCII, characters of two to four bytes, pieces of them, and bytes that are no text at all. */
static void make_stream(char *bytes, size_t length, int kind)
{
	static const char *const texts[] = { "a",
		                             "\xc3\xa9",
		                             "\xe2\x82\xac",
		                             "\xf0\x9f\x98\x80",
		                             "\xf0\x9f",
		                             "\x80\x80\x80\x80",
		                             "\xed\xa0\x80",
		                             "\xe0\x80\x80",
		                             "\xff",
		                             "\n" };
	for (size_t at = 0; at < length;) {
		const char *text = texts[(size_t)random() % (kind == 0 ? 1 : kind == 1 ? 4 : ARRAY_SIZE(texts))];
		for (; *text && at < length; text++)
			bytes[at++] = kind == 3 ? (char)random() : *text;
	}
}

static void every_length_around_every_small_cap(void **state)
{
	(void)state;
	char bytes[80];
	srandom(1);
	for (size_t cap = 0; cap <= 24; cap++)
		for (size_t length = 0; length <= sizeof(bytes); length++)
			for (int kind = 0; kind < 4; kind++) {
				make_stream(bytes, length, kind);
				check(bytes, length, cap, 1 + (size_t)random() % 30);
			}
}

static void random_streams(void **state)
{
	(void)state;
	static char bytes[200000];
	srandom(2);
	for (int round = 0; round < 300; round++) {
		size_t length = (size_t)random() % sizeof(bytes), cap = (size_t)random() % 60000;
		make_stream(bytes, length, round % 4);
		check(bytes, length, cap, 1 + (size_t)random() % (round % 3 ? 5000 : 150000));
	}
}

/* No text that was whole is made invalid by cutting it. */
static void text_stays_text(void **state)
{
	(void)state;
	char bytes[400];
	srandom(3);
	for (int round = 0; round < 3000; round++) {
		struct capture capture;
		struct captured captured;
		size_t length = 0;
		while (length < 300) {
			static const char *const texts[] = { "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };
			const char *text = texts[random() % 4];
			memcpy(bytes + length, text, strlen(text));
			length += strlen(text);
		}
		capture_init(&capture, 1 + (uint64_t)random() % 200);
		capture_add(&capture, bytes, length);
		capture_finish(&capture, &captured);
		assert_true(captured.truncated);
		for (size_t at = 0, size; at < captured.length; at += size) {
			size = utf8_sequence(captured.data + at, captured.length - at);
			assert_int_not_equal(size, 0);
		}
		capture_free(&capture);
	}
}

static void a_flood_stays_within_the_cap(void **state)
{
	(void)state;
	static char block[65536];
	struct capture capture;
	struct captured captured;
	uint64_t total = 0;
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = "yes\n"[i % 4];
	capture_init(&capture, 1 << 20);
	for (int i = 0; i < 320; i++, total += sizeof(block)) {
		capture_add(&capture, block, sizeof(block));
		assert_true(capture.capacity <= (1 << 20) + 3);
	}
	capture_finish(&capture, &captured);
	assert_int_equal(captured.total, total);
	char marker[64];
	int size = sprintf(marker, "\n[cordon: %llu bytes omitted]\n", (unsigned long long)(total - (1 << 20)));
	size_t head = (1 << 20) * 2 / 5;
	assert_int_equal(captured.length, (1 << 20) + size);
	assert_memory_equal(captured.data + head, marker, (size_t)size);
	for (size_t i = 0; i < head; i++)
		assert_int_equal(captured.data[i], "yes\n"[i % 4]);
	for (size_t i = captured.length, back = 0; i > head + (size_t)size; i--, back++)
		assert_int_equal(captured.data[i - 1], "\nsey"[back % 4]);
	capture_free(&capture);
}

static void a_small_output_costs_little(void **state)
{
	(void)state;
	struct capture capture;
	capture_init(&capture, 1 << 30);
	assert_null(capture.bytes);
	capture_add(&capture, "x", 1);
	assert_true(capture.capacity <= 4096);
	capture_free(&capture);
}

/* Where memory ends before the cap does, what there is becomes the cap, and the result says so. */
static int starve(void)
{
	static char block[65536];
	struct rlimit limit = { 64 << 20, 64 << 20 };
	struct capture capture;
	struct captured captured;
	memset(block, 'x', sizeof(block));
	if (setrlimit(RLIMIT_AS, &limit))
		return 2;
	capture_init(&capture, UINT64_MAX);
	for (int i = 0; i < 4096; i++)
		capture_add(&capture, block, sizeof(block));
	capture_finish(&capture, &captured);
	if (!captured.truncated || captured.total != 4096 * sizeof(block))
		return 3;
	if (captured.length < (1 << 20) || captured.length > (64 << 20) || captured.length != strlen(captured.data))
		return 4;
	return strstr(captured.data, " bytes omitted]\n") ? 0 : 5;
}

static void memory_that_ends_early(void **state)
{
	(void)state;
#if defined(__SANITIZE_ADDRESS__)
	skip_cannot("unsanitized", "the sanitizer's shadow needs the address space");
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
	skip_cannot("unsanitized", "the sanitizer's shadow needs the address space");
#endif
#endif
	int status;
	pid_t pid = fork();
	if (!pid)
		_exit(starve());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examples),
		cmocka_unit_test(every_length_around_every_small_cap),
		cmocka_unit_test(random_streams),
		cmocka_unit_test(text_stays_text),
		cmocka_unit_test(a_flood_stays_within_the_cap),
		cmocka_unit_test(a_small_output_costs_little),
		cmocka_unit_test(memory_that_ends_early),
	};
	return cmocka_run_group_tests_name("capture", tests, NULL, NULL);
}

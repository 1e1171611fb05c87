/* Any bytes as a chunked body: it ends at the same place however it is cut, and where a simple reader says so. */
#include <stdint.h>
#include <stdio.h>

#include "http-look.h"
#include "net/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MORE = -1, BAD = -2 };

static long run(const char *bytes, size_t size, size_t step)
{
	struct http_chunk chunk = { 0 };
	bool done = false;
	size_t at = 0;
	while (at < size && !done) {
		size_t length = size - at < step ? size - at : step, used = SIZE_MAX;
		const char *why = NULL;
		if (http_chunk_step(&chunk, bytes + at, length, &used, &done, &why) < 0) {
			must(why && *why);
			return BAD;
		}
		must(used <= length && (done || used == length));
		at += used;
	}
	return done ? (long)at : MORE;
}

/* Where the body ends that was found to be good. */
static size_t simple_end(const char *bytes, size_t size)
{
	size_t at = 0;
	for (;;) {
		char digits[17] = { 0 };
		const char *end = memmem(bytes + at, size - at, "\r\n", 2);
		must(end && end - (bytes + at) <= 16);
		memcpy(digits, bytes + at, (size_t)(end - (bytes + at)));
		must(*digits && strspn(digits, "0123456789abcdefABCDEF") == strlen(digits));
		unsigned long long length = strtoull(digits, NULL, 16);
		at = (size_t)(end - bytes) + 2;
		if (!length)
			break;
		must(length < size - at && !memcmp(bytes + at + length, "\r\n", 2));
		at += length + 2;
	}
	/* Trailers: none of them frames anything. */
	for (;;) {
		const char *end = memmem(bytes + at, size - at, "\r\n", 2);
		must(end);
		size_t length = (size_t)(end - (bytes + at));
		must(!look_named(bytes + at, length, "content-length") &&
		     !look_named(bytes + at, length, "transfer-encoding") && !look_named(bytes + at, length, "host"));
		at += length + 2;
		if (!length)
			return at;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	long whole = run(bytes, size, SIZE_MAX);
	must(run(bytes, size, 1) == whole && run(bytes, size, 3) == whole);
	if (whole >= 0) {
		must(simple_end(bytes, size) == (size_t)whole);
		must(run(bytes, (size_t)whole - 1, SIZE_MAX) == MORE);
	}
	return 0;
}

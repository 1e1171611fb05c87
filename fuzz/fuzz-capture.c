/* Any bytes, in any pieces, under any cap: compared with what a reader of the whole stream would keep.
 * Input: two bytes of cap, one byte that chooses the pieces, then the stream. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "run/capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first place at or after `cut` (or the last before it) where no valid character is split, found from the start. */
static size_t whole(const char *bytes, size_t length, size_t cut, bool after)
{
	for (size_t at = 0, size; at < cut; at += size) {
		size = utf8_sequence(bytes + at, length - at);
		size = size ? size : 1;
		if (at + size > cut)
			return after ? at + size : at;
	}
	return cut;
}

static void require(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 3)
		return 0;
	size_t cap = data[0] | (size_t)data[1] << 8, piece = data[2] + 1u, length = size - 3;
	const char *bytes = (const char *)data + 3;
	struct capture capture;
	struct captured captured;
	capture_init(&capture, cap);
	for (size_t at = 0; at < length; at += piece)
		capture_add(&capture, bytes + at, piece < length - at ? piece : length - at);
	capture_finish(&capture, &captured);

	require(captured.total == length && captured.truncated == (length > cap) && strlen(captured.sha256) == 64);
	require(captured.data[captured.length] == '\0');
	if (length <= cap) {
		require(captured.length == length && !memcmp(captured.data, bytes, length));
	} else if (cap) {
		char marker[64];
		size_t head = whole(bytes, length, cap * 2 / 5, false);
		size_t tail = whole(bytes, length, length - (cap - cap * 2 / 5), true);
		int middle = snprintf(marker, sizeof(marker), "\n[cordon: %zu bytes omitted]\n", tail - head);
		require(captured.length == head + (size_t)middle + length - tail);
		require(!memcmp(captured.data, bytes, head));
		require(!memcmp(captured.data + head, marker, (size_t)middle));
		require(!memcmp(captured.data + head + middle, bytes + tail, length - tail));
	} else {
		require(captured.length == 0);
	}
	capture_free(&capture);
	return 0;
}

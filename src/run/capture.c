/* One buffer, filled from the front and grown as needed, so that a small output costs a small allocation. When it has
 * reached the cap, its first 40 % stay as the head, and the rest becomes a ring that always holds the latest bytes:
 *
 *     | head: positions 0 … head-1 | ring: position p at head + (p - head) % ring size |
 *
 * A cut must not split a character. Whether it does is seen from the three bytes on either side, so the ring is three
 * bytes longer than the tail, and the three bytes that followed the head are kept when the ring goes over them. A lead
 * byte never occurs inside a valid sequence: looking back for one is enough, also in the midst of binary data.
 *
 * Everything is put in order in place when the stream has ended, since a second buffer of that size might not be had.
 */
#include "run/capture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/utf8.h"

#define LOOK 3                  /* the longest sequence, less one */
#define FIRST_CAPACITY 4096
#define SLACK 64                /* room for the marker and a NUL, beyond the capacity */

static void set_cap(struct capture *capture, size_t cap)
{
	capture->cap = cap;
	capture->head = cap / 5 * 2 + cap % 5 * 2 / 5;
}

static size_t ring_size(const struct capture *capture)
{
	return capture->cap - capture->head + LOOK;
}

void capture_init(struct capture *capture, uint64_t cap)
{
	memset(capture, 0, sizeof(*capture));
	set_cap(capture, (size_t)(cap < CAPTURE_CEILING ? cap : CAPTURE_CEILING));
	crypto_hash_sha256_init(&capture->hash);
}

void capture_free(struct capture *capture)
{
	free(capture->bytes);
	capture->bytes = NULL;
	capture->capacity = 0;
}

/* Makes room for `wanted` bytes, at most cap + LOOK. If there is no memory, the cap becomes what there is. */
static void grow(struct capture *capture, size_t wanted)
{
	size_t full = capture->cap + LOOK;
	size_t capacity = capture->capacity ? capture->capacity : FIRST_CAPACITY;
	if (wanted <= capture->capacity)
		return;
	while (capacity < wanted)
		capacity *= 2;
	if (capacity > full)
		capacity = full;
	char *grown = realloc(capture->bytes, capacity + SLACK);
	if (!grown) {
		set_cap(capture, capture->capacity ? capture->capacity - LOOK : 0);
		return;
	}
	capture->bytes = grown;
	capture->capacity = capacity;
}

static void add_to_ring(struct capture *capture, const char *bytes, size_t length, uint64_t position)
{
	size_t ring = ring_size(capture);
	char *tail = capture->bytes + capture->head;
	if (!capture->wrapped)
		memcpy(capture->after_head, tail, LOOK);
	capture->wrapped = true;
	if (length > ring) {
		bytes += length - ring;
		position += length - ring;
		length = ring;
	}
	size_t slot = (size_t)((position - capture->head) % ring);
	size_t first = length < ring - slot ? length : ring - slot;
	memcpy(tail + slot, bytes, first);
	memcpy(tail, bytes + first, length - first);
}

static void store(struct capture *capture, const char *bytes, size_t length)
{
	uint64_t position = capture->total;
	if (position < capture->cap + LOOK) {
		size_t room = capture->cap + LOOK - (size_t)position;
		grow(capture, (size_t)position + (length < room ? length : room));
		room = capture->capacity - (size_t)position;
		size_t front = length < room ? length : room;
		if (front)
			memcpy(capture->bytes + position, bytes, front);
		bytes += front;
		length -= front;
		position += front;
	}
	if (length && capture->cap)
		add_to_ring(capture, bytes, length, position);
}

void capture_add(struct capture *capture, const void *bytes, size_t length)
{
	if (!length)
		return;
	sha256_update(&capture->hash, bytes, length);
	if (capture->cap)
		store(capture, bytes, length);
	capture->total += length;
}

/* A byte near one of the two cuts. */
static char peek(const struct capture *capture, uint64_t position)
{
	size_t ring = ring_size(capture);
	if (position < capture->head)
		return capture->bytes[position];
	if (position + ring < capture->total)
		return capture->after_head[position - capture->head];
	return capture->bytes[capture->head + (position - capture->head) % ring];
}

/* How many bytes of one valid sequence are before the cut, and how many after it. */
static void straddle(const struct capture *capture, uint64_t cut, size_t *ret_before, size_t *ret_after)
{
	char window[2 * LOOK];
	size_t before = cut < LOOK ? (size_t)cut : LOOK, length = 0;
	for (uint64_t at = cut - before; at < cut + LOOK && at < capture->total; at++)
		window[length++] = peek(capture, at);
	for (size_t back = 1; back <= before; back++) {
		size_t size = utf8_sequence(window + before - back, length - (before - back));
		if (size <= back)
			continue;
		*ret_before = back;
		*ret_after = size - back;
		return;
	}
	*ret_before = *ret_after = 0;
}

static void reverse(char *from, char *to)
{
	while (from < to) {
		char byte = *from;
		*from++ = *--to;
		*to = byte;
	}
}

/* Turns `length` bytes so that the one at `first` becomes the first. */
static void rotate(char *bytes, size_t length, size_t first)
{
	reverse(bytes, bytes + first);
	reverse(bytes + first, bytes + length);
	reverse(bytes, bytes + length);
}

/* Head, marker and tail, one after the other; returns the length of all. */
static size_t join(struct capture *capture)
{
	size_t unused, head_drop, tail_drop, ring = ring_size(capture);
	uint64_t start = capture->total - (capture->cap - capture->head);
	straddle(capture, capture->head, &head_drop, &unused);
	straddle(capture, start, &unused, &tail_drop);

	char *tail = capture->bytes + capture->head;
	uint64_t oldest = capture->head;
	if (capture->wrapped) {
		oldest = capture->total - ring;
		rotate(tail, ring, (size_t)((capture->total - capture->head) % ring));
	}
	start += tail_drop;
	tail += start - oldest;

	size_t head_length = capture->head - head_drop, tail_length = (size_t)(capture->total - start);
	char marker[SLACK];
	size_t marker_length = (size_t)snprintf(marker, sizeof(marker), "\n[cordon: %" PRIu64 " bytes omitted]\n",
	                                        capture->total - head_length - tail_length);
	memmove(capture->bytes + head_length + marker_length, tail, tail_length);
	memcpy(capture->bytes + head_length, marker, marker_length);
	return head_length + marker_length + tail_length;
}

void capture_finish(struct capture *capture, struct captured *ret_captured)
{
	unsigned char digest[crypto_hash_sha256_BYTES];
	size_t length = 0;
	sha256_final(&capture->hash, digest);
	for (size_t i = 0; i < sizeof(digest); i++) {
		ret_captured->sha256[2 * i] = "0123456789abcdef"[digest[i] >> 4];
		ret_captured->sha256[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
	}
	ret_captured->sha256[2 * sizeof(digest)] = '\0';
	ret_captured->total = capture->total;
	ret_captured->truncated = capture->total > capture->cap;
	if (capture->cap && capture->total) {
		length = ret_captured->truncated ? join(capture) : (size_t)capture->total;
		capture->bytes[length] = '\0';
	}
	ret_captured->data = length ? capture->bytes : "";
	ret_captured->length = length;
}

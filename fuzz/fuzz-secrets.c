/* Any bytes, in any pieces, through the redacting stream and its scanner. Input: a byte that chooses the pieces, one
 * for the action about own secrets, for that about kinds, and whether what is held is released now and then, then the
 * stream. Must hold: the total is true; a stream in which nothing was found, or that is only reported, is unchanged; an
 * own secret is not in what was delivered, unless a part of it was released before; the two searches agree. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "secrets/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OWN "correct7horse+battery"

struct sink {
	char *bytes;
	size_t length;
};

static void deliver(void *context, const void *bytes, size_t length)
{
	struct sink *sink = context;
	memcpy(sink->bytes + sink->length, bytes, length);
	sink->length += length;
}

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void compare_searches(const struct secret_set *set, const uint8_t *bytes, size_t length)
{
	for (size_t at = 0; prefilter_has_avx2() && at < length; at++) {
		uint8_t left = 0, right = 0;
		size_t place = prefilter_next_portable(secret_set_prefilter(set), bytes, length, at, &left);
		require(prefilter_next_avx2(secret_set_prefilter(set), bytes, length, at, &right) == place &&
		        left == right);
		at = place;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned char key[SECRET_KEY] = "fuzz";
	if (size < 2)
		return 0;
	size_t piece = data[0] + 1u, length = size - 2;
	bool is_released = data[1] & 8;
	enum secret_action action = data[1] % SECRET_ACTION_MAX, for_kinds = (data[1] >> 4) % SECRET_ACTION_MAX;
	const uint8_t *bytes = data + 2;
	struct secret_policy policy;
	/* A secret of twelve bytes becomes its name: at most twice as long. */
	struct sink sink = { malloc(8 * length + 256), 0 };
	struct secret_set *set = secret_set_new();
	require(sink.bytes && set && secret_set_add(set, "MY_TOKEN", OWN, strlen(OWN)) == 1);
	secret_policy_set(&policy, for_kinds);
	policy.own = (uint8_t)action;
	struct secret_filter *filter = secret_filter_new(set, &policy, key, deliver, &sink);
	require(filter);

	for (size_t at = 0; at < length; at += piece) {
		secret_filter_add(filter, bytes + at, piece < length - at ? piece : length - at, at);
		if (is_released && at % 3 == 0)
			secret_filter_release(filter);
	}
	secret_filter_finish(filter);
	require(secret_filter_total(filter) == length);
	uint64_t hidden = 0;
	secret_filter_count(filter, &hidden);
	if (!hidden)
		require(sink.length == length && !memcmp(sink.bytes, bytes, length));
	if ((action == SECRET_REDACT || action == SECRET_BLOCK) && !is_released)
		require(!memmem(sink.bytes, sink.length, OWN, strlen(OWN)));
	compare_searches(set, bytes, length);
	secret_filter_free(filter);
	secret_set_unref(set);
	free(sink.bytes);
	return 0;
}

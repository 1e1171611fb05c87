/* The ioctl requests of the filter: see ioctls.h; what is allowed and why is in ioctls.def.
 *
 * Neighbouring requests are joined to spans. Spans are searched by a binary tree whose leaves hold a few spans each,
 * compared one after the other: that takes fewer instructions than a tree down to single spans, and the kernel's time
 * to install a filter grows with its length (0.1 us for each). A request that is in no span is compared with what each
 * granted device adds, then refused.
 *
 * The kernel takes a request as 32 bits and drops the upper half of the argument, so only the lower half is compared:
 * neither can a bit up there pass the filter nor does a request that was sign-extended fail. */
#include "profile/ioctls.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "profile/seccomp.h"

static const uint32_t requests[] = {
#define IOCTL(name, request) request,
#include "profile/ioctls.def"
};

static const struct {
	unsigned option;
	uint32_t mask, value;
} device_requests[] = {
#define IOCTL_DEVICE_REQUESTS(id, mask, value) { SECCOMP_DEVICE_##id, mask, value },
#include "profile/ioctls.def"
};

static const struct {
	const char *name, *path;
} devices[SECCOMP_DEVICE_MAX] = {
#define IOCTL_DEVICE(id, name, path) { name, path },
#include "profile/ioctls.def"
};

struct span {
	uint32_t first, last;
};

enum { LEAF_SPANS = 8, FARTHEST_JUMP = 255 };

static size_t spans_gather(struct span *spans)
{
	size_t count = 0;
	struct span *current = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		if (!current || current->last + 1 != requests[i]) {
			current = &spans[count++];
			current->first = requests[i];
		}
		current->last = requests[i];
	}
	return count;
}

static size_t search_length(const struct span *spans, size_t count)
{
	size_t length = 0, lower = count / 2;
	if (count > LEAF_SPANS)
		return 1 + search_length(spans, lower) + search_length(spans + lower, count - lower);
	for (size_t i = 0; i < count; i++)
		length += spans[i].first == spans[i].last ? 1 : 2;
	return length;
}

/* Where the search ends: positions of instructions. */
struct ends {
	size_t found, missed;
};

static struct sock_filter compare(uint16_t comparison, uint32_t k, size_t at, size_t yes, size_t no)
{
	return (struct sock_filter){ BPF_JMP | comparison | BPF_K, (uint8_t)(yes - at - 1), (uint8_t)(no - at - 1), k };
}

static void leaf_emit(const struct span *spans, size_t count, size_t at, const struct ends *ends,
                      struct sock_filter *out)
{
	for (size_t i = 0; i < count; i++) {
		bool single = spans[i].first == spans[i].last;
		size_t next = i + 1 < count ? at + (single ? 1 : 2) : ends->missed;
		if (single) {
			out[at] = compare(BPF_JEQ, spans[i].first, at, ends->found, next);
		} else {
			/* Spans ascend, so a smaller request is in none of those that follow. */
			out[at] = compare(BPF_JGE, spans[i].first, at, at + 1, ends->missed);
			out[at + 1] = compare(BPF_JGT, spans[i].last, at + 1, next, ends->found);
		}
		at = next;
	}
}

static void search_emit(const struct span *spans, size_t count, size_t at, const struct ends *ends,
                        struct sock_filter *out)
{
	if (count <= LEAF_SPANS) {
		leaf_emit(spans, count, at, ends, out);
		return;
	}
	size_t lower = count / 2, upper_at = at + 1 + search_length(spans, lower);
	out[at] = compare(BPF_JGE, spans[lower].first, at, upper_at, at + 1);
	search_emit(spans, lower, at + 1, ends, out);
	search_emit(spans + lower, count - lower, upper_at, ends, out);
}

static size_t devices_length(unsigned options)
{
	size_t length = 0;
	for (size_t i = 0; i < ARRAY_SIZE(device_requests); i++)
		if (options & device_requests[i].option)
			length += 3;
	return length;
}

static void devices_emit(unsigned options, uint32_t reload, size_t at, const struct ends *ends, struct sock_filter *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(device_requests); i++) {
		if (!(options & device_requests[i].option))
			continue;
		out[at++] = (struct sock_filter){ BPF_LD | BPF_W | BPF_ABS, 0, 0, reload };
		out[at++] = (struct sock_filter){ BPF_ALU | BPF_AND | BPF_K, 0, 0, device_requests[i].mask };
		out[at] = compare(BPF_JEQ, device_requests[i].value, at, ends->found, at + 1);
		at++;
	}
}

size_t ioctls_emit(unsigned options, uint32_t reload, struct sock_filter *out, size_t capacity)
{
	struct span spans[ARRAY_SIZE(requests)];
	size_t count = spans_gather(spans);
	size_t missed = search_length(spans, count);
	size_t refuse = missed + devices_length(options), allow = refuse + 1, length = allow + 1;
	if (length > capacity || length > FARTHEST_JUMP)
		return 0;
	struct ends ends = { allow, missed };
	search_emit(spans, count, 0, &ends, out);
	devices_emit(options, reload, missed, &ends, out);
	out[refuse] = (struct sock_filter){ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOTTY };
	out[allow] = (struct sock_filter){ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW };
	return length;
}

unsigned seccomp_device_option(const char *path)
{
	unsigned options = 0;
	for (unsigned i = 0; i < SECCOMP_DEVICE_MAX; i++)
		if (!strncmp(path, devices[i].path, strlen(devices[i].path)) || path_within(devices[i].path, path))
			options |= SECCOMP_DEVICE_BIT(i);
	return options;
}

const char *seccomp_device_name(enum seccomp_device_index device)
{
	return devices[device].name;
}

/* A profile as arguments for bubblewrap. */
#pragma once
#include "profile/profile.h"

/* Files whose text bubblewrap reads from a descriptor: the text and the number it is named by in the arguments. */
struct bwrap_text {
	const char *text;
	int fd;
};

/* Accounts, git's identity, and what leads names to the proxy: in /etc, and over what of it is granted. */
#define BWRAP_TEXTS_MAX 9

struct bwrap_plan {
	struct strings arguments;               /* for --args: options only */
	struct bwrap_text texts[BWRAP_TEXTS_MAX];
	size_t text_count;
};

/* `seccomp_fd` and those from `first_text_fd` on are the numbers the descriptors will have. 0, or -1 when memory is
 * short or there are more texts than fit. */
int bwrap_render(struct arena *arena, const struct profile *profile, uint32_t uid, uint32_t gid, int seccomp_fd,
                 int first_text_fd, struct bwrap_plan *ret_plan);

/* A profile as the text that /usr/bin/sandbox-exec takes, in macOS's sandbox profile language: everything is denied,
 * then each rule of the profile allows; of the rules that match, the last decides. So names that are hidden or
 * protected come last.
 *
 * Paths are parameters (-D NAME=VALUE), never part of the text: no path can close a quote. They are canonical, as the
 * kernel compares them: /var is /private/var. */
#pragma once
#include "profile/profile.h"

struct seatbelt_parameter {
	const char *name, *value;
};

struct seatbelt {
	const char *text;
	struct seatbelt_parameter *parameters;
	size_t count;
};

struct seatbelt_facts {
	uint16_t proxy_port;            /* of 127.0.0.1, for a network of listed hosts */
	const char *tty;                /* its own terminal; or NULL */
	bool is_proxy;                  /* it is cordon-proxy that is sandboxed */
};

/* Everything is the arena's. 0; -1 when memory is short; -2 for a network of listed hosts without a port for the
 * proxy. */
int seatbelt_render(struct arena *arena, const struct profile *profile, const struct seatbelt_facts *facts,
                    struct seatbelt *ret_seatbelt);
/* Of cordon-proxy itself, the file `program`: what the loader and the system's resolver read, the network but for
 * listening, and nothing else; no other program, no child. As seatbelt_render(). */
int seatbelt_render_proxy(struct arena *arena, const char *program, struct seatbelt *ret_seatbelt);
/* The same file by the name that has no link of the system's in it; the arena's or `path` itself. NULL when memory is
 * short. */
const char *seatbelt_canonical(struct arena *arena, const char *path);

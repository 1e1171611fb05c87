/* The beginning of a client: finding the daemon, and telling it what is to be run (wire.h). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "door/cli/options.h"
#include "door/cli/sink.h"

/* Is this a command for a daemon, as far as its options tell? */
bool hello_wanted(const struct options *options);
/* A socket, non-blocking, with a daemon of the same user behind it; or -1. `host`: the path of its socket, or NULL: the
 * one of this environment. */
int hello_connect(const char *host);
/* The same, and why not. */
int hello_connect_to(const char *host, int *ret_fd, struct cordon_error *err) __attribute__((warn_unused_result));
/* Sends the command with its words, environment and directory. False: they are too long, or memory is short; then
 * nothing was sent. */
bool hello_send(struct sink *out, uint32_t flags, const char *command, char **words);

/* The beginning of a client: finding the daemon, and telling it what is to be run (wire.h). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "door/cli/options.h"
#include "door/cli/sink.h"

/* Is this a command for a daemon, as far as its options tell? */
bool hello_wanted(const struct options *options);
/* A socket, non-blocking, behind which a daemon of our own user listens; or -1. */
int hello_connect(void);
/* Sends the command with its words, environment and directory. False: they are too long, or memory is short; then nothing was sent. */
bool hello_send(struct sink *out, uint32_t flags, const char *command, char **words);

/* The proxy's own walls. It reads bytes that a hostile program chose, so it gives up all that it will not need: no file
 * can be opened, no program started, no process signalled or traced, nothing received but bytes. What is left are the
 * sockets it has, and new ones of TCP and UDP. A system call that is not needed ends the process. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

/* First of all: root becomes the user that the sandboxes of root have, too. NULL, or what failed. */
const char *seal_drop_root(void) must_check;
/* For good. `descriptors`: how many are needed at most; fewer where the system does not give as many, which is
 * returned. `offline`: without the calls that make and connect sockets and relay between them. */
const char *seal_raise(uint64_t *descriptors, bool offline) must_check;

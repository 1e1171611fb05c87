/* Moving a file out of a workspace, by descriptor. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"

/* Takes `name` out of the directory `fd` into `quarantine_fd`, under a new name that is never an existing one: regular
 * files with their content, symbolic links as a file that holds where they led, directories with what is in them, of which on
 * another filesystem no more than 64 MiB arrive. No file arrives executable, but in a directory what is in it may be; who has it open has an empty one that is gone.
 * The new name, or NULL and errno. */
const char *quarantine_take(struct arena *arena, int fd, const char *name, int quarantine_fd);

/* Moving a file out of a workspace, by descriptor. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"

/* Takes `name` out of the directory `fd` into `quarantine_fd`, under a new name that is never an existing one: regular
 * files with their content, symbolic links as a file that holds where they led, directories where both lie on one
 * filesystem. No file arrives executable, but a directory keeps what is in it; who has it open has an empty one that is gone.
 * The new name, or NULL and errno. */
const char *quarantine_take(struct arena *arena, int fd, const char *name, int quarantine_fd);

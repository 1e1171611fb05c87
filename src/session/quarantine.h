/* Moving a file out of a workspace, by descriptor. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"

/* Takes `name` out of the directory `fd` into `quarantine_fd`, under a new name that is never an existing one: regular
 * files with their content, symbolic links as a file that holds where they led, directories with what is in them. No file arrives
 * executable, but in a directory what is in it may be; who has it open has an empty one that is gone. What has a second name and
 * what lies on another filesystem is copied, as far as there is room, which so becomes less: the rest is removed.
 * The new name, or NULL and errno. */
const char *quarantine_take(struct arena *arena, int fd, const char *name, int quarantine_fd, size_t *room);

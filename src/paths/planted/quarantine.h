/* Moving a file out of a workspace, by descriptor, to a directory `quarantine` in cordon's data with one directory for
 * each check. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"

struct cordon_error;

/* Takes `name` out of the directory `fd` into `quarantine_fd`, under a new name that is never an existing one: regular
 * files with their content, symbolic links as a file that holds where they led, directories with what is in them. No
 * file arrives executable; in a directory, what is in it is copied. `room` is how many bytes may arrive and becomes
 * less: what there is no room for is removed. The new name, or NULL and errno. */
const char *quarantine_take(struct arena *arena, int fd, const char *name, int quarantine_fd, size_t *room);

/* Makes it harmless where it lies, which needs no space: removed, or else emptied and without any right. 0, or -1 and
 * errno. */
int quarantine_disarm(int fd, const char *name) must_check;

/* Before a command starts: makes a directory that quarantine_open() can use when the filesystem is full. */
int quarantine_reserve(const char *data_dir, struct cordon_error *err) must_check;
/* The directory for one check, or -1. What the oldest checks took is removed where there are more than 128:
 * *ret_dropped of them. */
int quarantine_open(const char *data_dir, const char *id, unsigned *ret_dropped) must_check;

/* The configuration's files on disk: have they changed, and what do they say. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "config/config.h"

/* What tells one state of a file from another. */
struct config_stamp {
	int problem;                    /* 0, ENOENT where it is missing, or why it cannot be looked at */
	uint64_t device, inode;
	int64_t size, modified_ns, changed_ns;
};

/* Where a file is; borrowed. */
struct config_place {
	enum config_layer layer;
	int directory_fd;               /* of a project: the workspace; else AT_FDCWD */
	const char *name;               /* to be opened */
	const char *path;               /* for display */
	const char *kind;               /* what it is, for them; NULL: "the configuration" */
};

void config_stat(const struct config_place *place, struct config_stamp *ret_stamp);
bool config_stamp_same(const struct config_stamp *a, const struct config_stamp *b);
/* So recent that another change might leave the same stamp. */
bool config_stamp_is_fresh(const struct config_stamp *stamp);

/* The text, to be free()d; *ret_text is NULL where there is no file. `config_invalid`, naming the file: what is not a
 * regular file, too large, or could have been written by others. Never blocks, never follows a project's link. */
int config_read(const struct config_place *place, struct config_stamp *ret_stamp, char **ret_text, size_t *ret_length,
                struct cordon_error *err) must_check;

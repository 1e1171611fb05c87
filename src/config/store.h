/* The store, for those who must name its files or look into a snapshot: the public calls that tell about the
 * configuration, and tests. */
#pragma once
#include "config/rows.h"
#include "config/config.h"

/* Each may be NULL: there is none. */
struct config_files {
	const char *system, *user;
	const char *only;               /* instead of both, and it must be there */
	const char *home;               /* what ~/ is replaced with */
};

/* Without a directory of that name nothing is kept, and so there is nothing to fall back to. The names are copied. */
int config_store_open_files(const char *data_dir, const struct config_files *files, struct config_store **ret_store,
                            struct cordon_error *err) must_check;
/* Borrowed from the store. */
const struct config_files *config_store_files(const struct config_store *store);

/* KEY_MAX values each, borrowed from the snapshot: what is in force, and what would be without any file. */
const struct config_value *config_snapshot_values(const struct config *config);
const struct config_value *config_snapshot_defaults(const struct config *config);
/* The [[session]] of a layer. */
struct config_block;
const struct config_block *config_snapshot_blocks(const struct config *config, enum config_layer layer,
                                                  size_t *ret_count);
/* Its [credentials.NAME] or [[gateway]]. */
const struct config_block *config_snapshot_tables(const struct config *config, enum config_layer layer,
                                                  enum config_section section, size_t *ret_count);
/* Which file a layer was read from: where one that became bad was kept; NULL: none. */
const char *config_snapshot_file(const struct config *config, enum config_layer layer);

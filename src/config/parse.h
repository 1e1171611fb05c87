/* One file's text into values, row by row. */
#pragma once
#include "config/rows.h"

#define CONFIG_LIST_MAX 4096            /* entries of one list, rules of one file */
#define CONFIG_BLOCKS_MAX 256           /* [[session]] of one file */

/* What the reading of a file needs to know; borrowed. */
struct config_reader {
	struct arena *arena;            /* everything that is read lives in it */
	const char *file;               /* the name for messages */
	const char *home;               /* what ~/ is replaced with, absolute; or NULL */
};

/* A [[session]], a [credentials.NAME] or a [[gateway]]. */
struct config_block {
	const char *match;              /* or the name */
	const char *file;
	const struct toml_value *at;
	struct config_value values[KEY_MAX];
};

struct config_file {
	struct config_value values[KEY_MAX];
	struct config_block *blocks;
	size_t block_count;
	struct config_block *credentials, *gateways;
	size_t credential_count, gateway_count;
};

int config_parse(const struct config_reader *reader, const char *text, size_t length, struct config_file *ret_file,
                 struct cordon_error *err) must_check;

/* One value, as the row wants it; leaves `file` and `at` of *ret_value alone. */
int config_value_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                      struct config_value *ret_value, struct cordon_error *err) must_check;

/* The same for `policy.rules`. */
int config_rules_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                      struct config_value *ret_value, struct cordon_error *err) must_check;

/* The same for values that are tables (tables.c). */
int config_variables_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                          struct config_value *value, struct cordon_error *err) must_check;
int config_addresses_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                          struct config_value *value, struct cordon_error *err) must_check;
int config_groups_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                       struct config_value *value, struct cordon_error *err) must_check;
/* Parts of them: a string without NUL and control characters; HOST:PORT in its one form; and what to say of another
 * type. Returns -1. */
int config_text_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                     struct cordon_error *err) must_check;
int config_host_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                     const char **ret_entry, struct cordon_error *err) must_check;
int config_refuse_type(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                       struct cordon_error *err);

/* A glob with its ~/ resolved. `at` is a string without control characters. */
int config_expand_glob(const struct config_reader *reader, const struct toml_value *at, const char **ret_glob,
                       struct cordon_error *err) must_check;

/* `config_invalid` at this value, with "did you mean" where a word is near enough. Returns -1. */
int config_fail_word(struct cordon_error *err, const char *file, const struct toml_value *at, const char *word,
                     const struct strings *words, const char *what);

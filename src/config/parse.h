/* One file's text into values, row by row. */
#pragma once
#include "config/rows.h"

#define CONFIG_LIST_MAX 4096            /* entries of one list, rules of one file */
#define CONFIG_BLOCKS_MAX 256           /* [[session]] of one file */

/* What the reading of a file needs to know; borrowed. */
struct config_reader {
	struct arena *arena;            /* everything that is read lives in it */
	const char *file;               /* the name for messages */
	const char *home;               /* what ~/ stands for, absolute; or NULL */
};

/* A [[session]]. */
struct config_block {
	const char *match;
	const struct toml_value *at;
	struct config_value values[KEY_MAX];
};

struct config_file {
	struct config_value values[KEY_MAX];
	struct config_block *blocks;
	size_t block_count;
};

int config_parse(const struct config_reader *reader, const char *text, size_t length, struct config_file *ret_file,
                 struct cordon_error *err) must_check;

/* One value, as the row wants it; leaves `file` and `at` of *ret_value alone. */
int config_value_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                      struct config_value *ret_value, struct cordon_error *err) must_check;

/* The same for `policy.rules`. */
int config_rules_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                      struct config_value *ret_value, struct cordon_error *err) must_check;

/* A glob with its ~/ resolved. `at` is a string without control characters. */
int config_expand_glob(const struct config_reader *reader, const struct toml_value *at, const char **ret_glob,
                       struct cordon_error *err) must_check;

/* `config_invalid` at this value, with "did you mean" where a word is near enough. Returns -1. */
int config_fail_word(struct cordon_error *err, const char *file, const struct toml_value *at, const char *word,
                     const struct strings *words, const char *what);

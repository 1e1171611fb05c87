/* The rows of include/cordon-config.def as data, and what one file says about each. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/toml.h"
#include "cordon-internal.h"
#include "policy/rules.h"

enum config_type {
#define CONFIG_TYPE(id, must_be) CONFIG_TYPE_##id,
#include "cordon-config.def"
	CONFIG_TYPE_MAX
};
extern const char *const config_type_texts[CONFIG_TYPE_MAX];

enum config_section {
#define CONFIG_SECTION(name, in_session, help, example) SECTION_##name,
#include "cordon-config.def"
	SECTION_MAX
};
extern const char *const config_section_names[SECTION_MAX];
extern const bool config_section_in_session[SECTION_MAX];
/* There are any number of tables with these keys, which are no settings in force by themselves. */
static inline bool config_section_repeats(enum config_section section)
{
	return section == SECTION_credentials || section == SECTION_gateway;
}

enum config_narrows {
	NARROWS_ANY,
	NARROWS_SAME,
	NARROWS_FALSE,
	NARROWS_LESS,
	NARROWS_SUBSET,
	NARROWS_WITHIN,
	NARROWS_ADD,
	NARROWS_JUDGE,
	NARROWS_MAX
};

enum config_reload { RELOAD_NEXT_COMMAND, RELOAD_NEXT_START, RELOAD_MAX };

enum config_key {
#define CONFIG(section, key, ...) KEY_##section##_##key,
#include "cordon-config.def"
	KEY_MAX
};

struct config_row {
	enum config_section section;
	const char *key, *path;                 /* "driver", "sandbox.driver" */
	enum config_type type;
	const char *values;                     /* separated by spaces */
	uint64_t least, most;
	const char *fallback, *example;         /* TOML */
	enum config_narrows narrows;
	bool project;
	enum config_reload reload;
};
extern const struct config_row config_rows[KEY_MAX];

/* The words of a row's `values`. 0, or -1 when memory is short. */
int config_row_words(struct arena *arena, const struct config_row *row, struct strings *ret_words) must_check;

/* The limits that limits.required can have; ended by a NULL. */
struct config_limit {
	const char *name;
	enum cordon_wall wall;
};
extern const struct config_limit config_limits[];

/* What a file says about a row. */
struct config_value {
	const char *file;                       /* NULL: nothing was said, and the rest is the default */
	const struct toml_value *at;
	const char *also;                       /* of what adds up: where the rest came from; or NULL */
	bool implied;                           /* by another key: it narrows if it can, and is no mistake where it
	                                           cannot */
	uint64_t number;                        /* 0 or 1; an ENUM's index; of a list: the word in its place from 1,
	                                           or 0 */
	const char *text;                       /* PATH */
	struct strings list;                    /* paths normalised, variables as NAME=VALUE */
	struct rule *rules;
	size_t rule_count;
};

/* FILE:LINE:COLUMN, or "default". NULL when memory is short. */
const char *config_where(struct arena *arena, const struct config_value *value);

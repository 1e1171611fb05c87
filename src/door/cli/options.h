/* The options as data, and the words of a command line sorted into options and operands. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "cordon-internal.h"
#include "door/cli/command.h"

enum option_actor { OPTION_REQUEST, OPTION_DOOR };
enum option_completion { COMPLETE_NOTHING, COMPLETE_FILE, COMPLETE_DIRECTORY, COMPLETE_VARIABLE, COMPLETE_VALUES };
enum option_group {
	GROUP_PLACE,
	GROUP_GRANTS,
	GROUP_ENVIRONMENT,
	GROUP_LIMITS,
	GROUP_SESSIONS,
	GROUP_JOBS,
	GROUP_FILES,
	GROUP_LEDGER,
	GROUP_WALLS,
	GROUP_OUTPUT,
	GROUP_MAX
};

struct option {
	char letter;                    /* 0 where there is none */
	const char *name;               /* without dashes; "" where there is only a letter */
	const char *metavar;            /* NULL for a flag */
	enum option_actor actor;
	bool repeats;
	enum option_completion completion;
	const char *values;             /* for COMPLETE_VALUES, separated by spaces */
	unsigned commands;              /* ON_… bits */
	enum option_group group;
	const char *help, *more;
};

extern const struct option options_table[];
extern const size_t options_table_count;
extern const char *const option_group_names[GROUP_MAX];

struct option_given {
	const struct option *option;
	const char *value;              /* "true" for a flag; borrowed from the words */
};

struct options {
	struct option_given *given;
	size_t given_count;
	const char **operands;          /* ended by NULL; borrowed from the words */
	size_t operand_count;
};

/* Options are `--name value`, `--name=value`, `-c value`, flags alone. They end at `--`; for commands that start a
 * program also at the first word that is no option (for `job start` the first after that). To be released with
 * options_free() when it succeeded. */
int options_parse(enum command_id command, char **words, struct options *ret_options, struct cordon_error *err)
	must_check;
void options_free(struct options *options);

/* The value given last to the option of this name ("c" for -c), or NULL. */
const char *options_value(const struct options *options, const char *name);
static inline bool options_flag(const struct options *options, const char *name)
{
	return options_value(options, name) != NULL;
}

/* The same without the first operand, which named what is to be done. Borrows all of it. */
static inline struct options options_after_action(const struct options *options)
{
	return (struct options){ options->given, options->given_count, options->operands + 1,
		                 options->operand_count - 1 };
}

/* Did the caller mean to ask for JSON? For words that could not be parsed. */
bool options_want_json(char **words);

/* How the option is written: "-h, --help", "--read PATH". Cut if `size` is too small. */
void option_spell(const struct option *option, char *text, size_t size);

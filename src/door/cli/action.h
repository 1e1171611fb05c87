/* Commands that have actions: `cordon COMMAND ACTION [OPERAND]`. One row each; the words are sorted and checked
 * here. */
#pragma once
#include "door/cli/cli.h"

struct action {
	const char *name;
	const char *operand;            /* what it must be given, as an error calls it, or "" for what it may be;
	                                   NULL: nothing. A line for each */
	bool takes_settings;            /* the options that go to the library with a request */
	const char *options;            /* further ones that it takes: their names, separated by spaces */
	/* Says what there is to say, and returns 0, a negative number, or the exit status of an answer that is no. */
	int (*act)(struct cordon *cordon, const struct options *options, const char *operand, struct cordon_error *err);
};

/* Returns the exit status. */
int action_run(enum command_id command, const struct action *actions, size_t count, char **words);

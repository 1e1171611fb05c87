/* Commands that have actions: `cordon COMMAND ACTION [OPERAND]`. One row each; the words are sorted and checked here. */
#pragma once
#include "door/cli.h"

struct action {
	const char *name;
	const char *operand;            /* what it must be given, as an error calls it; NULL: nothing */
	bool takes_settings;            /* the options that go to the library with a request */
	const char *options;            /* the door's own that only some actions take: their names, separated by spaces */
	/* Says what there is to say, and returns 0 or a negative number. */
	int (*act)(struct cordon *cordon, const struct options *options, const char *operand, struct cordon_error *err);
};

/* Returns the exit status. */
int action_run(enum command_id command, const struct action *actions, size_t count, char **words);

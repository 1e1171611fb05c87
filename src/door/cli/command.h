/* The commands of the program, as data. */
#pragma once
#include <stddef.h>

enum command_id {
#define COMMAND(id, ...) COMMAND_##id,
#include "door/cli/commands.def"
#undef COMMAND
	COMMAND_MAX
};

/* Bits, for what several commands share. */
enum {
#define COMMAND(id, ...) ON_##id = 1u << COMMAND_##id,
#include "door/cli/commands.def"
#undef COMMAND
};

struct command {
	const char *name;
	const char *operands;   /* a line for each form */
	const char *summary;
	const char *text;
	const char *examples;   /* pairs of lines: the command, what it is for */
};

extern const struct command commands[COMMAND_MAX];

/* The command of this name, or COMMAND_MAX. */
enum command_id command_find(const char *name);
/* The name closest to `word`, or NULL. */
const char *command_nearest(const char *word);

/* Each gets the words after its name, ended by NULL, and returns the exit status. */
#define COMMAND(id, name, function, ...) int function(char **words);
#include "door/cli/commands.def"
#undef COMMAND

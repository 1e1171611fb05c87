/* The table of commands (commands.def) and how to find one. It knows no function, so that the program which makes the
 * man page can use it without the library. */
#include "door/cli/command.h"

#include <string.h>

#include "base/text.h"

const struct command commands[COMMAND_MAX] = {
#define COMMAND(id, name, function, operands, summary, text, examples) \
	[COMMAND_##id] = { name, operands, summary, text, examples },
#include "door/cli/commands.def"
#undef COMMAND
};

enum command_id command_find(const char *name)
{
	enum command_id id = 0;
	while (id < COMMAND_MAX && strcmp(commands[id].name, name))
		id++;
	return id;
}

const char *command_nearest(const char *word)
{
	const char *names[COMMAND_MAX];
	for (int id = 0; id < COMMAND_MAX; id++)
		names[id] = commands[id].name;
	return text_nearest(word, names, COMMAND_MAX);
}

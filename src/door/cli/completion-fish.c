/* The completion script for fish: one `complete` line for each command and each option. */
#include <stdio.h>

#include "door/cli/completion.h"
#include "door/cli/options.h"

/* Inside single quotes. */
static void print_escaped(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
}

static void print_commands_of(const struct option *option)
{
	printf("complete -c cordon -n '__fish_seen_subcommand_from");
	for (int id = 0; id < COMMAND_MAX; id++)
		if (option->commands & 1u << id)
			printf(" %s", commands[id].name);
	putchar('\'');
}

static void print_value(const struct option *option)
{
	static const char *const actions[] = {
		[COMPLETE_NOTHING] = " -x",
		[COMPLETE_FILE] = " -r -F",
		[COMPLETE_DIRECTORY] = " -x -a '(__fish_complete_directories)'",
		[COMPLETE_VARIABLE] = " -x -a '(set -nx)'",
		[COMPLETE_VALUES] = " -x -a '",
	};
	if (!option->metavar)
		return;
	fputs(actions[option->completion], stdout);
	if (option->completion == COMPLETE_VALUES)
		printf("%s'", option->values);
}

static void print_option(const struct option *option)
{
	print_commands_of(option);
	if (option->letter)
		printf(" -s %c", option->letter);
	if (*option->name)
		printf(" -l %s", option->name);
	print_value(option);
	printf(" -d '");
	print_escaped(option->help);
	printf("'\n");
}

static void print_program(void)
{
	printf("complete -c cordon -n '__fish_seen_subcommand_from run profile' -x -a '(__fish_complete_subcommand "
	       "--fcs-skip=2");
	for (size_t i = 0; i < options_table_count; i++) {
		const struct option *option = &options_table[i];
		if (option->metavar && option->letter)
			printf(" -%c", option->letter);
		if (option->metavar && *option->name)
			printf(" --%s", option->name);
	}
	printf(")'\n");
}

void completion_print_fish(void)
{
	static const struct {
		enum command_id command;
		const char *operands;
	} actions[] = {
		{ COMMAND_SESSION, "new list show pause resume end rm" },
		{ COMMAND_JOB, "start list poll tail wait kill" },
		{ COMMAND_MANIFEST, "check" },
		{ COMMAND_CONFIG, "show check docs" },
		{ COMMAND_FILE, "read write edit list find grep stat remove mkdir rename send" },
		{ COMMAND_APPROVALS, "list approve deny" },
		{ COMMAND_AUDIT, "tail show query verify export" },
		{ COMMAND_NET, "list" },
		{ COMMAND_URL, "check" },
		{ COMMAND_COMPLETION, "bash zsh fish" },
	};
	printf("# fish completion for cordon; made by: cordon completion fish\n\ncomplete -c cordon -f\n");
	for (int id = 0; id < COMMAND_MAX; id++) {
		printf("complete -c cordon -n __fish_use_subcommand -a %s -d '", commands[id].name);
		print_escaped(commands[id].summary);
		printf("'\n");
	}
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		const char *name = commands[actions[i].command].name;
		printf("complete -c cordon -n '__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from %s' "
		       "-a '%s'\n",
		       name, actions[i].operands, actions[i].operands);
	}
	printf("complete -c cordon -n '__fish_seen_subcommand_from manifest' -F\n");
	print_program();
	for (size_t i = 0; i < options_table_count; i++)
		print_option(&options_table[i]);
}

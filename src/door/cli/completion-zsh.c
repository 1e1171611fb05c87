/* The completion script for zsh: one _arguments call for each command. */
#include <stdio.h>
#include <string.h>

#include "door/cli/completion.h"
#include "door/cli/options.h"

/* Inside single quotes, in a specification where brackets and colons mean something. */
static void print_escaped(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\'", stdout);
		else if (strchr("[]:\\", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void print_value(const struct option *option)
{
	static const char *const actions[] = {
		[COMPLETE_NOTHING] = " ",
		[COMPLETE_FILE] = "_files",
		[COMPLETE_DIRECTORY] = "_files -/",
		[COMPLETE_VARIABLE] = "_parameters -g \"*export*\"",
		[COMPLETE_VALUES] = "",
	};
	if (!option->metavar)
		return;
	putchar(':');
	print_escaped(option->metavar);
	printf(":%s", actions[option->completion]);
	if (option->completion == COMPLETE_VALUES)
		printf("(%s)", option->values);
}

static void print_spelling(const struct option *option, const char *dashes, const char *name, const char *equals)
{
	printf(" \\\n\t\t\t'%s%s%s%s[", option->repeats ? "*" : "", dashes, name, option->metavar ? equals : "");
	print_escaped(option->help);
	putchar(']');
	print_value(option);
	putchar('\'');
}

static void print_command(int id)
{
	static const char *const operands[COMMAND_MAX] = {
		[COMMAND_RUN] = "'(-)1:program:_command_names -e' '*::argument:_normal'",
		[COMMAND_PROFILE] = "'(-)1:program:_command_names -e' '*::argument:_normal'",
		[COMMAND_SESSION] = "'1:action:(new list show pause resume end rm)' '2:id: '",
		[COMMAND_JOB] = "'1:action:(start list poll tail wait kill)' '2:job: '",
		[COMMAND_MANIFEST] = "'1:action:(check)' '2:manifest:_files'",
		[COMMAND_APPROVALS] = "'1:action:(list approve deny)' '2:card: '",
		[COMMAND_AUDIT] = "'1:action:(tail show query verify export)' '2:id: '",
		[COMMAND_NET] = "'1:action:(list)'",
		[COMMAND_URL] = "'1:action:(check)' '2:url:_urls'",
		[COMMAND_COMPLETION] = "'1:shell:(bash zsh fish)'",
		[COMMAND_HELP] = "'1:command:->command'",
	};
	printf("\t\t%s)\n\t\t\t_arguments -S", commands[id].name);
	for (size_t i = 0; i < options_table_count; i++) {
		const struct option *option = &options_table[i];
		char letter[] = { option->letter, '\0' };
		if (!(option->commands & 1u << id))
			continue;
		if (option->letter)
			print_spelling(option, "-", letter, "");
		if (*option->name)
			print_spelling(option, "--", option->name, "=");
	}
	if (operands[id])
		printf(" \\\n\t\t\t%s", operands[id]);
	printf("\n\t\t\t;;\n");
}

void completion_print_zsh(void)
{
	printf("#compdef cordon\n# zsh completion for cordon; made by: cordon completion zsh\n\n"
	       "_cordon() {\n\tlocal curcontext=$curcontext state state_descr line\n\ttypeset -A opt_args\n"
	       "\tlocal -a names=(\n");
	for (int id = 0; id < COMMAND_MAX; id++) {
		printf("\t\t'%s:", commands[id].name);
		print_escaped(commands[id].summary);
		printf("'\n");
	}
	printf("\t)\n"
	       "\t_arguments -C '(- *)'{-h,--help}'[list the commands]' '(- *)--version[print the version]' \\\n"
	       "\t\t'1:command:->command' '*::argument:->argument'\n"
	       "\tif [[ $state == argument ]]; then\n"
	       "\t\tcase $words[1] in\n");
	for (int id = 0; id < COMMAND_MAX; id++)
		print_command(id);
	printf("\t\tesac\n\tfi\n"
	       "\t[[ $state == command ]] && _describe -t commands command names\n"
	       "}\n\n"
	       "if [[ $funcstack[1] == _cordon ]]; then\n\t_cordon \"$@\"\nelse\n\tcompdef _cordon cordon\nfi\n");
}

/* `cordon help` and `cordon version`. Help is made from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "door/cli/cli.h"
#include "door/cli/report.h"

#define WIDTH 80
#define OPTION_INDENT 26

/* From column `column` on, breaking lines at spaces and indenting what follows. */
static void print_wrapped(const char *text, int column, int indent)
{
	while (*text) {
		int length = (int)strcspn(text, " ");
		if (column > indent && column + 1 + length > WIDTH) {
			printf("\n%*s", indent, "");
			column = indent;
		} else if (column > indent) {
			putchar(' ');
			column++;
		}
		printf("%.*s", length, text);
		column += length;
		text += length;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void print_option(const struct option *option)
{
	char spelled[64];
	option_spell(option, spelled, sizeof(spelled));
	int column = printf("  %s%s", option->letter ? "" : "    ", spelled);
	if (column >= OPTION_INDENT - 1) {
		putchar('\n');
		column = 0;
	}
	printf("%*s", OPTION_INDENT - column, "");
	char help[256];
	snprintf(help, sizeof(help), "%s%s", option->help, option->repeats ? "; may be repeated" : "");
	print_wrapped(help, OPTION_INDENT, OPTION_INDENT);
}

static void print_options(enum command_id command)
{
	int group = -1;
	for (size_t i = 0; i < options_table_count; i++) {
		const struct option *option = &options_table[i];
		if (!(option->commands & 1u << command))
			continue;
		if (group != (int)option->group)
			printf("\n%s:\n", option_group_names[option->group]);
		group = (int)option->group;
		print_option(option);
	}
}

static void print_examples(const char *examples)
{
	if (*examples)
		printf("\nExamples:\n");
	for (bool is_command = true; *examples; is_command = !is_command) {
		int length = (int)strcspn(examples, "\n");
		printf(is_command ? "  %.*s\n" : "      %.*s\n", length, examples);
		examples += length + 1;
	}
}

static void print_usage(const struct command *command)
{
	const char *form = command->operands, *lead = "Usage:";
	do {
		int length = (int)strcspn(form, "\n");
		printf("%s cordon %s%s%.*s\n", lead, command->name, length ? " " : "", length, form);
		form += length + (form[length] == '\n');
		lead = "      ";
	} while (*form);
}

static void print_overview(void)
{
	printf("cordon runs commands inside a boundary that the kernel enforces.\n\n"
	       "Usage: cordon COMMAND [OPTION]...\n\nCommands:\n");
	for (int id = 0; id < COMMAND_MAX; id++)
		printf("  %-12s%s\n", commands[id].name, commands[id].summary);
	print_examples(commands[COMMAND_RUN].examples);
	printf("\nSee cordon help COMMAND, and the manual page cordon(1).\n");
}

void cli_print_help(enum command_id id)
{
	if (id == COMMAND_MAX) {
		print_overview();
		return;
	}
	print_usage(&commands[id]);
	putchar('\n');
	print_wrapped(commands[id].text, 0, 0);
	print_options(id);
	print_examples(commands[id].examples);
}

int cli_help(char **words)
{
	struct options options;
	int status;
	if (!cli_options(COMMAND_HELP, words, 1, &options, &status))
		return status;
	status = 0;
	enum command_id id = options.operand_count ? command_find(options.operands[0]) : COMMAND_MAX;
	if (options.operand_count && id == COMMAND_MAX) {
		struct cordon_error err;
		const char *nearest = command_nearest(options.operands[0]);
		fail(&err, CORDON_E_INVALID_REQUEST, 0, options.operands[0], "unknown command");
		fail_remedy(&err, nearest ? "did you mean cordon help %s?" : "see cordon help%s",
		            nearest ? nearest : "");
		report_error(&err, false);
		status = STATUS_USAGE;
	} else {
		cli_print_help(id);
	}
	options_free(&options);
	return status;
}

int cli_version(char **words)
{
	struct options options;
	int status;
	if (!cli_options(COMMAND_VERSION, words, 0, &options, &status))
		return status;
	printf("cordon %s\n", CORDON_VERSION);
	options_free(&options);
	return 0;
}

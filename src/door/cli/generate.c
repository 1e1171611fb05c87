/* Not part of the program: run by the build, where it builds, to make the files that are installed beside the program.
 *
 *     generate man docs/cordon.1.in    the man page: lines @COMMANDS@ and @OPTIONS@ of the template are replaced by
 *                                      what the tables say, and @VERSION@ anywhere by the version
 *     generate bash | zsh | fish       the completion scripts */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "door/cli/completion.h"
#include "door/cli/options.h"
#include "door/cli/roff.h"

static void print_values(const struct option *option)
{
	if (option->completion != COMPLETE_VALUES)
		return;
	printf("Values: ");
	for (const char *at = option->values; *at;) {
		char value[64];
		size_t length = strcspn(at, " ");
		snprintf(value, sizeof(value), "%.*s", (int)length, at);
		roff_print(value);
		at += length;
		at += strspn(at, " ");
		printf(*at ? ", " : ".\n");
	}
}

static void print_spelling(const struct option *option)
{
	printf(".TP\n");
	if (option->letter)
		printf("\\fB\\-%c\\fR%s", option->letter, *option->name ? ", " : "");
	if (*option->name) {
		printf("\\fB\\-\\-");
		roff_print(option->name);
		printf("\\fR");
	}
	if (option->metavar) {
		printf(" \\fI");
		roff_print(option->metavar);
		printf("\\fR");
	}
	printf("\n");
}

static void print_option(const struct option *option)
{
	print_spelling(option);
	roff_print_sentence(option->help);
	printf("%s.\n", option->repeats ? "; may be repeated" : "");
	if (*option->more) {
		roff_print(option->more);
		printf("\n");
	}
	print_values(option);
}

static void print_options(void)
{
	int group = -1;
	for (size_t i = 0; i < options_table_count; i++) {
		if (group != (int)options_table[i].group) {
			printf(".SS ");
			roff_print(option_group_names[options_table[i].group]);
			printf("\n");
		}
		group = (int)options_table[i].group;
		print_option(&options_table[i]);
	}
}

static void print_commands(void)
{
	for (int id = 0; id < COMMAND_MAX; id++) {
		const char *form = commands[id].operands;
		printf(".SS ");
		roff_print(commands[id].name);
		printf("\n");
		do {
			char line[200];
			size_t length = strcspn(form, "\n");
			snprintf(line, sizeof(line), "%.*s", (int)length, form);
			printf(".br\n\\fBcordon %s\\fR ", commands[id].name);
			roff_print(line);
			printf("\n");
			form += length + (form[length] == '\n');
		} while (*form);
		printf(".PP\n");
		roff_print(commands[id].text);
		printf("\n");
	}
}

static void print_line(const char *line)
{
	static const char mark[] = "@VERSION@";
	if (!strcmp(line, "@OPTIONS@\n")) {
		print_options();
		return;
	}
	if (!strcmp(line, "@COMMANDS@\n")) {
		print_commands();
		return;
	}
	if (!strcmp(line, "@SETTINGS@\n")) {
		roff_print_settings();
		return;
	}
	for (const char *at; (at = strstr(line, mark)); line = at + sizeof(mark) - 1)
		printf("%.*s%s", (int)(at - line), line, CORDON_VERSION);
	fputs(line, stdout);
}

static int print_page(const char *path)
{
	char line[1024];
	FILE *template = fopen(path, "re");
	if (!template) {
		perror(path);
		return EXIT_FAILURE;
	}
	while (fgets(line, sizeof(line), template))
		print_line(line);
	int failed = ferror(template);
	fclose(template);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	int status = EXIT_FAILURE;
	if (argc == 3 && !strcmp(argv[1], "man"))
		status = print_page(argv[2]);
	else if (argc == 2 && !strcmp(argv[1], "bash"))
		status = (completion_print_bash(), EXIT_SUCCESS);
	else if (argc == 2 && !strcmp(argv[1], "zsh"))
		status = (completion_print_zsh(), EXIT_SUCCESS);
	else if (argc == 2 && !strcmp(argv[1], "fish"))
		status = (completion_print_fish(), EXIT_SUCCESS);
	else
		fprintf(stderr, "usage: generate man TEMPLATE | bash | zsh | fish\n");
	return fflush(stdout) ? EXIT_FAILURE : status;
}

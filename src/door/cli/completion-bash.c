/* The completion script for bash. It needs nothing but bash; bash-completion, where loaded, completes the arguments of
 * the program that run starts. bash cuts words at "=", so `--view=sys` comes in three. */
#include <stdio.h>
#include <string.h>

#include "door/cli/completion.h"
#include "door/cli/options.h"

/* The words by which an option is called, each after a space or between bars. */
static void print_spellings(const struct option *option, const char *before, const char *between)
{
	if (option->letter)
		printf("%s-%c", before, option->letter);
	if (option->letter && *option->name)
		printf("%s", between);
	if (*option->name)
		printf("%s--%s", option->letter ? "" : before, option->name);
}

static void print_options_of(int command)
{
	printf("\t%s) options='", commands[command].name);
	for (size_t i = 0; i < options_table_count; i++)
		if (options_table[i].commands & 1u << command)
			print_spellings(&options_table[i], " ", " ");
	printf("' ;;\n");
}

static void print_valued(void)
{
	printf("\tlocal valued='");
	for (size_t i = 0; i < options_table_count; i++)
		if (options_table[i].metavar)
			print_spellings(&options_table[i], " ", " ");
	printf(" '\n");
}

static void print_value_case(const struct option *option)
{
	static const char *const actions[] = {
		[COMPLETE_FILE] = "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$current\")",
		[COMPLETE_DIRECTORY] = "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$current\")",
		[COMPLETE_VARIABLE] = "mapfile -t COMPREPLY < <(compgen -e -- \"$current\")",
	};
	if (option->completion == COMPLETE_NOTHING)
		return;
	print_spellings(option, "\t", "|");
	if (option->completion == COMPLETE_VALUES)
		printf(") mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$current\")", option->values);
	else
		printf(") %s", actions[option->completion]);
	printf(" ;;\n");
}

static void print_value_function(void)
{
	printf("_cordon_value() {\n\tlocal current=$2\n\tcase $1 in\n");
	for (size_t i = 0; i < options_table_count; i++)
		print_value_case(&options_table[i]);
	printf("\tesac\n}\n\n");
}

static void print_names(void)
{
	for (int id = 0; id < COMMAND_MAX; id++)
		printf("%s%s", id ? " " : "", commands[id].name);
}

static const char head[] =
	"_cordon_program() {\n"
	"\tif declare -F _comp_command_offset >/dev/null; then\n"
	"\t\t_comp_command_offset \"$1\"\n"
	"\telif declare -F _command_offset >/dev/null; then\n"
	"\t\t_command_offset \"$1\"\n"
	"\telif ((COMP_CWORD == $1)); then\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -c -- \"$2\")\n"
	"\telse\n"
	"\t\tcompopt -o filenames\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$2\")\n"
	"\tfi\n"
	"}\n\n";

static const char walk[] =
	"\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	"\t\tword=${COMP_WORDS[i]}\n"
	"\t\tif [[ $expecting ]]; then\n"
	"\t\t\t[[ $word == '=' ]] || expecting=\n"
	"\t\telif [[ $word == -- ]]; then\n"
	"\t\t\tstart=$((i + 1))\n"
	"\t\t\tbreak\n"
	"\t\telif [[ $word == -* ]]; then\n"
	"\t\t\t[[ $valued == *\" $word \"* ]] && expecting=$word\n"
	"\t\telse\n"
	"\t\t\tstart=$i\n"
	"\t\t\tbreak\n"
	"\t\tfi\n"
	"\tdone\n"
	"\t[[ $expecting && $current == '=' ]] && current=\n"
	"\tif [[ $start ]]; then\n"
	"\t\tcase $command in\n"
	"\t\trun | profile) _cordon_program \"$start\" \"$current\" ;;\n"
	"\t\tmanifest) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$current\") ;;\n"
	"\t\tesac\n"
	"\telif [[ $expecting ]]; then\n"
	"\t\t_cordon_value \"$expecting\" \"$current\"\n"
	"\telif [[ $current == -* ]]; then\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
	"\telse\n"
	"\t\tcase $command in\n"
	"\t\trun | profile) _cordon_program \"$COMP_CWORD\" \"$current\" ;;\n"
	"\t\tsession) mapfile -t COMPREPLY < <(compgen -W 'new list show pause resume end rm' -- \"$current\") ;;\n"
	"\t\tjob) mapfile -t COMPREPLY < <(compgen -W 'start list poll tail wait kill' -- \"$current\") ;;\n"
	"\t\tmanifest) mapfile -t COMPREPLY < <(compgen -W 'check' -- \"$current\") ;;\n"
	"\t\tapprovals) mapfile -t COMPREPLY < <(compgen -W 'list approve deny' -- \"$current\") ;;\n"
	"\t\tnet) mapfile -t COMPREPLY < <(compgen -W 'list' -- \"$current\") ;;\n"
	"\t\turl) mapfile -t COMPREPLY < <(compgen -W 'check' -- \"$current\") ;;\n"
	"\t\taudit) mapfile -t COMPREPLY < <(compgen -W 'tail show query verify export' -- \"$current\") ;;\n"
	"\t\tcompletion) mapfile -t COMPREPLY < <(compgen -W 'bash zsh fish' -- \"$current\") ;;\n"
	"\t\thelp) mapfile -t COMPREPLY < <(compgen -W \"$names\" -- \"$current\") ;;\n"
	"\t\tesac\n"
	"\tfi\n"
	"}\n\n"
	"complete -F _cordon cordon\n";

void completion_print_bash(void)
{
	printf("# bash completion for cordon; made by: cordon completion bash\n\n");
	print_value_function();
	fputs(head, stdout);
	printf("_cordon() {\n"
	       "\tlocal current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}\n"
	       "\tlocal options= expecting= start= word i names='");
	print_names();
	printf("'\n");
	print_valued();
	printf("\tCOMPREPLY=()\n"
	       "\tif ((COMP_CWORD == 1)); then\n"
	       "\t\tmapfile -t COMPREPLY < <(compgen -W \"$names --help --version\" -- \"$current\")\n"
	       "\t\treturn\n"
	       "\tfi\n"
	       "\tcase $command in\n");
	for (int id = 0; id < COMMAND_MAX; id++)
		print_options_of(id);
	printf("\tesac\n");
	fputs(walk, stdout);
}

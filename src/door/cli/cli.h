/* What the commands share. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "door/cli/command.h"
#include "door/cli/options.h"

/* Sorts the words of a command, and handles invalid ones and --help. True: continue with *ret_options. False: the
 * command is done, with *ret_status. */
bool cli_options(enum command_id command, char **words, size_t operands_max, struct options *ret_options,
                 int *ret_status) must_check;

/* A path that was named from the directory `here`, or with NULL from the current one; "." is that itself, "~" and
 * "~/…" lie in HOME. */
#define CLI_PATH_SIZE 8192
int cli_absolute(const char *named, const char *here, char ret_path[CLI_PATH_SIZE],
                 struct cordon_error *err) must_check;

/* cordon_open() with what --config names; for one command, or for as many as come. */
int cli_open_for(const struct options *options, bool one_command, struct cordon **ret_cordon,
                 struct cordon_error *err) must_check;
int cli_open(const struct options *options, struct cordon **ret_cordon, struct cordon_error *err) must_check;

/* Prints the help of a command, or of the program for COMMAND_MAX. */
void cli_print_help(enum command_id command);

/* The ways to call cordon as a shell. */
#pragma once
#include <stdbool.h>

#define SHELL_NAME "cordon-shell"

/* Are these words what an agent calls a shell by: `-c SCRIPT`, with flags such as -l and -i before? */
bool shell_is_meant(char *const *words);
/* The words that follow the program's name: one is a script, whatever it begins with; else they are bash's. */
int shell_by_name(int count, char **words);

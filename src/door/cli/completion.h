/* Completion scripts, made from the tables. */
#pragma once

void completion_print_bash(void);
void completion_print_zsh(void);
void completion_print_fish(void);

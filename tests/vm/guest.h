/* What the commands of guest.c are made of. Each takes its words, ended by NULL, and returns the status. */
#pragma once

__attribute__((noreturn)) void give_up(const char *what);       /* with errno */
long checked(long result, const char *what);                    /* gives up at a negative result */
__attribute__((noreturn)) void become(char **words);

int world(char **words);
int look(char **words);
int list(char **words);
int left(char **words);
int kill_when_marked(char **words);
int terminal(char **words);

/* Files of a configuration on top of each other, given as text. */
#pragma once
#include "config/resolve.h"

extern struct arena arena;

int stack_setup(void **state);
int stack_teardown(void **state);
int stack_parse(const char *name, const char *text, struct config_file *file, struct cordon_error *err);

/* Up to three files on top of each other; NULL: there is none. */
int stack_for(const char *session, const char *system, const char *user, const char *project, struct config *config,
              struct cordon_error *err);

/* What they come to; the test fails where they are refused. */
struct config stacked(const char *system, const char *user, const char *project);

/* They are refused: at this place, and the reason or the advice contains `part`. */
void refused_at(const char *system, const char *user, const char *project, const char *where, const char *part);

/* Jobs as text or JSON; the argument is a job, or a list, as the library returns it. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cordon-internal.h"

/* Its command as one would type it. To be free()d; NULL when memory is short. */
char *job_command_line(const json_t *job);
bool job_is_running(const json_t *job);
bool job_is_lost(const json_t *job);
/* Does this very process run one of the list's? */
bool job_runs_here(const json_t *list);
/* The exit status of a job that has ended, as `cordon run` has it. */
int job_status(const json_t *job);

/* 15, TERM or SIGTERM. */
int job_signal(const char *text, int *ret_signal, struct cordon_error *err) must_check;

/* Of the text. */
void job_print_started(FILE *out, const char *text, bool json);
void job_print(const json_t *job);
void job_print_list(const json_t *list);

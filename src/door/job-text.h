/* Jobs for people, and for programs as they ask; the argument is a job, or a list, as the library tells it. */
#pragma once
#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cordon.h"

#define JOB_ID_SIZE 64

void job_id(const char *job, char ret_id[JOB_ID_SIZE]);
bool job_is_running(const char *job);
bool job_is_lost(const char *job);
/* Does this very process run one of the list's? */
bool job_runs_here(const char *list);
/* The exit status of a job that has ended, as `cordon run` has it. */
int job_status(const char *job);

/* 15, TERM or SIGTERM. */
int job_signal(const char *text, int *ret_signal, struct cordon_error *err) must_check;

void job_print_started(FILE *out, const char *job, bool json);
void job_print(const char *job);
void job_print_list(const char *list);

/* The signals that end the process that runs a job: it ends the job first. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "cordon-internal.h"

/* *ret_fd is readable once one came; the caller closes it. Once in a process. */
int job_signals_open(int *ret_fd, struct cordon_error *err) must_check;
/* True: one came since it was asked last. */
bool job_signals_take(int fd);

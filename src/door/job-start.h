/* Starting a job from the command line. */
#pragma once
#include "door/options.h"

/* `cordon job start`: returns the exit status once the job runs, or does not. */
int job_start_detached(const struct options *options);

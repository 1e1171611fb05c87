/* Commands that a system has not. */
#pragma once
#include "door/cli/command.h"

/* Says so, and what to do instead; returns `status`. */
int missing_command(enum command_id command, const char *remedy, int status);

/* What the program itself has to say: errors, and remarks about a finished command. */
#pragma once
#include <stdbool.h>
#include <stdio.h>

#include "cordon.h"

/* Exit statuses of cordon's own. */
enum {
	STATUS_USAGE = 2,               /* of every command but run and profile */
	STATUS_TIMED_OUT = 124,
	STATUS_REFUSED = 125,
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
	STATUS_SIGNAL = 128,
};

/* Control and direction-changing characters, and what is not UTF-8, come out escaped. */
void report_untrusted(FILE *out, const char *text);

/* One line of JSON on standard output, or text on standard error. */
void report_error(const struct cordon_error *err, bool json);
/* The same on a stream of the caller's. */
void report_error_to(FILE *out, const struct cordon_error *err, bool json);
/* The exit status of `cordon run` for this error. */
int report_error_status(const struct cordon_error *err);

/* The command's output could not be written, by this errno: says so, and returns the exit status. */
int report_unwritten(int error, bool json);

/* The exit status of `cordon run` for a command that ran. */
int report_result_status(const struct cordon_result *result);

/* For standard error, and only if there is something to say. The flags tell which streams were written as the library
 * kept them, so that the caller missed what was cut. */
void report_remarks(FILE *out, const struct cordon_result *result, bool stdout_as_kept, bool stderr_as_kept);
/* The same, but not about the command: to be said in any case, since it is said once. */
void report_note(FILE *out, const struct cordon_result *result);

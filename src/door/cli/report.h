/* What the program itself has to say: errors, and remarks about a finished command. */
#pragma once
#include <stdbool.h>
#include <stdio.h>

#include "cordon-internal.h"

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

/* Where remarks go. */
struct report_place {
	bool stdout_as_kept, stderr_as_kept;    /* what the library kept was written, so that the caller missed what
	                                           was cut */
	bool is_terminal;                       /* standard error is */
	bool is_shared;                         /* standard error is standard output */
	bool is_for_agent;                      /* a model reads it: no word of what the policy hides */
};
/* Of an agent's session? */
bool report_is_for_agent(const char *session);
/* For standard error, and only if there is something to report: everything about a command that failed, and to a
 * terminal. Elsewhere, about a command that succeeded, only what cordon did to its files, what is missing of its
 * output, and walls that were not held; and nothing where standard error is its standard output. */
void report_remarks(FILE *out, const struct cordon_result *result, const struct report_place *place);
/* The same, but not about the command: printed in any case, since it is reported only once. */
void report_note(FILE *out, const struct cordon_result *result);

/* A command of the caller's that writes a secret: its standard output is taken, bounded in bytes and time. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum credential_end {
	CREDENTIAL_ENDED,               /* by itself; `status` says how */
	CREDENTIAL_NOT_STARTED,         /* `status` is the errno */
	CREDENTIAL_TOO_LONG,            /* killed when the time was over */
	CREDENTIAL_TOO_MUCH,            /* killed when `size` was full */
};

struct credential_output {
	char *bytes;
	size_t size, length;
	int status;                     /* the exit status, or a signal as a negative number */
};

/* Executes argv[0], a path, with empty input and its messages discarded, in a process group that is killed in the
 * end. */
enum credential_end credential_execute(const char *const *argv, char *const *environment, uint64_t timeout_ms,
                                       struct credential_output *output);

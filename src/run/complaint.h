/* What a failed command printed, searched for the words that programs use when a limit was met: the kernel tells nobody else of most
 * refusals. Nothing is decided by this; it makes a remark. */
#pragma once
#include <stddef.h>

enum complaint {
	COMPLAINT_NONE,
	COMPLAINT_PROCESSES,            /* EAGAIN of fork, clone or a thread */
	COMPLAINT_FILES,                /* EMFILE */
	COMPLAINT_SPACE,                /* ENOSPC, EDQUOT */
	COMPLAINT_MEMORY,               /* ENOMEM */
	COMPLAINT_MAX
};

/* The first row of the table that fits; `text` need not end by a NUL. */
enum complaint complaint_find(const char *text, size_t length);

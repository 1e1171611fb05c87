/* Searches the output of a failed command for the words that programs print when a limit was met: of most refusals,
 * the kernel informs only the program. No decision depends on it; it produces a remark. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum complaint {
	COMPLAINT_NONE,
	COMPLAINT_PROCESSES,            /* EAGAIN of fork, clone or a thread */
	COMPLAINT_FILES,                /* EMFILE */
	COMPLAINT_SPACE,                /* ENOSPC, EDQUOT */
	COMPLAINT_MEMORY,               /* ENOMEM */
	COMPLAINT_READ_ONLY,            /* EROFS: no limit, but a path that is not granted to be written */
	COMPLAINT_MAX
};

/* The first row of the table that fits; `text` need not end by a NUL. */
enum complaint complaint_find(const char *text, size_t length);

/* A file that the program says it could not open, find or write: the last path of the first such line that is absolute
 * or begins with "../". Only paths of plain characters, in quotation marks also with blanks, since the path comes out
 * as part of an option. */
struct complaint_path {
	char path[256];
	bool is_write;                  /* it could not be written */
};
bool complaint_find_path(const char *text, size_t length, struct complaint_path *ret_path);

/* The next word after *at, which starts at 0, of the lines that say that something cannot be changed, moved or removed.
 * False: there are no more. Words that are too long are left out. */
bool complaint_next_word(const char *text, size_t length, size_t *at, char *ret_word, size_t size);

/* The host and port that a program says it could not reach. */
struct complaint_connection {
	char host[256];
	int port;
};
bool complaint_find_connection(const char *text, size_t length, struct complaint_connection *ret_connection);

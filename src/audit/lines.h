/* The lines of one file, one after the other, in bounded memory. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/seal.h"
#include "base/cleanup.h"

struct lines {
	int fd;                         /* borrowed */
	char *buffer;
	size_t start, end;              /* what of the buffer is not handed out yet */
	uint64_t offset;                /* of `start` in the file */
};

struct line {
	const char *text;               /* valid until the next call; NULL where the line is longer than any row */
	uint64_t length, offset;
	bool ended;                     /* by a newline; only the last line may not be */
	unsigned char hash[SEAL_HASH_SIZE];     /* where there is no text */
};

/* 0, or -1 when memory is short. */
int lines_open(struct lines *lines, int fd, uint64_t offset) must_check;
void lines_close(struct lines *lines);
/* 1 and a line, 0 at the end, -1 and errno. At the end it may be called again, to see whether more has come: then
 * without the line that has not ended, if `whole` is set. */
int lines_next(struct lines *lines, bool whole, struct line *ret_line) must_check;

/* The row of a line, to be released with json_decref(); NULL: it is not one JSON object, or memory is short. */
json_t *line_parse(const struct line *line);

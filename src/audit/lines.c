/* Bounded reading of lines: see lines.h. A line that does not fit the buffer is read past, and only its length and hash
 * are kept. */
#include "audit/lines.h"

#include <errno.h>
#include <string.h>

#include "base/sha256.h"
#include "audit/ledger.h"

#define CAPACITY (LEDGER_LINE_MAX + SEAL_LENGTH + 1)

int lines_open(struct lines *lines, int fd, uint64_t offset)
{
	*lines = (struct lines){ .fd = fd, .offset = offset, .buffer = malloc(CAPACITY) };
	return lines->buffer ? 0 : -1;
}

void lines_close(struct lines *lines)
{
	free(lines->buffer);
	lines->buffer = NULL;
}

/* More bytes behind what is there: how many, 0 at the end of the file, -1 and errno. */
static ssize_t fill(struct lines *lines)
{
	ssize_t got;
	if (lines->start) {
		memmove(lines->buffer, lines->buffer + lines->start, lines->end - lines->start);
		lines->end -= lines->start;
		lines->start = 0;
	}
	do
		got = pread(lines->fd, lines->buffer + lines->end, CAPACITY - lines->end,
		            (off_t)(lines->offset + lines->end));
	while (got < 0 && errno == EINTR);
	if (got > 0)
		lines->end += (size_t)got;
	return got;
}

static void take(struct lines *lines, size_t length)
{
	lines->start += length;
	lines->offset += length;
}

/* The buffer is full of one line: hashes it to its end. */
static int pass_over(struct lines *lines, struct line *ret_line)
{
	crypto_hash_sha256_state state;
	ssize_t got = 1;
	crypto_hash_sha256_init(&state);
	*ret_line = (struct line){ .offset = lines->offset };
	while (got > 0 && !ret_line->ended) {
		const char *begin = lines->buffer + lines->start;
		const char *newline = memchr(begin, '\n', lines->end - lines->start);
		size_t length = newline ? (size_t)(newline - begin) : lines->end - lines->start;
		sha256_update(&state, begin, length);
		ret_line->length += length;
		ret_line->ended = newline;
		take(lines, length + (newline != NULL));
		if (!newline)
			got = fill(lines);
	}
	sha256_final(&state, ret_line->hash);
	return got < 0 ? -1 : 1;
}

int lines_next(struct lines *lines, bool whole, struct line *ret_line)
{
	for (size_t searched = 0;;) {
		size_t available = lines->end - lines->start;
		const char *begin = lines->buffer + lines->start;
		const char *newline = memchr(begin + searched, '\n', available - searched);
		if (newline) {
			size_t length = (size_t)(newline - begin);
			*ret_line = (struct line){ begin, length, lines->offset, .ended = true };
			take(lines, length + 1);
			return 1;
		}
		if (available == CAPACITY)
			return pass_over(lines, ret_line);
		searched = available;
		ssize_t got = fill(lines);
		if (got < 0)
			return -1;
		if (got)
			continue;
		if (!available || whole)
			return 0;
		*ret_line = (struct line){ .text = lines->buffer, .length = available, .offset = lines->offset };
		take(lines, available);
		return 1;
	}
}

json_t *line_parse(const struct line *line)
{
	json_t *row =
		line->text ? json_loadb(line->text, line->length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL) : NULL;
	if (json_is_object(row))
		return row;
	json_decref(row);
	return NULL;
}

/* The kinds of secrets that are known by their shape: the table (kinds.def) and the checks behind it. Pure.
 *
 * A check is called where the anchor of its row was found and says whether there is a secret. Each reads a bounded
 * number of bytes from there, and what several would read is remembered (struct secret_memory), so a stream of near
 * misses costs a small constant factor and no more. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum secret_body {
	SECRET_ALNUM,                   /* letters and digits */
	SECRET_WORD,                    /* and _ */
	SECRET_TOKEN,                   /* and _ - */
	SECRET_DASHED,                  /* letters, digits and - */
	SECRET_UPPER,                   /* capital letters and digits */
	SECRET_SLASHED,                 /* letters, digits, + and / */
	SECRET_BODY_MAX,
};

enum {
	SECRET_EXACT = 1,
	SECRET_LEFT = 2,
	SECRET_RIGHT = 4,
	SECRET_DIGIT = 8,
};

enum secret_answer {
	SECRET_NO,                      /* no secret begins here */
	SECRET_MORE,                    /* undecided until more bytes are known */
	SECRET_FOUND,
};

struct secret_span {
	size_t from, to;
};

/* What checks have found out about one text; all zero at first. Only positions after 0 are remembered, so 0 is none. */
struct secret_memory {
	struct secret_span runs[SECRET_BODY_MAX];       /* bytes that are all of this body */
	struct secret_span aws;         /* no AWS secret begins in it where a run does */
	size_t jwt_header[4];           /* by the start modulo 4: a run that ends here is no header */
	size_t jwt_end;                 /* a header ends here, and what follows it is: */
	enum secret_answer jwt_answer;  /* never SECRET_FOUND */
	uint64_t steps;                 /* bytes that were looked at one by one */
};

/* Bytes to judge. Byte `length` is unknown unless `is_final`. */
struct secret_text {
	const unsigned char *bytes;
	size_t length;
	bool is_final;
	struct secret_memory *memory;   /* for checks; not NULL */
};

struct secret_row;
/* `at`: where the anchor is. Sets the span on SECRET_FOUND, and `ret_start` on SECRET_MORE. */
typedef enum secret_answer secret_check(const struct secret_row *row, const struct secret_text *text, size_t at,
                                        size_t *ret_start, size_t *ret_end);

struct secret_row {
	const char *name, *prefix, *anchor;
	size_t prefix_length, back;
	enum secret_body body;
	size_t min, max;
	unsigned flags;
	secret_check *check;
	const char *example;
};

#define SECRET_ROWS 64                  /* at most; the table test counts them */
extern const struct secret_row secret_rows[];
extern const size_t secret_row_count;

/* The shapes that are more than a prefix and a run of bytes. */
secret_check shape_run, shape_pem, shape_named, shape_aws, shape_discord, shape_telegram, shape_brave, shape_jwt,
        shape_gitlab;

bool secret_in_body(enum secret_body body, unsigned char byte);
/* How many bytes from `at` are of this body, at most `max`. */
size_t secret_run(const struct secret_text *text, size_t at, enum secret_body body, size_t max);
/* May a word begin at `at`? Not after a letter, a digit or an underscore, except the last byte of an escape sequence:
 * `\n` in JSON, or a terminal's colour. */
bool secret_begins(const struct secret_text *text, size_t at);
/* A placeholder such as XXXXXXXX or 000000 has few different bytes. */
bool secret_varies(const unsigned char *bytes, size_t length);

/* The first byte of the end of `text` that may begin a secret of which not even the anchor is complete; text->length
 * if none. */
size_t secret_tail(const struct secret_text *text);

/* True if the table has a row with this name. */
bool secret_kind_known(const char *name);

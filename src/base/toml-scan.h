/* TOML's tokens: what is between the brackets, dots and commas. For toml.c only. */
#pragma once
#include "base/toml.h"

struct toml_scan {
	const char *file, *text, *at;
	const char *end;                /* of the text, or its first byte that is not UTF-8 */
	bool cut;                       /* the latter */
	/* Decoded text goes here, one after the other, each ended by a NUL. As large as the text and one: a string has
	 * a quote on either side, and a bare word is not the next word's neighbour, so none needs more than it took. */
	char *pool;
	struct cordon_error *err;
};

/* Reports the text at `where` as an error. Returns -1. If the end of a cut text was reached, that is reported
 * instead. */
int toml_refuse(struct toml_scan *scan, const char *where, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* "'x'", "the end of the line", "U+00E9": the text at this position, for messages. */
const char *toml_found(const struct toml_scan *scan, char buffer[32]);

void toml_skip_blanks(struct toml_scan *scan);
/* True if there was a newline, which is then behind. */
bool toml_skip_newline(struct toml_scan *scan);
bool toml_skip(struct toml_scan *scan, char expected);

/* May this stand in a key that is not quoted? */
bool toml_is_bare(char c);
/* One part of a key: bare or quoted. */
int toml_scan_key(struct toml_scan *scan, const char **ret_text, size_t *ret_length) must_check;
/* A value that is neither array nor table: sets its type and what belongs to that. */
int toml_scan_scalar(struct toml_scan *scan, struct toml_value *value) must_check;
/* The same for one that is not quoted. */
int toml_scan_word(struct toml_scan *scan, struct toml_value *value) must_check;

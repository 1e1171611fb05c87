/* Planted secrets: examples of every row of the table, encoded in every way. */
#pragma once
#include <stddef.h>

/* What the encoders return is the caller's to free. */
struct encoded {
	char *bytes;
	size_t length;
};

enum encoding {
	ENCODE_RAW,
	ENCODE_URL_ALL,                 /* every byte escaped */
	ENCODE_URL,                     /* what is not a letter, digit, - _ . ~ */
	ENCODE_BASE64,
	ENCODE_BASE64_URL,              /* URL-safe, unpadded */
	ENCODE_BASE64_WRAPPED,          /* lines of 76 */
	ENCODE_BASE64_MIME,             /* lines of 64, CR LF */
	ENCODE_HEX,
	ENCODE_HEX_UPPER,
	ENCODE_HEX_WRAPPED,             /* lines of 60, as xxd -p */
	ENCODE_MAX,
};

struct encoded encode(enum encoding encoding, const char *bytes, size_t length);
/* Is it one of the ways to write base64, or digits? */
const char *encoding_layer(enum encoding encoding);

/* Prefix and example of a row. */
char *secret_example(size_t row);

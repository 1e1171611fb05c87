/* Between scan.c and layers.c: one level of decoding. */
#pragma once
#include "secrets/scan.h"

struct scan_level {
	const struct scan_level *outer; /* NULL: the block itself */
	enum secret_layer layer;        /* what was undone to get here */
	const uint32_t *positions;      /* of each symbol of the encoding in the outer level */
	size_t first;                   /* the symbol that the first byte begins with */
	size_t depth;
};

/* Where bytes of a level are in the block. */
size_t scan_level_start(const struct scan_level *level, size_t at);
size_t scan_level_end(const struct scan_level *level, size_t end);

/* A secret that is not complete may begin here. */
void scan_hold(struct secret_scanner *scanner, const struct scan_level *level, size_t at);
/* Searches the text of a level and what is encoded in it. */
void scan_text(struct secret_scanner *scanner, const struct scan_level *level, const struct secret_text *text);
/* Undoes each encoding in the text where there may be one, and searches what comes out. */
void scan_encoded(struct secret_scanner *scanner, const struct scan_level *level, const struct secret_text *text);

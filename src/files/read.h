/* Content of files: a part of a text, by lines or bytes; and a whole file to be sent. */
#pragma once
#include <stdint.h>

#include "files/place.h"

#define FILES_VERSION_SIZE 33

struct files_read {
	uint64_t offset;                /* the first line, from 1, or the first byte, from 0 */
	uint64_t limit;                 /* how many; 0: as many as fit */
	bool bytes;                     /* both count bytes */
	bool numbers;                   /* each line begins with its number */
	const struct files_screen *screen;      /* or NULL */
};

struct files_content {
	char *data;                     /* to be free()d; ended by a NUL that is not counted */
	size_t length;
	uint64_t size;                  /* of the whole file */
	uint64_t first, lines;          /* the first line of it, and how many, the last one may be cut */
	uint64_t next;                  /* `offset` for what follows; 0: nothing does */
	bool cut;                       /* the last line is longer than what was returned of it */
	bool is_utf8;
	char version[FILES_VERSION_SIZE];       /* of the content, for a later write or edit; "" where the file is
	                                           too large */
	const char *type;               /* of files_send(): such as "image/png" */
	char note[80];                  /* why there is nothing; or "" */
};

/* Refuses what is not a regular file, and what is binary, as `invalid_request`. */
int files_read(const struct files_place *place, const struct files_read *how, struct files_content *ret_content,
               struct cordon_error *err) must_check;
/* The whole of it, whatever it is, up to FILES_SEND_MAX. What is no text is refused as `leak_blocked` where a secret
 * in it would be replaced. */
int files_send(const struct files_place *place, const struct files_screen *screen, struct files_content *ret_content,
               struct cordon_error *err) must_check;

/* The whole of a regular file of at most `max` bytes, to be free()d. */
int files_load(const struct files_place *place, size_t max, char **ret_data, size_t *ret_length,
               struct cordon_error *err) must_check;
/* Does it begin as no text does? */
bool files_is_binary(const char *data, size_t length);
void files_version(const char *data, size_t length, char ret_version[FILES_VERSION_SIZE]);

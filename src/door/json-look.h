/* Looking things up in JSON that is known to be valid (the library's own), in place. A value is a pointer to where its
 * text begins; NULL goes through every function as "nothing there". */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* The value of a member of an object. */
const char *json_look_member(const char *object, const char *key);
/* The first element of an array, and the one after an element. */
const char *json_look_first(const char *array);
const char *json_look_next(const char *element);

/* How long its text is. */
size_t json_look_length(const char *value);

bool json_look_true(const char *value);
long json_look_number(const char *value);
/* The text of a string, cut to `size`; "" where it is none. Returns `text`. */
const char *json_look_text(const char *value, char *text, size_t size);

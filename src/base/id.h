/* Names for what is recorded: 26 characters that sort by the time they were made (a ULID: 48 bits of milliseconds, 80
 * random bits, Crockford's base 32). Unique, not secret. */
#pragma once
#include <stdint.h>

#define ID_SIZE 27      /* with the NUL */

void id_make(char ret_id[ID_SIZE]);
/* When it was made, in milliseconds since 1970; 0: this is no id. */
uint64_t id_time_ms(const char *id);

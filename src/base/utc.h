/* Time as text, without asking for the time zone. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define UTC_SIZE 72     /* more than "2026-01-31T12:34:56.789Z", whatever the year */
#define UTC_DATE_LENGTH 10

/* The date is the first UTC_DATE_LENGTH characters for the years 0 to 9999. */
void utc_text(int64_t seconds, unsigned milliseconds, char ret_text[UTC_SIZE]);
void utc_now(char ret_text[UTC_SIZE]);

/* "2026-01-31", or "2026-01-31T12:34:56Z" with or without a fraction of a second; nothing before the year 0 or after
 * 9999. Milliseconds since 1970. */
bool utc_parse(const char *text, int64_t *ret_ms);

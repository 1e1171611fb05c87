/* UTC as text: see utc.h. gmtime() would read the time zone's file first, which is no use for UTC. */
#include "base/utc.h"

#include <stdio.h>
#include <time.h>

struct date {
	int64_t year;
	unsigned month, day;
};

/* Days since 1970-01-01 to a date of the Gregorian calendar, which repeats every 400 years (146,097 days). */
static struct date civil(int64_t days)
{
	days += 719468; /* to 0000-03-01: a year that begins in March has its leap day last */
	int64_t era = (days >= 0 ? days : days - 146096) / 146097;
	unsigned day = (unsigned)(days - era * 146097);
	unsigned year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	day -= 365 * year + year / 4 - year / 100;
	unsigned month = (5 * day + 2) / 153;
	struct date date = { .day = day - (153 * month + 2) / 5 + 1, .month = month < 10 ? month + 3 : month - 9 };
	date.year = year + era * 400 + (date.month <= 2);
	return date;
}

void utc_text(int64_t seconds, unsigned milliseconds, char ret_text[UTC_SIZE])
{
	int64_t days = seconds / 86400 - (seconds % 86400 < 0);
	unsigned second = (unsigned)(seconds - days * 86400);
	struct date date = civil(days);
	snprintf(ret_text, UTC_SIZE, "%04lld-%02u-%02uT%02u:%02u:%02u.%03uZ", (long long)date.year, date.month, date.day,
	         second / 3600, second / 60 % 60, second % 60, milliseconds);
}

void utc_now(char ret_text[UTC_SIZE])
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	utc_text(now.tv_sec, (unsigned)(now.tv_nsec / 1000000), ret_text);
}

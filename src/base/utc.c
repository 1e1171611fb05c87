/* UTC as text: see utc.h. gmtime() would read the time zone's file first, which is no use for UTC. */
#include "base/utc.h"

#include <stdio.h>
#include <string.h>
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

static void put_digits(char *at, unsigned number, int digits)
{
	for (; digits; number /= 10)
		at[--digits] = (char)('0' + number % 10);
}

void utc_text(int64_t seconds, unsigned milliseconds, char ret_text[UTC_SIZE])
{
	int64_t days = seconds / 86400 - (seconds % 86400 < 0);
	unsigned second = (unsigned)(seconds - days * 86400);
	struct date date = civil(days);
	/* Every row of the ledger has one, and its head: printf() takes ten times as long. */
	if (date.year >= 0 && date.year <= 9999 && milliseconds <= 999) {
		const struct { unsigned at, number; int digits;
		} parts[] = {
			{ 0, (unsigned)date.year, 4 }, { 5, date.month, 2 },        { 8, date.day, 2 },
			{ 11, second / 3600, 2 },      { 14, second / 60 % 60, 2 }, { 17, second % 60, 2 },
			{ 20, milliseconds, 3 },
		};
		memcpy(ret_text, "0000-00-00T00:00:00.000Z", sizeof("0000-00-00T00:00:00.000Z"));
		for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
			put_digits(ret_text + parts[i].at, parts[i].number, parts[i].digits);
		return;
	}
	snprintf(ret_text, UTC_SIZE, "%04lld-%02u-%02uT%02u:%02u:%02u.%03uZ", (long long)date.year, date.month,
	         date.day, second / 3600, second / 60 % 60, second % 60, milliseconds);
}

/* The inverse of civil(). */
static int64_t days_of(int64_t year, unsigned month, unsigned day)
{
	year -= month <= 2;
	int64_t era = (year >= 0 ? year : year - 399) / 400;
	unsigned of_era = (unsigned)(year - era * 400);
	unsigned of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Digits and marks as in the pattern; "0" is a digit. */
static bool looks_like(const char *text, const char *pattern)
{
	for (; *pattern; text++, pattern++)
		if (*pattern == '0' ? *text < '0' || *text > '9' : *text != *pattern)
			return false;
	return true;
}

static unsigned number_at(const char *text, int digits)
{
	unsigned number = 0;
	for (int i = 0; i < digits; i++)
		number = number * 10 + (unsigned)(text[i] - '0');
	return number;
}

bool utc_parse(const char *text, int64_t *ret_ms)
{
	unsigned second = 0, ms = 0;
	if (!looks_like(text, "0000-00-00"))
		return false;
	unsigned year = number_at(text, 4), month = number_at(text + 5, 2), day = number_at(text + 8, 2);
	int64_t days = days_of(year, month, day);
	/* A day that is not in the calendar comes back as another. */
	struct date date = civil(days);
	if (date.year != year || date.month != month || date.day != day)
		return false;
	const char *rest = text + UTC_DATE_LENGTH;
	if (*rest) {
		if (!looks_like(rest, "T00:00:00"))
			return false;
		unsigned hour = number_at(rest + 1, 2), minute = number_at(rest + 4, 2);
		second = number_at(rest + 7, 2);
		if (hour > 23 || minute > 59 || second > 59)
			return false;
		second += 60 * minute + 3600 * hour;
		rest += 9;
		if (*rest == '.') {
			unsigned weight = 100;
			for (rest++; *rest >= '0' && *rest <= '9'; rest++, weight /= 10)
				ms += weight * (unsigned)(*rest - '0');
			if (rest[-1] == '.')
				return false;
		}
		if (strcmp(rest, "Z"))
			return false;
	}
	*ret_ms = (days * 86400 + second) * 1000 + ms;
	return true;
}

void utc_now(char ret_text[UTC_SIZE])
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	utc_text(now.tv_sec, (unsigned)(now.tv_nsec / 1000000), ret_text);
}

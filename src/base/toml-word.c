/* TOML's values that are not quoted: true, false, numbers, dates and times. A word is taken whole, up to what cannot be
 * part of one, and then must be one of these whole. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/toml-scan.h"

/* How much of a word a message shows. */
#define SHOWN ((size_t)60)

/* What is left of a word. */
struct word {
	const char *at, *end;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool toml_is_bare(char c)
{
	return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' || c == '_';
}

static bool take(struct word *word, const char *any)
{
	if (word->at == word->end || !*word->at || !strchr(any, *word->at))
		return false;
	word->at++;
	return true;
}

static bool take_whole(struct word *word, const char *text)
{
	size_t length = strlen(text);
	if ((size_t)(word->end - word->at) != length || memcmp(word->at, text, length))
		return false;
	word->at = word->end;
	return true;
}

/* Exactly so many digits. */
static bool take_digits(struct word *word, unsigned count, unsigned *ret_number)
{
	unsigned number = 0;
	for (; count; count--, word->at++) {
		if (word->at == word->end || !is_digit(*word->at))
			return false;
		number = number * 10 + (unsigned)(*word->at - '0');
	}
	*ret_number = number;
	return true;
}

/* ---- Dates and times --------------------------------------------------------------------------------------------- */

static unsigned days_of(unsigned year, unsigned month)
{
	static const unsigned char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	return month == 2 && leap ? 29 : days[month - 1];
}

/* These return what is wrong, or NULL. */
static const char *take_date(struct word *word)
{
	unsigned year, month, day;
	if (!take_digits(word, 4, &year) || !take(word, "-") || !take_digits(word, 2, &month) || !take(word, "-") ||
	    !take_digits(word, 2, &day))
		return "a date is written YYYY-MM-DD";
	if (month < 1 || month > 12)
		return "there is no such month";
	return day < 1 || day > days_of(year, month) ? "that month has no such day" : NULL;
}

/* RFC 3339 has a second 60, for leap seconds. */
static const char *take_time(struct word *word)
{
	unsigned hour, minute, second;
	if (!take_digits(word, 2, &hour) || !take(word, ":") || !take_digits(word, 2, &minute) || !take(word, ":") ||
	    !take_digits(word, 2, &second))
		return "a time is written HH:MM:SS";
	if (hour > 23 || minute > 59 || second > 60)
		return "there is no such time of day";
	if (take(word, ".")) {
		if (!take(word, "0123456789"))
			return "a digit follows the point in a time";
		while (take(word, "0123456789"))
			;
	}
	return NULL;
}

static const char *take_offset(struct word *word)
{
	unsigned hours, minutes;
	if (take(word, "Zz"))
		return NULL;
	if (!take(word, "+-") || !take_digits(word, 2, &hours) || !take(word, ":") || !take_digits(word, 2, &minutes))
		return "a time ends there, or is followed by Z or an offset such as +HH:MM";
	return hours > 23 || minutes > 59 ? "there is no such offset" : NULL;
}

static const char *take_datetime(struct word *word)
{
	const char *wrong = NULL;
	bool dated = word->end - word->at < 3 || word->at[2] != ':';
	if (dated)
		wrong = take_date(word);
	if (wrong || (dated && word->at == word->end))
		return wrong;
	if (dated && !take(word, "Tt "))
		return "date and time are separated by a T or a space";
	wrong = take_time(word);
	if (!wrong && dated && word->at < word->end)
		wrong = take_offset(word);
	return wrong || word->at == word->end ? wrong : "something follows the date or time";
}

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

/* A digit, then digits and single underscores that stand between two. */
static bool take_number(struct word *word, const char *digits)
{
	if (!take(word, digits))
		return false;
	for (;;) {
		const char *before = word->at;
		take(word, "_");
		if (!take(word, digits)) {
			word->at = before;
			return true;
		}
	}
}

static bool value_of(const char *at, const char *end, unsigned base, bool negative, int64_t *ret_number)
{
	int64_t number = 0;
	for (; at < end; at++) {
		if (*at == '_')
			continue;
		int digit = is_digit(*at) ? *at - '0' : (*at | 0x20) - 'a' + 10;
		if (__builtin_mul_overflow(number, (int64_t)base, &number) ||
		    __builtin_add_overflow(number, negative ? -digit : digit, &number))
			return false;
	}
	*ret_number = number;
	return true;
}

/* strtod() uses the decimal point of the caller's locale; this is the C locale. */
static double double_of(const struct word *word, char *room)
{
	size_t length = 0;
	for (const char *at = word->at; at < word->end; at++)
		if (*at != '_')
			room[length++] = *at;
	room[length] = '\0';
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	double number = plain ? strtod_l(room, NULL, plain) : strtod(room, NULL);
	if (plain)
		freelocale(plain);
	return number;
}

static const char out_of_range[] = "is out of range: integers have 64 bits";

/* These return NULL, or what is wrong with the word; "" if it is no number at all. */
static const char *take_prefixed(struct word *word, struct toml_value *value)
{
	static const struct {
		char letter;
		unsigned base;
		const char *digits, *wrong;
	} bases[] = {
		{ 'x', 16, "0123456789abcdefABCDEF", "is not a hexadecimal number" },
		{ 'o', 8, "01234567", "is not an octal number" },
		{ 'b', 2, "01", "is not a binary number" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(bases); i++) {
		if (word->at[1] != bases[i].letter)
			continue;
		word->at += 2;
		const char *begin = word->at;
		if (!take_number(word, bases[i].digits) || word->at != word->end)
			return bases[i].wrong;
		value->type = TOML_INTEGER;
		return value_of(begin, word->end, bases[i].base, false, &value->integer) ? NULL : out_of_range;
	}
	return "";
}

static const char *take_decimal(struct word *word, struct toml_value *value, char *room)
{
	const char *begin = word->at;
	bool negative = *begin == '-', fraction = false;
	take(word, "+-");
	const char *digits = word->at;
	if (take_whole(word, "inf") || take_whole(word, "nan")) {
		value->type = TOML_FLOAT;
		value->number = *digits == 'i' ? __builtin_inf() : __builtin_nan("");
		value->number = negative ? -value->number : value->number;
		return NULL;
	}
	if (!take_number(word, "0123456789"))
		return "";
	if (*digits == '0' && word->at - digits > 1)
		return "begins with a 0; an octal number is written 0o17";
	const char *end = word->at;
	if (take(word, ".")) {
		fraction = true;
		if (!take_number(word, "0123456789"))
			return "has no digit after its point";
	}
	if (take(word, "eE")) {
		fraction = true;
		take(word, "+-");
		if (!take_number(word, "0123456789"))
			return "has no digit in its exponent";
	}
	if (word->at != word->end)
		return *word->at == '_' ? "has an underscore that is not between two digits" : "";
	value->type = fraction ? TOML_FLOAT : TOML_INTEGER;
	if (fraction)
		value->number = double_of(&(struct word){ begin, word->end }, room);
	return fraction || value_of(digits, end, 10, negative, &value->integer) ? NULL : out_of_range;
}

/* ---- Any word ---------------------------------------------------------------------------------------------------- */

static void skip_word(struct toml_scan *scan)
{
	while (scan->at < scan->end &&
	       (toml_is_bare(*scan->at) || *scan->at == '+' || *scan->at == '.' || *scan->at == ':'))
		scan->at++;
}

/* A date and a time may stand apart by one space. */
static void skip_time_apart(struct toml_scan *scan, const char *begin)
{
	struct word date = { begin, scan->at };
	if (scan->at - begin == 10 && !take_date(&date) && scan->end - scan->at > 1 && scan->at[0] == ' ' &&
	    is_digit(scan->at[1])) {
		scan->at++;
		skip_word(scan);
	}
}

/* Neither can be a number: four digits and a dash, two and a colon. */
static bool is_datetime(const struct word *word)
{
	size_t digits = 0, length = (size_t)(word->end - word->at);
	while (digits < length && is_digit(word->at[digits]))
		digits++;
	return digits < length && ((digits == 4 && word->at[4] == '-') || (digits == 2 && word->at[2] == ':'));
}

static int scan_datetime(struct toml_scan *scan, struct word word, struct toml_value *value)
{
	const char *begin = word.at;
	skip_time_apart(scan, begin);
	word.end = scan->at;
	size_t length = (size_t)(word.end - begin);
	const char *wrong = take_datetime(&word);
	if (wrong)
		return toml_refuse(scan, begin, "%.*s: %s", (int)(length < SHOWN ? length : SHOWN), begin, wrong);
	value->type = TOML_DATETIME;
	value->text = memcpy(scan->pool, begin, length);
	value->length = length;
	scan->pool[length] = '\0';
	scan->pool += length + 1;
	return 0;
}

int toml_scan_word(struct toml_scan *scan, struct toml_value *value)
{
	const char *begin = scan->at, *wrong;
	char found[32];
	skip_word(scan);
	struct word word = { begin, scan->at };
	size_t length = (size_t)(word.end - begin);
	int shown = (int)(length < SHOWN ? length : SHOWN);
	if (length == 0)
		return toml_refuse(scan, begin, "a value was expected, not %s", toml_found(scan, found));
	if (take_whole(&word, "true") || take_whole(&word, "false")) {
		value->type = TOML_BOOLEAN;
		value->boolean = *begin == 't';
		return 0;
	}
	if (is_datetime(&word))
		return scan_datetime(scan, word, value);
	wrong = length > 1 && *begin == '0' ? take_prefixed(&word, value) : "";
	if (wrong && !*wrong)
		wrong = take_decimal(&word, value, scan->pool);
	if (!wrong)
		return 0;
	if (*wrong)
		return toml_refuse(scan, begin, "%.*s %s", shown, begin, wrong);
	return toml_refuse(scan, begin, "%.*s is not a value; strings are quoted", shown, begin);
}

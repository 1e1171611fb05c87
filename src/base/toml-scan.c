/* TOML's words: keys and the four kinds of strings. What is not quoted is in toml-word.c. See toml-scan.h. */
#include "base/toml-scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "base/visible.h"

/* The end of a long name is what tells files apart, and the numbers after it must not be cut off. */
static int fail_at(struct cordon_error *err, const char *file, unsigned line, unsigned column, const char *reason)
{
	char subject[sizeof(err->subject)];
	size_t length = strlen(file), most = sizeof(subject) - 32;
	const char *shown = length > most ? file + (length - most) : file;
	shown += shown == file ? 0 : utf8_cut_head(shown, most);
	snprintf(subject, sizeof(subject), "%s%s:%u:%u", shown == file ? "" : "...", shown, line, column);
	return fail(err, CORDON_E_CONFIG_INVALID, 0, subject, "%s", reason);
}

int toml_fail(struct cordon_error *err, const char *file, const struct toml_value *value, const char *format, ...)
{
	char reason[sizeof(err->reason)];
	va_list args;
	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return fail_at(err, file, value->line, value->column, reason);
}

int toml_refuse(struct toml_scan *scan, const char *where, const char *format, ...)
{
	char reason[sizeof(scan->err->reason)];
	unsigned line = 1, column = 1;
	va_list args;
	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	if (scan->cut && (where >= scan->end || scan->at >= scan->end)) {
		where = scan->end;
		snprintf(reason, sizeof(reason), "the byte 0x%02x here is not UTF-8", (unsigned char)*where);
	}
	for (const char *at = scan->text; at < where; at++) {
		line += *at == '\n';
		column = *at == '\n' ? 1 : column + (((unsigned char)*at & 0xc0) != 0x80);
	}
	return fail_at(scan->err, scan->file, line, column, reason);
}

const char *toml_found(const struct toml_scan *scan, char buffer[32])
{
	if (scan->at == scan->end)
		return "the end of the file";
	uint32_t code = visible_next(scan->at, (size_t)(scan->end - scan->at)).code;
	if (code == '\n' || (code == '\r' && scan->end - scan->at > 1 && scan->at[1] == '\n'))
		return "the end of the line";
	if (code >= 0x20 && code < 0x7f)
		snprintf(buffer, 32, "'%c'", (char)code);
	else
		snprintf(buffer, 32, "%s U+%04X", code < 0xa0 ? "the control character" : "the character",
		         (unsigned)code);
	return buffer;
}

void toml_skip_blanks(struct toml_scan *scan)
{
	while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t'))
		scan->at++;
}

bool toml_skip(struct toml_scan *scan, char expected)
{
	if (scan->at == scan->end || *scan->at != expected)
		return false;
	scan->at++;
	return true;
}

bool toml_skip_newline(struct toml_scan *scan)
{
	if (scan->end - scan->at > 1 && scan->at[0] == '\r' && scan->at[1] == '\n')
		scan->at++;
	return toml_skip(scan, '\n');
}

/* ---- Strings ----------------------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t encode(uint32_t code, char out[4])
{
	static const struct {
		uint32_t below;
		unsigned char mark;
	} forms[] = { { 0x80, 0 }, { 0x800, 0xc0 }, { 0x10000, 0xe0 }, { 0x110000, 0xf0 } };
	size_t more = 0;
	while (code >= forms[more].below)
		more++;
	for (size_t i = more; i > 0; i--, code >>= 6)
		out[i] = (char)(0x80 | (code & 0x3f));
	out[0] = (char)(forms[more].mark | code);
	return more + 1;
}

/* After \u or \U. */
static int scan_code(struct toml_scan *scan, const char *escape, size_t digits, char **out)
{
	uint32_t code = 0;
	for (size_t i = 0; i < digits; i++, scan->at++) {
		int digit = scan->at < scan->end ? hex_digit(*scan->at) : -1;
		if (digit < 0)
			return toml_refuse(scan, escape, "\\%c is followed by %zu hexadecimal digits", escape[1],
			                   digits);
		code = code << 4 | (unsigned)digit;
	}
	if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return toml_refuse(scan, escape, "there is no character U+%04X", (unsigned)code);
	*out += encode(code, *out);
	return 0;
}

/* A backslash at the end of a line: it, the newline and all blank space after it are not there. */
static bool skip_folded_line(struct toml_scan *scan)
{
	const char *begin = scan->at;
	toml_skip_blanks(scan);
	if (!toml_skip_newline(scan)) {
		scan->at = begin;
		return false;
	}
	do
		toml_skip_blanks(scan);
	while (toml_skip_newline(scan));
	return true;
}

static int scan_escape(struct toml_scan *scan, bool many_lines, char **out)
{
	static const char letters[] = "btnfr\"\\", meanings[] = "\b\t\n\f\r\"\\";
	const char *escape = scan->at++;
	char letter = scan->at < scan->end ? *scan->at : '\0', found[32];
	const char *known = letter ? strchr(letters, letter) : NULL;
	if (known) {
		*(*out)++ = meanings[known - letters];
		scan->at++;
		return 0;
	}
	if (letter == 'u' || letter == 'U') {
		scan->at++;
		return scan_code(scan, escape, letter == 'u' ? 4 : 8, out);
	}
	if (many_lines && skip_folded_line(scan))
		return 0;
	toml_refuse(scan, escape,
	            "a backslash is followed by %s; known are \\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX \\UXXXXXXXX",
	            toml_found(scan, found));
	return fail_remedy(scan->err,
	                   "write the backslash twice, or the text in single quotes, where nothing is escaped");
}

/* One character of a string that is not a quote. */
static int scan_character(struct toml_scan *scan, const char *open, bool many_lines, char **out)
{
	char found[32];
	if (scan->at == scan->end)
		return toml_refuse(scan, open, "this string is not closed");
	if (*scan->at == '\\' && *open == '"')
		return scan_escape(scan, many_lines, out);
	if (many_lines && toml_skip_newline(scan)) {
		*(*out)++ = '\n';
		return 0;
	}
	unsigned char byte = (unsigned char)*scan->at;
	if (byte == '\n' || (byte == '\r' && scan->end - scan->at > 1 && scan->at[1] == '\n'))
		return toml_refuse(scan, open, "this string is not closed before the line ends");
	if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
		return toml_refuse(scan, scan->at, "%s is not allowed in a string without an escape",
		                   toml_found(scan, found));
	*(*out)++ = *scan->at++;
	return 0;
}

static int scan_string(struct toml_scan *scan, bool may_be_long, const char **ret_text, size_t *ret_length)
{
	const char *open = scan->at;
	char quote = *open, *text = scan->pool, *out = text;
	bool many_lines = may_be_long && scan->end - open >= 3 && open[1] == quote && open[2] == quote;
	scan->at += many_lines ? 3 : 1;
	if (many_lines)
		toml_skip_newline(scan);
	for (;;) {
		/* Up to two quotes may stand before the three that close. */
		size_t quotes = 0;
		while (quotes < (many_lines ? 5 : 1) && toml_skip(scan, quote))
			quotes++;
		size_t kept = quotes < (many_lines ? 3 : 1) ? quotes : quotes - (many_lines ? 3 : 1);
		memset(out, quote, kept);
		out += kept;
		if (kept != quotes)
			break;
		if (scan_character(scan, open, many_lines, &out) < 0)
			return -1;
	}
	*out = '\0';
	scan->pool = out + 1;
	*ret_text = text;
	*ret_length = (size_t)(out - text);
	return 0;
}

int toml_scan_key(struct toml_scan *scan, const char **ret_text, size_t *ret_length)
{
	const char *begin = scan->at;
	char found[32];
	if (begin < scan->end && (*begin == '"' || *begin == '\''))
		return scan_string(scan, false, ret_text, ret_length);
	while (scan->at < scan->end && toml_is_bare(*scan->at))
		scan->at++;
	size_t length = (size_t)(scan->at - begin);
	if (length == 0)
		return toml_refuse(scan, begin, "a key was expected, not %s", toml_found(scan, found));
	*ret_text = memcpy(scan->pool, begin, length);
	*ret_length = length;
	scan->pool[length] = '\0';
	scan->pool += length + 1;
	return 0;
}

int toml_scan_scalar(struct toml_scan *scan, struct toml_value *value)
{
	if (scan->at == scan->end || (*scan->at != '"' && *scan->at != '\''))
		return toml_scan_word(scan, value);
	value->type = TOML_STRING;
	return scan_string(scan, true, &value->text, &value->length);
}

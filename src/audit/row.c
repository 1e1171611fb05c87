/* A JSON scanner that keeps the texts of a few members: see row.h. It is strict, so that what it passes on can be
 * read by any parser; a test compares it with one. */
#include "audit/row.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

#define DEPTH_MAX 32

static const char *const member_names[] = {
	[ROW_KIND] = "row", [ROW_ID] = "id", [ROW_TIME] = "time", [ROW_SESSION] = "session", [ROW_PROGRAM] = "program",
	[ROW_OUTCOME] = "outcome", [ROW_DECISION] = "decision", [ROW_AUDIT_ID] = "audit_id",
};
_Static_assert(ARRAY_SIZE(member_names) == ROW_MEMBER_MAX, "every member has a name");

/* `at` goes forward; at the end every byte is '\0', which nothing accepts. */
struct scan {
	const char *at, *end;
};

static char peek(const struct scan *scan)
{
	return scan->at < scan->end ? *scan->at : '\0';
}

static bool accept(struct scan *scan, char c)
{
	if (scan->at == scan->end || *scan->at != c)
		return false;
	scan->at++;
	return true;
}

static void skip_space(struct scan *scan)
{
	while (scan->at < scan->end && memchr(" \t\r\n", *scan->at, 4))
		scan->at++;
}

static bool scan_escape(struct scan *scan)
{
	char c = peek(scan);
	if (!c || !memchr("\"\\/bfnrtu", c, 9))
		return false;
	scan->at++;
	for (int i = 0; c == 'u' && i < 4; i++, scan->at++)
		if (!peek(scan) || !memchr("0123456789abcdefABCDEF", peek(scan), 22))
			return false;
	return true;
}

static bool scan_string(struct scan *scan, struct row_text *ret_text)
{
	if (!accept(scan, '"'))
		return false;
	ret_text->bytes = scan->at;
	while (scan->at < scan->end) {
		unsigned char c = (unsigned char)*scan->at;
		ret_text->length = (size_t)(scan->at - ret_text->bytes);
		if (c == '"') {
			scan->at++;
			return true;
		}
		if (c < 0x20)
			return false;
		size_t length = c < 0x80 ? 1 : utf8_sequence(scan->at, (size_t)(scan->end - scan->at));
		if (!length)
			return false;
		scan->at += length;
		if (c == '\\' && !scan_escape(scan))
			return false;
	}
	return false;
}

static bool scan_digits(struct scan *scan)
{
	const char *begin = scan->at;
	while (peek(scan) >= '0' && peek(scan) <= '9')
		scan->at++;
	return scan->at > begin;
}

static bool scan_number(struct scan *scan)
{
	accept(scan, '-');
	if (!accept(scan, '0') && !scan_digits(scan))
		return false;
	if (accept(scan, '.') && !scan_digits(scan))
		return false;
	if (accept(scan, 'e') || accept(scan, 'E')) {
		if (!accept(scan, '+'))
			accept(scan, '-');
		return scan_digits(scan);
	}
	return true;
}

static bool scan_word(struct scan *scan)
{
	static const char *const words[] = { "true", "false", "null" };
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t length = strlen(words[i]);
		if ((size_t)(scan->end - scan->at) >= length && !memcmp(scan->at, words[i], length)) {
			scan->at += length;
			return true;
		}
	}
	return false;
}

static bool scan_value(struct scan *scan, int depth);

static bool scan_array(struct scan *scan, int depth)
{
	skip_space(scan);
	if (accept(scan, ']'))
		return true;
	do {
		if (!scan_value(scan, depth))
			return false;
	} while (accept(scan, ','));
	return accept(scan, ']');
}

static void keep(struct row *row, const struct row_text *key, const struct row_text *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(member_names); i++)
		if (!row->members[i].bytes && strlen(member_names[i]) == key->length &&
		    !memcmp(member_names[i], key->bytes, key->length))
			row->members[i] = *text;
}

/* `row` is NULL for all but the outermost. */
static bool scan_object(struct scan *scan, int depth, struct row *row)
{
	skip_space(scan);
	if (accept(scan, '}'))
		return true;
	do {
		struct row_text key = { 0 }, text = { 0 };
		skip_space(scan);
		if (!scan_string(scan, &key))
			return false;
		skip_space(scan);
		if (!accept(scan, ':'))
			return false;
		skip_space(scan);
		if (row && peek(scan) == '"') {
			if (!scan_string(scan, &text))
				return false;
			keep(row, &key, &text);
			skip_space(scan);
		} else if (!scan_value(scan, depth)) {
			return false;
		}
	} while (accept(scan, ','));
	return accept(scan, '}');
}

/* With the space around it. */
static bool scan_value(struct scan *scan, int depth)
{
	struct row_text text;
	skip_space(scan);
	bool good = false;
	char c = peek(scan);
	if (c == '"')
		good = scan_string(scan, &text);
	else if ((c == '{' || c == '[') && depth < DEPTH_MAX && accept(scan, c))
		good = c == '{' ? scan_object(scan, depth + 1, NULL) : scan_array(scan, depth + 1);
	else if (c == '-' || (c >= '0' && c <= '9'))
		good = scan_number(scan);
	else
		good = scan_word(scan);
	skip_space(scan);
	return good;
}

bool row_scan(const char *line, size_t length, struct row *ret_row)
{
	struct scan scan = { line, line + length };
	struct row row = { 0 };
	skip_space(&scan);
	if (!accept(&scan, '{') || !scan_object(&scan, 1, &row))
		return false;
	skip_space(&scan);
	if (scan.at != scan.end)
		return false;
	*ret_row = row;
	return true;
}

/* git's configuration syntax, read as git reads it (its config.c): see git-syntax.h.
 *
 * Names are section.subsection.key: section and key whatever the case, the subsection exact. Values may be quoted,
 * escaped and continued over lines. One pass, no allocation: a name that does not fit is refused, a value is kept as
 * far as any condition looks at it. */
#include "policy/git-syntax.h"

#include <string.h>

#define NAME_MAX_LENGTH 1024
#define VALUE_MAX_LENGTH 4096

struct reader {
	const unsigned char *at, *end;
	bool ended;
	char name[NAME_MAX_LENGTH];     /* section, subsection and key, with dots */
	size_t length, base;            /* of the name, and of its part up to the last dot */
	char value[VALUE_MAX_LENGTH];
	size_t value_length;
	bool has_value, cut;            /* a value was given; and was longer */
};

/* As git's get_next_char(): CR LF is one newline, and the end is a newline too. */
static int next(struct reader *reader)
{
	if (reader->at == reader->end) {
		reader->ended = true;
		return '\n';
	}
	int byte = *reader->at++;
	if (byte == '\r' && reader->at < reader->end && *reader->at == '\n')
		byte = *reader->at++;
	return byte;
}

static int lower(int byte)
{
	return byte >= 'A' && byte <= 'Z' ? byte + 32 : byte;
}

static bool is_letter(int byte)
{
	return lower(byte) >= 'a' && lower(byte) <= 'z';
}

static bool is_key(int byte)
{
	return is_letter(byte) || (byte >= '0' && byte <= '9') || byte == '-';
}

static bool is_space(int byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static bool add_to_name(struct reader *reader, int byte)
{
	if (reader->length + 1 >= sizeof(reader->name))
		return false;
	reader->name[reader->length++] = (char)byte;
	reader->name[reader->length] = '\0';
	return true;
}

static void add_to_value(struct reader *reader, int byte)
{
	if (reader->value_length + 1 < sizeof(reader->value))
		reader->value[reader->value_length++] = (char)byte;
	else
		reader->cut = true;
	reader->value[reader->value_length] = '\0';
}

static bool read_subsection(struct reader *reader, int byte)
{
	while (is_space(byte)) {
		if (byte == '\n')
			return false;
		byte = next(reader);
	}
	if (byte != '"' || !add_to_name(reader, '.'))
		return false;
	for (;;) {
		byte = next(reader);
		if (byte == '"')
			return next(reader) == ']';
		if (byte == '\\')
			byte = next(reader);
		if (byte == '\n' || !add_to_name(reader, byte))
			return false;
	}
}

static bool read_section(struct reader *reader)
{
	reader->length = 0;
	for (;;) {
		int byte = next(reader);
		if (reader->ended)
			return false;
		if (byte == ']')
			break;
		if (is_space(byte)) {
			if (!read_subsection(reader, byte))
				return false;
			break;
		}
		if ((!is_key(byte) && byte != '.') || !add_to_name(reader, lower(byte)))
			return false;
	}
	if (!reader->length || !add_to_name(reader, '.'))
		return false;
	reader->base = reader->length;
	return true;
}

static int unescape(int byte)
{
	static const char from[] = "tbn\\\"", to[] = "\t\b\n\\\"";
	const char *found = byte ? strchr(from, byte) : NULL;
	return found ? to[found - from] : -1;
}

static bool read_value(struct reader *reader)
{
	bool quoted = false, comment = false;
	size_t spaces = 0;
	for (;;) {
		int byte = next(reader);
		if (byte == '\n')
			return !quoted;
		if (comment)
			continue;
		if (is_space(byte) && !quoted) {
			spaces += reader->value_length ? 1 : 0;
			continue;
		}
		if (!quoted && (byte == ';' || byte == '#')) {
			comment = true;
			continue;
		}
		for (; spaces; spaces--)
			add_to_value(reader, ' ');
		if (byte == '"') {
			quoted = !quoted;
			continue;
		}
		if (byte == '\\') {
			byte = next(reader);
			if (byte == '\n')
				continue;
			byte = unescape(byte);
			if (byte < 0)
				return false;
		}
		add_to_value(reader, byte);
	}
}

static bool read_setting(struct reader *reader, int byte)
{
	reader->length = reader->base;
	reader->value_length = 0;
	reader->has_value = reader->cut = false;
	reader->value[0] = '\0';
	for (; is_key(byte); byte = next(reader))
		if (!add_to_name(reader, lower(byte)))
			return false;
	while (byte == ' ' || byte == '\t')
		byte = next(reader);
	reader->has_value = byte == '=';
	return byte == '\n' || (byte == '=' && read_value(reader));
}

/* The name in its three parts; the subsection may have dots in it. A setting above every section has a key only. */
static void take_setting(const struct reader *reader, git_syntax_fn *take, void *arg)
{
	char parts[NAME_MAX_LENGTH];
	memcpy(parts, reader->name, reader->length + 1);
	char *dot = strchr(parts, '.'), *last = strrchr(parts, '.');
	struct git_setting setting = { .section = "", .key = parts, .value = reader->has_value ? reader->value : NULL,
	                               .cut = reader->cut };
	if (dot) {
		*dot = *last = '\0';
		setting.section = parts;
		setting.subsection = last != dot ? dot + 1 : NULL;
		setting.key = last + 1;
	}
	take(arg, reader->name, &setting);
}

/* One section or setting. False: it is no such thing. */
static bool read_part(struct reader *reader, int byte, git_syntax_fn *take, void *arg)
{
	if (byte == '[')
		return read_section(reader);
	if (!is_letter(byte) || !read_setting(reader, byte))
		return false;
	take_setting(reader, take, arg);
	return true;
}

bool git_syntax_read(const char *text, size_t length, git_syntax_fn *take, void *arg)
{
	struct reader reader = { .at = (const unsigned char *)text, .end = (const unsigned char *)text + length };
	bool comment = false, sound = length <= GIT_SYNTAX_SIZE_MAX && !memchr(text, '\0', length);
	if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		reader.at += 3;
	while (sound && !reader.ended) {
		int byte = next(&reader);
		if (byte == '\n')
			comment = false;
		if (comment || is_space(byte))
			continue;
		if (byte == '#' || byte == ';')
			comment = true;
		else
			sound = read_part(&reader, byte, take, arg);
	}
	return sound;
}

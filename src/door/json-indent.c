/* Only white space between tokens changes, so nothing needs to be parsed but strings. */
#include "door/json-indent.h"

#include <string.h>

static const char *print_string(FILE *out, const char *at)
{
	size_t length = 1;
	while (at[length] && at[length] != '"')
		length += at[length] == '\\' && at[length + 1] ? 2 : 1;
	length += at[length] == '"';
	fwrite(at, 1, length, out);
	return at + length;
}

static void newline(FILE *out, unsigned depth, bool one_line)
{
	if (!one_line)
		fprintf(out, "\n%*s", (int)depth * 2, "");
}

static const char *skip_space(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

void json_indent(FILE *out, const char *json, bool one_line)
{
	unsigned depth = 0;
	for (const char *at = skip_space(json); *at; at = skip_space(at)) {
		if (*at == '"') {
			at = print_string(out, at);
			continue;
		}
		bool opens = *at == '{' || *at == '[', closes = *at == '}' || *at == ']';
		if (closes && depth) {
			depth--;
			newline(out, depth, one_line);
		}
		fputc(*at, out);
		if (*at == ':' && !one_line)
			fputc(' ', out);
		char bracket = *at;
		at++;
		if (opens) {
			const char *next = skip_space(at);
			if (*next == (bracket == '{' ? '}' : ']')) {
				fputc(*next, out);
				at = next + 1;
				continue;
			}
			depth++;
			newline(out, depth, one_line);
		} else if (bracket == ',') {
			newline(out, depth, one_line);
		}
	}
	fputc('\n', out);
}

/* Settings of Mercurial and Jujutsu that are allowed in a repository's configuration: see vcs-config.h.
 *
 * hgrc is read by lines, as Mercurial does (its config.py): LF, CR and CR LF end a line; a line that begins with a
 * blank continues the value before it. Where Mercurial is lenient, the text is rejected here. */
#include "paths/planted/vcs-config.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/toml.h"
#include "cordon-internal.h"

#define UNKNOWN "has settings that are not known to be harmless"
#define UNJUDGED "is not a configuration that can be judged"

enum section { SECTION_NONE, SECTION_PATHS, SECTION_UI };

struct line {
	const char *text;
	size_t length;
};

static bool is_blank(char byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static bool is(const struct line *line, const char *text)
{
	return line->length == strlen(text) && !memcmp(line->text, text, line->length);
}

static struct line trimmed(const char *text, size_t length)
{
	while (length && is_blank(text[length - 1]))
		length--;
	return (struct line){ text, length };
}

/* An item of [paths] or [ui]. */
static bool is_harmless_item(const struct line *line, enum section section)
{
	const char *equals = memchr(line->text, '=', line->length);
	if (!equals || equals == line->text)
		return false;
	struct line key = trimmed(line->text, (size_t)(equals - line->text));
	const char *value = equals + 1, *end = line->text + line->length;
	while (value < end && is_blank(*value))
		value++;
	if (section == SECTION_PATHS)
		return *line->text != '%' && (value == end || *value != '-');
	return section == SECTION_UI && is(&key, "username");
}

const char *hg_config_reason(const char *text, size_t length)
{
	const char *end = text + length;
	enum section section = SECTION_NONE;
	bool has_item = false;
	if (memchr(text, '\0', length))
		return UNJUDGED;
	if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		text += 3;
	for (const char *at = text; at < end; at++) {
		const char *start = at;
		while (at < end && *at != '\n' && *at != '\r')
			at++;
		struct line line = trimmed(start, (size_t)(at - start));
		if (!line.length || *start == '#' || *start == ';' || (is_blank(*start) && has_item))
			continue;
		has_item = false;
		if (is(&line, "[paths]"))
			section = SECTION_PATHS;
		else if (is(&line, "[ui]"))
			section = SECTION_UI;
		else if (*start != '[' && !is_blank(*start) && is_harmless_item(&line, section))
			has_item = true;
		else
			return UNKNOWN;
	}
	return NULL;
}

static bool is_harmless_table(const struct toml_value *table)
{
	bool is_user = !strcmp(table->key, "user"), is_aliases = !strcmp(table->key, "revset-aliases");
	if (table->type != TOML_TABLE || strlen(table->key) != table->key_length || (!is_user && !is_aliases))
		return false;
	for (size_t i = 0; i < table->count; i++) {
		const struct toml_value *item = table->items[i];
		if (item->type != TOML_STRING || (is_user && strcmp(item->key, "name") && strcmp(item->key, "email")))
			return false;
	}
	return true;
}

const char *jj_config_reason(const char *text, size_t length)
{
	struct arena arena = { 0 };
	struct cordon_error err;
	const struct toml_value *root;
	const char *reason = toml_parse(&arena, "config.toml", text, length, &root, &err) < 0 ? UNJUDGED : NULL;
	for (size_t i = 0; !reason && i < root->count; i++)
		if (!is_harmless_table(root->items[i]))
			reason = UNKNOWN;
	arena_free(&arena);
	return reason;
}

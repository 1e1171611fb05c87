/* The argument patterns of manifests: words, of which some stand for what a caller gives.
 *
 *     {file}          one word, not empty, that does not begin with a dash
 *     {flag:option}   the same, and it may begin with one
 *     {files...}      as many of them as there are; the last word only; {flags:option...}
 *     --out={file}    within a word, once
 *     {{ and }}       the characters themselves */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/toml.h"
#include "config/manifest.h"

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool is_name_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
	       byte == '_' || byte == '-';
}

/* After a brace: the rest of a placeholder. What is behind it, or NULL with *ret_wrong. */
static const char *read_placeholder(struct arena *arena, const char *at, struct manifest_word *word,
                                    const char **ret_wrong)
{
	size_t length = 0;
	while (is_name_byte(at[length]))
		length++;
	*ret_wrong = "a placeholder is a name in braces, such as {file}; a brace itself is written twice";
	if (!length)
		return NULL;
	word->text = arena_strndup(arena, at, length);
	word->kind = WORD_ONE;
	at += length;
	if (!strncmp(at, ":option", 7)) {
		word->option = true;
		at += 7;
	}
	if (!strncmp(at, "...", 3)) {
		word->kind = WORD_REST;
		at += 3;
	}
	*ret_wrong = "the name of a placeholder is followed by :option, by ... or by the closing brace";
	return *at == '}' ? at + 1 : NULL;
}

/* NULL, or what is wrong. */
static const char *read_word(struct arena *arena, const char *text, struct manifest_word *word)
{
	char *literal = arena_alloc(arena, strlen(text) + 1), *out = literal;
	const char *wrong = NULL;
	if (!literal)
		return "memory is short";
	while (*text) {
		bool doubled = text[0] == text[1];
		if ((*text != '{' && *text != '}') || doubled) {
			*out++ = *text;
			text += (*text == '{' || *text == '}') ? 2 : 1;
			continue;
		}
		if (*text == '}')
			return "a closing brace without an opening one; a brace itself is written twice";
		if (word->kind != WORD_LITERAL)
			return "a word has one placeholder at most";
		text = read_placeholder(arena, text + 1, word, &wrong);
		if (!text)
			return wrong;
		word->before = literal;
		*out++ = '\0';
		literal = out;
	}
	*out = '\0';
	if (word->kind == WORD_LITERAL)
		word->text = literal;
	else
		word->after = literal;
	if (word->kind == WORD_REST && (*word->before || *word->after))
		return "a placeholder for several words is a word by itself";
	return word->text ? NULL : "memory is short";
}

static int add_word(struct arena *arena, const char *file, const struct toml_value *at, const char *text,
                    struct manifest_pattern *pattern, struct cordon_error *err)
{
	struct manifest_word word = { .before = "", .after = "" };
	if (pattern->count == MANIFEST_WORDS_MAX)
		return toml_fail(err, file, at, "a pattern has at most %d words", MANIFEST_WORDS_MAX);
	if (pattern->count && pattern->words[pattern->count - 1].kind == WORD_REST)
		return toml_fail(err, file, at, "{%s...} matches all that follows, so it must be the last word",
		                 pattern->words[pattern->count - 1].text);
	const char *wrong = read_word(arena, text, &word);
	if (wrong)
		return toml_fail(err, file, at, "\"%s\": %s", text, wrong);
	for (size_t i = 0; word.kind != WORD_LITERAL && i < pattern->count; i++)
		if (pattern->words[i].kind != WORD_LITERAL && !strcmp(pattern->words[i].text, word.text))
			return toml_fail(err, file, at, "two placeholders of one pattern are called {%s}", word.text);
	pattern->words[pattern->count++] = word;
	return strings_add(arena, &pattern->written, text) < 0 ? fail_oom(err) : 0;
}

static int check_text(const char *file, const struct toml_value *value, struct cordon_error *err)
{
	if (value->type != TOML_STRING)
		return toml_fail(err, file, value,
		                 "argv is a list of patterns, each a text or a list of words, and this is %s",
		                 toml_type_names[value->type]);
	if (strlen(value->text) != value->length || text_has_control(value->text))
		return toml_fail(err, file, value, "a pattern has no control characters in it");
	return 0;
}

static int split(struct arena *arena, const char *file, const struct toml_value *value,
                 struct manifest_pattern *pattern, struct cordon_error *err)
{
	if (check_text(file, value, err) < 0)
		return -1;
	for (const char *at = value->text + strspn(value->text, " "); *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");
		const char *word = arena_strndup(arena, at, length);
		if (!word)
			return fail_oom(err);
		if (add_word(arena, file, value, word, pattern, err) < 0)
			return -1;
		at += length;
	}
	return 0;
}

int manifest_pattern_read(struct arena *arena, const char *file, const struct toml_value *value,
                          struct manifest_pattern *ret_pattern, struct cordon_error *err)
{
	struct manifest_pattern pattern = { .where =
		                                    arena_printf(arena, "%s:%u:%u", file, value->line, value->column) };
	size_t most = value->type == TOML_ARRAY ? value->count : value->length;
	pattern.words = arena_alloc(arena, (most < MANIFEST_WORDS_MAX ? most + 1 : MANIFEST_WORDS_MAX) *
	                                           sizeof(*pattern.words));
	if (!pattern.where || !pattern.words)
		return fail_oom(err);
	if (value->type != TOML_ARRAY && split(arena, file, value, &pattern, err) < 0)
		return -1;
	for (size_t i = 0; value->type == TOML_ARRAY && i < value->count; i++) {
		const struct toml_value *word = value->items[i];
		if (check_text(file, word, err) < 0 || add_word(arena, file, word, word->text, &pattern, err) < 0)
			return -1;
	}
	*ret_pattern = pattern;
	return 0;
}

/* ---- comparing -------------------------------------------------------------------------------------------------- */

bool manifest_pattern_equal(const struct manifest_pattern *one, const struct manifest_pattern *other)
{
	if (one->count != other->count)
		return false;
	for (size_t i = 0; i < one->count; i++) {
		const struct manifest_word *a = &one->words[i], *b = &other->words[i];
		if (a->kind != b->kind || a->option != b->option || strcmp(a->before, b->before) ||
		    strcmp(a->after, b->after) || (a->kind == WORD_LITERAL && strcmp(a->text, b->text)))
			return false;
	}
	return true;
}

/* NULL, or what the word should have been. */
static const char *misfit(const struct manifest_word *word, const char *argument, char buffer[160])
{
	if (word->kind == WORD_LITERAL) {
		snprintf(buffer, 160, "\"%.60s\" was expected", word->text);
		return strcmp(word->text, argument) ? buffer : NULL;
	}
	size_t length = strlen(argument), before = strlen(word->before), after = strlen(word->after);
	if (length < before + after || strncmp(argument, word->before, before) ||
	    strcmp(argument + length - after, word->after)) {
		snprintf(buffer, 160, "%.40s{%.40s}%.40s was expected", word->before, word->text, word->after);
		return buffer;
	}
	if (length == before + after) {
		snprintf(buffer, 160, "{%.60s} does not match an empty argument", word->text);
		return buffer;
	}
	snprintf(buffer, 160, "{%.60s} does not match an option", word->text);
	return argument[before] == '-' && !word->option ? buffer : NULL;
}

const char *manifest_pattern_misfit(const struct manifest_pattern *pattern, const char *const *arguments, size_t count,
                                    size_t *ret_place, char buffer[160])
{
	bool open_ended = pattern->count && pattern->words[pattern->count - 1].kind == WORD_REST;
	size_t fixed = pattern->count - open_ended, place = 0;
	for (; place < count && (place < fixed || open_ended); place++) {
		const char *wrong = misfit(&pattern->words[place < fixed ? place : fixed], arguments[place], buffer);
		*ret_place = place;
		if (wrong)
			return wrong;
	}
	*ret_place = place;
	if (place < fixed) {
		const struct manifest_word *word = &pattern->words[place];
		snprintf(buffer, 160, word->kind == WORD_LITERAL ? "\"%.60s\" is missing" : "{%.60s} is missing",
		         word->text);
		return buffer;
	}
	snprintf(buffer, 160, "nothing more was expected");
	return place < count ? buffer : NULL;
}

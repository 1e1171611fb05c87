/* See screen.h. */
#include "secrets/screen.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* With what the caller gave, nothing is exempt: what is no secret by its name may have one in it. */
static enum secret_action judge(const void *arg, const struct secret_found *found)
{
	const struct secret_screen *screen = arg;
	if (found->member < SECRET_ROWS || !screen->with_given)
		return secret_policy_for(&screen->policy, screen->set, found);
	return secret_set_own(screen->set, found->member - SECRET_ROWS)->is_secret ?
	               (enum secret_action)screen->policy.own : SECRET_IGNORE;
}

void secret_screen_init(struct secret_screen *screen, struct secret_set *set, const struct secret_policy *policy)
{
	*screen = (struct secret_screen){ .set = secret_set_ref(set), .policy = *policy };
	secret_scanner_init(&screen->scanner, set, NULL);
}

void secret_screen_free(struct secret_screen *screen)
{
	if (!screen->set)
		return;
	secret_scanner_free(&screen->scanner);
	secret_set_unref(screen->set);
	free(screen->noted);
	*screen = (struct secret_screen){ .set = NULL };
}

int secret_screen_look(struct secret_screen *screen, const void *text, size_t length, uint64_t offset)
{
	screen->text = text;
	screen->length = length;
	screen->offset = offset;
	screen->scanner.judge = judge;
	screen->scanner.judge_arg = screen;
	if (secret_scan(&screen->scanner, text, length, true) < 0)
		return -1;
	size_t count = screen->scanner.found_count;
	if (count > screen->noted_capacity) {
		bool *grown = realloc(screen->noted, count * sizeof(*grown));
		if (!grown) {
			screen->scanner.found_count = 0;
			return -1;
		}
		screen->noted = grown;
		screen->noted_capacity = count;
	}
	if (count)
		memset(screen->noted, 0, count * sizeof(*screen->noted));
	return 0;
}

static bool hides(uint8_t action)
{
	return action == SECRET_REDACT || action == SECRET_BLOCK;
}

static bool is_name(const char *name, const char *text, size_t length)
{
	return !strncmp(name, text, length) && !name[length];
}

bool secret_screen_hides(const struct secret_screen *screen, const char *name, size_t length)
{
	for (size_t i = 0; i < secret_row_count; i++)
		if (hides(screen->policy.rows[i]) && is_name(secret_rows[i].name, name, length))
			return true;
	for (size_t i = 0; screen->set && hides(screen->policy.own) && i < secret_set_count(screen->set); i++)
		if (is_name(secret_set_own(screen->set, i)->name, name, length))
			return true;
	return false;
}

static void tell(struct secret_screen *screen, size_t index)
{
	const struct secret_found *found = &screen->scanner.found[index];
	struct secret_finding finding = { .offset = screen->offset + found->start };
	if (screen->noted[index] || !screen->note)
		return;
	screen->noted[index] = true;
	secret_finding_fill(&finding, screen->set, found);
	screen->note(screen->note_arg, &finding);
}

static size_t count_lines(const char *text, size_t from, size_t to)
{
	size_t lines = 0;
	for (const char *at = text + from; at < text + to && (at = memchr(at, '\n', (size_t)(text + to - at))); at++)
		lines++;
	return lines;
}

struct shown {
	char *text;
	size_t length, capacity;
	bool is_short_of_memory;
};

static void add(struct shown *shown, const char *bytes, size_t length)
{
	if (shown->is_short_of_memory)
		return;
	if (shown->length + length + 1 > shown->capacity) {
		size_t capacity = 2 * (shown->length + length) + 256;
		char *grown = realloc(shown->text, capacity);
		if (!grown) {
			shown->is_short_of_memory = true;
			return;
		}
		shown->text = grown;
		shown->capacity = capacity;
	}
	memcpy(shown->text + shown->length, bytes, length);
	shown->length += length;
}

static void hide(struct secret_screen *screen, struct shown *shown, const struct secret_found *found, size_t lines)
{
	char text[SECRET_NAME + 16];
	int length =
		snprintf(text, sizeof(text), "[REDACTED:%.*s]", SECRET_NAME - 1, secret_found_name(screen->set, found));
	add(shown, text, (size_t)length);
	while (lines--)
		add(shown, "\n", 1);
}

int secret_screen_show(struct secret_screen *screen, size_t from, size_t to, bool keep_lines, char **ret_text,
                       size_t *ret_length)
{
	struct shown shown = { .text = NULL };
	size_t at = from;
	bool hides = false;
	for (size_t i = 0; i < screen->scanner.found_count; i++) {
		const struct secret_found *found = &screen->scanner.found[i];
		if (found->end <= from || found->start >= to)
			continue;
		tell(screen, i);
		if (found->action == SECRET_REPORT)
			continue;
		hides = true;
		size_t start = found->start > at ? found->start : at, end = found->end < to ? found->end : to;
		add(&shown, screen->text + at, start - at);
		hide(screen, &shown, found, keep_lines ? count_lines(screen->text, start, end) : 0);
		at = end;
	}
	*ret_text = NULL;
	if (!hides)
		return 0;
	add(&shown, screen->text + at, to - at);
	add(&shown, "", 1);
	if (shown.is_short_of_memory) {
		free(shown.text);
		return -1;
	}
	*ret_text = shown.text;
	*ret_length = shown.length - 1;
	return 0;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static unsigned hex4(const char *at)
{
	unsigned value = 0;
	for (int i = 0; i < 4; i++) {
		unsigned char byte = (unsigned char)at[i];
		value = value << 4 | (byte <= '9' ? byte - (unsigned)'0' : (byte | 0x20u) - 'a' + 10);
	}
	return value;
}

/* The escapes of our own writer: control characters and the quote. Never longer than the input. */
static size_t unescape(const char *text, size_t length, char *out)
{
	static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	size_t used = 0;
	for (size_t i = 0; i < length; i++) {
		if (text[i] != '\\' || i + 1 == length) {
			out[used++] = text[i];
			continue;
		}
		const char *name = text[++i] ? strchr(names, text[i]) : NULL;
		if (name)
			out[used++] = bytes[name - names];
		else if (text[i] == 'u' && i + 4 < length) {
			unsigned code = hex4(text + i + 1);
			out[used++] = code < 0x80 ? (char)code : '?';
			i += 4;
		}
	}
	return used;
}

/* Replaces the string at `at`, quotes included, with `shown`. Returns the offset after it, or 0 when memory is
 * short. */
static size_t replace(struct json *json, size_t at, size_t end, const char *shown, size_t length)
{
	struct json piece;
	json_init(&piece);
	json_bytes(&piece, shown, length);
	size_t rest = json->length - end, size = at + piece.length + rest, next = at + piece.length;
	char *text = piece.failed ? NULL : malloc(size + 1);
	if (text) {
		memcpy(text, json->text, at);
		memcpy(text + at, piece.text, piece.length);
		memcpy(text + at + piece.length, json->text + end, rest);
		text[size] = '\0';
		free(json->text);
		json->text = text;
		json->length = size;
		json->capacity = size + 1;
	}
	json_free(&piece);
	return text ? next : 0;
}

/* The string between the quotes at `at` and `end` - 1. */
static size_t screen_string(struct secret_screen *screen, struct json *json, size_t at, size_t end)
{
	const char *text = json->text + at + 1;
	size_t length = end - at - 2, shown_length = 0;
	auto_free char *plain = NULL, *shown = NULL;
	if (length < SECRET_OWN_MIN)
		return end;
	if (memchr(text, '\\', length)) {
		plain = malloc(length);
		if (!plain)
			return 0;
		length = unescape(text, length, plain);
		text = plain;
	}
	if (secret_screen_look(screen, text, length, 0) < 0 ||
	    secret_screen_show(screen, 0, length, false, &shown, &shown_length) < 0)
		return 0;
	return shown ? replace(json, at, end, shown, shown_length) : end;
}

int secret_screen_json(struct secret_screen *screen, struct json *json)
{
	if (json->failed)
		return -1;
	for (size_t at = 0; at < json->length;) {
		const char *quote = memchr(json->text + at, '"', json->length - at);
		if (!quote)
			return 0;
		at = (size_t)(quote - json->text);
		size_t end = at + 1;
		while (end < json->length && json->text[end] != '"')
			end += json->text[end] == '\\' ? 2 : 1;
		if (end >= json->length)
			return 0;
		at = screen_string(screen, json, at, end + 1);
		if (!at)
			return -1;
	}
	return 0;
}

int secret_screen_array(struct secret_screen *screen, char *text, size_t size)
{
	size_t length = strnlen(text, size), shown_length = 0;
	auto_free char *shown = NULL;
	if (length < SECRET_OWN_MIN)
		return 0;
	if (secret_screen_look(screen, text, length, 0) < 0 ||
	    secret_screen_show(screen, 0, length, false, &shown, &shown_length) < 0)
		return -1;
	if (shown)
		snprintf(text, size, "%s", shown);
	return 0;
}

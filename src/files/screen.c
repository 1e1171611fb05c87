/* See screen.h. */
#include "files/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES_MARK_NAME 64              /* bytes of a name in a mark */

static void take_text(struct files_content *content, char *text, size_t length)
{
	free(content->data);
	content->data = text;
	content->length = length;
}

static size_t read_at(int fd, char *bytes, size_t size, uint64_t offset)
{
	size_t length = 0;
	for (ssize_t got;
	     length < size && (got = pread(fd, bytes + length, size - length, (off_t)(offset + length))) > 0;)
		length += (size_t)got;
	return length;
}

/* A part may begin and end within a secret, so what is around it is looked at, too. */
int files_screen_part(const struct files_screen *screen, int fd, uint64_t at, struct files_content *content,
                      struct cordon_error *err)
{
	size_t before = at < FILES_SCREEN_CONTEXT ? (size_t)at : FILES_SCREEN_CONTEXT, shown_length;
	if (!screen || !content->length)
		return 0;
	auto_free char *around = malloc(content->length + 2 * FILES_SCREEN_CONTEXT);
	char *shown = NULL;
	if (!around)
		return fail_oom(err);
	before = read_at(fd, around, before, at - before);
	memcpy(around + before, content->data, content->length);
	size_t length = before + content->length;
	length += read_at(fd, around + length, FILES_SCREEN_CONTEXT, at + content->length);
	if (screen->look(screen->arg, around, length, at - before) < 0 ||
	    screen->show(screen->arg, before, before + content->length, &shown, &shown_length) < 0)
		return fail_oom(err);
	if (shown)
		take_text(content, shown, shown_length);
	return 0;
}

int files_number_lines(struct files_content *content, struct cordon_error *err)
{
	size_t lines = 1, used = 0;
	for (size_t i = 0; i < content->length; i++)
		lines += content->data[i] == '\n';
	char *text = malloc(content->length + lines * FILES_NUMBER_MAX + 1);
	if (!text)
		return fail_oom(err);
	uint64_t number = content->first;
	for (size_t at = 0; at < content->length; number++) {
		const char *newline = memchr(content->data + at, '\n', content->length - at);
		size_t length = newline ? (size_t)(newline - content->data) + 1 - at : content->length - at;
		used += (size_t)snprintf(text + used, FILES_NUMBER_MAX + 1, "%6llu\t", (unsigned long long)number);
		memcpy(text + used, content->data + at, length);
		used += length;
		at += length;
	}
	text[used] = '\0';
	take_text(content, text, used);
	return 0;
}

/* In a picture or an archive nothing can be replaced. */
int files_screen_whole(const struct files_screen *screen, const struct files_place *place,
                       struct files_content *content, struct cordon_error *err)
{
	char *shown = NULL;
	size_t length;
	if (!screen)
		return 0;
	if (screen->look(screen->arg, content->data, content->length, 0) < 0 ||
	    screen->show(screen->arg, 0, content->length, &shown, &length) < 0)
		return fail_oom(err);
	if (shown && (!content->is_utf8 || files_is_binary(content->data, content->length))) {
		free(shown);
		fail(err, CORDON_E_LEAK_BLOCKED, 0, place->given,
		     "it has a secret in it, and is no text in which that could be replaced");
		fail_boundary(err, "secrets");
		return fail_remedy(err, "send it with --secrets report, if it may be seen");
	}
	if (shown)
		take_text(content, shown, length);
	return 0;
}

size_t files_screen_marks(const struct files_screen *screen, const char *text, size_t length)
{
	static const char mark[] = "[REDACTED:";
	const char *end = text + length;
	size_t marks = 0;
	for (const char *at = text; screen && (at = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1));) {
		at += sizeof(mark) - 1;
		size_t left = (size_t)(end - at), within = left < FILES_MARK_NAME ? left : FILES_MARK_NAME;
		const char *close = memchr(at, ']', within);
		marks += close && screen->hides(screen->arg, at, (size_t)(close - at));
	}
	return marks;
}

int files_screen_fail(const struct files_place *place, struct cordon_error *err)
{
	fail(err, CORDON_E_LEAK_BLOCKED, 0, place->given,
	     "the new content has [REDACTED:…] where a secret was hidden from the reader: the secret would be lost");
	fail_boundary(err, "secrets");
	return fail_remedy(err, "edit only the text around it, or read and write the file with --secrets report");
}

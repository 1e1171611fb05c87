/* Replacing text: see edit.h. */
#include "files/edit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MATCHES_COUNTED 10              /* each may take as long as the whole text */

/* Do most of its lines end in CRLF? */
static bool uses_crlf(const char *text, size_t length)
{
	size_t newlines = 0, crlf = 0;
	for (const char *at = text; (at = memchr(at, '\n', length - (size_t)(at - text))); at++) {
		newlines++;
		crlf += at > text && at[-1] == '\r';
	}
	return crlf > newlines / 2;
}

/* A copy with CR before every LF that has none; `length` is changed. NULL when memory is short. */
static char *with_crlf(const char *text, size_t *length)
{
	char *copy = malloc(2 * *length + 1);
	size_t used = 0;
	for (size_t i = 0; copy && i < *length; i++) {
		if (text[i] == '\n' && (!i || text[i - 1] != '\r'))
			copy[used++] = '\r';
		copy[used++] = text[i];
	}
	if (copy)
		*length = used;
	return copy;
}

static const char *find(const char *from, const char *end, const struct edit *edit)
{
	return from < end ? memmem(from, (size_t)(end - from), edit->old, edit->old_length) : NULL;
}

static size_t line_of(const char *text, const char *at)
{
	size_t line = 1;
	for (; text < at; text++)
		line += *text == '\n';
	return line;
}

static int refuse(struct cordon_error *err, enum cordon_class class, const char *subject, const char *why,
                  const char *remedy)
{
	fail(err, class, 0, subject, "%s", why);
	fail_boundary(err, "edit");
	return fail_remedy(err, "%s", remedy);
}

/* Where the first two are, for the caller to tell them apart. */
static int refuse_many(const char *text, const char *end, const struct edit *edit, size_t count, const char *subject,
                       struct cordon_error *err)
{
	const char *first = find(text, end, edit), *second = first ? find(first + 1, end, edit) : NULL;
	fail(err, CORDON_E_INVALID_REQUEST, 0, subject,
	     "the text to replace is there %s%zu times, first in lines %zu and %zu",
	     count == MATCHES_COUNTED ? "at least " : "", count, line_of(text, first), line_of(text, second));
	fail_boundary(err, "edit");
	return fail_remedy(err, "give more of the text around it, or replace all of them: --all");
}

static size_t count_matches(const char *text, const char *end, const struct edit *edit)
{
	size_t count = 0;
	for (const char *at = text; (edit->all || count < MATCHES_COUNTED) && (at = find(at, end, edit));
	     at += edit->all ? edit->old_length : 1)
		count++;
	return count;
}

static int replace(const char *text, const char *end, const struct edit *edit, size_t count, struct edited *ret_edited,
                   const char *subject, struct cordon_error *err)
{
	size_t length = (size_t)(end - text);
	if (edit->new_length > edit->old_length &&
	    (EDIT_RESULT_MAX < length || (EDIT_RESULT_MAX - length) / (edit->new_length - edit->old_length) < count))
		return refuse(err, CORDON_E_LIMIT_EXCEEDED, subject, "the file would become larger than 64 MiB",
		              "replace less of it");
	size_t result = length - count * edit->old_length + count * edit->new_length;
	char *data = malloc(result + 1), *to = data;
	if (!data)
		return fail_oom(err);
	const char *from = text, *first = find(text, end, edit);
	for (size_t i = 0; i < count; i++) {
		const char *at = find(from, end, edit);
		to = mempcpy(to, from, (size_t)(at - from));
		to = mempcpy(to, edit->new, edit->new_length);
		from = at + edit->old_length;
	}
	to = mempcpy(to, from, (size_t)(end - from));
	*to = '\0';
	*ret_edited = (struct edited){ .data = data, .length = result, .count = count, .line = line_of(text, first) };
	return 0;
}

static int apply(const char *text, size_t length, const struct edit *edit, const char *subject,
                 struct edited *ret_edited, struct cordon_error *err)
{
	const char *end = text + length;
	size_t count = count_matches(text, end, edit);
	if (!count)
		return 1;
	if (count > 1 && !edit->all)
		return refuse_many(text, end, edit, count, subject, err);
	return replace(text, end, edit, count, ret_edited, subject, err);
}

int edit_apply(const char *text, size_t length, const struct edit *edit, const char *subject, struct edited *ret_edited,
               struct cordon_error *err)
{
	int result = 1;
	if (!edit->old_length)
		return refuse(err, CORDON_E_INVALID_REQUEST, subject, "the text to replace is empty",
		              "to write a whole file: cordon file write");
	if (edit->old_length == edit->new_length && !memcmp(edit->old, edit->new, edit->old_length))
		return refuse(err, CORDON_E_INVALID_REQUEST, subject,
		              "the new text is the old text: nothing would change", "give another new text");
	if (length > EDIT_RESULT_MAX || edit->old_length > EDIT_RESULT_MAX || edit->new_length > EDIT_RESULT_MAX)
		return refuse(err, CORDON_E_LIMIT_EXCEEDED, subject, "the text is larger than 64 MiB",
		              "edit a smaller file");
	if (uses_crlf(text, length)) {
		struct edit crlf = *edit;
		auto_free char *old = with_crlf(edit->old, &crlf.old_length);
		auto_free char *new = with_crlf(edit->new, &crlf.new_length);
		if (!old || !new)
			return fail_oom(err);
		crlf.old = old;
		crlf.new = new;
		result = apply(text, length, &crlf, subject, ret_edited, err);
	}
	if (result > 0)
		result = apply(text, length, edit, subject, ret_edited, err);
	if (result > 0)
		return refuse(err, CORDON_E_NOT_FOUND, subject, "the text to replace is not in the file",
		              "read the file again: the text must be the same byte for byte, with its spaces");
	return result;
}

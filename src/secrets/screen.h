/* Texts that are not streams, with secrets taken out: what a file tool returns, rows of the ledger.
 *
 * secret_screen_look() searches a text as a whole; secret_screen_show() gives parts of it, so that a part that begins
 * or ends within a secret shows nothing of it. Each secret of a text is noted once, when a part of it is shown. */
#pragma once
#include "base/cleanup.h"
#include "base/json.h"
#include "secrets/filter.h"

struct secret_screen {
	struct secret_set *set;         /* a reference; NULL: not used yet */
	struct secret_policy policy;
	bool with_given;                /* also the secrets that the caller gave to the command by name */
	/* Called for each finding that is shown or hidden; or NULL. */
	void (*note)(void *arg, const struct secret_finding *finding);
	void *note_arg;
	struct secret_scanner scanner;
	const char *text;               /* borrowed, from a look to the next */
	size_t length;
	uint64_t offset;                /* of its first byte, for the findings */
	bool *noted;                    /* for each of the scanner's findings */
	size_t noted_capacity;
};

void secret_screen_init(struct secret_screen *screen, struct secret_set *set, const struct secret_policy *policy);
void secret_screen_free(struct secret_screen *screen);

/* The text is borrowed until the next look. -1 when memory is short; then nothing may be shown. */
int secret_screen_look(struct secret_screen *screen, const void *text, size_t length, uint64_t offset) must_check;
/* The bytes from `from` to `to` of the text. What is hidden is replaced by [REDACTED:name]; with `keep_lines` as many
 * newlines as were in it follow. *ret_text is NULL where nothing is hidden, else to be free()d, ended by a NUL that is
 * not counted. */
int secret_screen_show(struct secret_screen *screen, size_t from, size_t to, bool keep_lines, char **ret_text,
                       size_t *ret_length) must_check;
/* Does a secret of this name become [REDACTED:name]? It is a kind, or the name of one of the caller's own. */
bool secret_screen_hides(const struct secret_screen *screen, const char *name, size_t length);
/* The strings of finished JSON, each by itself: it stays JSON. */
int secret_screen_json(struct secret_screen *screen, struct json *json) must_check;
/* A text in an array of `size` bytes, cut if need be. */
int secret_screen_array(struct secret_screen *screen, char *text, size_t size) must_check;

/* Content on its way out: secrets in it replaced, its lines numbered. */
#pragma once
#include "files/read.h"

/* Takes secrets out of what is returned; NULL: nothing is searched. The functions fail when memory is short. */
struct files_screen {
	/* Searches a text, borrowed until the next look. `offset` is that of its first byte in the file. */
	int (*look)(void *arg, const char *text, size_t length, uint64_t offset);
	/* The bytes from `from` to `to` of it with secrets replaced, each by its name and as many newlines as it had,
	 * to be free()d; NULL: there is none. */
	int (*show)(void *arg, size_t from, size_t to, char **ret_text, size_t *ret_length);
	/* Is a secret of this name replaced by [REDACTED:name]? */
	bool (*hides)(void *arg, const char *name, size_t length);
	void *arg;
};
#define FILES_SCREEN_CONTEXT                                                                                           \
	(16u << 10) /* of the file around what is returned, to see where a secret begins and ends */

/* `content` is the file's from offset `at` on. */
int files_screen_part(const struct files_screen *screen, int fd, uint64_t at, struct files_content *content,
                      struct cordon_error *err) must_check;
int files_screen_whole(const struct files_screen *screen, const struct files_place *place,
                       struct files_content *content, struct cordon_error *err) must_check;
/* New content in which secrets of the old one are already replaced would destroy them: refused where it has more such
 * marks than the old one. */
size_t files_screen_marks(const struct files_screen *screen, const char *text, size_t length);
int files_screen_fail(const struct files_place *place, struct cordon_error *err) must_check;
/* What a line's number takes, with a tab, of the first million lines and at most. */
#define FILES_NUMBER_USUAL 7
#define FILES_NUMBER_MAX 24
int files_number_lines(struct files_content *content, struct cordon_error *err) must_check;

/* See toolchain-ground.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system-has.h"
#include "toolchain-ground.h"

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

int ground_setup(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	char top[] = "/tmp/test-toolchain-XXXXXX";
	assert_non_null(ground);
	ground->about = "this home";
	assert_non_null(mkdtemp(top));
	assert_non_null(realpath(top, ground->top));
	assert_true(snprintf(ground->home, sizeof(ground->home), "%s/home", top) > 0);
	assert_int_equal(mkdir(ground->home, 0700), 0);
	*state = ground;
	return 0;
}

int ground_teardown(void **state)
{
	struct ground *ground = *state;
	arena_free(&ground->arena);
	nftw(ground->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(ground);
	return 0;
}

char *ground_fill(struct ground *ground, const char *text)
{
	char out[8192];
	size_t length = 0;
	for (const char *at = text; *at; at++) {
		bool begins = at == text || strchr(" =:>,", at[-1]);
		const char *with = begins && at[0] == 'H' && at[1] == '/' ? ground->home :
		                   begins && at[0] == 'T' && at[1] == '/' ? ground->top : NULL;
		if (with)
			length += (size_t)snprintf(out + length, sizeof(out) - length, "%s", with);
		else
			out[length++] = *at;
		assert_true(length < sizeof(out) - 1);
	}
	return arena_strndup(&ground->arena, out, length);
}

struct strings ground_words(struct ground *ground, const char *text)
{
	struct strings list = { 0 };
	char *rest = ground_fill(ground, text);
	for (char *word; (word = strsep(&rest, " ")); )
		if (*word)
			assert_int_equal(strings_add(&ground->arena, &list, word), 0);
	return list;
}

void ground_file(const char *path, const char *content)
{
	char parent[PATH_MAX];
	snprintf(parent, sizeof(parent), "%s", path);
	for (char *slash = parent + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(parent, 0700);
	}
	size_t length = strlen(path);
	char *arrow = strstr(parent, "->");
	if (arrow && !HAS_LINKS) {
		return;
	} else if (arrow) {
		*arrow = '\0';
		assert_int_equal(symlink(arrow + 2, parent), 0);
	} else if (path[length - 1] != '/') {
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		fputs(content, file);
		fclose(file);
	}
}

void ground_files(struct ground *ground, const char *files)
{
	struct strings list = ground_words(ground, files);
	for (size_t i = 0; i < list.count; i++)
		ground_file(list.items[i], "");
}

void ground_environment(struct ground *ground, const char *text)
{
	struct strings list = ground_words(ground, text);
	assert_true(list.count < MAX_WORDS);
	memset(ground->environment, 0, sizeof(ground->environment));
	for (size_t i = 0; i < list.count; i++)
		ground->environment[i] = list.items[i];
}

void ground_find(struct ground *ground, const char *home, const char *chosen)
{
	struct strings list = { 0 };
	if (chosen)
		list = ground_words(ground, chosen);
	memset(&ground->found, 0xff, sizeof(ground->found));
	assert_int_equal(toolchain_find(&ground->arena, home, ground->environment, chosen ? &list : NULL,
	                                ground->writable, NULL, &ground->found, &ground->err),
	                 0);
}

void ground_same(struct ground *ground, const struct strings *got, const char *expected, bool paths)
{
	struct strings want = ground_words(ground, expected);
	size_t ours = 0;
	for (size_t i = 0; i < want.count; i++)
		if (strings_find(got, want.items[i]) < 0)
			fail_msg("%s: missing: %s", ground->about, want.items[i]);
	for (size_t i = 0; i < got->count; i++) {
		if (paths && !path_within(got->items[i], ground->top))
			continue;
		ours++;
		if (strings_find(&want, got->items[i]) < 0)
			fail_msg("%s: not expected: %s", ground->about, got->items[i]);
	}
	if (ours != want.count)
		fail_msg("%s: something twice", ground->about);
}

void ground_found(struct ground *ground, const char *show, const char *mask, const char *set)
{
	ground_same(ground, &ground->found.show, show, true);
	ground_same(ground, &ground->found.mask, mask, true);
	ground_same(ground, &ground->found.environment, set, false);
}

void ground_again(struct ground *ground)
{
	nftw(ground->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(mkdir(ground->top, 0700), 0);
	assert_int_equal(mkdir(ground->home, 0700), 0);
	memset(ground->environment, 0, sizeof(ground->environment));
}

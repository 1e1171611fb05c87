/* Listing, finding, searching. */
#include "files-ground.h"
#include "system-has.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "files/grep.h"
#include "files/list.h"
#include "files/read.h"

enum tool { LIST, FIND, GREP };

static json_t *run(enum tool tool, const char *path, const void *how)
{
	struct files_place place;
	struct json json;
	assert_int_equal(opens(path, 0, &place), CORDON_OK);
	json_init(&json);
	json_object_begin(&json);
	int result = tool == LIST ? files_list(&files, &place, how ? *(const size_t *)how : 0, &json, &ground_err)
	           : tool == FIND ? files_find(&files, &place, how, &json, &ground_err)
	                          : files_grep(&files, &place, how, &json, &ground_err);
	files_place_close(&place);
	json_object_end(&json);
	auto_free char *text = json_take(&json);
	return result < 0 ? NULL : json_loads(text, 0, NULL);
}

/* "one two three", of a key of each item. */
static const char *all(json_t *answer, const char *list, const char *key)
{
	static char text[4096];
	size_t i;
	json_t *item;
	*text = '\0';
	assert_non_null(answer);
	json_array_foreach(json_object_get(answer, list), i, item) {
		const char *value = json_string_value(key ? json_object_get(item, key) : item);
		strcat(strcat(text, i ? " " : ""), value);
	}
	json_decref(answer);
	return text;
}

static void fill(void)
{
	static const char *const directories[] = { "work/src",  "work/src/deep", "work/build",
		                                   "work/.git", "work/.ssh",     "work/sub" };
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		assert_int_equal(mkdir(at(directories[i]), 0755), 0);
	put("work/.gitignore", "build/\n*.log\n!keep.log\n/src/gen.c\n");
	put("work/sub/.gitignore", "!loud.log\nlocal\n");
	put("work/src/main.c", "int main(void)\r\n{\r\n\treturn TODO;\r\n}\r\n");
	put("work/src/gen.c", "TODO\n");
	put("work/src/deep/x.h", "/* TODO caf\xc3\xa9 */\n");
	put("work/build/out.c", "TODO\n");
	put("work/a.log", "TODO\n");
	put("work/keep.log", "TODO\n");
	put("work/sub/loud.log", "TODO\n");
	put("work/sub/local", "TODO\n");
	put("work/.env", "TODO=secret\n");
	put("work/.ssh/config", "TODO\n");
	put("work/.git/HEAD", "TODO\n");
	put_bytes("work/binary", "\0TODO\n", 6);
	put(HAS_SPECIAL_FILES ? "work/name\nnewline" : "work/name line", "nothing\n");
	put("outside/secret", "TODO\n");
	assert_true(!HAS_LINKS || symlink("../outside", at("work/link")) == 0);
	assert_true(!HAS_SPECIAL_FILES || mkfifo(at("work/pipe"), 0644) == 0);
}

static void listing(void **state)
{
	size_t two = 2;
	(void)state;
	fill();
	assert_string_equal(all(run(LIST, ".", NULL), "entries", "name"),
	                    HAS_LINKS && HAS_SPECIAL_FILES ?
	                            ".env .git .gitignore .ssh a.log binary build keep.log link name\nnewline pipe "
	                            "src sub" :
	                            ".env .git .gitignore .ssh a.log binary build keep.log name line src sub");
	assert_string_equal(all(run(LIST, ".", NULL), "entries", "type"),
	                    HAS_LINKS && HAS_SPECIAL_FILES ?
	                            "hidden directory file hidden file file directory file link file fifo directory "
	                            "directory" :
	                            "hidden directory file hidden file file directory file file directory directory");
	json_t *answer = run(LIST, ".", &two);
	assert_true(json_is_true(json_object_get(answer, "more")));
	json_decref(answer);
	assert_null(run(LIST, "a.log", NULL));
	assert_int_equal(ground_err.class, CORDON_E_INVALID_REQUEST);
}

static void finding(void **state)
{
	const char *const c[] = { "*.c" }, *const deep[] = { "src/**/*.h", "*.log" }, *const bad[] = { "../x" };
	(void)state;
	fill();
	assert_string_equal(all(run(FIND, ".", &(struct files_find){ .globs = c, .glob_count = 1 }), "entries", "path"),
	                    "src/main.c");
	assert_string_equal(all(run(FIND, ".", &(struct files_find){ .globs = c, .glob_count = 1, .all = true }),
	                        "entries", "path"),
	                    "build/out.c src/gen.c src/main.c");
	assert_string_equal(
		all(run(FIND, ".", &(struct files_find){ .globs = deep, .glob_count = 2 }), "entries", "path"),
		"keep.log src/deep/x.h sub/loud.log");
	/* What lies above where it begins counts, too. */
	assert_string_equal(
		all(run(FIND, "src", &(struct files_find){ .globs = c, .glob_count = 1 }), "entries", "path"),
		"src/main.c");
	assert_string_equal(all(run(FIND, ".", &(struct files_find){ .kind = 'd' }), "entries", "path"),
	                    "src src/deep sub");
	assert_string_equal(all(run(FIND, ".", &(struct files_find){ .kind = 'l' }), "entries", "path"),
	                    HAS_LINKS ? "link" : "");
	assert_null(run(FIND, ".", &(struct files_find){ .globs = bad, .glob_count = 1 }));
	assert_int_equal(ground_err.class, CORDON_E_INVALID_REQUEST);
}

static void searching(void **state)
{
	const char *const c[] = { "*.c" };
	(void)state;
	fill();
	assert_string_equal(
		all(run(GREP, ".", &(struct files_grep){ .pattern = "TODO", .pattern_length = 4 }), "matches", "path"),
		"keep.log src/deep/x.h src/main.c sub/loud.log");
	json_t *answer =
		run(GREP, ".",
	            &(struct files_grep){
			    .pattern = "^\\s*return \\w+;$", .pattern_length = 16, .globs = c, .glob_count = 1 });
	json_t *match = json_array_get(json_object_get(answer, "matches"), 0);
	assert_int_equal(json_integer_value(json_object_get(match, "line")), 3);
	assert_string_equal(json_string_value(json_object_get(match, "text")), "\treturn TODO;");
	json_decref(answer);
	assert_string_equal(all(run(GREP, ".",
	                            &(struct files_grep){ .pattern = "todo",
	                                                  .pattern_length = 4,
	                                                  .options = PATTERN_FOLD_CASE,
	                                                  .names_only = true }),
	                        "files", NULL),
	                    "keep.log src/deep/x.h src/main.c sub/loud.log");
	answer = run(GREP, ".", &(struct files_grep){ .pattern = "TODO", .pattern_length = 4, .limit = 1 });
	assert_true(json_is_true(json_object_get(answer, "more")));
	assert_int_equal(json_array_size(json_object_get(answer, "matches")), 1);
	json_decref(answer);
	answer = run(GREP, ".", &(struct files_grep){ .pattern = "x", .pattern_length = 1 });
	assert_int_equal(json_integer_value(json_object_get(answer, "binary")), 1);
	json_decref(answer);
	assert_string_equal(all(run(GREP, "src/gen.c", &(struct files_grep){ .pattern = "TODO", .pattern_length = 4 }),
	                        "matches", "path"),
	                    "src/gen.c");
	if (HAS_SPECIAL_FILES)
		assert_null(run(GREP, "pipe", &(struct files_grep){ .pattern = "TODO", .pattern_length = 4 }));
	assert_null(run(GREP, ".", &(struct files_grep){ .pattern = "(", .pattern_length = 1 }));
	assert_int_equal(ground_err.class, CORDON_E_INVALID_REQUEST);
}

static void long_lines_are_searched_and_cut(void **state)
{
	(void)state;
	auto_close int fd = open(at("work/long"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	auto_free char *piece = malloc(1 << 20);
	memset(piece, 'x', 1 << 20);
	for (int i = 0; i < 5; i++)
		assert_int_equal(write(fd, piece, 1 << 20), 1 << 20);
	assert_int_equal(write(fd, "\nneedle\n", 8), 8);
	json_t *answer = run(GREP, ".", &(struct files_grep){ .pattern = "xx$|needle", .pattern_length = 10 });
	json_t *last = json_array_get(json_object_get(answer, "matches"),
	                              json_array_size(json_object_get(answer, "matches")) - 1);
	assert_int_equal(json_integer_value(json_object_get(last, "line")), 2);
	assert_string_equal(json_string_value(json_object_get(last, "text")), "needle");
	json_t *first = json_array_get(json_object_get(answer, "matches"), 0);
	assert_int_equal(strlen(json_string_value(json_object_get(first, "text"))), FILES_LINE_SHOWN);
	json_decref(answer);
}

/* One line of a gigabyte, of text, and another one; and a hole of 5 GB, which is none. */
static void a_line_of_a_gigabyte(void **state)
{
	/* A sanitizer's program takes long to write it, and a sixteenth shows the same. */
	const int pieces = getenv("CORDON_SANITIZED") ? 64 : 1024;
	struct files_place place;
	struct files_content content;
	(void)state;
	auto_close int fd = open(at("work/large"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	auto_free char *piece = malloc(1 << 20);
	memset(piece, 'x', 1 << 20);
	for (int i = 0; i < pieces; i++)
		assert_int_equal(write(fd, piece, 1 << 20), 1 << 20);
	assert_int_equal(write(fd, "needle\nlast\n", 12), 12);
	assert_int_equal(opens("large", 0, &place), CORDON_OK);
	assert_int_equal(files_read(&place, &(struct files_read){ 0 }, &content, &ground_err), 0);
	assert_int_equal(content.length, FILES_READ_MAX);
	assert_true(content.cut);
	free(content.data);
	assert_int_equal(files_read(&place, &(struct files_read){ .offset = 2 }, &content, &ground_err), 0);
	assert_string_equal(content.data, "last\n");
	free(content.data);
	files_place_close(&place);
	json_t *answer = run(GREP, ".", &(struct files_grep){ .pattern = "needle|last", .pattern_length = 11 });
	json_t *last = json_array_get(json_object_get(answer, "matches"),
	                              json_array_size(json_object_get(answer, "matches")) - 1);
	assert_int_equal(json_integer_value(json_object_get(last, "line")), 2);
	assert_string_equal(json_string_value(json_object_get(last, "text")), "last");
	assert_int_equal(json_array_size(json_object_get(answer, "matches")), 2);
	json_decref(answer);
	assert_int_equal(unlink(at("work/large")), 0);
	put("work/sparse", "some text\n");
	assert_int_equal(truncate(at("work/sparse"), INT64_C(5) << 30), 0);
	answer = run(GREP, ".", &(struct files_grep){ .pattern = "some", .pattern_length = 4 });
	assert_int_equal(json_integer_value(json_object_get(answer, "binary")), 1);
	assert_int_equal(json_array_size(json_object_get(answer, "matches")), 0);
	json_decref(answer);
}

/* 10,000 levels: what is too deep is left out and said. */
static void deep_trees(void **state)
{
	(void)state;
	int fd = open(at("work"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 10000; i++) {
		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	close(fd);
	json_t *answer = run(FIND, ".", &(struct files_find){ .limit = FILES_LIST_MAX });
	assert_in_range(json_array_size(json_object_get(answer, "entries")), 100, FILES_DEPTH_MAX);
	assert_non_null(strstr(json_string_value(json_array_get(json_object_get(answer, "notes"), 0)), "deeper"));
	json_decref(answer);
	answer = run(GREP, ".", &(struct files_grep){ .pattern = "x", .pattern_length = 1 });
	assert_int_equal(json_array_size(json_object_get(answer, "notes")), 1);
	json_decref(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(listing, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(finding, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(searching, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(long_lines_are_searched_and_cut, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(a_line_of_a_gigabyte, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(deep_trees, ground_setup, ground_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Content: lines, bytes, numbers, what is not text, what is too large. */
#include "files-ground.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/read.h"

static int read_part(const char *path, const struct files_read *how, struct files_content *ret_content)
{
	struct files_place place;
	assert_int_equal(opens(path, 0, &place), CORDON_OK);
	int result = files_read(&place, how, ret_content, &ground_err);
	files_place_close(&place);
	return result;
}

static const struct {
	const char *text;
	struct files_read how;
	const char *expected;
	uint64_t lines, next;
} rows[] = {
	{ "a\nb\nc\n", { 0 }, "a\nb\nc\n", 3, 0 },
	{ "a\nb\nc", { 0 }, "a\nb\nc", 3, 0 },
	{ "", { 0 }, "", 0, 0 },
	{ "a\nb\nc\n", { .offset = 2 }, "b\nc\n", 2, 0 },
	{ "a\nb\nc\n", { .offset = 2, .limit = 1 }, "b\n", 1, 3 },
	{ "a\nb\nc\n", { .limit = 3 }, "a\nb\nc\n", 3, 0 },
	{ "a\nb\nc\n", { .offset = 9 }, "", 0, 0 },
	{ "a\r\nb\r\n", { .offset = 2 }, "b\r\n", 1, 0 },
	{ "a\nb\n", { .numbers = true }, "     1\ta\n     2\tb\n", 2, 0 },
	{ "a\nb", { .offset = 2, .numbers = true }, "     2\tb", 1, 0 },
	{ "abcdef", { .offset = 2, .limit = 3, .bytes = true }, "cde", 0, 5 },
	{ "abcdef", { .offset = 2, .bytes = true }, "cdef", 0, 0 },
	{ "abcdef", { .offset = 9, .bytes = true }, "", 0, 0 },
	{ "a\xc3\xa9z", { .limit = 2, .bytes = true }, "a", 0, 1 },
	{ "a\n", { .offset = UINT64_MAX, .limit = UINT64_MAX }, "", 0, 0 },
	{ "a\n", { .offset = UINT64_MAX, .limit = UINT64_MAX, .bytes = true }, "", 0, 0 },
};

static void parts_of_a_text(void **state)
{
	struct files_content content;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		put("work/text", rows[i].text);
		assert_int_equal(read_part("text", &rows[i].how, &content), 0);
		if (strcmp(content.data, rows[i].expected) != 0 || content.lines != rows[i].lines ||
		    content.next != rows[i].next)
			fail_msg("row %zu: \"%s\", %llu lines, next %llu", i, content.data,
			         (unsigned long long)content.lines, (unsigned long long)content.next);
		assert_int_equal(content.size, strlen(rows[i].text));
		assert_int_equal(strlen(content.version), FILES_VERSION_SIZE - 1);
		free(content.data);
	}
}

static void invalid_utf8_is_text_and_nul_is_not(void **state)
{
	struct files_content content;
	(void)state;
	put("work/latin", "caf\xe9\n");
	assert_int_equal(read_part("latin", &(struct files_read){ 0 }, &content), 0);
	assert_false(content.is_utf8);
	assert_string_equal(content.data, "caf\xe9\n");
	free(content.data);
	put_bytes("work/binary", "ab\0c", 4);
	assert_int_equal(read_part("binary", &(struct files_read){ 0 }, &content), -1);
	assert_non_null(strstr(ground_err.reason, "binary"));
	assert_int_equal(ground_err.class, CORDON_E_INVALID_REQUEST);
}

static void long_lines_and_large_files(void **state)
{
	struct files_content content;
	(void)state;
	/* One line of 3 MiB, then another. */
	auto_close int fd = open(at("work/long"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	auto_free char *piece = malloc(1 << 20);
	memset(piece, 'x', 1 << 20);
	for (int i = 0; i < 3; i++)
		assert_int_equal(write(fd, piece, 1 << 20), 1 << 20);
	assert_int_equal(write(fd, "\nlast\n", 6), 6);
	assert_int_equal(read_part("long", &(struct files_read){ 0 }, &content), 0);
	assert_int_equal(content.length, FILES_READ_MAX);
	assert_true(content.cut);
	assert_int_equal(content.next, 2);
	free(content.data);
	assert_int_equal(read_part("long", &(struct files_read){ .offset = 2 }, &content), 0);
	assert_string_equal(content.data, "last\n");
	free(content.data);
	/* 5 GB, nearly all of it a hole: told at once to be no text. By bytes the text before the hole can be had. */
	auto_close int sparse = open(at("work/sparse"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	for (int i = 0; i < 16; i++)
		assert_int_equal(write(sparse, "sixteen bytes...", 16), 16);
	assert_int_equal(ftruncate(sparse, INT64_C(5) << 30), 0);
	assert_int_equal(read_part("sparse", &(struct files_read){ 0 }, &content), -1);
	assert_int_equal(ground_err.class, CORDON_E_INVALID_REQUEST);
	assert_int_equal(read_part("sparse",
	                           &(struct files_read){ .offset = INT64_C(4) << 30, .limit = 10, .bytes = true },
	                           &content),
	                 -1);
	assert_int_equal(ground_err.class, CORDON_E_INVALID_REQUEST);
	struct files_place place;
	assert_int_equal(opens("sparse", 0, &place), CORDON_OK);
	assert_int_equal(files_send(&place, NULL, &content, &ground_err), -1);
	assert_int_equal(ground_err.class, CORDON_E_LIMIT_EXCEEDED);
	files_place_close(&place);
}

static void sending(void **state)
{
	struct files_place place;
	struct files_content content;
	(void)state;
	put_bytes("work/picture.PNG", "\x89PNG\0\1", 6);
	assert_int_equal(opens("picture.PNG", 0, &place), CORDON_OK);
	assert_int_equal(files_send(&place, NULL, &content, &ground_err), 0);
	assert_string_equal(content.type, "image/png");
	assert_int_equal(content.length, 6);
	free(content.data);
	files_place_close(&place);
	auto_close int fd = open(at("work/large"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, FILES_SEND_MAX), 0);
	assert_int_equal(opens("large", 0, &place), CORDON_OK);
	assert_int_equal(files_send(&place, NULL, &content, &ground_err), 0);
	assert_int_equal(content.length, FILES_SEND_MAX);
	free(content.data);
	files_place_close(&place);
	assert_int_equal(ftruncate(fd, FILES_SEND_MAX + 1), 0);
	assert_int_equal(opens("large", 0, &place), CORDON_OK);
	assert_int_equal(files_send(&place, NULL, &content, &ground_err), -1);
	assert_int_equal(ground_err.class, CORDON_E_LIMIT_EXCEEDED);
	files_place_close(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(parts_of_a_text, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(invalid_utf8_is_text_and_nul_is_not, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(long_lines_and_large_files, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(sending, ground_setup, ground_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

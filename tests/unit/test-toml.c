/* TOML: what is read, where it stood, what is refused and in which words. That the language is TOML is shown by
 * tests/toml, which compares with another parser. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena-ground.h"
#include "base/cleanup.h"
#include "base/toml.h"
#include "cordon-internal.h"

static const struct toml_value *read_text(const char *text, size_t length)
{
	const struct toml_value *root = NULL;
	struct cordon_error err = { 0 };
	/* An exact copy, so that reading past its end is seen. */
	auto_free char *copy = malloc(length ? length : 1);
	assert_non_null(copy);
	memcpy(copy, text, length);
	if (toml_parse(&arena, "FILE", copy, length, &root, &err) < 0)
		fail_msg("<%s>: %s: %s", text, err.subject, err.reason);
	return root;
}

static const struct toml_value *member(const struct toml_value *table, const char *key, enum toml_type type)
{
	const struct toml_value *value = toml_member(table, key);
	assert_non_null(value);
	assert_int_equal(value->type, type);
	assert_string_equal(value->key, key);
	return value;
}

static const char sample[] = "# a comment\n"
                             "title = \"T\\u00e9\\n\"\n"
                             "when = 1979-05-27 07:32:00.5-08:00\n"
                             "\n"
                             "[owner]\n"
                             "  name.first = 'Tom'\n"
                             "  \"é\".x = 1\n"
                             "list = [ 1, 0x1F,\n"
                             "   -3, ] # end\n"
                             "point = { x = 1.5, y = -inf }\n"
                             "[[product]]\n"
                             "sku = 1\n"
                             "[[product]]\n"
                             "ok = true\n";

static void values_and_places(void **state)
{
	(void)state;
	const struct toml_value *root = read_text(sample, strlen(sample));
	assert_int_equal(root->type, TOML_TABLE);
	assert_int_equal(root->count, 4);
	const struct toml_value *title = member(root, "title", TOML_STRING);
	assert_string_equal(title->text, "T\xc3\xa9\n");
	assert_int_equal(title->length, 4);
	assert_int_equal(title->line, 2);
	assert_int_equal(title->column, 1);
	assert_string_equal(member(root, "when", TOML_DATETIME)->text, "1979-05-27 07:32:00.5-08:00");

	const struct toml_value *owner = member(root, "owner", TOML_TABLE);
	assert_int_equal(owner->line, 5);
	assert_int_equal(owner->column, 2);
	const struct toml_value *first = member(member(owner, "name", TOML_TABLE), "first", TOML_STRING);
	assert_string_equal(first->text, "Tom");
	assert_int_equal(first->column, 8);
	/* Columns are characters: the letter before has two bytes. */
	const struct toml_value *x = member(member(owner, "\xc3\xa9", TOML_TABLE), "x", TOML_INTEGER);
	assert_int_equal(x->line, 7);
	assert_int_equal(x->column, 7);

	const struct toml_value *list = member(owner, "list", TOML_ARRAY);
	assert_int_equal(list->count, 3);
	assert_int_equal(list->items[0]->integer, 1);
	assert_int_equal(list->items[1]->integer, 31);
	assert_int_equal(list->items[2]->integer, -3);
	assert_null(list->items[2]->key);
	assert_int_equal(list->items[2]->line, 9);
	assert_int_equal(list->items[2]->column, 4);
	const struct toml_value *point = member(owner, "point", TOML_TABLE);
	assert_true(member(point, "x", TOML_FLOAT)->number == 1.5);
	assert_true(isinf(member(point, "y", TOML_FLOAT)->number));

	const struct toml_value *product = member(root, "product", TOML_ARRAY);
	assert_int_equal(product->count, 2);
	assert_int_equal(product->items[1]->type, TOML_TABLE);
	assert_int_equal(product->items[1]->line, 13);
	assert_int_equal(product->items[1]->column, 1);
	assert_true(member(product->items[1], "ok", TOML_BOOLEAN)->boolean);
	assert_null(toml_member(product->items[1], "sku"));
}

static void nul_in_text(void **state)
{
	(void)state;
	static const char text[] = "\"a\\u0000b\" = \"x\\u0000y\"";
	const struct toml_value *root = read_text(text, strlen(text)), *value = root->items[0];
	assert_int_equal(value->key_length, 3);
	assert_memory_equal(value->key, "a\0b", 4);
	assert_int_equal(value->length, 3);
	assert_memory_equal(value->text, "x\0y", 4);
	assert_null(toml_member(root, "a"));
}

static void empty(void **state)
{
	(void)state;
	assert_int_equal(read_text("", 0)->count, 0);
	assert_int_equal(read_text("\r\n# x", 5)->count, 0);
}

/* A caller's locale with a decimal comma changes nothing. */
static void any_locale(void **state)
{
	(void)state;
	static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR" };
	for (size_t i = 0; i < ARRAY_SIZE(names) && !setlocale(LC_ALL, names[i]); i++)
		;
	assert_true(read_text("a = 1.25", 8)->items[0]->number == 1.25);
	setlocale(LC_ALL, "C");
}

static const struct {
	const char *text, *place, *reason;
} refused[] = {
	{ "a = 1\nb", "2:2", "after the key \"b\" an '=' was expected, not the end of the file" },
	{ "a : 1", "1:3", "after the key \"a\" an '=' was expected, not ':'" },
	{ "a = 1\n  a = 2", "2:3", "\"a\" is there already; it is on line 1" },
	{ "[a]\n[a]", "2:2", "\"a\" is there already; it is on line 1" },
	{ "a = {}\n[a.b]", "2:2", "\"a\" is an inline table, to which nothing is added; it is on line 1" },
	{ "a = 1\na.b = 2", "2:1", "\"a\" has a value and is not a table; it is on line 1" },
	{ "[a.b]\n[a]\nb.c = 1", "3:1", "\"b\" has a header of its own; put its keys there; it is on line 1" },
	{ "a = []\n[[a]]", "2:3", "\"a\" is an array with all its elements; it is on line 1" },
	{ "[a]\n[[a]]", "2:3", "\"a\" is there already and not an array of tables; it is on line 1" },
	{ "a = yes", "1:5", "yes is not a value; strings are quoted" },
	{ "a =", "1:4", "a value was expected, not the end of the file" },
	{ "a = \n", "1:5", "a value was expected, not the end of the line" },
	{ "a = 017", "1:5", "017 begins with a 0; an octal number is written 0o17" },
	{ "a = 1__0", "1:5", "1__0 has an underscore that is not between two digits" },
	{ "a = 9223372036854775808", "1:5", "9223372036854775808 is out of range: integers have 64 bits" },
	{ "a = 0xg", "1:5", "0xg is not a hexadecimal number" },
	{ "a = 1.", "1:5", "1. has no digit after its point" },
	{ "a = 1979-02-29", "1:5", "1979-02-29: that month has no such day" },
	{ "a = 24:00:00", "1:5", "24:00:00: there is no such time of day" },
	{ "a = 1 b = 2", "1:7", "the end of the line was expected, not 'b'" },
	{ "a = 1 \xc3\xa9", "1:7", "the end of the line was expected, not the character U+00E9" },
	{ "a = [1,\n2\n", "1:5", "this array is not closed" },
	{ "a = [1 2]", "1:8", "in an array ',' or ']' was expected, not '2'" },
	{ "a = {b = 1\n}", "1:11",
	  "expected ',' or '}' in an inline table, which is on one line, not the end of the line" },
	{ "a = {b = 1,}", "1:12", "a key was expected, not '}'" },
	{ "a = 'x\n'", "1:5", "this string is not closed before the line ends" },
	{ "a = '''x", "1:5", "this string is not closed" },
	{ "a = 'x\x07'", "1:7", "the control character U+0007 is not allowed in a string without an escape" },
	{ "# \x1b[0m", "1:3", "the control character U+001B is not allowed in a comment" },
	{ "a = \"\\ud800\"", "1:6", "there is no character U+D800" },
	{ "a = \"C:\\x\"", "1:8",
	  "a backslash is followed by 'x'; known are \\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX \\UXXXXXXXX" },
	{ "[a", "1:3", "at the end of a header ']' was expected, not the end of the file" },
	{ "[[a]", "1:5", "at the end of a header ']]' was expected, not the end of the file" },
	{ "\xef\xbb\xbf" "a = 1", "1:1", "the file begins with a byte order mark, which TOML has not" },
	/* What is wrong first is what is reported, also where bytes are no text. */
	{ "\xc3\xa9 = 1\n\xff", "1:1", "a key was expected, not the character U+00E9" },
	{ "a = 1\nb = '\xff'", "2:6", "the byte 0xff here is not UTF-8" },
	{ "a = [1,\n \xc3", "2:2", "the byte 0xc3 here is not UTF-8" },
	{ "a = tru\xff", "1:8", "the byte 0xff here is not UTF-8" },
	{ "a = 1\n\xed\xa0\x80", "2:1", "the byte 0xed here is not UTF-8" },
};

static void assert_refused(const char *text, size_t length, const char *place, const char *reason)
{
	const struct toml_value *root = (const struct toml_value *)1;
	struct cordon_error err = { 0 };
	char subject[64];
	snprintf(subject, sizeof(subject), "FILE:%s", place);
	if (toml_parse(&arena, "FILE", text, length, &root, &err) == 0)
		fail_msg("<%.80s> was accepted", text);
	assert_ptr_equal(root, (const void *)1);
	assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
	assert_string_equal(err.subject, subject);
	assert_string_equal(err.reason, reason);
}

static void refusals(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		assert_refused(refused[i].text, strlen(refused[i].text), refused[i].place, refused[i].reason);
	assert_refused("a = 1\0", 6, "1:6", "the end of the line was expected, not the control character U+0000");
}

/* `count` times the text, with the number in it where it has one. */
static char *repeated(const char *format, size_t count)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	for (size_t i = 0; i < count; i++)
		for (const char *at = format; *at; at++)
			if (*at == '#')
				fprintf(out, "%zu", i);
			else
				fputc(*at, out);
	fclose(out);
	return text;
}

/* These finish at once, or not in the time a test has: looking is not slow in large tables, deep down or on long lines.
 */
static void many_values(void **state)
{
	(void)state;
	static const struct {
		const char *format;
		size_t fits;
		const char *place;      /* of the first that does not */
	} rows[] = {
		{ "k# = #\n", TOML_VALUES_MAX, "20001:1" },
		{ "[t#]\n", TOML_VALUES_MAX, "20001:2" },
		{ "[[t]]\n", TOML_VALUES_MAX - 1, "20000:1" },
		{ "a.b.c.k# = #\n", TOML_VALUES_MAX - 3, "19998:7" },
		{ "[t.t#]\nx = 1\n", TOML_VALUES_MAX / 2 - 1, "20000:1" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_free char *fits = repeated(rows[i].format, rows[i].fits);
		auto_free char *over = repeated(rows[i].format, rows[i].fits + 1);
		read_text(fits, strlen(fits));
		assert_refused(over, strlen(over), rows[i].place, "there are more than 20000 values");
	}
	auto_free char *elements = repeated("0,", TOML_VALUES_MAX - 1);
	char *array;
	assert_true(asprintf(&array, "a = [%s]", elements) > 0);
	const struct toml_value *root = read_text(array, strlen(array));
	assert_int_equal(root->items[0]->count, TOML_VALUES_MAX - 1);
	assert_int_equal(root->items[0]->items[TOML_VALUES_MAX - 2]->column, 6 + 2 * (TOML_VALUES_MAX - 2));
	free(array);
}

static void large_and_deep(void **state)
{
	(void)state;
	auto_free char *comment = malloc(TOML_SIZE_MAX + 1);
	assert_non_null(comment);
	memset(comment, '#', TOML_SIZE_MAX + 1);
	read_text(comment, TOML_SIZE_MAX);
	assert_refused(comment, TOML_SIZE_MAX + 1, "1:1", "the file is larger than 1048576 bytes");

	static const char *const rows[][3] = { { "a = ", "[", "" }, { "a = ", "{a=", "" }, { "", "a.", "a = 1" },
	                                       { "[", "a.", "a]" } };
	static const char *const places[] = { "1:37", "1:99", "1:65", "1:66" };
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_free char *middle = repeated(rows[i][1], 100000);
		char *text;
		assert_true(asprintf(&text, "%s%s%s", rows[i][0], middle, rows[i][2]) > 0);
		assert_refused(text, strlen(text), places[i], "this is more than 32 levels deep");
		free(text);
	}
	auto_free char *open = repeated("[", 32), *close = repeated("]", 32);
	char text[128];
	snprintf(text, sizeof(text), "a = %s%s", open, close);
	read_text(text, strlen(text));
}

static void failing_at_a_value(void **state)
{
	(void)state;
	const struct toml_value *root = read_text("a = 1\n b = 2", 12);
	struct cordon_error err = { 0 };
	assert_int_equal(toml_fail(&err, "x.toml", root->items[1], "must be %s", toml_type_names[TOML_STRING]), -1);
	assert_string_equal(err.subject, "x.toml:2:2");
	assert_string_equal(err.reason, "must be a string");

	/* Of a long name, the end and the place are kept. */
	char name[2000];
	memset(name, 'x', sizeof(name));
	strcpy(name + sizeof(name) - 10, "last.toml");
	toml_fail(&err, name, root->items[1], "no");
	assert_non_null(strstr(err.subject, "last.toml:2:2"));
	assert_int_equal(strncmp(err.subject, "...x", 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(values_and_places, free_arena),
		cmocka_unit_test_teardown(nul_in_text, free_arena),
		cmocka_unit_test_teardown(empty, free_arena),
		cmocka_unit_test_teardown(any_locale, free_arena),
		cmocka_unit_test_teardown(refusals, free_arena),
		cmocka_unit_test_teardown(many_values, free_arena),
		cmocka_unit_test_teardown(large_and_deep, free_arena),
		cmocka_unit_test_teardown(failing_at_a_value, free_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The first code's judgement of command lines, against the program's own; and where it looks for the daemon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "door/hello.h"
#include "door/options.h"
#include "entry/entry.h"

#define WORDS_MAX 6

static bool program_says(char **words)
{
	struct options options;
	struct cordon_error err;
	if (options_parse(COMMAND_RUN, words, &options, &err) < 0)
		return false;
	bool wanted = hello_wanted(&options) && !options_flag(&options, "help");
	options_free(&options);
	return wanted;
}

/* Every line of up to so many words that can be made of these: what the one takes for an option the other must not take for
 * a value, nor for the command. */
static void test_agrees_with_the_program(void **state)
{
	(void)state;
	static const char *const pieces[] = { "--session", "--session=s", "--", "-", "", "s", "--json", "--tty", "--config=x", "-c",
		                              "-cx", "-h", "--json=x", "--env", "--nonsense", "--sessio", "--sessions", "-x" };
	enum { COUNT = sizeof(pieces) / sizeof(*pieces) };
	size_t wanted = 0;
	for (size_t length = 0; length <= 4; length++) {
		size_t lines = 1;
		for (size_t i = 0; i < length; i++)
			lines *= COUNT;
		for (size_t line = 0; line < lines; line++) {
			char *words[WORDS_MAX] = { NULL };
			size_t rest = line;
			for (size_t i = 0; i < length; i++, rest /= COUNT)
				words[i] = (char *)(uintptr_t)pieces[rest % COUNT];
			bool judged = entry_wants_daemon((const char *const *)words, length);
			if (judged != program_says(words))
				fail_msg("%s|%s|%s|%s: %d", words[0] ? words[0] : "", words[1] ? words[1] : "", words[2] ? words[2] : "",
				         words[3] ? words[3] : "", judged);
			wanted += judged;
		}
	}
	assert_true(wanted > 1000);
}

/* Every option of the table, alone and with a value, before and after the session. */
static void test_knows_every_option(void **state)
{
	(void)state;
	for (size_t i = 0; i < options_table_count; i++) {
		char spelled[3][64] = { "", "", "" };
		snprintf(spelled[0], sizeof(spelled[0]), "--%s", options_table[i].name);
		snprintf(spelled[1], sizeof(spelled[1]), "--%s=x", options_table[i].name);
		snprintf(spelled[2], sizeof(spelled[2]), "-%c", options_table[i].letter ? options_table[i].letter : '?');
		for (size_t j = 0; j < 3; j++) {
			char session[] = "--session=s", value[] = "v", operand[] = "o";
			char *lines[][WORDS_MAX] = {
				{ spelled[j], session, operand }, { session, spelled[j], operand }, { spelled[j], value, session, operand },
				{ session, spelled[j] },
			};
			for (size_t k = 0; k < 4; k++) {
				size_t count = 0;
				while (lines[k][count])
					count++;
				if (entry_wants_daemon((const char *const *)lines[k], count) != program_says(lines[k]))
					fail_msg("%s in line %zu", spelled[j], k);
			}
		}
	}
}

static void test_where_the_daemon_listens(void **state)
{
	(void)state;
	char longest[200] = "HOME=/";
	memset(longest + 6, 'x', 107 - sizeof("/.local/share/cordon/daemon.sock"));
	static const struct {
		const char *environment[4], *path;
	} rows[] = {
		{ { "HOME=/home/me" }, "/home/me/.local/share/cordon/daemon.sock" },
		{ { "HOME=/home/me", "XDG_DATA_HOME=/d" }, "/d/cordon/daemon.sock" },
		{ { "XDG_DATA_HOME=d", "HOME=/h" }, "/h/.local/share/cordon/daemon.sock" },
		{ { "XDG_DATA_HOME=", "HOME=/h" }, "/h/.local/share/cordon/daemon.sock" },
		{ { "XDG_DATA_HOME=/first", "XDG_DATA_HOME=/second" }, "/first/cordon/daemon.sock" },
		{ { "XDG_DATA_HOMES=/d", "HOME=" }, NULL },
		{ { "XDG_DATA_HOME=/d/../e", "HOME=/h" }, NULL },
		{ { "XDG_DATA_HOME", "HOM" }, NULL },
		{ { NULL }, NULL },
	};
	char path[108];
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t size = entry_socket_path(rows[i].environment, path, sizeof(path));
		assert_int_equal(size, rows[i].path ? strlen(rows[i].path) + 1 : 0);
		if (size)
			assert_string_equal(path, rows[i].path);
	}
	const char *const environment[] = { longest, NULL };
	assert_int_equal(entry_socket_path(environment, path, sizeof(path)), sizeof(path));
	longest[strlen(longest)] = 'x';
	assert_int_equal(entry_socket_path(environment, path, sizeof(path)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agrees_with_the_program),
		cmocka_unit_test(test_knows_every_option),
		cmocka_unit_test(test_where_the_daemon_listens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

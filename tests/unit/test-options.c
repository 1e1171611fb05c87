/* The option table, and words sorted by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "door/cli/options.h"

#define WORDS_MAX 12

static const struct {
	enum command_id command;
	const char *words[WORDS_MAX];
	const char *given;      /* name=value, separated by spaces */
	const char *operands;   /* separated by spaces */
	const char *refused;    /* the subject of the error */
	const char *hint;       /* part of its remediation */
} rows[] = {
	{ COMMAND_RUN, { "ls", "-l" }, "", "ls -l", NULL, NULL },
	{ COMMAND_RUN, { "--", "ls", "--json" }, "", "ls --json", NULL, NULL },
	{ COMMAND_RUN, { "--json", "ls", "--quiet" }, "json=true", "ls --quiet", NULL, NULL },
	{ COMMAND_RUN, { "ls", "--", "x" }, "", "ls -- x", NULL, NULL },
	{ COMMAND_RUN, { "--", "--", "x" }, "", "-- x", NULL, NULL },
	{ COMMAND_RUN, { "-", "x" }, "", "- x", NULL, NULL },
	{ COMMAND_RUN, { "", "x" }, "", " x", NULL, NULL },
	{ COMMAND_RUN, { "--read", "/a", "--read=/b", "--", "x" }, "read=/a read=/b", "x", NULL, NULL },
	{ COMMAND_RUN, { "--read=", "x" }, "read=", "x", NULL, NULL },
	{ COMMAND_RUN, { "--env", "A=B=C", "--env=D=E", "x" }, "env=A=B=C env=D=E", "x", NULL, NULL },
	{ COMMAND_RUN, { "--session=--", "--", "x" }, "session=--", "x", NULL, NULL },
	{ COMMAND_RUN, { "--session", "-x", "y" }, "session=-x", "y", NULL, NULL },
	{ COMMAND_RUN, { "-c", "echo hi", "--json" }, "c=echo hi json=true", "", NULL, NULL },
	{ COMMAND_RUN, { "-c", "echo", "zero", "--json" }, "c=echo", "zero --json", NULL, NULL },
	{ COMMAND_RUN, { "-cecho" }, "c=echo", "", NULL, NULL },
	{ COMMAND_RUN, { "-c", "" }, "c=", "", NULL, NULL },
	{ COMMAND_RUN, { "-h" }, "help=true", "", NULL, NULL },
	{ COMMAND_RUN, { NULL }, "", "", NULL, NULL },
	{ COMMAND_JOB, { "start", "--session", "s", "make", "-n" }, "session=s", "start make -n", NULL, NULL },
	{ COMMAND_JOB, { "start", "--", "start", "--json" }, "", "start start --json", NULL, NULL },
	{ COMMAND_JOB, { "tail", "x", "-f", "-n", "3" }, "follow=true last=3", "tail x", NULL, NULL },
	{ COMMAND_JOB, { "start", "--tty", "x" }, NULL, NULL, "--tty", "cordon help job" },
	{ COMMAND_DOCTOR, { "--json" }, "json=true", "", NULL, NULL },
	{ COMMAND_HELP, { "run", "-h" }, "help=true", "run", NULL, NULL },
	{ COMMAND_HELP, { "--", "-h" }, "", "-h", NULL, NULL },

	{ COMMAND_RUN, { "--raed", "/a", "--", "x" }, NULL, NULL, "--raed", "--read?" },
	{ COMMAND_RUN, { "--time-out=5", "--", "x" }, NULL, NULL, "--time-out", "--timeout?" },
	{ COMMAND_RUN, { "--tokn=sk-secret", "x" }, NULL, NULL, "--tokn", NULL },
	{ COMMAND_RUN, { "--frobnicate", "x" }, NULL, NULL, "--frobnicate", "cordon help run" },
	{ COMMAND_RUN, { "-x", "y" }, NULL, NULL, "-x", "cordon help run" },
	{ COMMAND_RUN, { "--rea", "/a", "x" }, NULL, NULL, "--rea", "--read?" },
	{ COMMAND_RUN, { "--=x", "y" }, NULL, NULL, "--", NULL },
	{ COMMAND_RUN, { "--timeout" }, NULL, NULL, "--timeout TIME", NULL },
	{ COMMAND_RUN, { "--timeout", "--", "x" }, NULL, NULL, "--timeout TIME", NULL },
	{ COMMAND_RUN, { "-c" }, NULL, NULL, "-c LINE", NULL },
	{ COMMAND_RUN, { "--json=yes", "x" }, NULL, NULL, "--json", NULL },
	{ COMMAND_RUN, { "--tty=", "x" }, NULL, NULL, "--tty", NULL },
	{ COMMAND_DOCTOR, { "--read", "/a" }, NULL, NULL, "--read", "cordon help doctor" },
};

static void check_parsed(const struct options *options, const char *given, const char *operands)
{
	char text[512];
	size_t length = 0;
	text[0] = '\0';
	for (size_t i = 0; i < options->given_count; i++) {
		const struct option *option = options->given[i].option;
		char letter[] = { option->letter, '\0' };
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s=%s", i ? " " : "",
		                           *option->name ? option->name : letter, options->given[i].value);
	}
	assert_string_equal(text, given);
	length = 0;
	text[0] = '\0';
	for (size_t i = 0; i < options->operand_count; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s", i ? " " : "",
		                           options->operands[i]);
	assert_string_equal(text, operands);
	assert_null(options->operands[options->operand_count]);
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *words[WORDS_MAX + 1] = { NULL };
		memcpy(words, rows[i].words, sizeof(rows[i].words));
		struct options options = { 0 };
		struct cordon_error err = { 0 };
		int parsed = options_parse(rows[i].command, words, &options, &err);
		assert_int_equal(parsed, rows[i].refused ? -1 : 0);
		if (parsed == 0) {
			check_parsed(&options, rows[i].given, rows[i].operands);
			options_free(&options);
			continue;
		}
		assert_null(options.given);
		assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
		assert_string_equal(err.subject, rows[i].refused);
		if (rows[i].hint)
			assert_non_null(strstr(err.remediation, rows[i].hint));
		assert_null(strstr(err.reason, "secret"));
		assert_null(strstr(err.remediation, "secret"));
	}
}

static void test_last_value_wins(void **state)
{
	(void)state;
	char *words[] = { (char[]){ "--timeout=1" }, (char[]){ "--timeout=2" }, (char[]){ "x" }, NULL };
	struct options options;
	struct cordon_error err;
	assert_int_equal(options_parse(COMMAND_RUN, words, &options, &err), 0);
	assert_string_equal(options_value(&options, "timeout"), "2");
	assert_null(options_value(&options, "memory"));
	assert_false(options_flag(&options, "json"));
	options_free(&options);
}

static void test_json_is_noticed(void **state)
{
	(void)state;
	char *before[] = { (char[]){ "--bogus" }, (char[]){ "--json" }, (char[]){ "--" }, NULL };
	char *after[] = { (char[]){ "--bogus" }, (char[]){ "--" }, (char[]){ "--json" }, NULL };
	assert_true(options_want_json(before));
	assert_false(options_want_json(after));
}

/* What help, manual and completion take for granted. */
static void test_table(void **state)
{
	(void)state;
	unsigned groups_done = 0;
	for (size_t i = 0; i < options_table_count; i++) {
		const struct option *option = &options_table[i];
		assert_true(option->letter || *option->name);
		assert_true(*option->help);
		assert_false(option->help[strlen(option->help) - 1] == '.');
		assert_true(!*option->more || option->more[strlen(option->more) - 1] == '.');
		assert_true(option->commands);
		assert_int_equal(option->completion == COMPLETE_VALUES, *option->values != '\0');
		assert_true(option->metavar || option->completion == COMPLETE_NOTHING);
		assert_true(option->metavar || !option->repeats);
		/* Only a name can be a key of the request. */
		assert_true(option->actor == OPTION_DOOR || *option->name);
		if (i && options_table[i - 1].group != option->group)
			groups_done |= 1u << options_table[i - 1].group;
		assert_false(groups_done & 1u << option->group);
		for (size_t j = 0; j < i; j++) {
			/* Two commands may mean different things by a name, one command may not. */
			if (!(option->commands & options_table[j].commands))
				continue;
			assert_false(*option->name && !strcmp(option->name, options_table[j].name));
			assert_false(option->letter && option->letter == options_table[j].letter);
		}
	}
}

static bool lists(const char *values, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = values; (at = strstr(at, word)); at += length)
		if ((at == values || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

/* The door may not ask the policy room, so the test does. */
static void test_toolchains_are_known(void **state)
{
	(void)state;
	static const char *const names[] = {
#define TOOLCHAIN(name, ...) name,
#define ALSO(...)
#define ALIAS(name, of)
#include "host/toolchains.def"
#undef TOOLCHAIN
#undef ALSO
#undef ALIAS
	};
	const struct option *toolchain = NULL;
	for (size_t i = 0; i < options_table_count; i++)
		if (!strcmp(options_table[i].name, "toolchain"))
			toolchain = &options_table[i];
	assert_non_null(toolchain);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_true(lists(toolchain->values, names[i]));
}

static void test_spelling(void **state)
{
	(void)state;
	char text[64];
	for (size_t i = 0; i < options_table_count; i++) {
		option_spell(&options_table[i], text, sizeof(text));
		assert_true(text[0] == '-' && strlen(text) + 1 < sizeof(text));
		if (!strcmp(options_table[i].name, "help"))
			assert_string_equal(text, "-h, --help");
	}
}

static void test_commands(void **state)
{
	(void)state;
	for (int id = 0; id < COMMAND_MAX; id++) {
		unsigned lines = 0;
		assert_int_equal(command_find(commands[id].name), id);
		for (const char *at = commands[id].examples; *at; at++)
			lines += *at == '\n';
		assert_int_equal(lines % 2, 0);
	}
	assert_int_equal(command_find("bogus"), COMMAND_MAX);
	assert_int_equal(command_find(""), COMMAND_MAX);
	assert_string_equal(command_nearest("docter"), "doctor");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_last_value_wins),
		cmocka_unit_test(test_json_is_noticed),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_toolchains_are_known),
		cmocka_unit_test(test_spelling),
		cmocka_unit_test(test_commands),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

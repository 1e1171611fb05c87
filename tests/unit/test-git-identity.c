/* Name and e-mail out of git's configuration: what the language allows, where it is looked for, and that what is
 * written is read back, by us and by git itself where there is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "host/git-identity.h"
#include "skip.h"

static const struct {
	const char *text, *name, *email;
} cases[] = {
	{ "", NULL, NULL },
	{ "[user]\n\tname = Ann Lee\n\temail = ann@example.org\n", "Ann Lee", "ann@example.org" },
	{ "[USER]\nNAME=Ann\nEmail=a@b", "Ann", "a@b" },
	{ "[user] name = Ann", "Ann", NULL },
	{ "\xef\xbb\xbf[user]\r\n\tname = Ann\r\n\temail = a@b\r\n", "Ann", "a@b" },
	{ "[user]\nname = Ann ; the first\nemail = a@b # mine\n", "Ann", "a@b" },
	{ "[user]\nname = \"Ann ; Lee \"  \n", "Ann ; Lee ", NULL },
	{ "[user]\nname = \"Ann \\\"A\\\" \\\\ Lee\"\n", "Ann \"A\" \\ Lee", NULL },
	{ "[user]\nname = Ann \\\n  Lee\n", "Ann   Lee", NULL },
	{ "[user]\nname = A\"nn L\"ee\n", "Ann Lee", NULL },
	{ "[user]\nname = Ann\nname = Bob\n", "Bob", NULL },
	{ "[user]\nname = Ann\nname =\n", "", NULL },
	{ "[user]\nname\nemail = a@b\n", NULL, "a@b" },
	{ "[user]\nname = J\xc3\xb6rg\n", "J\xc3\xb6rg", NULL },
	/* Other sections, other keys. */
	{ "[core]\nname = Ann\n[user \"x\"]\nname = Bob\n[user.x]\nname = Eve\n[users]\nname = Dan\n", NULL, NULL },
	{ "[core]\n[user]\nnames = Ann\nname-x = Bob\nemailaddress = x\n[core]\nemail = y\n", NULL, NULL },
	{ "[include]\npath = /etc/passwd\n[includeIf \"gitdir:~/\"]\npath = x\n[user]\nname = Ann\n", "Ann", NULL },
	{ "[url \"a\\\"]b\"]\nx = y\n[user]\nname = Ann\n", "Ann", NULL },
	{ "# [user]\n; name = x\n[user]\n# name = Bob\nname = Ann\n", "Ann", NULL },
	/* What git refuses ends it. */
	{ "[user]\nname = Ann\n!\nname = Bob\n", "Ann", NULL },
	{ "[user]\nname = Ann\nname = \"Bob\nemail = x\n", "Ann", NULL },
	{ "[user]\nname = Ann\nname = B\\ob\nemail = x\n", "Ann", NULL },
	{ "[user\nname = Ann\n", NULL, NULL },
	{ "[user \"\nname = Ann\n", NULL, NULL },
	{ "[user] = x\n", NULL, NULL },
	{ "[", NULL, NULL },
	{ "[user]\nname", NULL, NULL },
	{ "[user]\nname=", "", NULL },
	{ "[user]\nname=\\", NULL, NULL },
};

static void assert_text(const char *got, const char *want, const char *about)
{
	if (!got != !want || (got && strcmp(got, want)))
		fail_msg("<%s>: got %s, not %s", about, got ? got : "nothing", want ? want : "nothing");
}

static void test_language(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct arena arena = { 0 };
		const char *name = NULL, *email = NULL;
		/* Without a NUL behind it, so that reading on would be found. */
		size_t length = strlen(cases[i].text);
		auto_free char *text = malloc(length + !length);
		assert_non_null(text);
		memcpy(text, cases[i].text, length);
		assert_int_equal(git_identity_parse(&arena, text, length, &name, &email), 0);
		assert_text(name, cases[i].name, cases[i].text);
		assert_text(email, cases[i].email, cases[i].text);
		arena_free(&arena);
	}
}

static void test_bounds(void **state)
{
	struct arena arena = { 0 };
	const char *name = "kept", *email = NULL;
	char text[2048] = "[user]\nname = ";
	(void)state;
	memset(text + strlen(text), 'x', 600);
	assert_int_equal(git_identity_parse(&arena, text, strlen(text), &name, &email), 0);
	assert_string_equal(name, "kept");
	assert_int_equal(git_identity_parse(&arena, "[user]\nname = a\0b\nemail = x", 27, &name, &email), 0);
	assert_string_equal(name, "kept");
	assert_null(email);
	arena_free(&arena);
}

static void test_text(void **state)
{
	static const char *const values[] = {
		"Ann", "", " Ann ", "A \"B\" C", "back\\slash\\", "# ; [x]", "J\xc3\xb6rg", "a=b", "\xff\xfe",
	};
	struct arena arena = { 0 };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		const char *name = NULL, *email = NULL, *text = git_identity_text(&arena, values[i], values[i]);
		assert_int_equal(git_identity_parse(&arena, text, strlen(text), &name, &email), 0);
		assert_text(name, values[i], text);
		assert_text(email, values[i], text);
	}
	assert_string_equal(git_identity_text(&arena, NULL, NULL), "");
	assert_string_equal(git_identity_text(&arena, NULL, "a@b"), "[user]\n\temail = \"a@b\"\n");
	assert_string_equal(git_identity_text(&arena, "A\n[core]\n\tpager = \x1b\"evil\x7f", NULL),
	                    "[user]\n\tname = \"A[core]pager = \\\"evil\"\n");
	arena_free(&arena);
}

/* ---- Where it is looked for -------------------------------------------------------------------------------------- */

static char top[] = "/tmp/test-git-identity-XXXXXX";
/* Files, then directories, inner ones first. */
static const char *const made[] = {
	"h/.config/git/config",
	"h/.gitconfig",
	"x/git/config",
	"g",
	"h/.config/git",
	"h/.config",
	"h",
	"x/git",
	"x",
	"",
};

static const char *path_of(const char *file)
{
	static char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", top, file);
	return path;
}

static void write_file(const char *file, const char *text)
{
	FILE *stream = fopen(path_of(file), "w");
	assert_non_null(stream);
	fputs(text, stream);
	fclose(stream);
}

static int make_top(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(top));
	for (size_t i = ARRAY_SIZE(made) - 1; i-- > 4; )
		assert_int_equal(mkdir(path_of(made[i]), 0700), 0);
	return 0;
}

static int remove_top(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		remove(path_of(made[i]));
	return 0;
}

static void assert_identity(const char *xdg, const char *const *environment, const char *want_name,
                            const char *want_email)
{
	struct arena arena = { 0 };
	struct cordon_error err;
	const char *name = "unset", *email = "unset";
	char home[PATH_MAX], config[PATH_MAX];
	snprintf(home, sizeof(home), "%s/h", top);
	snprintf(config, sizeof(config), "%s/x", top);
	assert_int_equal(git_identity(&arena, home, xdg ? config : NULL, environment, NULL, &name, &email, &err), 0);
	assert_text(name, want_name, "name");
	assert_text(email, want_email, "email");
	arena_free(&arena);
}

static void test_places(void **state)
{
	char global[PATH_MAX];
	(void)state;
	snprintf(global, sizeof(global), "GIT_CONFIG_GLOBAL=%s/g", top);
	assert_identity(NULL, NULL, NULL, NULL);
	assert_identity(NULL, (const char *const[]){ "EMAIL=me@host", NULL }, NULL, "me@host");
	write_file("h/.config/git/config", "[user]\nname = Config\nemail = config@host\n");
	assert_identity(NULL, NULL, "Config", "config@host");
	write_file("x/git/config", "[user]\nname = Xdg\n");
	assert_identity("x", NULL, "Xdg", NULL);
	write_file("h/.gitconfig", "[user]\nname = Home\n[credential]\nhelper = store\n");
	assert_identity(NULL, (const char *const[]){ "EMAIL=me@host", NULL }, "Home", "config@host");
	assert_identity("x", NULL, "Home", NULL);
	write_file("g", "[user]\nemail = global@host\n");
	assert_identity(NULL, (const char *const[]){ global, NULL }, NULL, "global@host");
	assert_identity(NULL, (const char *const[]){ "GIT_CONFIG_GLOBAL=/dev/zero", NULL }, NULL, NULL);
	assert_identity(NULL, (const char *const[]){ "GIT_AUTHOR_NAME=Env", "GIT_AUTHOR_EMAIL=", NULL }, "Env",
	                "config@host");
	write_file("h/.gitconfig", "[user]\nname =\n");
	assert_identity(NULL, NULL, NULL, "config@host");

	struct arena arena = { 0 };
	const char *name, *email;
	assert_int_equal(git_identity(&arena, NULL, NULL, NULL, NULL, &name, &email, NULL), 0);
	assert_null(name);
	assert_int_equal(git_identity(&arena, "relative", "", NULL, NULL, &name, &email, NULL), 0);
	assert_null(name);
	arena_free(&arena);
}

/* Of a file longer than the cap (64 KiB), the whole lines before it: here it falls into a name. */
static void test_long_file(void **state)
{
	(void)state;
	FILE *stream = fopen(path_of("h/.gitconfig"), "w");
	assert_non_null(stream);
	fputs("[user]\nname = Ann\n#", stream);
	while (ftell(stream) < 64 * 1024 - 10)
		fputc('-', stream);
	fputs("\nname = Bobby\nemail = x\n", stream);
	fclose(stream);
	assert_identity(NULL, NULL, "Ann", "config@host");
}

static void test_git_reads_it(void **state)
{
	struct arena arena = { 0 };
	char command[2 * PATH_MAX], line[256] = "";
	(void)state;
	if (system("git --version >/dev/null 2>&1"))
		skip_cannot("git", "it is to read what we write");
	write_file("g", git_identity_text(&arena, "A \"B\" \\ #;C ", NULL));
	arena_free(&arena);
	snprintf(command, sizeof(command), "git config -f %s user.name", path_of("g"));
	FILE *stream = popen(command, "r");
	assert_non_null(stream);
	assert_non_null(fgets(line, sizeof(line), stream));
	assert_int_equal(pclose(stream), 0);
	assert_string_equal(line, "A \"B\" \\ #;C \n");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_language), cmocka_unit_test(test_bounds), cmocka_unit_test(test_text),
		cmocka_unit_test(test_places), cmocka_unit_test(test_long_file), cmocka_unit_test(test_git_reads_it),
	};
	return cmocka_run_group_tests(tests, make_top, remove_top);
}

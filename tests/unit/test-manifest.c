/* Manifests: what is declared, what is refused and where, and which commands fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena-ground.h"
#include "cordon-internal.h"
#include "config/manifest.h"
#include "system-has.h"

static struct manifest parse(const char *text)
{
	struct manifest manifest = { 0 };
	struct cordon_error err = { 0 };
	if (manifest_parse(&arena, "FILE", "/h/me", text, strlen(text), &manifest, &err) < 0)
		fail_msg("<%s>: %s: %s", text, err.subject, err.reason);
	return manifest;
}

#define HEAD "name = \"x\"\n[capabilities.spawn]\n"
#define MINIMAL HEAD "programs = [\"/b/ls\"]\n"

static const char whole[] = "name = \"formatter\"\n"
                            "description = \"formats\"\n"
                            "[capabilities.spawn]\n"
                            "programs = [\"/u/bin/../bin/fmt\", \"~/bin/fmt\"]\n"
                            "argv = [\"-i  {file}\", [\"--style\", \"a b\", \"{flags:option...}\"]]\n"
                            "fs_read = [\"/d/data/\", \"~/ref\"]\n"
                            "fs_write = [\"/d/data/out\"]\n"
                            "env_passthrough = [\"LANGUAGE\"]\n"
                            "[capabilities.spawn.limits]\n"
                            "memory = \"512M\"\n"
                            "processes = 16\n"
                            "timeout = 30\n"
                            "max_output = \"64k\"\n"
                            "[capabilities.network]\n"
                            "hosts = [\"Example.com.:443\", \"*.example.org:80\"]\n";

static void everything(void **state)
{
	(void)state;
	struct manifest manifest = parse(whole);
	assert_string_equal(manifest.name, "formatter");
	assert_string_equal(manifest.description, "formats");
	assert_int_equal(manifest.programs.count, 2);
	assert_string_equal(manifest.programs.items[0], "/u/bin/fmt");
	assert_string_equal(manifest.programs.items[1], "/h/me/bin/fmt");
	assert_int_equal(manifest.set.programs.count, 2);
	assert_true(manifest.set.spawn);
	assert_string_equal(manifest.set.fs_read.items[0], "/d/data");
	assert_string_equal(manifest.set.fs_read.items[1], "/h/me/ref");
	assert_string_equal(manifest.set.fs_write.items[0], "/d/data/out");
	assert_string_equal(manifest.env_pass.items[0], "LANGUAGE");
	assert_int_equal(manifest.set.limits.memory_bytes, 512 << 20);
	assert_int_equal(manifest.set.limits.processes, 16);
	assert_int_equal(manifest.set.limits.wall_ms, 30000);
	assert_int_equal(manifest.set.limits.stdout_bytes, 64 << 10);
	assert_int_equal(manifest.set.limits.stderr_bytes, 64 << 10);
	assert_int_equal(manifest.set.limits.disk_bytes, 0);
	assert_int_equal(manifest.set.network, NETWORK_HOSTS);
	assert_string_equal(manifest.set.hosts.items[0], "example.com:443");
	assert_int_equal(manifest.pattern_count, 2);
	assert_string_equal(manifest.patterns[0].where, "FILE:5:9");
	assert_int_equal(manifest.patterns[0].count, 2);
	assert_int_equal(manifest.patterns[0].words[1].kind, WORD_ONE);
	assert_string_equal(manifest.patterns[0].words[1].text, "file");
	assert_string_equal(manifest.patterns[1].words[1].text, "a b");
	assert_int_equal(manifest.patterns[1].words[2].kind, WORD_REST);
	assert_true(manifest.patterns[1].words[2].option);
}

static void little(void **state)
{
	(void)state;
	struct manifest manifest = parse(MINIMAL "[capabilities.network]\nhosts = []\n");
	assert_null(manifest.description);
	assert_int_equal(manifest.pattern_count, 0);
	assert_int_equal(manifest.set.network, NETWORK_NONE);
	assert_false(manifest.set.spawn);
	assert_int_equal(manifest.set.limits.memory_bytes, 0);
}

static const struct {
	const char *text, *place, *reason, *remedy;
} refused[] = {
	{ "", "1:1", "the manifest has no name", NULL },
	{ "name = \"x\"", "1:1", "the manifest declares no program", NULL },
	{ HEAD "programs = []", "1:1", "the manifest declares no program", NULL },
	{ "name = 1", "1:1", "name must be a text", NULL },
	{ "name = \"a b\"", "1:1", "name must be a text", NULL },
	{ "name = \"a\\u0000\"", "1:1", "name must be a text", NULL },
	{ "name = \"\"", "1:1", "name must be a text", NULL },
	{ "description = \"a\\nb\"", "1:1", "description must be a text of one line", NULL },
	{ "name = \"x\"\nnmae = \"y\"", "2:1", "there is no key \"nmae\" in the manifest", "did you mean name?" },
	{ "programs = []", "1:1", "there is no key \"programs\" in the manifest",
	  "it belongs in [capabilities.spawn]" },
	{ HEAD "memory = 1", "3:1", "there is no key \"memory\"", "it belongs in [capabilities.spawn.limits]" },
	{ HEAD "program = []", "3:1", "there is no key \"program\" in [capabilities.spawn]", "did you mean programs?" },
	{ HEAD "xyzzy = []", "3:1", "there is no key \"xyzzy\" in [capabilities.spawn]", "see cordon-manifest(5)" },
	{ "capabilities = 1", "1:1", "capabilities must be a table, and this is an integer", NULL },
	{ "[[capabilities.spawn]]", "1:16", "spawn must be a table, and this is an array", NULL },
	{ HEAD "programs = [\"ls\"]", "3:13", "\"ls\" is neither absolute nor does it begin with ~/", NULL },
	{ HEAD "programs = \"/b/ls\"", "3:1", "programs must be a list of paths", NULL },
	{ HEAD "programs = [\"/b/ls\", \"/b//ls\"]", "3:22", "programs has \"/b/ls\" twice", NULL },
	{ HEAD "env_passthrough = [\"LD_PRELOAD\"]", "3:20", "'LD_PRELOAD' is refused", NULL },
	{ HEAD "env_passthrough = [\"A\", \"A\"]", "3:25", "env_passthrough has \"A\" twice", NULL },
	{ MINIMAL "fs_write = [\"/a\"]\nfs_read = [\"/x\", \"/a/b\"]", "5:18", "\"/a/b\" is to be read only", NULL },
	{ MINIMAL "argv = []", "4:1", "argv is empty, so that no command would fit", NULL },
	{ MINIMAL "argv = \"-i\"", "4:1", "argv must be a list of patterns, and this is a string", NULL },
	{ MINIMAL "argv = [1]", "4:9", "each a text or a list of words, and this is an integer", NULL },
	{ MINIMAL "argv = [[\"a\", 1]]", "4:15", "each a text or a list of words, and this is an integer", NULL },
	{ MINIMAL "argv = [\"a\\tb\"]", "4:9", "a pattern has no control characters in it", NULL },
	{ MINIMAL "argv = [\"{a} -x\", [\"{b}\", \"-x\"]]", "4:19", "this pattern fits the same as the one on line 4",
	  NULL },
	{ MINIMAL "argv = [\"{a} {a}\"]", "4:9", "two placeholders of one pattern are called {a}", NULL },
	{ MINIMAL "argv = [\"{a...} b\"]", "4:9", "{a...} matches all that follows", NULL },
	{ MINIMAL "argv = [\"x{a...}\"]", "4:9", "a placeholder for several words is a word by itself", NULL },
	{ MINIMAL "argv = [\"{a}{b}\"]", "4:9", "a word has one placeholder at most", NULL },
	{ MINIMAL "argv = [\"{}\"]", "4:9", "a placeholder is a name in braces", NULL },
	{ MINIMAL "argv = [\"{a\"]", "4:9", "the name of a placeholder is followed by", NULL },
	{ MINIMAL "argv = [\"{a:path}\"]", "4:9", "the name of a placeholder is followed by", NULL },
	{ MINIMAL "argv = [\"a}\"]", "4:9", "a closing brace without an opening one", NULL },
	{ MINIMAL "limits.memory = \"1k\"", "4:8", "memory must be from 1M", NULL },
	{ MINIMAL "limits.timeout = 0", "4:8", "timeout must be from 1ms", NULL },
	{ MINIMAL "limits.processes = \"5\"", "4:8",
	  "processes must be a whole number, or \"none\", and this is a string", NULL },
	{ MINIMAL "limits.time = 5", "4:8", "there is no key \"time\" in [capabilities.spawn.limits]", NULL },
	{ "name = \"x\"\n[capabilities.network]\nhosts = [\"example.com\"]", "3:10", "\"example.com\" is not HOST:PORT",
	  NULL },
	{ "name = \"x\"\n[capabilities.network]\nhosts = [\"a:1\", \"A.:1\"]", "3:17", "hosts has \"a:1\" twice",
	  NULL },
	{ "name = \"x", "1:8", "this string is not closed", NULL },
};

static void refusals(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct manifest manifest;
		struct cordon_error err = { 0 };
		char subject[32];
		snprintf(subject, sizeof(subject), "FILE:%s", refused[i].place);
		if (manifest_parse(&arena, "FILE", "/h/me", refused[i].text, strlen(refused[i].text), &manifest,
		                   &err) == 0)
			fail_msg("<%s> was accepted", refused[i].text);
		assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
		if (strcmp(err.subject, subject) || !strstr(err.reason, refused[i].reason))
			fail_msg("<%s>: %s: %s", refused[i].text, err.subject, err.reason);
		if (refused[i].remedy)
			assert_string_equal(err.remediation, refused[i].remedy);
	}
}

static void without_home(void **state)
{
	(void)state;
	static const char text[] = HEAD "programs = [\"~/x\"]";
	struct manifest manifest;
	struct cordon_error err;
	assert_int_equal(manifest_parse(&arena, "FILE", NULL, text, strlen(text), &manifest, &err), -1);
	assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
}

/* Too much is refused, and at once. */
static void too_much(void **state)
{
	(void)state;
	struct manifest manifest;
	struct cordon_error err;
	char *text = NULL;
	size_t length;
	for (int words = 0; words < 2; words++) {
		FILE *out = open_memstream(&text, &length);
		fputs(MINIMAL "argv = [", out);
		fputs(words ? "[" : "", out);
		for (int i = 0; i <= MANIFEST_PATTERNS_MAX; i++)
			fprintf(out, "\"w%d\",", i);
		fputs(words ? "]]" : "]", out);
		fclose(out);
		assert_int_equal(manifest_parse(&arena, "FILE", NULL, text, length, &manifest, &err), -1);
		assert_non_null(strstr(err.reason, words ? "at most 256 words" : "more than 256 patterns"));
		free(text);
	}
}

#define ARGUMENTS_MAX 6

static const struct {
	const char *argv;                       /* TOML */
	const char *arguments[ARGUMENTS_MAX];   /* after the program */
	const char *wrong;                      /* part of the reason; NULL: it fits */
} commands[] = {
	{ "[\"\"]", { NULL }, NULL },
	{ "[\"\"]", { "x" }, "argument 1 is not as the manifest \"x\" declares: nothing more was expected" },
	{ "[[]]", { NULL }, NULL },
	{ "[\"-i {file}\"]", { "-i", "a" }, NULL },
	{ "[\"-i {file}\"]", { "-i", "a b" }, NULL },
	{ "[\"-i {file}\"]",
	  { "-i", "" },
	  "argument 2 is not as the manifest \"x\" declares: {file} does not match an empty argument" },
	{ "[\"-i {file}\"]",
	  { "-i", "-a" },
	  "argument 2 is not as the manifest \"x\" declares: {file} does not match an option" },
	{ "[\"-i {file}\"]", { "-i", "--" }, "does not match an option" },
	{ "[\"-i {file}\"]", { "-i", "-" }, "does not match an option" },
	{ "[\"-i {file}\"]", { "-i" }, "argument 2 is not as the manifest \"x\" declares: {file} is missing" },
	{ "[\"-i {file}\"]", { NULL }, "argument 1 is not as the manifest \"x\" declares: \"-i\" is missing" },
	{ "[\"-i {file}\"]", { "-x", "a" }, "argument 1 is not as the manifest \"x\" declares: \"-i\" was expected" },
	{ "[\"-i {file}\"]",
	  { "-i", "a", "b" },
	  "argument 3 is not as the manifest \"x\" declares: nothing more was expected" },
	{ "[\"{flag:option}\"]", { "-a" }, NULL },
	{ "[\"{flag:option}\"]", { "a" }, NULL },
	{ "[\"{flag:option}\"]", { "" }, "does not match an empty argument" },
	{ "[\"a {rest...}\"]", { "a" }, NULL },
	{ "[\"a {rest...}\"]", { "a", "b", "c" }, NULL },
	{ "[\"a {rest...}\"]",
	  { "a", "b", "-c" },
	  "argument 3 is not as the manifest \"x\" declares: {rest} does not match an option" },
	{ "[\"a {rest...}\"]", { "a", "b", "", "c" }, "argument 3" },
	{ "[\"{rest...}\"]", { NULL }, NULL },
	{ "[\"{rest:option...}\"]", { "-a", "--b" }, NULL },
	{ "[\"--out={file}.c\"]", { "--out=a.c" }, NULL },
	{ "[\"--out={file}.c\"]", { "--out=.c" }, "does not match an empty argument" },
	{ "[\"--out={file}.c\"]", { "--out=-x.c" }, "does not match an option" },
	{ "[\"--out={file:option}.c\"]", { "--out=-x.c" }, NULL },
	{ "[\"--out={file}.c\"]", { "--out=a.h" }, "--out={file}.c was expected" },
	{ "[\"--out={file}.c\"]", { "--out" }, "--out={file}.c was expected" },
	{ "[\"a{x}a\"]", { "a" }, "a{x}a was expected" },
	{ "[\"{{a}}\"]", { "{a}" }, NULL },
	{ "[\"{{a}}\"]", { "a" }, "\"{a}\" was expected" },
	{ "[\"{{{a}}}\"]", { "{b}" }, NULL },
	{ "[[\"a b\", \"\"]]", { "a b", "" }, NULL },
	{ "[[\"a b\", \"\"]]", { "a b", "x" }, "argument 2" },
	{ "[\"a\", \"b {x}\", \"b c d\"]", { "b", "c", "d" }, NULL },
	{ "[\"a\", \"b {x}\", \"b c d\"]", { "b", "c", "e" }, "argument 3" },
};

static struct strings command_of(const char *program, const char *const *arguments)
{
	struct strings argv = { 0 };
	assert_int_equal(strings_add(&arena, &argv, program), 0);
	for (size_t i = 0; i < ARGUMENTS_MAX && arguments[i]; i++)
		assert_int_equal(strings_add(&arena, &argv, arguments[i]), 0);
	return argv;
}

static void matching(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		struct cordon_error err = { 0 };
		struct manifest manifest =
			parse(arena_printf(&arena, HEAD "programs = [\"/x/y\"]\nargv = %s", commands[i].argv));
		struct strings argv = command_of("y", commands[i].arguments);
		int result = manifest_match(&manifest, "/x/y", &argv, &err);
		if (result == 0 && !commands[i].wrong)
			continue;
		if (result == 0 || !commands[i].wrong || !strstr(err.reason, commands[i].wrong))
			fail_msg("%s, command %zu: %s", commands[i].argv, i, result ? err.reason : "fits");
		assert_int_equal(err.class, CORDON_E_PROGRAM_NOT_ALLOWED);
		assert_string_equal(err.boundary, "manifest");
		assert_string_equal(err.subject, "/x/y");
		assert_non_null(strstr(err.remediation, "FILE:4:"));
	}
	struct manifest any = parse(HEAD "programs = [\"/x/y\"]");
	struct strings argv = command_of("/x/y", (const char *[ARGUMENTS_MAX]){ "-rf", "" });
	assert_int_equal(manifest_match(&any, "/x/y", &argv, NULL), 0);
}

/* The nearest is told, and the arguments are not: they may hold a secret. */
static void nearest(void **state)
{
	(void)state;
	struct cordon_error err;
	struct manifest manifest = parse(HEAD "programs = [\"/x/y\"]\nargv = [\n\"push\",\n\"get {url} to {file}\"]");
	struct strings argv = command_of("y", (const char *[ARGUMENTS_MAX]){ "get", "https://me:secret@x", "secret" });
	assert_int_equal(manifest_match(&manifest, "/x/y", &argv, &err), -1);
	assert_string_equal(err.remediation, "the nearest pattern is: get {url} to {file} (FILE:6:1)");
	assert_null(strstr(err.reason, "secret"));
	assert_null(strstr(err.subject, "secret"));
}

static void programs(void **state)
{
	(void)state;
	char directory[] = "/tmp/cordon-manifest-XXXXXX";
	struct cordon_error err;
	assert_non_null(mkdtemp(directory));
	const char *tool = arena_printf(&arena, "%s/box", directory), *alias = arena_printf(&arena, "%s/ls", directory);
	FILE *file = fopen(tool, "w");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(symlink("box", alias), 0);
	struct manifest manifest = parse(arena_printf(&arena, HEAD "programs = [\"%s\"]", alias));
	static const struct {
		bool by_alias;          /* the program's path: as listed, or what it leads to */
		const char *called;
		bool fits;
	} rows[] = {
		{ true, "ls", true }, { false, "ls", true }, { false, "./ls", true }, { false, "rm", false },
		{ false, "box", false }, { true, "rm", false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct strings argv = command_of(rows[i].called, (const char *[ARGUMENTS_MAX]){ NULL });
		assert_int_equal(manifest_match(&manifest, rows[i].by_alias ? alias : tool, &argv, &err),
		                 rows[i].fits ? 0 : -1);
		if (!rows[i].fits)
			assert_non_null(strstr(err.reason, "under the name it was called by"));
	}
	static const char *const others[] = { "/bin/rm", "ls", "", "/nonexistent/ls" };
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct strings argv = command_of("ls", (const char *[ARGUMENTS_MAX]){ NULL });
		assert_int_equal(manifest_match(&manifest, others[i], &argv, &err), -1);
		assert_int_equal(err.class, CORDON_E_PROGRAM_NOT_ALLOWED);
		assert_null(strstr(err.reason, "under the name"));
	}
	unlink(alias);
	unlink(tool);
	rmdir(directory);
}

static void files(void **state)
{
	(void)state;
	char directory[] = "/tmp/cordon-manifest-XXXXXX";
	struct manifest manifest;
	struct cordon_error err;
	assert_non_null(mkdtemp(directory));
	const char *path = arena_printf(&arena, "%s/m.toml", directory),
		   *fifo = arena_printf(&arena, "%s/fifo", directory);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(HEAD "programs = [\"~/x\"]\n", file);
	fclose(file);
	assert_true(!HAS_SPECIAL_FILES || mkfifo(fifo, 0600) == 0);
	assert_int_equal(manifest_read(&arena, path, "/h/somebody", &manifest, &err), 0);
	assert_string_equal(manifest.programs.items[0], "/h/somebody/x");
	const char *const bad[] = { directory, fifo, "/nonexistent/m.toml", "/dev/zero", "" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(manifest_read(&arena, bad[i], NULL, &manifest, &err), -1);
		assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
	}
	chmod(path, 0666);
	assert_int_equal(manifest_read(&arena, path, "/h/somebody", &manifest, &err), -1);
	unlink(path);
	unlink(fifo);
	rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(everything, free_arena), cmocka_unit_test_teardown(little, free_arena),
		cmocka_unit_test_teardown(refusals, free_arena), cmocka_unit_test_teardown(without_home, free_arena),
		cmocka_unit_test_teardown(too_much, free_arena), cmocka_unit_test_teardown(matching, free_arena),
		cmocka_unit_test_teardown(nearest, free_arena), cmocka_unit_test_teardown(programs, free_arena),
		cmocka_unit_test_teardown(files, free_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

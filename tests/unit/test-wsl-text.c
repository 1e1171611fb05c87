/* Texts that go to the distro of cordon's own in WSL, and what comes from it: src/driver/wsl/text.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/wsl/wsl.h"

#include <cmocka.h>

#define BYTES(text) text, sizeof(text) - 1

static void decoding(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *text;
	} rows[] = {
		{ BYTES(""), "" },
		{ BYTES("plain \xc3\xa9"), "plain \xc3\xa9" },
		{ BYTES("a\0b\0\r\0\n\0"), "ab\r\n" },
		{ BYTES("\xff\xfe" "a\0"), "a" },
		{ BYTES("\xe9\0\x2c\x67"), "\xc3\xa9\xe6\x9c\xac" },
		{ BYTES("a\0\x3d\xd8\x00\xde"), "a\xf0\x9f\x98\x80" },
		{ BYTES("a\0\x3d\xd8" "b\0"), "a\xef\xbf\xbd" "b" },
		{ BYTES("a\0\x00\xde"), "a\xef\xbf\xbd" },
		{ BYTES("a\0\x3d\xd8"), "a\xef\xbf\xbd" },
		{ BYTES("a\0b"), "a" },
		{ BYTES("\0\0\0"), "" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct arena arena = { 0 };
		/* Where it ends, nothing more may be read. */
		char *bytes = malloc(rows[i].length ? rows[i].length : 1);
		memcpy(bytes, rows[i].bytes, rows[i].length);
		assert_string_equal(wsl_decode(&arena, bytes, rows[i].length), rows[i].text);
		free(bytes);
		arena_free(&arena);
	}
	/* Whatever comes. */
	srand(5);
	for (int turn = 0; turn < 2000; turn++) {
		struct arena arena = { 0 };
		size_t length = (size_t)rand() % 40;
		char *bytes = malloc(length ? length : 1);
		for (size_t i = 0; i < length; i++)
			bytes[i] = rand() % 3 ? (char)rand() : '\0';
		char *text = wsl_decode(&arena, bytes, length);
		assert_non_null(text);
		wsl_listed(text, &(unsigned){ 0 });
		free(bytes);
		arena_free(&arena);
	}
}

static void listing(void **state)
{
	static const struct {
		const char *text;
		bool there;
		unsigned version;
	} rows[] = {
		{ "", false, 9 },
		{ "  NAME            STATE           VERSION\r\n* Ubuntu          Running         2\r\n", false, 9 },
		{ "  NAME            STATE           VERSION\r\n* cordon-sandbox  Running         2\r\n", true, 2 },
		{ "* Ubuntu Running 1\r\n  cordon-sandbox  Wird ausgef\xc3\xbchrt 1   \r\n", true, 1 },
		{ "  Cordon-Sandbox Stopped 2", true, 2 },
		{ "  cordon-sandbox2 Stopped 2\r\n  my-cordon-sandbox Stopped 2\r\n", false, 9 },
		{ "  cordon-sandbox", true, 0 },
		{ "  cordon-sandbox x12\n", true, 0 },
		{ "cordon-sandbox \n2", true, 0 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned version = 9;
		assert_int_equal(wsl_listed(rows[i].text, &version), rows[i].there);
		assert_int_equal(version, rows[i].version);
	}
}

static void the_user(void **state)
{
	struct arena arena = { 0 };
	const char *why = NULL;
	(void)state;
	assert_string_equal(wsl_add_user(&arena, "root:x:0:0::/root:/bin/sh\n", &why),
	                    "root:x:0:0::/root:/bin/sh\ncordon:x:64817:64817::/home/cordon:/bin/sh\n");
	assert_string_equal(wsl_add_user(&arena, "", &why), "cordon:x:64817:64817::/home/cordon:/bin/sh\n");
	assert_null(wsl_add_user(&arena, "root:x:0:0::/:/bin/sh\ncordon:x:1000:1000::/:/bin/sh", &why));
	assert_non_null(strstr(why, "user cordon"));
	assert_null(wsl_add_user(&arena, "x:x:64817:1::/:/bin/sh\n", &why));
	assert_non_null(strstr(why, "number"));
	assert_non_null(wsl_add_user(&arena, "cordon2:x:1:1::/:/bin/sh\n", &why));
	arena_free(&arena);
}

#define HEAD                                                                                                           \
	"/dev/sdc / ext4 rw,relatime 0 0\nnone /run tmpfs rw 0 0\ndrivers /usr/lib/wsl/drivers 9p ro,aname=drivers 0 " \
	"0\n"

static void mounts(void **state)
{
	static const struct {
		const char *text, *foreign;
		bool mounted;
	} rows[] = {
		{ HEAD, NULL, false },
		{ HEAD "C:\\134 /mnt/c 9p rw,aname=drvfs;path=C:\\134;uid=1,trans=fd 0 0\n", "/mnt/c", false },
		{ HEAD "C:\\134 /a\\040b drvfs rw 0 0", "/a b", false },
		{ HEAD "tag /mnt/wsl/x virtiofs rw 0 0\n", "/mnt/wsl/x", false },
		{ HEAD "x /workspace/ID 9p rw,aname=drvfs;path=C:\\134my\\040work;symlinkroot=/mnt/,trans=fd 0 0\n",
		  NULL, true },
		{ HEAD "C:\\134My\\040Work\\134 /workspace/ID drvfs rw 0 0\n", NULL, true },
		{ HEAD "x /workspace/ID 9p rw,aname=drvfs;path=C:\\134,trans=fd 0 0\n", NULL, false },
		{ HEAD "x /workspace/ID 9p rw,aname=drvfs;path=C:\\134my\\040work2,trans=fd 0 0\n", NULL, false },
		{ HEAD "x /workspace/ID 9p rw,path=C:\\134my\\040work,trans=fd 0 0\n", NULL, false },
		{ HEAD "x /workspace/ID virtiofs rw,path=C:\\134my\\040work 0 0\n", NULL, false },
		{ HEAD "x /workspace/IDX 9p rw,aname=drvfs;path=C:\\134my\\040work 0 0\n", NULL, false },
		/* One over the other. */
		{ "x /workspace/ID drvfs rw 0 0\nC:\\134my\\040work /workspace/ID drvfs rw 0 0\n", NULL, false },
		{ "\\1", NULL, false },
		{ "x /workspace/ID drvfs", NULL, false },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct arena arena = { 0 };
		const char *foreign = wsl_foreign_mount(&arena, rows[i].text);
		assert_string_equal(foreign ? foreign : "", rows[i].foreign ? rows[i].foreign : "");
		assert_int_equal(wsl_is_mounted(&arena, rows[i].text, "ID", "C:\\my work"), rows[i].mounted);
		arena_free(&arena);
	}
	assert_null(wsl_source_refused("C:\\my work"));
	assert_non_null(wsl_source_refused("C:\\a,b"));
	assert_non_null(wsl_source_refused("C:\\a;b"));
	assert_non_null(wsl_source_refused("C:\\a\nb"));
}

/* What sh makes of the words is what the command gets. */
static void the_command_as_sh_reads_it(void **state)
{
	static const char *argv[] = { "printf",     "%s|", "", "a b", "'", "it's", "$HOME `id` \"x\" \\n",
		                      "two\nlines", "--" };
	static const char *environment[] = { "PATH=C:\\x", "Path=C:\\x", "A=it's $(x)",
		                             "CORDON_X=1", "WSLENV=A",   "UserProfile=C:\\u" };
	struct arena arena = { 0 };
	(void)state;
	const struct strings variables = { .items = environment, .count = 6 };
	struct profile profile = { .argv = { .items = argv, .count = 9 },
		                   .workspace = "/c/w",
		                   .cwd = "/c/w/sub dir",
		                   .network = NETWORK_ALL,
		                   .limits = { .wall_ms = 1500, .memory_bytes = 1 << 20 } };
	char *text = wsl_script(&arena, &profile, &variables, "ID");
	assert_non_null(text);
	assert_non_null(strstr(text, " --workspace '/workspace/ID' --cwd '/workspace/ID/sub dir' --net all --no-spawn "
	                             "--timeout '1500ms' --memory '1048576'"
	                             " --env 'A=it'\\''s $(x)' -- 'printf'"));
	assert_null(strstr(text, "PATH"));
	assert_null(strstr(text, "UserProfile"));
	char *words = strstr(text, "-- 'printf' ");
	FILE *pipe = popen(words + 3, "r");
	char said[256] = "";
	assert_non_null(pipe);
	size_t got = fread(said, 1, sizeof(said) - 1, pipe);
	pclose(pipe);
	said[got] = '\0';
	assert_string_equal(said, "|a b|'|it's|$HOME `id` \"x\" \\n|two\nlines|--|");
	arena_free(&arena);
}

static void the_configuration_is_toml(void **state)
{
	static const char *protect[] = { "/c/w/.git/hooks", "/c/elsewhere", "/c/w" };
	struct place masked[] = { { .path = "/c/w/a [1]*.env" },
		                  { .path = "/c/w/q\"\\x" },
		                  { .path = "/c/other/.env" } };
	struct profile profile = { .workspace = "/c/w",
		                   .protect = { .items = protect, .count = 3 },
		                   .masked = { .items = masked, .count = 3 } };
	struct arena arena = { 0 };
	(void)state;
	assert_string_equal(wsl_configuration(&arena, &profile, "ID"),
	                    "[capabilities]\ndeny = [\"/workspace/ID/a \\\\[1\\\\]\\\\*.env\", "
	                    "\"/workspace/ID/q\\u0022\\\\\\\\x\", ]\n"
	                    "protect = [\".git/hooks\", ]\n");
	arena_free(&arena);
}

static void sums(void **state)
{
	char sum[WSL_SUM_SIZE];
	(void)state;
	assert_true(wsl_sum_read("E3B0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", sum));
	assert_string_equal(sum, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_false(wsl_sum_read("", sum));
	assert_false(wsl_sum_read("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85", sum));
	assert_false(wsl_sum_read("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b8555", sum));
	assert_false(wsl_sum_read("g3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", sum));
}

/* Both scripts are read by sh as they are meant. */
static void the_scripts_are_sh(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		FILE *sh = popen("sh -n", "w");
		assert_non_null(sh);
		fputs(i ? wsl_up : wsl_down, sh);
		assert_int_equal(pclose(sh), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decoding),
		cmocka_unit_test(listing),
		cmocka_unit_test(the_user),
		cmocka_unit_test(mounts),
		cmocka_unit_test(the_command_as_sh_reads_it),
		cmocka_unit_test(the_configuration_is_toml),
		cmocka_unit_test(sums),
		cmocka_unit_test(the_scripts_are_sh),
	};
	return cmocka_run_group_tests_name("wsl-text", tests, NULL, NULL);
}

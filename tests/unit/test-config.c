/* The configuration's rows, and what a file may say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config-stack.h"
#include "system-has.h"
#include "cordon-internal.h"

/* ---- the rows --------------------------------------------------------------------------------------------------- */

static void rows_are_sound(void **state)
{
	(void)state;
	for (int i = 0; i < KEY_MAX; i++) {
		const struct config_row *row = &config_rows[i];
		struct config_file file;
		struct cordon_error err = { 0 };
		char text[2048];
		for (int j = 0; j < i; j++)
			assert_string_not_equal(row->path, config_rows[j].path);
		assert_true(i == 0 || row->section >= row[-1].section);
		assert_true(row->least <= row->most);
		assert_true(*row->fallback || *row->example);
		if (row->type == CONFIG_TYPE_ENUM)
			assert_non_null(strchr(row->values, ' '));
		if (config_section_repeats(row->section))
			continue;
		const char *const values[] = { row->fallback, row->example };
		for (int j = 0; j < 2; j++) {
			if (!*values[j] || (!HAS_ROOT && strstr(values[j], "\"/")))
				continue;
			bool whole = row->type == CONFIG_TYPE_RULES;
			snprintf(text, sizeof(text), "%s%s = %s\n", whole ? values[j] : "", whole ? "#" : row->path,
			         whole ? "" : values[j]);
			if (stack_parse("row", text, &file, &err) < 0)
				fail_msg("%s: %s %s", text, err.subject, err.reason);
			assert_string_equal(file.values[i].file, "row");
		}
	}
}

static void examples_of_sections_are_sound(void **state)
{
	static const char *const examples[] = {
#define CONFIG_SECTION(name, in_session, help, example) example,
#include "cordon-config.def"
	};
	struct config_file file;
	struct cordon_error err;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++)
		if ((HAS_ROOT || !strstr(examples[i], "\"/")) && stack_parse("section", examples[i], &file, &err) < 0)
			fail_msg("%s: %s %s", examples[i], err.subject, err.reason);
}

static void rows_are_documented(void **state)
{
	(void)state;
	static const struct { const char *path, *help, *more; } rows[] = {
#define CONFIG(section, key, type, values, least, most, fallback, example, narrows, project, reload, help, more) \
		{ #section "." #key, help, more },
#include "cordon-config.def"
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_true(strlen(rows[i].help) > 5 && strlen(rows[i].help) < 100);
		assert_true(rows[i].help[strlen(rows[i].help) - 1] != '.');
		assert_true(!*rows[i].more || rows[i].more[strlen(rows[i].more) - 1] == '.');
	}
}

/* The rows' defaults are those the library has without any configuration. */
static void defaults_are_the_baseline(void **state)
{
	(void)state;
	struct config config = stacked(NULL, NULL, NULL);
	struct capability_set baseline;
	assert_int_equal(capability_baseline(&arena, true, &baseline), 0);
	assert_memory_equal(&config.baseline.limits, &baseline.limits, sizeof(baseline.limits));
	const struct strings *const pairs[][2] = {
		{ &config.baseline.deny, &baseline.deny }, { &config.baseline.protect, &baseline.protect },
		{ &config.baseline.exempt, &baseline.exempt },
	};
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		assert_int_equal(pairs[i][0]->count, pairs[i][1]->count);
		for (size_t j = 0; j < pairs[i][0]->count; j++)
			assert_string_equal(pairs[i][0]->items[j], pairs[i][1]->items[j]);
	}
	assert_true(capability_within(&config.baseline, &baseline, NULL, NULL));
	assert_true(capability_within(&baseline, &config.baseline, NULL, NULL));
	assert_true(config.enabled && !config.degrade && !config.choose_toolchains && !config.sync_disk);
	assert_null(config.driver);
	assert_null(config.view);
	assert_null(config.workspace_root);
	assert_null(config.tools_dir);
	assert_int_equal(config.approval.timeout_ms, 120000);
	assert_int_equal(config.approval.denials_to_pause, 3);
	assert_false(config.approval.queue);
	assert_int_equal(config.usual.wall_ms, 60000);
	assert_int_equal(config.usual.stdout_bytes, 1 << 20);
	assert_int_equal(config.usual.stderr_bytes, 256 << 10);
}

/* ---- one file --------------------------------------------------------------------------------------------------- */

static void everything_is_read(void **state)
{
	(void)state;
	struct config config = stacked(
		NULL,
		"[sandbox]\nenabled = false\ndriver = \"disabled\"\non_unavailable = \"degrade\"\nworkspace_root = "
	        "\"~/w/../x\"\n"
		"default_timeout = 30\nmax_output = \"512K\"\nview = \"bare\"\ntoolchains = [\"nvm\"]\n"
		"[capabilities]\npreset = \"strict\"\nfs_read = [\"/d/data//a/\", \"~/r\"]\nfs_write = [\"/o/out\"]\n"
		"read_only = [\"/o/out/keep\"]\ndeny = [\"**/secret\", \"!**/.env\", \"~/x*\"]\nprotect = "
	        "[\"AGENTS.md\"]\n"
		"network = [\"Example.com:443\", \"*.a.org:22\", \"[::1]:1\", \"10.0.0.1:80\"]\nprograms = "
	        "[\"/u/bin/git\"]\n"
		"devices = [\"/v/dri\"]\nsockets = [\"/r/x\"]\n"
		"[limits]\nmemory = 1048576\ncpu = 250\nprocesses = 7\ndisk = \"3G\"\ntime = \"5m\"\nstdout = "
	        "10\nstderr = \"1k\"\n"
		"open_files = 99\ntmp = \"1M\"\nrequired = [\"cpu\", \"memory\", \"disk\"]\ncgroup = "
	        "\"/s/fs/cgroup/x\"\n"
		"[env]\npassthrough = [\"FOO\"]\nset = { A = \"1\", B = \"x y\" }\n"
		"[policy]\nallowed_paths = [\"/p\"]\ndenied_paths = [\"/p/q\"]\n"
		"[[policy.rules]]\ntool = \"run\"\nmatch = \"~/bin/*\"\ndecision = \"deny\"\n"
		"[[policy.rules]]\ntool = \"*\"\ndecision = \"ask\"\n"
		"[approval]\ntimeout = \"10s\"\ndenials_to_pause = 0\nqueue = true\n"
		"[audit]\nsync = \"disk\"\n[tools]\ndir = \"/t/t\"\n",
		NULL);
	assert_false(config.enabled);
	assert_string_equal(config.driver, "disabled");
	assert_true(config.degrade);
	assert_string_equal(config.workspace_root, "/h/me/x");
	assert_int_equal(config.usual.wall_ms, 30000);
	assert_int_equal(config.usual.stdout_bytes, 10);
	assert_int_equal(config.usual.stderr_bytes, 1024);
	assert_string_equal(config.view, "bare");
	assert_true(config.choose_toolchains);
	assert_string_equal(config.toolchains.items[0], "nvm");
	const struct capability_set *set = &config.baseline;
	assert_false(set->spawn);
	assert_string_equal(set->fs_read.items[0], "/d/data/a");
	assert_string_equal(set->fs_read.items[1], "/h/me/r");
	assert_string_equal(set->fs_write.items[0], "/o/out");
	assert_string_equal(config.read_only.items[0], "/o/out/keep");
	assert_int_equal(config.required_limits,
	                 1 << CORDON_WALL_LIMIT_MEMORY | 1 << CORDON_WALL_LIMIT_CPU | 1 << CORDON_WALL_LIMIT_DISK);
	assert_string_equal(config.cgroup, "/s/fs/cgroup/x");
	assert_true(strings_find(&set->deny, "**/.env") < 0);
	assert_true(strings_find(&set->deny, "**/secret") >= 0);
	assert_true(strings_find(&set->deny, "/h/me/x*") >= 0);
	assert_true(strings_find(&set->protect, ".git/hooks") >= 0);
	assert_true(strings_find(&set->protect, "AGENTS.md") >= 0);
	assert_int_equal(set->network, NETWORK_HOSTS);
	assert_int_equal(set->hosts.count, 4);
	assert_true(strings_find(&set->hosts, "example.com:443") >= 0);
	assert_string_equal(set->programs.items[0], "/u/bin/git");
	assert_string_equal(set->devices.items[0], "/v/dri");
	assert_string_equal(set->sockets.items[0], "/r/x");
	const struct limits want = { 1 << 20, 250, 7, 3ull << 30, 300000, 10, 1024, 99, 1 << 20 };
	assert_memory_equal(&set->limits, &want, sizeof(want));
	assert_string_equal(config.env_pass.items[0], "FOO");
	assert_string_equal(config.env_set.items[1], "B=x y");
	assert_string_equal(config.rules.allowed_paths.items[0], "/p");
	assert_string_equal(config.rules.denied_paths.items[0], "/p/q");
	assert_int_equal(config.rules.count, 2);
	assert_string_equal(config.rules.items[0].match, "/h/me/bin/*");
	assert_string_equal(config.rules.items[0].where, "user:39:1");
	assert_int_equal(config.rules.items[1].decision, RULE_ASK);
	assert_int_equal(config.approval.timeout_ms, 10000);
	assert_int_equal(config.approval.denials_to_pause, 0);
	assert_true(config.approval.queue && config.sync_disk);
	assert_string_equal(config.tools_dir, "/t/t");
}

static void mistakes_are_placed(void **state)
{
	(void)state;
	static const struct { const char *text, *where, *part;
	} rows[] = {
		{ "[sandbox]\ndrivr = \"local\"\n", "user:2:1", "did you mean driver?" },
		{ "[sandbox]\ndriver = \"landlok\"\n", "user:2:1", "did you mean landlock?" },
		{ "[sandbx]\n", "user:1:2", "did you mean sandbox?" },
		{ "[limits]\nrequired = [\"cpu\", \"memroy\"]\n", "user:2:20", "did you mean memory?" },
		{ "driver = \"local\"\n", "user:1:1", "did you mean sandbox.driver?" },
		{ "[sandbox]\nmemory = \"1G\"\n", "user:2:1", "did you mean limits.memory?" },
		{ "[network]\nhosts = []\n", "user:2:1", "there is no key \"hosts\" in [network]" },
		{ "network.allow_private = [\"10.0.0.0/8\", \"8.8.8.8\"]\n", "user:1:40", "refused by nothing" },
		{ "network.allow_private = [\"10.0.0.1/8\"]\n", "user:1:26", "beyond the prefix" },
		{ "network.allow_private = \"10.0.0.0/8\"\n", "user:1:9", "a list of addresses" },
		{ "network.names = { \"a b\" = \"10.0.0.1\" }\n", "user:1:19", "is not a name" },
		{ "network.names = { \"10.0.0.2\" = \"10.0.0.1\" }\n", "user:1:19", "it is an address" },
		{ "network.names = { \"*.a\" = \"10.0.0.1\" }\n", "user:1:19", "is not a name" },
		{ "network.names = { a = \"10.1\" }\n", "user:1:19", "is none" },
		{ "network.names = { a = [\"10.0.0.1\", 7] }\n", "user:1:36", "must be a string" },
		{ "network.names = { a = [] }\n", "user:1:19", "has no address" },
		{ "network.names = [\"a=10.0.0.1\"]\n", "user:1:9", "a table of names" },
		{ "network.connections = 0\n", "user:1:9", "from 1 to" },
		{ "network.header = 100\n", "user:1:9", "from 1K to 1M" },
		{ "[gateways]\n", "user:1:2", "no section or key" },
		{ "[sandbox]\nenabled = \"yes\"\n", "user:2:1", "true or false, and this is a string" },
		{ "[sandbox]\nenabled = 1\n", "user:2:1", "an integer" },
		{ "sandbox = 3\n", "user:1:1", "must be a table" },
		{ "[sandbox]\nworkspace_root = \"here\"\n", "user:2:1", "neither absolute" },
		{ "[sandbox]\nworkspace_root = \"~you/x\"\n", "user:2:1", "neither absolute" },
		{ "[sandbox]\nworkspace_root = \"\"\n", "user:2:1", "must not be empty" },
		{ "[sandbox]\nworkspace_root = \"/a\\u0000b\"\n", "user:2:1", "control character" },
		{ "[sandbox]\nworkspace_root = \"/a\\nb\"\n", "user:2:1", "control character" },
		{ "[sandbox]\ndefault_timeout = 0\n", "user:2:1", "from 1ms to" },
		{ "[sandbox]\ndefault_timeout = \"soon\"\n", "user:2:1", "must be a time" },
		{ "[sandbox]\ndefault_timeout = 9223372036854775807\n", "user:2:1", "from 1ms to" },
		{ "[sandbox]\ntoolchains = [\"nvmm\"]\n", "user:2:15", "nvm" },
		{ "[sandbox]\netc = [\"/etc/a\", \"/usr\"]\n", "user:2:18", "not beneath /etc" },
		{ "[sandbox]\netc = [\"/etc/../root/x\"]\n", "user:2:8", "not beneath /etc" },
		{ "[sandbox]\netc = [\"/etc\"]\n", "user:2:8", "not beneath /etc" },
		{ "[sandbox]\netc = [\"/etc/a/*\"]\n", "user:2:8", "directly in /etc" },
		{ "[sandbox]\netc = [\"/etc/passwd\"]\n", "user:2:8", "cordon makes this file" },
		{ "[sandbox]\ntoolchains = \"some\"\n", "user:2:1", "is not a value" },
		{ "[capabilities]\nfs_read = [\"/o/ok\",\n  \"relative\"]\n", "user:3:3", "neither absolute" },
		{ "[capabilities]\nfs_read = \"/d\"\n", "user:2:1", "a list of paths" },
		{ "[capabilities]\nfs_read = [1]\n", "user:2:12", "an integer" },
		{ "[capabilities]\ndeny = [\"../x\"]\n", "user:2:9", "\"..\"" },
		{ "[capabilities]\ndeny = [\"!**/.enw\"]\n", "user:2:9", "**/.env" },
		{ "[capabilities]\nprotect = [\"/etc/passwd\"]\n", "user:2:12", "relative" },
		{ "[capabilities]\nnetwork = \"some\"\n", "user:2:1", "none all" },
		{ "[capabilities]\nnetwork = [\"example.com\"]\n", "user:2:12", "HOST:PORT" },
		{ "[capabilities]\nnetwork = true\n", "user:2:1", "or one of: none all" },
		{ "[capabilities]\nspawn = []\n", "user:2:1", "an array" },
		{ "[limits]\nmemory = \"lots\"\n", "user:2:1", "512M" },
		{ "[limits]\nmemory = 1.5\n", "user:2:1", "a float" },
		{ "[limits]\nmemory = \"1k\"\n", "user:2:1", "from 1M to 1024T" },
		{ "[limits]\nmemory = -1\n", "user:2:1", "from 1M to 1024T" },
		{ "[limits]\nprocesses = 0\n", "user:2:1", "from 1 to 1048576" },
		{ "[limits]\nprocesses = \"64\"\n", "user:2:1", "a whole number, or \"none\", and this is a string" },
		{ "[limits]\ncpu = 1979-05-27\n", "user:2:1", "a date" },
		{ "[env]\npassthrough = [\"LD_PRELOAD\"]\n", "user:2:16", "dynamic loader" },
		{ "[env]\npassthrough = [\"A=B\"]\n", "user:2:16", "'='" },
		{ "[env.set]\nGOOD = \"1\"\nNODE_OPTIONS = \"hunter2\"\n", "user:3:1", "Node.js" },
		{ "[env.set]\nTOKEN = 5\n", "user:2:1", "must be a string" },
		{ "[env.set]\nTOKEN = \"a\\u0000b\"\n", "user:2:1", "NUL" },
		{ "[env.set]\n\"\" = \"x\"\n", "user:2:1", "empty" },
		{ "[policy]\nrules = 3\n", "user:2:1", "[[policy.rules]]" },
		{ "[policy]\nrules = [3]\n", "user:2:10", "a table" },
		{ "[[policy.rules]]\ndecision = \"deny\"\n", "user:1:1", "needs a tool" },
		{ "[[policy.rules]]\ntool = \"run\"\n", "user:1:1", "needs a decision" },
		{ "[[policy.rules]]\ntool = \"rum\"\ndecision = \"deny\"\n", "user:2:1", "did you mean run?" },
		{ "[[policy.rules]]\ntool = \"run\"\ndecision = \"denny\"\n", "user:3:1", "did you mean deny?" },
		{ "[[policy.rules]]\ntool = \"run\"\ndecision = \"deny\"\nmath = \"x\"\n", "user:4:1",
		  "did you mean match?" },
		{ "[[policy.rules]]\ntool = \"run\"\ndecision = \"deny\"\nmatch = \"a/b\"\n", "user:4:1",
		  "begins in no directory" },
		{ "[[policy.rules]]\ntool = \"run\"\ndecision = \"deny\"\nmatch = 3\n", "user:4:1", "an integer" },
		{ "[[session]]\nlimits.memory = \"1G\"\n", "user:1:1", "needs a match" },
		{ "[[session]]\nmatch = \"\"\n", "user:2:1", "not empty" },
		{ "[[session]]\nmatch = \"a\"\nlimits.memroy = \"1G\"\n", "user:3:8", "did you mean memory?" },
		{ "[[session]]\nmatch = \"a\"\nsandbox.driver = \"local\"\n", "user:3:1", "in [session]" },
		{ "[[session]]\nmatch = \"a\"\nmemory = \"1G\"\n", "user:3:1", "limits.memory" },
		{ "[session]\nmatch = \"a\"\n", "user:1:2", "[[session]]" },
		{ "[sandbox\n", "user:1:9", "" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cordon_error err = { 0 };
		struct config config;
		if (!HAS_ROOT && (strstr(rows[i].text, "/etc") || strstr(rows[i].text, "landlok")))
			continue;
		if (stack_for(NULL, NULL, rows[i].text, NULL, &config, &err) == 0)
			fail_msg("not refused: %s", rows[i].text);
		if (strcmp(err.subject, rows[i].where) || err.class != CORDON_E_CONFIG_INVALID ||
		    (!strstr(err.reason, rows[i].part) && !strstr(err.remediation, rows[i].part)))
			fail_msg("%s is told as %s: %s (%s)", rows[i].text, err.subject, err.reason, err.remediation);
		assert_null(strstr(err.reason, "hunter2"));
	}
}

static void home_must_be_known(void **state)
{
	(void)state;
	const struct config_reader reader = { &arena, "f", NULL };
	struct config_file file;
	struct cordon_error err = { 0 };
	static const char *const texts[] = { "sandbox.workspace_root = \"~/x\"", "capabilities.deny = [\"~/x\"]" };
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_true(config_parse(&reader, texts[i], strlen(texts[i]), &file, &err) < 0);
		assert_non_null(strstr(err.reason, "HOME"));
	}
}

static void bad(const char *text, const char *where, const char *part)
{
	refused_at(NULL, text, NULL, where, part);
}

static void contradictions_name_both_lines(void **state)
{
	(void)state;
	bad("[[policy.rules]]\ntool = \"run\"\nmatch = \"/a\"\ndecision = \"deny\"\n"
	    "[[policy.rules]]\ntool = \"run\"\nmatch = \"/b\"\ndecision = \"ask\"\n"
	    "[[policy.rules]]\ntool = \"run\"\nmatch = \"/a\"\ndecision = \"allow\"\n", "user:9:1", "user:1:1");
	bad("[[policy.rules]]\ntool = \"*\"\ndecision = \"deny\"\n[[policy.rules]]\ntool = \"*\"\ndecision = \"ask\"\n",
	    "user:4:1", "user:1:1");
	/* Said twice is no contradiction, nor are two files. */
	stacked(NULL,
	        "[[policy.rules]]\ntool = \"*\"\ndecision = \"deny\"\n[[policy.rules]]\ntool = \"*\"\ndecision = "
	        "\"deny\"\n",
	        "[[policy.rules]]\ntool = \"*\"\ndecision = \"ask\"\n");
}

static void bombs_are_refused(void **state)
{
	(void)state;
	size_t size = 32u << 20, used = 0;
	char *text = malloc(size);
	struct cordon_error err = { 0 };
	struct config_file file;
	const struct config_reader reader = { &arena, "f", NULL };
	assert_non_null(text);
	for (int i = 0; i < 1000000; i++)
		used += (size_t)snprintf(text + used, size - used, "key%d = %d\n", i, i);
	assert_true(config_parse(&reader, text, used, &file, &err) < 0);
	assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
	/* Smaller, but too many for one list. */
	used = (size_t)snprintf(text, size, "capabilities.fs_read = [");
	for (int i = 0; i <= CONFIG_LIST_MAX; i++)
		used += (size_t)snprintf(text + used, size - used, "\"/%d\",", i);
	used += (size_t)snprintf(text + used, size - used, "]\n");
	assert_true(config_parse(&reader, text, used, &file, &err) < 0);
	assert_non_null(strstr(err.reason, "more than"));
	used = 0;
	for (int i = 0; i <= CONFIG_BLOCKS_MAX; i++)
		used += (size_t)snprintf(text + used, size - used, "[[session]]\nmatch = \"%d\"\n", i);
	assert_true(config_parse(&reader, text, used, &file, &err) < 0);
	assert_non_null(strstr(err.reason, "more than"));
	used = (size_t)snprintf(text, size, "a = ");
	memset(text + used, '[', 100000);
	assert_true(config_parse(&reader, text, used + 100000, &file, &err) < 0);
	free(text);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, stack_setup, stack_teardown)
	const struct CMUnitTest tests[] = {
		ROW(rows_are_sound),      ROW(examples_of_sections_are_sound),
		ROW(rows_are_documented), ROW(defaults_are_the_baseline),
		ROW(everything_is_read),  ROW(mistakes_are_placed),
		ROW(home_must_be_known),  ROW(contradictions_name_both_lines),
		ROW(bombs_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

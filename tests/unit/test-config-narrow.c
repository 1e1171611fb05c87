/* What files of the configuration on top of each other come to: each is a ceiling for the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

#include "config-stack.h"
#include "cordon-internal.h"
#include "system-has.h"

/* For every row: a value, one that is within it, one that is not. Paths are of any system, on a drive where there are
 * some. */
static const struct narrowing {
	const char *path, *value, *narrower, *wider;
} narrowings[] = {
	{ "sandbox.enabled", "false", "false", "true" },
	{ "sandbox.driver", "\"disabled\"", "\"disabled\"", "\"auto\"" },
	{ "sandbox.on_unavailable", "\"refuse\"", "\"refuse\"", "\"degrade\"" },
	{ "sandbox.workspace_root", "\"/w\"", "\"/w\"", NULL },
	{ "sandbox.default_timeout", "\"30s\"", "29", "31" },
	{ "sandbox.job_timeout", "\"10m\"", "\"5m\"", "\"2h\"" },
	{ "sandbox.max_output", "\"1K\"", "1024", "1025" },
	{ "sandbox.view", "\"system\"", "\"bare\"", "\"host-readonly\"" },
	{ "sandbox.etc", "[\"/etc/a\", \"/etc/b*\"]", "[\"/etc//b*\"]", "[\"/etc/b\"]" },
	{ "sandbox.toolchains", "[\"nvm\", \"go\"]", "[\"go\"]", "[\"go\", \"cargo\"]" },
	{ "sandbox.toolchains", "[\"nvm\"]", "[]", "\"all\"" },
	{ "sandbox.toolchains", "\"all\"", "[\"nvm\"]", NULL },
	{ "sandbox.caches", "\"session\"", "\"session\"", NULL },
	{ "capabilities.preset", "\"strict\"", "\"strict\"", "\"standard\"" },
	{ "capabilities.preset", "\"standard\"", "\"strict\"", NULL },
	{ "capabilities.fs_read", "[\"/d/data\"]", "[\"/d/data/a\", \"/d/data/b/../c\"]",
	  "[\"/d/data/a\", \"/d/datum\"]" },
	{ "capabilities.fs_read", "[\"/d/data\"]", "[]", "[\"" ROOT_PATH "\"]" },
	{ "capabilities.fs_read", "[]", "[]", "[\"/d/data/a/../../etc\"]" },
	{ "capabilities.fs_write", "[\"/d/data\"]", "[\"/d/data/a\"]", "[\"/d/data\", \"/d/data2\"]" },
	{ "capabilities.read_only", "[\"/a\"]", "[\"/b\"]", NULL },
	{ "capabilities.deny", "[\"**/a\"]", "[\"**/b\"]", "[\"**/b\", \"!**/.env\"]" },
	{ "capabilities.protect", "[\"a\"]", "[\"b\"]", "[\"!.git/hooks\"]" },
	{ "capabilities.network", "\"none\"", "\"none\"", "[\"a:1\"]" },
	{ "capabilities.network", "\"none\"", "[]", "\"all\"" },
	{ "capabilities.network", "[\"*.a:1\", \"b:2\"]", "[\"x.a:1\"]", "[\"a:1\"]" },
	{ "capabilities.network", "[\"*.a:1\", \"b:2\"]", "\"none\"", "[\"b:2\", \"b:3\"]" },
	{ "capabilities.network", "[\"b:2\"]", "[]", "\"all\"" },
	{ "capabilities.network", "\"all\"", "[\"b:2\"]", NULL },
	{ "capabilities.spawn", "false", "false", "true" },
	{ "capabilities.programs", "[\"/u/bin\"]", "[\"/u/bin/git\"]", "[\"/b/sh\"]" },
	{ "capabilities.programs", "[\"/u/bin\"]", "[\"/u/bin\"]", "[]" },
	{ "capabilities.programs", "[]", "[\"/b/sh\"]", NULL },
	{ "capabilities.devices", "[\"/v/dri\"]", "[\"/v/dri/card0\"]", "[\"/v/sda\"]" },
	{ "capabilities.sockets", "[\"/r/a\"]", "[]", "[\"/r/b\"]" },
	{ "secrets.output", "\"redact\"", "\"block\"", "\"report\"" },
	{ "secrets.arguments", "\"block\"", "\"block\"", "\"report\"" },
	{ "secrets.block", "[\"jwt\"]", "[\"own\"]", NULL },
	{ "secrets.redact", "[\"jwt\"]", "[\"own\"]", NULL },
	{ "secrets.report", "[\"jwt\", \"own\"]", "[\"jwt\"]", "[\"aws-key\"]" },
	{ "limits.memory", "\"1G\"", "\"512M\"", "\"1025M\"" },
	{ "limits.cpu", "100", "50", "101" },
	{ "limits.processes", "10", "10", "11" },
	{ "limits.disk", "\"1G\"", "\"1023M\"", "\"2G\"" },
	{ "limits.time", "\"60s\"", "\"1m\"", "61" },
	{ "limits.stdout", "100", "99", "101" },
	{ "limits.stderr", "100", "99", "101" },
	{ "limits.open_files", "100", "99", "101" },
	{ "limits.tmp", "\"1M\"", "\"512K\"", "\"2M\"" },
	{ "limits.required", "[\"memory\"]", "[\"cpu\"]", NULL },
	{ "limits.cgroup", "\"/a\"", "\"/a\"", "\"none\"" },
	{ "env.passthrough", "[\"A\", \"B\"]", "[\"B\"]", "[\"B\", \"C\"]" },
	{ "env.set", "{ A = \"1\" }", "{ A = \"2\" }", NULL },
	{ "network.allow_private", "[\"10.0.0.0/8\", \"::1\"]", "[\"::1\"]", "[\"10.0.0.0/8\", \"127.0.0.1\"]" },
	{ "network.allow_private", "[\"169.254.0.0/16\"]", "[]", "[\"169.254.169.254\"]" },
	{ "network.private_hosts", "[\"a.b:443\", \"c.d:80\"]", "[\"c.d:80\"]", "[\"c.d:81\"]" },
	{ "network.private_hosts", "[]", "[]", "[\"a.b:443\"]" },
	{ "network.names", "{ a = \"1.1.1.1\", b = \"1.1.1.2\" }", "{ b = \"1.1.1.2\" }", "{ b = \"1.1.1.3\" }" },
	{ "network.groups", "{ a = [\"b:1\"] }", "{ a = [\"c:2\"], d = [] }", NULL },
	{ "network.connections", "10", "9", "11" },
	{ "network.total_connections", "10", "9", "11" },
	{ "network.connect_timeout", "10", "9", "11" },
	{ "network.idle_timeout", "10", "9", "11" },
	{ "network.header", "\"8K\"", "\"4K\"", "\"9K\"" },
	{ "network.bytes", "\"1G\"", "\"1M\"", "\"2G\"" },
	{ "policy.allowed_paths", "[\"/a/b\"]", "[\"/a/b/c\"]", "[\"/a/bc\"]" },
	{ "policy.allowed_paths", "[\"/a\"]", "[\"/a\"]", "[]" },
	{ "policy.allowed_paths", "[]", "[\"/a\"]", NULL },
	{ "policy.denied_paths", "[\"/a\"]", "[\"/b\"]", NULL },
	{ "policy.rules", "[{ tool = \"run\", decision = \"ask\" }]", "[{ tool = \"run\", decision = \"deny\" }]",
	  NULL },
	{ "approval.timeout", "\"10s\"", "9", "11" },
	{ "approval.denials_to_pause", "3", "2", "0" },
	{ "approval.denials_to_pause", "0", "5", NULL },
	{ "approval.approver", "\"client\"", "\"cordon\"", NULL },
	{ "approval.approver", "\"cordon\"", "\"cordon\"", "\"client\"" },
	{ "approval.queue", "false", "false", "true" },
	{ "audit.sync", "\"disk\"", "\"disk\"", "\"process\"" },
	{ "tools.dir", "\"/t\"", "\"/u\"", NULL },
};

static const char *set(const char *path, const char *value)
{
	return arena_printf(&arena, "\n%s = %s\n", path, value);
}

static void narrowing_row_by_row(void **state)
{
	(void)state;
	for (int i = 0; i < KEY_MAX; i++) {
		bool found = false;
		for (size_t j = 0; j < ARRAY_SIZE(narrowings); j++)
			found |= !strcmp(config_rows[i].path, narrowings[j].path);
		if (!found && !config_section_repeats(config_rows[i].section))
			fail_msg("no case for %s", config_rows[i].path);
	}
	for (size_t i = 0; i < ARRAY_SIZE(narrowings); i++) {
		const struct narrowing *at = &narrowings[i];
		if (!HAS_ROOT && !strcmp(at->path, "sandbox.etc"))
			continue;
		const char *value = set(at->path, at->value), *narrower = set(at->path, at->narrower);
		const char *wider = at->wider ? set(at->path, at->wider) : NULL;
		const struct config_row *row = config_rows;
		struct cordon_error err = { 0 };
		struct config config;
		while (strcmp(row->path, at->path))
			row++;
		/* The user's file under the system's; and freely without it. */
		stacked(value, value, NULL);
		stacked(value, narrower, NULL);
		stacked(NULL, narrower, NULL);
		if (wider) {
			stacked(NULL, wider, NULL);
			stacked(strcmp(at->path, "limits.processes") ? "limits.processes = 3\n" : NULL, wider, NULL);
			assert_true(stack_for(NULL, value, wider, NULL, &config, &err) < 0);
			assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
			assert_int_equal(strncmp(err.subject, "user:2:", 7), 0);
		}
		/* The project's under either. */
		if (!row->project) {
			refused_at(NULL, value, narrower,
			           arena_printf(&arena, "project:2:%zu", strcspn(at->path, ".") + 2),
			           "cannot be set by a project");
			continue;
		}
		if (strcmp(at->path, "policy.rules"))
			stacked(NULL, value, value);
		stacked(NULL, value, narrower);
		stacked(value, NULL, narrower);
		if (!wider)
			continue;
		assert_true(stack_for(NULL, NULL, value, wider, &config, &err) < 0);
		assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
		assert_int_equal(strncmp(err.subject, "project:2:", 10), 0);
		assert_non_null(strstr(err.reason, "in force: user:2:"));
	}
}

/* Without any other file, a project is bound by the defaults. */
static void projects_are_bound_by_defaults(void **state)
{
	(void)state;
	refused_at(NULL, NULL, "limits.memory = \"4G\"", "project:1:8", "in force: default");
	refused_at(NULL, NULL, "capabilities.fs_read = [\"/e\"]", "project:1:25", "not within");
	refused_at(NULL, NULL, "capabilities.network = \"all\"", "project:1:14", "this is more");
	refused_at(NULL, NULL, "approval.queue = true", "project:1:10", "false already");
	refused_at(NULL, NULL, "env.passthrough = [\"TOKEN\"]", "project:1:20", "not among");
	refused_at(NULL, NULL, "sandbox.on_unavailable = \"degrade\"", "project:1:9", "this is more");
	struct config config =
		stacked(NULL, NULL, "sandbox.enabled = false\nlimits.memory = \"1G\"\ncapabilities.spawn = false");
	assert_false(config.enabled || config.baseline.spawn);
	assert_int_equal(config.baseline.limits.memory_bytes, 1 << 30);
}

static void lists_add_up_or_are_replaced(void **state)
{
	(void)state;
	struct config config = stacked("capabilities.fs_read = [\"/a\", \"/b\"]\ncapabilities.deny = [\"s\"]\nenv.set "
	                               "= { A = \"1\", B = \"2\" }\npolicy.denied_paths = [\"/s\"]",
	                               "capabilities.fs_read = [\"/a\"]\ncapabilities.deny = [\"u\"]\nenv.set = { B = "
	                               "\"3\", BB = \"4\" }\npolicy.denied_paths = [\"/u\"]",
	                               "capabilities.deny = [\"p\"]\npolicy.denied_paths = [\"/p\"]");
	assert_int_equal(config.baseline.fs_read.count, 1);
	assert_true(strings_find(&config.baseline.deny, "s") >= 0 && strings_find(&config.baseline.deny, "u") >= 0 &&
	            strings_find(&config.baseline.deny, "p") >= 0 &&
	            strings_find(&config.baseline.deny, "**/.env") >= 0);
	assert_int_equal(config.env_set.count, 3);
	assert_true(strings_find(&config.env_set, "B=3") >= 0 && strings_find(&config.env_set, "A=1") >= 0);
	assert_int_equal(config.rules.denied_paths.count, 3);
}

static void names_have_addresses(void **state)
{
	(void)state;
	struct config config = stacked(NULL,
	                               "[network]\nbytes = \"1M\"\n[network.names]\n\"Git.Internal.\" = \"10.1.0.7\"\n"
	                               "two = [\"10.1.0.8\", \"fd12:0::8\"]\n",
	                               NULL);
	static const struct { const char *name, *address; } rows[] = {
		{ "git.internal", "10.1.0.7" }, { "two", "10.1.0.8" }, { "two", "fd12::8" },
	};
	assert_int_equal(config.network.name_count, ARRAY_SIZE(rows));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[ADDRESS_TEXT_SIZE];
		address_text(&config.network.names[i].address, text);
		assert_string_equal(config.network.names[i].name, rows[i].name);
		assert_string_equal(text, rows[i].address);
	}
	assert_int_equal(config.network.bytes, 1 << 20);
	assert_int_equal(stacked(NULL, NULL, NULL).network.bytes, 0);
}

static void presets_imply_spawning(void **state)
{
	(void)state;
	static const struct { const char *system, *user, *project; bool spawn; } rows[] = {
		{ NULL, "capabilities.preset = \"strict\"", NULL, false },
		{ NULL, "capabilities.preset = \"strict\"\ncapabilities.spawn = true", NULL, true },
		{ NULL, "capabilities.preset = \"standard\"\ncapabilities.spawn = false", NULL, false },
		{ "capabilities.preset = \"strict\"", "limits.cpu = 3", NULL, false },
		{ "capabilities.spawn = false", "capabilities.preset = \"standard\"", NULL, false },
		{ NULL, "capabilities.spawn = false", "capabilities.preset = \"standard\"", false },
		{ NULL, NULL, "capabilities.preset = \"strict\"", false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(stacked(rows[i].system, rows[i].user, rows[i].project).baseline.spawn, rows[i].spawn);
	refused_at("capabilities.preset = \"strict\"", "capabilities.spawn = true", NULL, "user:1:14", "system:1:14");
	refused_at(NULL, "capabilities.preset = \"strict\"", "capabilities.spawn = true", "project:1:14", "user:1:14");
}

static void usual_values_keep_within_limits(void **state)
{
	(void)state;
	struct config config = stacked(NULL, "sandbox.default_timeout = \"10m\"\nsandbox.max_output = \"2M\"", NULL);
	assert_int_equal(config.usual.wall_ms, 600000);
	assert_int_equal(config.baseline.limits.wall_ms, 600000);
	assert_int_equal(config.usual.stderr_bytes, 2 << 20);
	config = stacked(NULL, "sandbox.default_timeout = \"10m\"\nlimits.time = \"5m\"", "limits.time = 5");
	assert_int_equal(config.usual.wall_ms, 5000);
	config = stacked(NULL, "limits.time = \"5m\"", "sandbox.default_timeout = \"10m\"");
	assert_int_equal(config.usual.wall_ms, 300000);
	assert_int_equal(config.baseline.limits.wall_ms, 300000);
	config = stacked(NULL, NULL, "sandbox.default_timeout = \"10m\"\nsandbox.max_output = \"8M\"");
	assert_int_equal(config.usual.wall_ms, 60000);
	assert_int_equal(config.baseline.limits.wall_ms, 60000);
	assert_int_equal(config.baseline.limits.stdout_bytes, 1 << 20);
	config = stacked(NULL, "sandbox.default_timeout = 10", NULL);
	assert_int_equal(config.usual.wall_ms, 10000);
	assert_int_equal(config.baseline.limits.wall_ms, 60000);
}

/* A project that asks about everything must not make a hard denial one that can be approved. */
static void rules_of_a_project_only_narrow(void **state)
{
	(void)state;
	struct rule_verdict verdict;
	struct config config = stacked("policy.rules = [{ tool = \"run\", match = \"/bin/rm\", decision = \"deny\" }]",
	                               "policy.rules = [{ tool = \"run\", decision = \"allow\" }]",
	                               "policy.rules = [{ tool = \"*\", decision = \"ask\" }]");
	assert_int_equal(rules_judge(&arena, &config.rules, "run", "/bin/rm", false, true, &verdict), 0);
	assert_int_equal(verdict.decision, RULE_DENY);
	assert_string_equal(verdict.where, "system:1:17");
	assert_int_equal(rules_judge(&arena, &config.rules, "run", "/bin/ls", false, true, &verdict), 0);
	assert_int_equal(verdict.decision, RULE_ASK);
	assert_string_equal(verdict.where, "project:1:17");
	refused_at(
		NULL, NULL,
		"policy.rules = [{ tool = \"run\", decision = \"ask\" },\n{ tool = \"read\", decision = \"allow\" }]",
		"project:2:1", "can deny or ask");
}

static void sessions_override(void **state)
{
	(void)state;
	static const char user[] = "[limits]\nmemory = \"1G\"\n[[session]]\nmatch = \"ci-*\"\nlimits.memory = "
	                           "\"8G\"\ncapabilities.deny = [\"x\"]\n"
				   "[[session]]\nmatch = \"ci-s?all\"\nlimits.memory = \"2G\"\n[[session]]\nmatch = "
	                           "\"*/[0-9]\"\ncapabilities.preset = \"strict\"\n";
	static const struct { const char *id; uint64_t memory; bool spawn;
	} rows[] = {
		{ NULL, 1ull << 30, true },       { "other", 1ull << 30, true },     { "ci-1", 8ull << 30, true },
		{ "ci-small", 2ull << 30, true }, { "a/../b/7", 1ull << 30, false }, { "ci-/7", 8ull << 30, false },
		{ "", 1ull << 30, true },
	};
	struct cordon_error err = { 0 };
	struct config config;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(stack_for(rows[i].id, NULL, user, NULL, &config, &err), 0);
		assert_int_equal(config.baseline.limits.memory_bytes, rows[i].memory);
		assert_int_equal(config.baseline.spawn, rows[i].spawn);
	}
	/* Bound like everything else, where they match. */
	assert_int_equal(stack_for("other", "limits.memory = \"4G\"", user, NULL, &config, &err), 0);
	assert_true(stack_for("ci-1", "limits.memory = \"4G\"", user, NULL, &config, &err) < 0);
	assert_string_equal(err.subject, "user:5:8");
	assert_int_equal(
		stack_for("ci-1", "[[session]]\nmatch = \"*\"\nlimits.memory = \"9G\"", user, NULL, &config, &err), 0);
	assert_int_equal(
		stack_for("p", NULL, NULL, "[[session]]\nmatch = \"p\"\nlimits.memory = \"1M\"", &config, &err), 0);
	assert_int_equal(config.baseline.limits.memory_bytes, 1 << 20);
	assert_true(stack_for("p", NULL, NULL, "[[session]]\nmatch = \"p\"\ncapabilities.network = \"all\"", &config,
	                      &err) < 0);
	assert_string_equal(err.subject, "project:3:14");
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, stack_setup, stack_teardown)
	const struct CMUnitTest tests[] = {
		ROW(narrowing_row_by_row), ROW(projects_are_bound_by_defaults), ROW(lists_add_up_or_are_replaced),
		ROW(names_have_addresses), ROW(presets_imply_spawning), ROW(usual_values_keep_within_limits),
		ROW(rules_of_a_project_only_narrow), ROW(sessions_override),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The table of git's settings: its order, an example for each row, and every key that git itself lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/git-settings.h"
#include "policy/git-syntax.h"
#include "skip.h"

/* What meets a condition, and what does not. For the start of an address, that is the subsection. */
static const struct {
	const char *good, *bad;
} examples[GIT_SETTING_CONDITION_MAX] = {
	[GIT_SETTING_ANY] = { "x", NULL }, [GIT_SETTING_BOOLEAN] = { "off", "08" }, [GIT_SETTING_TRUE] = { "on",
		"false" },
	[GIT_SETTING_EMPTY] = { "", "store" }, [GIT_SETTING_NEVER] = { "NEVER", "user" },
	[GIT_SETTING_TOOL_NAME] = { "vimdiff3", "../../x" }, [GIT_SETTING_UPDATE_MODE] = { "rebase", "!x" },
	[GIT_SETTING_REF_STORAGE] = { "reftable", "reftable:///x" },
	[GIT_SETTING_ADDRESS] = { "git@example.org:x", "ext::sh" }, [GIT_SETTING_ADDRESS_START] = { "git@example.org:",
		"ext:" },
};

static const struct git_setting_row *find(const char *section, const char *subsection, const char *key,
	const char *value)
{
	return git_setting_find(&(struct git_setting){ section, subsection, key, value, false });
}

static const struct git_setting_row *find_example(const struct git_setting_row *row, const char *key, bool some,
	const char *example)
{
	bool is_start = row->condition == GIT_SETTING_ADDRESS_START;
	return find(row->section, is_start ? example : some ? "x" : NULL, key, is_start ? "x" : example);
}

static void check_key(const struct git_setting_row *row, const char *key)
{
	for (int some = 0; some < 2; some++) {
		if (row->subsection == (some ? GIT_SETTING_NONE : GIT_SETTING_SOME))
			continue;
		const struct git_setting_row *found = find_example(row, key, some, examples[row->condition].good);
		/* A row for what is left of a key, behind one with a condition. */
		if (found != row && row->condition == GIT_SETTING_ANY) {
			assert_int_not_equal(found->condition, GIT_SETTING_ANY);
			found = find_example(row, key, some, examples[found->condition].bad);
		}
		if (found != row && !(row->condition == GIT_SETTING_ANY && row->class == GIT_SETTING_RUNS))
			fail_msg("%s.%s is found in another row", row->section, key);
		if (row->condition != GIT_SETTING_ANY && find_example(row, key, some,
			examples[row->condition].bad) == row)
			fail_msg("%s.%s matches %s", row->section, key, examples[row->condition].bad);
	}
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < git_setting_row_count; i++) {
		const struct git_setting_row *row = &git_setting_rows[i];
		char keys[1024], *rest = keys, last[64] = "";
		assert_true(i == 0 || strcmp(git_setting_rows[i - 1].section, row->section) <= 0);
		assert_true(strspn(row->section, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(row->section));
		assert_true(!row->reason == (row->class == GIT_SETTING_HARMLESS));
		assert_true(row->class != GIT_SETTING_REDIRECTS_ONE || row->subsection == GIT_SETTING_SOME);
		snprintf(keys, sizeof(keys), "%s", row->keys ? row->keys : "any");
		for (char *key; (key = strsep(&rest, " "));) {
			if (strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(key) || strcmp(last,
				key) >= 0)
				fail_msg("%s.%s: not sorted, or not in lower case", row->section, key);
			snprintf(last, sizeof(last), "%s", key);
			check_key(row, key);
		}
	}
}

static const struct {
	enum git_setting_condition condition;
	const char *value;
	bool holds;
} values[] = {
	{ GIT_SETTING_BOOLEAN, NULL, true }, { GIT_SETTING_BOOLEAN, "", true }, { GIT_SETTING_BOOLEAN, "YES", true },
	{ GIT_SETTING_BOOLEAN, "0", true }, { GIT_SETTING_BOOLEAN, "123456789", true },
	{ GIT_SETTING_BOOLEAN, "00", false },
	{ GIT_SETTING_BOOLEAN, "1234567890", false }, { GIT_SETTING_BOOLEAN, " true", false },
	{ GIT_SETTING_BOOLEAN, "/bin/true", false },
	{ GIT_SETTING_TRUE, NULL, true }, { GIT_SETTING_TRUE, "", false }, { GIT_SETTING_TRUE, "0", false },
	{ GIT_SETTING_TOOL_NAME, NULL, false }, { GIT_SETTING_TOOL_NAME, "", false },
	{ GIT_SETTING_TOOL_NAME, "a.b", false },
	{ GIT_SETTING_TOOL_NAME, "-x", false }, { GIT_SETTING_TOOL_NAME, "a b", false },
	{ GIT_SETTING_UPDATE_MODE, "none", true }, { GIT_SETTING_UPDATE_MODE, NULL, false },
	{ GIT_SETTING_UPDATE_MODE, "Merge", false }, { GIT_SETTING_UPDATE_MODE, "merge ", false },
	{ GIT_SETTING_ADDRESS, "https://example.org/x", true }, { GIT_SETTING_ADDRESS, "ssh://example.org/x", true },
	{ GIT_SETTING_ADDRESS, "file:///x", true }, { GIT_SETTING_ADDRESS, "/x", true },
	{ GIT_SETTING_ADDRESS, "../x", true },
	{ GIT_SETTING_ADDRESS, "origin", true }, { GIT_SETTING_ADDRESS, ".", true },
	{ GIT_SETTING_ADDRESS, "host:x", true },
	{ GIT_SETTING_ADDRESS, "[::1]:x", true }, { GIT_SETTING_ADDRESS, "/a::b", true },
	{ GIT_SETTING_ADDRESS, "foo::x", false }, { GIT_SETTING_ADDRESS, "::x", false },
	{ GIT_SETTING_ADDRESS, "foo://x", false },
	{ GIT_SETTING_ADDRESS, "HTTPS://x", false }, { GIT_SETTING_ADDRESS, "-x", false },
	{ GIT_SETTING_ADDRESS, "ssh://-oProxyCommand=x/y", false }, { GIT_SETTING_ADDRESS, NULL, false },
	{ GIT_SETTING_ADDRESS_START, "https://", true }, { GIT_SETTING_ADDRESS_START, "/x", true },
	{ GIT_SETTING_ADDRESS_START, "", false }, { GIT_SETTING_ADDRESS_START, "ext", false },
	{ GIT_SETTING_ADDRESS_START, "ext::", false }, { GIT_SETTING_ADDRESS_START, "foo:/", false },
	{ GIT_SETTING_ADDRESS_START, "http:", false }, { GIT_SETTING_ADDRESS_START, "-x", false },
};

static void test_conditions(void **state)
{
	(void)state;
	static const struct {
		enum git_setting_condition condition;
		const char *section, *subsection, *key;
	} users[] = {
		{ GIT_SETTING_BOOLEAN, "core", NULL, "fsmonitor" }, { GIT_SETTING_TRUE, "http", NULL, "sslverify" },
		{ GIT_SETTING_TOOL_NAME, "merge", NULL, "tool" },
		{ GIT_SETTING_UPDATE_MODE, "submodule", "x", "update" },
		{ GIT_SETTING_ADDRESS, "remote", "x", "url" }, { GIT_SETTING_ADDRESS_START, "url", "", "insteadof" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		for (size_t j = 0; j < ARRAY_SIZE(users); j++) {
			if (users[j].condition != values[i].condition)
				continue;
			bool is_start = values[i].condition == GIT_SETTING_ADDRESS_START;
			const struct git_setting_row *row = find(users[j].section,
				is_start ? values[i].value : users[j].subsection,
			                                         users[j].key, is_start ? "x" : values[i].value);
			if ((row->class != GIT_SETTING_RUNS) != values[i].holds)
				fail_msg("%s.%s = %s", users[j].section, users[j].key,
					values[i].value ? values[i].value : "(none)");
		}
	struct git_setting cut = { "core", NULL, "fsmonitor", "true", true };
	assert_int_equal(git_setting_find(&cut)->class, GIT_SETTING_RUNS);
	assert_int_equal(find("core", "x", "bare", "true")->class, GIT_SETTING_RUNS);
	assert_int_equal(find("", NULL, "bare", "true")->class, GIT_SETTING_RUNS);
}

/* ---- Against git itself ---------------------------------------------------------------------------------------- */

/* Keys of git 2.39 that run a program, read more configuration, or make git overwrite files, with a value that does. */
static const char *const dangerous[] = {
	"alias.x", "branch.x.mergeoptions", "browser.x.cmd", "browser.x.path", "core.alternaterefscommand",
	"core.askpass",
	"core.attributesfile", "core.editor", "core.fsmonitor", "core.gitproxy", "core.hookspath", "core.pager",
	"core.sshcommand",
	"core.worktree", "credential.helper", "credential.x.helper", "diff.external", "diff.guitool", "diff.tool",
	"diff.x.command",
	"diff.x.textconv", "difftool.x.cmd", "difftool.x.path", "filter.x.clean", "filter.x.smudge", "filter.x.process",
	"format.outputdirectory", "gpg.program", "gpg.ssh.defaultkeycommand", "gpg.x.program", "guitool.x.cmd",
	"http.cookiefile",
	"http.savecookies", "http.proxy", "http.sslverify", "http.x.cookiefile", "imap.tunnel", "include.path",
	"includeif.x.path",
	"init.templatedir", "instaweb.browser", "instaweb.httpd", "interactive.difffilter", "man.x.cmd", "man.x.path",
	"merge.guitool",
	"merge.tool", "merge.x.driver", "mergetool.vimdiff.layout", "mergetool.x.cmd", "mergetool.x.path", "pager.x",
	"protocol.allow",
	"protocol.x.allow", "pull.octopus", "pull.twohead", "rebase.instructionformat", "remote.x.receivepack",
	"remote.x.uploadpack",
	"remote.x.url", "remote.x.pushurl", "remote.x.vcs", "sendemail.cccmd", "sendemail.smtpserver",
	"sendemail.tocmd",
	"sequence.editor", "submodule.x.update", "submodule.x.url", "trace2.eventtarget", "trace2.normaltarget",
	"trace2.perftarget",
	"trailer.x.cmd", "trailer.x.command", "tar.x.command", "uploadpack.packobjectshook",
};

static enum git_setting_class class_of(const char *name, const char *value)
{
	char parts[256];
	snprintf(parts, sizeof(parts), "%s", name);
	char *dot = strchr(parts, '.'), *last = strrchr(parts, '.');
	assert_non_null(dot);
	*dot = *last = '\0';
	return find(parts, last != dot ? dot + 1 : NULL, last + 1, value)->class;
}

static void test_dangerous(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(dangerous); i++)
		if (class_of(dangerous[i], "x::../evil") != GIT_SETTING_RUNS)
			fail_msg("%s is harmless", dangerous[i]);
	assert_int_equal(class_of("url.x.insteadof", "y"), GIT_SETTING_RUNS);
}

/* `branch.<name>.merge` is listed with a placeholder, and sections whose keys are not known with a star. */
static bool normalise(char *line, char *name, size_t size)
{
	size_t length = 0;
	line[strcspn(line, "\n")] = '\0';
	for (const char *at = line; *at && length + 2 < size; at++) {
		if (*at == '<' && strchr(at, '>')) {
			name[length++] = 'x';
			at = strchr(at, '>');
		} else {
			name[length++] = *at == '*' ? 'x' : *at >= 'A' && *at <= 'Z' ? *at + 32 : *at;
		}
	}
	name[length] = '\0';
	return strchr(name, '.') && !strchr(name, ' ') && name[length - 1] != '.';
}

static void test_keys_that_git_lists(void **state)
{
	(void)state;
	FILE *keys = popen("git help --config 2>/dev/null", "r");
	char line[256], name[256];
	size_t seen = 0, harmless = 0, known_dangerous = 0;
	while (keys && fgets(line, sizeof(line), keys)) {
		if (!normalise(line, name, sizeof(name)))
			continue;
		seen++;
		harmless += class_of(name, "x::../evil") == GIT_SETTING_HARMLESS;
		for (size_t i = 0; i < ARRAY_SIZE(dangerous); i++)
			known_dangerous += !strcmp(dangerous[i], name);
	}
	if (keys)
		pclose(keys);
	if (!seen)
		skip_cannot("git", "it is to list its keys");
	assert_true(seen > 500 && harmless > 250 && known_dangerous > 50);
	assert_true(harmless < seen * 2 / 3);
}

/* Each key of a HARMLESS or REDIRECTS row that is git's own is spelt as git spells it. */
static void test_rows_are_keys_of_git(void **state)
{
	(void)state;
	static const char *const elsewhere[] = { "branch.x.gh-merge-base", "branch.x.github-pr-owner-number",
		"branch.x.vscode-merge-base", "remote.x.gh-resolved", "lfs.repositoryformatversion",
		"lfs.x.locksverify" };
	/* undocumented, or of another version than that whose list is asked */
	static const char *const undocumented[] = { "commitgraph.changedpathsversion", "core.longpaths",
		"diff.x.funcname",
		"extensions.noop", "extensions.partialclone", "extensions.preciousobjects", "extensions.refstorage",
		"extensions.relativeworktrees", "filter.x.required", "index.skiphash", "init.defaultobjectformat",
		"init.defaultrefformat",
		"maintenance.autodetach", "maintenance.x.auto", "rebase.rebasemerges", "remote.x.followremotehead",
		"submodule.x.shallow",
		"worktree.userelativepaths" };
	static char list[128 * 1024];
	char line[256], name[256], wanted[256];
	size_t length = 0;
	FILE *keys = popen("git help --config 2>/dev/null", "r");
	list[length++] = '\n';
	while (keys && fgets(line, sizeof(line), keys))
		if (normalise(line, name, sizeof(name)))
			length += (size_t)snprintf(list + length, sizeof(list) - length, "%s\n", name);
	if (keys)
		pclose(keys);
	if (length < 1000)
		skip_cannot("git", "it is to list its keys");
	for (size_t i = 0; i < git_setting_row_count; i++) {
		const struct git_setting_row *row = &git_setting_rows[i];
		char words[1024], *rest = words;
		if (!row->keys || row->class == GIT_SETTING_RUNS)
			continue;
		snprintf(words, sizeof(words), "%s", row->keys);
		for (char *key; (key = strsep(&rest, " "));) {
			snprintf(wanted, sizeof(wanted), "\n%s%s.%s\n", row->section,
				row->subsection == GIT_SETTING_SOME ? ".x" : "", key);
			bool found = strstr(list, wanted);
			wanted[strlen(wanted) - 1] = '\0';
			for (size_t j = 0; j < ARRAY_SIZE(elsewhere); j++)
				found |= !strcmp(elsewhere[j], wanted + 1);
			for (size_t j = 0; j < ARRAY_SIZE(undocumented); j++)
				found |= !strcmp(undocumented[j], wanted + 1);
			if (!found)
				fail_msg("git knows no %s", wanted + 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows), cmocka_unit_test(test_conditions), cmocka_unit_test(test_dangerous),
		cmocka_unit_test(test_keys_that_git_lists), cmocka_unit_test(test_rows_are_keys_of_git),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which settings in a git configuration are held against a command, and which its owner had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "paths/planted/git-config.h"

static const struct {
	const char *text, *key; /* NULL: harmless */
} configs[] = {
	{ "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
		NULL },
	{ "[remote \"origin\"]\n\turl = https://example.com/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n", NULL },
	{ "[branch \"main\"]\nremote = origin\nmerge = refs/heads/main\n", NULL },
	{ "", NULL },
	{ "# [core]\n;fsmonitor=x\n", NULL },
	{ "[core]fsmonitor=/x", "core.fsmonitor" },
	{ "[CORE]\r\nFsMonitor = /x\r\n", "core.fsmonitor" },
	{ "\xef\xbb\xbf[core]\nfsmonitor = /x", "core.fsmonitor" },
	{ "[core]\nfsmonitor = true\n", NULL },
	{ "[core]\nfsmonitor\n", NULL },
	{ "[core]\nfsmonitor = 1\n", NULL },
	{ "[core]\nfsmonitor = 99999999999999999999\n", "core.fsmonitor" },
	{ "[core]\nfsmonitor = tr\\\nue\n", NULL },
	{ "[core]\nfsmonitor = \"tr\"ue ; yes\n", NULL },
	{ "[core]\nfsmonitor = true\\nx\n", "core.fsmonitor" },
	{ "[core]\nabbrev = 7\\\n\nhooksPath = .husky\n", "core.hookspath" },
	{ "[core]\nabbrev = \"7 # z\" ; hooksPath = .husky\n", NULL },
	{ "[core]\nx = y\n", "core.x" },
	{ "bare = true\n", "bare" },
	{ "[core] # comment\n[ core]\n", "the file" },
	{ "[core \"x\"]\nfsmonitor=/x\n", "core.x.fsmonitor" },
	{ "[core]\nfsmonitor =\n", NULL },
	{ "[core]\nfsmonitor = 08\n", "core.fsmonitor" },
	{ "[filter \"a\\\"b.c\"]\nclean = x\n", "filter.a\"b.c.clean" },
	{ "[filter.a]\nsmudge = x\n", "filter.a.smudge" },
	{ "[alias]\nst = grep -Oevil x\n", "alias.st" },
	{ "[alias]\nst = \"!evil\"\n", "alias.st" },
	{ "[alias \"st\"]\ncommand = rebase --exec evil\n", "alias.st.command" },
	{ "[alias]\nst =\n", "alias.st" },
	{ "[rebase]\ninstructionFormat = %s%nexec evil\n", "rebase.instructionformat" },
	{ "[mergetool \"vimdiff\"]\nlayout = evil\n", "mergetool.vimdiff.layout" },
	{ "[pager]\nlog = true\n", NULL },
	{ "[pager]\nlog = evil\n", "pager.log" },
	{ "[credential]\nhelper =\n", NULL },
	{ "[credential \"https://a.b\"]\nhelper = x\n", "credential.https://a.b.helper" },
	{ "[include]\npath = x\n", "include.path" },
	{ "[includeIf \"gitdir:~/\"]\npath = x\n", "includeif.gitdir:~/.path" },
	{ "[url \"ext::sh -c x\"]\ninsteadOf = https://\n", "url.ext::sh -c x.insteadof" },
	{ "[url \"git@x:\"]\ninsteadOf = https://x/\n", NULL },
	{ "[remote \"o\"]\nurl = ext::sh\n", "remote.o.url" },
	{ "[submodule \"s\"]\nupdate = merge\n", NULL },
	{ "[submodule \"s\"]\nupdate = !x\n", "submodule.s.update" },
	{ "[protocol \"ext\"]\nallow = always\n", "protocol.ext.allow" },
	{ "[protocol \"file\"]\nallow = always\n", "protocol.file.allow" },
	{ "[protocol]\nallow = Never\n", NULL },
	{ "[http]\ncookieFile = /home/me/.bashrc\nsaveCookies = true\n", "http.cookiefile" },
	{ "[diff]\ntool = ../../../../x\n", "diff.tool" },
	{ "[merge]\nguiTool = ../x\ntool = vimdiff\n", "merge.guitool" },
	{ "[pull]\ntwohead = evil\n", "pull.twohead" },
	{ "[remote \"o\"]\nurl = foo://x\n", "remote.o.url" },
	{ "[branch \"b\"]\nremote = ext::sh\n", "branch.b.remote" },
	{ "[url \"ext:\"]\ninsteadOf = x\n[remote \"o\"]\nurl = x:sh\n", "url.ext:.insteadof" },
	{ "[core]\nworktree = /home/me\n", "core.worktree" },
	{ "[core]\nworktree = ..\n", "core.worktree" },
	{ "[gpg \"ssh\"]\nprogram = x\n", "gpg.ssh.program" },
	{ "[core", "the file" },
	{ "[core]\nabbrev = \"open\n", "the file" },
	{ "[core]\nabbrev = \\x\n", "the file" },
	{ "[core]\n9key = x\n", "the file" },
	{ "[core]\nabbrev = x\n=\n", "the file" },
	{ "[a \"b\n\"]\n", "the file" },
};

static const char *judge(const char *text, const struct git_config_context *context)
{
	static struct git_config_verdict verdict;
	git_config_judge(text, strlen(text), context, &verdict);
	return verdict.reason ? verdict.key : "(none)";
}

static void test_new_configurations(void **state)
{
	(void)state;
	static const struct git_config_context new = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(configs); i++) {
		const char *found = judge(configs[i].text, &new), *wanted = configs[i].key ? configs[i].key : "(none)";
		if (strcmp(found, wanted))
			fail_msg("%s: %s", configs[i].text, found);
	}
	struct git_config_verdict verdict;
	git_config_judge("[core]\n\0", 8, &new, &verdict);
	assert_string_equal(verdict.key, "the file");
}

/* What was there, what is there now, and what of it is held against the command. */
static const struct {
	const char *before, *after, *key;
} changes[] = {
	{ "[core]\npager = less\neditor = vi\n", "[user]\nname = x\n[core]\neditor = vi\npager = less\n", NULL },
	{ "[core]\npager = less\n", "[core]\npager = lessen\n", "core.pager" },
	{ "[core]\npager = less\n", "[core]\neditor = less\n", "core.editor" },
	{ "[core]\nfsmonitor\n", "[core]\nfsmonitor = x\n", "core.fsmonitor" },
	{ "[credential]\nhelper = a\n", "[credential \"a\"]\nhelper = a\n", "credential.a.helper" },
	{ "", "[remote \"o\"]\nurl = https://a/b\npushurl = x:y\nfetch = +refs/*:refs/*\n", NULL },
	{ "[remote \"o\"]\nurl = https://a/b\n", "[remote \"o\"]\nurl = https://a/b\nfetch = x\ntagOpt = --tags\n",
		NULL },
	{ "[remote \"o\"]\nurl = https://a/b\n", "[remote \"o\"]\nurl = https://a/c\n", "remote.o.url" },
	{ "[remote \"o\"]\nurl = https://a/b\n", "[remote \"o\"]\nurl = https://a/b\nurl = https://a/c\n",
		"remote.o.url" },
	{ "[remote \"o\"]\nurl = https://a/b\n", "[remote \"o\"]\nurl = https://a/b\npushurl = c:d\n",
		"remote.o.pushurl" },
	{ "[remote \"o\"]\nurl = https://a/b\n", "[remote \"O\"]\nurl = https://a/c\n", NULL },
	{ "[remote \"o\"]\nurl = https://a/b\n", "[REMOTE.o]\nURL = https://a/c\n", "remote.o.url" },
	{ "[remote \"o\"]\nfetch = x\n", "[remote \"o\"]\nurl = https://a/c\n", "remote.o.url" },
	{ "[remote \"o\"]\nurl = a\n[remote \"p\"]\nurl = b\n", "[remote \"p\"]\nurl = b\n[remote \"o\"]\nurl = b\n",
		"remote.o.url" },
	{ "[branch \"b\"]\nremote = o\nmerge = x\n", "[branch \"b\"]\nremote = o\nmerge = y\nrebase = true\n", NULL },
	{ "[branch \"b\"]\nremote = o\n", "[branch \"b\"]\nremote = p\n", "branch.b.remote" },
	{ "[branch \"b\"]\nremote = o\n", "[branch \"b\"]\nremote = o\npushRemote = p\n", "branch.b.pushremote" },
	{ "[branch \"b\"]\nremote = o\n", "[branch \"b\"]\nremote = o\n[branch \"c\"]\nremote = p\n", NULL },
	{ "[submodule \"s\"]\nurl = a\n", "[submodule \"s\"]\nurl = b\n", "submodule.s.url" },
	{ "[submodule \"s\"]\nurl = a\n", "[submodule \"s\"]\nurl = a\nactive = true\n[submodule \"t\"]\nurl = b\n",
		NULL },
	{ "", "[url \"https://a/\"]\ninsteadOf = https://b/\n", "url.https://a/.insteadof" },
	{ "", "[remote]\npushDefault = o\n", "remote.pushdefault" },
	{ "", "[core]\nsharedRepository = 0666\n", "core.sharedrepository" },
	{ "[core]\nworktree = /a\n", "[core]\nworktree = /a\nbare = false\n", NULL },
	{ "[core]\nworktree = /a\n", "[core]\nworktree = /b\n", "core.worktree" },
	{ "[core]\nworktree = /a\n", "[core]\nworktree = /a\nworktree = /b\n", "core.worktree" },
	{ "[core\n", "[remote \"o\"]\nurl = a\n", "remote.o.url" },
	{ "[core\n", "[user]\nname = x\n", NULL },
};

static void test_changes(void **state)
{
	(void)state;
	static struct git_config_fact facts[GIT_CONFIG_FACTS_MAX];
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct git_config_before before = { .facts = facts };
		const struct git_config_context context = { .before = &before };
		before.known = git_config_read(changes[i].before, strlen(changes[i].before), facts, &before.count);
		const char *found = judge(changes[i].after, &context),
			*wanted = changes[i].key ? changes[i].key : "(none)";
		if (strcmp(found, wanted))
			fail_msg("%s -> %s: %s", changes[i].before, changes[i].after, found);
		if (before.known && strcmp(judge(changes[i].before, &context), "(none)"))
			fail_msg("%s: not as it was", changes[i].before);
	}
}

static void test_overlay(void **state)
{
	(void)state;
	static const struct git_config_context context = { .is_overlay = true };
	assert_string_equal(judge("[core]\nsparseCheckout = true\nsparseCheckoutCone = true\n[index]\nsparse = true\n",
		&context), "(none)");
	assert_string_equal(judge("[remote \"origin\"]\nurl = https://a/b\n", &context), "remote.origin.url");
}

/* Too many settings, and values that are too long to be compared, are not known. */
static void test_bounds(void **state)
{
	(void)state;
	static struct git_config_fact facts[GIT_CONFIG_FACTS_MAX];
	static char text[512 * 1024];
	size_t length = 0, count;
	for (size_t i = 0; i <= GIT_CONFIG_FACTS_MAX / 2; i++) {
		if (i == GIT_CONFIG_FACTS_MAX / 2) {
			assert_true(git_config_read(text, length, facts, &count));
			assert_int_equal(count, GIT_CONFIG_FACTS_MAX);
		}
		length += (size_t)sprintf(text + length, "[branch \"b%zu\"]\nremote = o\nmerge = x\n", i);
	}
	assert_false(git_config_read(text, length, facts, &count));
	struct git_config_before before = { .facts = facts, .known = true };
	const struct git_config_context context = { .before = &before };
	sprintf(text, "[core]\npager = %05000d\n", 1);
	assert_true(git_config_read(text, strlen(text), facts, &before.count));
	assert_int_equal(before.count, 0);
	assert_string_equal(judge(text, &context), "core.pager");
}

static void test_worktree(void **state)
{
	(void)state;
	struct git_config_verdict verdict;
	static const char text[] = "[core]\nworktree = ../x\n";
	git_config_judge(text, strlen(text), &(struct git_config_context){ .may_have_worktree = true }, &verdict);
	assert_true(!verdict.reason && verdict.worktree_is_new);
	assert_string_equal(verdict.worktree, "../x");
	static const char *const bad[] = { "~/x", "", "a\nworktree = b" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char config[64];
		snprintf(config, sizeof(config), "[core]\nworktree = %s\n", bad[i]);
		assert_string_equal(judge(config, &(struct git_config_context){ .may_have_worktree = true }),
			"core.worktree");
	}
}

static const char *judge_change(const char *before, const char *after)
{
	static struct git_config_verdict verdict;
	git_config_judge_change(before, strlen(before), after, strlen(after), &verdict);
	return verdict.reason ? verdict.key : NULL;
}

#define OWNER_CORE "[alias]\n\tx = !make\n[core]\n\thooksPath = .husky\n\tpager = less\n"
#define OWNER OWNER_CORE "[remote \"a\"]\n\turl = https://a/b\n[branch \"main\"]\n\tremote = a\n"

static void test_change_of_a_file(void **state)
{
	(void)state;
	static const char *const good[] = {
		OWNER,
		OWNER "[user]\n\tname = x\n",
		OWNER "[remote \"b\"]\n\turl = https://c/d\n[branch \"new\"]\n\tremote = b\n",
		("[remote \"a\"]\nurl = https://a/b\n[branch \"main\"]\nremote = a\n"
		 "[alias]\nx = !make\n[core]\nhooksPath=.husky\npager=less\n"),
	};
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_null(judge_change(OWNER, good[i]));
	assert_null(judge_change("", "[user]\nname = x\n"));
	assert_string_equal(judge_change(OWNER, OWNER "[core]\n\tsshCommand = x\n"), "core.sshcommand");
	assert_string_equal(judge_change(OWNER, OWNER "[branch \"main\"]\n\tremote = b\n"), "branch.main.remote");
	assert_string_equal(judge_change(OWNER, OWNER "[remote \"a\"]\n\turl = https://evil/\n"), "remote.a.url");
	/* Taken away, and come again in another place: the last one counts. */
	assert_string_equal(judge_change(OWNER, ""), "alias.x");
	/* A remote may go once no branch names it. */
	assert_null(judge_change(OWNER, OWNER_CORE));
	assert_string_equal(judge_change(OWNER, OWNER_CORE "[branch \"main\"]\n\tremote = a\n"), "remote.a.url");
	assert_string_equal(judge_change(OWNER, OWNER "[alias]\n\tx = !make\n"), "a setting that could run a program");
	assert_string_equal(judge_change("[core]\npager = a\npager = b\n", "[core]\npager = b\npager = a\n"),
	                    "a setting that could run a program");
	assert_string_equal(judge_change(OWNER, "[core\n"), "the file");
	assert_string_equal(judge_change("[core\n", "[user]\nname = x\n"), "the file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_configurations), cmocka_unit_test(test_changes),
			cmocka_unit_test(test_overlay),
		cmocka_unit_test(test_bounds), cmocka_unit_test(test_worktree), cmocka_unit_test(test_change_of_a_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which settings of git would run a program, or write elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "session/git-config.h"

static const struct {
	const char *text, *key; /* NULL: harmless */
} configs[] = {
	{ "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n", NULL },
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
	{ "[core]\nx = y\\\n\nhooksPath = .husky\n", "core.hookspath" },
	{ "[core]\nx = \"y # z\" ; hooksPath = .husky\n", NULL },
	{ "[core] # comment\n[ core]\n", "the file" },
	{ "[core \"x\"]\nfsmonitor=/x\n", NULL },
	{ "[filter \"a\\\"b.c\"]\nclean = x\n", "filter.a\"b.c.clean" },
	{ "[filter.a]\nsmudge = x\n", "filter.a.smudge" },
	{ "[alias]\nst = grep -Oevil x\n", "alias.st" },
	{ "[alias]\nst = \"!evil\"\n", "alias.st" },
	{ "[alias \"st\"]\ncommand = rebase --exec evil\n", "alias.st.command" },
	{ "[alias]\nst =\n", NULL },
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
	{ "[protocol \"file\"]\nallow = always\n", NULL },
	{ "[core]\nworktree = /home/me\n", "core.worktree" },
	{ "[core]\nworktree = ..\n", "core.worktree" },
	{ "[gpg \"ssh\"]\nprogram = x\n", "gpg.ssh.program" },
	{ "[core", "the file" },
	{ "[core]\nkey = \"open\n", "the file" },
	{ "[core]\nkey = \\x\n", "the file" },
	{ "[core]\n9key = x\n", "the file" },
	{ "[core]\nkey = x\n=\n", "the file" },
	{ "[a \"b\n\"]\n", "the file" },
};

static void test_configurations(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(configs); i++) {
		struct git_config_verdict verdict;
		git_config_judge(configs[i].text, strlen(configs[i].text), false, &verdict);
		const char *found = verdict.reason ? verdict.key : "(none)", *wanted = configs[i].key ? configs[i].key : "(none)";
		if (strcmp(found, wanted))
			fail_msg("%s: %s", configs[i].text, found);
	}
	struct git_config_verdict verdict;
	git_config_judge("[core]\n\0", 8, false, &verdict);
	assert_string_equal(verdict.key, "the file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_configurations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

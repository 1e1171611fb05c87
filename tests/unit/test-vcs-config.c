/* What Mercurial and Jujutsu may find in a repository's configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "paths/planted/vcs-config.h"

static const struct {
	const char *text;
	bool harmless;
} hg[] = {
	{ "", true }, { "# a\n; b\n\n  \n", true }, { "[paths]\ndefault = https://a/b\n", true },
	{ "\xef\xbb\xbf[ui]\r\nusername = A\r\n  and B\r\n[paths]\r\ndefault:pushurl = ssh://a/b", true },
	{ "[ui]\nusername = a\n[hooks]\nupdate = x\n", false }, { "[extensions]\n", false },
	{ "[ui]\neditor = x\n", false },
	{ "[ui]\nusername = a\rmerge = x\n", false }, { "[paths]\n%include x\n", false }, { "%include x", false },
	{ "[paths]\n%unset x\n", false }, { "x = y\n", false }, { "[paths] x\n", false },
	{ "[UI]\nusername = x\n", false },
	{ "[ui]\n username = x\n", false }, { "[paths]\n[ui]\nusername.x = y\n", false },
	{ "[paths]\ndefault = -oX\n", false },
	{ "[paths]\n= x\n", false }, { "[ui]\nusername = x\n# c\n  y\nssh = z\n", false }, { "[paths]\nx\n", false },
}, jj[] = {
	{ "", true }, { "[user]\nname = \"A\"\nemail = \"a@b\"\n", true }, { "user.name = \"A\" # c\n", true },
	{ "[revset-aliases]\n\"trunk()\" = \"main@origin\"\n", true }, { "[ui]\neditor = \"x\"\n", false },
	{ "[user]\nname = [\"x\"]\n", false }, { "[user]\nkey = \"x\"\n", false }, { "user = \"x\"\n", false },
	{ "[user\n", false },
	{ "[user]\nname = \"a\"\n[aliases]\nx = [\"util\", \"exec\"]\n", false },
	{ "\"user\\u0000\".name = \"x\"\n", false },
	{ "[fix.tools.x]\ncommand = [\"x\"]\n", false }, { "[revset-aliases]\nx = [\"y\"]\n", false },
};

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hg); i++)
		if (!hg_config_reason(hg[i].text, strlen(hg[i].text)) != hg[i].harmless)
			fail_msg("hg: %s", hg[i].text);
	for (size_t i = 0; i < ARRAY_SIZE(jj); i++)
		if (!jj_config_reason(jj[i].text, strlen(jj[i].text)) != jj[i].harmless)
			fail_msg("jj: %s", jj[i].text);
	assert_non_null(hg_config_reason("#\0", 2));
	assert_non_null(jj_config_reason("#\0", 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_texts) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

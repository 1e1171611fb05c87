/* The environment: what is taken, what is refused, who wins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena-ground.h"
#include "base/cleanup.h"
#include "policy/egress.h"
#include "policy/env.h"

#define LIST(...) (&(struct strings){ .items = (const char *[]){ __VA_ARGS__, NULL }, \
	.count = sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *) })
#define CALLER(...) ((char *[]){ __VA_ARGS__, NULL })

static const char *value(const struct strings *environment, const char *name)
{
	const char *found = NULL;
	size_t length = strlen(name);
	for (size_t i = 0; i < environment->count; i++) {
		if (strncmp(environment->items[i], name, length) || environment->items[i][length] != '=')
			continue;
		assert_null(found);
		found = environment->items[i] + length + 1;
	}
	return found;
}

static const struct env_request usual = {
	.user = "agent", .home = "/home/w", .workspace = "/w", .session_id = "s1", .sandbox_id = "b1",
	.driver = "namespaces", .network = "none",
};

static struct strings build(char *const *caller, const struct env_request *request)
{
	struct strings environment = { 0 };
	struct cordon_error err = { 0 };
	if (env_build(&arena, caller, request, &environment, &err) < 0)
		fail_msg("%s", err.reason);
	assert_int_equal(err.class, CORDON_OK);
	assert_null(environment.items[environment.count]);
	return environment;
}

static void refuse(const struct env_request *request, const char *subject)
{
	char *caller[] = { (char[]){ "LD_PRELOAD=/evil" }, (char[]){ "SECRET=hunter2" }, NULL };
	struct strings environment = { .count = 77 };
	struct cordon_error err = { 0 };
	assert_int_equal(env_build(&arena, caller, request, &environment, &err), -1);
	assert_int_equal(environment.count, 77);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	assert_string_equal(err.subject, subject);
	assert_null(strstr(err.reason, "hunter2"));
	assert_true(*err.remediation && *err.boundary);
}

static void built_from_nothing(void **state)
{
	(void)state;
	char *caller[] = { (char[]){ "PATH=/usr/bin:/bin" },
		           (char[]){ "LANG=C.UTF-8" },
		           (char[]){ "LC_ALL=C" },
		           (char[]){ "TERM=xterm" },
		           (char[]){ "TZ=UTC" },
		           (char[]){ "AWS_SECRET_ACCESS_KEY=x" },
		           (char[]){ "HOME=/root" },
		           (char[]){ "LD_PRELOAD=/evil.so" },
		           (char[]){ "lang=x" },
		           (char[]){ "LANGUAGE=de" },
		           (char[]){ "TERMINFO=/x" },
		           (char[]){ "CORDON_SANDBOX=fake" },
		           (char[]){ "broken" },
		           (char[]){ "=odd" },
		           (char[]){ "LC_\x01=x" },
		           NULL };
	struct strings environment = build(caller, &usual);
	static const char *const expected[] = { "LANG=C.UTF-8",
		                                "LC_ALL=C",
		                                "TERM=xterm",
		                                "TZ=UTC",
		                                "PATH=/usr/bin:/bin",
		                                "HOME=/home/w",
		                                "USER=agent",
		                                "LOGNAME=agent",
		                                "TMPDIR=/tmp",
		                                "CORDON_SESSION_ID=s1",
		                                "CORDON_SANDBOX_ID=b1",
		                                "CORDON_WORKSPACE=/w",
		                                "CORDON_SANDBOX=namespaces",
		                                "CORDON_NETWORK=none" };
	assert_int_equal(environment.count, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		assert_true(strings_find(&environment, expected[i]) >= 0);
	environment = build(NULL, &usual);
	assert_string_equal(value(&environment, "PATH"), "/usr/local/bin:/usr/bin:/bin");
	struct env_request bare = { .tmpdir = "/scratch" };
	environment = build(NULL, &bare);
	assert_int_equal(environment.count, 2);
	assert_string_equal(value(&environment, "TMPDIR"), "/scratch");
}

static void later_sources_win(void **state)
{
	(void)state;
	char *caller[] = { (char[]){ "TERM=caller" }, (char[]){ "TERM=second" },
		           (char[]){ "A=caller" },    (char[]){ "B=caller" },
		           (char[]){ "C=caller" },    (char[]){ "D=two\nlines" },
		           (char[]){ "EMPTY=" },      NULL };
	struct env_request request = usual;
	request.toolchains = LIST("A=tool", "B=tool", "C=tool", "GOROOT=/go", "LANG=tool");
	request.passthrough = LIST("B", "C", "D", "EMPTY", "UNSET", "PATH");
	request.set = LIST("C=set", "HOME=/mine", "TMPDIR=/mine/tmp", "USER=root", "X==", "Y=", "X=2");
	struct strings environment = build(caller, &request);
	assert_string_equal(value(&environment, "TERM"), "caller");
	assert_string_equal(value(&environment, "LANG"), "tool");
	assert_string_equal(value(&environment, "A"), "tool");
	assert_string_equal(value(&environment, "B"), "caller");
	assert_string_equal(value(&environment, "C"), "set");
	assert_string_equal(value(&environment, "D"), "two\nlines");
	assert_string_equal(value(&environment, "EMPTY"), "");
	assert_string_equal(value(&environment, "X"), "2");
	assert_string_equal(value(&environment, "Y"), "");
	assert_null(value(&environment, "UNSET"));
	/* What is asked for by name is not dropped, also where cordon would set it. */
	assert_string_equal(value(&environment, "HOME"), "/mine");
	assert_string_equal(value(&environment, "TMPDIR"), "/mine/tmp");
	assert_string_equal(value(&environment, "USER"), "root");
	assert_string_equal(value(&environment, "LOGNAME"), "agent");
}

static void prefixes(void **state)
{
	(void)state;
	char *caller[] = { (char[]){ "FOO_A=1" },
		           (char[]){ "FOO_B=2" },
		           (char[]){ "FOO_=3" },
		           (char[]){ "FOO=4" },
		           (char[]){ "foo_c=5" },
		           (char[]){ "L_X=6" },
		           (char[]){ "LD_PRELOAD=/evil.so" },
		           (char[]){ "CORDON_X=7" },
		           (char[]){ "PATH=/p" },
		           (char[]){ "BASH_ENV=x" },
		           NULL };
	struct env_request request = usual;
	request.passthrough = LIST("FOO_*", "L*", "C*", "P*", "B*");
	struct strings environment = build(caller, &request);
	assert_string_equal(value(&environment, "FOO_A"), "1");
	assert_string_equal(value(&environment, "FOO_B"), "2");
	assert_string_equal(value(&environment, "FOO_"), "3");
	assert_string_equal(value(&environment, "L_X"), "6");
	assert_null(value(&environment, "FOO"));
	assert_null(value(&environment, "foo_c"));
	assert_null(value(&environment, "LD_PRELOAD"));
	assert_null(value(&environment, "CORDON_X"));
	assert_null(value(&environment, "BASH_ENV"));
	assert_int_equal(env_hide(&arena, LIST("FOO_*"), &environment, NULL), 0);
	assert_string_equal(value(&environment, "FOO_A"), ENV_HIDDEN);
	assert_string_equal(value(&environment, "FOO_"), ENV_HIDDEN);
	assert_string_equal(value(&environment, "L_X"), "6");
	static const char *const bad[] = { "*", "A*B", "**", "A**", "LD_*", "CORDON_*", "" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct cordon_error err;
		request.passthrough = LIST(bad[i]);
		assert_int_equal(env_build(&arena, caller, &request, &environment, &err), -1);
		assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	}
}

static void proxy(void **state)
{
	(void)state;
	static const char *const names[] = { "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
		                             "http_proxy", "https_proxy", "all_proxy" };
	char *caller[] = { (char[]){ "HTTP_PROXY=http://caller:1" }, (char[]){ "no_proxy=*" }, NULL };
	struct env_request request = usual;
	request.passthrough = LIST("HTTP_PROXY", "no_proxy");
	struct strings environment = build(caller, &request);
	assert_string_equal(value(&environment, "HTTP_PROXY"), "http://caller:1");
	assert_null(value(&environment, "HTTPS_PROXY"));
	request.proxy = EGRESS_PROXY_URL;
	environment = build(caller, &request);
	/* The caller's own, in either spelling; the rest is cordon's. */
	assert_string_equal(value(&environment, "HTTP_PROXY"), "http://caller:1");
	assert_null(value(&environment, "http_proxy"));
	assert_string_equal(value(&environment, "no_proxy"), "*");
	assert_null(value(&environment, "NO_PROXY"));
	assert_string_equal(value(&environment, "HTTPS_PROXY"), "http://198.18.0.1:3128");
	request.passthrough = NULL;
	environment = build(caller, &request);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_string_equal(value(&environment, names[i]), "http://198.18.0.1:3128");
	assert_string_equal(value(&environment, "NO_PROXY"), "localhost,127.0.0.1,::1");
	assert_string_equal(value(&environment, "no_proxy"), "localhost,127.0.0.1,::1");
	request.proxies_all = true;
	environment = build(caller, &request);
	assert_string_equal(value(&environment, "all_proxy"), "http://198.18.0.1:3128");
	assert_null(value(&environment, "NO_PROXY"));
	assert_null(value(&environment, "no_proxy"));
}

static void what_is_refused(void **state)
{
	(void)state;
	static const char *const names[] = { "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES",
		"DYLD_LIBRARY_PATH", "PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS", "RUBYOPT", "PERL5OPT", "PERL5LIB",
		"BASH_ENV", "ENV", "GCONV_PATH", "LD_DEBUG", "LD_", "CORDON_SESSION_ID", "CORDON_ANYTHING", "CORDON_" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (int fold = 0; fold < 3; fold++) {
			char name[40], pair[64];
			strcpy(name, names[i]);
			for (char *at = name; *at; at++)
				*at = (char)(fold == 1 || (fold == 2 && (at - name) % 2) ? tolower(*at) : *at);
			strcat(strcpy(pair, name), "=hunter2");
			struct env_request set = usual, pass = usual, tool = usual;
			set.set = LIST("OK=1", pair);
			pass.passthrough = LIST("OK", name);
			tool.toolchains = LIST("OK=1", pair);
			refuse(&set, name);
			refuse(&pass, name);
			refuse(&tool, name);
		}
	static const char *const allowed[] = { "LDFLAGS",    "ENVIRONMENT",       "XENV",
		                               "PYTHONHOME", "MY_LD_PRELOAD",     "PERL5DB",
		                               "CORDON",     "JAVA_TOOL_OPTIONS", "caf\xc3\xa9" };
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
		assert_int_equal(env_check_name(allowed[i], strlen(allowed[i]), NULL), 0);
}

static void names_that_are_none(void **state)
{
	(void)state;
	struct env_request request = usual;
	request.set = LIST("=hunter2");
	refuse(&request, "");
	request.set = LIST("");
	refuse(&request, "");
	request.set = LIST("NOVALUE");
	refuse(&request, "NOVALUE");
	request.set = LIST("A\nB=hunter2");
	refuse(&request, "A?B");
	request.set = LIST("A\x7f=hunter2");
	refuse(&request, "A?");
	request.set = NULL;
	request.passthrough = LIST("");
	refuse(&request, "");
	request.passthrough = LIST("A=hunter2");
	refuse(&request, "A");
	request.passthrough = LIST("A\x1b[2J");
	refuse(&request, "A?[2J");
	assert_int_equal(env_check_name("A\0B", 3, NULL), -1);
	request.passthrough = NULL;
	char *large = calloc(1, 200000);
	memset(large, 'v', 199999);
	memcpy(large, "BIG=", 4);
	request.set = LIST(large);
	refuse(&request, "BIG");
	large[32 * 4096 - 1] = '\0';
	build(NULL, &request);
	large[32 * 4096 - 1] = 'v';
	large[32 * 4096] = '\0';
	refuse(&request, "BIG");
	memset(large, 'N', 199999);
	struct cordon_error err = { 0 };
	assert_int_equal(env_check_name(large, 199999, &err), 0);
	large[190000] = '\n';
	assert_int_equal(env_check_name(large, 199999, &err), -1);
	assert_int_equal(strlen(err.subject), sizeof(err.subject) - 1);
	free(large);
}

static void paths(void **state)
{
	(void)state;
	static const struct {
		const char *caller, *tool, *set, *tools_dir, *path;
	} rows[] = {
		{ "PATH=/a:/b", NULL, NULL, NULL, "/a:/b" },
		{ "PATH=:/a::/b:", NULL, NULL, NULL, "/a:/b" },
		{ "PATH=.:/a:../x:bin:/b:./c", NULL, NULL, NULL, "/a:/b" },
		{ "PATH=/a:/b:/a:/ab", NULL, NULL, NULL, "/a:/b:/ab" },
		{ "PATH=", NULL, NULL, NULL, "/usr/local/bin:/usr/bin:/bin" },
		{ "PATH=.:", NULL, NULL, NULL, "/usr/local/bin:/usr/bin:/bin" },
		{ "X=", NULL, NULL, "/tools", "/tools/bin:/usr/local/bin:/usr/bin:/bin" },
		{ "PATH=/a:/tools/bin", NULL, NULL, "/tools", "/tools/bin:/a" },
		{ "PATH=/a", "PATH=/go/bin", NULL, NULL, "/a:/go/bin" },
		{ "PATH=/a:/go/bin", "PATH=/go/bin", NULL, "/t", "/t/bin:/a:/go/bin" },
		{ "X=", "PATH=/go/bin", NULL, NULL, "/usr/local/bin:/usr/bin:/bin:/go/bin" },
		{ "PATH=/a", "PATH=/go/bin", "PATH=/mine:rel", "/t", "/t/bin:/mine" },
		{ "PATH=/a b:/c", NULL, NULL, NULL, "/a b:/c" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char caller[64];
		strcpy(caller, rows[i].caller);
		struct env_request request = usual;
		request.toolchains = rows[i].tool ? LIST(rows[i].tool) : NULL;
		request.set = rows[i].set ? LIST(rows[i].set) : NULL;
		/* Taking PATH by name as well changes nothing. */
		request.passthrough = LIST("PATH");
		request.tools_dir = rows[i].tools_dir;
		struct strings environment = build(CALLER(caller), &request);
		assert_string_equal(value(&environment, "PATH"), rows[i].path);
	}
	struct env_request request = usual;
	struct strings environment = { .count = 77 };
	struct cordon_error err;
	for (const char *const *bad = (const char *const[]){ "tools", "/a:b", "", NULL }; *bad; bad++) {
		request.tools_dir = *bad;
		assert_int_equal(env_build(&arena, NULL, &request, &environment, &err), -1);
		assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	}
}

/* A toolchain that adds PATH where the caller has none must not hide the system. */
static void toolchains_do_not_hide_the_system(void **state)
{
	(void)state;
	struct env_request request = usual;
	request.toolchains = LIST("PATH=/go/bin", "PATH=/rust/bin");
	struct strings environment = build(NULL, &request);
	assert_string_equal(value(&environment, "PATH"), "/usr/local/bin:/usr/bin:/bin:/go/bin:/rust/bin");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(built_from_nothing),
		cmocka_unit_test(later_sources_win),
		cmocka_unit_test(prefixes),
		cmocka_unit_test(proxy),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(names_that_are_none),
		cmocka_unit_test(paths),
		cmocka_unit_test(toolchains_do_not_hide_the_system),
	};
	return cmocka_run_group_tests_name("env", tests, NULL, free_arena);
}

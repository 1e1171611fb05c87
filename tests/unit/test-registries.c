/* Which hosts package managers are configured for: each tool's formats, the order of its files, and what is not
 * believed. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "arena-ground.h"
#include "base/remove.h"
#include "host/registries.h"
#include "system-has.h"

static char home[] = "/tmp/cordon-registries-XXXXXX";

static const struct registry_row *row_of(const char *tool)
{
	for (size_t i = 0; i < registry_row_count; i++)
		if (!strcmp(registry_rows[i].tool, tool))
			return &registry_rows[i];
	fail_msg("no tool %s", tool);
	return NULL;
}

static const char *joined(const struct strings *list)
{
	const char *text = "";
	for (size_t i = 0; i < list->count; i++)
		text = arena_printf(&arena, "%s%s%s", text, i ? " " : "", list->items[i]);
	return text;
}

static void scanned(const char *tool, bool by_default, const char *text, const char *want)
{
	struct registry_scan scan = { .arena = &arena, .row = row_of(tool) };
	registry_scan_text(&scan, text, strlen(text), by_default);
	assert_false(scan.failed);
	assert_string_equal(joined(&scan.hosts), want);
}

static void each_format_is_read(void **state)
{
	(void)state;
	scanned("npm", false, "registry=https://npm.example.com/a/\n", "npm.example.com:443");
	scanned("npm", false, " registry = \"http://npm.example.com\"\r\n", "npm.example.com:80");
	scanned("npm", false, "@scope:registry=https://npm.example.com:8443\n", "npm.example.com:8443");
	scanned("npm", false, "npmRegistryServer: \"https://npm.example.com\"\n", "npm.example.com:443");
	scanned("npm", true, "    default: 'https://npm.example.com/',\n    description: `https://no.example.com`\n",
	        "npm.example.com:443");
	scanned("pip", false,
	        "[global]\nindex_url: https://a.example.com/simple\nextra-index-url =\n\thttps://b.example.com\n\n"
	        "  http://c.example.com:81\ntrusted-host =\n  d.example.com\n",
	        "a.example.com:443 b.example.com:443 c.example.com:81");
	scanned("pip", true,
	        "PyPI = PackageIndex(\"https://a.example.com/\", file_storage_domain=\"files.example.com\")\n"
	        "TestPyPI = PackageIndex(\n    \"https://test.example.com/\"\n",
	        "a.example.com:443 files.example.com:443");
	scanned("cargo", false,
	        "[registries.work]\nindex = \"sparse+https://crates.example.com/index/\"\ntoken = "
	        "\"https://no.example.com\"\n",
	        "crates.example.com:443");
	scanned("cargo", true, "{\"dl\":\"https://dl.example.com/crates\",\"api\":\"https://example.com\"}",
	        "dl.example.com:443 example.com:443");
	scanned("go", false,
	        "GOPROXY=https://a.example.com|http://[fd00::1]:3000,direct\nGOSUMDB=sum.example.com+033de0ae+Ac\n",
	        "a.example.com:443 [fd00::1]:3000 sum.example.com:443");
	scanned("go", false, "GOPROXY=off\n", "");
	scanned("apt", false, "deb [arch=amd64 signed-by=/k.gpg] http://deb.example.com/debian v1.x main\n",
	        "deb.example.com:80");
	scanned("apt", false, "Types: deb\nURIs: https://a.example.com\n http://b.example.com:8080/x\nSuites: sid\n",
	        "a.example.com:443 b.example.com:8080");
}

static void what_is_no_host_is_left_out(void **state)
{
	(void)state;
	scanned("npm", false,
	        "# registry=https://no.example.com\n; "
	        "registry=https://no.example.com\nxregistry=https://no.example.com\n"
	        "//no.example.com/:_authToken=https://no.example.com\n",
	        "");
	scanned("npm", false, "registry=https://user:s%40cret@npm.example.com/\n", "npm.example.com:443");
	scanned("npm", false,
	        "registry=https://\nregistry=https://%61.example.com\nregistry=https://x.example.com:99999\n"
	        "registry=ftp://f.example.com\nregistry=npm.example.com\nregistry=https://*.example.com\n",
	        "");
	scanned("npm", false, "", "");
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	char *path = arena_printf(&arena, "%s/%s", home, name);
	for (char *at = path + strlen(home) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		mkdir(path, 0700);
	}
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
}

static void found(const char *tool, char *const *environment, const char *want, const char *want_sources)
{
	struct strings hosts, sources;
	assert_int_equal(registries_find(&arena, row_of(tool), home, environment, &hosts, &sources), 0);
	assert_string_equal(joined(&hosts), want);
	assert_string_equal(joined(&sources), want_sources);
}

static void the_first_that_sets_a_key_decides(void **state)
{
	char *const none[] = { NULL };
	static char variable[] = "npm_config_registry=https://env.example.com";
	char *const chosen[] = { variable, NULL };
	char *node = arena_printf(&arena, "PATH=relative:%s/none:%s/bin", home, home);
	char *const installed[] = { node, NULL };
	(void)state;
	write_file(".npmrc", "@s:registry=https://scope.example.com\n", 0600);
	write_file("lib/npm/bin/npm", "", 0700);
	write_file("lib/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
	           "  default: 'https://own.example.com/',\n", 0600);
	write_file("bin/x", "", 0600);
	/* A scope alone leaves the tool's own default in force, which is found beside the program. */
	if (HAS_LINKS) {
		assert_int_equal(symlink("../lib/npm/bin/npm", arena_printf(&arena, "%s/bin/npm", home)), 0);
		found("npm", installed, "scope.example.com:443 own.example.com:443",
		      arena_printf(&arena,
		                   "%s/.npmrc %s/lib/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
		                   home, home));
	}
	write_file(".npmrc", "registry=https://a.example.com\n", 0600);
	found("npm", installed, "a.example.com:443", arena_printf(&arena, "%s/.npmrc", home));
	found("npm", chosen, "env.example.com:443", "npm_config_registry");
	/* What others could have written is not believed. */
	write_file(".config/go/env", "GOPROXY=https://go.example.com\n", 0600);
	found("go", none, "go.example.com:443", arena_printf(&arena, "%s/.config/go/env", home));
	write_file(".config/go/env", "GOPROXY=https://go.example.com\n", 0606);
	found("go", none, "", "");
	write_file(".cargo/registry/index/one-1/config.json", "{\"dl\":\"https://dl.example.com\"}", 0600);
	found("cargo", none, "dl.example.com:443",
	      arena_printf(&arena, "%s/.cargo/registry/index/one-1/config.json", home));
	write_file(".cargo/config.toml", "[source.m]\nregistry = \"sparse+https://mirror.example.com/\"\n", 0600);
	found("cargo", none, "mirror.example.com:443", arena_printf(&arena, "%s/.cargo/config.toml", home));
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(home) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	remove_tree(AT_FDCWD, home);
	return free_arena(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_format_is_read),
		cmocka_unit_test(what_is_no_host_is_left_out),
		cmocka_unit_test(the_first_that_sets_a_key_decides),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

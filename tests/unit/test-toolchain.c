/* Toolchains, each as it lies in a home: every row of toolchains.def must have a layout here, whose outcome is compared
 * whole. For every mask of a row a file is made, so a mask that nobody expects fails, and so does one that is missing.
 * How a layout is written: toolchain-ground.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "host/toolchain-table.h"
#include "system-has.h"
#include "toolchain-ground.h"

struct layout {
	const char *name, *place;       /* the row: its name and its first place */
	const char *root;               /* where its masks are made */
	const char *files, *environment;
	const char *show, *mask, *set;  /* what must come out */
};

static const struct layout layouts[] = {
	{ "nvm", "$NVM_DIR", "H/.nvm", "H/.nvm/nvm.sh H/.nvm/versions/node/v20/bin/node", "", "H/.nvm",
	  "H/.nvm/.npmrc H/.nvm/versions/node/v1/etc/npmrc", "NVM_DIR=H/.nvm" },
	{ "fnm", "$FNM_DIR", "H/.local/share/fnm", "H/.local/share/fnm/node-versions/v20/installation/bin/node", "",
	  "H/.local/share/fnm", "H/.local/share/fnm/node-versions/v1/installation/etc/npmrc",
	  "FNM_DIR=H/.local/share/fnm" },
	{ "fnm", "$FNM_MULTISHELL_PATH", "T/data/fnm/v9/installation",
	  "T/data/fnm/v9/installation/bin/node T/run/12_34->T/data/fnm/v9/installation",
	  "FNM_MULTISHELL_PATH=T/run/12_34", "T/data/fnm/v9/installation T/run/12_34",
	  "T/data/fnm/v9/installation/etc/npmrc T/run/12_34/etc/npmrc", "" },
	{ "volta", "$VOLTA_HOME", "H/.volta", "H/.volta/bin/volta", "", "H/.volta",
	  "H/.volta/tools/image/node/v1/etc/npmrc", "VOLTA_HOME=H/.volta" },
	{ "bun", "$BUN_INSTALL", "T/opt/bun", "T/opt/bun/bin/bun T/opt/bun/install/global/ T/opt/bun/install/cache/",
	  "BUN_INSTALL=T/opt/bun", "T/opt/bun/bin T/opt/bun/install/global",
	  "T/opt/bun/install/global/.npmrc T/opt/bun/install/global/bunfig.toml", "BUN_INSTALL=~/.bun" },
	{ "deno", "$DENO_INSTALL", "H/.deno", "H/.deno/bin/deno", "", "H/.deno/bin", "",
	  "DENO_DIR=~/.cache/deno DENO_INSTALL_ROOT=~/.deno" },
	{ "pyenv", "$PYENV_ROOT", "H/.pyenv", "H/.pyenv/versions/3.12.1/bin/python3 H/.pyenv/shims/python3", "",
	  "H/.pyenv", "H/.pyenv/versions/v1/pip.conf", "PYENV_ROOT=H/.pyenv" },
	{ "uv", "$UV_PYTHON_INSTALL_DIR", "T/pythons", "T/pythons/.lock T/pythons/cpython-3.12/bin/python3",
	  "UV_PYTHON_INSTALL_DIR=T/pythons", "T/pythons", "T/pythons/v1/pip.conf", "UV_PYTHON_INSTALL_DIR=T/pythons" },
	{ "uv", "$XDG_DATA_HOME/uv", "H/.local/share/uv",
	  "H/.local/share/uv/python/cpython-3.12/bin/python3 H/.local/share/uv/tools/ruff/bin/ruff", "",
	  "H/.local/share/uv/python H/.local/share/uv/tools",
	  "H/.local/share/uv/python/v1/pip.conf H/.local/share/uv/tools/v1/pip.conf",
	  "UV_PYTHON_INSTALL_DIR=H/.local/share/uv/python" },
	{ "uv", "$XDG_BIN_HOME", "H/.local/bin", "H/.local/bin/uv H/.local/bin/uvx H/.local/bin/diary", "",
	  "H/.local/bin/uv H/.local/bin/uvx", "", "" },
	{ "pipx", "$PIPX_HOME", "H/.local/share/pipx", "H/.local/share/pipx/venvs/black/bin/black", "",
	  "H/.local/share/pipx/venvs", "H/.local/share/pipx/venvs/v1/pip.conf", "" },
	{ "conda", "$CONDA_EXE/../..", "H/miniforge3", "H/miniforge3/conda-meta/history H/miniforge3/bin/conda", "",
	  "H/miniforge3",
	  "H/miniforge3/.condarc H/miniforge3/condarc H/miniforge3/condarc.d H/miniforge3/pip.conf "
	  "H/miniforge3/envs/v1/.condarc H/miniforge3/envs/v1/pip.conf",
	  "CONDA_PKGS_DIRS=~/.conda/pkgs,H/miniforge3/pkgs" },
	{ "rustup", "$RUSTUP_HOME", "H/.rustup", "H/.rustup/toolchains/stable/bin/rustc", "", "H/.rustup", "",
	  "RUSTUP_HOME=H/.rustup" },
	/* Its credentials are not shown, so there is nothing to mask. */
	{ "rustup", "$CARGO_HOME", "H/.cargo", "H/.cargo/bin/cargo H/.cargo/registry/", "", "H/.cargo/bin", "",
	  "CARGO_HOME=~/.cargo" },
	{ "go", "$GOROOT", "H/sdk/go1.22",
	  "H/sdk/go1.22/src/runtime/proc.go H/sdk/go1.23/src/runtime/proc.go H/sdk/gopher/", "",
	  "H/sdk/go1.22 H/sdk/go1.23", "", "" },
	{ "go", "$GOPATH", "H/go", "H/go/bin/gopls H/go/src/secret/main.go T/two/bin/x", "GOPATH=H/go:T/two",
	  "H/go/bin T/two/bin", "", "GOPATH=~/go" },
	{ "rbenv", "$RBENV_ROOT", "H/.rbenv", "H/.rbenv/versions/3.3/bin/ruby", "", "H/.rbenv",
	  "H/.rbenv/versions/v1/etc/gemrc", "RBENV_ROOT=H/.rbenv" },
	{ "sdkman", "$SDKMAN_DIR", "H/.sdkman",
	  "H/.sdkman/candidates/java/17/bin/java H/.sdkman/candidates/java/21/bin/java "
	  "H/.sdkman/candidates/java/current->21 H/.sdkman/candidates/gradle/current->v1",
	  "JAVA_HOME=H/.sdkman/candidates/java/17", "H/.sdkman", "H/.sdkman/candidates/gradle/v1/gradle.properties",
	  "SDKMAN_DIR=H/.sdkman SDKMAN_CANDIDATES_DIR=H/.sdkman/candidates JAVA_HOME=H/.sdkman/candidates/java/17 "
	  "GRADLE_HOME=H/.sdkman/candidates/gradle/current GRADLE_USER_HOME=~/.gradle" },
	{ "asdf", "$ASDF_DATA_DIR", "H/.asdf", "H/.asdf/shims/node H/.tool-versions", "", "H/.asdf H/.tool-versions",
	  "H/.asdf/installs/nodejs/v1/etc/npmrc H/.asdf/installs/python/v1/pip.conf "
	  "H/.asdf/installs/rust/v1/credentials H/.asdf/installs/rust/v1/credentials.toml",
	  "ASDF_DATA_DIR=H/.asdf" },
	{ "asdf", "$ASDF_DIR", "T/opt/asdf", "T/opt/asdf/asdf.sh", "ASDF_DIR=T/opt/asdf", "T/opt/asdf", "",
	  "ASDF_DIR=T/opt/asdf" },
	{ "mise", "$MISE_DATA_DIR", "T/xdg/mise", "T/xdg/mise/installs/node/20/bin/node T/xdg/mise/downloads/",
	  "XDG_DATA_HOME=T/xdg", "T/xdg/mise/installs",
	  "T/xdg/mise/installs/node/v1/etc/npmrc T/xdg/mise/installs/python/v1/pip.conf", "MISE_DATA_DIR=T/xdg/mise" },
	{ "mise", "$XDG_BIN_HOME", "H/.local/bin", "H/.local/bin/mise H/.local/bin/diary", "", "H/.local/bin/mise", "",
	  "" },
	{ "homebrew", "$HOMEBREW_PREFIX", "H/.linuxbrew",
	  "H/.linuxbrew/bin/brew H/.linuxbrew/Cellar/ H/.linuxbrew/Homebrew/ H/.linuxbrew/var/postgres/ "
	  "H/.linuxbrew/etc/my.cnf H/.linuxbrew/etc/ca-certificates/cert.pem",
	  "", "H/.linuxbrew/bin H/.linuxbrew/Cellar H/.linuxbrew/Homebrew H/.linuxbrew/etc/ca-certificates", "",
	  "HOMEBREW_PREFIX=H/.linuxbrew HOMEBREW_CELLAR=H/.linuxbrew/Cellar "
	  "HOMEBREW_REPOSITORY=H/.linuxbrew/Homebrew" },
	{ "nix", "~/.nix-profile", "T/store/profile",
	  "T/store/profile/bin/hello T/store/profile/lib/locale/locale-archive H/.nix-profile->H/.local/state/profile "
	  "H/.local/state/profile->T/store/profile",
	  "", "T/store/profile H/.nix-profile", "", "LOCALE_ARCHIVE=H/.nix-profile/lib/locale/locale-archive" },
	{ "local-bin", ":~/.local/bin", "H/.local/bin", "H/.local/bin/mine", "PATH=/usr/bin:H/.local/bin/:/bin",
	  "H/.local/bin", "", "" },
};

static const struct layout *layout_of(const struct toolchain *row)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (!strcmp(layouts[i].name, row->name) && !strcmp(layouts[i].place, row->places[0]))
			return &layouts[i];
	return NULL;
}

static void make_masked(struct ground *ground, const struct toolchain *row, const char *root)
{
	for (const char *const *mask = row->mask; *mask; mask++) {
		char path[PATH_MAX];
		const char *sub = *mask + (**mask == '?'), *star = strchr(sub, '*');
		int length = star ? (int)(star - sub) : (int)strlen(sub);
		snprintf(path, sizeof(path), "%s/%.*s%s%s", ground_fill(ground, root), length, sub, star ? "v1" : "",
		         star ? star + 1 : "");
		ground_file(path, "token=https://me:secret@host/\n");
	}
}

static void test_every_row(void **state)
{
	struct ground *ground = *state;
	size_t count;
	const struct toolchain *rows = toolchain_rows(&count);
	assert_int_equal(count, ARRAY_SIZE(layouts));
	for (size_t i = 0; i < count; i++) {
		const struct layout *layout = layout_of(&rows[i]);
		if (!layout)
			fail_msg("no layout for %s %s", rows[i].name, rows[i].places[0]);
		if (!HAS_LINKS && strstr(layout->files, "->"))
			continue;
		ground_again(ground);
		ground->about = arena_printf(&ground->arena, "%s %s", layout->name, layout->place);
		ground_files(ground, layout->files);
		make_masked(ground, &rows[i], layout->root);
		ground_environment(ground, layout->environment);
		ground_find(ground, ground->home, layout->name);
		ground_found(ground, layout->show, layout->mask, layout->set);
		assert_true(strings_find(&ground->found.names, layout->name) >= 0);
		assert_int_equal(ground->found.names.count, 1);
		/* Unasked, the same. */
		ground_find(ground, ground->home, NULL);
		assert_true(strings_find(&ground->found.names, layout->name) >= 0);
	}
}

static void test_table(void **state)
{
	size_t count, rows_count;
	const char *const *names = toolchain_names(&count);
	const struct toolchain *rows = toolchain_rows(&rows_count);
	(void)state;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(names[i], names[j]);
	for (size_t i = 0; i < rows_count; i++) {
		bool named = false;
		for (size_t j = 0; j < count; j++)
			named |= !strcmp(names[j], rows[i].name);
		assert_true(named);
		assert_non_null(rows[i].places[0]);
		assert_non_null(rows[i].markers[0]);
		assert_non_null(rows[i].show[0]);
		for (const char *const *item = rows[i].set; *item; item++)
			assert_true(strstr(*item, "=@") || strstr(*item, "=~/"));
	}
}

static void test_nothing(void **state)
{
	struct ground *ground = *state;
	ground_find(ground, ground->home, NULL);
	ground_found(ground, "", "", "");
	ground_find(ground, NULL, NULL);
	ground_found(ground, "", "", "");
	ground_find(ground, "relative", NULL);
	ground_found(ground, "", "", "");
}

static void test_chosen(void **state)
{
	struct ground *ground = *state;
	struct strings list = { 0 };
	ground_files(ground, "H/.nvm/nvm.sh H/.cargo/bin/cargo H/.rustup/toolchains/x H/.pyenv/versions/x");
	ground_find(ground, ground->home, NULL);
	ground_same(ground, &ground->found.names, "nvm pyenv rustup", false);
	ground_find(ground, ground->home, "");
	ground_found(ground, "", "", "");
	ground_find(ground, ground->home, "pyenv");
	ground_found(ground, "H/.pyenv", "", "PYENV_ROOT=H/.pyenv");
	ground_find(ground, ground->home, "cargo nvm");
	ground_found(ground, "H/.cargo/bin H/.rustup H/.nvm", "",
	             "CARGO_HOME=~/.cargo RUSTUP_HOME=H/.rustup NVM_DIR=H/.nvm");
	ground_same(ground, &ground->found.names, "nvm rustup", false);

	list = ground_words(ground, "nvm pyenvv");
	struct toolchains untouched = ground->found;
	assert_int_equal(
		toolchain_find(&ground->arena, ground->home, NULL, &list, NULL, NULL, &ground->found, &ground->err),
		-1);
	assert_memory_equal(&untouched, &ground->found, sizeof(untouched));
	assert_int_equal(ground->err.class, CORDON_E_INVALID_REQUEST);
	assert_string_equal(ground->err.subject, "pyenvv");
	assert_non_null(strstr(ground->err.remediation, "\"pyenv\""));
	list = ground_words(ground, "xxxxxxxxxxxxxxxx");
	assert_int_equal(
		toolchain_find(&ground->arena, ground->home, NULL, &list, NULL, NULL, &ground->found, &ground->err),
		-1);
	assert_true(ground->err.remediation[0]);
}

static void test_environment_inside(void **state)
{
	struct ground *ground = *state;
	struct strings list = { 0 };
	ground_files(ground, "H/.cargo/bin/cargo H/anaconda3/conda-meta/x H/.volta/tools/");
	ground_find(ground, ground->home, NULL);
	assert_int_equal(toolchain_environment(&ground->arena, &ground->found, "/home/cordon", &list, &ground->err), 0);
	ground_same(ground, &list, "CARGO_HOME=/home/cordon/.cargo VOLTA_HOME=H/.volta "
	            "CONDA_PKGS_DIRS=/home/cordon/.conda/pkgs,H/anaconda3/pkgs", false);
}

static void test_found_by_path(void **state)
{
	struct ground *ground = *state;
	ground_files(ground,
	             "T/elsewhere/.nvm/versions/node/v20/bin/node T/other/miniconda3/conda-meta/x T/.nvmrc/bin/x");
	ground_environment(
		ground, "PATH=T/.nvmrc/bin:T/elsewhere/.nvm/versions/node/v20/bin:T/other/miniconda3:relative/.nvm:");
	ground_find(ground, ground->home, NULL);
	ground_same(ground, &ground->found.show, "T/elsewhere/.nvm T/other/miniconda3", true);
	ground_find(ground, NULL, "nvm");
	ground_found(ground, "T/elsewhere/.nvm", "", "NVM_DIR=T/elsewhere/.nvm");
	/* ~/.local/bin only where PATH has it. */
	ground_files(ground, "H/.local/bin/x");
	ground_find(ground, ground->home, "local-bin");
	ground_found(ground, "", "", "");
	/* What is within another is not shown twice; what it leads to is. */
	ground_files(ground, "T/uv/uv H/.local/bin/uv->T/uv/uv");
	ground_environment(ground, "PATH=H/.local/bin");
	ground_find(ground, ground->home, NULL);
	ground_found(ground, HAS_LINKS ? "H/.local/bin T/uv/uv" : "H/.local/bin", "", "");
}

/* A home that is reached by a link: both names are shown and both are masked. */
static void test_linked_home(void **state)
{
	struct ground *ground = *state;
	char home[PATH_MAX + 8];
	ground_files(ground, "H/.nvm/nvm.sh H/.nvm/.npmrc T/link->H/ H/.local/share/pipx/ T/venvs/black/pip.conf "
	             "H/.local/share/pipx/venvs->T/venvs");
	snprintf(home, sizeof(home), "%s/link", ground->top);
	ground_find(ground, home, NULL);
	ground_same(ground, &ground->found.show, "H/.nvm T/link/.nvm T/venvs T/link/.local/share/pipx/venvs", true);
	ground_same(ground, &ground->found.mask, "H/.nvm/.npmrc T/link/.nvm/.npmrc T/venvs/black/pip.conf "
	            "T/link/.local/share/pipx/venvs/black/pip.conf", true);
	ground_same(ground, &ground->found.environment, "NVM_DIR=T/link/.nvm", false);
}

static void test_condarc(void **state)
{
	struct ground *ground = *state;
	ground_files(ground, "H/miniforge3/conda-meta/x");
	ground_file(ground_fill(ground, "H/miniforge3/.condarc"), "channels:\n  - conda-forge\n");
	ground_find(ground, ground->home, "conda");
	ground_same(ground, &ground->found.mask, "", true);
	ground_file(ground_fill(ground, "H/miniforge3/.condarc"), "channels:\n  - https://host/t/tk-123/main\n");
	ground_find(ground, ground->home, "conda");
	ground_same(ground, &ground->found.mask, "H/miniforge3/.condarc", true);
}

/* More versions than are looked at: the directory is hidden as a whole. */
static void test_too_many(void **state)
{
	struct ground *ground = *state;
	ground_files(ground, "H/.local/share/pipx/venvs/");
	for (unsigned i = 0; i < 4100; i++) {
		char path[PATH_MAX + 64];
		snprintf(path, sizeof(path), "%s/.local/share/pipx/venvs/%u", ground->home, i);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	ground_find(ground, ground->home, "pipx");
	ground_same(ground, &ground->found.mask, "H/.local/share/pipx/venvs", true);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, ground_setup, ground_teardown)
	static const struct CMUnitTest tests[] = {
		ROW(test_table), ROW(test_every_row), ROW(test_nothing),
		ROW(test_chosen), ROW(test_environment_inside), ROW(test_found_by_path),
		ROW(test_linked_home), ROW(test_condarc), ROW(test_too_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

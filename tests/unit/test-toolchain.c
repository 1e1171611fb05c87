/* Toolchains, each as it lies in a home: every row of toolchains.def must have a layout here, whose outcome is compared
 * whole. For every mask of a row a file is made, so a mask that nobody expects fails, and so does one that is missing.
 * In layouts H is the home, T the directory it is in; "a->b" is a link, a name that ends in / a directory.
 *
 * The last test shows what was found on this machine, read-only, in an otherwise empty home, and uses it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "policy/toolchain-judge.h"
#include "policy/toolchain-table.h"
#include "policy/toolchain.h"
#include "skip.h"

#define MAX_WORDS 32

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
	  "T/data/fnm/v9/installation/bin/node T/run/12_34->T/data/fnm/v9/installation", "FNM_MULTISHELL_PATH=T/run/12_34",
	  "T/data/fnm/v9/installation T/run/12_34", "T/data/fnm/v9/installation/etc/npmrc T/run/12_34/etc/npmrc", "" },
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
	{ "go", "$GOROOT", "H/sdk/go1.22", "H/sdk/go1.22/src/runtime/proc.go H/sdk/go1.23/src/runtime/proc.go H/sdk/gopher/",
	  "", "H/sdk/go1.22 H/sdk/go1.23", "", "" },
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
	  "H/.asdf/installs/rust/v1/credentials H/.asdf/installs/rust/v1/credentials.toml", "ASDF_DATA_DIR=H/.asdf" },
	{ "asdf", "$ASDF_DIR", "T/opt/asdf", "T/opt/asdf/asdf.sh", "ASDF_DIR=T/opt/asdf", "T/opt/asdf", "",
	  "ASDF_DIR=T/opt/asdf" },
	{ "mise", "$MISE_DATA_DIR", "T/xdg/mise", "T/xdg/mise/installs/node/20/bin/node T/xdg/mise/downloads/",
	  "XDG_DATA_HOME=T/xdg", "T/xdg/mise/installs",
	  "T/xdg/mise/installs/node/v1/etc/npmrc T/xdg/mise/installs/python/v1/pip.conf", "MISE_DATA_DIR=T/xdg/mise" },
	{ "mise", "$XDG_BIN_HOME", "H/.local/bin", "H/.local/bin/mise H/.local/bin/diary", "", "H/.local/bin/mise", "", "" },
	{ "homebrew", "$HOMEBREW_PREFIX", "H/.linuxbrew",
	  "H/.linuxbrew/bin/brew H/.linuxbrew/Cellar/ H/.linuxbrew/Homebrew/ H/.linuxbrew/var/postgres/ "
	  "H/.linuxbrew/etc/my.cnf H/.linuxbrew/etc/ca-certificates/cert.pem", "",
	  "H/.linuxbrew/bin H/.linuxbrew/Cellar H/.linuxbrew/Homebrew H/.linuxbrew/etc/ca-certificates", "",
	  "HOMEBREW_PREFIX=H/.linuxbrew HOMEBREW_CELLAR=H/.linuxbrew/Cellar HOMEBREW_REPOSITORY=H/.linuxbrew/Homebrew" },
	{ "nix", "~/.nix-profile", "T/store/profile",
	  "T/store/profile/bin/hello T/store/profile/lib/locale/locale-archive H/.nix-profile->H/.local/state/profile "
	  "H/.local/state/profile->T/store/profile", "",
	  "T/store/profile H/.nix-profile", "", "LOCALE_ARCHIVE=H/.nix-profile/lib/locale/locale-archive" },
	{ "local-bin", ":~/.local/bin", "H/.local/bin", "H/.local/bin/mine", "PATH=/usr/bin:H/.local/bin/:/bin",
	  "H/.local/bin", "", "" },
};

/* ---- A home of our own ------------------------------------------------------------------------------------------- */

struct fixture {
	struct arena arena;
	char top[PATH_MAX], home[PATH_MAX];
	const char *environment[MAX_WORDS + 1];
	struct toolchains found;
	struct cordon_error err;
	const char *about;              /* for what fails */
	const struct strings *writable;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int make_home(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char top[] = "/tmp/test-toolchain-XXXXXX";
	assert_non_null(f);
	f->about = "this home";
	assert_non_null(mkdtemp(top));
	assert_non_null(realpath(top, f->top));
	assert_true(snprintf(f->home, sizeof(f->home), "%s/home", top) > 0);
	assert_int_equal(mkdir(f->home, 0700), 0);
	*state = f;
	return 0;
}

static int remove_home(void **state)
{
	struct fixture *f = *state;
	arena_free(&f->arena);
	nftw(f->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

/* H/… and T/… written out, at the start of each word and after = : > and , */
static char *fill(struct fixture *f, const char *text)
{
	char out[8192];
	size_t length = 0;
	for (const char *at = text; *at; at++) {
		bool begins = at == text || strchr(" =:>,", at[-1]);
		const char *with = begins && at[0] == 'H' && at[1] == '/' ? f->home :
		                   begins && at[0] == 'T' && at[1] == '/' ? f->top : NULL;
		if (with)
			length += (size_t)snprintf(out + length, sizeof(out) - length, "%s", with);
		else
			out[length++] = *at;
		assert_true(length < sizeof(out) - 1);
	}
	return arena_strndup(&f->arena, out, length);
}

static struct strings words(struct fixture *f, const char *text)
{
	struct strings list = { 0 };
	char *rest = fill(f, text);
	for (char *word; (word = strsep(&rest, " ")); )
		if (*word)
			assert_int_equal(strings_add(&f->arena, &list, word), 0);
	return list;
}

static void make_file(const char *path, const char *content)
{
	char parent[PATH_MAX];
	snprintf(parent, sizeof(parent), "%s", path);
	for (char *slash = parent + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(parent, 0700);
	}
	size_t length = strlen(path);
	char *arrow = strstr(parent, "->");
	if (arrow) {
		*arrow = '\0';
		assert_int_equal(symlink(arrow + 2, parent), 0);
	} else if (path[length - 1] != '/') {
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		fputs(content, file);
		fclose(file);
	}
}

static void make_files(struct fixture *f, const char *files)
{
	struct strings list = words(f, files);
	for (size_t i = 0; i < list.count; i++)
		make_file(list.items[i], "");
}

static void set_environment(struct fixture *f, const char *text)
{
	struct strings list = words(f, text);
	assert_true(list.count < MAX_WORDS);
	memset(f->environment, 0, sizeof(f->environment));
	for (size_t i = 0; i < list.count; i++)
		f->environment[i] = list.items[i];
}

static void find(struct fixture *f, const char *home, const char *chosen)
{
	struct strings list = { 0 };
	if (chosen)
		list = words(f, chosen);
	memset(&f->found, 0xff, sizeof(f->found));
	assert_int_equal(toolchain_find(&f->arena, home, f->environment, chosen ? &list : NULL, f->writable, NULL, &f->found, &f->err), 0);
}

/* Whatever this machine itself has (/nix, /opt/conda) is left aside. */
static void assert_same(struct fixture *f, const struct strings *got, const char *expected, bool paths)
{
	struct strings want = words(f, expected);
	size_t ours = 0;
	for (size_t i = 0; i < want.count; i++)
		if (strings_find(got, want.items[i]) < 0)
			fail_msg("%s: missing: %s", f->about, want.items[i]);
	for (size_t i = 0; i < got->count; i++) {
		if (paths && !path_within(got->items[i], f->top))
			continue;
		ours++;
		if (strings_find(&want, got->items[i]) < 0)
			fail_msg("%s: not expected: %s", f->about, got->items[i]);
	}
	if (ours != want.count)
		fail_msg("%s: something twice", f->about);
}

static void assert_found(struct fixture *f, const char *show, const char *mask, const char *set)
{
	assert_same(f, &f->found.show, show, true);
	assert_same(f, &f->found.mask, mask, true);
	assert_same(f, &f->found.environment, set, false);
}

static void start_again(struct fixture *f)
{
	nftw(f->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(mkdir(f->top, 0700), 0);
	assert_int_equal(mkdir(f->home, 0700), 0);
	memset(f->environment, 0, sizeof(f->environment));
}

/* ---- The rows ---------------------------------------------------------------------------------------------------- */

static const struct layout *layout_of(const struct toolchain *row)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (!strcmp(layouts[i].name, row->name) && !strcmp(layouts[i].place, row->places[0]))
			return &layouts[i];
	return NULL;
}

static void make_masked(struct fixture *f, const struct toolchain *row, const char *root)
{
	for (const char *const *mask = row->mask; *mask; mask++) {
		char path[PATH_MAX];
		const char *sub = *mask + (**mask == '?'), *star = strchr(sub, '*');
		int length = star ? (int)(star - sub) : (int)strlen(sub);
		snprintf(path, sizeof(path), "%s/%.*s%s%s", fill(f, root), length, sub, star ? "v1" : "",
		         star ? star + 1 : "");
		make_file(path, "token=https://me:secret@host/\n");
	}
}

static void test_every_row(void **state)
{
	struct fixture *f = *state;
	size_t count;
	const struct toolchain *rows = toolchain_rows(&count);
	assert_int_equal(count, ARRAY_SIZE(layouts));
	for (size_t i = 0; i < count; i++) {
		const struct layout *layout = layout_of(&rows[i]);
		if (!layout)
			fail_msg("no layout for %s %s", rows[i].name, rows[i].places[0]);
		start_again(f);
		f->about = arena_printf(&f->arena, "%s %s", layout->name, layout->place);
		make_files(f, layout->files);
		make_masked(f, &rows[i], layout->root);
		set_environment(f, layout->environment);
		find(f, f->home, layout->name);
		assert_found(f, layout->show, layout->mask, layout->set);
		assert_true(strings_find(&f->found.names, layout->name) >= 0);
		assert_int_equal(f->found.names.count, 1);
		/* Unasked, the same. */
		find(f, f->home, NULL);
		assert_true(strings_find(&f->found.names, layout->name) >= 0);
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
	struct fixture *f = *state;
	find(f, f->home, NULL);
	assert_found(f, "", "", "");
	find(f, NULL, NULL);
	assert_found(f, "", "", "");
	find(f, "relative", NULL);
	assert_found(f, "", "", "");
}

static void test_chosen(void **state)
{
	struct fixture *f = *state;
	struct strings list = { 0 };
	make_files(f, "H/.nvm/nvm.sh H/.cargo/bin/cargo H/.rustup/toolchains/x H/.pyenv/versions/x");
	find(f, f->home, NULL);
	assert_same(f, &f->found.names, "nvm pyenv rustup", false);
	find(f, f->home, "");
	assert_found(f, "", "", "");
	find(f, f->home, "pyenv");
	assert_found(f, "H/.pyenv", "", "PYENV_ROOT=H/.pyenv");
	find(f, f->home, "cargo nvm");
	assert_found(f, "H/.cargo/bin H/.rustup H/.nvm", "", "CARGO_HOME=~/.cargo RUSTUP_HOME=H/.rustup NVM_DIR=H/.nvm");
	assert_same(f, &f->found.names, "nvm rustup", false);

	list = words(f, "nvm pyenvv");
	struct toolchains untouched = f->found;
	assert_int_equal(toolchain_find(&f->arena, f->home, NULL, &list, NULL, NULL, &f->found, &f->err), -1);
	assert_memory_equal(&untouched, &f->found, sizeof(untouched));
	assert_int_equal(f->err.class, CORDON_E_INVALID_REQUEST);
	assert_string_equal(f->err.subject, "pyenvv");
	assert_non_null(strstr(f->err.remediation, "\"pyenv\""));
	list = words(f, "xxxxxxxxxxxxxxxx");
	assert_int_equal(toolchain_find(&f->arena, f->home, NULL, &list, NULL, NULL, &f->found, &f->err), -1);
	assert_true(f->err.remediation[0]);
}

static void test_environment_inside(void **state)
{
	struct fixture *f = *state;
	struct strings list = { 0 };
	make_files(f, "H/.cargo/bin/cargo H/anaconda3/conda-meta/x H/.volta/tools/");
	find(f, f->home, NULL);
	assert_int_equal(toolchain_environment(&f->arena, &f->found, "/home/cordon", &list, &f->err), 0);
	assert_same(f, &list, "CARGO_HOME=/home/cordon/.cargo VOLTA_HOME=H/.volta "
	            "CONDA_PKGS_DIRS=/home/cordon/.conda/pkgs,H/anaconda3/pkgs", false);
}

static void test_found_by_path(void **state)
{
	struct fixture *f = *state;
	make_files(f, "T/elsewhere/.nvm/versions/node/v20/bin/node T/other/miniconda3/conda-meta/x T/.nvmrc/bin/x");
	set_environment(f, "PATH=T/.nvmrc/bin:T/elsewhere/.nvm/versions/node/v20/bin:T/other/miniconda3:relative/.nvm:");
	find(f, f->home, NULL);
	assert_same(f, &f->found.show, "T/elsewhere/.nvm T/other/miniconda3", true);
	find(f, NULL, "nvm");
	assert_found(f, "T/elsewhere/.nvm", "", "NVM_DIR=T/elsewhere/.nvm");
	/* ~/.local/bin only where PATH has it. */
	make_files(f, "H/.local/bin/x");
	find(f, f->home, "local-bin");
	assert_found(f, "", "", "");
	/* What is within another is not shown twice; what it leads to is. */
	make_files(f, "T/uv/uv H/.local/bin/uv->T/uv/uv");
	set_environment(f, "PATH=H/.local/bin");
	find(f, f->home, NULL);
	assert_found(f, "H/.local/bin T/uv/uv", "", "");
}

/* A home that is reached by a link: both names are shown and both are masked. */
static void test_linked_home(void **state)
{
	struct fixture *f = *state;
	char home[PATH_MAX + 8];
	make_files(f, "H/.nvm/nvm.sh H/.nvm/.npmrc T/link->H/ H/.local/share/pipx/ T/venvs/black/pip.conf "
	           "H/.local/share/pipx/venvs->T/venvs");
	snprintf(home, sizeof(home), "%s/link", f->top);
	find(f, home, NULL);
	assert_same(f, &f->found.show, "H/.nvm T/link/.nvm T/venvs T/link/.local/share/pipx/venvs", true);
	assert_same(f, &f->found.mask, "H/.nvm/.npmrc T/link/.nvm/.npmrc T/venvs/black/pip.conf "
	            "T/link/.local/share/pipx/venvs/black/pip.conf", true);
	assert_same(f, &f->found.environment, "NVM_DIR=T/link/.nvm", false);
}

static void test_condarc(void **state)
{
	struct fixture *f = *state;
	make_files(f, "H/miniforge3/conda-meta/x");
	make_file(fill(f, "H/miniforge3/.condarc"), "channels:\n  - conda-forge\n");
	find(f, f->home, "conda");
	assert_same(f, &f->found.mask, "", true);
	make_file(fill(f, "H/miniforge3/.condarc"), "channels:\n  - https://host/t/tk-123/main\n");
	find(f, f->home, "conda");
	assert_same(f, &f->found.mask, "H/miniforge3/.condarc", true);
}

/* More versions than are looked at: the directory is hidden as a whole. */
static void test_too_many(void **state)
{
	struct fixture *f = *state;
	make_files(f, "H/.local/share/pipx/venvs/");
	for (unsigned i = 0; i < 4100; i++) {
		char path[PATH_MAX + 64];
		snprintf(path, sizeof(path), "%s/.local/share/pipx/venvs/%u", f->home, i);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	find(f, f->home, "pipx");
	assert_same(f, &f->found.mask, "H/.local/share/pipx/venvs", true);
}

/* ---- Roots that would show too much ------------------------------------------------------------------------------ */

/* Every marker of every row, in every place where it would tempt. */
static void make_tempting(struct fixture *f, const char *directory)
{
	size_t count;
	const struct toolchain *rows = toolchain_rows(&count);
	for (size_t i = 0; i < count; i++)
		for (const char *const *marker = rows[i].markers; *marker; marker++) {
			char path[PATH_MAX];
			snprintf(path, sizeof(path), "%s/%s/", fill(f, directory), *marker);
			make_file(path, "");
		}
}

static size_t try_variables(struct fixture *f, const char *value)
{
	size_t count, shown = 0;
	const struct toolchain *rows = toolchain_rows(&count);
	for (size_t i = 0; i < count; i++)
		for (const char *const *place = rows[i].places; *place; place++) {
			const char *variable = *place + (**place == ':');
			if (*variable != '$')
				continue;
			f->environment[0] = arena_printf(&f->arena, "%.*s=%s%s", (int)strcspn(variable + 1, "/"), variable + 1,
			                                 fill(f, value), strstr(variable, "/../..") ? "/a/b" : "");
			f->environment[1] = arena_printf(&f->arena, "PATH=%s", fill(f, value));
			find(f, f->home, rows[i].name);
			for (size_t j = 0; j < f->found.show.count; j++)
				shown += path_within(f->found.show.items[j], f->top) ||
				         path_within(f->home, f->found.show.items[j]);
		}
	return shown;
}

static void test_hostile_variables(void **state)
{
	struct fixture *f = *state;
	static const char *const hostile[] = {
		"/", "//", "/.", "/..", "H/", "H/.", "H/../home", "H/..", "T/", "..", ".", "~", "~/", "home", "", ":",
		"/nonexistent", "T/file", "T/to-home", "T/to-top", "T/to-ssh", "T/evil", "H/.ssh", "H/.ssh/sub",
		"H/.config", "H/.local", "H/.local/share", "T/somebody", "/proc/self/cwd",
		"/proc/self/root", "/proc", "/dev", "/home", "/tmp", "/tmp/..",
	};
	static const char *const tempting[] = {
		"H/", "T/", "H/.ssh", "H/.ssh/sub", "H/.config", "H/.local", "H/.local/share", "T/somebody", "T/fine",
	};
	make_files(f, "T/file T/somebody/.ssh/id_ed25519 T/to-home->H/ T/to-top->T/ T/to-ssh->H/.ssh "
	           "T/evil/uv->H/ T/evil/mise->H/ T/evil/fnm->H/ T/evil/nvm->H/ T/evil/nix/profile->H/");
	for (size_t i = 0; i < ARRAY_SIZE(tempting); i++)
		make_tempting(f, tempting[i]);
	assert_int_equal(chdir(f->home), 0);
	/* The same markers do prove a root where nothing speaks against it. */
	assert_true(try_variables(f, "T/fine") > 20);
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++)
		if (try_variables(f, hostile[i]))
			fail_msg("%s shows %s", hostile[i], f->found.show.count ? f->found.show.items[0] : "something");
	assert_int_equal(chdir("/"), 0);
}

/* A root that commands can write to: its links lead wherever they were made to. */
static void test_writable_roots(void **state)
{
	struct fixture *f = *state;
	struct strings writable = { 0 };
	assert_int_equal(strings_add(&f->arena, &writable, f->top), 0);
	make_tempting(f, "T/fine");
	assert_true(try_variables(f, "T/fine") > 20);
	f->writable = &writable;
	assert_int_equal(try_variables(f, "T/fine"), 0);
	f->writable = NULL;
}

static void test_hostile_links(void **state)
{
	struct fixture *f = *state;
	make_files(f, "H/.ssh/id_rsa H/.ssh/nvm.sh H/.nvm->H/.ssh H/.cargo/bin->H/.ssh H/versions/ H/.pyenv->H/ "
	           "H/.local/share/pipx/venvs->/ H/.tool-versions->H/.ssh/id_rsa H/.asdf/shims/");
	find(f, f->home, NULL);
	assert_found(f, "H/.asdf", "", "ASDF_DATA_DIR=H/.asdf");
	/* A name that holds what the table uses as a sign, and one that no file should have. */
	set_environment(f, "VOLTA_HOME=T/a*b NVM_DIR=T/a\tb");
	make_files(f, "T/a*b/tools/image/node/v1/etc/npmrc T/a\tb/nvm.sh");
	find(f, f->home, NULL);
	assert_same(f, &f->found.show, "H/.asdf", true);
}

static void test_judge(void **state)
{
	static const struct {
		const char *path;
		bool may;
	} cases[] = {
		{ "/", false }, { "/opt", false }, { "/home", false }, { "/home/me", false }, { "/home/you", false },
		{ "/home/me/.nvm", true }, { "/home/me/.ssh", false }, { "/home/me/.ssh/x", false }, { "/home/me/.sshd", true },
		{ "/home/me/.config", false }, { "/home/me/.config/nvm", true }, { "/home/me/.local", false },
		{ "/home/me/.local/share", false }, { "/home/me/.local/share/uv", true }, { "/proc/1", false },
		{ "/var/home/me", false }, { "/var/home/me/.aws", false }, { "/var/home/me/.bun", true }, { "/opt/go", true },
		{ "/var/home", false }, { "/home/linuxbrew/.linuxbrew", true }, { "/opt/a\nb", false },
	};
	const struct judge judge = { "/home/me", "/var/home/me", NULL };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (judge_may_name(&judge, cases[i].path) != cases[i].may)
			fail_msg("%s", cases[i].path);
	assert_false(judge_may_name(&(struct judge){ "/", "/", NULL }, "/.ssh/x"));
	assert_true(judge_may_name(&(struct judge){ NULL, NULL, NULL }, "/opt/go"));
	assert_false(judge_may_show(&judge, "/run/user/1000/x", NULL));
}

/* ---- What is really here ----------------------------------------------------------------------------------------- */

static const char use_script[] =
	"set -e; real=$1 inner=$2 stage=$3; shift 3; i=0\n"
	"for path; do i=$((i+1))\n"
	"  if [ -d \"$path\" ]; then mkdir $stage/$i; else : > $stage/$i; fi; mount --bind \"$path\" $stage/$i; done\n"
	"mount -t tmpfs none \"$real\"; i=0\n"
	"for path; do i=$((i+1))\n"
	"  if [ -d $stage/$i ]; then mkdir -p \"$path\"; else mkdir -p \"${path%/*}\"; : > \"$path\"; fi\n"
	"  mount --bind $stage/$i \"$path\"; mount -o remount,bind,ro \"$path\"; done\n"
	"mount -o remount,ro \"$real\"; cd $inner; export HOME=$inner; exec >$inner/out 2>&1\n"
	"case \" $NAMES \" in *' pyenv '*) python3 -c 'import json, ssl' && python3 -m venv --without-pip v &&"
	" v/bin/python3 -c 'import json';; esac\n"
	"case \" $NAMES \" in *' rustup '*) rustc --version && cargo new -q --vcs none x && cargo run -q --offline"
	" --manifest-path x/Cargo.toml;; esac\n";

static void test_real(void **state)
{
	struct fixture *f = *state;
	const char *home = getenv("HOME");
	struct strings argv = { 0 }, list = { 0 }, chosen = words(f, "pyenv rustup");
	if (geteuid() || !home)
		skip_cannot("root", "shows a real toolchain in a mount namespace");
	assert_int_equal(toolchain_find(&f->arena, home, (const char *const *)environ, &chosen, NULL, NULL, &f->found, &f->err), 0);
	if (!f->found.names.count)
		skip_cannot("toolchain", "none in this home");
	make_files(f, "T/stage/ T/inner/");
	const char *head[] = { "unshare", "-m", "--propagation", "private", "sh", "-c", use_script, "sh", home,
	                       fill(f, "T/inner"), fill(f, "T/stage") };
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		assert_int_equal(strings_add(&f->arena, &argv, head[i]), 0);
	for (size_t i = 0; i < f->found.show.count; i++)
		assert_int_equal(strings_add(&f->arena, &argv, f->found.show.items[i]), 0);
	assert_int_equal(toolchain_environment(&f->arena, &f->found, fill(f, "T/inner"), &list, &f->err), 0);
	assert_int_equal(strings_add(&f->arena, &list, arena_printf(&f->arena, "PATH=%s", getenv("PATH"))), 0);
	assert_int_equal(strings_add(&f->arena, &list, arena_printf(&f->arena, "NAMES=%s%s", f->found.names.items[0],
	                             f->found.names.count > 1 ? " rustup" : "")), 0);
	pid_t child = fork();
	if (!child) {
		execvpe("unshare", (char *const *)argv.items, (char *const *)list.items);
		_exit(77);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip_cannot("mount-namespace", "shows a real toolchain in one");
	if (status) {
		FILE *out = fopen(fill(f, "T/inner/out"), "r");
		char text[4096] = "";
		if (out && fread(text, 1, sizeof(text) - 1, out))
			print_message("# %s\n", text);
		if (out)
			fclose(out);
	}
	assert_int_equal(status, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_table, make_home, remove_home),
		cmocka_unit_test_setup_teardown(test_every_row, make_home, remove_home),
		cmocka_unit_test_setup_teardown(test_nothing, make_home, remove_home),
		cmocka_unit_test_setup_teardown(test_chosen, make_home, remove_home),
		cmocka_unit_test_setup_teardown(test_environment_inside, make_home, remove_home),
		cmocka_unit_test_setup_teardown(test_found_by_path, make_home, remove_home),
		cmocka_unit_test_setup_teardown(test_linked_home, make_home, remove_home),
		cmocka_unit_test_setup_teardown(test_condarc, make_home, remove_home),
		cmocka_unit_test_setup_teardown(test_too_many, make_home, remove_home),
		cmocka_unit_test_setup_teardown(test_hostile_variables, make_home, remove_home),
		cmocka_unit_test_setup_teardown(test_writable_roots, make_home, remove_home),
		cmocka_unit_test_setup_teardown(test_hostile_links, make_home, remove_home),
		cmocka_unit_test_setup_teardown(test_judge, make_home, remove_home),
		cmocka_unit_test_setup_teardown(test_real, make_home, remove_home),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

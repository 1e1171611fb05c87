/* What was found on this machine, shown read-only in an otherwise empty home, and used there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "skip.h"
#include "toolchain-ground.h"

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
	struct ground *ground = *state;
	const char *home = getenv("HOME");
	struct strings argv = { 0 }, list = { 0 }, chosen = ground_words(ground, "pyenv rustup");
	if (geteuid() || !home)
		skip_cannot("root", "shows a real toolchain in a mount namespace");
	assert_int_equal(toolchain_find(&ground->arena, home, (const char *const *)environ, &chosen, NULL, NULL,
	                                &ground->found, &ground->err), 0);
	if (!ground->found.names.count)
		skip_cannot("toolchain", "none in this home");
	ground_files(ground, "T/stage/ T/inner/");
	const char *head[] = { "unshare", "-m", "--propagation", "private", "sh", "-c", use_script, "sh", home,
	                       ground_fill(ground, "T/inner"), ground_fill(ground, "T/stage") };
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		assert_int_equal(strings_add(&ground->arena, &argv, head[i]), 0);
	for (size_t i = 0; i < ground->found.show.count; i++)
		assert_int_equal(strings_add(&ground->arena, &argv, ground->found.show.items[i]), 0);
	assert_int_equal(toolchain_environment(&ground->arena, &ground->found, ground_fill(ground, "T/inner"), &list,
	                                       &ground->err),
	                 0);
	assert_int_equal(strings_add(&ground->arena, &list, arena_printf(&ground->arena, "PATH=%s", getenv("PATH"))),
	                 0);
	assert_int_equal(strings_add(&ground->arena, &list,
	                             arena_printf(&ground->arena, "NAMES=%s%s", ground->found.names.items[0],
	                                          ground->found.names.count > 1 ? " rustup" : "")),
	                 0);
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
		FILE *out = fopen(ground_fill(ground, "T/inner/out"), "r");
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
#define ROW(test) cmocka_unit_test_setup_teardown(test, ground_setup, ground_teardown)
	static const struct CMUnitTest tests[] = {
		ROW(test_real),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

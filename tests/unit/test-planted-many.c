/* More than can be judged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "planted-lab.h"

/* More than can be judged: what was there before is judged first, and what is left over goes. */
static void test_too_many(void **state)
{
	struct lab *lab = *state;
	enum { MANY = 10100 };
	lab_make(lab, "zz/.git/config", "[user]\nname = x\n", 0644);
	lab_record(lab);
	for (int i = 0; i < MANY; i++) {
		char path[32];
		snprintf(path, sizeof(path), "d%05d/.git/config", i);
		lab_make(lab, path, "", 0644);
	}
	lab_make(lab, "zz/.git/config", "[user]\nname = y\n", 0644);
	lab_check(lab, true);
	assert_int_equal(lab->planted.count, MANY + 1);
	assert_true(lab->planted.harmful >= 101);
	assert_string_equal(lab_get(lab, "zz/.git/config")->note, "changed by the command; kept");
	assert_string_equal(lab_get(lab, "d10099/.git/config")->note, "too much to be judged; moved to quarantine");
	assert_false(lab_exists(lab, "d10099/.git/config"));
}

/* A hook among more entries than are looked at. */
static void test_hidden_in_a_crowd(void **state)
{
	struct lab *lab = *state;
	lab_make(lab, ".git/hooks/0.sample", "", 0644);
	lab_record(lab);
	lab_make(lab, ".git/hooks/pre-commit", "x", 0755);
	for (int i = 1; i < 10100; i++) {
		char path[48];
		snprintf(path, sizeof(path), ".git/hooks/%d.sample", i);
		assert_int_equal(linkat(lab->root_fd, ".git/hooks/0.sample", lab->root_fd, path, 0), 0);
	}
	lab_make(lab, ".git/hooks/sub/file", "y", 0644);
	int held = openat(lab->root_fd, ".git/hooks", O_PATH | O_CLOEXEC),
	    inner = openat(held, "sub", O_PATH | O_CLOEXEC);
	lab_check(lab, true);
	/* Another command may have it open still, but has no way into the quarantine by it. */
	assert_true(mkdirat(held, "new", 0700) < 0 && mkdirat(inner, "new", 0700) < 0);
	close(held);
	close(inner);
	assert_int_equal(lab->planted.count, 1);
	assert_string_equal(lab_get(lab, ".git/hooks")->note,
	                    "git hooks without number that could run; removed: quarantine had no room for all of it");
	assert_false(lab_exists(lab, ".git/hooks"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_too_many, lab_setup_in_memory, lab_teardown),
		cmocka_unit_test_setup_teardown(test_hidden_in_a_crowd, lab_setup_in_memory, lab_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Quotas where there are none, which is most everywhere: nothing is promised, and nothing changed. Where there are, in
 * emulated machines: tests/vm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "driver/linux/quota.h"

static void check_none(const char *template)
{
	char path[64];
	struct fsxattr attributes = { .fsx_projid = 0 };
	uint64_t used = 0;
	strcpy(path, template);
	assert_non_null(mkdtemp(path));
	auto_close int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int readable = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0 && readable >= 0);
	assert_false(quota_hold(fd, 1 << 20));
	assert_false(quota_used(fd, &used));
	assert_true(ioctl(readable, FS_IOC_FSGETXATTR, &attributes) < 0 ||
	            !(attributes.fsx_xflags & FS_XFLAG_PROJINHERIT));
	assert_int_equal(attributes.fsx_projid, 0);
	assert_int_equal(rmdir(path), 0);
}

static void test_none(void **state)
{
	(void)state;
	check_none("/tmp/cordon-test-quota.XXXXXX");
	check_none("/dev/shm/cordon-test-quota.XXXXXX");
}

static void test_no_directory(void **state)
{
	uint64_t used = 0;
	(void)state;
	assert_false(quota_hold(-1, 1 << 20));
	assert_false(quota_used(-1, &used));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_no_directory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

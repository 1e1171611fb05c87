/* What ended commands leave: descriptors that are closed later, and no more of them than there is room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/linux/cgroup.h"
#include "driver/linux/linger.h"

#define MANY 300

void cgroup_remove(struct cgroup *group)
{
	(void)group;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void closed_when_swept(void **state)
{
	(void)state;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), none = -1, number = fd;
	int *const fds[] = { &none, &fd };
	linger_close(fds, ARRAY_SIZE(fds));
	assert_int_equal(fd, -1);
	assert_true(is_open(number));
	linger_sweep();
	assert_false(is_open(number));
}

static void no_more_than_there_is_room_for(void **state)
{
	(void)state;
	int fds[MANY], numbers[MANY], kept = 0;
	for (int i = 0; i < MANY; i++) {
		int *const one = &fds[i];
		fds[i] = numbers[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		linger_close(&one, 1);
		assert_int_equal(fds[i], -1);
		kept += is_open(numbers[i]);
	}
	assert_true(kept > 0 && kept < MANY);
	linger_settle();
	for (int i = 0; i < MANY; i++)
		assert_false(is_open(numbers[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_when_swept),
		cmocka_unit_test(no_more_than_there_is_room_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What drivers of all systems share, with drivers of this test: which walls must hold, which cannot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "driver/driver.h"

#include <cmocka.h>

static const struct driver strong = { .name = "strong",
	                              .required = WALL_BIT(FILESYSTEM) | WALL_BIT(NETWORK),
	                              .cannot = WALL_BIT(NETWORK) | WALL_BIT(LIMIT_DISK) };
static const struct driver weak = { .name = "weak", .cannot = WALLS_ALL };
const struct driver *const drivers[] = { &strong, &weak, NULL };

static void test_the_first_is_the_default(void **state)
{
	(void)state;
	assert_ptr_equal(driver_default(), &strong);
	assert_ptr_equal(driver_find("weak"), &weak);
	assert_null(driver_find("namespaces"));
}

static void test_a_required_wall_that_is_none_refuses(void **state)
{
	(void)state;
	struct cordon_error err = { 0 };
	const char *isolation[CORDON_WALL_MAX] = { [CORDON_WALL_FILESYSTEM] = "tables", [CORDON_WALL_MASKED] = "none" };
	/* Of the network nothing was asked. */
	assert_int_equal(driver_require(&strong, isolation, &err), 0);
	isolation[CORDON_WALL_NETWORK] = "none";
	assert_int_equal(driver_require(&strong, isolation, &err), -1);
	assert_int_equal(err.class, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE);
	assert_string_equal(err.boundary, "network");
	/* A weaker tier was named by whoever wants it. */
	assert_int_equal(driver_require(&weak, isolation, &err), 0);
}

static void test_a_required_limit_that_cannot_be_held_refuses(void **state)
{
	(void)state;
	struct cordon_error err = { 0 };
	struct profile profile = { .walls = WALL_BIT(LIMIT_DISK) | WALL_BIT(LIMIT_MEMORY),
		                   .required = WALL_BIT(LIMIT_MEMORY) };
	assert_int_equal(driver_require_limits(&strong, &profile, &err), 0);
	profile.required = WALL_BIT(LIMIT_DISK);
	assert_int_equal(driver_require_limits(&strong, &profile, &err), -1);
	assert_int_equal(err.class, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE);
	assert_string_equal(err.boundary, "limit_disk");
	assert_non_null(strstr(err.reason, "strong"));
	/* Required, but lifted: there is no limit that could be passed. */
	profile.walls = 0;
	assert_int_equal(driver_require_limits(&strong, &profile, &err), 0);
}

static void test_what_is_asked_for_and_has_no_mechanism_is_none(void **state)
{
	(void)state;
	static const struct driver_mechanism rows[] = { { CORDON_WALL_FILESYSTEM, "tables" },
		                                        { CORDON_WALL_IPC, "keys" } };
	const struct profile profile = { .walls = WALL_BIT(FILESYSTEM) | WALL_BIT(NETWORK) };
	const char *isolation[CORDON_WALL_MAX];
	driver_describe(&profile, rows, ARRAY_SIZE(rows), isolation);
	assert_string_equal(isolation[CORDON_WALL_FILESYSTEM], "tables");
	assert_string_equal(isolation[CORDON_WALL_NETWORK], "none");
	assert_null(isolation[CORDON_WALL_IPC]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_is_the_default),
		cmocka_unit_test(test_a_required_wall_that_is_none_refuses),
		cmocka_unit_test(test_a_required_limit_that_cannot_be_held_refuses),
		cmocka_unit_test(test_what_is_asked_for_and_has_no_mechanism_is_none),
	};
	return cmocka_run_group_tests_name("driver", tests, NULL, NULL);
}

/* Any system that has no driver of its own: no wall can be raised there, so no command runs. What starts nothing works:
 * policy, configuration, approvals, the ledger. Built in place of the system's own driver; see meson.build. */
#include "driver/driver.h"

#include <sys/utsname.h>

static int refuse(struct cordon_error *err)
{
	struct utsname system = { 0 };
	uname(&system);
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, system.sysname, "cordon has no driver for %.40s",
	     system.sysname);
	fail_boundary(err, cordon_wall_name(CORDON_WALL_FILESYSTEM));
	return fail_remedy(err, "run the command on Linux, or in a Linux machine");
}

static void describe(const struct sandbox *sandbox, struct arena *arena, const struct profile *profile,
                     const char *isolation[CORDON_WALL_MAX])
{
	(void)sandbox;
	(void)arena;
	driver_describe(profile, NULL, 0, isolation);
}

static int refuse_walls(const struct driver *driver, const struct walls *walls, struct sandbox **ret_sandbox,
                        struct cordon_error *err)
{
	(void)driver;
	(void)walls;
	(void)ret_sandbox;
	return refuse(err);
}

static int refuse_command(struct sandbox *sandbox, const struct command *command, struct running **ret_running,
                          struct cordon_error *err)
{
	(void)sandbox;
	(void)command;
	(void)ret_running;
	return refuse(err);
}

static void lower(struct sandbox *sandbox)
{
	(void)sandbox;
}

static const char *fix(enum cordon_wall wall)
{
	(void)wall;
	return "run the command on Linux, or in a Linux machine";
}

static const struct driver driver_none = {
	.name = "none",
	.holds_writes = true,
	.required = WALLS_ALL,
	.cannot = WALLS_ALL,
	.fix = fix,
	.describe = describe,
	.raise = refuse_walls,
	.start = refuse_command,
	.lower = lower,
};

const struct driver *const drivers[] = { &driver_none, NULL };

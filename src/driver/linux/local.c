/* No walls: limits, environment, supervision and the ledger only. Must be named to be used. */
#include "driver/linux/plan.h"
#include "driver/linux/memory-watch.h"

static int prepare(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
                   struct launch *launch, struct driver_held *held, struct cordon_error *err)
{
	(void)held;
	if (driver_refuse_hosts(profile, err) < 0)
		return -1;
	struct profile unwalled = *profile;
	unwalled.walls &= WALL_BIT(LIMIT_MEMORY) | WALL_BIT(LIMIT_FILES) | WALL_BIT(TERMINAL) | WALL_BIT(DESCRIPTORS);
	driver_set_common(&unwalled, launch);
	launch->cwd_fd = facts->cwd_fd;
	return driver_seal(arena, &unwalled, facts, &launch->seal, err);
}

static void describe(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
                     const struct launch *launch, const char *isolation[CORDON_WALL_MAX])
{
	(void)arena;
	(void)facts;
	(void)launch;
	static const struct driver_mechanism rows[] = {
		{ CORDON_WALL_PROTECTED, "a check at the end" },      { CORDON_WALL_TERMINAL, "own session" },
		{ CORDON_WALL_DESCRIPTORS, "close_range, pipes" },    { CORDON_WALL_LIMIT_MEMORY, MEMORY_WATCH_TEXT },
		{ CORDON_WALL_LIMIT_TIME, "supervisor" },             { CORDON_WALL_LIMIT_OUTPUT, "supervisor" },
		{ CORDON_WALL_LIMIT_FILES, "rlimit" },
	};
	driver_describe(profile, rows, ARRAY_SIZE(rows), isolation);
}

const struct linux_driver driver_local = {
	.driver = { .name = "local",
	            .is_named_only = true,
	            .cannot = WALLS_ALL &
	                      ~(WALL_BIT(PROTECTED) | WALL_BIT(TERMINAL) | WALL_BIT(DESCRIPTORS) | WALLS_LIMITS),
	            LINUX_FUNCTIONS },
	.prepare = prepare,
	.describe = describe,
};

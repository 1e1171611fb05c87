/* The parts that drivers of all systems share. */
#include "driver/driver.h"

#include <string.h>

const struct driver *driver_find(const char *name)
{
	for (const struct driver *const *driver = drivers; *driver; driver++)
		if (!strcmp((*driver)->name, name))
			return *driver;
	return NULL;
}

const struct driver *driver_default(void)
{
	return drivers[0];
}

bool driver_limit_is_optional(enum cordon_wall wall)
{
	return wall == CORDON_WALL_LIMIT_MEMORY || wall == CORDON_WALL_LIMIT_PROCESSES || wall == CORDON_WALL_LIMIT_CPU;
}

int driver_require_limits(const struct driver *driver, const struct profile *profile, struct cordon_error *err)
{
	uint32_t missing = profile->required & profile->walls & driver->cannot;
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++) {
		if (!(missing & (UINT32_C(1) << wall)))
			continue;
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, cordon_wall_name(wall),
		     "this limit is required, and the driver %s cannot hold it", driver->name);
		fail_boundary(err, cordon_wall_name(wall));
		return fail_remedy(err, "leave out that limit, or change limits.required");
	}
	return 0;
}

int driver_require(const struct driver *driver, const char *const isolation[CORDON_WALL_MAX], struct cordon_error *err)
{
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++) {
		bool required = driver->required & (UINT32_C(1) << wall);
		if (required && isolation[wall] && !strcmp(isolation[wall], "none")) {
			fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, cordon_wall_name(wall),
			     "this wall cannot be raised here");
			fail_boundary(err, cordon_wall_name(wall));
			return fail_remedy(err, "run `cordon doctor`");
		}
	}
	return 0;
}

void driver_describe(const struct profile *profile, const struct driver_mechanism *rows, size_t count,
                     const char *isolation[CORDON_WALL_MAX])
{
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		isolation[wall] = profile->walls & (UINT32_C(1) << wall) ? "none" : NULL;
	for (size_t i = 0; i < count; i++)
		if (isolation[rows[i].wall])
			isolation[rows[i].wall] = rows[i].mechanism;
}

/* One command of a driver, from its start to its end. */
#pragma once
#include <stdbool.h>

#include "driver/driver.h"

#include <cmocka.h>

struct ran {
	struct arena arena;
	struct profile profile;
	struct mount_op op;
	struct sandbox *sandbox;
	struct running *running;
	struct outcome outcome;
	struct cordon_error err;
	struct command command;
};

/* The command of the profile, which has its environment already. */
static inline void ran_prepare(struct ran *ran)
{
	ran->command = (struct command){ .arena = &ran->arena,
		                         .profile = &ran->profile,
		                         .environment = &ran->profile.environment,
		                         .cwd_fd = -1,
		                         .stdin_fd = -1,
		                         .stdout_cap = 1 << 20,
		                         .stderr_cap = 1 << 20,
		                         .interrupt_fd = -1 };
}

static inline void ran_finish(struct ran *ran)
{
	bool finished = false;
	while (!finished)
		assert_int_equal(ran->running->ops->step(ran->running, -1, &finished, &ran->err), 0);
	assert_int_equal(ran->running->ops->end(ran->running, &ran->outcome, &ran->err), 0);
}

static inline void ran_clear(struct ran *ran, const struct driver *driver)
{
	if (ran->running)
		ran->running->ops->free(ran->running);
	if (ran->sandbox)
		driver->lower(ran->sandbox);
	arena_free(&ran->arena);
	*ran = (struct ran){ 0 };
}

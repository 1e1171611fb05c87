/* What the drivers of Linux share. Each turns a profile into a plan for the code between clone and exec (struct
 * launch), and tells what holds each wall; raising, starting and lowering are the same for all of them (start.c). */
#pragma once
#include "base/cleanup.h"
#include "driver/driver.h"
#include "driver/machine.h"
#include "driver/linux/launch.h"

/* What a driver needs to know besides the profile. */
struct driver_facts {
	int cwd_fd;             /* the working directory, open */
	bool caller_is_root;
	uint32_t uid, gid;      /* the caller's */
	int landlock_abi;
	const char *data_dir;
};

/* What one launch holds on to until it has started. */
struct driver_held {
	int *fds;
	size_t count;
};

struct linux_driver {
	struct driver driver;   /* the first member */
	unsigned helpers;       /* processes of its own that count beside the command's; 0: init alone */
	bool own_user;          /* the kernel counts the processes of its user namespace by themselves */
	/* Fills `launch` but for limits, everything from the arena. `held` is closed by driver_release() after the
	 * start. */
	int (*prepare)(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
	               struct launch *launch, struct driver_held *held, struct cordon_error *err);
	/* Or NULL. When the launch has started: what is left to do to walls that an external program raises. On
	 * failure the program waits on, until it is ended. */
	int (*enter)(struct launch *launch, struct cordon_error *err);
	/* Or NULL. At the end: an error where the walls were not raised after all, so that the command never ran. */
	int (*conclude)(const struct launch *launch, int status, const char *messages, struct cordon_error *err);
	/* After prepare: the mechanism for each wall in profile->walls; "none" where nothing holds it. */
	void (*describe)(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
	                 const struct launch *launch, const char *isolation[CORDON_WALL_MAX]);
};

extern const struct linux_driver driver_namespaces, driver_landlock, driver_bwrap, driver_local;

static inline const struct linux_driver *linux_driver(const struct driver *driver)
{
	return (const struct linux_driver *)driver;
}

/* The functions of struct driver: the same for all. */
int linux_raise(const struct driver *driver, const struct walls *walls, struct sandbox **ret_sandbox,
                struct cordon_error *err);
void linux_describe(const struct sandbox *sandbox, struct arena *arena, const struct profile *profile,
                    const char *isolation[CORDON_WALL_MAX]);
int linux_take_listeners(struct sandbox *sandbox, int *ret_fds);
int linux_network(const struct sandbox *sandbox, int *ret_user, int *ret_network);
int linux_start(struct sandbox *sandbox, const struct command *command, struct running **ret_running,
                struct cordon_error *err);
void linux_lower(struct sandbox *sandbox);
const char *linux_fix(enum cordon_wall wall);
#define LINUX_FUNCTIONS .sets_ulimits = true, .describe = linux_describe, .raise = linux_raise, \
	.take_listeners = linux_take_listeners, .start = linux_start, .lower = linux_lower, .fix = linux_fix

struct linux_running;

/* ---- parts of a plan ------------------------------------------------------------------------------------------- */

void driver_release(struct driver_held *held);
/* After prepare: rlimits for what no control group holds, and those that were asked for. */
int driver_limit(const struct linux_running *running, struct launch *launch, struct cordon_error *err) must_check;
int driver_seal(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
                struct launch_seal *ret_seal, struct cordon_error *err) must_check;
/* Is it mounted with mapped owners for a command that becomes another user? */
bool driver_maps_owners(const struct mount_op *op);
void driver_set_common(const struct profile *profile, struct launch *launch);
/* Of a driver without a network namespace: a list of hosts cannot be held there. */
int driver_refuse_hosts(const struct profile *profile, struct cordon_error *err) must_check;
/* What is hidden by mounts, and what was not looked at for lack of time. */
const char *driver_masked_text(struct arena *arena, const struct profile *profile);
/* "Landlock ABI 7" */
const char *driver_landlock_text(struct arena *arena, const struct launch *launch);

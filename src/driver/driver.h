/* What raises the walls on one platform. A driver turns a profile into a launch (data for the code between clone and
 * exec) and tells, for each wall, the mechanism that really holds it. It is two functions behind this header,
 * and two more where an external program raises them. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "profile/profile.h"
#include "driver/linux/launch.h"

/* What a driver needs to know besides the profile; gathered by the walk. */
struct driver_facts {
	int cwd_fd;             /* the working directory, open */
	bool caller_is_root;
	uint32_t uid, gid;      /* the caller's */
	int landlock_abi;
	const char *data_dir;   /* cordon's own; for what is worth keeping between commands */
};

/* What one launch holds on to until it has started. */
struct driver_held {
	int *fds;
	size_t count;
};

struct driver {
	const char *name;
	bool private_root, network_namespace;
	bool answers_offline;   /* a command without a network finds the proxy's listeners, which refuse everything at once */
	bool holds_writes;      /* nothing outside the grants can be written, or nothing runs */
	unsigned helpers;       /* processes of its own that count beside the command's; 0: init alone */
	bool keeps_names;       /* protected names that exist cannot be changed while the command runs */
	bool own_user;          /* the kernel counts the processes of its user namespace by themselves */
	/* Fills `launch` but for limits, everything from the arena. `held` is closed by driver_release() after the start. */
	int (*prepare)(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
	               struct launch *launch, struct driver_held *held, struct cordon_error *err);
	/* Or NULL. When the launch has started: what is left to do to walls that an external program raises. On failure the
	 * program waits on, until it is ended. */
	int (*enter)(struct launch *launch, struct cordon_error *err);
	/* Or NULL. At the end: an error where the walls were not raised after all, so that the command never ran. */
	int (*conclude)(const struct launch *launch, int status, const char *messages, struct cordon_error *err);
	/* After prepare: the mechanism for each wall in profile->walls; "none" where nothing holds it. */
	void (*describe)(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
	                 const struct launch *launch, const char *isolation[CORDON_WALL_MAX]);
};

extern const struct driver driver_namespaces, driver_landlock, driver_bwrap, driver_local;

/* By strength, the strongest first; the order `auto` tries them in. Ended by NULL. */
extern const struct driver *const drivers[];
const struct driver *driver_find(const char *name);
void driver_release(struct driver_held *held);
/* After prepare: rlimits for what no control group holds; `held` is 1 << enum cordon_wall. */
int driver_limit(struct arena *arena, const struct driver *driver, const struct profile *profile, uint32_t held,
                 struct launch *launch, struct cordon_error *err) must_check;

#define DRIVER_DEFAULT "namespaces"
#define WALL_BIT(name) (UINT32_C(1) << CORDON_WALL_##name)

/* Parts that drivers share. */
int driver_landlock_abi(void);
int driver_seal(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
                struct launch_seal *ret_seal, struct cordon_error *err) must_check;
/* Is it mounted with mapped owners for a command that becomes another user? */
bool driver_maps_owners(const struct mount_op *op);
void driver_set_common(const struct profile *profile, struct launch *launch);
/* Of a driver without a network namespace: a list of hosts cannot be held there. */
int driver_refuse_hosts(const struct profile *profile, struct cordon_error *err) must_check;
struct driver_mechanism {
	enum cordon_wall wall;
	const char *mechanism;
};
/* Writes the rows of walls that are asked for; every other wall that is asked for is "none". */
void driver_describe(const struct profile *profile, const struct driver_mechanism *rows, size_t count,
                     const char *isolation[CORDON_WALL_MAX]);
/* What is hidden by mounts, and what was not looked at for lack of time. */
const char *driver_masked_text(struct arena *arena, const struct profile *profile);
/* "Landlock ABI 7" */
const char *driver_landlock_text(struct arena *arena, const struct launch *launch);

/* A sandbox and a command of it on Linux: between start.c, running.c, limits.c and shared-views.c. */
#pragma once
#include "driver/linux/cgroup.h"
#include "driver/linux/disk.h"
#include "driver/linux/memory-watch.h"
#include "driver/linux/plan.h"
#include "driver/linux/shared.h"
#include "driver/linux/supervise.h"

struct linux_sandbox {
	struct sandbox sandbox;                 /* the first member */
	struct driver_facts facts;
	struct launch launch;                   /* for one command: the plan of raise(), which start() carries out
	                                           with the command */
	struct driver_held held;
	struct linux_running *running;          /* that command; or NULL */
	struct shared *shared;                  /* for the commands of a session; or NULL */
};

struct linux_running {
	struct running running;                 /* the first member */
	struct linux_sandbox *sandbox;
	const struct command *command;
	struct cgroup group;                    /* holds the limits; or none */
	struct disk_watch disk;                 /* holds the limit on disk space, */
	bool quota;                             /* and so does the filesystem */
	struct memory_watch memory;             /* holds the limit on memory where the group does not */
	struct renames renames;                 /* of command->renames */
	struct launch launch;
	struct patience patience;               /* for its program to be there */
	struct supervision supervision;
	bool prepared;                          /* the supervision is */
};

/* ---- limits.c: who holds them; all of one command -------------------------------------------------------------- */

int linux_limits_begin(struct linux_running *running, struct cordon_error *err) must_check;
/* Says what holds them, and refuses where one that is required does not hold. */
int linux_limits_require(struct linux_running *running, struct cordon_error *err) must_check;
void linux_limits_started(struct linux_running *running);
void linux_limits_end(struct linux_running *running, struct outcome *outcome);
void linux_limits_free(struct linux_running *running);

/* ---- running.c ------------------------------------------------------------------------------------------------- */

extern const struct running_ops linux_running_ops;

/* ---- shared-views.c: the sandbox of a session ------------------------------------------------------------------ */

/* Raises it; fills what describe() looks at in sandbox->launch. */
int shared_new(struct linux_sandbox *sandbox, const struct walls *walls, struct cordon_error *err) must_check;
void shared_free(struct shared *shared);
/* Gives the listeners that were made with it; see driver.h. */
int shared_take_listeners(struct shared *shared, int *ret_fds);
/* Of which the limits on processes count the starter and the reapers. */
unsigned shared_helpers(const struct shared *shared);
const struct shared_sandbox *shared_up(const struct shared *shared);
/* Its own network and the user namespace of that. 0, or a negative errno. */
int shared_network(const struct shared *shared, int *ret_user, int *ret_network) must_check;
const struct shared_view *shared_view_of(const struct sandbox_view *view);

/* Landlock, seccomp and limits in the caller's own namespaces: for containers where no user namespace can be made. The
 * same profile, held by fewer mechanisms; what cannot be held is "none" in `isolation`. init is an ordinary process
 * that adopts every orphan, so that the whole tree can still be killed. */
#include "base/text.h"
#include "driver/linux/plan.h"
#include "driver/linux/memory-watch.h"
#include "driver/linux/control.h"

/* Landlock cannot take away beneath what it gave, so what holds the ledger must not be given to be changed. */
static int keep_data(const struct profile *profile, const struct driver_facts *facts, struct cordon_error *err)
{
	for (size_t i = 0; i < profile->landlock.count; i++) {
		const struct landlock_rule *rule = &profile->landlock.rules[i];
		if (!(rule->access & LANDLOCK_CHANGE) || !path_within(facts->data_dir, rule->path))
			continue;
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, rule->path,
		     "this driver cannot keep the command from cordon's own data inside a writable path");
		fail_boundary(err, "filesystem");
		return fail_remedy(err, "grant a narrower path, or choose --driver namespaces");
	}
	return 0;
}

static int prepare(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
                   struct launch *launch, struct driver_held *held, struct cordon_error *err)
{
	(void)held;
	if (!facts->landlock_abi) {
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, EOPNOTSUPP, "landlock", "this kernel offers no Landlock");
		fail_boundary(err, "filesystem");
		return fail_remedy(err, "add landlock to the kernel's lsm= list, or use Linux 5.13 or later");
	}
	if (keep_data(profile, facts, err) < 0 || driver_refuse_hosts(profile, err) < 0)
		return -1;
	driver_set_common(profile, launch);
	launch->cwd_fd = facts->cwd_fd;
	if (driver_seal(arena, profile, facts, &launch->seal, err) < 0)
		return -1;
	/* Here it is not the second layer but the wall itself. */
	launch->seal.landlock_abi = profile->walls & WALL_BIT(FILESYSTEM) ? facts->landlock_abi : 0;
	launch->seal.rules = profile->landlock.rules;
	launch->seal.rule_count = profile->landlock.count;
	launch->seal.landlock_execute = profile->walls & WALL_BIT(FILESYSTEM);
	if (launch->seal.landlock_abi >= 6 && launch->seal.drop_privileges)
		launch->init_mode = INIT_SCOPED;
	return 0;
}

static void describe(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
                     const struct launch *launch, const char *isolation[CORDON_WALL_MAX])
{
	const char *scoped = facts->landlock_abi >= 6 ? "Landlock scopes signals; others are listed in /proc"
	                                              : "Landlock keeps from tracing; not from listing or signalling";
	/* The filter refuses root every change of metadata, see SECCOMP_NO_ATTRIBUTES. */
	const char *landlock =
		!launch->seal.landlock_abi ?
			"none" :
			arena_printf(arena, "%s; not metadata: names can be seen%s",
	                             driver_landlock_text(arena, launch),
	                             facts->caller_is_root ? "" :
	                                                     ", modes, times and xattrs of one's own files changed");
	const struct driver_mechanism rows[] = {
		{ CORDON_WALL_FILESYSTEM, landlock ? landlock : "Landlock, contents only" },
		{ CORDON_WALL_PROTECTED, "a check at the end" },
		{ CORDON_WALL_SOCKETS, "seccomp: no unix socket can be made" },
		{ CORDON_WALL_DEVICES, "Landlock" },
		{ CORDON_WALL_PROCESSES, scoped },
		{ CORDON_WALL_NETWORK, "seccomp" },
		{ CORDON_WALL_IPC, "seccomp" },
		{ CORDON_WALL_TERMINAL, "own session, seccomp" },
		{ CORDON_WALL_DESCRIPTORS, "close_range, pipes" },
		{ CORDON_WALL_PRIVILEGES, "no capabilities, no_new_privs" },
		{ CORDON_WALL_IDENTITY, facts->caller_is_root ? "none" : "caller's user, unprivileged" },
		{ CORDON_WALL_USER_NAMESPACES, "seccomp" },
		{ CORDON_WALL_KERNEL_SURFACE, "seccomp" },
		{ CORDON_WALL_SPAWN, "seccomp" },
		{ CORDON_WALL_PROGRAMS, "Landlock; not through the dynamic loader" },
		{ CORDON_WALL_KEYRING, "own session keyring, seccomp" },
		{ CORDON_WALL_LIFETIME, facts->landlock_abi >= 6 ? "init that adopts orphans" : "none" },
		{ CORDON_WALL_LIMIT_MEMORY, MEMORY_WATCH_TEXT },
		{ CORDON_WALL_LIMIT_TIME, "supervisor" },
		{ CORDON_WALL_LIMIT_OUTPUT, "supervisor" },
		{ CORDON_WALL_LIMIT_FILES, "rlimit" },
	};
	driver_describe(profile, rows, ARRAY_SIZE(rows), isolation);
}

const struct linux_driver driver_landlock = {
	.driver = { .name = "landlock",
	            .holds_writes = true,
	            .cannot = WALL_BIT(FILESYSTEM_SECOND) | WALL_BIT(MASKED) | WALL_BIT(PROC) | WALL_BIT(HOSTNAME) |
	                      WALL_BIT(CGROUP_VIEW),
	            LINUX_FUNCTIONS },
	.prepare = prepare,
	.describe = describe,
};

/* The drivers of Linux, and the parts they share: see plan.h. */
#include "driver/linux/plan.h"

#include <linux/landlock.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/compat.h"
#include "profile/seccomp.h"
#include "driver/linux/control.h"

const struct driver *const drivers[] = { &driver_namespaces.driver, &driver_bwrap.driver, &driver_landlock.driver,
	                                 &driver_local.driver, NULL };

void driver_release(struct driver_held *held)
{
	for (size_t i = 0; i < held->count; i++)
		if (held->fds[i] >= 0)
			close(take_fd(&held->fds[i]));
	held->count = 0;
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

static void add_limit(struct launch_rlimit *limits, size_t *count, int resource, uint64_t most)
{
	struct rlimit now;
	struct rlimit value = { most, most };
	/* A hard limit cannot be raised; a lower one that is there already holds as well. */
	if (getrlimit(resource, &now) == 0 && now.rlim_max != RLIM_INFINITY && now.rlim_max < most)
		value = (struct rlimit){ now.rlim_max, now.rlim_max };
	limits[(*count)++] = (struct launch_rlimit){ resource, value };
}

int driver_limit(struct arena *arena, const struct linux_driver *driver, const struct profile *profile, uint32_t held,
                 struct launch *launch, struct cordon_error *err)
{
	struct launch_rlimit *limits = arena_alloc(arena, 8 * sizeof(*limits));
	size_t count = 0;
	if (!limits)
		return fail_oom(err);
	uint32_t walls = profile->walls & ~held;
	/* One more, for init. */
	if ((walls & WALL_BIT(LIMIT_PROCESSES)) && driver->own_user)
		add_limit(limits, &count, RLIMIT_NPROC, profile->limits.processes + 1 + launch->helpers);
	if (walls & WALL_BIT(LIMIT_FILES)) {
		add_limit(limits, &count, RLIMIT_NOFILE, profile->limits.open_files);
		/* Not 0: a core_pattern that is a pipe would start its program on the host nevertheless. */
		add_limit(limits, &count, RLIMIT_CORE, 1);
	}
	launch->seal.rlimits = limits;
	launch->seal.rlimit_count = count;
	return 0;
}

/* ---- what is shared --------------------------------------------------------------------------------------------- */

int driver_seal(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
                struct launch_seal *ret_seal, struct cordon_error *err)
{
	struct launch_seal seal = { 0 };
	if (profile->walls & (WALL_BIT(FILESYSTEM_SECOND) | WALL_BIT(PROGRAMS))) {
		seal.landlock_abi = facts->landlock_abi;
		seal.landlock_execute = profile->walls & WALL_BIT(PROGRAMS);
		seal.rules = profile->landlock.rules;
		seal.rule_count = profile->landlock.count;
		seal.landlock_scopes = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL;
	}
	if (profile->walls & WALL_BIT(KERNEL_SURFACE)) {
		struct sock_filter *filter = arena_alloc(arena, SECCOMP_FILTER_MAX * sizeof(*filter));
		if (!filter)
			return fail_oom(err);
		seal.filter = filter;
		seal.filter_length = (unsigned short)seccomp_emit(seccomp_native_arch, profile->seccomp, filter,
		                                                  SECCOMP_FILTER_MAX);
		if (!seal.filter_length)
			return fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "seccomp",
			            "there is no system call table for this architecture");
	}
	seal.drop_privileges = profile->walls & WALL_BIT(PRIVILEGES);
	seal.new_keyring = profile->walls & WALL_BIT(KEYRING);
	*ret_seal = seal;
	return 0;
}

void driver_set_common(const struct profile *profile, struct launch *launch)
{
	launch->cwd = profile->cwd;
	launch->cwd_fd = -1;
	launch->other_network_fd = launch->terminal_fd = launch->renames_fd = -1;
	launch->pass[0] = launch->report_fd = launch->ready_fd = launch->go_fd = -1;
	launch->listeners = profile->egress.listeners;
	launch->listener_count = profile->egress.count;
	launch->listeners_optional = profile->egress.is_offline;
	launch->candidates = profile->candidates.items;
	launch->argv = profile->argv.items;
	launch->environment = profile->environment.items;
	launch->own_session = profile->walls & WALL_BIT(TERMINAL);
	launch->close_descriptors = profile->walls & WALL_BIT(DESCRIPTORS);
	launch->check_program = profile->walls & WALL_BIT(PRIVILEGES);
	launch->init_mode = INIT_SUBREAPER;
}

int driver_refuse_hosts(const struct profile *profile, struct cordon_error *err)
{
	if (profile->network != NETWORK_HOSTS)
		return 0;
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, profile->driver,
	     "this driver cannot hold a network of listed hosts: it has no network namespace");
	fail_boundary(err, "network");
	return fail_remedy(err, "choose --driver namespaces or bwrap, or --net none");
}

const char *driver_masked_text(struct arena *arena, const struct profile *profile)
{
	const char *text = profile->unmasked ? arena_printf(arena, "mounts; unseen: %s", profile->unmasked) : NULL;
	return text ? text : "mounts";
}

const char *driver_landlock_text(struct arena *arena, const struct launch *launch)
{
	if (!launch->seal.landlock_abi)
		return "none";
	const char *text = arena_printf(arena, "Landlock ABI %d", launch->seal.landlock_abi);
	return text ? text : "Landlock";
}

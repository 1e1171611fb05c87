/* The drivers of Linux, and the parts they share: see plan.h. */
#include "driver/linux/plan.h"

#include <linux/landlock.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/compat.h"
#include "profile/seccomp.h"
#include "driver/linux/control.h"
#include "driver/linux/order.h"
#include "driver/linux/running.h"

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

_Static_assert(RLIM_NLIMITS == ULIMIT_COUNT && RLIM_INFINITY == ULIMIT_UNLIMITED && ULIMIT_COUNT == ORDER_RLIMITS_MAX,
               "limits have the kernel's numbers, and an order has room for each");

/* Of a core file. Not 0: a core_pattern that is a pipe would start its program on the host nevertheless. */
#define CORE_MOST 1

static bool core_can_be_set(void)
{
	struct rlimit now;
	return getrlimit(RLIMIT_CORE, &now) == 0 && now.rlim_max >= CORE_MOST;
}

/* At most this, whatever else was asked for. */
static void bound(struct ulimits *limits, int resource, uint64_t most)
{
	struct ulimit *limit = &limits->limits[resource];
	struct rlimit now;
	/* A hard limit cannot be raised; a lower one that is there already holds as well. */
	if (getrlimit(resource, &now) == 0 && now.rlim_max < most)
		most = now.rlim_max;
	if (!(limits->given & 1u << resource) || limit->soft > most)
		limit->soft = most;
	if (!(limits->given & 1u << resource) || limit->hard > most)
		limit->hard = most;
	limits->given |= 1u << resource;
}

/* Can this process give it? */
static int check_limit(const struct ulimits *limits, int resource, struct cordon_error *err)
{
	struct rlimit now;
	if (getrlimit(resource, &now) < 0 || limits->limits[resource].hard <= now.rlim_max)
		return 0;
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, ulimit_name((unsigned)resource),
	     "a command cannot have more of this resource limit than cordon's own hard limit, %llu",
	     (unsigned long long)now.rlim_max);
	fail_boundary(err, "request");
	return fail_remedy(err, "ask for less, or start cordon with a higher limit");
}

int driver_limit(const struct linux_running *running, struct launch *launch, struct cordon_error *err)
{
	const struct command *command = running->command;
	const struct profile *profile = command->profile;
	struct launch_rlimit *rlimits = arena_alloc(command->arena, ULIMIT_COUNT * sizeof(*rlimits));
	struct ulimits limits = command->ulimits ? *command->ulimits : (struct ulimits){ 0 };
	size_t count = 0;
	if (!rlimits)
		return fail_oom(err);
	for (int resource = 0; resource < ULIMIT_COUNT; resource++)
		if ((limits.given & 1u << resource) && check_limit(&limits, resource, err) < 0)
			return -1;
	uint32_t walls = profile->walls & ~running->group.held;
	/* One more, for init. */
	if ((walls & WALL_BIT(LIMIT_PROCESSES)) && linux_driver(running->sandbox->sandbox.driver)->own_user)
		bound(&limits, RLIMIT_NPROC, profile->limits.processes + 1 + launch->helpers);
	if (walls & WALL_BIT(LIMIT_FILES)) {
		bound(&limits, RLIMIT_NOFILE, profile->limits.open_files);
		limits.given &= ~(1u << RLIMIT_CORE);
		bound(&limits, RLIMIT_CORE, CORE_MOST);
	}
	for (int resource = 0; resource < ULIMIT_COUNT; resource++)
		if (limits.given & 1u << resource)
			rlimits[count++] = (struct launch_rlimit){
				resource, { limits.limits[resource].soft, limits.limits[resource].hard }
			};
	launch->seal.rlimits = rlimits;
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
	/* Where the filter stays for later commands, this limit cannot be set for each of them: it refuses to. */
	static const struct launch_rlimit no_core = { RLIMIT_CORE, { CORE_MOST, CORE_MOST } };
	if ((profile->walls & WALL_BIT(LIMIT_FILES)) && core_can_be_set()) {
		seal.rlimits = &no_core;
		seal.rlimit_count = 1;
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

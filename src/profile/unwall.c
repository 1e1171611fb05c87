/* Leaving walls out of a profile: compiled into the program that tests use, and into nothing else. */
#include "profile/unwall.h"

#ifdef CORDON_UNWALL
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "profile/seccomp.h"

#define BIT(name) (UINT32_C(1) << CORDON_WALL_##name)

static bool listed(const char *names, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = names; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (!strncmp(at, name, length) && (at[length] == ',' || !at[length]))
			return true;
	return false;
}

static bool in_proc(const struct mount_op *op)
{
	return path_within(op->target, "/proc");
}

/* What an operation turns into with these walls out; false drops it. */
static bool change(struct mount_op *op, uint32_t out)
{
	if ((out & BIT(PROC)) && in_proc(op)) {
		if (op->kind == MOUNT_PROC)
			*op = (struct mount_op){ .kind = MOUNT_BIND, .target = "/proc", .source = "/proc" };
		return op->kind == MOUNT_BIND || op->kind == MOUNT_DIRECTORY;
	}
	if ((out & BIT(DEVICES)) && path_within(op->target, "/dev")) {
		if (op->kind == MOUNT_PTS)
			*op = (struct mount_op){
				.kind = MOUNT_BIND, .target = "/dev", .source = "/dev", .flags = MOUNT_DEVICE
			};
		return !strcmp(op->target, "/dev");
	}
	if (!in_proc(op) && (out & BIT(PROTECTED)) && (op->kind == MOUNT_FREEZE || op->kind == MOUNT_PIN))
		return false;
	if (!in_proc(op) && (out & (BIT(MASKED) | BIT(SOCKETS))) && op->kind == MOUNT_MASK)
		return false;
	if (out & BIT(PROGRAMS))
		op->flags &= ~(unsigned)MOUNT_NO_EXEC;
	return true;
}

uint32_t profile_unwalled(const char *names)
{
	uint32_t out = 0;
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		if (listed(names, cordon_wall_name(wall)))
			out |= UINT32_C(1) << wall;
	return out;
}

void profile_unwall(struct profile *profile, const char *names)
{
	uint32_t out = profile_unwalled(names);
	profile->walls &= ~out;
	if (out & BIT(SPAWN))
		profile->seccomp &= ~(unsigned)SECCOMP_NO_SPAWN;
	/* In the host's own network there is no place for the listeners of a sandbox's. */
	if (out & BIT(NETWORK)) {
		profile->seccomp &= ~(unsigned)SECCOMP_NO_NETWORK;
		if (!profile->egress.is_on_loopback)
			profile->egress.count = 0;
	}
	/* No wall: what answers at once where there is no network. The bench suite measures what that costs. */
	if (listed(names, "offline_answers") && profile->egress.is_offline)
		profile->egress.count = 0;
	if (out & BIT(SOCKETS))
		profile->seccomp &= ~(unsigned)SECCOMP_NO_UNIX;
	if (out & BIT(IPC))
		profile->seccomp &= ~(unsigned)SECCOMP_AMONG_OTHERS;
	if (out & BIT(PROGRAMS))
		profile->seccomp &= ~(unsigned)SECCOMP_NO_MEMFD;
	if (out & BIT(PROCESSES))
		profile->seccomp &= ~(unsigned)SECCOMP_OWN_LIMITS;
	if (out & BIT(FILESYSTEM))
		profile->seccomp &= ~(unsigned)SECCOMP_NO_ATTRIBUTES;
	if (out & BIT(LIMIT_TIME))
		profile->limits.wall_ms = 0;
	if (out & BIT(LIMIT_OUTPUT))
		profile->limits.stdout_bytes = profile->limits.stderr_bytes = UINT64_MAX;
	size_t kept = 0;
	for (size_t i = 0; i < profile->mounts.count; i++) {
		struct mount_op op = profile->mounts.ops[i];
		if (change(&op, out))
			profile->mounts.ops[kept++] = op;
	}
	profile->mounts.count = kept;
}
#endif

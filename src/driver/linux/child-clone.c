/* How `first` comes to be: `become` (a root caller only) of launch.h's picture, the clones, and the control group that
 * the command begins in. Compiled like the rest of what runs in the caller's memory: see child.c. */
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include "base/compat.h"
#include "driver/linux/launch.h"
#include "driver/linux/starter.h"
#include "driver/linux/sys.h"

/* ---- the control group ------------------------------------------------------------------------------------------ */

static int join_group(struct launch *launch)
{
	for (int i = 0; i < LAUNCH_JOIN_MAX && !launch->group_entered; i++) {
		long result = launch->group_joins[i] < 0 ? 0 : sys_3(SYS_write, launch->group_joins[i], "0", 1);
		if (result < 0)
			return launch_fail(
				launch, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, result, "limits", "cgroup",
				"cannot join the control group that was made for the command",
				"run `cordon doctor`, or set limits.cgroup to another directory or \"none\"");
	}
	launch->group_entered = true;
	return 0;
}

/* The group as its root can be made only from inside it: made by clone() it would be a view from where the caller
 * is. */
int launch_enter_group(struct launch *launch)
{
	if (join_group(launch) < 0)
		return -1;
	bool wanted = launch->in_group && (launch->namespaces & CLONE_NEWCGROUP);
	long result = wanted ? sys_1(SYS_unshare, CLONE_NEWCGROUP) : 0;
	if (result >= 0)
		return 0;
	return launch_unavailable(launch, result, "cgroup_view", "unshare", "cannot hide the host's groups");
}

/* ---- cloning ---------------------------------------------------------------------------------------------------- */

long launch_clone_at(struct launch *launch, uint64_t flags, void *stack, int *pidfd, void (*enter)(void *))
{
	struct clone_args args = { .flags = flags | CLONE_CLEAR_SIGHAND | (pidfd ? CLONE_PIDFD : 0),
	                           .pidfd = (uint64_t)(uintptr_t)pidfd,
	                           .child_tid = (uint64_t)(uintptr_t)&launch->standing,
	                           .stack = (uint64_t)(uintptr_t)stack,
	                           .stack_size = launch->stack_size };
	if (!launch->group_entered && launch->group_fd >= 0) {
		struct clone_args inside = args;
		inside.flags |= CLONE_INTO_CGROUP;
		inside.cgroup = (uint64_t)launch->group_fd;
		launch->group_entered = true;
		long pid = sys_clone3(&inside, sizeof(inside), enter, launch);
		if (pid >= 0)
			return pid;
		/* Whatever the reason, joining may still work, and fails by itself if not. */
		launch->group_entered = false;
	}
	/* What was refused late has left the number of a descriptor that is none. */
	if (pidfd)
		*pidfd = -1;
	long pid = sys_clone3(&args, sizeof(args), enter, launch);
	/* Filters cannot look into its arguments; older ones refuse it whole, with EPERM, and judge clone() by its
	 * flags. */
	if (pid != -ENOSYS && pid != -EPERM)
		return pid;
	return sys_clone(flags | (pidfd ? CLONE_PIDFD : 0), (char *)stack + launch->stack_size, pidfd,
	                 &launch->standing, enter, launch);
}

long launch_clone(struct launch *launch, uint64_t more)
{
	uint64_t flags = (launch->namespaces & ~launch->late) | CLONE_VM | CLONE_CHILD_CLEARTID | more;
	if (launch->in_group)
		flags &= ~(uint64_t)CLONE_NEWCGROUP;
	if (launch->joined_fd >= 0)
		flags &= ~(uint64_t)CLONE_NEWUSER;
	launch->standing = 1;
	long pid = launch_clone_at(launch, flags, launch->first_stack, &launch->pidfd, launch_first);
	if (pid < 0) {
		launch->standing = 0;
		launch->pidfd = -1;
	}
	return pid;
}

void launch_wait(void *parent)
{
	/* A caller that dies before it kills us, and one that died before we could ask to be told. */
	sys_5(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (sys_0(SYS_getppid) != (long)(intptr_t)parent)
		sys_exit(1);
	for (;;)
		sys_4(SYS_ppoll, NULL, 0, NULL, NULL);
}

/* As another user its memory is the caller's still: what it lets others do with that is set back at once. Root's
 * groups are left before; in there it becomes the command's user, who is known there by another number. */
long launch_join(struct launch *launch)
{
	long result = launch->become ? sys_2(SYS_setgroups, 0, NULL) : 0;
	if (result >= 0)
		result = sys_2(SYS_setns, launch->joined_fd, launch->joined);
	if (result >= 0 && launch->other_network && launch->other_network_fd >= 0)
		result = sys_2(SYS_setns, launch->other_network_fd, CLONE_NEWNET);
	if (result >= 0 && launch->become)
		result = sys_3(SYS_setresgid, launch->gid, launch->gid, launch->gid);
	if (result >= 0 && launch->become)
		result = sys_3(SYS_setresuid, launch->uid, launch->uid, launch->uid);
	sys_5(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	/* It stayed out of the group, where it would be one more. */
	launch->group_entered = !launch->in_group;
	return result;
}

static void become_user(struct launch *launch)
{
	/* Born inside, or let in by its own rights; where a single thread can be moved, `first` joins by itself. */
	if (launch->group_fd >= 0 && join_group(launch) < 0)
		return;
	long result = sys_2(SYS_setgroups, 0, NULL);
	if (result >= 0)
		result = sys_3(SYS_setresgid, launch->gid, launch->gid, launch->gid);
	if (result >= 0)
		result = sys_3(SYS_setresuid, launch->uid, launch->uid, launch->uid);
	/* The change of user made the shared memory undumpable, which would keep /proc/self/uid_map out of reach. */
	if (result >= 0)
		result = sys_5(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (result < 0)
		launch_unavailable(launch, result, "identity", NULL, "cannot become an unprivileged user");
	else
		launch->clone_result = launch_clone(launch, CLONE_PARENT | CLONE_VFORK);
}

void launch_become(void *argument)
{
	struct launch *launch = argument;
	if (launch->joined_fd < 0) {
		become_user(launch);
		sys_exit(0);
	}
	/* Anyone in a pid namespace may read these of anyone, dumpable or not. */
	for (size_t i = 0; i < launch->words_length; i++)
		launch->words[i] = '\0';
	sys_5(SYS_prctl, PR_SET_NAME, STARTER_NAME, 0, 0, 0);
	long joined = launch_join(launch);
	if (joined < 0)
		launch_unavailable(launch, joined, "user_namespaces", "setns", "cannot enter the sandbox's namespaces");
	else
		launch->clone_result = launch_clone(launch, CLONE_PARENT);
	sys_exit(0);
}

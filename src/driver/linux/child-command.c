/* `command` of launch.h's picture, between clone and exec: in the private root, with its own session, directory,
 * descriptors and seal, it becomes the program. Compiled like the rest of what runs in the caller's memory: see
 * child.c. */
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/compat.h"
#include "driver/linux/control.h"
#include "driver/linux/launch.h"
#include "driver/linux/starter.h"
#include "driver/linux/sys.h"

static int leave_session(struct launch *launch)
{
	long result = sys_0(SYS_setsid);
	return result < 0 ?
	               launch_unavailable(launch, result, "terminal", "setsid", "cannot leave the caller's terminal") :
	               0;
}

static int take_terminal(struct launch *launch)
{
	long result = sys_3(SYS_ioctl, launch->stdio[0], TIOCSCTTY, 0);
	return result < 0 ? launch_unavailable(launch, result, "terminal", NULL, "cannot take the new terminal") : 0;
}

/* The descriptors may overlap with where they belong, so they are first moved out of the way. Returns how many there
 * are: 0 to 2, and what is passed on. */
static int place_descriptors(struct launch *launch)
{
	int moved[3 + LAUNCH_PASS_MAX], count = 0;
	for (; count < 3 + LAUNCH_PASS_MAX; count++) {
		int from = count < 3 ? launch->stdio[count] : launch->pass[count - 3];
		if (from < 0)
			break;
		long fd = sys_3(SYS_fcntl, from, F_DUPFD, 3 + LAUNCH_PASS_MAX);
		if (fd < 0)
			return launch_unavailable(launch, fd, "descriptors", "stdio",
			                          "cannot place standard descriptors");
		moved[count] = (int)fd;
	}
	for (int i = 0; i < count; i++) {
		sys_3(SYS_dup3, moved[i], i, 0);
		sys_1(SYS_close, moved[i]);
	}
	return count;
}

/* Closes them, or marks them to be closed by exec. Where close_range() is refused, one by one up to the highest there
 * may be: the soft limit can have been lowered after a descriptor above it was opened. */
long launch_close_all(unsigned first, unsigned last, unsigned flags)
{
	struct rlimit limit;
	long result = sys_3(SYS_close_range, first, last, flags);
	if (result >= 0)
		return 0;
	result = sys_4(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	if (result < 0)
		return result;
	for (unsigned long fd = first; fd <= last && fd < limit.rlim_max && fd < (1UL << 20); fd++) {
		if (flags & CLOSE_RANGE_CLOEXEC)
			sys_3(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
		else
			sys_1(SYS_close, fd);
	}
	return 0;
}

static int close_from(struct launch *launch, unsigned first)
{
	long result = launch_close_all(first, ~0U, 0);
	return result < 0 ? launch_unavailable(launch, result, "descriptors", "close_range",
	                                       "cannot close inherited descriptors") : 0;
}

/* A setuid or capable program would be inert in here anyway; refusing it says so instead of letting it misbehave. */
static int refuse_privileged(struct launch *launch, const char *path, const struct stat *info)
{
	char capability[32];
	bool setgid = (info->st_mode & S_ISGID) && (info->st_mode & S_IXGRP);
	bool capable = sys_4(SYS_getxattr, path, "security.capability", capability, sizeof(capability)) > 0;
	if (!(info->st_mode & S_ISUID) && !setgid && !capable)
		return 0;
	return launch_fail(launch, CORDON_E_PROGRAM_NOT_ALLOWED, 0, "privileges", path,
	                   capable ? "the program has file capabilities" : "the program is setuid or setgid",
	                   "it cannot gain privileges in here; use a program that needs none");
}

static bool is_file(const char *path, struct stat *info)
{
#ifdef SYS_newfstatat
	long result = sys_4(SYS_newfstatat, AT_FDCWD, path, info, 0);
#else
	long result = sys_4(SYS_fstatat, AT_FDCWD, path, info, 0);
#endif
	return result >= 0 && S_ISREG(info->st_mode);
}

/* What rules, a manifest or a human judged was a file, not a name. */
static int refuse_program(struct launch *launch, const char *path)
{
	struct stat info;
	if (!is_file(path, &info))
		return 0;
	if (launch->program_judged && (info.st_dev != launch->program_device || info.st_ino != launch->program_inode))
		return launch_fail(
			launch, CORDON_E_CAPABILITY_DENIED, 0, "policy", path,
			"the program is not the file that was judged: it was replaced, or is another one inside",
			"run it again, to have it judged as it is now");
	return launch->check_program ? refuse_privileged(launch, path, &info) : 0;
}

static int execute(struct launch *launch)
{
	long result = -ENOENT;
	const char *denied = NULL;
	for (const char *const *path = launch->candidates; *path; path++) {
		if (refuse_program(launch, *path) < 0)
			return -1;
		result = sys_3(SYS_execve, *path, launch->argv, launch->environment);
		if (result == -EACCES || result == -EPERM)
			denied = *path;
		else if (result == -ENOEXEC)
			return launch_fail(launch, CORDON_E_PROGRAM_NOT_ALLOWED, result, "run", *path,
			                   "not in a format this machine can execute",
			                   "is it built for another architecture, or a script without #! line?");
		else if (result == -E2BIG)
			return launch_fail(launch, CORDON_E_INVALID_REQUEST, result, "run", *path,
			                   "the arguments and environment are too long", "");
		else if (result != -ENOENT && result != -ENOTDIR && result != -ENAMETOOLONG && result != -ELOOP)
			return launch_fail(launch, CORDON_E_INTERNAL, result, "run", *path, "cannot execute", "");
	}
	if (denied)
		return launch_fail(launch, CORDON_E_PROGRAM_NOT_ALLOWED, -EACCES, "run", denied, "may not be executed",
		                   "check its mode, and --program if that was given");
	return launch_fail(
		launch, CORDON_E_PROGRAM_NOT_FOUND, 0, "run", launch->argv[0], "no such program is visible inside",
		*launch->argv[0] == '/' ? "outside the workspace and the system it must be granted: --read with "
					  "this path, or with the directory that it needs"
					: "check PATH and what is granted: --read shows a directory");
}

static void unblock_signals(void)
{
	uint64_t none = 0;
	sys_4(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
}

static int enter_cwd(struct launch *launch)
{
	long result = launch->cwd_fd >= 0 ? sys_1(SYS_fchdir, launch->cwd_fd) : sys_1(SYS_chdir, launch->cwd);
	if (result < 0)
		return launch_fail(launch, CORDON_E_CAPABILITY_DENIED, result, "cwd", launch->cwd,
		                   "cannot enter the working directory", "");
	return 0;
}

/* While `first` raises the other walls. */
static int make_late(struct launch *launch)
{
	long result = sys_1(SYS_unshare, launch->late);
	if (result < 0)
		return launch_fail(launch, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, result, "network", "unshare",
		                   "the kernel does not let this user make a network",
		                   "raise sysctl user.max_net_namespaces, or choose --driver landlock");
	__atomic_store_n(&launch->late_made, 1, __ATOMIC_RELEASE);
	sys_3(SYS_futex, &launch->late_made, FUTEX_WAKE, 1);
	return 0;
}

static bool await_network(struct launch *launch)
{
	enum launch_network network;
	while ((network = __atomic_load_n(&launch->network, __ATOMIC_ACQUIRE)) == NETWORK_AWAITED)
		sys_4(SYS_futex, &launch->network, FUTEX_WAIT, NETWORK_AWAITED, NULL);
	return network == NETWORK_UP;
}

static void await_walls(struct launch *launch)
{
	while (!__atomic_load_n(&launch->walls, __ATOMIC_ACQUIRE))
		sys_4(SYS_futex, &launch->walls, FUTEX_WAIT, 0, NULL);
}

static int take_place(struct launch *launch)
{
	if (launch->tells_renames && launch->pass[0] < 0) {
		launch->pass[CONTROL_FD - 3] = launch->control_fd;
		launch->pass[CONTROL_FD - 2] = -1;
	}
	int placed = enter_cwd(launch) < 0 ? -1 : place_descriptors(launch);
	return placed < 0 || (launch->close_descriptors && close_from(launch, (unsigned)placed) < 0) ? -1 : 0;
}

/* A starter is executed like a program; its file is among the descriptors that are placed. */
static void become_starter(struct launch *launch)
{
	static const char *const argv[] = { STARTER_NAME, INIT_STARTER, "", NULL }, *const environment[] = { NULL };
	long result = sys_5(SYS_execveat, STARTER_INIT_FD, "", argv, environment, AT_EMPTY_PATH);
	launch_unavailable(launch, result, "lifetime", "cordon-init", "cannot start the sandbox's starter");
}

void launch_ordered(void *argument)
{
	struct launch *launch = argument;
	if (launch_enter_group(launch) < 0 || (launch->own_session && leave_session(launch) < 0) ||
	    (launch->tty && take_terminal(launch) < 0) || take_place(launch) < 0)
		sys_exit(1);
	sys_1(SYS_umask, launch->umask);
	if (launch_limit(launch) < 0 || (launch->narrow && launch_forbid_spawning(launch) < 0))
		sys_exit(1);
	if (launch->tells_renames && launch_tell_renames(launch) < 0)
		sys_exit(1);
	unblock_signals();
	execute(launch);
	sys_exit(1);
}

void launch_command(void *argument)
{
	struct launch *launch = argument;
	if (launch->command_joins && launch_enter_group(launch) < 0)
		sys_exit(1);
	if ((launch->late && make_late(launch) < 0) || (launch->own_session && leave_session(launch) < 0))
		sys_exit(1);
	await_walls(launch);
	if (launch->root_fd >= 0 && launch_enter_root(launch) < 0)
		sys_exit(1);
	if (launch->tty && take_terminal(launch) < 0)
		sys_exit(1);
	/* What covers are made of in the sandbox, for the library to hold. */
	if (launch->starter && launch->root_fd >= 0) {
		launch->pass[STARTER_MASK_FD - 3] = launch->mask_fd;
		launch->pass[STARTER_MASK_FD - 2] = launch->hidden_fd;
		launch->pass[STARTER_MASK_FD - 1] = -1;
	}
	if (take_place(launch) < 0)
		sys_exit(1);
	sys_1(SYS_umask, launch->umask);
	if (launch_seal(launch) < 0 || !await_network(launch))
		sys_exit(1);
	if (launch->tells_renames && launch_tell_renames(launch) < 0)
		sys_exit(1);
	unblock_signals();
	if (launch->starter)
		become_starter(launch);
	else
		execute(launch);
	sys_exit(1);
}

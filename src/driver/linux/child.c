/* Between clone and exec: `first` of launch.h's picture. Compiled without stack protector and sanitizers: this
 * code runs in the caller's memory on stacks of its own. */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "base/compat.h"
#include "driver/linux/control.h"
#include "driver/linux/launch.h"
#include "driver/linux/remedies.h"
#include "driver/linux/sys.h"

#define ALONE_TRIES 500                 /* ten milliseconds each */
#define HAND_OUT_TRIES 5000            /* a millisecond each */

static void copy_text(char *to, size_t size, const char *from)
{
	size_t i = 0;
	for (; from && from[i] && i + 1 < size; i++)
		to[i] = from[i];
	to[i] = '\0';
}

int launch_fail(struct launch *launch, enum cordon_class class, long negative_errno, const char *boundary,
                const char *subject, const char *reason, const char *remediation)
{
	struct cordon_error *err = &launch->error;
	/* `first` and `command` may both: the one that was before the other tells. */
	if (__atomic_exchange_n(&launch->failed, true, __ATOMIC_ACQ_REL))
		return -1;
	err->class = class;
	err->os_errno = (int32_t)-negative_errno;
	copy_text(err->boundary, sizeof(err->boundary), boundary);
	copy_text(err->subject, sizeof(err->subject), subject);
	copy_text(err->reason, sizeof(err->reason), reason);
	copy_text(err->remediation, sizeof(err->remediation), remediation);
	return -1;
}

int launch_unavailable(struct launch *launch, long result, const char *boundary, const char *subject,
                       const char *reason)
{
	return launch_fail(launch, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, result, boundary, subject, reason,
	                   "run `cordon doctor` to see what this machine is missing");
}

static long write_text(const char *path, const char *text)
{
	long fd = sys_4(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	long result = sys_3(SYS_write, fd, text, sys_strlen(text));
	sys_1(SYS_close, fd);
	return result < 0 ? result : 0;
}

int launch_map_identity(struct launch *launch)
{
	static const char fix[] = REMEDY_APPARMOR "; in a container, lift its profile; or choose --driver landlock";
	/* Without this an unprivileged caller may not map its group (CVE-2014-8989). */
	long result = write_text("/proc/self/setgroups", "deny");
	if (result == 0)
		result = write_text("/proc/self/uid_map", launch->uid_map);
	if (result == 0)
		result = write_text("/proc/self/gid_map", launch->gid_map);
	if (result == 0)
		return 0;
	return launch_fail(launch, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, result, "user_namespaces", "/proc/self/uid_map",
	                   "cannot map the user into a new user namespace", fix);
}

/* ---- first ------------------------------------------------------------------------------------------------------ */

/* The kernel counts the descriptors that a user has under way against the soft limit of who sends: what other commands
 * of that user keep so must not be in the way, so it is as high as it may be meanwhile. Others that start now take
 * theirs. */
long launch_hand_out(int control_fd, const struct msghdr *message)
{
	struct rlimit before = { 0 }, high;
	bool raised = sys_4(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &before) >= 0;
	high = (struct rlimit){ before.rlim_max, before.rlim_max };
	raised = raised && sys_4(SYS_prlimit64, 0, RLIMIT_NOFILE, &high, NULL) >= 0;
	long result = -ETOOMANYREFS;
	for (int tries = 0; tries < HAND_OUT_TRIES && result == -ETOOMANYREFS; tries++) {
		struct timespec pause = { .tv_nsec = 1000000 };
		if (tries)
			sys_2(SYS_nanosleep, &pause, NULL);
		result = sys_3(SYS_sendmsg, control_fd, message, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	if (raised)
		sys_4(SYS_prlimit64, 0, RLIMIT_NOFILE, &before, NULL);
	return result;
}

/* A message with one descriptor. */
static long hand_out_one(const struct launch *launch, void *message, size_t size, int fd)
{
	struct iovec part = { message, size };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = {
			      .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	*(int *)(void *)CMSG_DATA(&control.header) = fd;
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
	                         .msg_controllen = sizeof(control) };
	return launch_hand_out(launch->control_fd, &header);
}

/* A pseudo-terminal of the sandbox's own devpts; its master goes to the supervisor. */
int launch_make_terminal(struct launch *launch)
{
	int unlock = 0;
	/* Relative to the private root, or to "/" where there is none. */
	long master = sys_4(SYS_openat, launch->root_fd >= 0 ? launch->root_fd : AT_FDCWD,
	                    launch->root_fd >= 0 ? "dev/pts/ptmx" : "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
	long terminal = master;
	if (master >= 0 && sys_3(SYS_ioctl, master, TIOCSPTLCK, &unlock) >= 0)
		terminal = sys_3(SYS_ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (terminal < 0)
		return launch_unavailable(launch, terminal, "terminal", "/dev/ptmx", "cannot make a terminal");
	struct winsize size = { .ws_row = launch->rows, .ws_col = launch->columns };
	sys_3(SYS_ioctl, master, TIOCSWINSZ, &size);
	for (int i = 0; i < 3; i++)
		launch->stdio[i] = (int)terminal;
	struct control_message message = { .kind = CONTROL_TERMINAL };
	long result = hand_out_one(launch, &message, sizeof(message), (int)master);
	sys_1(SYS_close, master);
	return result < 0 ? launch_unavailable(launch, result, "terminal", NULL, "cannot hand out the terminal") : 0;
}

static int set_hostname(struct launch *launch)
{
	long result = sys_2(SYS_sethostname, launch->hostname, sys_strlen(launch->hostname));
	return result < 0 ?
	               launch_unavailable(launch, result, "hostname", "sethostname", "cannot hide the host's name") :
	               0;
}

/* What is done when the program already runs is asked for before, with arguments that no call takes: a program whose
 * walls cannot be finished must not have run at all. */
static int ask_for_later(struct launch *launch)
{
	static const struct {
		long number;
		bool for_root;
		const char *boundary, *name, *reason;
	} calls[] = {
		{ SYS_pivot_root, true, "filesystem", "pivot_root", "cannot leave the host's root" },
		{ SYS_umount2, true, "filesystem", "umount2", "cannot leave the host's root" },
		{ SYS_execveat, false, "lifetime", "execveat", "cannot start init from memory" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		long result = calls[i].for_root && !launch->root ? 0 : sys_5(calls[i].number, -1, -1, -1, 0, 0);
		if (result == -ENOSYS || result == -EPERM)
			return launch_fail(launch, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, result, calls[i].boundary,
			                   calls[i].name, calls[i].reason,
			                   "leave the container's seccomp profile, or use Linux 5.13 or later");
	}
	return 0;
}

static int raise_walls(struct launch *launch)
{
	if (launch->uid_map && launch->joined_fd < 0 && launch_map_identity(launch) < 0)
		return -1;
	if (launch->hostname && set_hostname(launch) < 0)
		return -1;
	if (launch->root && launch_raise_root(launch) < 0)
		return -1;
	if (launch->tty && launch_make_terminal(launch) < 0)
		return -1;
	return ask_for_later(launch);
}

/* The init program is a file nobody may read, which makes its process untraceable from birth; but only if this process
 * could not read it either. The permitted set stays: it is what keeps the command from tracing us until then. */
static void set_aside_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	if (sys_2(SYS_capget, &header, data) < 0)
		return;
	data[0].effective = data[1].effective = 0;
	sys_2(SYS_capset, &header, data);
}

/* init gets the control socket and the lock of the layers: none of the caller's files, not even its standard ones. */
static void become_init(struct launch *launch, long command)
{
	static const char *const environment[] = { NULL };
	char pid[24];
	int at = sizeof(pid);
	pid[--at] = '\0';
	for (long rest = command; rest; rest /= 10)
		pid[--at] = (char)('0' + rest % 10);
	const char *const argv[] = { "cordon-init", launch->init_mode, pid + at, NULL };
	bool locks = launch->root && launch->root->layers_lock >= 0;
	long init = sys_3(SYS_fcntl, launch->init_fd, F_DUPFD_CLOEXEC, LAYERS_FD + 1);
	long control = sys_3(SYS_fcntl, launch->control_fd, F_DUPFD_CLOEXEC, LAYERS_FD + 1);
	long lock = locks ? sys_3(SYS_fcntl, launch->root->layers_lock, F_DUPFD_CLOEXEC, LAYERS_FD + 1) : 0;
	long result = init < 0    ? init :
	              control < 0 ? control :
	              lock < 0    ? lock :
	                            sys_3(SYS_dup3, control, CONTROL_FD, 0);
	if (result >= 0 && locks)
		result = sys_3(SYS_dup3, lock, LAYERS_FD, 0);
	if (result >= 0)
		result = launch_close_all(0, CONTROL_FD - 1, 0);
	if (result >= 0)
		result = launch_close_all(locks ? LAYERS_FD + 1 : LAYERS_FD, ~0U, CLOSE_RANGE_CLOEXEC);
	sys_5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	sys_1(SYS_chdir, "/");
	set_aside_capabilities();
	launch->watched = result >= 0;
	if (result >= 0)
		result = sys_5(SYS_execveat, init, "", argv, environment, AT_EMPTY_PATH);
	launch->watched = false;
	launch_unavailable(launch, result, "lifetime", "cordon-init", "cannot start init");
}

#define ROOM 32                         /* more than are open at a time while walls are raised */

/* A table of descriptors that two processes share grows only when every processor has let go of the old one, for which
 * the kernel waits for milliseconds: it has grown before. */
static void grow_table(const struct launch *launch)
{
	long lowest = sys_3(SYS_fcntl, launch->control_fd, F_DUPFD_CLOEXEC, 0);
	long far = sys_3(SYS_fcntl, launch->control_fd, F_DUPFD_CLOEXEC, lowest + ROOM);
	if (far >= 0)
		sys_1(SYS_close, far);
	if (lowest >= 0)
		sys_1(SYS_close, lowest);
}

/* Not suspended meanwhile, as CLONE_VFORK would have it: there is something to do. One that begins before there is a
 * root gets to it by a descriptor in the table, which it shares until the walls are up; what is done about signals
 * `first` does for both. */
static long clone_command(struct launch *launch)
{
	unsigned long flags = CLONE_VM | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID | SIGCHLD;
	launch->loading = 1;
	if (launch->late)
		grow_table(launch);
	long pid = sys_clone(flags | (launch->late ? CLONE_FILES | CLONE_SIGHAND : 0),
	                     (char *)launch->command_stack + launch->stack_size, &launch->command, &launch->loading,
	                     launch_command, launch);
	if (pid < 0)
		launch->loading = 0;
	return pid < 0 ? launch_unavailable(launch, pid, "lifetime", NULL, "cannot start the command's process") : pid;
}

/* Of descriptors that are opened from here on the command has none. */
static int tell_walls(struct launch *launch)
{
	long result = launch->late ? sys_1(SYS_unshare, CLONE_FILES) : 0;
	if (result < 0)
		return launch_unavailable(launch, result, "descriptors", "unshare",
		                          "cannot unshare its descriptor table");
	__atomic_store_n(&launch->walls, 1, __ATOMIC_RELEASE);
	sys_3(SYS_futex, &launch->walls, FUTEX_WAKE, 1);
	return 0;
}

/* In the user namespace that it has entered, `become` counts against the command's number of processes until it is
 * waited for. Not for ever: whoever waits for it may have died. */
static void await_alone(struct launch *launch)
{
	struct timespec pause = { .tv_nsec = 10000000 };
	for (int tries = 0; tries < ALONE_TRIES && !__atomic_load_n(&launch->alone, __ATOMIC_ACQUIRE); tries++)
		sys_4(SYS_futex, &launch->alone, FUTEX_WAIT, 0, &pause);
}

long launch_raise(struct launch *launch)
{
	launch->walls = launch->late_made = 0;
	launch->network = NETWORK_AWAITED;
	launch->command = 0;
	if (!launch->command_joins && launch_enter_group(launch) < 0)
		return -1;
	launch_empty_bounding_set(launch);
	if (launch->late && clone_command(launch) < 0)
		return -1;
	if (raise_walls(launch) < 0)
		return -1;
	if (launch->joined_fd >= 0)
		await_alone(launch);
	if (!launch->late && clone_command(launch) < 0)
		return -1;
	return tell_walls(launch) < 0 ? -1 : launch->command;
}

/* The command may have died instead of telling, so it is not waited for without looking. It does not end before it is
 * told of the network, so its pid is its own. */
static int enter_late(struct launch *launch)
{
	struct timespec pause = { .tv_nsec = 10000000 };
	while (!__atomic_load_n(&launch->late_made, __ATOMIC_ACQUIRE)) {
		if (!__atomic_load_n(&launch->loading, __ATOMIC_ACQUIRE))
			return launch_unavailable(launch, 0, "network", NULL,
			                          "the command's process died before it had a network");
		sys_4(SYS_futex, &launch->late_made, FUTEX_WAIT, 0, &pause);
	}
	long pidfd = sys_2(SYS_pidfd_open, launch->command, 0);
	long result = pidfd < 0 ? pidfd : sys_2(SYS_setns, pidfd, launch->late);
	if (pidfd >= 0)
		sys_1(SYS_close, pidfd);
	return result < 0 ?
	               launch_unavailable(launch, result, "network", "setns", "cannot enter the command's network") :
	               0;
}

/* While the command seals itself: its program starts when the network is there. */
int launch_raise_network(struct launch *launch)
{
	bool up = !launch->late || enter_late(launch) == 0;
	/* Of both, and not before: the command had better begin soon. */
	if (launch->late)
		launch_reset_signals();
	if (launch->loopback)
		up = up && launch_raise_loopback(launch) == 0 && launch_listen(launch) == 0;
	__atomic_store_n(&launch->network, up ? NETWORK_UP : NETWORK_FAILED, __ATOMIC_RELEASE);
	sys_3(SYS_futex, &launch->network, FUTEX_WAKE, 1);
	return up ? 0 : -1;
}

/* What the caller ignores neither init nor the command must: CLONE_CLEAR_SIGHAND and execve() both leave SIG_IGN as it
 * is, and with SIGCHLD ignored init would never hear of the command's end. */
void launch_reset_signals(void)
{
	/* struct sigaction of the kernel: handler, flags, restorer, mask; all zero is SIG_DFL. */
	unsigned long action[8] = { 0 };
	for (int signal = 1; signal <= 64; signal++)
		sys_4(SYS_rt_sigaction, signal, action, NULL, sizeof(uint64_t));
}

/* ---- the beginning ---------------------------------------------------------------------------------------------- */

/* Init's domain: a signal that it sends to every process reaches those in the domain only, and none of them can be
 * made in between. Every Landlock domain refuses to move or link a file between directories unless it handles
 * LANDLOCK_ACCESS_FS_REFER and allows it; this one is not about files, so it allows that everywhere. */
static int keep_signals_in(struct launch *launch)
{
	const struct landlock_ruleset attributes = { .handled_access_fs = LANDLOCK_ACCESS_FS_REFER,
	                                             .scoped = LANDLOCK_SCOPE_SIGNAL };
	struct landlock_path_beneath_attr everywhere = { .allowed_access = LANDLOCK_ACCESS_FS_REFER };
	long ruleset = sys_3(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
	long root = sys_4(SYS_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	everywhere.parent_fd = (int)root;
	long result = ruleset < 0 ? ruleset
	              : root < 0  ? root
	                          : sys_4(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &everywhere, 0);
	if (result >= 0)
		result = sys_5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (result >= 0)
		result = sys_2(SYS_landlock_restrict_self, ruleset, 0);
	if (ruleset >= 0)
		sys_1(SYS_close, ruleset);
	if (root >= 0)
		sys_1(SYS_close, root);
	return result < 0 ? launch_unavailable(launch, result, "lifetime", "landlock",
	                                       "cannot enforce the Landlock domain that keeps signals in") : 0;
}

static int adopt_orphans(struct launch *launch)
{
	if (*launch->init_mode != *INIT_PID_NAMESPACE && *launch->init_mode != *INIT_VIEW)
		sys_5(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	return *launch->init_mode == *INIT_SCOPED ? keep_signals_in(launch) : 0;
}

void launch_first(void *argument)
{
	struct launch *launch = argument;
	if (!launch->late)
		launch_reset_signals();
	launch->root_fd = -1;
	if (*launch->init_mode == *INIT_USER) {
		become_init(launch, 0);
		sys_exit(1);
	}
	/* The caller waits for the program. */
	if (adopt_orphans(launch) == 0 && launch_raise(launch) > 0 && launch_leave_host(launch) == 0 &&
	    launch_raise_network(launch) == 0) {
		/* The sandbox has an init, which adopts the starter. */
		if (*launch->init_mode == *INIT_VIEW) {
			launch->watched = true;
			sys_exit(0);
		}
		become_init(launch, launch->command);
	}
	/* Reached only if init could not be started: without it the command would run unsupervised. */
	if (launch->command > 0)
		sys_2(SYS_kill, launch->command, SIGKILL);
	sys_exit(1);
}

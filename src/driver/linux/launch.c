/* The caller's half of launch.h's picture: stacks, the clone, and what a failure in the child means. */
#include "driver/linux/launch.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compat.h"
#include "driver/linux/await.h"
#include "driver/linux/blob.h"
#include "driver/linux/cgroup-file.h"
#include "driver/linux/control.h"
#include "driver/linux/init-blob.h"
#include "driver/linux/pidfd.h"
#include "driver/linux/remedies.h"
#include "driver/linux/sys.h"
#include "driver/linux/user.h"
#include "driver/linux/valgrind.h"

#define STACK_SIZE (32 * 1024)

/* ---- the embedded init ------------------------------------------------------------------------------------------ */

static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static int init_fd = -1;

static void make_init(void)
{
	init_fd = blob_open("cordon-init", cordon_init_blob, cordon_init_blob_size);
}

int launch_init_fd(struct cordon_error *err)
{
	pthread_once(&init_once, make_init);
	if (init_fd < 0) {
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, -init_fd, "memfd_create",
		     "cannot keep the init program in memory");
		fail_boundary(err, "lifetime");
		return fail_remedy(err,
		                   "nothing around cordon may refuse memfd_create(), nor sysctl vm.memfd_noexec be 2");
	}
	return init_fd;
}

/* ---- errors ----------------------------------------------------------------------------------------------------- */

static const struct {
	int os_errno;
	const char *reason, *remediation;
} clone_failures[] = {
	{ EPERM, "the kernel does not let this user make namespaces",
	  REMEDY_APPARMOR
	  "; on others allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1); in a "
	  "container, lift its seccomp profile; or choose --driver landlock" },
	{ ENOSPC, "the number of namespaces is limited to what is in use",
	  "raise sysctl user.max_user_namespaces, or choose --driver landlock" },
	{ EUSERS, "user namespaces are nested too deeply", "run cordon further outside" },
	{ EINVAL, "the kernel was built without a namespace that is needed", "choose --driver landlock" },
	{ EAGAIN, "too many processes", "end some, or raise the limit on processes" },
};

static int clone_failed(int os_errno, struct cordon_error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(clone_failures); i++) {
		if (clone_failures[i].os_errno != os_errno)
			continue;
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, os_errno, "clone", "%s", clone_failures[i].reason);
		fail_boundary(err, "user_namespaces");
		return fail_remedy(err, "%s", clone_failures[i].remediation);
	}
	return fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, os_errno, "clone", "cannot start a process");
}

/* The child's error, with what it could not do there: the text of its errno. */
static int child_failed(const struct launch *launch, struct cordon_error *err)
{
	const struct cordon_error *child = &launch->error;
	fail(err, child->class, child->os_errno, child->subject, "%s", child->reason);
	fail_boundary(err, child->boundary);
	return fail_remedy(err, "%s", child->remediation);
}

/* ---- whether ---------------------------------------------------------------------------------------------------- */

/* Valgrind ends a program that clones in another way than fork() and pthread_create() do, and has no mount API. */
int launch_check(struct cordon_error *err)
{
	if (!is_under_valgrind())
		return 0;
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, ENOSYS, "valgrind",
	     "this process runs under valgrind, which does not know the system calls that raise walls and start a "
	     "command");
	fail_boundary(err, "lifetime");
	return fail_remedy(err, "run the program without valgrind, or have it start `cordon run`, which valgrind does "
	                        "not follow unless "
	                        "it is told to (--trace-children)");
}

/* ---- starting --------------------------------------------------------------------------------------------------- */

/* Whether a process is dumpable is a property of its memory, which is shared with the caller; one thread at a time may
 * change it. */
static pthread_mutex_t become_lock = PTHREAD_MUTEX_INITIALIZER;

/* A child of fork() has the memory as it is at that moment: not while another thread has changed it. */
static void hold_become(void)
{
	pthread_mutex_lock(&become_lock);
}

static void release_become(void)
{
	pthread_mutex_unlock(&become_lock);
}

__attribute__((constructor)) static void hold_become_over_fork(void)
{
	pthread_atfork(hold_become, release_become, release_become);
}

/* A process may set 0 and 1 only; the kernel's own 2 is nearer to 0. */
static void restore_dumpable(int before)
{
	prctl(PR_SET_DUMPABLE, before == 1);
}

static bool has_become(const struct launch *launch)
{
	return launch->become || launch->joined_fd >= 0;
}

/* One more process in between. As root: it becomes an unprivileged user before the namespaces are made, so that they
 * belong to that user. Or it enters the user namespace that was made for a caller that is not dumpable. It shares the
 * table of descriptors, so the pidfd arrives in ours. Its own pid, or a negative errno. */
static long clone_become(struct launch *launch, char *stack)
{
	pthread_mutex_lock(&become_lock);
	launch->dumpable = prctl(PR_GET_DUMPABLE);
	if (launch->joined_fd >= 0)
		launch->group_entered = true;
	return launch_clone_at(launch, CLONE_VM | CLONE_FILES, stack, &launch->become_fd, launch_become);
}

/* `first` has no more files of its own to name in /proc. */
static void end_become(const struct launch *launch)
{
	restore_dumpable(launch->dumpable);
	pthread_mutex_unlock(&become_lock);
}

/* In a process of its own, because a thread among others cannot enter a user namespace. */
int launch_visit(struct launch *launch, int user_fd, int network_fd, int maker_fd, struct cordon_error *err)
{
	char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return fail_oom(err);
	launch->user_fd = user_fd;
	launch->network_fd = network_fd;
	launch->maker_fd = maker_fd;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&become_lock);
	int dumpable = prctl(PR_GET_DUMPABLE);
	long pid = launch_clone_at(launch, CLONE_VM | CLONE_VFORK, stack, NULL, launch_visitor);
	restore_dumpable(dumpable);
	pthread_mutex_unlock(&become_lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	munmap(stack, STACK_SIZE);
	if (pid < 0)
		return clone_failed((int)-pid, err);
	waitpid((pid_t)pid, NULL, __WALL);
	return launch->failed ? child_failed(launch, err) : 0;
}

/* There is no program, and will be none. In a pid namespace the kernel ends it, with its first process, whatever that
 * waits for. Elsewhere that waits for nothing, and is told: only init finds all that the program has started if it
 * came now. False: it is to be tried again. */
static bool cut_short(struct launch *launch)
{
	struct control_message message = { .kind = CONTROL_KILL };
	launch->cut_short = true;
	if (launch->namespaces & CLONE_NEWPID)
		return pidfd_kill(launch->pidfd);
	send(launch->init_socket_fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
	return true;
}

/* What is left of it for a caller that has just waited for a moment. */
static const struct patience *lose(struct launch *launch, const struct patience *patience)
{
	return await_is_over(patience) && cut_short(launch) ? NULL : patience;
}

/* Until init is there, or gone. `first` leaves our memory before that, but who is woken then is put behind the
 * command, on the processor that it was on: init wakes when it has nothing left to do on its own. */
static const struct patience *await_init(struct launch *launch, const struct patience *patience)
{
	struct pollfd news[] = { { .fd = launch->init_socket_fd, .events = POLLIN },
		                 { .fd = launch->pidfd, .events = POLLIN } };
	int count = 0;
	while (launch->init_socket_fd >= 0 && launch->pidfd >= 0 && (count == 0 || (count < 0 && errno == EINTR))) {
		count = poll(news, ARRAY_SIZE(news), await_moment_ms(patience));
		if (count == 0)
			patience = lose(launch, patience);
	}
	return patience;
}

static void tell_alone(struct launch *launch)
{
	__atomic_store_n(&launch->alone, 1, __ATOMIC_RELEASE);
	sys_3(SYS_futex, &launch->alone, FUTEX_WAKE, 1);
}

/* Until `become` is gone, which as root waits until `first` is init or gone. The pid of `first`, or a negative
 * errno. */
static long await_become(struct launch *launch, long become, const struct patience **patience)
{
	struct pollfd gone = { .fd = launch->become_fd, .events = POLLIN };
	int count = 0;
	while (gone.fd >= 0 && (count == 0 || (count < 0 && errno == EINTR))) {
		count = poll(&gone, 1, await_moment_ms(*patience));
		/* Before there is a `first` it waits for nothing. */
		if (count == 0 && __atomic_load_n(&launch->pidfd, __ATOMIC_ACQUIRE) >= 0)
			*patience = lose(launch, *patience);
	}
	close_fd(&launch->become_fd);
	/* It counts until it is waited for: the command never has its place. */
	if (launch->group_most)
		cgroup_file_write_number(launch->group_fd, "pids.max", launch->group_most);
	while (waitpid((pid_t)become, NULL, __WALL) < 0 && errno == EINTR)
		;
	tell_alone(launch);
	return launch->clone_result;
}

static void await_first(struct launch *launch)
{
	while (__atomic_load_n(&launch->standing, __ATOMIC_ACQUIRE))
		sys_4(SYS_futex, &launch->standing, FUTEX_WAIT, 1, NULL);
}

/* Until it has become the program, or is gone: it is in our memory, on a stack that is about to go. A `first` that was
 * ended leaves it there. In a pid namespace the kernel ends it, with its first process. */
static void await_command(struct launch *launch, const struct patience *patience)
{
	bool kills = !launch->watched && !(launch->namespaces & CLONE_NEWPID);
	while (__atomic_load_n(&launch->loading, __ATOMIC_ACQUIRE) && launch->command > 0) {
		if (kills)
			kill(launch->command, SIGKILL);
		int most_ms = kills ? 1 : await_moment_ms(patience);
		struct timespec most = { .tv_nsec = most_ms * 1000000L };
		if (sys_4(SYS_futex, &launch->loading, FUTEX_WAIT, 1, most_ms < 0 ? NULL : &most) == -ETIMEDOUT)
			patience = lose(launch, patience);
	}
}

/* Whether a process may make a namespace for itself and enter another's: what refuses that may let it be made by
 * clone(). */
static bool can_be_late(void)
{
	return sys_1(SYS_unshare, 0) >= 0 && sys_2(SYS_setns, -1, 0) == -EBADF &&
	       sys_2(SYS_pidfd_open, -1, 0) == -EINVAL;
}

static void prepare_clone(struct launch *launch)
{
	launch->pidfd = launch->become_fd = -1;
	launch->clone_result = 0;
	launch->command = launch->loading = launch->standing = launch->alone = 0;
	launch->watched = launch->cut_short = false;
	launch->group_entered = !launch->in_group;
	launch->command_stack = (char *)launch->first_stack + STACK_SIZE;
	launch->stack_size = STACK_SIZE;
}

/* A pid, of `become` where there is that, or a negative errno. */
static long clone_first(struct launch *launch)
{
	char *stacks = launch->first_stack;
	prepare_clone(launch);
	/* A handler of the caller's must not run in the child, which shares its memory. */
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	long pid = has_become(launch) ? clone_become(launch, stacks + 2 * STACK_SIZE) : launch_clone(launch, 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* Until none of them is in our memory. */
static int await_start(struct launch *launch, long pid, const struct patience *patience, struct cordon_error *err)
{
	patience = await_init(launch, patience);
	await_first(launch);
	if (has_become(launch))
		end_become(launch);
	await_command(launch, patience);
	munmap(launch->first_stack, 3 * STACK_SIZE);
	if (pid < 0)
		return clone_failed((int)-pid, err);
	if (!launch->failed || launch->cut_short)
		return 0;
	if (launch->pidfd >= 0) {
		await_gone(launch->pidfd, true);
		close(take_fd(&launch->pidfd));
	}
	return launch->clone_result < 0 ? clone_failed((int)-launch->clone_result, err) : child_failed(launch, err);
}

static bool map_stacks(struct launch *launch, struct cordon_error *err)
{
	void *stacks =
		mmap(NULL, 3 * STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	launch->first_stack = stacks;
	if (stacks == MAP_FAILED)
		fail_oom(err);
	return stacks != MAP_FAILED;
}

int launch_start(struct launch *launch, struct cordon_error *err)
{
	auto_close int user_fd = -1;
	if (user_is_needed(launch) && user_make(launch, &user_fd, err) < 0)
		return -1;
	launch->joined_fd = user_fd;
	launch->joined = CLONE_NEWUSER;
	if (!map_stacks(launch, err))
		return -1;
	bool has_command = *launch->init_mode != *INIT_USER;
	/* To enter another process's namespaces, its memory must be accessible. */
	launch->late = has_command && launch->joined_fd < 0 && can_be_late() ? launch->namespaces & CLONE_NEWNET : 0;
	const struct patience *patience = launch->patience;
	long pid = clone_first(launch);
	if (has_become(launch) && pid >= 0)
		pid = await_become(launch, pid, &patience);
	return await_start(launch, pid, patience, err);
}

/* Where this process's words are: proc_pid_stat(5), the 48th and 49th field. The name before the third may have
 * anything in it. */
static int find_words(struct launch *launch, struct cordon_error *err)
{
	char line[4096];
	unsigned long begin, end;
	auto_close int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	line[length < 0 ? 0 : length] = '\0';
	char *at = strrchr(line, ')');
	for (int field = 2; at && field < 48; field++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, "%lu %lu", &begin, &end) != 2 || end < begin)
		return fail(err, CORDON_E_INTERNAL, fd < 0 ? errno : 0, "/proc/self/stat",
		            "cannot tell where this process's command line is");
	launch->words = (char *)begin;
	launch->words_length = end - begin;
	return 0;
}

int launch_start_inside(struct launch *launch, int sandbox_fd, struct cordon_error *err)
{
	if (find_words(launch, err) < 0)
		return -1;
	launch->joined_fd = sandbox_fd;
	launch->joined = LAUNCH_SANDBOX_SHARED & ~(launch->other_network ? (uint64_t)CLONE_NEWNET : 0);
	launch->late = 0;
	if (!map_stacks(launch, err))
		return -1;
	prepare_clone(launch);
	launch->group_entered = true;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	long pid = launch_clone_at(launch, CLONE_FILES, (char *)launch->first_stack + 2 * STACK_SIZE, NULL,
	                           launch_become);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	while (pid > 0 && waitpid((pid_t)pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	tell_alone(launch);
	munmap(launch->first_stack, 3 * STACK_SIZE);
	if (pid > 0 && launch->pidfd >= 0)
		return 0;
	return launch->failed ? child_failed(launch, err)
	                      : clone_failed((int)-(pid < 0 ? pid : launch->clone_result), err);
}

/* The caller's half of launch.h's picture: stacks, the clone, and what a failure in the child means. */
#include "run/launch.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compat.h"
#include "run/await.h"
#include "run/blob.h"
#include "run/cgroup-file.h"
#include "run/control.h"
#include "run/init-blob.h"
#include "run/pidfd.h"
#include "run/processors.h"
#include "run/sys.h"

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
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, -init_fd, "memfd_create", "cannot keep the init program in memory");
		fail_boundary(err, "lifetime");
		return fail_remedy(err, "nothing around cordon may refuse memfd_create(), nor sysctl vm.memfd_noexec be 2");
	}
	return init_fd;
}

/* ---- errors ----------------------------------------------------------------------------------------------------- */

static const struct {
	int os_errno;
	const char *reason, *remediation;
} clone_failures[] = {
	{ EPERM, "the kernel does not let this user make namespaces",
	  "allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, or "
	  "kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu), leave the container's seccomp profile, or choose "
	  "--driver landlock" },
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

/* ---- starting --------------------------------------------------------------------------------------------------- */

/* Whether a process is dumpable is a property of its memory, which ours share; one at a time may change it. */
static pthread_mutex_t become_lock = PTHREAD_MUTEX_INITIALIZER;

/* As root: one more process in between, which becomes an unprivileged user before the namespaces are made, so that
 * they belong to that user. It shares the table of descriptors, so the pidfd arrives in ours. Its own pid, or a negative errno. */
static long clone_become(struct launch *launch, char *stack)
{
	pthread_mutex_lock(&become_lock);
	launch->dumpable = prctl(PR_GET_DUMPABLE);
	return launch_clone_at(launch, CLONE_VM | CLONE_FILES, stack, &launch->become_fd, launch_become);
}

/* `first` has no more files of its own to name in /proc. */
static void end_become(const struct launch *launch)
{
	prctl(PR_SET_DUMPABLE, launch->dumpable);
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
	prctl(PR_SET_DUMPABLE, dumpable);
	pthread_mutex_unlock(&become_lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	munmap(stack, STACK_SIZE);
	if (pid < 0)
		return clone_failed((int)-pid, err);
	waitpid((pid_t)pid, NULL, __WALL);
	return launch->failed ? child_failed(launch, err) : 0;
}

/* There is no program, and will be none. In a pid namespace the kernel ends it, with its first process, whatever that waits for.
 * Elsewhere that waits for nothing, and is told: only init finds all that the program has started if it came now. False: it is to
 * be tried again. */
static bool cut_short(struct launch *launch)
{
	struct control_message message = { .kind = CONTROL_KILL };
	launch->cut_short = true;
	if (launch->namespaces & CLONE_NEWPID)
		return pidfd_kill(launch->pidfd);
	send(launch->heard_fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
	return true;
}

/* What is left of it to who has just waited for a moment. */
static const struct patience *lose(struct launch *launch, const struct patience *patience)
{
	return await_is_over(patience) && cut_short(launch) ? NULL : patience;
}

/* Until init is there, or gone. `first` leaves our memory before that, but who is woken then is put behind the command, on
 * the processor that it was on: init wakes when it has nothing left to do on its own. */
static const struct patience *await_init(struct launch *launch, const struct patience *patience)
{
	struct pollfd news[] = { { .fd = launch->heard_fd, .events = POLLIN }, { .fd = launch->pidfd, .events = POLLIN } };
	int count = 0;
	while (launch->heard_fd >= 0 && launch->pidfd >= 0 && (count == 0 || (count < 0 && errno == EINTR))) {
		count = poll(news, ARRAY_SIZE(news), await_moment_ms(patience));
		if (count == 0)
			patience = lose(launch, patience);
	}
	return patience;
}

/* Until `become` is gone, which waits until `first` is init or gone. The pid of `first`, or a negative errno. */
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
	return launch->clone_result;
}

static void await_first(struct launch *launch)
{
	while (__atomic_load_n(&launch->standing, __ATOMIC_ACQUIRE))
		sys_4(SYS_futex, &launch->standing, FUTEX_WAIT, 1, NULL);
}

/* Until it has become the program, or is gone: it is in our memory, on a stack that is about to go. A `first` that was ended
 * leaves it there. In a pid namespace the kernel ends it, with its first process. */
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

/* Whether a process may make a namespace for itself and enter another's: what refuses that may let it be made by clone(). */
static bool can_be_late(void)
{
	return sys_1(SYS_unshare, 0) >= 0 && sys_2(SYS_setns, -1, 0) == -EBADF && sys_2(SYS_pidfd_open, -1, 0) == -EINVAL;
}

void launch_note_processors(struct launch *known)
{
	known->cpus_size = sys_3(SYS_sched_getaffinity, 0, sizeof(known->cpus), known->cpus);
}

/* Keeps them off the caller's processor, or has `pid` (0: the caller) on none but that, until it says where else it may be. */
static bool place(const struct launch *launch, long pid, bool here)
{
	unsigned cpu;
	unsigned long mask[ARRAY_SIZE(launch->cpus)] = { 0 };
	if (launch->cpus_size <= 0 || sys_3(SYS_getcpu, &cpu, NULL, NULL) < 0 || cpu >= (unsigned long)launch->cpus_size * 8)
		return false;
	unsigned long bit = 1UL << cpu % (8 * sizeof(long));
	if (!here)
		memcpy(mask, launch->cpus, sizeof(mask));
	mask[cpu / (8 * sizeof(long))] ^= bit;
	return sys_3(SYS_sched_setaffinity, pid, launch->cpus_size, mask) >= 0;
}

/* A pid, of `become` where there is that, or a negative errno. */
static long clone_first(struct launch *launch)
{
	char *stacks = launch->first_stack;
	launch->pidfd = launch->become_fd = -1;
	launch->clone_result = 0;
	launch->command = launch->loading = launch->standing = 0;
	launch->watched = launch->cut_short = false;
	launch->group_entered = !launch->in_group;
	launch->command_stack = stacks + STACK_SIZE;
	launch->stack_size = STACK_SIZE;

	/* A handler of the caller's must not run in the child, which shares its memory. */
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	long pid = launch->become ? clone_become(launch, stacks + 2 * STACK_SIZE) : launch_clone(launch, 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static bool make_stacks(struct launch *launch)
{
	launch->first_stack = mmap(NULL, 3 * STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	return launch->first_stack != MAP_FAILED;
}

/* Until none of them is in our memory. */
static void await_all(struct launch *launch, const struct patience *patience)
{
	await_first(launch);
	if (launch->become)
		end_become(launch);
	await_command(launch, patience);
	munmap(launch->first_stack, 3 * STACK_SIZE);
}

static int await_start(struct launch *launch, long pid, const struct patience *patience, struct cordon_error *err)
{
	await_all(launch, await_init(launch, patience));
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

/* ---- ahead of the plan ------------------------------------------------------------------------------------------ */

/* What began ahead may have to wait for a human's answer: it must not keep what the caller closes meanwhile. */
static bool can_be_early(void)
{
	return can_be_late() && sys_3(SYS_close_range, ~0U, ~0U, 0) >= 0;
}

struct launch *launch_ahead(const struct launch *known)
{
	struct launch *ahead = can_be_early() ? malloc(sizeof(*ahead)) : NULL;
	if (!ahead)
		return NULL;
	*ahead = *known;
	ahead->early = true;
	ahead->late = known->namespaces & CLONE_NEWNET;
	ahead->own = known->namespaces & (CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP);
	/* On a host of many mounts copying them takes as long as the network that comes after it: a caller that clones by itself does it
	 * on its own processor. A thread is kept off that. */
	if (known->cpus_size)
		ahead->own |= known->namespaces & CLONE_NEWNS;
	else
		launch_note_processors(ahead);
	auto_close int caller = (int)sys_2(SYS_pidfd_open, getpid(), 0);
	auto_close int mounts = open("/proc/thread-self/mountinfo", O_RDONLY | O_CLOEXEC);
	ahead->caller_fd = caller;
	if (!ahead->late || caller < 0 || mounts < 0 || !make_stacks(ahead)) {
		free(ahead);
		return NULL;
	}
	ahead->mounts_fd = take_fd(&mounts);
	ahead->pid = (int)clone_first(ahead);
	if (ahead->pid >= 0 && (known->cpus_size || place(ahead, ahead->pid, false)))
		return ahead;
	launch_ahead_end(ahead);
	return NULL;
}

bool launch_ahead_stands(const struct launch *ahead)
{
	struct pollfd table = { .fd = ahead->mounts_fd, .events = POLLPRI };
	return poll(&table, 1, 0) == 0;
}

void launch_ahead_end(struct launch *ahead)
{
	if (!ahead)
		return;
	close(ahead->mounts_fd);
	if (ahead->pidfd >= 0)
		pidfd_kill(ahead->pidfd);
	await_all(ahead, NULL);
	if (ahead->pidfd >= 0) {
		await_gone(ahead->pidfd, true);
		close(ahead->pidfd);
	}
	free(ahead);
}

static bool same(const char *one, const char *other)
{
	return one == other || (one && other && strcmp(one, other) == 0);
}

/* Descriptors that were opened since are in nobody's table but ours, and those that were not asked for are closed. */
static bool fits(const struct launch *ahead, const struct launch *plan)
{
	return ahead->namespaces == plan->namespaces && !plan->become && !plan->in_group && same(ahead->uid_map, plan->uid_map) &&
	       same(ahead->gid_map, plan->gid_map) && same(ahead->hostname, plan->hostname) && ahead->loopback == plan->loopback &&
	       ahead->seal.drop_privileges == plan->seal.drop_privileges && same(ahead->init_mode, plan->init_mode) &&
	       ahead->init_fd == plan->init_fd && ahead->control_fd == plan->control_fd &&
	       memcmp(ahead->stdio, plan->stdio, sizeof(plan->stdio)) == 0 && plan->close_descriptors && plan->root &&
	       !plan->root->trees && plan->root->skeleton_tree < 0 && plan->cwd_fd < 0 && plan->pass[0] < 0 && plan->slot_fd < 0;
}

/* The kernel would have it where it was, behind the command: but the caller's processor is about to be free. */
static bool tell_plan(struct launch *ahead, const struct launch *plan)
{
	struct control_message planned = { .kind = CONTROL_PLANNED };
	ahead->plan = plan;
	place(ahead, ahead->pid, true);
	return send(ahead->heard_fd, &planned, sizeof(planned), MSG_NOSIGNAL) == sizeof(planned);
}

/* A new process may be put where another runs, to wait for that, though this processor is about to be free. */
static long clone_here(struct launch *launch)
{
	bool kept = place(launch, 0, true);
	long pid = clone_first(launch);
	if (kept)
		sys_3(SYS_sched_setaffinity, 0, launch->cpus_size, launch->cpus);
	return pid;
}

int launch_start(struct launch *launch, struct cordon_error *err)
{
	struct launch *ahead = launch->ahead;
	launch->ahead = NULL;
	if (ahead && fits(ahead, launch) && launch_ahead_stands(ahead) && tell_plan(ahead, launch)) {
		int result = await_start(ahead, ahead->pid, launch->patience, err);
		launch->pidfd = ahead->pidfd;
		launch->cut_short = ahead->cut_short;
		close(ahead->mounts_fd);
		free(ahead);
		return result;
	}
	launch_ahead_end(ahead);
	if (!make_stacks(launch))
		return fail_oom(err);
	launch->early = false;
	launch->own = 0;
	launch->apart = processors_one_is_free();
	launch_note_processors(launch);
	bool has_command = *launch->init_mode != *INIT_KEEPER && *launch->init_mode != *INIT_COMMONS;
	launch->late = has_command && can_be_late() ? launch->namespaces & CLONE_NEWNET : 0;
	const struct patience *patience = launch->patience;
	long pid = has_command && !launch->apart ? clone_here(launch) : clone_first(launch);
	if (launch->become && pid >= 0)
		pid = await_become(launch, pid, &patience);
	return await_start(launch, pid, patience, err);
}

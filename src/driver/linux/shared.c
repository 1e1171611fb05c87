/* A session's sandbox: see shared.h. */
#include "driver/linux/shared.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <linux/stat.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "base/compat.h"
#include "driver/linux/await.h"
#include "driver/linux/child-root.h"
#include "driver/linux/control.h"
#include "driver/linux/idmap.h"
#include "driver/linux/linger.h"
#include "driver/linux/order.h"
#include "driver/linux/pidfd.h"
#include "driver/linux/receive.h"
#include "driver/linux/starter.h"
#include "driver/linux/supervise.h"

#define RAISE_MS 10000          /* for a new one to be there; far more than it takes */
#define VIEW_MS 1000            /* for another view, whose processes commands can stop */
#define ENDING_MS 100           /* from when a process cannot be entered any more until it has ended */
#define VISIT_STACK (32 * 1024)

/* ---- raising ----------------------------------------------------------------------------------------------------- */

struct raising {
	int null_fd, control[2], starter[2];
};

static void raising_end(struct raising *raising)
{
	int *const fds[] = { &raising->null_fd, &raising->control[0], &raising->control[1], &raising->starter[0],
		             &raising->starter[1] };
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close_fd(fds[i]);
}

/* In place of a command there is the starter. */
static int raising_begin(struct raising *raising, struct launch *launch, struct cordon_error *err)
{
	*raising = (struct raising){ -1, { -1, -1 }, { -1, -1 } };
	raising->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (raising->null_fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, raising->control) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, raising->starter) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "socketpair", "cannot make the sandbox's sockets");
	for (int i = 0; i < 3; i++)
		launch->stdio[i] = raising->null_fd;
	launch->init_fd = launch_init_fd(err);
	if (launch->init_fd < 0)
		return -1;
	launch->starter = true;
	launch->tty = false;
	launch->cwd = "/";
	launch->cwd_fd = launch->group_fd = -1;
	for (size_t i = 0; i < ARRAY_SIZE(launch->group_joins); i++)
		launch->group_joins[i] = -1;
	launch->pass[CONTROL_FD - 3] = raising->starter[1];
	launch->pass[STARTER_INIT_FD - 3] = launch->init_fd;
	launch->pass[STARTER_MASK_FD - 3] = -1;
	launch->control_fd = raising->control[1];
	return 0;
}

/* Its first message. False: none came. */
static bool await_starter(struct raising *raising, int most_ms, struct shared_view *ret_view)
{
	struct reply reply = { 0 };
	int fds[REPLY_FDS_MAX];
	close_fd(&raising->starter[1]);
	bool answers = await_message(raising->starter[0], -1, most_ms);
	ssize_t length =
		answers ? receive_some(raising->starter[0], &reply, sizeof(reply), 0, fds, ARRAY_SIZE(fds)) : -1;
	if (length <= 0 || fds[1] < 0)
		return false;
	*ret_view = (struct shared_view){ take_fd(&raising->starter[0]), fds[0], fds[1], { fds[2], fds[3] } };
	return true;
}

int shared_raise(struct launch *launch, struct shared_sandbox *ret_sandbox, struct shared_view *ret_view,
                 int *listeners, struct cordon_error *err)
{
	struct raising raising;
	struct shared_sandbox sandbox = { -1, -1, launch->become };
	int result = raising_begin(&raising, launch, err);
	launch->init_socket_fd = raising.control[0];
	if (result == 0)
		result = launch_start(launch, err);
	if (result == 0) {
		sandbox.pidfd = launch->pidfd;
		sandbox.control_fd = take_fd(&raising.control[0]);
		close_fd(&raising.control[1]);
		if (launch->listener_count &&
		    supervise_receive_listeners(sandbox.control_fd, listeners, launch->listener_count, err) < 0 &&
		    !launch->listeners_optional)
			result = -1;
		if (result == 0 && !await_starter(&raising, RAISE_MS, ret_view)) {
			fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "cordon-init",
			     "the sandbox's starter did not begin");
			result = fail_boundary(err, "lifetime");
		}
	}
	raising_end(&raising);
	if (result < 0)
		shared_lower(&sandbox);
	else
		*ret_sandbox = sandbox;
	return result;
}

/* ---- visiting ---------------------------------------------------------------------------------------------------- */

static int told_failure(const struct launch *launch, struct cordon_error *err)
{
	const struct cordon_error *told = &launch->error;
	fail(err, told->class, told->os_errno, told->subject, "%s", told->reason);
	fail_boundary(err, told->boundary);
	return fail_remedy(err, "%s", told->remediation);
}

/* A process that enters the sandbox's namespaces, does its work there and ends. It has memory of its own, so that
 * changing its user leaves the caller's memory as it is; `launch` is in memory that both have. 1: the view's starter
 * has ended. */
static int visit(const struct shared_sandbox *sandbox, const struct shared_view *view, struct launch *launch,
                 uint64_t flags, void (*work)(void *), struct cordon_error *err)
{
	void *stack = mmap(NULL, VISIT_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return fail_oom(err);
	launch->joined_fd = view->pidfd;
	launch->joined = CLONE_NEWUSER | CLONE_NEWNS;
	launch->become = sandbox->become;
	launch->uid = launch->gid = IDMAP_INSIDE;
	launch->group_fd = -1;
	launch->group_entered = true;
	launch->stack_size = VISIT_STACK;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	long pid = launch_clone_at(launch, flags, stack, NULL, work);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	int status = 1;
	while (pid > 0 && waitpid((pid_t)pid, &status, __WALL) < 0 && errno == EINTR)
		;
	munmap(stack, VISIT_STACK);
	if (pid < 0)
		return fail(err, CORDON_E_RESOURCE_EXHAUSTED, (int)-pid, "clone", "cannot start a process");
	if (status == 0 && !launch->failed)
		return 0;
	if (!shared_has_starter(view))
		return 1;
	return launch->failed ? told_failure(launch, err)
	                      : fail(err, CORDON_E_INTERNAL, 0, "",
	                             "a process that was to change the sandbox did not finish");
}

/* For a visitor: zeroed, and the same memory in both. */
static struct launch *shared_launch(size_t more, struct cordon_error *err)
{
	void *memory =
		mmap(NULL, sizeof(struct launch) + more, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail_oom(err);
	return memory == MAP_FAILED ? NULL : memory;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* The mounts in memory of the view `now`, as detached copies in launch->root->trees. */
static int share_memory(const struct shared_sandbox *sandbox, const struct shared_view *now, struct launch *launch,
                        int *trees, struct cordon_error *err)
{
	size_t count = launch->root->count, size = (count + 1) * sizeof(*trees);
	struct launch *visitor = shared_launch(size, err);
	if (!visitor)
		return -1;
	int *made = (int *)(void *)(visitor + 1);
	for (size_t i = 0; i <= count; i++)
		made[i] = -1;
	const struct launch_root plan = { .ops = launch->root->ops, .count = count, .trees = made };
	visitor->root = &plan;
	visitor->root_fd = now->root_fd;
	int result = visit(sandbox, now, visitor, CLONE_FILES, launch_clone_scratch, err);
	for (size_t i = 0; i < count; i++)
		if (made[i] >= 0)
			trees[i] = made[i];
	munmap(visitor, sizeof(*visitor) + size);
	return result;
}

static void close_trees(int *trees, const struct mount_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ops[i].kind == MOUNT_SCRATCH || ops[i].kind == MOUNT_LAYER)
			close_fd(&trees[i]);
}

/* Its starter. Where `command` was stopped, or `first` killed, it stays behind until the sandbox is lowered. */
static int start_view(const struct shared_sandbox *sandbox, const struct launch *launch, struct raising *raising,
                      struct shared_view *ret_view, struct cordon_error *err)
{
	struct launch *inside = shared_launch(0, err);
	if (!inside)
		return -1;
	*inside = *launch;
	int result = launch_start_inside(inside, sandbox->pidfd, err);
	if (result == 0) {
		bool begins = await_starter(raising, VIEW_MS, ret_view);
		bool failed = !begins && __atomic_load_n(&inside->failed, __ATOMIC_ACQUIRE) &&
		              await_message(inside->pidfd, -1, VIEW_MS);
		result = begins ? 0 : failed ? told_failure(inside, err) : 1;
		/* It has nothing left to do, and may be stopped. */
		pidfd_kill(inside->pidfd);
		await_gone(inside->pidfd, true);
		close_fd(&inside->pidfd);
	}
	munmap(inside, sizeof(*inside));
	return result;
}

int shared_add_view(const struct shared_sandbox *sandbox, const struct shared_view *now, struct launch *launch,
                     struct shared_view *ret_view, struct cordon_error *err)
{
	struct raising raising;
	const struct launch_root *before = launch->root;
	size_t count = before->count;
	struct launch_root *root = malloc(sizeof(*root) + (count + 1) * sizeof(int));
	if (!root)
		return fail_oom(err);
	int *trees = (int *)(void *)(root + 1);
	for (size_t i = 0; i <= count; i++)
		trees[i] = before->trees ? before->trees[i] : -1;
	*root = *before;
	root->trees = trees;
	/* A cache that the first view does not have is written to in memory here: no init would keep the lock. */
	root->layers_lock = -1;
	launch->root = root;
	bool new_network = launch->other_network && launch->other_network_fd < 0 && launch->loopback;
	launch->namespaces = CLONE_NEWNS | (new_network ? CLONE_NEWNET : 0);
	launch->uid_map = launch->gid_map = NULL;
	launch->uid = launch->gid = IDMAP_INSIDE;
	launch->hostname = NULL;
	launch->loopback = new_network;
	launch->listener_count = 0;
	launch->init_mode = INIT_VIEW;
	int result = share_memory(sandbox, now, launch, trees, err);
	if (result == 0) {
		result = raising_begin(&raising, launch, err);
		if (result == 0)
			result = start_view(sandbox, launch, &raising, ret_view, err);
		raising_end(&raising);
	}
	launch->root = before;
	close_trees(trees, before->ops, count);
	free(root);
	return result;
}

void shared_close_view(struct shared_view *view)
{
	close_fd(&view->starter_fd);
	close_fd(&view->pidfd);
	close_fd(&view->root_fd);
	close_fd(&view->mask_fds[0]);
	close_fd(&view->mask_fds[1]);
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

int shared_listen(const struct shared_sandbox *sandbox, int user, int network, const struct egress_listener *listeners,
                  size_t count, int *ret_fds, struct cordon_error *err)
{
	int control[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "socketpair", "cannot reach the sandbox's network");
	auto_close int ours = control[0], theirs = control[1];
	struct launch launch = { .group_fd = -1, .group_entered = true, .control_fd = theirs, .listeners = listeners,
	                         .listener_count = count, .stack_size = VISIT_STACK };
	return launch_visit(&launch, user, network, sandbox->pidfd, err) < 0 ? -1
	       : supervise_receive_listeners(ours, ret_fds, count, err);
}

/* ---- covers ------------------------------------------------------------------------------------------------------ */

static long mount_number(int fd)
{
	char name[64];
	long number = -1;
	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	FILE *file = fopen(name, "re");
	for (char line[128]; file && fgets(line, sizeof(line), file) && sscanf(line, "mnt_id: %ld", &number) != 1;)
		;
	if (file)
		fclose(file);
	return number;
}

static int open_around(const struct shared_view *view, const char *target)
{
	char around[PATH_MAX];
	snprintf(around, sizeof(around), "%s", target);
	*strrchr(around, '/') = '\0';
	return (int)root_open_target(view->root_fd, around);
}

/* Not in the mount of the directory around it. Where statx() is refused, by the numbers of both. */
static bool is_mount(const struct shared_view *view, int fd, const char *target)
{
	struct statx info = { 0 };
	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE, &info) == 0)
		return info.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	auto_close int around = open_around(view, target);
	return around >= 0 && mount_number(around) != mount_number(fd);
}

/* What masks are made of lies in memory of its own. Where it is not at hand, because the view is of the host's whole
 * tree, it is told from a directory that was closed by where that lies. */
static bool is_mask(const struct shared_view *view, int fd, const struct mount_op *op)
{
	struct stat mask, other;
	int made_of = view->mask_fds[op->is_directory];
	auto_close int around = made_of < 0 ? open_around(view, op->target) : -1;
	if (fstat(fd, &mask) < 0 || fstat(made_of < 0 ? around : made_of, &other) < 0)
		return false;
	return made_of < 0 ? !(mask.st_mode & 0777) && mask.st_dev != other.st_dev
	                   : mask.st_dev == other.st_dev && mask.st_ino == other.st_ino;
}

int shared_is_covered(const struct shared_view *view, const struct mount_op *op)
{
	struct statvfs mount;
	auto_close int fd = (int)root_open_target(view->root_fd, op->target);
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? -1 : 0;
	if (op->kind == MOUNT_MASK)
		return is_mask(view, fd, op);
	/* A mount follows its directory, and a directory that was only kept from being renamed is a mount, too. */
	if (op->kind == MOUNT_FREEZE && (fstatvfs(fd, &mount) < 0 || !(mount.f_flag & ST_RDONLY)))
		return 0;
	return is_mount(view, fd, op->target);
}

int shared_cover(const struct shared_sandbox *sandbox, const struct shared_view *view, const struct mount_op *ops,
                 size_t count, struct cordon_error *err)
{
	struct launch *visitor = shared_launch(0, err);
	if (!visitor)
		return -1;
	const struct launch_root plan = { .ops = ops, .count = count };
	visitor->root = &plan;
	visitor->root_fd = view->root_fd;
	visitor->mask_fd = view->mask_fds[0];
	visitor->hidden_fd = view->mask_fds[1];
	int result = visit(sandbox, view, visitor, 0, launch_cover, err);
	munmap(visitor, sizeof(*visitor));
	return result;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

bool shared_is_up(const struct shared_sandbox *sandbox)
{
	return sandbox->pidfd >= 0 && !await_message(sandbox->pidfd, -1, 0);
}

bool shared_ends(const struct shared_sandbox *sandbox)
{
	return sandbox->pidfd < 0 || await_message(sandbox->pidfd, -1, ENDING_MS);
}

bool shared_has_starter(const struct shared_view *view)
{
	return !await_message(view->pidfd, -1, 0);
}

void shared_lower(struct shared_sandbox *sandbox)
{
	if (sandbox->pidfd >= 0) {
		pidfd_kill(sandbox->pidfd);
		linger_add(take_fd(&sandbox->pidfd), &(struct cgroup){ 0 });
	}
	close_fd(&sandbox->control_fd);
}

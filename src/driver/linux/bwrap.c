/* Drives the external program bubblewrap through its descriptor interfaces: the options go through --args, the filter
 * through --seccomp, synthesised files through --ro-bind-data, so that none of it shows in a process list. bubblewrap
 * runs as the command of a subreaper init, which supervises and ends it like any other. */
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/compat.h"
#include "base/text.h"
#include "driver/linux/plan.h"
#include "driver/linux/memory-watch.h"
#include "driver/linux/idmap.h"
#include "profile/bwrap.h"

enum { ARGS_FD = 3, SECCOMP_FD = 4, STATUS_FD = 5, TEXT_FD = 6 };
_Static_assert(TEXT_FD - ARGS_FD + BWRAP_TEXTS_MAX + 2 < LAUNCH_PASS_MAX, "all that is handed over has a place, and its end");
#define READY_SECONDS 30        /* for its namespaces to be made: far more than it ever takes */

static const char *const programs[] = { "/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap" };

static int memory_of(const void *bytes, size_t length)
{
	auto_close int fd = memfd_create("cordon", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("cordon", MFD_CLOEXEC);
	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return take_fd(&fd);
}

static int memory_of_arguments(struct arena *arena, const struct strings *arguments)
{
	size_t length = 0, at = 0;
	for (size_t i = 0; i < arguments->count; i++)
		length += strlen(arguments->items[i]) + 1;
	char *bytes = arena_alloc(arena, length);
	if (!bytes)
		return -1;
	for (size_t i = 0; i < arguments->count; i++) {
		size_t size = strlen(arguments->items[i]) + 1;
		memcpy(bytes + at, arguments->items[i], size);
		at += size;
	}
	return memory_of(bytes, length);
}

/* Its end; ours goes to *ret_ours. Not a pipe, which would raise a signal when it has no reader any more. */
static int make_channel(int *ret_ours)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	*ret_ours = ends[0];
	return ends[1];
}

static int fill_descriptors(struct arena *arena, const struct bwrap_plan *plan, const struct launch_seal *seal,
                            struct launch *launch, struct driver_held *held, struct cordon_error *err)
{
	int *fds = arena_alloc(arena, LAUNCH_PASS_MAX * sizeof(*fds));
	size_t count = 0;
	if (!fds)
		return fail_oom(err);
	fds[count++] = memory_of_arguments(arena, &plan->arguments);
	fds[count++] = memory_of(seal->filter, seal->filter_length * sizeof(*seal->filter));
	fds[count++] = memory_of("", 0);
	for (size_t i = 0; i < plan->text_count; i++)
		fds[count++] = memory_of(plan->texts[i].text, strlen(plan->texts[i].text));
	if (launch->listener_count) {
		fds[count++] = make_channel(&launch->ready_fd);
		fds[count++] = make_channel(&launch->go_fd);
	}
	*held = (struct driver_held){ fds, count };
	for (size_t i = 0; i < count; i++) {
		if (fds[i] < 0)
			return fail(err, CORDON_E_INTERNAL, errno, "memfd_create",
			            "cannot hand the walls to bubblewrap");
		launch->pass[i] = fds[i];
	}
	launch->pass[count] = -1;
	launch->report_fd = fcntl(fds[STATUS_FD - ARGS_FD], F_DUPFD_CLOEXEC, 3);
	return launch->report_fd < 0 ? fail(err, CORDON_E_INTERNAL, errno, "bwrap", "cannot keep bubblewrap's report") :
	                               0;
}

/* bubblewrap reports an exit code only if it came as far as starting the program; its own failures are status 1,
 * too. */
static int conclude(const struct launch *launch, int status, const char *messages, struct cordon_error *err)
{
	char report[1024];
	if (!WIFEXITED(status) || WEXITSTATUS(status) == 0)
		return 0;
	ssize_t length = pread(launch->report_fd, report, sizeof(report) - 1, 0);
	report[length > 0 ? length : 0] = '\0';
	if (strstr(report, "\"exit-code\""))
		return 0;
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "bwrap", "bubblewrap could not raise the walls: %.*s",
	     (int)strcspn(messages, "\n"), messages);
	fail_boundary(err, "filesystem");
	return fail_remedy(err, "run `cordon doctor` to see what this machine is missing, or choose another driver");
}

/* ---- its network ------------------------------------------------------------------------------------------------ */

static int has_ended(struct cordon_error *err)
{
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "bwrap",
	     "bubblewrap ended before the command's network was there");
	fail_boundary(err, "network");
	return fail_remedy(err, "--net none gives the reason; run `cordon doctor` to see what this machine is missing");
}

/* "child-pid": 123 of what it tells when its namespaces are there. */
static long read_child(int fd, struct cordon_error *err)
{
	char text[1024] = "";
	size_t length = 0;
	do {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		int waited = poll(&ready, 1, READY_SECONDS * 1000);
		ssize_t more = waited > 0 ? read(fd, text + length, sizeof(text) - 1 - length) : waited;
		if (waited < 0 && errno == EINTR)
			continue;
		if (more <= 0)
			break;
		length += (size_t)more;
		text[length] = '\0';
	} while (length < sizeof(text) - 1 && !strchr(text, '}'));
	const char *key = strstr(text, "\"child-pid\": ");
	long pid = key ? strtol(key + strlen("\"child-pid\": "), NULL, 10) : 0;
	return pid > 0 && strchr(text, '}') ? pid : has_ended(err);
}

/* It has made its namespaces and waits; the listeners are made in there, and then it continues. */
static int enter(struct launch *launch, struct cordon_error *err)
{
	char path[64];
	if (launch->ready_fd < 0)
		return 0;
	long pid = read_child(launch->ready_fd, err);
	if (pid < 0)
		return -1;
	auto_close int maker = (int)syscall(SYS_pidfd_open, pid, 0);
	snprintf(path, sizeof(path), "/proc/%ld/ns/net", pid);
	auto_close int network = maker < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	if (network < 0 && (errno == ENOENT || errno == ESRCH))
		return has_ended(err);
	/* The one that the network belongs to; the command may be in another one beneath. */
	auto_close int user = network < 0 ? -1 : ioctl(network, NS_GET_USERNS);
	if (user < 0) {
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, errno, path,
		     "cannot reach the network that bubblewrap made");
		fail_boundary(err, "network");
		return fail_remedy(err, "bubblewrap must not be setuid root; or choose --driver namespaces");
	}
	if (launch_visit(launch, user, network, maker, err) < 0)
		return -1;
	if (send(launch->go_fd, "", 1, MSG_NOSIGNAL) != 1)
		return fail(err, CORDON_E_INTERNAL, errno, "bwrap", "cannot release bubblewrap to start the command");
	return 0;
}

/* bubblewrap itself cannot tell "not found" from "failed", so the program is looked for first. */
static int find_program(const struct profile *profile, struct cordon_error *err)
{
	for (size_t i = 0; i < profile->candidates.count; i++)
		if (access(profile->candidates.items[i], X_OK) == 0 || profile->candidates.items[i][0] != '/')
			return 0;
	return fail(err, CORDON_E_PROGRAM_NOT_FOUND, 0, profile->program, "no such program is visible inside");
}

/* bubblewrap would try to make what it is to cover and cannot in /proc, where kernels differ in what there is. */
static struct mount_plan without_missing(const struct profile *profile)
{
	struct mount_plan plan = profile->mounts;
	plan.count = 0;
	for (size_t i = 0; i < profile->mounts.count; i++) {
		const struct mount_op *op = &profile->mounts.ops[i];
		bool missing =
			op->kind == MOUNT_MASK && path_within(op->target, "/proc") && access(op->target, F_OK) < 0;
		if (!missing)
			plan.ops[plan.count++] = *op;
	}
	return plan;
}

static int prepare(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
                   struct launch *launch, struct driver_held *held, struct cordon_error *err)
{
	const char *program = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(programs) && !program; i++)
		if (access(programs[i], X_OK) == 0)
			program = programs[i];
	if (!program) {
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, ENOENT, "bwrap", "bubblewrap is not installed");
		return fail_remedy(err, "install the package bubblewrap, or choose another driver");
	}
	if (profile->walls & WALL_BIT(PROGRAMS))
		return fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "programs",
		            "this driver cannot hold a list of programs that may start");
	struct bwrap_plan plan;
	struct launch_seal seal;
	if (find_program(profile, err) < 0 || driver_seal(arena, profile, facts, &seal, err) < 0)
		return -1;
	uint32_t uid = facts->caller_is_root ? IDMAP_INSIDE : facts->uid,
		 gid = facts->caller_is_root ? IDMAP_INSIDE : facts->gid;
	struct profile rendered = *profile;
	rendered.mounts = without_missing(profile);
	if (bwrap_render(arena, &rendered, uid, gid, SECCOMP_FD, TEXT_FD, &plan) < 0)
		return fail_oom(err);
	struct strings argv = { 0 }, candidates = { 0 };
	if (strings_add(arena, &argv, program) < 0 || strings_add(arena, &argv, "--args") < 0 ||
	    strings_add(arena, &argv, "3") < 0 || strings_add(arena, &argv, "--json-status-fd") < 0 ||
	    strings_add(arena, &argv, "5") < 0 || strings_add(arena, &candidates, program) < 0)
		return fail_oom(err);
	int next = TEXT_FD + (int)plan.text_count;
	if (profile->egress.count && (strings_add(arena, &argv, "--info-fd") < 0 ||
	                              strings_add(arena, &argv, arena_printf(arena, "%d", next)) < 0 ||
	                              strings_add(arena, &argv, "--block-fd") < 0 ||
	                              strings_add(arena, &argv, arena_printf(arena, "%d", next + 1)) < 0))
		return fail_oom(err);
	if (strings_add(arena, &argv, "--") < 0)
		return fail_oom(err);
	/* bubblewrap looks for the program by itself; where there is but one path to start it by, that is its name. */
	const char *name = profile->candidates.count == 1 ? profile->candidates.items[0] : profile->argv.items[0];
	for (size_t i = 0; i < profile->argv.count; i++)
		if (strings_add(arena, &argv, i ? profile->argv.items[i] : name) < 0)
			return fail_oom(err);
	driver_set_common(profile, launch);
	launch->cwd = "/";
	launch->argv = argv.items;
	launch->candidates = candidates.items;
	launch->check_program = false;
	return fill_descriptors(arena, &plan, &seal, launch, held, err);
}

static void describe(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
                     const struct launch *launch, const char *isolation[CORDON_WALL_MAX])
{
	(void)arena;
	(void)launch;
	const struct driver_mechanism rows[] = {
		{ CORDON_WALL_FILESYSTEM, "bubblewrap" },
		{ CORDON_WALL_PROTECTED, "a check at the end" },
		{ CORDON_WALL_MASKED, "bubblewrap" },
		{ CORDON_WALL_SOCKETS, "bubblewrap" },
		{ CORDON_WALL_PROC, "bubblewrap" },
		{ CORDON_WALL_DEVICES, "bubblewrap" },
		{ CORDON_WALL_PROCESSES, "bubblewrap" },
		{ CORDON_WALL_NETWORK, profile->egress.count ? "bubblewrap, proxy" : "bubblewrap" },
		{ CORDON_WALL_IPC, "bubblewrap" },
		{ CORDON_WALL_HOSTNAME, "bubblewrap" },
		{ CORDON_WALL_CGROUP_VIEW, "bubblewrap, where the kernel can" },
		{ CORDON_WALL_TERMINAL, "bubblewrap, seccomp" },
		{ CORDON_WALL_DESCRIPTORS, "close_range, pipes" },
		{ CORDON_WALL_PRIVILEGES, "bubblewrap" },
		{ CORDON_WALL_IDENTITY,
		  facts->caller_is_root ? "caller's user, without privileges" : "caller's user, unprivileged" },
		{ CORDON_WALL_USER_NAMESPACES, "seccomp" },
		{ CORDON_WALL_KERNEL_SURFACE, "seccomp" },
		{ CORDON_WALL_SPAWN, "seccomp" },
		{ CORDON_WALL_KEYRING, "seccomp" },
		{ CORDON_WALL_LIFETIME, "bubblewrap, init" },
		{ CORDON_WALL_LIMIT_MEMORY, MEMORY_WATCH_TEXT },
		{ CORDON_WALL_LIMIT_TIME, "supervisor" },
		{ CORDON_WALL_LIMIT_OUTPUT, "supervisor" },
		{ CORDON_WALL_LIMIT_FILES, "rlimit" },
	};
	driver_describe(profile, rows, ARRAY_SIZE(rows), isolation);
}

const struct linux_driver driver_bwrap = {
	.driver = { .name = "bwrap",
	            .holds_writes = true,
	            .private_root = true,
	            .network_namespace = true,
	            .cannot = WALL_BIT(FILESYSTEM_SECOND) | WALL_BIT(PROGRAMS),
	            LINUX_FUNCTIONS },
	.helpers = 3, /* init, bubblewrap, and its own pid 1 */
	.prepare = prepare,
	.enter = enter,
	.conclude = conclude,
	.describe = describe,
};

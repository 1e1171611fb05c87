/* The default driver: every kind of namespace, a private root, Landlock as a second layer, seccomp. No external
 * program and no privilege is needed.
 *
 * A root caller's command runs as an unprivileged user: a process in between becomes that user, and what was granted
 * is mounted with its owners mapped, so that files on disk keep the caller's ownership. Where a filesystem cannot be
 * mapped so, the command keeps the caller's user, without its privileges, and `isolation` says so. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <fcntl.h>

#include "base/compat.h"
#include "driver/linux/plan.h"
#include "driver/linux/shared.h"
#include "driver/linux/memory-watch.h"
#include "driver/linux/idmap.h"
#include "driver/linux/layers.h"
#include "driver/linux/skeleton.h"
#include "driver/linux/control.h"

/* Bound on the root's own tmpfs, which holds mount points and a few small files. */
#define ROOT_BYTES (4u << 20)
#define HOST_INSIDE "cordon"

static const struct {
	enum cordon_wall wall;
	uint64_t flag;
} namespaces[] = {
	{ CORDON_WALL_PROCESSES, CLONE_NEWPID },
	{ CORDON_WALL_NETWORK, CLONE_NEWNET },
	{ CORDON_WALL_IPC, CLONE_NEWIPC },
	{ CORDON_WALL_HOSTNAME, CLONE_NEWUTS },
	{ CORDON_WALL_CGROUP_VIEW, CLONE_NEWCGROUP },
	{ CORDON_WALL_FILESYSTEM, CLONE_NEWNS },
};

/* ---- the new mount API ------------------------------------------------------------------------------------------ */

static pthread_once_t mount_api_once = PTHREAD_ONCE_INIT;
static const char *missing_call;

/* Each call is asked with arguments that it never takes. */
static void ask_mount_api(void)
{
	static const struct {
		const char *name;
		long number;
	} calls[] = {
		{ "open_tree", SYS_open_tree }, { "move_mount", SYS_move_mount },
		{ "fsopen", SYS_fsopen },       { "fsconfig", SYS_fsconfig },
		{ "fsmount", SYS_fsmount },     { "mount_setattr", SYS_mount_setattr },
	};
	for (size_t i = 0; i < ARRAY_SIZE(calls) && !missing_call; i++)
		if (syscall(calls[i].number, -1L, -1L, -1L, -1L, -1L) < 0 && errno == ENOSYS)
			missing_call = calls[i].name;
}

static int check_mount_api(struct cordon_error *err)
{
	pthread_once(&mount_api_once, ask_mount_api);
	if (!missing_call)
		return 0;
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, ENOSYS, missing_call,
	     "a private root needs this call of the mount API");
	fail_boundary(err, "filesystem");
	return fail_remedy(
		err, "use Linux 5.14 or later, in a container with a seccomp profile that knows the call, or choose "
		     "--driver landlock");
}

/* ---- root callers ------------------------------------------------------------------------------------------------ */

/* The owner of the directory: root's own files, or those of the user whose project root was called in. */
static int open_one(const char *source)
{
	struct stat info;
	auto_close int tree = (int)syscall(SYS_open_tree, AT_FDCWD, source,
	                                   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	int user_namespace = tree < 0 || fstat(tree, &info) < 0 ? -1 : idmap_namespace(info.st_uid, info.st_gid);
	if (user_namespace < 0)
		return -1;
	struct mount_attr attributes = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)user_namespace };
	if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof(attributes)) < 0)
		return -1;
	return take_fd(&tree);
}

bool driver_maps_owners(const struct mount_op *op)
{
	return op->kind == MOUNT_BIND && (op->flags & (MOUNT_GRANTED | MOUNT_OWNED));
}

/* Of a package cache, which a command can do without. */
static void open_layer(const struct mount_op *op, struct launch_layer *layer, int fds[2])
{
	layer->source_tree = fds[0] = open_one(op->source);
	layer->directory_tree = fds[1] = layer->directory ? open_one(layer->directory) : -1;
}

/* The caller's own files as detached mounts with mapped owners. False if one of them cannot be had. */
static bool open_mapped(struct arena *arena, struct launch_root *root, struct launch_layer *layers,
                        struct driver_held *held)
{
	size_t count = root->count + 1 + (layers ? 2 * root->count : 0);
	int *trees = arena_alloc(arena, count * sizeof(*trees));
	if (!trees)
		return false;
	for (size_t i = 0; i < count; i++)
		trees[i] = -1;
	*held = (struct driver_held){ trees, count };
	bool all = true;
	for (size_t i = 0; i < root->count && all; i++) {
		const struct mount_op *op = &root->ops[i];
		if (op->kind == MOUNT_LAYER && layers)
			open_layer(op, &layers[i], &trees[root->count + 1 + 2 * i]);
		if (!driver_maps_owners(op))
			continue;
		trees[i] = open_one(op->source);
		all = trees[i] >= 0 || (op->flags & MOUNT_OPTIONAL);
	}
	if (all && root->skeleton)
		all = (trees[root->count] = open_one(root->skeleton)) >= 0;
	if (!all) {
		driver_release(held);
		for (size_t i = 0; layers && i < root->count; i++)
			layers[i].source_tree = layers[i].directory_tree = -1;
		return false;
	}
	root->trees = trees;
	root->skeleton_tree = trees[root->count];
	return true;
}

static const char *id_map(struct arena *arena, uint32_t inside, uint32_t outside)
{
	return arena_printf(arena, "%u %u 1\n", inside, outside);
}

static int set_identity(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
                        struct launch *launch, struct launch_root *root, struct launch_layer *layers,
                        struct driver_held *held, struct cordon_error *err)
{
	uint32_t inside_uid = facts->uid, inside_gid = facts->gid, outside_uid = facts->uid, outside_gid = facts->gid;
	if (facts->caller_is_root) {
		inside_uid = inside_gid = IDMAP_INSIDE;
		if ((profile->walls & WALL_BIT(IDENTITY)) && open_mapped(arena, root, layers, held)) {
			launch->become = true;
			outside_uid = outside_gid = launch->uid = launch->gid = IDMAP_OUTSIDE;
		}
	}
	launch->uid_map = id_map(arena, inside_uid, outside_uid);
	launch->gid_map = id_map(arena, inside_gid, outside_gid);
	return launch->uid_map && launch->gid_map ? 0 : fail_oom(err);
}

/* The slot's lock is closed after the start, when init has it. */
static int hold_lock(struct arena *arena, const struct launch_root *root, struct driver_held *held,
                     struct cordon_error *err)
{
	int *fds = arena_alloc(arena, (held->count + 1) * sizeof(*fds));
	if (!fds) {
		cleanup_close(&(int){ root->layers_lock });
		return fail_oom(err);
	}
	if (held->count)
		memcpy(fds, held->fds, held->count * sizeof(*fds));
	fds[held->count] = root->layers_lock;
	*held = (struct driver_held){ fds, held->count + 1 };
	return 0;
}

static int prepare(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
                   struct launch *launch, struct driver_held *held, struct cordon_error *err)
{
	struct launch_root *root = arena_alloc(arena, sizeof(*root));
	if (!root)
		return fail_oom(err);
	if (check_mount_api(err) < 0)
		return -1;
	struct mount_plan plan;
	if (skeleton_get(arena, facts->data_dir, &profile->mounts, &root->skeleton, &plan) < 0)
		plan = profile->mounts;
	root->ops = plan.ops;
	root->count = plan.count;
	root->skeleton_tree = -1;
	root->root_bytes = ROOT_BYTES;
	driver_set_common(profile, launch);
	launch->namespaces = CLONE_NEWUSER;
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
		if (profile->walls & (UINT32_C(1) << namespaces[i].wall))
			launch->namespaces |= namespaces[i].flag;
	if (launch->namespaces & CLONE_NEWPID)
		launch->init_mode = INIT_PID_NAMESPACE;
	if (launch->namespaces & CLONE_NEWUTS)
		launch->hostname = HOST_INSIDE;
	launch->loopback = launch->namespaces & CLONE_NEWNET;
	if (launch->namespaces & CLONE_NEWNS)
		launch->root = root;
	else
		launch->cwd_fd = facts->cwd_fd;
	if ((profile->walls & WALL_BIT(PROGRAMS)) && !facts->landlock_abi) {
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "landlock",
		     "only listed programs may start, and that needs Landlock, which this kernel does not offer");
		fail_boundary(err, "programs");
		return fail_remedy(err, "add landlock to the kernel's lsm= list, or use Linux 5.13 or later");
	}
	struct launch_layer *layers;
	if (layers_prepare(arena, profile, root, &layers) < 0)
		return fail_oom(err);
	int identity = set_identity(arena, profile, facts, launch, root, layers, held, err);
	if (hold_lock(arena, root, held, identity < 0 ? NULL : err) < 0 || identity < 0)
		return -1;
	return driver_seal(arena, profile, facts, &launch->seal, err);
}

static void describe(struct arena *arena, const struct profile *profile, const struct driver_facts *facts,
                     const struct launch *launch, const char *isolation[CORDON_WALL_MAX])
{
	const char *landlock = driver_landlock_text(arena, launch);
	const char *identity = launch->become ? "unprivileged user, owners mapped"
	                       : facts->caller_is_root ? "caller's user (the filesystem cannot map owners)"
	                                               : "caller's user, unprivileged";
	const struct driver_mechanism rows[] = {
		{ CORDON_WALL_FILESYSTEM, "mount namespace" },
		{ CORDON_WALL_FILESYSTEM_SECOND, landlock },
		{ CORDON_WALL_PROTECTED, "mounts, and a check at the end" },
		{ CORDON_WALL_MASKED, driver_masked_text(arena, profile) },
		{ CORDON_WALL_SOCKETS, "mounts" },
		{ CORDON_WALL_PROC, "procfs of its own pid namespace" },
		{ CORDON_WALL_DEVICES, "mounts" },
		{ CORDON_WALL_PROCESSES, "pid namespace" },
		{ CORDON_WALL_NETWORK,
		  profile->network == NETWORK_HOSTS ? "network namespace, proxy" : "network namespace" },
		{ CORDON_WALL_IPC, "ipc namespace" },
		{ CORDON_WALL_HOSTNAME, "uts namespace" },
		{ CORDON_WALL_CGROUP_VIEW, "cgroup namespace, no cgroupfs" },
		{ CORDON_WALL_TERMINAL, "own session, seccomp" },
		{ CORDON_WALL_DESCRIPTORS, "close_range, pipes" },
		{ CORDON_WALL_PRIVILEGES, "no capabilities, no_new_privs" },
		{ CORDON_WALL_IDENTITY, identity },
		{ CORDON_WALL_USER_NAMESPACES, "seccomp" },
		{ CORDON_WALL_KERNEL_SURFACE, "seccomp" },
		{ CORDON_WALL_SPAWN, "seccomp" },
		{ CORDON_WALL_PROGRAMS, "Landlock, mounts without execution" },
		{ CORDON_WALL_KEYRING, "own session keyring, seccomp" },
		{ CORDON_WALL_LIFETIME, "pid namespace" },
		{ CORDON_WALL_LIMIT_MEMORY, MEMORY_WATCH_TEXT },
		{ CORDON_WALL_LIMIT_PROCESSES, facts->caller_is_root && !launch->become ? "none" : "rlimit" },
		{ CORDON_WALL_LIMIT_TIME, "supervisor" },
		{ CORDON_WALL_LIMIT_OUTPUT, "supervisor" },
		{ CORDON_WALL_LIMIT_FILES, "rlimit" },
	};
	driver_describe(profile, rows, ARRAY_SIZE(rows), isolation);
}

const struct linux_driver driver_namespaces = {
	.driver = {
		.name = "namespaces",
		.holds_writes = true,
		.private_root = true,
		.network_namespace = true,
		.answers_offline = true,
		.keeps_names = true,
		.layers = true,
		.tells_renames = true,
		.required = WALLS_ALL & ~(WALL_BIT(FILESYSTEM_SECOND) | WALL_BIT(LIMIT_MEMORY) |
		                          WALL_BIT(LIMIT_PROCESSES) | WALL_BIT(LIMIT_CPU)),
		.keeping = &shared_keeping,
		.network = linux_network,
		LINUX_FUNCTIONS,
	},
	.own_user = true,
	.prepare = prepare,
	.describe = describe,
};

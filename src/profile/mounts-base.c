/* The base of the private root: the system's files, those that are made up for the command, /proc, /dev, and the places
 * that are its own. mounts.c says in which order. */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "policy/egress.h"
#include "profile/mounts.h"

#define RUN_BYTES_MAX (64ull << 20)

/* With a network of listed hosts every name is asked for at the proxy: what another service or the host's own list
 * would answer, could not be reached from inside. Without a network it is asked for there as well, and refused; the
 * host's own list stays, for names that lead to the sandbox's own loopback. */
static const struct {
	const char *path, *text;
	bool is_offline;
} network_files[] = {
	{ "/etc/resolv.conf", "nameserver " EGRESS_ADDRESS "\n", true },
	{ "/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"
	                        "protocols: files\nservices: files\nethers: files\nrpc: files\n", true },
	{ "/etc/hosts", "127.0.0.1 localhost cordon\n::1 localhost ip6-localhost ip6-loopback\n", false },
};

static bool is_replaced(const struct profile_input *input, const char *path)
{
	enum network_mode mode = input->capabilities->network;
	for (size_t i = 0; i < ARRAY_SIZE(network_files); i++)
		if (!strcmp(network_files[i].path, path))
			return mode == NETWORK_HOSTS ||
			       (mode == NETWORK_NONE && input->answers_offline && network_files[i].is_offline);
	return false;
}

int mounts_add_host(struct arena *arena, const struct profile_input *input, struct mount_plan *plan, unsigned exec)
{
	for (size_t i = 0; i < input->host.count; i++) {
		const struct host_entry *entry = &input->host.items[i];
		if (is_replaced(input, entry->path))
			continue;
		if (entry->kind == HOST_LINK) {
			if (!mounts_add(arena, plan, MOUNT_LINK, entry->path, entry->link, 0))
				return -1;
			continue;
		}
		if (entry->kind == HOST_PARTS) {
			if (!mounts_add(arena, plan, MOUNT_DIRECTORY, entry->path, NULL, 0))
				return -1;
			continue;
		}
		if (mounts_add_point(arena, plan, entry->path, entry->kind == HOST_DIRECTORY) < 0)
			return -1;
		struct mount_op *op = mounts_add(arena, plan, MOUNT_BIND, entry->path, entry->source,
		                                 MOUNT_READ_ONLY | MOUNT_OPTIONAL | MOUNT_BASE | exec);
		if (!op)
			return -1;
		op->size = entry->stamp;
	}
	return 0;
}

static int add_accounts(struct arena *arena, const struct profile_input *input, struct mount_plan *plan)
{
	const char *passwd = arena_printf(arena,
	                                  "root:x:0:0:root:/root:/bin/sh\n%s:x:%u:%u::%s:/bin/"
	                                  "sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
	                                  input->user, input->uid, input->gid, input->home);
	const char *group = arena_printf(arena, "root:x:0:\n%s:x:%u:\nnogroup:x:65534:\n", input->user, input->gid);
	if (!passwd || !group || !mounts_add(arena, plan, MOUNT_TEXT, "/etc/passwd", passwd, 0) ||
	    !mounts_add(arena, plan, MOUNT_TEXT, "/etc/group", group, 0))
		return -1;
	return 0;
}

/* Where the name leads on the host; a link is not mounted on. NULL: there is none, or it is not replaced. */
static const char *real_path(const struct profile_input *input, const char *path)
{
	for (size_t i = 0; is_replaced(input, path) && i < input->host.count; i++)
		if (!strcmp(input->host.items[i].path, path))
			return input->host.items[i].source;
	return NULL;
}

static bool is_granted(const struct profile_input *input, const char *path)
{
	const struct places *const grants[] = { &input->reads, &input->writes };
	for (size_t i = 0; i < ARRAY_SIZE(grants); i++)
		for (size_t j = 0; j < grants[i]->count; j++)
			if (grants[i]->items[j].is_directory && path_within(path, grants[i]->items[j].path))
				return true;
	return false;
}

/* In /run, which is the command's own: where a link of the host's leads that is shown. */
static int add_text_in_run(struct arena *arena, struct mount_plan *plan, const char *real, const char *text)
{
	const char *parent = arena_strndup(arena, real, (size_t)(strrchr(real, '/') - real));
	return mounts_add(arena, plan, MOUNT_DIRECTORY, parent, NULL, 0) &&
	       mounts_add(arena, plan, MOUNT_TEXT, real, text, 0) ? 0 : -1;
}

int mounts_add_texts(struct arena *arena, const struct profile_input *input, struct mount_plan *plan)
{
	if (!mounts_add(arena, plan, MOUNT_DIRECTORY, "/etc", NULL, 0) || add_accounts(arena, input, plan) < 0 ||
	    (input->git_config && !mounts_add(arena, plan, MOUNT_TEXT, "/etc/gitconfig", input->git_config, 0)) ||
	    (input->git_ignore && !mounts_add(arena, plan, MOUNT_TEXT, "/etc/gitignore", input->git_ignore, 0)))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(network_files); i++)
		if (is_replaced(input, network_files[i].path) &&
		    !mounts_add(arena, plan, MOUNT_TEXT, network_files[i].path, network_files[i].text, 0))
			return -1;
	return 0;
}

int mounts_replace_texts(struct arena *arena, const struct profile_input *input, struct mount_plan *plan)
{
	const unsigned flags = MOUNT_READ_ONLY | MOUNT_OPTIONAL;
	for (size_t i = 0; i < ARRAY_SIZE(network_files); i++) {
		const char *path = network_files[i].path, *text = network_files[i].text, *real = real_path(input, path);
		bool granted = real && is_granted(input, real), whole = real && input->view == VIEW_HOST_READONLY;
		bool linked = whole || (real && is_granted(input, path));
		bool in_run = linked && !granted && path_within(real, "/run");
		if (in_run && add_text_in_run(arena, plan, real, text) < 0)
			return -1;
		if (!in_run && (granted || whole) && !mounts_add(arena, plan, MOUNT_REPLACE, real, text, flags))
			return -1;
	}
	return 0;
}

int mounts_add_proc(struct arena *arena, const struct profile_input *input, struct mount_plan *plan)
{
	/* Unreadable: physical memory, the keys of all users, kernel timers, and the trigger that reboots. */
	static const char *const masked[] = { "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sysrq-trigger",
	                                      "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup",
	                                      "/proc/vmallocinfo", "/proc/slabinfo", "/proc/kallsyms",
	                                      "/proc/pagetypeinfo" };
	static const char *const frozen[] = { "/proc/sys", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/pressure" };
	/* The rest is accessible to root only; a root caller's command may have to stay root, without its
	 * capabilities. */
	size_t mask_count = input->abilities.caller_is_root ? ARRAY_SIZE(masked) : 4;
	size_t freeze_count = input->abilities.caller_is_root ? ARRAY_SIZE(frozen) : 1;
	if (!mounts_add(arena, plan, MOUNT_PROC, "/proc", NULL, 0))
		return -1;
	for (size_t i = 0; i < freeze_count; i++)
		if (!mounts_add(arena, plan, MOUNT_FREEZE, frozen[i], NULL, MOUNT_READ_ONLY | MOUNT_OPTIONAL))
			return -1;
	for (size_t i = 0; i < mask_count; i++)
		if (!mounts_add(arena, plan, MOUNT_MASK, masked[i], NULL, MOUNT_READ_ONLY | MOUNT_OPTIONAL))
			return -1;
	return 0;
}

static const char *const device_nodes[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
                                            "/dev/tty" };

static int add_device_points(struct arena *arena, const struct profile_input *input, struct mount_plan *plan)
{
	static const char *const links[][2] = { { "/dev/fd", "/proc/self/fd" },
		                                { "/dev/stdin", "/proc/self/fd/0" },
		                                { "/dev/stdout", "/proc/self/fd/1" },
		                                { "/dev/stderr", "/proc/self/fd/2" },
		                                { "/dev/ptmx", "pts/ptmx" } };
	if (!mounts_add(arena, plan, MOUNT_DIRECTORY, "/dev", NULL, 0) ||
	    !mounts_add(arena, plan, MOUNT_DIRECTORY, "/dev/pts", NULL, 0) ||
	    !mounts_add(arena, plan, MOUNT_DIRECTORY, "/dev/shm", NULL, 0))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(device_nodes); i++)
		if (!mounts_add(arena, plan, MOUNT_FILE, device_nodes[i], NULL, 0))
			return -1;
	for (size_t i = 0; i < input->devices.count; i++)
		if (!mounts_add(arena, plan, input->devices.items[i].is_directory ? MOUNT_DIRECTORY : MOUNT_FILE,
		         input->devices.items[i].path, NULL, 0))
			return -1;
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (!mounts_add(arena, plan, MOUNT_LINK, links[i][0], links[i][1], 0))
			return -1;
	return 0;
}

int mounts_add_devices(struct arena *arena, const struct profile_input *input, struct mount_plan *plan, unsigned exec)
{
	for (size_t i = 0; i < ARRAY_SIZE(device_nodes); i++)
		if (!mounts_add(arena, plan, MOUNT_BIND, device_nodes[i], device_nodes[i],
		                MOUNT_DEVICE | MOUNT_READ_ONLY))
			return -1;
	for (size_t i = 0; i < input->devices.count; i++)
		if (!mounts_add(arena, plan, MOUNT_BIND, input->devices.items[i].path, input->devices.items[i].path,
		         MOUNT_DEVICE | MOUNT_READ_ONLY))
			return -1;
	return mounts_add(arena, plan, MOUNT_PTS, "/dev/pts", NULL, 0) ?
	               mounts_add_scratch(arena, plan, "/dev/shm", input->capabilities->limits.tmp_bytes, 01777, exec) :
	               -1;
}

static bool is_any_beneath(const struct places *places, const char *root)
{
	for (size_t i = 0; i < places->count; i++)
		if (path_within(places->items[i].path, root) ||
		    (places->items[i].alias && path_within(places->items[i].alias, root)))
			return true;
	return false;
}

/* Without a grant in there it is a link to /tmp: one mount less. */
bool mounts_has_var_tmp(const struct profile_input *input)
{
	struct place workspace = input->workspace;
	return input->view == VIEW_HOST_READONLY || path_within(input->home, "/var/tmp") ||
	       is_any_beneath(&(struct places){ &workspace, 1, 1 }, "/var/tmp") ||
	       is_any_beneath(&input->reads, "/var/tmp") || is_any_beneath(&input->writes, "/var/tmp") ||
	       is_any_beneath(&input->sockets, "/var/tmp") || path_within(input->data_dir, "/var/tmp");
}

/* Beneath what is mounted after the base? Then so is a mount point there. */
static bool is_in_memory(const struct profile_input *input, const char *path)
{
	return path_within(path, "/tmp") || path_within(path, "/dev/shm") ||
	       (mounts_has_var_tmp(input) && path_within(path, "/var/tmp"));
}

int mounts_add_points(struct arena *arena, const struct profile_input *input, struct mount_plan *plan)
{
	static const char *const directories[] = { "/proc", "/tmp", "/run", "/var" };
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		if (!mounts_add(arena, plan, MOUNT_DIRECTORY, directories[i], NULL, 0))
			return -1;
	bool own = mounts_has_var_tmp(input);
	if (!mounts_add(arena, plan, own ? MOUNT_DIRECTORY : MOUNT_LINK, "/var/tmp", own ? NULL : "/tmp", 0) ||
	    (strcmp(input->home, input->workspace.path) && !is_in_memory(input, input->home) &&
	     mounts_add_point(arena, plan, input->home, true) < 0))
		return -1;
	return add_device_points(arena, input, plan);
}

int mounts_add_covers(struct arena *arena, const struct profile_input *input, struct mount_plan *plan)
{
	if (mounts_add_scratch(arena, plan, "/dev", 1 << 20, 0755, 0) < 0 ||
	    add_device_points(arena, input, plan) < 0 || !mounts_add(arena, plan, MOUNT_LOCK, "/dev", NULL, 0) ||
	    !mounts_add(arena, plan, MOUNT_MASK, "/sys/fs/cgroup", NULL, MOUNT_READ_ONLY | MOUNT_OPTIONAL))
		return -1;
	plan->ops[plan->count - 1].is_directory = true;
	return 0;
}

/* Of a session both are the same directory, as where one is a link to the other. */
static int add_one_tmp(struct arena *arena, const struct profile_input *input, struct mount_plan *plan,
                       const char *target, unsigned flags)
{
	if (!input->tmp)
		return mounts_add_scratch(arena, plan, target, input->capabilities->limits.tmp_bytes, 01777, flags);
	struct mount_op *op = mounts_add(arena, plan, MOUNT_BIND, target, input->tmp->path, MOUNT_OWNED | flags);
	if (!op)
		return -1;
	op->device = input->tmp->device;
	op->inode = input->tmp->inode;
	return 0;
}

int mounts_add_tmp(struct arena *arena, const struct profile_input *input, struct mount_plan *plan, unsigned exec)
{
	static const char *const targets[] = { "/tmp", "/var/tmp" };
	for (size_t i = 0; i < (mounts_has_var_tmp(input) ? ARRAY_SIZE(targets) : 1); i++)
		if (add_one_tmp(arena, input, plan, targets[i], exec | (i ? MOUNT_OPTIONAL : 0)) < 0)
			return -1;
	return 0;
}

/* A tmpfs is owned by the command's user. Programs insist on /run/user/UID not being accessible to others. */
int mounts_add_run(struct arena *arena, const struct profile_input *input, struct mount_plan *plan, unsigned exec)
{
	const uint64_t size = input->capabilities->limits.tmp_bytes;
	if (mounts_add_scratch(arena, plan, "/run", size < RUN_BYTES_MAX ? size : RUN_BYTES_MAX, 0755, exec) < 0)
		return -1;
	struct mount_op *op =
		mounts_add(arena, plan, MOUNT_DIRECTORY, arena_printf(arena, "/run/user/%u", input->uid), NULL, 0);
	if (!op)
		return -1;
	op->mode = 0700;
	return 0;
}

int mounts_add_home(struct arena *arena, const struct profile_input *input, struct mount_plan *plan, unsigned exec)
{
	if (!strcmp(input->home, input->workspace.path))
		return 0;
	if (is_in_memory(input, input->home) && mounts_add_point(arena, plan, input->home, true) < 0)
		return -1;
	if (!input->home_source)
		return mounts_add_scratch(arena, plan, input->home, input->capabilities->limits.tmp_bytes, 0700, exec);
	return mounts_add(arena, plan, MOUNT_BIND, input->home, input->home_source, MOUNT_OWNED | exec) ? 0 : -1;
}

/* After the grants, because the home may be the workspace: what is writable by a grant is none of them (host/cache.h).
 * Where a grant covers the home there may be no place for one. */
int mounts_add_caches(struct arena *arena, const struct profile_input *input, struct mount_plan *plan, unsigned exec)
{
	for (size_t i = 0; i < input->caches.count; i++) {
		const struct host_cache *cache = &input->caches.items[i];
		if (mounts_add_point(arena, plan, cache->target, true) < 0)
			return -1;
		struct mount_op *op = mounts_add(arena, plan, MOUNT_LAYER, cache->target, cache->source,
		                                 MOUNT_OWNED | MOUNT_OPTIONAL | exec);
		if (!op)
			return -1;
		op->size =
			input->capabilities->limits.tmp_bytes == UINT64_MAX ? 0 : input->capabilities->limits.tmp_bytes;
		op->layer = cache->name;
		op->device = cache->device;
		op->inode = cache->inode;
	}
	return 0;
}

/* From what the walk found out to the walls of one command. Pure: the same input makes the same profile. */
#include "profile/profile.h"

#include <string.h>

#include "profile/seccomp.h"

const char *const view_names[VIEW_MAX] = { "system", "host-readonly", "bare" };
const char *const mount_kind_names[MOUNT_KIND_MAX] = {
	[MOUNT_DIRECTORY] = "directory", [MOUNT_FILE] = "file",     [MOUNT_LINK] = "link",     [MOUNT_TEXT] = "text",
	[MOUNT_BIND] = "bind",           [MOUNT_SCRATCH] = "scratch", [MOUNT_PROC] = "proc",   [MOUNT_PTS] = "pts",
	[MOUNT_MASK] = "mask",           [MOUNT_FREEZE] = "freeze", [MOUNT_PIN] = "pin",       [MOUNT_LOCK] = "lock",
	[MOUNT_REPLACE] = "replace",     [MOUNT_LAYER] = "layer",
};

#define WALL(name) (UINT32_C(1) << CORDON_WALL_##name)

/* What must hold for every command; the rest depends on what was asked for. */
#define ALWAYS                                                                                                         \
	(WALL(FILESYSTEM) | WALL(FILESYSTEM_SECOND) | WALL(PROTECTED) | WALL(MASKED) | WALL(SOCKETS) | WALL(PROC) |    \
	 WALL(DEVICES) | WALL(PROCESSES) | WALL(IPC) | WALL(HOSTNAME) | WALL(CGROUP_VIEW) | WALL(TERMINAL) |           \
	 WALL(DESCRIPTORS) | WALL(PRIVILEGES) | WALL(IDENTITY) | WALL(USER_NAMESPACES) | WALL(KERNEL_SURFACE) |        \
	 WALL(KEYRING) | WALL(LIFETIME))
_Static_assert(CORDON_WALL_MAX <= 32, "the walls fit one word");

/* None is 0 from here on, and no wall. */
static uint64_t held(uint64_t limit)
{
	return limit == UINT64_MAX ? 0 : limit;
}

static struct limits held_limits(const struct limits *limits)
{
	return (struct limits){
		.memory_bytes = held(limits->memory_bytes),
		.cpu_percent = held(limits->cpu_percent),
		.processes = held(limits->processes),
		.disk_bytes = held(limits->disk_bytes),
		.wall_ms = held(limits->wall_ms),
		.stdout_bytes = held(limits->stdout_bytes),
		.stderr_bytes = held(limits->stderr_bytes),
		.open_files = held(limits->open_files),
		.tmp_bytes = held(limits->tmp_bytes),
	};
}

static uint32_t limit_walls(const struct limits *limits)
{
	const struct limits held = held_limits(limits);
	return (held.memory_bytes ? WALL(LIMIT_MEMORY) : 0) | (held.processes ? WALL(LIMIT_PROCESSES) : 0) |
	       (held.cpu_percent ? WALL(LIMIT_CPU) : 0) | (held.disk_bytes ? WALL(LIMIT_DISK) : 0) |
	       (held.wall_ms ? WALL(LIMIT_TIME) : 0) |
	       (held.stdout_bytes || held.stderr_bytes ? WALL(LIMIT_OUTPUT) : 0) |
	       (held.open_files ? WALL(LIMIT_FILES) : 0);
}

static uint32_t walls(const struct capability_set *capabilities)
{
	uint32_t set = ALWAYS | limit_walls(&capabilities->limits);
	if (capabilities->network != NETWORK_ALL)
		set |= WALL(NETWORK);
	if (!capabilities->spawn)
		set |= WALL(SPAWN);
	if (capabilities->programs.count)
		set |= WALL(PROGRAMS);
	return set;
}

static unsigned seccomp_options(const struct profile_input *input)
{
	const struct capability_set *capabilities = input->capabilities;
	unsigned options = SECCOMP_OWN_LIMITS;
	if (!capabilities->spawn)
		options |= SECCOMP_NO_SPAWN;
	if (capabilities->programs.count)
		options |= SECCOMP_NO_MEMFD;
	if (!input->abilities.network_namespace && capabilities->network != NETWORK_ALL)
		options |= SECCOMP_NO_NETWORK;
	/* Without namespaces, what they would keep apart must not be asked for at all. */
	if (!input->abilities.private_root)
		options |= SECCOMP_NO_UNIX | SECCOMP_AMONG_OTHERS;
	/* Root keeps its user there, and owns what Landlock leaves open. */
	if (!input->abilities.private_root && input->abilities.caller_is_root)
		options |= SECCOMP_NO_ATTRIBUTES;
	for (size_t i = 0; i < input->devices.count; i++)
		options |= seccomp_device_option(input->devices.items[i].path);
	return options;
}

static const char *path_of(const struct strings *environment)
{
	for (size_t i = 0; i < environment->count; i++)
		if (!strncmp(environment->items[i], "PATH=", 5))
			return environment->items[i] + 5;
	return "";
}

/* As a shell would look for it: a name with a slash is a path, any other is looked for along PATH. */
int profile_candidates(struct arena *arena, const char *name, const char *program, const struct strings *environment,
                       struct strings *ret_candidates)
{
	/* NULL-ended even when empty: exec wants it so. */
	struct strings candidates = { .items = arena_alloc(arena, sizeof(char *)) };
	if (!candidates.items)
		return -1;
	bool written = program || strchr(name, '/');
	if (written && strings_add(arena, &candidates, program ? program : name) < 0)
		return -1;
	for (const char *path = written ? "" : path_of(environment); *path;) {
		size_t length = strcspn(path, ":");
		if (length &&
		    strings_add(arena, &candidates, arena_printf(arena, "%.*s/%s", (int)length, path, name)) < 0)
			return -1;
		path += length + (path[length] == ':');
	}
	*ret_candidates = candidates;
	return 0;
}

int profile_make(struct arena *arena, const struct profile_input *input, struct profile *ret_profile)
{
	struct profile profile = {
		.driver = input->abilities.driver,
		.view = input->view,
		.session_id = input->session_id,
		.sandbox_id = input->sandbox_id,
		.workspace = input->workspace.path,
		.cwd = input->cwd,
		.home = input->home,
		.program = input->argv.items[0],
		.argv = input->argv,
		.environment = input->environment,
		.network = input->capabilities->network,
		.spawn = input->capabilities->spawn,
		.tty = input->tty,
		.programs = input->capabilities->programs,
		.limits = held_limits(&input->capabilities->limits),
		.walls = walls(input->capabilities),
		.required = input->required,
		.cgroup = input->cgroup,
		.seccomp = seccomp_options(input),
		.masked = input->masked,
		.sockets = input->sockets,
		.protect = input->protect,
		.data_dir = input->data_dir,
		.unmasked = input->unmasked,
		.layers = input->layers,
	};
	if (profile_candidates(arena, profile.program, input->program, &input->environment, &profile.candidates) < 0)
		return -1;
	if (input->abilities.private_root && profile_make_mounts(arena, input, &profile.mounts) < 0)
		return -1;
	if (profile_make_landlock(arena, input, &profile.landlock) < 0)
		return -1;
	*ret_profile = profile;
	return 0;
}

/* The driver: see macos.h. */
#include "driver/macos/macos.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "driver/machine.h"
#include "driver/proxy.h"
#include "profile/seatbelt.h"

#define TEXT_AT 2       /* of the arguments: the profile */
#define PROBE_WORDS 8
#define BACKLOG 128
#define PROBE_MS 10000
#define PROBE_LOOK_MS 2

static int refuse(struct cordon_error *err, const char *wall, const char *what, const char *remedy)
{
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, SANDBOX_EXEC, "%s", what);
	fail_boundary(err, wall);
	return fail_remedy(err, "%s", remedy);
}

/* ---- probing ----------------------------------------------------------------------------------------------------- */

/* With three descriptors and no other: those that another thread has just made are not marked as closed on exec yet. */
static bool start_quietly(const char *const *argv, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	if (posix_spawn_file_actions_init(&actions))
		return false;
	if (posix_spawnattr_init(&attributes)) {
		posix_spawn_file_actions_destroy(&actions);
		return false;
	}
	bool started = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_CLOEXEC_DEFAULT) == 0;
	for (int fd = 0; started && fd < 3; fd++)
		started = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0) == 0;
	started = started && posix_spawn(ret_pid, argv[0], &actions, &attributes, (char *const *)(uintptr_t)argv,
	                                 environ) == 0;
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return started;
}

/* The status it ends with, without output; -1: it could not be started, or did not end by itself. */
static int run_quietly(const char *const *argv)
{
	pid_t pid, ended = 0;
	int status = -1;
	if (!start_quietly(argv, &pid))
		return -1;
	for (int waited = 0; waited < PROBE_MS && ended == 0; waited += PROBE_LOOK_MS) {
		ended = waitpid(pid, &status, WNOHANG);
		if (ended == 0)
			poll(NULL, 0, PROBE_LOOK_MS);
		else if (ended < 0 && errno == EINTR)
			ended = 0;
	}
	if (ended == 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		return -1;
	}
	return ended == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int check_program(struct cordon_error *err)
{
	struct stat info;
	if (lstat(SANDBOX_EXEC, &info) < 0)
		return refuse(err, "filesystem",
		              "the system's sandbox program is not there; Apple has announced that it will go",
		              "run the command in a Linux machine");
	if (!S_ISREG(info.st_mode) || info.st_uid != 0 || info.st_mode & (S_IWGRP | S_IWOTH))
		return refuse(err, "filesystem", "the system's sandbox program is not root's own",
		              "put the system's back");
	return 0;
}

/* A listener of this process on 127.0.0.1, at a port that the system chooses; -1: there is none. */
static int listen_here(uint16_t *ret_port)
{
	struct sockaddr_in address = { .sin_len = sizeof(address),
		                       .sin_family = AF_INET,
		                       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(address);
	auto_close int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 ||
	    listen(fd, BACKLOG) < 0 || getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		return -1;
	*ret_port = ntohs(address.sin_port);
	return take_fd(&fd);
}

/* What is tried, outside and inside. */
struct attempt {
	const char *words[PROBE_WORDS];
	const char *what;               /* it did not deny */
};

/* Outside it must succeed, or its failing inside says nothing; inside it must end by itself, and fail. `words` are
 * sandbox-exec's, with room after `count`. */
static int try_both(const struct attempt *attempt, const char **words, size_t count, struct cordon_error *err)
{
	if (run_quietly(attempt->words) != 0)
		return refuse(err, "filesystem",
		              "what is tried to see whether walls hold does not work without them either",
		              "see whether cordon's data directory and the system's programs are whole");
	memcpy(words + count, attempt->words, sizeof(attempt->words));
	int inside = run_quietly(words);
	memset(words + count, 0, sizeof(attempt->words));
	return inside > 0 ? 0 : refuse(err, "filesystem", attempt->what, "see `cordon doctor`");
}

/* The one port that the profile lets through. */
static int try_allowed(struct arena *arena, uint16_t port, const char **words, size_t count, struct cordon_error *err)
{
	const char *text = arena_printf(arena, "%u", (unsigned)port);
	const char *const attempt[PROBE_WORDS] = { "/usr/bin/nc", "-z", "-w", "2", "127.0.0.1", text };
	if (!text)
		return fail_oom(err);
	memcpy(words + count, attempt, sizeof(attempt));
	int inside = run_quietly(words);
	memset(words + count, 0, sizeof(attempt));
	return inside == 0 ? 0 : refuse(err, "network",
	                                "the system's sandbox program does not let through the port of cordon's proxy",
	                                "choose --net none or --net all");
}

/* What connected while that was tried is no client of the proxy's. Not more than fits: others may go on connecting. */
static int drain(int listener)
{
	int flags = fcntl(listener, F_GETFL), fd;
	if (flags < 0 || fcntl(listener, F_SETFL, flags | O_NONBLOCK) < 0)
		return -1;
	for (int i = 0; i < BACKLOG && (fd = accept(listener, NULL, NULL)) >= 0; i++)
		close(fd);
	return 0;
}

/* With this very profile, and programs of the system more: one that does nothing must run; listing cordon's own data,
 * writing there, and where not all of the network is granted connecting, must succeed without it and fail with it; and
 * where hosts are listed, connecting to the proxy's port (`allowed`, or 0) must succeed. So what fails later is the
 * command itself, and nothing that it prints is taken for a word of the sandbox program's. `arguments` has room for
 * PROBE_WORDS more. */
static int probe(struct arena *arena, const struct profile *profile, struct strings *arguments, uint16_t allowed,
                 struct cordon_error *err)
{
	static const char more[] =
		"(allow process-exec* file-read* file-test-existence file-map-executable (literal \"/usr/bin/true\")\n"
		"  (literal \"/bin/ls\") (literal \"/usr/bin/touch\") (literal \"/usr/bin/nc\"))\n";
	const char **words = arguments->items, *text = words[TEXT_AT];
	uint16_t denied = 0;
	bool is_walled = profile->network != NETWORK_ALL;
	const char *file = arena_printf(arena, "%s/probe-write", profile->data_dir);
	auto_close int listener = is_walled ? listen_here(&denied) : -1;
	const char *port = arena_printf(arena, "%u", (unsigned)denied);
	const struct attempt attempts[] = {
		{ { "/bin/ls", profile->data_dir },
		  "the system's sandbox program did not deny reading what this profile hides" },
		{ { "/usr/bin/touch", file },
		  "the system's sandbox program did not deny writing outside of the grants" },
		{ { "/usr/bin/nc", "-z", "-w", "2", "127.0.0.1", port },
		  "the system's sandbox program did not deny the network" },
	};
	words[TEXT_AT] = arena_printf(arena, "%s%s", text, more);
	if (!words[TEXT_AT] || !file || !port)
		return fail_oom(err);
	words[arguments->count] = "/usr/bin/true";
	int result = run_quietly(words) == 0 ? 0
	                                     : refuse(err, "filesystem",
	                                              "the system's sandbox program starts nothing with this profile",
	                                              "start cordon outside of another sandbox");
	words[arguments->count] = NULL;
	if (result == 0 && is_walled && listener < 0)
		result = refuse(err, "network", "nothing can be listened for, to see whether the network is denied",
		                "see `cordon doctor`");
	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(attempts) - !is_walled; i++)
		result = try_both(&attempts[i], words, arguments->count, err);
	if (result == 0 && allowed)
		result = try_allowed(arena, allowed, words, arguments->count, err);
	unlink(file);
	words[TEXT_AT] = text;
	return result;
}

/* ---- raising ----------------------------------------------------------------------------------------------------- */

static int refuse_what_cannot_be(const struct profile *profile, struct cordon_error *err)
{
	if (profile->egress.gateway_count)
		return refuse(err, "network", "gateways are not built for macOS",
		              "leave out the gateway, or its host among those that are granted");
	if (profile->network == NETWORK_HOSTS && proxy_program_fd(err) < 0)
		return -1;
	return driver_require_limits(&driver_macos, profile, err);
}

static int raise_walls(const struct driver *driver, const struct walls *walls, struct sandbox **ret_sandbox,
                       struct cordon_error *err)
{
	struct seatbelt_facts facts = { 0 };
	struct seatbelt seatbelt;
	if (refuse_what_cannot_be(walls->profile, err) < 0 || check_program(err) < 0)
		return -1;
	/* Before the profile is written, which has the port in it. */
	bool has_proxy = walls->profile->network == NETWORK_HOSTS;
	auto_close int listener = has_proxy ? listen_here(&facts.proxy_port) : -1;
	if (has_proxy && listener < 0)
		return refuse(err, "network", "no port of 127.0.0.1 can be listened at for cordon's proxy",
		              "see `cordon doctor`");
	struct macos_sandbox *macos = calloc(1, sizeof(*macos));
	struct strings arguments = { 0 };
	int result = macos ? seatbelt_render(walls->arena, walls->profile, &facts, &seatbelt) : -1;
	if (result == 0)
		result = strings_add(walls->arena, &arguments, SANDBOX_EXEC) |
		         strings_add(walls->arena, &arguments, "-p") |
		         strings_add(walls->arena, &arguments, seatbelt.text);
	for (size_t i = 0; result == 0 && i < seatbelt.count; i++)
		result = strings_add(walls->arena, &arguments, "-D") |
		         strings_add(walls->arena, &arguments,
		                     arena_printf(walls->arena, "%s=%s", seatbelt.parameters[i].name,
		                                  seatbelt.parameters[i].value));
	/* Room for what the probe runs. */
	size_t count = arguments.count;
	for (int i = 0; result == 0 && i <= PROBE_WORDS; i++)
		result = strings_add(walls->arena, &arguments, "");
	if (result < 0) {
		free(macos);
		return fail_oom(err);
	}
	arguments.count = count;
	memset(arguments.items + count, 0, (PROBE_WORDS + 1) * sizeof(*arguments.items));
	if (probe(walls->arena, walls->profile, &arguments, facts.proxy_port, err) < 0) {
		free(macos);
		return -1;
	}
	if (listener >= 0 && drain(listener) < 0) {
		free(macos);
		return refuse(err, "network", "the proxy's port cannot be used", "see `cordon doctor`");
	}
	*macos = (struct macos_sandbox){ .sandbox = { driver }, .arguments = arguments.items, .count = count,
		                         .listener = take_fd(&listener), .port = facts.proxy_port };
	*ret_sandbox = &macos->sandbox;
	return 0;
}

static void lower(struct sandbox *sandbox)
{
	struct macos_sandbox *macos = (struct macos_sandbox *)sandbox;
	if (macos->tree)
		macos_tree_kill(macos->tree);
	close_fd(&macos->listener);
	free(macos);
}

static int take_listeners(struct sandbox *sandbox, int *ret_fds)
{
	struct macos_sandbox *macos = (struct macos_sandbox *)sandbox;
	if (macos->listener < 0)
		return -1;
	ret_fds[0] = take_fd(&macos->listener);
	return 0;
}

static uint16_t loopback_port(const struct sandbox *sandbox)
{
	return ((const struct macos_sandbox *)sandbox)->port;
}

static void describe(const struct sandbox *sandbox, struct arena *arena, const struct profile *profile,
                     const char *isolation[CORDON_WALL_MAX])
{
	static const struct driver_mechanism rows[] = {
		{ CORDON_WALL_FILESYSTEM, "seatbelt" },
		{ CORDON_WALL_PROTECTED, "seatbelt" },
		{ CORDON_WALL_MASKED, "seatbelt" },
		{ CORDON_WALL_SOCKETS, "seatbelt" },
		{ CORDON_WALL_DEVICES, "seatbelt" },
		{ CORDON_WALL_PROCESSES, "seatbelt: signals and information" },
		{ CORDON_WALL_NETWORK, "seatbelt" },
		{ CORDON_WALL_IPC, "seatbelt" },
		{ CORDON_WALL_SPAWN, "seatbelt" },
		{ CORDON_WALL_PROGRAMS, "seatbelt" },
		{ CORDON_WALL_TERMINAL, "own session" },
		{ CORDON_WALL_DESCRIPTORS, "closed, pipes" },
		{ CORDON_WALL_LIMIT_MEMORY, "watched" },
		{ CORDON_WALL_LIMIT_PROCESSES, "watched" },
		{ CORDON_WALL_LIMIT_TIME, "supervisor" },
		{ CORDON_WALL_LIMIT_OUTPUT, "supervisor" },
		{ CORDON_WALL_LIMIT_FILES, "rlimit" },
	};
	(void)sandbox;
	(void)arena;
	driver_describe(profile, rows, ARRAY_SIZE(rows), isolation);
}

static const char *fix(enum cordon_wall wall)
{
	(void)wall;
	return "macOS has nothing that would hold it; run the command in a Linux machine";
}

/* LIFETIME: what a command starts is ended as far as it is seen; a process that leaves its session and its parent
 * between two looks is not. */
const struct driver driver_macos = {
	.name = "seatbelt",
	.required = WALL_BIT(FILESYSTEM) | WALL_BIT(PROTECTED) | WALL_BIT(MASKED) | WALL_BIT(SOCKETS) |
	            WALL_BIT(DEVICES) | WALL_BIT(PROCESSES) | WALL_BIT(NETWORK) | WALL_BIT(IPC) | WALL_BIT(SPAWN) |
	            WALL_BIT(PROGRAMS) | WALL_BIT(TERMINAL) | WALL_BIT(DESCRIPTORS) | WALL_BIT(LIMIT_MEMORY) |
	            WALL_BIT(LIMIT_PROCESSES) | WALL_BIT(LIMIT_TIME) | WALL_BIT(LIMIT_OUTPUT) | WALL_BIT(LIMIT_FILES),
	.cannot = WALL_BIT(FILESYSTEM_SECOND) | WALL_BIT(PROC) | WALL_BIT(HOSTNAME) | WALL_BIT(CGROUP_VIEW) |
	          WALL_BIT(PRIVILEGES) | WALL_BIT(IDENTITY) | WALL_BIT(USER_NAMESPACES) | WALL_BIT(KERNEL_SURFACE) |
	          WALL_BIT(KEYRING) | WALL_BIT(LIFETIME) | WALL_BIT(LIMIT_CPU) | WALL_BIT(LIMIT_DISK),
	.fix = fix,
	.holds_writes = true,
	.keeps_names = true,
	.describe = describe,
	.raise = raise_walls,
	.take_listeners = take_listeners,
	.loopback_port = loopback_port,
	.start = macos_start,
	.lower = lower,
};

const struct driver *const drivers[] = { &driver_macos, NULL };

void driver_sweep(const char *data_dir)
{
	(void)data_dir;
}

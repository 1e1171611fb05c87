/* The driver: see windows.h. */
#include "driver/windows/windows.h"

#include <string.h>

#include "base/cleanup.h"
#include "driver/machine.h"
#include "driver/proxy.h"
#include "driver/wsl/wsl.h"

#define END_MS 2000

static const struct {
	enum cordon_wall wall;
	const char *why, *remedy;
} reasons[] = {
	{ CORDON_WALL_NETWORK, "the Windows Filtering Platform is not there",
	  "start cordon as an administrator, or grant the whole network, --net all" },
	{ CORDON_WALL_PROGRAMS, "which programs start cannot be held here", "leave out the list of programs" },
	{ CORDON_WALL_FILESYSTEM, "the token's integrity level does not read back as Low", NULL },
	{ CORDON_WALL_PRIVILEGES, "the token's privileges and groups do not read back as given up", NULL },
};

/* `why`: in the place of the table's. */
static int refuse(enum cordon_wall wall, const char *why, struct cordon_error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].wall == wall) {
			windows_fail(err, wall, 0, why ? why : reasons[i].why);
			return reasons[i].remedy ? fail_remedy(err, "%s", reasons[i].remedy) : -1;
		}
	return windows_fail(err, wall, 0, "the job object's setting does not read back");
}

static int require(const struct profile *profile, uint32_t held, uint32_t optional, const char *no_network,
                   struct cordon_error *err)
{
	uint32_t missing = profile->walls & driver_windows.required & ~held & ~optional;
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		if (missing & (UINT32_C(1) << wall))
			return refuse((enum cordon_wall)wall, wall == CORDON_WALL_NETWORK ? no_network : NULL, err);
	return 0;
}

static void lower(struct sandbox *sandbox)
{
	struct windows_sandbox *windows = (struct windows_sandbox *)sandbox;
	/* The last handle of it: what is in it ends. */
	if (windows->job) {
		TerminateJobObject(windows->job, 1);
		/* Its filters stay for as long as it. */
		if (windows->filters)
			windows_job_await(windows->job, END_MS);
		CloseHandle(windows->job);
	}
	windows_filters_end(windows->filters);
	if (windows->token)
		CloseHandle(windows->token);
	close_fd(&windows->listener);
	windows_labels_restore(&windows->labels);
	free(windows);
}

/* They are kept only if they do what they say. */
static void set_filters(struct windows_sandbox *windows, const char **ret_why)
{
	struct cordon_error untold;
	*ret_why = "cordon-proxy, which tries whether connections are denied, is not beside cordon";
	if (proxy_program_fd(&untold) < 0)
		return;
	windows->filters = windows_filters_set(windows->token, windows->port, ret_why);
	if (!windows->filters || windows_probe(windows->token, windows->listener, windows->port, ret_why))
		return;
	windows_filters_end(windows->filters);
	windows->filters = NULL;
}

/* Nothing that the command starts connects, but to the proxy where there is one. */
static int raise_network(struct windows_sandbox *windows, const struct profile *profile, const char **ret_why,
                         struct cordon_error *err)
{
	if (profile->egress.gateway_count)
		return windows_fail(err, CORDON_WALL_NETWORK, 0, "gateways are not built for Windows");
	if (profile->network == NETWORK_ALL)
		return 0;
	bool has_proxy = profile->network == NETWORK_HOSTS;
	if (has_proxy && proxy_program_fd(err) < 0)
		return -1;
	if (has_proxy && (windows->listener = windows_proxy_listen(&windows->port)) < 0)
		return windows_fail(err, CORDON_WALL_NETWORK, 0,
		                    "no port of 127.0.0.1 can be listened at for cordon's proxy");
	set_filters(windows, ret_why);
	return 0;
}

int windows_raise(const struct driver *driver, const struct walls *walls, uint32_t optional,
                  struct sandbox **ret_sandbox, struct cordon_error *err)
{
	uint32_t of_token = 0, of_job = 0;
	const char *no_network = NULL;
	struct windows_sandbox *windows = calloc(1, sizeof(*windows));
	if (!windows)
		return fail_oom(err);
	*windows = (struct windows_sandbox){ .sandbox = { driver }, .listener = -1, .labels = WINDOWS_LABELS_NONE };
	windows_labels_sweep(walls->data_dir);
	int result = windows_token(WINDOWS_TOKEN_OF_COMMAND, &windows->token, &of_token, err);
	if (result == 0)
		result = raise_network(windows, walls->profile, &no_network, err);
	of_token |= windows->filters ? WALL_BIT(NETWORK) : 0;
	if (result < 0 || windows_job(walls->profile, &windows->job, &of_job, err) < 0 ||
	    require(walls->profile, of_token | of_job, optional, no_network, err) < 0 ||
	    driver_require_limits(driver, walls->profile, err) < 0 ||
	    (walls->profile->walls & WALL_BIT(FILESYSTEM) & ~optional &&
	     windows_labels_set(walls->arena, walls->data_dir, walls->profile, &windows->labels, err) < 0)) {
		lower(&windows->sandbox);
		return -1;
	}
	windows->held = of_token | of_job;
	*ret_sandbox = &windows->sandbox;
	return 0;
}

static int raise_all(const struct driver *driver, const struct walls *walls, struct sandbox **ret_sandbox,
                     struct cordon_error *err)
{
	return windows_raise(driver, walls, 0, ret_sandbox, err);
}

static int take_listeners(struct sandbox *sandbox, int *ret_fds)
{
	struct windows_sandbox *windows = (struct windows_sandbox *)sandbox;
	if (windows->listener < 0)
		return -1;
	ret_fds[0] = take_fd(&windows->listener);
	return 0;
}

static uint16_t loopback_port(const struct sandbox *sandbox)
{
	return ((const struct windows_sandbox *)sandbox)->port;
}

static void describe(const struct sandbox *sandbox, struct arena *arena, const struct profile *profile,
                     const char *isolation[CORDON_WALL_MAX])
{
	const struct windows_sandbox *windows = (const struct windows_sandbox *)sandbox;
	static const struct driver_mechanism read_back[] = {
		{ CORDON_WALL_FILESYSTEM, "Low integrity: writes; reads are its user's" },
		{ CORDON_WALL_PRIVILEGES, "restricted token" },
		{ CORDON_WALL_NETWORK,
		  "filtering platform: connections; not names and shares, which the system asks for" },
		{ CORDON_WALL_LIFETIME, "job object" },
		{ CORDON_WALL_IPC, "job object: windows, clipboard, handles of others" },
		{ CORDON_WALL_SPAWN, "job object" },
		{ CORDON_WALL_LIMIT_MEMORY, "job object" },
		{ CORDON_WALL_LIMIT_PROCESSES, "job object" },
		{ CORDON_WALL_LIMIT_CPU, "job object" },
	};
	static const struct driver_mechanism always[] = {
		{ CORDON_WALL_DESCRIPTORS, "handle list, pipes" }, { CORDON_WALL_TERMINAL, "no console" },
		{ CORDON_WALL_LIMIT_TIME, "supervisor" }, { CORDON_WALL_LIMIT_OUTPUT, "supervisor" },
	};
	(void)arena;
	driver_describe(profile, always, ARRAY_SIZE(always), isolation);
	for (size_t i = 0; i < ARRAY_SIZE(read_back); i++)
		if (isolation[read_back[i].wall] && windows->held & (UINT32_C(1) << read_back[i].wall))
			isolation[read_back[i].wall] = read_back[i].mechanism;
}

/* A job and a token are made and read back; nothing is started. */
static void survey(const char *isolation[CORDON_WALL_MAX])
{
	const struct profile profile = { .walls = WALLS_ALL,
		                         .limits = { .memory_bytes = 1 << 30, .processes = 64, .cpu_percent = 50 } };
	struct windows_sandbox windows = { .listener = -1, .labels = WINDOWS_LABELS_NONE };
	struct cordon_error untold;
	uint32_t held = 0;
	if (windows_token(WINDOWS_TOKEN_OF_COMMAND, &windows.token, &held, &untold) == 0)
		windows.held |= held;
	const char *why;
	if (windows.token)
		set_filters(&windows, &why);
	windows.held |= windows.filters ? WALL_BIT(NETWORK) : 0;
	windows_filters_end(windows.filters);
	if (windows_job(&profile, &windows.job, &held, &untold) == 0)
		windows.held |= held;
	if (windows.token)
		CloseHandle(windows.token);
	if (windows.job)
		CloseHandle(windows.job);
	describe(&windows.sandbox, NULL, &profile, isolation);
}

static const char *fix(enum cordon_wall wall)
{
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].wall == wall && reasons[i].remedy)
			return reasons[i].remedy;
	if (driver_windows.cannot & (UINT32_C(1) << wall))
		return "Windows has nothing here that would hold it; run the command in WSL";
	return "use a Windows that enforces the setting";
}

/* PROGRAMS is required and cannot be held: a list of programs is refused. NETWORK takes an administrator. */
const struct driver driver_windows = {
	.name = "windows",
	.required = WALL_BIT(FILESYSTEM) | WALL_BIT(PRIVILEGES) | WALL_BIT(LIFETIME) | WALL_BIT(IPC) | WALL_BIT(SPAWN) |
	            WALL_BIT(NETWORK) | WALL_BIT(PROGRAMS) | WALL_BIT(LIMIT_MEMORY) | WALL_BIT(LIMIT_PROCESSES) |
	            WALL_BIT(LIMIT_CPU),
	.cannot = WALL_BIT(FILESYSTEM_SECOND) | WALL_BIT(PROTECTED) | WALL_BIT(MASKED) | WALL_BIT(SOCKETS) |
	          WALL_BIT(PROC) | WALL_BIT(DEVICES) | WALL_BIT(PROCESSES) | WALL_BIT(HOSTNAME) |
	          WALL_BIT(CGROUP_VIEW) | WALL_BIT(IDENTITY) | WALL_BIT(USER_NAMESPACES) | WALL_BIT(KERNEL_SURFACE) |
	          WALL_BIT(PROGRAMS) | WALL_BIT(KEYRING) | WALL_BIT(LIMIT_DISK) | WALL_BIT(LIMIT_FILES),
	.fix = fix,
	.holds_writes = true,
	.describe = describe,
	.survey = survey,
	.raise = raise_all,
	.take_listeners = take_listeners,
	.loopback_port = loopback_port,
	.start = windows_start,
	.lower = lower,
};

const struct driver *const drivers[] = { &driver_windows, &driver_wsl, NULL };

void driver_sweep(const char *data_dir)
{
	windows_labels_sweep(data_dir);
	wsl_sweep(data_dir);
}

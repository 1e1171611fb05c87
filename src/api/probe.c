/* What this machine can hold, found out by doing it: the real walls are raised around a trivial program. `auto` is the
 * strongest driver that passes; the answer is kept per boot. `cordon doctor` shows it all. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/json.h"
#include "host/git-user.h"
#include "host/toolchain.h"
#include "driver/machine.h"
#include "cordon-drivers.h"
#include "walk.h"

/* ---- one probe -------------------------------------------------------------------------------------------------- */

static int probe_in(struct cordon *cordon, struct cordon_request *request, const char *workspace,
                    struct execution **ret_execution, struct cordon_error *err)
{
	const char *const argv[] = { driver_probe_program(), NULL };
	struct execution *execution = NULL;
	if (cordon_request_set(request, "workspace", workspace, err) < 0 ||
	    cordon_request_set(request, "toolchain", "none", err) < 0 ||
	    cordon_request_set(request, "timeout", "10s", err) < 0 || cordon_request_command(request, argv, err) < 0 ||
	    walk_new(cordon, request, false, &execution, err) < 0)
		return -1;
	execution->facts.probe = true;
	if (walk(execution, WALK_ENDED, err) < 0) {
		walk_free(execution);
		return -1;
	}
	if (run_failed(execution)) {
		walk_free(execution);
		return fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, argv[0],
		            "a trivial program does not run behind these walls");
	}
	*ret_execution = execution;
	return 0;
}

int probe_request(struct cordon *cordon, struct cordon_request *request, struct execution **ret_execution,
                  struct cordon_error *err)
{
	char workspace[PATH_MAX], id[ID_SIZE];
	id_make(id);
	if (snprintf(workspace, sizeof(workspace), "%s/cordon-probe-%s", driver_temporary_directory(), id) >=
	            (int)sizeof(workspace) ||
	    mkdir(workspace, 0700) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, workspace, "cannot make a directory to probe in");
	int result = probe_in(cordon, request, workspace, ret_execution, err);
	rmdir(workspace);
	return result;
}

/* `network` is set explicitly: the probe does not depend on the configuration. */
static int probe(struct cordon *cordon, const struct driver *driver, const char *network,
                 struct execution **ret_execution, struct cordon_error *err)
{
	struct cordon_request *request;
	if (cordon_request_new(&request, err) < 0)
		return -1;
	int result = cordon_request_set(request, "driver", driver->name, err) < 0 ||
	             cordon_request_set(request, "net", network, err) < 0 ||
	             probe_request(cordon, request, ret_execution, err) < 0 ? -1 : 0;
	cordon_request_unref(request);
	return result;
}

/* ---- auto ------------------------------------------------------------------------------------------------------- */

static void read_text(const char *path, char *text, size_t size)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t length = fd < 0 ? 0 : read(fd, text, size - 1);
	text[length > 0 ? length : 0] = '\0';
}

static unsigned long long number_of(const char *path)
{
	struct stat info;
	return stat(path, &info) == 0 ? info.st_ino : 0;
}

/* What the answer depends on: boot, user, version and location: in a container it differs from the host's, though both
 * may share their data. */
static const char *cache_key(struct arena *arena)
{
	char boot[64], status[4096];
	read_text("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	boot[strcspn(boot, "\n")] = '\0';
	read_text("/proc/self/status", status, sizeof(status));
	const char *filters = strstr(status, "\nSeccomp");
	int seccomp = 0, count = 0;
	if (filters && sscanf(filters, "\nSeccomp: %d\nSeccomp_filters: %d", &seccomp, &count) < 1)
		seccomp = -1;
	return arena_printf(arena, "%s %u %llu %llu %d/%d " CORDON_VERSION "\n", boot, (unsigned)geteuid(),
	                    number_of("/proc/self/ns/user"), number_of("/proc/self/ns/mnt"), seccomp, count);
}

static const struct driver *cached(const char *path, const char *key)
{
	char text[256];
	size_t length = strlen(key);
	read_text(path, text, sizeof(text));
	return strncmp(text, key, length) ? NULL : driver_find(text + length);
}

static void remember(struct arena *arena, const char *path, const char *key, const char *name)
{
	const char *text = arena_printf(arena, "%s%s", key, name);
	auto_close int fd = text ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		unlink(path);
}

static int choose(struct cordon *cordon, bool dry, const struct driver **ret_driver, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct cordon_error first = { 0 };
	const char *path = arena_printf(&arena, "%s/probe", cordon->data_dir), *key = cache_key(&arena);
	const struct driver *chosen = path && key ? cached(path, key) : NULL;
	if (!chosen && dry)
		chosen = driver_default();
	for (const struct driver *const *driver = drivers; !chosen && *driver; driver++) {
		struct execution *execution;
		struct cordon_error failure;
		if ((*driver)->is_named_only)
			continue;
		if (probe(cordon, *driver, "none", &execution, &failure) < 0) {
			if (driver == drivers)
				first = failure;
			continue;
		}
		chosen = *driver;
		walk_free(execution);
		if (path && key)
			remember(&arena, path, key, chosen->name);
	}
	arena_free(&arena);
	if (!chosen) {
		*err = first;
		return -1;
	}
	*ret_driver = chosen;
	return 0;
}

static bool is_word_of(const char *words, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = words; length && *at; at += strcspn(at, " "), at += strspn(at, " "))
		if (strcspn(at, " ") == length && !memcmp(at, word, length))
			return true;
	return false;
}

static int refuse_name(const char *name, struct cordon_error *err)
{
	bool is_elsewhere = is_word_of(CORDON_DRIVERS_LINUX " " CORDON_DRIVERS_MACOS " " CORDON_DRIVERS_WINDOWS, name);
	fail(err, CORDON_E_INVALID_REQUEST, 0, name,
	     is_elsewhere ? "this is another system's driver" : "there is no such driver");
	/* Those that this program has, which on a system without a driver are fewer than its kind of system may have.
	 */
	char names[128] = "";
	for (const struct driver *const *driver = drivers; *driver; driver++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), " %s", (*driver)->name);
	return fail_remedy(err, "choose one of: auto%s disabled", names);
}

int probe_driver(struct cordon *cordon, const char *name, bool dry, const struct driver **ret_driver,
                 struct cordon_error *err)
{
	if (!strcmp(name, "disabled")) {
		fail(err, CORDON_E_SANDBOX_DISABLED, 0, name, "the sandbox is switched off, so nothing runs");
		return fail_remedy(err, "choose another driver");
	}
	if (!strcmp(name, "auto"))
		return choose(cordon, dry, ret_driver, err);
	const struct driver *driver = driver_find(name);
	if (!driver)
		return refuse_name(name, err);
	*ret_driver = driver;
	return 0;
}

int cordon_driver_look(struct cordon *cordon, struct cordon_driver_facts *ret_facts, struct cordon_error *err)
{
	const struct config *config;
	const struct driver *driver = driver_default();
	if (call_check(err, cordon, ret_facts) < 0 || handle_check(cordon, err) < 0 ||
	    config_store_take(cordon->config, NULL, -1, NULL, CONFIG_KEEP_NOTHING, handle_mounts(cordon, false),
	                      &config, err) < 0)
		return -1;
	int result = probe_driver(cordon, session_step_driver(config), false, &driver, err);
	config_unref(config);
	if (result < 0)
		return -1;
	*ret_facts = (struct cordon_driver_facts){ driver->private_root, driver->keeps_names };
	return 0;
}

/* ---- doctor ----------------------------------------------------------------------------------------------------- */

/* The mechanism that holds the limits of a whole tree of processes. */
static void write_limits(struct json *json, struct cordon *cordon)
{
	const struct config *config = NULL;
	struct driver_groups groups;
	struct cordon_error untold;
	/* What is wrong with the configuration is not for here to say. */
	if (config_store_take(cordon->config, NULL, -1, NULL, CONFIG_KEEP_NOTHING, handle_mounts(cordon, false),
	                      &config, &untold) < 0)
		config = NULL;
	driver_groups_look(config ? config->cgroup : NULL, &groups);
	config_unref(config);
	json_key(json, "limits");
	json_object_begin(json);
	json_key_string(json, "mechanism", groups.mechanism ? groups.mechanism : "rlimits, watched");
	json_key_string(json, "place", groups.mechanism ? groups.path : NULL);
	json_key(json, "holds");
	json_array_begin(json);
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		if (groups.offers & (UINT32_C(1) << wall))
			json_text(json, cordon_wall_name(wall));
	json_array_end(json);
	json_key_string(json, "found", groups.mechanism ? "a group can be made there" : groups.why);
	json_key_string(json, "fix", groups.mechanism ? "" : driver_groups_fix());
	json_object_end(json);
}

static const char nothing[] = "this driver has nothing here that would hold it";

static bool write_walls(struct json *json, const struct driver *driver, const char *const isolation[CORDON_WALL_MAX],
                        const char *found, const char *missing)
{
	bool all = true;
	json_key(json, "walls");
	json_array_begin(json);
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++) {
		const char *mechanism = isolation[wall];
		if (!mechanism)
			continue;
		bool holds = strcmp(mechanism, "none") != 0, can_hold = !(driver->cannot & (UINT32_C(1) << wall));
		all &= holds || driver_limit_is_optional(wall);
		json_object_begin(json);
		json_key_string(json, "wall", cordon_wall_name(wall));
		json_key_string(json, "mechanism", mechanism);
		json_key_bool(json, "holds", holds);
		json_key_bool(json, "can_hold", can_hold);
		json_key_string(json, "found", holds ? found : can_hold ? missing : nothing);
		json_key_string(json, "fix", holds ? "" : driver->fix(wall));
		json_object_end(json);
	}
	json_array_end(json);
	return all;
}

/* Nothing connects to it. */
#define PROBE_HOST "probe.invalid:443"

/* A network of listed hosts takes more than the wall that keeps the network out: listeners inside, and the proxy. */
static void write_hosts(struct json *json, struct cordon *cordon, const struct driver *driver)
{
	struct execution *execution = NULL;
	struct cordon_error err = { 0 };
	bool holds = probe(cordon, driver, PROBE_HOST, &execution, &err) == 0;
	json_key(json, "listed_hosts");
	json_object_begin(json);
	json_key_bool(json, "holds", holds);
	json_key_string(json, "found", holds ? "the proxy was ready, and a trivial program ran" : err.reason);
	json_key_string(json, "fix", holds ? "" : err.remediation);
	json_object_end(json);
	walk_free(execution);
}

/* Whether every wall holds. */
static bool examine(struct cordon *cordon, const struct driver *driver, struct json *json)
{
	struct execution *execution = NULL;
	struct cordon_error err;
	bool works = probe(cordon, driver, "none", &execution, &err) == 0, all = works;
	json_object_begin(json);
	json_key_string(json, "name", driver->name);
	json_key_bool(json, "works", works);
	json_key(json, "error");
	if (works)
		json_nil(json);
	else
		error_write_json(json, &err);
	if (works) {
		all = write_walls(json, driver, execution->run.isolation, "raised around a trivial program, which ran",
		                  nothing);
		write_hosts(json, cordon, driver);
	}
	if (!works && driver->survey) {
		const char *isolation[CORDON_WALL_MAX] = { NULL };
		driver->survey(isolation);
		(void)!write_walls(json, driver, isolation, "found without starting a program",
		                   "it was set, and does not read back as it was set");
	}
	json_key_bool(json, "holds", all);
	json_object_end(json);
	walk_free(execution);
	return all;
}

/* Of the caller's git settings, those that do not hold inside. */
static void write_git(struct json *json)
{
	struct arena arena = { 0 };
	const char *names = NULL;
	struct toolchains found = { 0 };
	struct cordon_error untold;
	struct git_user_search search = { .home = request_variable(NULL, "HOME"),
		                          .xdg_config_home = request_variable(NULL, "XDG_CONFIG_HOME"),
		                          .environment = (const char *const *)request_environment(NULL) };
	if (toolchain_find(&arena, search.home, search.environment, NULL, NULL, NULL, &found, &untold) == 0)
		search.shown = &found.show;
	if (git_user_left_out(&arena, &search, &names) < 0)
		json->failed = true;
	json_key_string(json, "git_settings_left_out", names ? names : "");
	arena_free(&arena);
}

int cordon_doctor(struct cordon *cordon, char **ret_json, bool *ret_holds, struct cordon_error *err)
{
	struct json json;
	struct utsname kernel = { 0 };
	bool holds = false;
	if (call_check(err, cordon, ret_json, ret_holds) < 0 || handle_check(cordon, err) < 0)
		return -1;
	uname(&kernel);
	json_init(&json);
	json_object_begin(&json);
	json_key_string(&json, "version", CORDON_VERSION);
	json_key_string(&json, "kernel", kernel.release);
	json_key_string(&json, "machine", kernel.machine);
	json_key_int(&json, "landlock_abi", driver_landlock_abi());
	json_key_bool(&json, "root", geteuid() == 0);
	json_key_string(&json, "default_driver", driver_default()->name);
	write_limits(&json, cordon);
	write_git(&json);
	json_key(&json, "drivers");
	json_array_begin(&json);
	for (const struct driver *const *driver = drivers; *driver; driver++) {
		bool all = examine(cordon, *driver, &json);
		if (*driver == driver_default())
			holds = all;
	}
	json_array_end(&json);
	json_key_bool(&json, "holds", holds);
	json_object_end(&json);
	char *text = json_take(&json);
	if (!text)
		return fail_oom(err);
	*ret_json = text;
	*ret_holds = holds;
	return 0;
}

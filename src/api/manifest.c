/* A manifest when a tool is installed: is it sound, are its programs there, and can this machine hold what it declares?
 * The last is found out by doing it: the walls it asks for are raised around a program that does nothing. */
#include "config/manifest.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "api/policy.h"
#include "base/json.h"
#include "driver/machine.h"
#include "policy/capability-json.h" /* includes libjansson's header, which must come before ours */
#include "walk.h"

static int refuse_program(struct cordon_error *err, const char *path, const char *why, const char *fix)
{
	fail(err, CORDON_E_PROGRAM_NOT_ALLOWED, 0, path, "%s", why);
	fail_boundary(err, "privileges");
	return fail_remedy(err, "%s", fix);
}

/* What a run would find out at its very end. */
static int check_program(const char *path, struct cordon_error *err)
{
	static const char no_gain[] = "it cannot gain privileges in here; declare a program that needs none";
	struct stat info;
	char capability[32];
	if (stat(path, &info) < 0) {
		fail(err, CORDON_E_PROGRAM_NOT_FOUND, errno, path, "a program that the manifest declares is not there");
		return fail_remedy(err, "install it, or name where it is");
	}
	if (!S_ISREG(info.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
		return refuse_program(err, path, "a program that the manifest declares is not an executable file",
		                      "check its mode");
	if ((info.st_mode & S_ISUID) || ((info.st_mode & S_ISGID) && (info.st_mode & S_IXGRP)))
		return refuse_program(err, path, "a program that the manifest declares is setuid or setgid", no_gain);
	if (getxattr(path, "security.capability", capability, sizeof(capability)) > 0)
		return refuse_program(err, path, "a program that the manifest declares has file capabilities", no_gain);
	return 0;
}

/* A run goes without some walls: limits that nothing holds, and whatever a weaker driver lacks that the configuration
 * names. A manifest means what it declares. */
static int check_walls(const struct manifest *manifest, const char *const *isolation, struct cordon_error *err)
{
	const struct limits *limits = &manifest->set.limits;
	const struct {
		bool declared;
		enum cordon_wall wall;
	} rows[] = {
		{ true, CORDON_WALL_FILESYSTEM },
		{ true, CORDON_WALL_PROGRAMS },
		{ true, CORDON_WALL_NETWORK },
		{ limits->memory_bytes, CORDON_WALL_LIMIT_MEMORY },
		{ limits->processes, CORDON_WALL_LIMIT_PROCESSES },
		{ limits->wall_ms, CORDON_WALL_LIMIT_TIME },
		{ limits->stdout_bytes, CORDON_WALL_LIMIT_OUTPUT },
		{ limits->open_files, CORDON_WALL_LIMIT_FILES },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *mechanism = isolation[rows[i].wall], *name = cordon_wall_name(rows[i].wall);
		if (!rows[i].declared || (mechanism && strcmp(mechanism, "none")))
			continue;
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, name,
		     "the manifest needs this wall, and nothing here would hold it");
		fail_boundary(err, name);
		return fail_remedy(err, "run `cordon doctor`");
	}
	return 0;
}

/* What the manifest declares, as grants of a command line. Time and output limits are left as they are: a small one
 * does not mean that a wall cannot be raised. */
static int fill_request(struct cordon_request *request, const struct manifest *manifest, struct cordon_error *err)
{
	request->granted = manifest->set;
	request->granted.hosts = (struct strings){ 0 };
	request->granted.network = NETWORK_NONE;
	request->granted.limits.stdout_bytes = request->granted.limits.stderr_bytes = 0;
	request->granted.programs = (struct strings){ 0 };
	if (cordon_request_set(request, "program", driver_probe_program(), err) < 0)
		return -1;
	for (size_t i = 0; i < manifest->programs.count; i++)
		if (cordon_request_set(request, "program", manifest->programs.items[i], err) < 0)
			return -1;
	for (size_t i = 0; i < manifest->env_pass.count; i++)
		if (cordon_request_set(request, "pass-env", manifest->env_pass.items[i], err) < 0)
			return -1;
	for (size_t i = 0; i < manifest->set.hosts.count; i++)
		if (cordon_request_set(request, "net", manifest->set.hosts.items[i], err) < 0)
			return -1;
	return 0;
}

/* By the driver that a run would have. */
static int name_driver(struct cordon *cordon, struct cordon_request *request, struct cordon_error *err)
{
	const struct config *config;
	if (policy_take(cordon, NULL, &config, err) < 0)
		return -1;
	int result = cordon_request_set(request, "driver", session_step_driver(config), err);
	config_unref(config);
	return result;
}

static int raise_walls(struct cordon *cordon, const struct manifest *manifest, struct execution **ret_execution,
                       struct cordon_error *err)
{
	struct cordon_request *request;
	if (cordon_request_new(&request, err) < 0)
		return -1;
	int result = name_driver(cordon, request, err) < 0 || fill_request(request, manifest, err) < 0 ? -1 :
	             probe_request(cordon, request, ret_execution, err);
	cordon_request_unref(request);
	return result;
}

static void write_patterns(struct json *json, const struct manifest *manifest)
{
	json_key(json, "argv");
	if (!manifest->pattern_count)
		return json_nil(json);
	json_array_begin(json);
	for (size_t i = 0; i < manifest->pattern_count; i++) {
		const struct strings *words = &manifest->patterns[i].written;
		json_array_begin(json);
		for (size_t j = 0; j < words->count; j++)
			json_text(json, words->items[j]);
		json_array_end(json);
	}
	json_array_end(json);
}

static char *tell(const char *file, const struct manifest *manifest, const struct execution *execution)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_string(&json, "file", file);
	json_key_string(&json, "name", manifest->name);
	json_key_string(&json, "description", manifest->description);
	write_patterns(&json, manifest);
	json_key_strings(&json, "env_passthrough", manifest->env_pass.items, manifest->env_pass.count);
	json_key(&json, "capabilities");
	capability_write_json(&json, &manifest->set);
	json_key_string(&json, "driver", execution->verdict.session.driver->name);
	json_key(&json, "isolation");
	json_object_begin(&json);
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		if (execution->run.isolation[wall])
			json_key_string(&json, cordon_wall_name(wall), execution->run.isolation[wall]);
	json_object_end(&json);
	json_object_end(&json);
	return json_take(&json);
}

static int check(struct cordon *cordon, struct arena *arena, const char *file, char **ret_json,
                 struct cordon_error *err)
{
	struct manifest manifest;
	struct execution *execution;
	if (policy_check(cordon, err) < 0 || manifest_read(arena, file, getenv("HOME"), &manifest, err) < 0)
		return -1;
	for (size_t i = 0; i < manifest.programs.count; i++)
		if (check_program(manifest.programs.items[i], err) < 0)
			return -1;
	if (raise_walls(cordon, &manifest, &execution, err) < 0)
		return -1;
	int result = check_walls(&manifest, execution->run.isolation, err);
	char *text = result == 0 ? tell(file, &manifest, execution) : NULL;
	walk_free(execution);
	if (result == 0 && !text)
		return fail_oom(err);
	if (result == 0)
		*ret_json = text;
	return result;
}

int cordon_manifest_check(struct cordon *cordon, const char *file, char **ret_json, struct cordon_error *err)
{
	struct arena arena = { 0 };
	if (call_check(err, cordon, file, ret_json) < 0)
		return -1;
	int result = check(cordon, &arena, file, ret_json, err);
	arena_free(&arena);
	return result;
}

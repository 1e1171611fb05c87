/* For the doctor: whether agents are still as cordon setup left them, and what they could do outside. See setup.h. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "door/setup/file.h"
#include "door/setup/jsonc.h"
#include "door/setup/setup.h"

/* ---- what was written -------------------------------------------------------------------------------------------- */

/* NULL: all is as it was written. */
static const char *find_fault(struct arena *arena, json_t *record)
{
	size_t index, number;
	json_t *each, *made;
	const char *program = json_string_value(json_object_get(record, "program"));
	json_array_foreach(json_object_get(record, "files"), index, each) {
		const char *path = json_string_value(json_object_get(each, "path")), *text = NULL;
		struct cordon_error err;
		if (!path || *path != '/' || setup_read(arena, path, setup_beneath_of(each, path), &text, &err) < 0 ||
		    !text)
			return arena_printf(arena, "%s cannot be read", path ? path : "its record");
		json_array_foreach(json_object_get(each, "edits"), number, made) {
			struct edit edit;
			if (!setup_edit_recorded(made, path, &edit) || !setup_edit_holds(&edit, text))
				return arena_printf(arena, "%s has lost cordon's entry", path);
		}
	}
	return program && access(program, X_OK) < 0 ? arena_printf(arena, "%s is missing: no command will run", program)
	                                            : NULL;
}

/* NULL: it cannot be read. */
static json_t *setting(const char *file, const char *const *path)
{
	auto_free char *text = NULL;
	size_t length = 0;
	bool is_text =
		file && file_read_any(AT_FDCWD, file, JSONC_SIZE_MAX, &text, &length) == 0 && strlen(text) == length;
	return is_text ? jsonc_get(text, path) : NULL;
}

/* ---- the agent's own program ------------------------------------------------------------------------------------- */

static const char *find_program(struct arena *arena, const char *name)
{
	const char *at = getenv("PATH");
	struct stat info;
	for (size_t length; at && *at; at += length + (at[length] == ':')) {
		length = strcspn(at, ":");
		const char *path = *at == '/' ? arena_printf(arena, "%.*s/%s", (int)length, at, name) : NULL;
		if (path && stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0)
			return path;
	}
	return NULL;
}

/* Three numbers. */
static bool read_version(const char *text, unsigned long ret_numbers[3])
{
	for (int i = 0; i < 3; i++) {
		char *end;
		if (*text < '0' || *text > '9')
			return false;
		ret_numbers[i] = strtoul(text, &end, 10);
		if (i < 2 && *end++ != '.')
			return false;
		text = end;
	}
	return true;
}

/* Of the package of node's that the file lies in. */
static const char *package_version(struct arena *arena, char *path)
{
	for (char *slash; strstr(path, "/node_modules/") && (slash = strrchr(path, '/')); *slash = '\0') {
		static const char *const key[] = { "version", NULL };
		*slash = '\0';
		json_t *version = setting(arena_printf(arena, "%s/package.json", path), key);
		const char *found =
			version ? arena_strdup(arena, json_string_value(version) ? json_string_value(version) : "")
				: NULL;
		json_decref(version);
		if (found)
			return found;
	}
	return NULL;
}

/* Of a program of Electron's: bin/NAME, and resources/app beside bin. */
static const char *app_version(struct arena *arena, const char *path)
{
	static const char *const key[] = { "version", NULL };
	const char *bin = strstr(path, "/bin/");
	json_t *version =
		bin ? setting(arena_printf(arena, "%.*s/resources/app/package.json", (int)(bin - path), path), key)
		    : NULL;
	const char *found = json_string_value(version) ? arena_strdup(arena, json_string_value(version)) : NULL;
	json_decref(version);
	return found;
}

/* Without running it: from its package, or from a path such as …/versions/1.2.3. NULL: not known. */
static const char *find_version(struct arena *arena, const char *program)
{
	auto_free char *path = realpath(program, NULL);
	unsigned long numbers[3];
	const char *named = path ? strstr(path, "/versions/") : NULL;
	const char *version = path && strstr(path, "/node_modules/") ? NULL
	                      : named                                ? named + strlen("/versions/")
	                                                             : NULL;
	if (!path)
		return NULL;
	if (version && read_version(version, numbers))
		return arena_strndup(arena, version, strcspn(version, "/"));
	version = app_version(arena, path);
	if (!version)
		version = package_version(arena, path);
	return version && read_version(version, numbers) ? version : NULL;
}

static bool is_older(const char *version, const char *other)
{
	unsigned long one[3], two[3];
	if (!read_version(version, one) || !read_version(other, two))
		return false;
	for (int i = 0; i < 3; i++)
		if (one[i] != two[i])
			return one[i] < two[i];
	return false;
}

/* ---- what takes the entries out of force ------------------------------------------------------------------------- */

static bool is_own(const char *value, json_t *record)
{
	const char *program = json_string_value(json_object_get(record, "program"));
	return value && program && !strcmp(value, program);
}

static void remark(json_t *remarks, const char *text)
{
	if (text)
		json_array_append_new(remarks, json_string(text));
}

/* A project's own settings come before the user's. */
static void look_at_project(struct arena *arena, enum agent_id agent, const char *here, json_t *record, json_t *remarks)
{
	static const struct {
		enum agent_id agent;
		const char *file, *path[3];
	} rows[] = {
		{ AGENT_CLAUDE, ".claude/settings.json", { "env", "CLAUDE_CODE_SHELL_PREFIX" } },
		{ AGENT_CLAUDE, ".claude/settings.local.json", { "env", "CLAUDE_CODE_SHELL_PREFIX" } },
		{ AGENT_OPENCODE, "opencode.json", { "shell" } },
		{ AGENT_OPENCODE, "opencode.jsonc", { "shell" } },
		{ AGENT_OPENCODE, ".opencode/opencode.json", { "shell" } },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].agent != agent)
			continue;
		const char *file = arena_printf(arena, "%s/%s", here, rows[i].file);
		json_t *value = setting(file, rows[i].path);
		if (value && !is_own(json_string_value(value), record))
			remark(remarks,
			       arena_printf(arena, "%s sets another %s: here its commands do not run in cordon", file,
			                    rows[i].path[1] ? rows[i].path[1] : rows[i].path[0]));
		json_decref(value);
	}
}

static void look_at_hooks(struct arena *arena, const char *directory, json_t *remarks)
{
	static const char *const enabled[] = { "hooksConfig", "enabled", NULL }, *const disabled[] = { "hooksConfig",
		                                                                                       "disabled",
		                                                                                       NULL };
	const char *file = arena_printf(arena, "%s/.gemini/settings.json", directory);
	json_t *on = setting(file, enabled), *off = setting(file, disabled), *each;
	size_t index;
	if (json_is_false(on))
		remark(remarks, arena_printf(arena, "%s switches hooks off: its commands do not run in cordon", file));
	json_array_foreach(off, index, each) if (json_is_string(each) && strstr(json_string_value(each), "cordon"))
		remark(remarks,
	               arena_printf(arena, "%s switches cordon's hook off: its commands do not run in cordon", file));
	json_decref(on);
	json_decref(off);
}

/* Gemini runs no hook in a folder that is not trusted. What lies in a trusted one is trusted with it. */
static void look_at_trust(struct arena *arena, const char *home, const char *here, json_t *remarks)
{
	static const char *const path[] = { "security", "folderTrust", "enabled", NULL };
	const char *file = arena_printf(arena, "%s/.gemini/trustedFolders.json", home), *folder, *nearest = NULL;
	json_t *on = setting(arena_printf(arena, "%s/.gemini/settings.json", home), path);
	json_t *folders = setting(file, (const char *const[]){ NULL }), *rule;
	size_t length = 0;
	json_object_foreach(folders, folder, rule) {
		const char *is = json_string_value(rule);
		bool parent = is && !strcmp(is, "TRUST_PARENT");
		const char *slash = parent ? strrchr(folder, '/') : NULL;
		const char *root = slash > folder ? arena_strndup(arena, folder, (size_t)(slash - folder)) : folder;
		if (is && root && path_within(here, root) && strlen(root) >= length) {
			length = strlen(root);
			nearest = is;
		}
	}
	if (nearest ? !strcmp(nearest, "DO_NOT_TRUST") : json_is_true(on))
		remark(remarks,
		       arena_printf(arena,
		                    "%s does not trust %s: hooks do not run there, so commands do not run in cordon",
		                    file, here));
	json_decref(on);
	json_decref(folders);
}

static void look_at_version(struct arena *arena, enum agent_id agent, const char *program, const char *version,
                            json_t *remarks)
{
	const char *tried = agents[agent].tried;
	if (!program)
		remark(remarks, "its program is not in PATH");
	else if (tried && !version)
		remark(remarks,
		       arena_printf(arena, "its version is not known; %s is known to run no command without cordon",
		                    tried));
	else if (tried && is_older(version, tried))
		remark(remarks,
		       arena_printf(arena,
		                    "%s is older than %s, which is known to run no command without cordon: update it",
		                    version, tried));
	else if (tried && is_older(tried, version))
		remark(remarks, arena_printf(arena, "%s is newer than %s, the version that cordon was tried with",
		                             version, tried));
}

static const char *program_name(enum agent_id agent)
{
	return agent == AGENT_VSCODE ? "code" : agents[agent].name;
}

/* It has no settings that name its shell: it is set up where its variable names cordon's. */
static json_t *look_at_goose(struct arena *arena)
{
	const char *shell = getenv("GOOSE_SHELL"), *slash = shell ? strrchr(shell, '/') : NULL;
	if (!slash || strcmp(slash + 1, "cordon-shell") != 0)
		return NULL;
	const char *program = find_program(arena, program_name(AGENT_GOOSE));
	const char *fault =
		access(shell, X_OK) < 0 ? arena_printf(arena, "%s is missing: no command will run", shell) : NULL;
	json_t *remarks = json_array();
	look_at_version(arena, AGENT_GOOSE, program, NULL, remarks);
	return json_pack("{s:s, s:s?, s:s?, s:n, s:n, s:o, s:s}", "agent", agents[AGENT_GOOSE].name, "fault", fault,
	                 "program", program, "version", "tried", "remarks", remarks, "outside",
	                 "its other tools, and whatever it starts without this shell. Not tried with goose itself.");
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static json_t *look_at_agent(struct arena *arena, enum agent_id agent, const char *home, const char *here,
                             json_t *record)
{
	const struct setup_paths paths = { .cordon = "cordon", .shell = "cordon-shell", .home = home, .here = here };
	bool mcp_only = json_is_true(json_object_get(record, "mcp_only"));
	const char *top = agent_workspace(arena, here);
	const char *fault = record ? find_fault(arena, record) : "cordon's record is damaged";
	const char *program = find_program(arena, program_name(agent));
	const char *version = program ? find_version(arena, program) : NULL;
	struct plan plan = { 0 };
	struct cordon_error err;
	json_t *remarks = json_array();
	if (!mcp_only)
		look_at_version(arena, agent, program, version, remarks);
	if (!mcp_only)
		look_at_project(arena, agent, here, record, remarks);
	if (!mcp_only && strcmp(top, here) != 0)
		look_at_project(arena, agent, top, record, remarks);
	if (!mcp_only && agent == AGENT_GEMINI) {
		look_at_hooks(arena, home, remarks);
		look_at_hooks(arena, here, remarks);
		if (strcmp(top, here) != 0)
			look_at_hooks(arena, top, remarks);
		look_at_trust(arena, home, here, remarks);
	}
	const char *outside = plan_make(arena, agent, mcp_only, &paths, &plan, &err) == 0 ? plan.open : NULL;
	json_t *found = json_pack("{s:s, s:s?, s:s?, s:s?, s:s?, s:o, s:s?}", "agent", agents[agent].name, "fault",
	                          fault, "program", program, "version", version, "tried", agents[agent].tried,
	                          "remarks", remarks, "outside", outside);
	plan_free(&plan);
	return found;
}

json_t *setup_look(struct arena *arena, const char *home, const char *here)
{
	json_t *all = json_array();
	for (enum agent_id id = 0; id < AGENT_MAX; id++) {
		struct cordon_error err;
		json_t *record = NULL;
		const char *path = setup_record_path(arena, id, home);
		bool damaged = path && setup_record(arena, path, &record, &err) < 0;
		if (record || damaged)
			json_array_append_new(all, look_at_agent(arena, id, home, here, record));
		json_decref(record);
	}
	json_t *goose = look_at_goose(arena);
	if (goose)
		json_array_append_new(all, goose);
	return all;
}

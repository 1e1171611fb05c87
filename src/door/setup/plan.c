/* What is written for each agent: a function each, since they have nothing in common but that. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "door/setup/setup.h"

#define HOOK_TIMEOUT_MS 10000

struct planning {
	struct arena *arena;
	const struct setup_paths *paths;
	struct plan *plan;
	const char *beneath;            /* of the edits that are added */
	bool failed;
};

static void add(struct planning *planning, enum edit_kind kind, const char *file, const char *const *path,
                json_t *value, const char *text)
{
	struct plan *plan = planning->plan;
	struct edit *edit = &plan->edits[plan->count];
	if (!file || plan->count == EDITS_MAX || (!value && !text)) {
		json_decref(value);
		planning->failed = true;
		return;
	}
	*edit = (struct edit){ .kind = kind, .file = file, .beneath = planning->beneath, .value = value, .text = text };
	for (size_t i = 0; path && path[i] && i < EDIT_PATH_MAX - 1; i++)
		edit->path[i] = path[i];
	plan->count++;
}

#define PATH(...) (const char *const[]){ __VA_ARGS__, NULL }

/* Beneath the directory that the variable names, else beneath the home. */
static const char *in(const struct planning *planning, const char *variable, const char *beneath_home, const char *name)
{
	const char *named = variable ? getenv(variable) : NULL;
	if (named && *named == '/')
		return arena_printf(planning->arena, "%s/%s", named, name);
	return arena_printf(planning->arena, "%s/%s/%s", planning->paths->home, beneath_home, name);
}

static const char *quoted(const struct planning *planning, const char *word)
{
	const char *text = "'";
	for (const char *quote; text && (quote = strchr(word, '\'')); word = quote + 1)
		text = arena_printf(planning->arena, "%s%.*s'\\''", text, (int)(quote - word), word);
	return text ? arena_printf(planning->arena, "%s%s'", text, word) : NULL;
}

static bool is_plain_word(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+,:@-";
	return !word[strspn(word, plain)];
}

/* A line for a shell: whatever goes wrong, a missing program and a signal included, ends with 2. */
static const char *hook_line(const struct planning *planning, const char *agent)
{
	const char *program = quoted(planning, planning->paths->cordon);
	return program ? arena_printf(planning->arena, "%s hook --agent=%s || exit 2", program, agent) : NULL;
}

static json_t *mcp_entry(const struct planning *planning, bool with_type)
{
	return with_type ? json_pack("{s:s, s:s, s:[s]}", "type", "stdio", "command", planning->paths->cordon, "args",
	                             "mcp")
	                 : json_pack("{s:s, s:[s]}", "command", planning->paths->cordon, "args", "mcp");
}

#define MCP_COVERED "Commands and files of the MCP server cordon (tools shell, read_file, edit_file, ...) are inside."
#define MCP_OPEN                                                                                                       \
	"The agent's own shell and file tools are as before: switch them off in the agent, or run setup without "      \
	"--mcp-only."
#define FILES_OPEN                                                                                                     \
	"the agent's own file tools (read, edit, write) and web tools, which act outside by the agent's own rules"

static void plan_claude(struct planning *planning, bool mcp_only)
{
	const char *settings = in(planning, "CLAUDE_CONFIG_DIR", ".claude", "settings.json");
	if (mcp_only) {
		const char *own = getenv("CLAUDE_CONFIG_DIR") ? in(planning, "CLAUDE_CONFIG_DIR", "", ".claude.json") :
		                  arena_printf(planning->arena, "%s/.claude.json", planning->paths->home);
		add(planning, EDIT_SET, own, PATH("mcpServers", "cordon"), mcp_entry(planning, true), NULL);
		return;
	}
	planning->plan->tmp = agent_tmp(planning->arena, AGENT_CLAUDE);
	add(planning, EDIT_SET, settings, PATH("env", "CLAUDE_CODE_SHELL_PREFIX"), json_string(planning->paths->shell),
	    NULL);
	add(planning, EDIT_SET, settings, PATH("env", "CLAUDE_CODE_TMPDIR"), json_string(planning->plan->tmp), NULL);
	planning->plan->program = planning->paths->shell;
	planning->plan->covered =
		"Commands of the tools Bash and Monitor, hooks, and MCP servers that are started as programs.";
	planning->plan->open = FILES_OPEN
		"; a project whose own .claude/settings.json sets another CLAUDE_CODE_SHELL_PREFIX; the tool "
		"PowerShell.";
}

static void plan_codex(struct planning *planning, bool mcp_only)
{
	const char *program = planning->paths->cordon;
	if (strpbrk(program, "\"\\"))
		planning->failed = true;
	if (mcp_only) {
		add(planning, EDIT_TOML_BLOCK, in(planning, "CODEX_HOME", ".codex", "config.toml"),
		    PATH("mcp_servers", "cordon"), NULL,
		    arena_printf(planning->arena, "[mcp_servers.cordon]\ncommand = \"%s\"\nargs = [\"mcp\"]\n",
		                 program));
		return;
	}
	const char *file = in(planning, "CODEX_HOME", ".codex", "environments.toml");
	add(planning, EDIT_TOML_KEY, file, PATH("default"), NULL, "default = \"cordon\"\n");
	add(planning, EDIT_TOML_KEY, file, PATH("include_local"), NULL, "include_local = false\n");
	add(planning, EDIT_TOML_BLOCK, file, PATH("environments", "cordon"), NULL,
	    arena_printf(planning->arena,
	                 "[[environments]]\nid = \"cordon\"\nprogram = \"%s\"\nargs = [\"exec-server\"]\n", program));
	planning->plan->covered = "Commands, and the file operations and patches that Codex makes in its environment.";
	planning->plan->open =
		"MCP servers without environment_id = \"cordon\"; plugins are not found in this environment.";
}

static void plan_gemini(struct planning *planning, bool mcp_only)
{
	const char *settings = in(planning, NULL, ".gemini", "settings.json"), *line = hook_line(planning, "gemini");
	if (mcp_only) {
		add(planning, EDIT_SET, settings, PATH("mcpServers", "cordon"), mcp_entry(planning, false), NULL);
		return;
	}
	/* Every tool: the hook lets those pass that take no command, and refuses a command by a tool that it does not
	 * know. */
	add(planning, EDIT_APPEND, settings, PATH("hooks", "BeforeTool"),
	    json_pack("{s:s, s:[{s:s, s:s, s:s, s:i}]}", "matcher", "*", "hooks", "type", "command", "name", "cordon",
	              "command", line ? line : "", "timeout", HOOK_TIMEOUT_MS), NULL);
	planning->plan->covered = "Commands of the tool run_shell_command, in folders that you trust.";
	planning->plan->open = FILES_OPEN
		"; commands typed after !; a hook that takes longer than 10 s, which this agent lets pass; a "
		"project that switches hooks off.";
}

static const char plugin[] =
	"// Written by cordon setup opencode; cordon setup opencode --undo removes it.\n"
	"// Without cordon's shell, opencode would take another: then its commands do not run.\n"
	"import { accessSync, constants, realpathSync } from \"node:fs\"\n"
	"\n"
	"const shell = %s\n"
	"\n"
	"export const Cordon = async () => ({\n"
	"  \"tool.execute.before\": async (input) => {\n"
	"    if (input.tool !== \"bash\") return\n"
	"    try {\n"
	"      accessSync(realpathSync(shell), constants.X_OK)\n"
	"    } catch {\n"
	"      throw new Error(\"cordon: \" + shell + \" is missing; the command was not run\")\n"
	"    }\n"
	"  },\n"
	"})\n";

static void plan_opencode(struct planning *planning, bool mcp_only)
{
	const char *directory = getenv("XDG_CONFIG_HOME") ? in(planning, "XDG_CONFIG_HOME", ".config", "opencode") :
	                        in(planning, NULL, ".config", "opencode");
	const char *file = directory ? arena_printf(planning->arena, "%s/opencode.jsonc", directory) : NULL;
	if (file && access(file, F_OK) < 0)
		file = arena_printf(planning->arena, "%s/opencode.json", directory);
	if (mcp_only) {
		add(planning, EDIT_SET, file, PATH("mcp", "cordon"),
		    json_pack("{s:s, s:[s,s], s:b}", "type", "local", "command", planning->paths->cordon, "mcp",
		              "enabled", 1),
		    NULL);
		return;
	}
	json_t *name = json_string(planning->paths->shell);
	auto_free char *string = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
	json_decref(name);
	add(planning, EDIT_SET, file, PATH("shell"), json_string(planning->paths->shell), NULL);
	add(planning, EDIT_FILE, directory ? arena_printf(planning->arena, "%s/plugin/cordon.js", directory) : NULL,
	    NULL, NULL, string ? arena_printf(planning->arena, plugin, string) : NULL);
	planning->plan->program = planning->paths->shell;
	planning->plan->covered = "Commands of the tool bash.";
	planning->plan->open = FILES_OPEN
		"; a project whose own opencode.json names another shell; opencode --pure, which loads no plugin, "
		"while cordon is missing.";
}

static void plan_goose(struct planning *planning, bool mcp_only)
{
	const char *shell = is_plain_word(planning->paths->shell) ? planning->paths->shell
	                                                          : quoted(planning, planning->paths->shell);
	planning->plan->is_by_hand = true;
	planning->plan->covered =
		mcp_only
			? arena_printf(planning->arena, "run goose configure and add an extension: %s mcp",
	                               planning->paths->cordon)
			: arena_printf(planning->arena,
	                               "goose takes its shell from the environment only. Add this line to your shell's "
	                               "profile:\n  export GOOSE_SHELL=%s",
	                               shell ? shell : "");
}

static void plan_vscode(struct planning *planning, bool mcp_only)
{
	const char *here = planning->paths->here, *line = hook_line(planning, "vscode");
	planning->beneath = here;
	add(planning, EDIT_SET, arena_printf(planning->arena, "%s/.vscode/mcp.json", here), PATH("servers", "cordon"),
	    mcp_entry(planning, true), NULL);
	if (mcp_only)
		return;
	add(planning, EDIT_APPEND, arena_printf(planning->arena, "%s/.github/hooks/cordon.json", here),
	    PATH("hooks", "PreToolUse"),
	    json_pack("{s:s, s:s, s:i}", "type", "command", "command", line ? line : "", "timeout", 10), NULL);
	planning->plan->covered =
		"In this project: commands that the agent runs in a terminal, and the MCP server cordon.";
	planning->plan->open = FILES_OPEN
		"; other projects; tasks and debuggers; a terminal of another shell than sh, bash, "
		"zsh or fish; a workspace that VS Code does not trust, or hooks switched off in its settings. "
		"Not tried with VS Code itself.";
}

static void plan_cursor(struct planning *planning, bool mcp_only)
{
	const char *line = hook_line(planning, "cursor"), *hooks = in(planning, NULL, ".cursor", "hooks.json");
	add(planning, EDIT_SET, in(planning, NULL, ".cursor", "mcp.json"), PATH("mcpServers", "cordon"),
	    mcp_entry(planning, false), NULL);
	if (mcp_only)
		return;
	add(planning, EDIT_SET, hooks, PATH("version"), json_integer(1), NULL);
	add(planning, EDIT_APPEND, hooks, PATH("hooks", "beforeShellExecution"),
	    json_pack("{s:s, s:b}", "command", line ? line : "", "failClosed", 1), NULL);
	planning->plan->covered = "The MCP server cordon. Commands of the agent's own terminal tool are denied, and it "
	                          "is told to use that server.";
	planning->plan->open = FILES_OPEN ". Not tried with Cursor itself.";
}

int plan_make(struct arena *arena, enum agent_id agent, bool mcp_only, const struct setup_paths *paths,
              struct plan *ret_plan, struct cordon_error *err)
{
	static void (*const plans[AGENT_MAX])(struct planning * planning, bool mcp_only) = {
		[AGENT_CLAUDE] = plan_claude,     [AGENT_CODEX] = plan_codex, [AGENT_GEMINI] = plan_gemini,
		[AGENT_OPENCODE] = plan_opencode, [AGENT_GOOSE] = plan_goose, [AGENT_VSCODE] = plan_vscode,
		[AGENT_CURSOR] = plan_cursor,
	};
	struct plan plan = { .agent = agent, .mcp_only = mcp_only, .program = paths->cordon };
	struct planning planning = { .arena = arena, .paths = paths, .plan = &plan };
	if (!plans[agent])
		return fail(err, CORDON_E_INVALID_REQUEST, 0, agents[agent].name, "cordon cannot set this agent up");
	if (mcp_only) {
		plan.covered = MCP_COVERED;
		plan.open = MCP_OPEN;
	}
	plans[agent](&planning, mcp_only);
	if (planning.failed) {
		plan_free(&plan);
		fail(err, CORDON_E_INVALID_REQUEST, 0, paths->cordon, "the settings cannot be written with this path");
		return fail_remedy(err, "install cordon where the path has no quotes");
	}
	*ret_plan = plan;
	return 0;
}

void plan_free(struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		json_decref(plan->edits[i].value);
	plan->count = 0;
}

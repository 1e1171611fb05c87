/* The dialects of hooks: see hook.h. */
#include "door/agent/hook.h"

#include <jansson.h>
#include <string.h>

#include "base/error.h"
#include "door/rpc/client-ref.h"

enum dialect { DIALECT_CLAUDE, DIALECT_GEMINI, DIALECT_CURSOR, DIALECT_MAX };

static const struct {
	const char *event;
	enum agent_id agent;            /* unless another is named, which may be VS Code */
} dialects[DIALECT_MAX] = {
	[DIALECT_CLAUDE] = { "PreToolUse", AGENT_CLAUDE },
	[DIALECT_GEMINI] = { "BeforeTool", AGENT_GEMINI },
	[DIALECT_CURSOR] = { "beforeShellExecution", AGENT_CURSOR },
};

/* Tools that run `command` by a shell. */
static const char *const shells[] = {
	"Bash",
	"Monitor",
	"run_shell_command",
	"run_in_terminal",
	"runInTerminal",
	"runTerminalCommand",
	"execute/runInTerminal",
};

struct asked {
	struct arena *arena;
	const struct hook_facts *facts;
	enum dialect dialect;
	json_t *whole, *input;          /* borrowed */
	const char *tool;
};

static int bad(struct cordon_error *err, const char *subject, const char *what)
{
	fail(err, CORDON_E_INVALID_REQUEST, 0, subject, "%s", what);
	return fail_remedy(err, "this agent may be newer than cordon knows: cordon doctor; the tool is not run");
}

/* NULL: it is not there, no text, or has a NUL in it. */
static const char *text_of(json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);
	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static bool is_shell(const char *tool)
{
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (!strcmp(shells[i], tool))
			return true;
	return false;
}

/* For a POSIX shell and for fish, in which a backslash between quotes may escape: it stands outside of them, as a quote
 * does. */
static const char *quote(struct arena *arena, const char *text)
{
	char *quoted = arena_alloc(arena, 4 * strlen(text) + 3), *at = quoted;
	if (!quoted)
		return NULL;
	*at++ = '\'';
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\') {
			memcpy(at, (const char[]){ '\'', '\\', *text, '\'' }, 4);
			at += 4;
		} else {
			*at++ = *text;
		}
	}
	*at = '\'';
	return quoted;
}

/* An agent may type the words into a terminal: there these end a line, take back what was typed, or are keys. */
static bool has_keys(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < ' ' && *text != '\n' && *text != '\t') || *text == '\177')
			return true;
	return false;
}

/* The words that run it inside. Where the agent was started is its own word, not the model's. */
static const char *rewrite(const struct asked *asked, const char *command, struct cordon_error *err)
{
	const struct hook_facts *facts = asked->facts;
	enum agent_id agent = facts->agent == AGENT_MAX ? dialects[asked->dialect].agent : facts->agent;
	const char *id = text_of(asked->whole, "session_id"), *project = facts->project;
	if (!project)
		project = text_of(asked->whole, "cwd");
	if (!id || !*id || !project || *project != '/') {
		bad(err, id && *id ? "cwd" : "session_id",
		    "the agent does not say which conversation it is, or where it was started");
		return NULL;
	}
	if (has_keys(id) || has_keys(project) || has_keys(command)) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, asked->tool, "the command has a control character in it");
		fail_remedy(err, "write the character as an escape, such as \\033 for printf; the tool is not run");
		return NULL;
	}
	static const char *const ids[] = { "session_id", "tool_use_id", NULL };
	auto_free char *ref = client_ref_make(asked->whole, ids);
	const char *words[] = { quote(asked->arena, facts->shell), quote(asked->arena, id),
		                quote(asked->arena, project), quote(asked->arena, command),
		                quote(asked->arena, ref ? ref : "{}") };
	char *text =
		words[0] && words[1] && words[2] && words[3] && words[4]
			? arena_printf(asked->arena,
	                               "%s shell --agent=%s --agent-id=%s --workspace=%s --client-ref=%s -- -c -- %s",
	                               words[0], agents[agent].name, words[1], words[2], words[4], words[3])
			: NULL;
	if (!text)
		fail_oom(err);
	return text;
}

static const char *dump(struct arena *arena, json_t *answer, struct cordon_error *err)
{
	auto_free char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
	const char *kept = text ? arena_strdup(arena, text) : NULL;
	json_decref(answer);
	if (!kept)
		fail_oom(err);
	return kept;
}

static const char *answer_rewritten(const struct asked *asked, const char *command, struct cordon_error *err)
{
	const char *text = rewrite(asked, command, err);
	if (!text)
		return NULL;
	if (asked->dialect == DIALECT_GEMINI)
		return dump(asked->arena,
		            json_pack("{s:s, s:{s:s, s:{s:s}}}", "decision", "allow", "hookSpecificOutput",
		                      "hookEventName", dialects[asked->dialect].event, "tool_input", "command", text),
		            err);
	json_t *input = json_copy(asked->input);
	if (!input || json_object_set_new(input, "command", json_string(text)) < 0) {
		json_decref(input);
		fail_oom(err);
		return NULL;
	}
	return dump(asked->arena,
	            json_pack("{s:{s:s, s:o}}", "hookSpecificOutput", "hookEventName", dialects[asked->dialect].event,
	                      "updatedInput", input),
	            err);
}

static const char *answer_denied(const struct asked *asked, struct cordon_error *err)
{
	static const char message[] =
		"Commands run in cordon's sandbox: use the tool `shell` of the MCP server `cordon` instead.";
	return dump(asked->arena,
	            json_pack("{s:s, s:s, s:s}", "permission", "deny", "user_message", message, "agent_message",
	                      message),
	            err);
}

static bool takes_command(json_t *input)
{
	static const char *const names[] = { "command", "cmd", "script" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (json_object_get(input, names[i]))
			return true;
	return false;
}

static const char *answer(const struct asked *asked, struct cordon_error *err)
{
	if (asked->dialect == DIALECT_CURSOR)
		return answer_denied(asked, err);
	const char *command = text_of(asked->input, "command");
	if (is_shell(asked->tool)) {
		if (command)
			return answer_rewritten(asked, command, err);
		bad(err, asked->tool, "the agent runs a command, and does not say which");
		return NULL;
	}
	/* A tool of an MCP server may take what it likes; Gemini CLI says that it is one. Any other that takes a
	 * command is one whose name is new. */
	bool is_mcp = !strncmp(asked->tool, "mcp", 3) || json_is_object(json_object_get(asked->whole, "mcp_context"));
	if (takes_command(asked->input) && !is_mcp) {
		bad(err, asked->tool, "cordon does not know this tool, which takes a command");
		return NULL;
	}
	return dump(asked->arena, json_object(), err);
}

static int read_asked(struct asked *asked, struct cordon_error *err)
{
	const char *event = text_of(asked->whole, "hook_event_name");
	if (!json_is_object(asked->whole))
		return bad(err, "", "what the agent asks is not one JSON object");
	while (asked->dialect < DIALECT_MAX && (!event || strcmp(dialects[asked->dialect].event, event) != 0))
		asked->dialect++;
	if (asked->dialect == DIALECT_MAX)
		return bad(err, event ? event : "hook_event_name", "cordon has no answer to this event");
	if (asked->dialect == DIALECT_CURSOR)
		return 0;
	asked->tool = text_of(asked->whole, "tool_name");
	asked->input = json_object_get(asked->whole, "tool_input");
	if (!asked->tool || !json_is_object(asked->input))
		return bad(err, asked->tool ? "tool_input" : "tool_name",
		           "the agent does not say what it is about to do");
	return 0;
}

int hook_answer(struct arena *arena, const char *input, size_t length, const struct hook_facts *facts,
                const char **ret_answer, struct cordon_error *err)
{
	struct asked asked = { .arena = arena, .facts = facts };
	asked.whole = json_loadb(input, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	const char *text = read_asked(&asked, err) < 0 ? NULL : answer(&asked, err);
	json_decref(asked.whole);
	if (!text)
		return -1;
	*ret_answer = text;
	return 0;
}

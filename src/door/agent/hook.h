/* What an agent asks a hook before it runs a tool, and the answer: a command is rewritten so that cordon-shell runs it,
 * in the session of the conversation; every other tool is let pass, since it starts no command. What cannot be
 * rewritten is refused. Data in, data out: no file is opened and nothing is run, so that an answer takes a few
 * milliseconds.
 *
 *     PreToolUse              Claude Code and VS Code: hookSpecificOutput.updatedInput is the whole new input
 *     BeforeTool              Gemini CLI: hookSpecificOutput.tool_input is merged into the input
 *     beforeShellExecution    Cursor: a command can be allowed or denied, not rewritten; it is denied, and the message
 *                             names the MCP tool to use
 */
#pragma once
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"
#include "door/agent/agent.h"

#define HOOK_INPUT_MAX (16u << 20)

struct hook_facts {
	enum agent_id agent;            /* AGENT_MAX: the one whose dialect it is */
	const char *shell;              /* path of the program that the command is to be run by */
	const char *project;            /* where the agent was started; NULL: only the input says it */
};

/* The answer is JSON, in the arena. On an error the tool must not run. */
int hook_answer(struct arena *arena, const char *input, size_t length, const struct hook_facts *facts,
                const char **ret_answer, struct cordon_error *err) must_check;

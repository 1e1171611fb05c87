/* The tools, a row each, in the order in which clients see them. Schemas are JSON text, as the protocol wants them. */
#include <string.h>

#include "base/cleanup.h"
#include "door/mcp/mcp-file.h"
#include "door/mcp/mcp-run.h"

#define OBJECT(properties, required) "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"
#define CLOSED(properties, required) \
	"{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "],\"additionalProperties\":false}"
#define TEXT(name, about) "\"" name "\":{\"type\":\"string\",\"description\":\"" about "\"}"
#define TEXTS(name, about) "\"" name "\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"" about "\"}"
#define WHOLE(name, about) "\"" name "\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"" about "\"}"
#define FLAG(name, about) "\"" name "\":{\"type\":\"boolean\",\"description\":\"" about "\"}"

/* What every tool that runs a command takes besides the command. */
#define COMMAND_SETTINGS \
	TEXT("cwd", "directory to start in, inside the workspace or a granted path; default: the workspace") "," \
	WHOLE("timeout_ms", "end the command after this time; a lower limit of the session holds") "," \
	TEXTS("env", "variables for the command, each NAME=VALUE") "," \
	TEXT("stdin", "text that the command reads")

#define COMMAND_RESULT OBJECT( \
	"\"exit_code\":{\"type\":\"integer\",\"description\":\"-1 if a signal ended the command\"}," \
	"\"signal\":{\"type\":\"integer\"},\"timed_out\":{\"type\":\"boolean\"},\"truncated\":{\"type\":\"boolean\"}," \
	"\"stdout\":{\"type\":\"string\"},\"stderr\":{\"type\":\"string\"},\"limit_hit\":{\"type\":[\"string\",\"null\"]}," \
	"\"duration_ms\":{\"type\":\"integer\"},\"audit_id\":{\"type\":\"string\"},\"network_hint\":{\"type\":[\"string\",\"null\"]}," \
	"\"denials\":{\"type\":\"array\",\"items\":" OBJECT( \
		"\"what\":{\"type\":\"string\"},\"wall\":{\"type\":\"string\"},\"note\":{\"type\":\"string\"}," \
		"\"grant\":{\"type\":\"string\",\"description\":\"the smallest grant that would allow it\"}", \
		"\"what\",\"wall\"") "}", \
	"\"exit_code\",\"stdout\",\"stderr\",\"denials\",\"audit_id\"")

#define PATH_GIVEN TEXT("path", "absolute, or relative to the workspace")
#define FILE_VERSION TEXT("if_version", "only if the file still has the version that read_file returned")
#define FILE_RESULT(properties, required) OBJECT("\"path\":{\"type\":\"string\"}" properties, "\"path\"" required)
#define FILE_LIST(name) FILE_RESULT(",\"" name "\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},\"more\":{\"type\":\"boolean\"}", \
                                    ",\"" name "\"")

#define JOB_RESULT OBJECT("\"id\":{\"type\":\"string\"},\"state\":{\"type\":\"string\",\"enum\":[\"running\",\"ended\",\"lost\"]}", "\"id\"")
#define JOB_ID TEXT("id", "the job's id, as job_start returned it")

const struct mcp_tool mcp_tools[] = {
	{ "shell", "Run a shell command",
	  "Runs a script by bash in the sandbox of this session and returns its output. Files in the workspace and /tmp persist from one "
	  "command to the next. What was refused is listed in denials.",
	  CLOSED(TEXT("command", "the script, as bash -c takes it") "," COMMAND_SETTINGS, "\"command\""), COMMAND_RESULT,
	  false, true, false, true, mcp_shell },
	{ "exec", "Run a program",
	  "Runs one program with its arguments in the sandbox of this session, without a shell.",
	  CLOSED(TEXTS("argv", "the program and its arguments") "," COMMAND_SETTINGS, "\"argv\""), COMMAND_RESULT,
	  false, true, false, true, mcp_exec },
	{ "job_start", "Start a background job",
	  "Starts a command in the background, such as a server or a long build, and returns its id at once.",
	  CLOSED(TEXT("command", "the script, as bash -c takes it") ","
	         TEXT("cwd", "directory to start in, inside the workspace or a granted path") ","
	         WHOLE("timeout_ms", "end the job after this time; default: one hour") ","
	         TEXTS("env", "variables for the command, each NAME=VALUE"), "\"command\""), JOB_RESULT,
	  false, true, false, true, mcp_job_start },
	{ "job_list", "List background jobs", "Lists the jobs of this session, the oldest first.",
	  CLOSED("", ""), OBJECT("\"jobs\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}", "\"jobs\""),
	  true, false, true, false, mcp_job_list },
	{ "job_poll", "Read a job's output",
	  "Tells how a job is and what it wrote since the given places; `next` of each stream is where to go on.",
	  CLOSED(JOB_ID "," WHOLE("stdout_from", "place in stdout to read from") "," WHOLE("stderr_from", "place in stderr to read from"),
	         "\"id\""), JOB_RESULT,
	  true, false, true, false, mcp_job_poll },
	{ "job_wait", "Wait for a job", "Waits until a job has ended, or for a time, and tells how it is then.",
	  CLOSED(JOB_ID "," WHOLE("timeout_ms", "wait no longer than this; default: 60000"), "\"id\""), JOB_RESULT,
	  true, false, true, false, mcp_job_wait },
	{ "job_kill", "End a job", "Ends a job with everything it started, or sends it a signal.",
	  CLOSED(JOB_ID "," WHOLE("signal", "the signal's number; default: SIGTERM, and SIGKILL 3 s later"), "\"id\""),
	  OBJECT("\"ended\":{\"type\":\"boolean\"}", "\"ended\""),
	  false, true, true, false, mcp_job_kill },
	{ "read_file", "Read a file", "Reads a text file, or some of its lines.",
	  CLOSED(PATH_GIVEN "," WHOLE("offset", "first line, from 1") "," WHOLE("limit", "how many lines") ","
	         FLAG("line_numbers", "begin each line with its number"), "\"path\""),
	  FILE_RESULT(",\"content\":{\"type\":\"string\"},\"version\":{\"type\":\"string\"}", ""),
	  true, false, true, false, mcp_file },
	{ "write_file", "Write a file", "Replaces a file, or makes it, in one step.",
	  CLOSED(PATH_GIVEN "," TEXT("content", "the whole content") "," FLAG("create_only", "refuse to replace a file") "," FILE_VERSION,
	         "\"path\",\"content\""), FILE_RESULT("", ""),
	  false, true, true, false, mcp_file },
	{ "edit_file", "Edit a file", "Replaces a text that is in the file exactly once, or with all wherever it is.",
	  CLOSED(PATH_GIVEN "," TEXT("old_text", "the text to replace") "," TEXT("new_text", "what replaces it") ","
	         FLAG("all", "replace every match") "," FILE_VERSION, "\"path\",\"old_text\",\"new_text\""), FILE_RESULT("", ""),
	  false, true, false, false, mcp_file },
	{ "list_directory", "List a directory", "Lists the entries of a directory.",
	  CLOSED(PATH_GIVEN "," WHOLE("limit", "how many at most"), ""), FILE_LIST("entries"),
	  true, false, true, false, mcp_file },
	{ "find_files", "Find files", "Finds files by their names, without what .gitignore leaves out.",
	  CLOSED(PATH_GIVEN "," TEXTS("globs", "names that are wanted, such as *.c") "," TEXT("type", "file, directory or link") ","
	         WHOLE("limit", "how many at most") "," FLAG("include_ignored", "also what .gitignore leaves out"), ""), FILE_LIST("files"),
	  true, false, true, false, mcp_file },
	{ "grep", "Search in files", "Finds lines that match a regular expression, without what .gitignore leaves out.",
	  CLOSED(TEXT("pattern", "a regular expression without back references") "," PATH_GIVEN ","
	         TEXTS("globs", "names of files to search") "," FLAG("ignore_case", "in either case") ","
	         FLAG("fixed", "the pattern is a text") "," FLAG("names_only", "only which files") "," WHOLE("limit", "how many at most"),
	         "\"pattern\""), FILE_RESULT(",\"matches\":{\"type\":\"array\"},\"more\":{\"type\":\"boolean\"}", ""),
	  true, false, true, false, mcp_file },
	{ "request_capability", "Ask for more",
	  "Asks the human for paths to read or write, or hosts to reach, beyond what the session has. If the answer is for the session, later "
	  "commands have it, too.",
	  CLOSED(TEXTS("fs_read", "absolute paths to read") "," TEXTS("fs_write", "absolute paths to read and write") ","
	         TEXTS("hosts", "HOST:PORT each"), ""),
	  OBJECT(FLAG("granted", "whether it was approved"), "\"granted\""),
	  false, false, true, false, mcp_request_capability },
	{ "preflight", "Would this be allowed?",
	  "Decides everything that running the command would decide, and runs nothing. A question that a human would be asked is reported, "
	  "not asked.",
	  CLOSED(TEXT("command", "the script, as bash -c takes it") ","
	         TEXT("cwd", "directory to start in") "," TEXTS("fs_read", "absolute paths to read") ","
	         TEXTS("fs_write", "absolute paths to read and write") "," TEXTS("hosts", "HOST:PORT each"), "\"command\""),
	  OBJECT(FLAG("allowed", "whether the command would start") "," TEXT("reason", "why not") ","
	         TEXT("remediation", "what to do about it"), "\"allowed\""),
	  true, false, true, false, mcp_preflight },
};
const size_t mcp_tool_count = ARRAY_SIZE(mcp_tools);

const struct mcp_tool *mcp_tool_find(const char *name)
{
	for (size_t i = 0; i < mcp_tool_count; i++)
		if (!strcmp(mcp_tools[i].name, name))
			return &mcp_tools[i];
	return NULL;
}

/* The tools, a row each, in the order in which clients see them. Schemas are JSON text, as the protocol wants them. Where a
 * system has no bash there is no tool for scripts, and where it has no jobs there is none for these. */
#include <string.h>

#include "base/cleanup.h"
#include "door/mcp/mcp-file.h"
#include "door/mcp/mcp-run.h"

#define OBJECT(properties, required) "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"
#define CLOSED(properties, required)                                                                                   \
	"{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required                                 \
	"],\"additionalProperties\":false}"
#define TEXT(name, about) "\"" name "\":{\"type\":\"string\",\"description\":\"" about "\"}"
#define TEXTS(name, about)                                                                                             \
	"\"" name "\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"" about "\"}"
#define WHOLE(name, about) "\"" name "\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"" about "\"}"
#define FLAG(name, about) "\"" name "\":{\"type\":\"boolean\",\"description\":\"" about "\"}"

/* What every tool that runs a command takes besides the command. */
#define COMMAND_SETTINGS \
	TEXT("cwd", "directory to start in, inside the workspace or a granted path; default: the workspace") "," \
	WHOLE("timeout_ms", "end the command after this time; a lower limit of the session holds") "," \
	TEXTS("env", "variables for the command, each NAME=VALUE") "," \
	TEXT("stdin", "text that the command reads")

#ifdef SYSTEM_WITHOUT_BASH
#define COMMAND TEXTS("argv", "the program and its arguments")
#define COMMAND_NEEDED "\"argv\""
#else
#define COMMAND TEXT("command", "the script, as bash -c takes it")
#define COMMAND_NEEDED "\"command\""
#endif

#define STRING "{\"type\":\"string\"}"
#define INTEGER "{\"type\":\"integer\"}"
#define COUNT "{\"type\":\"integer\",\"minimum\":0}"
#define BOOLEAN "{\"type\":\"boolean\"}"
#define LIST(items) "{\"type\":\"array\",\"items\":" items "}"
#define OR_NULL(type) "{\"type\":[\"" type "\",\"null\"]}"
#define IS(name, schema) "\"" name "\":" schema

/* The arguments of request_capability; an object without any is left out. */
#define TO_ASK IS("request_capability", CLOSED(IS("fs_read", LIST(STRING)) "," IS("fs_write", LIST(STRING)) "," IS("hosts", LIST(STRING)), ""))
#define DENIAL \
	CLOSED(IS("what", STRING) "," IS("wall", STRING) "," IS("note", STRING) "," TO_ASK, "\"what\",\"wall\",\"note\"")
#define FAILURE                                                                                                        \
	CLOSED(IS("class", STRING) "," IS("boundary", STRING) "," IS("step", STRING) "," IS("reason", STRING) ","      \
	       IS("subject", STRING) "," IS("remediation", STRING) "," IS("platform", STRING) ","                      \
	       IS("retriable", BOOLEAN) "," IS("audit_id", STRING) "," TO_ASK, "\"class\",\"reason\",\"remediation\"")

#define COMMAND_RESULT                                                                                                 \
	CLOSED("\"exit_code\":{\"type\":\"integer\",\"description\":\"-1 if a signal ended the command\"},"          \
	       IS("signal", COUNT) "," IS("ended_by", STRING) "," IS("timed_out", BOOLEAN) ","                         \
	       IS("oom_killed", BOOLEAN) "," IS("truncated", BOOLEAN) "," IS("stdout", STRING) ","                     \
	       IS("stderr", STRING) "," WHOLE("stdout_bytes", "all that was written, kept or not") ","                 \
	       WHOLE("stderr_bytes", "all that was written, kept or not") "," IS("limit_hit", OR_NULL("string")) ","   \
	       IS("network_hint", OR_NULL("string")) "," IS("duration_ms", COUNT) "," IS("audit_id", STRING) ","       \
	       IS("driver", STRING) ","                                                                                \
	       "\"isolation\":{\"type\":\"object\",\"additionalProperties\":" STRING                                    \
	       ",\"description\":\"each wall, and the mechanism that held it, or none\"},"                             \
	       IS("denials", LIST(DENIAL)) "," TEXT("note", "what else there is to know") "," IS("error", FAILURE),    \
	       "\"exit_code\",\"signal\",\"ended_by\",\"timed_out\",\"oom_killed\",\"truncated\",\"stdout\",\"stderr\","   \
	       "\"stdout_bytes\",\"stderr_bytes\",\"limit_hit\",\"network_hint\",\"duration_ms\",\"audit_id\","          \
	       "\"driver\",\"isolation\",\"denials\"")

#define PATH_GIVEN TEXT("path", "absolute, or relative to the workspace")
#define FILE_VERSION TEXT("if_version", "only if the file still has the version that read_file returned")
/* What every tool for files returns besides; where it hid a secret, it says so. */
#define SECRET                                                                                                         \
	CLOSED(IS("kind", STRING) "," IS("name", STRING) "," IS("where", STRING) "," IS("layer", STRING) ","           \
	       IS("offset", COUNT) "," IS("length", COUNT) "," IS("fingerprint", STRING) "," IS("action", STRING),     \
	       "\"kind\",\"where\",\"action\"")
#define FILE_RESULT(properties, required)                                                                              \
	CLOSED(IS("tool", STRING) "," IS("audit_id", STRING) "," IS("path", STRING) "," properties ","                 \
	       IS("notes", LIST(STRING)) "," IS("secrets", LIST(SECRET)) "," IS("secrets_found", COUNT) ","            \
	       IS("denials", LIST(DENIAL)), "\"tool\",\"audit_id\",\"path\"," required)
#define FILE_CONTENT                                                                                                   \
	FILE_RESULT(IS("content", STRING) "," IS("version", STRING) "," WHOLE("size", "of the whole file, in bytes") "," \
	            WHOLE("first", "the first line that is returned") "," WHOLE("lines", "how many are returned") ","  \
	            WHOLE("next", "the line to continue from; 0: there is no more") ","                                \
	            FLAG("cut", "a line was too long, and is not whole") "," IS("utf8", BOOLEAN),                      \
	            "\"content\",\"version\",\"size\",\"first\",\"lines\",\"next\",\"cut\",\"utf8\"")
#define FILE_WRITTEN(properties, required)                                                                             \
	FILE_RESULT(FLAG("created", "there was no such file") "," IS("size", COUNT) "," IS("version", STRING) properties, \
	            "\"created\",\"size\",\"version\"" required)
#define KIND "{\"type\":\"string\",\"enum\":[\"file\",\"directory\",\"link\",\"fifo\",\"socket\",\"device\"]}"
#define FILE_LIST(entry) FILE_RESULT(IS("entries", LIST(entry)) "," IS("more", BOOLEAN), "\"entries\",\"more\",\"notes\"")
#define LISTED                                                                                                         \
	CLOSED(IS("name", STRING) "," IS("type", KIND) "," IS("size", COUNT) "," IS("mode", STRING) ","                \
	       IS("modified", STRING) "," IS("target", STRING), "\"name\",\"type\",\"size\",\"mode\",\"modified\"")
#define FOUND CLOSED(IS("path", STRING) "," IS("type", KIND) "," IS("size", COUNT), "\"path\",\"type\",\"size\"")
#define MATCH                                                                                                          \
	CLOSED(IS("path", STRING) "," IS("line", COUNT) "," IS("text", STRING) ","                                     \
	       FLAG("cut", "the line is longer"), "\"path\",\"line\",\"text\"")
#define GREP_RESULT                                                                                                    \
	FILE_RESULT(IS("matches", LIST(MATCH)) ",\"files\":{\"type\":\"array\",\"items\":" STRING                     \
	            ",\"description\":\"with names_only, in the place of matches\"}," IS("more", BOOLEAN) ","         \
	            IS("searched", COUNT) "," IS("binary", COUNT), "\"more\",\"searched\",\"binary\",\"notes\"")

/* What a human would be asked for; limits and the like come besides. */
#define ASKED                                                                                                          \
	OBJECT(IS("fs_read", LIST(STRING)) "," IS("fs_write", LIST(STRING)) "," IS("hosts", LIST(STRING)) ","          \
	       IS("programs", LIST(STRING)) "," IS("network", STRING) "," IS("spawn", BOOLEAN) "," IS("rule", STRING), "")

/* A job, as its record has it; `output` is what each stream tells. */
#define JOB(output)                                                                                                    \
	CLOSED(IS("id", STRING) ",\"state\":{\"type\":\"string\",\"enum\":[\"running\",\"ended\",\"lost\"]},"             \
	       IS("command", LIST(STRING)) "," IS("session", STRING) "," IS("started", STRING) ","                     \
	       IS("ended", OR_NULL("string")) "," IS("pid", COUNT) "," IS("timeout_ms", COUNT) ","                     \
	       "\"exit_code\":{\"type\":[\"integer\",\"null\"],\"description\":\"null while it runs\"},"                 \
	       IS("signal", INTEGER) "," IS("timed_out", BOOLEAN) "," IS("oom_killed", BOOLEAN) ","                    \
	       FLAG("killed", "it was told to end") "," IS("limit_hit", OR_NULL("string")) ","                         \
	       IS("note", OR_NULL("string")) "," IS("duration_ms", COUNT) "," IS("stdout", output) ","                 \
	       IS("stderr", output),                                                                                   \
	       "\"id\",\"state\",\"command\",\"session\",\"started\",\"ended\",\"pid\",\"timeout_ms\",\"exit_code\","     \
	       "\"signal\",\"timed_out\",\"oom_killed\",\"killed\",\"limit_hit\",\"note\",\"duration_ms\","              \
	       "\"stdout\",\"stderr\"")
#define JOB_BYTES                                                                                                      \
	WHOLE("bytes", "written so far") "," WHOLE("from", "the first of them that is kept, or that `data` begins with")
#define JOB_TOLD JOB(CLOSED(JOB_BYTES, "\"bytes\",\"from\""))
#define JOB_READ                                                                                                       \
	JOB(CLOSED(JOB_BYTES "," WHOLE("missed", "bytes before `from` that are lost") ","                              \
	           WHOLE("next", "the place to continue from") "," IS("data", STRING),                                 \
	           "\"bytes\",\"from\",\"missed\",\"next\",\"data\""))
#define JOB_ID TEXT("id", "the job's id, as job_start returned it")

const struct mcp_tool mcp_tools[] = {
#ifndef SYSTEM_WITHOUT_BASH
	{ "shell", "Run a shell command",
	  "Runs a script by bash in the sandbox of this session and returns its output. Files in the workspace and /tmp persist from one "
	  "command to the next. What was refused is listed in denials.",
	  CLOSED(TEXT("command", "the script, as bash -c takes it") "," COMMAND_SETTINGS, "\"command\""),
	  COMMAND_RESULT, false, true, false, true, mcp_shell },
#endif
	{ "exec", "Run a program",
	  "Runs one program with its arguments in the sandbox of this session, without a shell.",
	  CLOSED(TEXTS("argv", "the program and its arguments") "," COMMAND_SETTINGS, "\"argv\""), COMMAND_RESULT,
	  false, true, false, true, mcp_exec },
#ifndef SYSTEM_WITHOUT_JOBS
	{ "job_start", "Start a background job",
	  "Starts a command in the background, such as a server or a long build, and returns its id at once.",
	  CLOSED(TEXT("command", "the script, as bash -c takes it") "," TEXT("cwd", "directory to start in, inside the workspace or a granted path") "," WHOLE(
			 "timeout_ms",
			 "end the job after this time; default: one hour") "," TEXTS("env",
	                                                                             "variables for the command, each NAME=VALUE"),
	         "\"command\""),
	  JOB_TOLD, false, true, false, true, mcp_job_start },
	{ "job_list", "List background jobs", "Lists the jobs of this session, the oldest first.", CLOSED("", ""),
	  CLOSED(IS("jobs", LIST(JOB_TOLD)), "\"jobs\""), true, false, true, false,
	  mcp_job_list },
	{ "job_poll", "Read a job's output",
	  "Returns a job's state and its output from the given offsets; continue from `next` of each stream.",
	  CLOSED(JOB_ID "," WHOLE("stdout_from", "place in stdout to read from") "," WHOLE(
			 "stderr_from", "place in stderr to read from"),
	         "\"id\""),
	  JOB_READ, true, false, true, false, mcp_job_poll },
	{ "job_wait", "Wait for a job", "Waits until a job has ended, or for a time, and returns its state.",
	  CLOSED(JOB_ID "," WHOLE("timeout_ms", "wait no longer than this; default: 60000"), "\"id\""), JOB_TOLD,
	  true, false, true, false, mcp_job_wait },
	{ "job_kill", "End a job", "Ends a job with everything it started, or sends it a signal.",
	  CLOSED(JOB_ID "," WHOLE("signal", "the signal's number; default: SIGTERM, and SIGKILL 3 s later"), "\"id\""),
	  CLOSED(FLAG("ended", "false: it was sent a signal"), "\"ended\""), false, true, true, false, mcp_job_kill },
#endif
	{ "read_file", "Read a file", "Reads a text file, or some of its lines.",
	  CLOSED(PATH_GIVEN "," WHOLE("offset", "first line, from 1") "," WHOLE("limit", "how many lines") "," FLAG(
			 "line_numbers", "begin each line with its number"),
	         "\"path\""),
	  FILE_CONTENT, true, false, true,
	  false, mcp_file },
	{ "write_file", "Write a file", "Replaces a file, or makes it, in one step.",
	  CLOSED(PATH_GIVEN "," TEXT("content", "the whole content") "," FLAG(
			 "create_only", "refuse to replace a file") "," FILE_VERSION,
	         "\"path\",\"content\""),
	  FILE_WRITTEN("", ""), false, true, true, false, mcp_file },
	{ "edit_file", "Edit a file", "Replaces a text that is in the file exactly once, or with all wherever it is.",
	  CLOSED(PATH_GIVEN "," TEXT("old_text", "the text to replace") "," TEXT(
			 "new_text", "what replaces it") "," FLAG("all", "replace every match") "," FILE_VERSION,
	         "\"path\",\"old_text\",\"new_text\""),
	  FILE_WRITTEN("," WHOLE("replaced", "how many matches") "," WHOLE("line", "of the first"),
	               ",\"replaced\",\"line\""), false, true, false, false, mcp_file },
	{ "list_directory", "List a directory", "Lists the entries of a directory.",
	  CLOSED(PATH_GIVEN "," WHOLE("limit", "how many at most"), ""), FILE_LIST(LISTED), true, false, true, false,
	  mcp_file },
	{ "find_files", "Find files", "Finds files by their names, without what .gitignore leaves out.",
	  CLOSED(PATH_GIVEN "," TEXTS("globs", "names that are wanted, such as *.c") "," TEXT(
			 "type",
			 "file, directory or link") "," WHOLE("limit",
	                                                      "how many at most") "," FLAG("include_ignored",
	                                                                                   "also what .gitignore leaves out"),
	         ""),
	  FILE_LIST(FOUND), true, false, true, false, mcp_file },
	{ "grep", "Search in files", "Finds lines that match a regular expression, without what .gitignore leaves out.",
	  CLOSED(TEXT("pattern", "a regular expression without back references") "," PATH_GIVEN "," TEXTS("globs", "names of files to search") "," FLAG(
			 "ignore_case",
			 "in either case") "," FLAG("fixed",
	                                            "the pattern is a text") "," FLAG("names_only",
	                                                                              "only which files") "," WHOLE("limit",
	                                                                                                            "how many at most"),
	         "\"pattern\""),
	  GREP_RESULT, true, false, true,
	  false, mcp_file },
	{ "request_capability", "Ask for more",
	  "Asks the human for paths to read or write, or hosts to reach, beyond what the session has. If it is granted, every later command of "
	  "the session has it.",
	  CLOSED(TEXTS("fs_read", "absolute paths to read") "," TEXTS(
			 "fs_write", "absolute paths to read and write") "," TEXTS("hosts", "HOST:PORT each"),
	         ""),
	  CLOSED(FLAG("granted", "whether it was approved"), "\"granted\""), false, false, true, false,
	  mcp_request_capability },
	{ "preflight", "Would this be allowed?",
	  "Decides everything that running the command would decide, and runs nothing. A question that a human would be asked is reported, "
	  "not asked.",
	  CLOSED(COMMAND "," TEXT("cwd", "directory to start in") "," TEXTS(
			 "fs_read",
			 "absolute paths to read") "," TEXTS("fs_write",
	                                                     "absolute paths to read and write") "," TEXTS("hosts",
	                                                                                                   "HOST:PORT each"),
	         COMMAND_NEEDED),
	  CLOSED(FLAG("allowed", "whether the command would start without a question") "," TEXT("reason", "why not") "," TEXT(
			 "remediation", "what to do about it") "," IS("asks", ASKED) "," TO_ASK "," TEXT(
			 "rule", "the rule that wants a human"),
	         "\"allowed\""),
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

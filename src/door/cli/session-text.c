/* Sessions as text: see session-text.h. Ids, reasons and paths are untrusted: they are escaped, and in the list an id
 * is cut if it would push everything else off the line. */
#include "door/cli/session-text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "door/cli/cell.h"
#include "door/cli/job-text.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"

#define ID_WIDTH_MAX 40
#define COMMAND_WIDTH 100

struct text {
	char bytes[4096];
};

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* A path that is not UTF-8 is an object with its bytes in hex. */
static const char *path_text(const json_t *value)
{
	return json_is_object(value) ? json_read_text(value, "hex") : json_read_string(value);
}

static const char *id_text(const json_t *session)
{
	const char *id = json_string_value(json_object_get(session, "id"));
	return id ? id : "(damaged)";
}

static size_t widest_id(const json_t *sessions)
{
	size_t widest = strlen("ID");
	for JSON_EACH(session, sessions) {
		auto_free char *cell = cell_make(id_text(session), ID_WIDTH_MAX);
		size_t width = cell ? cell_width(cell) : 0;
		widest = width > widest ? width : widest;
	}
	return widest;
}

static const char *place_text(const json_t *session)
{
	const json_t *directory = json_object_get(session, "directory");
	if (directory)
		return json_read_string(directory);
	return json_read_true(session, "workspace_named") ? path_text(json_object_get(session, "workspace")) :
	                                                    "(its own)";
}

void session_print_list(const json_t *list)
{
	const json_t *sessions = json_object_get(list, "sessions");
	size_t id_width = widest_id(sessions) + 2;
	if (!json_array_size(sessions)) {
		printf("no sessions\n");
		return;
	}
	printf("%-*s%-9s%-21s%-8s%s\n", (int)id_width, "ID", "STATE", "CREATED", "GRANTS", "WORKSPACE");
	for JSON_EACH(session, sessions) {
		cell_print(id_text(session), ID_WIDTH_MAX, id_width);
		cell_print(json_read_text(session, "state"), 0, 9);
		/* To the second: 2026-01-31T12:34:56 */
		printf("%-21.19s%-8ld", json_read_text(session, "created"), json_read_number(session, "grant_count"));
		cell_print(place_text(session), 0, 0);
		putchar('\n');
	}
}

/* ---- one --------------------------------------------------------------------------------------------------------- */

#define LABEL_WIDTH 12

static void print_line(const char *label, const char *text)
{
	printf("%-*s", LABEL_WIDTH, label);
	report_untrusted(stdout, text);
	putchar('\n');
}

static void print_path_list(const char *label, const json_t *paths)
{
	for JSON_EACH(path, paths) {
		print_line(label, path_text(path));
		label = "";
	}
}

static void print_size(long bytes)
{
	if (bytes % (1 << 20) == 0)
		printf("%ld MiB", bytes >> 20);
	else
		printf("%ld bytes", bytes);
}

static void print_time(long ms)
{
	if (ms % 1000 == 0)
		printf("%ld s", ms / 1000);
	else
		printf("%ld ms", ms);
}

static void print_number(long number)
{
	printf("%ld", number);
}

static void print_limits(const json_t *limits)
{
	static const struct {
		const char *key, *name;
		void (*print)(long number);
	} rows[] = {
		{ "memory_bytes", "memory", print_size },    { "cpu_percent", "cpu percent", print_number },
		{ "processes", "processes", print_number },  { "disk_bytes", "disk", print_size },
		{ "wall_ms", "time", print_time },           { "stdout_bytes", "stdout", print_size },
		{ "stderr_bytes", "stderr", print_size },    { "open_files", "open files", print_number },
		{ "tmp_bytes", "/tmp", print_size },
	};
	const char *before = "";
	printf("%-*s", LABEL_WIDTH, "  limits");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const json_t *value = json_object_get(limits, rows[i].key);
		if (!value)
			continue;
		printf("%s%s ", before, rows[i].name);
		if (json_is_string(value))
			report_untrusted(stdout, json_string_value(value));
		else
			rows[i].print((long)json_integer_value(value));
		before = ", ";
	}
	printf("%s\n", *before ? "" : "none");
}

static void print_capabilities(const json_t *set)
{
	static const struct {
		const char *key, *label;
	} lists[] = {
		{ "fs_read", "  read" },    { "fs_write", "  write" },    { "hosts", "  hosts" },
		{ "publish", "  publish" }, { "programs", "  programs" }, { "devices", "  devices" },
		{ "sockets", "  sockets" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		print_path_list(lists[i].label, json_object_get(set, lists[i].key));
	print_line("  network", json_read_text(set, "network"));
	print_line("  spawn", json_read_true(set, "spawn") ? "yes" : "no");
	print_limits(json_object_get(set, "limits"));
}

static void print_grants(const json_t *grants)
{
	for JSON_EACH(grant, grants) {
		struct text when;
		snprintf(when.bytes, sizeof(when), "%.26s at %.24s", json_read_text(grant, "approval"),
			 json_read_text(grant, "time"));
		print_line("grant", when.bytes);
		print_capabilities(json_object_get(grant, "capabilities"));
	}
}

static void print_denials(const json_t *denials)
{
	for JSON_EACH(denial, denials) {
		struct text line;
		const char *reason = json_read_text(denial, "reason");
		snprintf(line.bytes, sizeof(line), "at %.24s%s%.1024s", json_read_text(denial, "time"),
			 *reason ? ": " : "", reason);
		print_line("denied", line.bytes);
	}
}

static void print_labels(const json_t *labels)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)labels, name, value) {
		struct text line;
		snprintf(line.bytes, sizeof(line), "%.256s=%.1024s", name, json_read_string(value));
		print_line("label", line.bytes);
	}
}

static bool runs_in(const json_t *sandbox, const char *id)
{
	for JSON_EACH(command, json_object_get(sandbox, "running"))
		if (!strcmp(json_read_text(command, "audit_id"), id))
			return true;
	return false;
}

static void print_command(const char *before, const json_t *command, const char *after)
{
	auto_free char *line = job_command_line(command);
	printf("%-*s%s", LABEL_WIDTH, "", before);
	cell_print(line ? line : "", COMMAND_WIDTH, 0);
	printf("%s\n", after);
}

static void print_running(const json_t *sandbox)
{
	for JSON_EACH(command, json_object_get(sandbox, "running")) {
		struct text what, usage;
		snprintf(what.bytes, sizeof(what), "%s %.64s: ", json_read_true(command, "job") ? "job" : "command",
		         json_read_text(command, "audit_id"));
		snprintf(usage.bytes, sizeof(usage), ", pid %ld, for %ld s, %ld processes, %ld MiB",
		         json_read_number(command, "pid"), json_read_number(command, "running_ms") / 1000,
		         json_read_number(command, "processes"), json_read_number(command, "memory_kb") / 1024);
		print_command(what.bytes, command, usage.bytes);
	}
}

/* What runs in it, and the jobs that have one of their own. */
static void print_sandbox(const json_t *session)
{
	const json_t *sandbox = json_object_get(session, "sandbox");
	bool up = json_is_object(sandbox) && json_read_true(sandbox, "up");
	struct text line;
	snprintf(line.bytes, sizeof(line), "up for %ld s, %zu running", json_read_number(sandbox, "up_ms") / 1000,
	         json_array_size(json_object_get(sandbox, "running")));
	print_line("sandbox", up ? line.bytes : "none is up here (another process may have one):"
	                                        " the next command raises one");
	if (up)
		print_running(sandbox);
	for JSON_EACH(job, json_object_get(session, "jobs")) {
		const char *id = json_read_text(job, "id");
		if (json_read_true(job, "shares"))
			snprintf(line.bytes, sizeof(line), "job %.64s, in the sandbox that process %ld has: ", id,
			         json_read_number(job, "process"));
		else
			snprintf(line.bytes, sizeof(line), "job %.64s, in a sandbox of its own: ", id);
		if (!up || !runs_in(sandbox, id))
			print_command(line.bytes, job, "");
	}
}

void session_print(const json_t *session)
{
	struct text state;
	const json_t *baseline = json_object_get(session, "baseline");
	const char *why = json_read_text(session, "why");
	const char *running = json_read_text(session, "running_commands");
	snprintf(state.bytes, sizeof(state), "%.16s%s%.1024s", json_read_text(session, "state"), *why ? ": " : "", why);
	print_line("id", json_read_text(session, "id"));
	print_line("state", state.bytes);
	if (*running)
		print_line("running",
		           !strcmp(running, "frozen") ?
		                   "commands that run are frozen" :
		                   "commands that run go on: there is no control group of version 2 to freeze them");
	print_line("workspace", path_text(json_object_get(session, "workspace")));
	print_line("home", path_text(json_object_get(session, "home")));
	print_line("tmp", path_text(json_object_get(session, "tmp")));
	print_labels(json_object_get(session, "labels"));
	if (json_read_number(session, "idle_expiry_s")) {
		snprintf(state.bytes, sizeof(state), "after %ld s without a command",
		         json_read_number(session, "idle_expiry_s"));
		print_line("ends", state.bytes);
	}
	print_sandbox(session);
	print_line("created", json_read_text(session, "created"));
	print_line("changed", json_read_text(session, "changed"));
	print_line("baseline", json_is_object(baseline) ? "given when it was made" : "the configuration's");
	if (json_is_object(baseline))
		print_capabilities(baseline);
	print_grants(json_object_get(session, "grants"));
	print_denials(json_object_get(session, "denials"));
}

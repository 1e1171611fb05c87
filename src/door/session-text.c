/* Sessions for people: see session-text.h. Ids, reasons and paths were written by others: they come out escaped, and in
 * the list an id is cut where it would push everything else off the line. */
#include "door/session-text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "door/cell.h"
#include "door/json-look.h"
#include "door/report.h"

#define ID_WIDTH_MAX 40

struct text {
	char bytes[4096];
};
#define TEXT(object, key) json_look_text(json_look_member(object, key), (struct text){ 0 }.bytes, sizeof(struct text))
#define EACH(element, array) (const char *element = json_look_first(array); element; element = json_look_next(element))

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* A path that is not UTF-8 is an object with its bytes in hex. */
static const char *path_text(const char *value, char *text, size_t size)
{
	return json_look_text(value && *value == '{' ? json_look_member(value, "hex") : value, text, size);
}

static const char *id_text(const char *session, char *text, size_t size)
{
	const char *id = json_look_member(session, "id");
	if (id && *id == '"')
		return json_look_text(id, text, size);
	snprintf(text, size, "(damaged)");
	return text;
}

static size_t widest_id(const char *sessions)
{
	size_t widest = strlen("ID");
	for EACH(session, sessions) {
		struct text text;
		auto_free char *cell = cell_make(id_text(session, text.bytes, sizeof(text)), ID_WIDTH_MAX);
		size_t width = cell ? cell_width(cell) : 0;
		widest = width > widest ? width : widest;
	}
	return widest;
}

static const char *place_text(const char *session, char *text, size_t size)
{
	const char *directory = json_look_member(session, "directory");
	if (directory)
		return json_look_text(directory, text, size);
	if (json_look_true(json_look_member(session, "workspace_named")))
		return path_text(json_look_member(session, "workspace"), text, size);
	snprintf(text, size, "(its own)");
	return text;
}

void session_print_list(const char *list)
{
	const char *sessions = json_look_member(list, "sessions");
	size_t id_width = widest_id(sessions) + 2;
	if (!json_look_first(sessions)) {
		printf("no sessions\n");
		return;
	}
	printf("%-*s%-9s%-21s%-8s%s\n", (int)id_width, "ID", "STATE", "CREATED", "GRANTS", "WORKSPACE");
	for EACH(session, sessions) {
		struct text id, place;
		cell_print(id_text(session, id.bytes, sizeof(id)), ID_WIDTH_MAX, id_width);
		cell_print(TEXT(session, "state"), 0, 9);
		/* To the second: 2026-01-31T12:34:56 */
		printf("%-21.19s%-8ld", TEXT(session, "created"), json_look_number(json_look_member(session, "grant_count")));
		cell_print(place_text(session, place.bytes, sizeof(place)), 0, 0);
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

static void print_path_list(const char *label, const char *paths)
{
	for EACH(path, paths) {
		struct text text;
		print_line(label, path_text(path, text.bytes, sizeof(text)));
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

static void print_limits(const char *limits)
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
		const char *value = json_look_member(limits, rows[i].key);
		if (!value)
			continue;
		printf("%s%s ", before, rows[i].name);
		if (*value == '"')
			report_untrusted(stdout, TEXT(limits, rows[i].key));
		else
			rows[i].print(json_look_number(value));
		before = ", ";
	}
	printf("%s\n", *before ? "" : "none");
}

static void print_capabilities(const char *set)
{
	static const struct {
		const char *key, *label;
	} lists[] = {
		{ "fs_read", "  read" }, { "fs_write", "  write" }, { "hosts", "  hosts" }, { "programs", "  programs" },
		{ "devices", "  devices" }, { "sockets", "  sockets" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		print_path_list(lists[i].label, json_look_member(set, lists[i].key));
	print_line("  network", TEXT(set, "network"));
	print_line("  spawn", json_look_true(json_look_member(set, "spawn")) ? "yes" : "no");
	print_limits(json_look_member(set, "limits"));
}

static void print_grants(const char *grants)
{
	for EACH(grant, grants) {
		struct text when;
		snprintf(when.bytes, sizeof(when), "%.26s at %.24s", TEXT(grant, "approval"), TEXT(grant, "time"));
		print_line("grant", when.bytes);
		print_capabilities(json_look_member(grant, "capabilities"));
	}
}

static void print_denials(const char *denials)
{
	for EACH(denial, denials) {
		struct text line;
		const char *reason = TEXT(denial, "reason");
		snprintf(line.bytes, sizeof(line), "at %.24s%s%.1024s", TEXT(denial, "time"), *reason ? ": " : "", reason);
		print_line("denied", line.bytes);
	}
}

void session_print(const char *session)
{
	struct text state, place;
	const char *baseline = json_look_member(session, "baseline"), *why = TEXT(session, "why");
	snprintf(state.bytes, sizeof(state), "%.16s%s%.1024s", TEXT(session, "state"), *why ? ": " : "", why);
	print_line("id", TEXT(session, "id"));
	print_line("state", state.bytes);
	print_line("workspace", path_text(json_look_member(session, "workspace"), place.bytes, sizeof(place)));
	print_line("home", path_text(json_look_member(session, "home"), place.bytes, sizeof(place)));
	print_line("created", TEXT(session, "created"));
	print_line("changed", TEXT(session, "changed"));
	print_line("baseline", baseline && *baseline == '{' ? "given when it was made" : "the configuration's");
	if (baseline && *baseline == '{')
		print_capabilities(baseline);
	print_grants(json_look_member(session, "grants"));
	print_denials(json_look_member(session, "denials"));
}

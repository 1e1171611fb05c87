/* `cordon doctor`: which walls hold here. The library raises them for real and answers in JSON; this formats it: the
 * default driver wall by wall, the others in a line each, and the fix for what does not hold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/error.h"
#include "door/cli/cli.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"
#include "door/setup/setup.h"

#define COLUMNS 104                     /* of advice, about what the table is wide */

enum paint { PLAIN, BOLD, GREEN, RED, DIM };

static void print_painted(enum paint paint, const char *text, int width)
{
	static const char *const codes[] = { "", "\033[1m", "\033[32m", "\033[31m", "\033[2m" };
	const char *no_color = getenv("NO_COLOR");
	bool coloured = paint != PLAIN && isatty(STDOUT_FILENO) && !(no_color && *no_color);
	if (coloured)
		fputs(codes[paint], stdout);
	report_untrusted(stdout, text);
	if (coloured)
		fputs("\033[0m", stdout);
	int padding = width - (int)strlen(text);
	printf("%*s", padding > 0 ? padding : 0, "");
}

/* Long enough for a fix of several commands. */
struct text {
	char bytes[1024];
};

static bool holds(const json_t *object)
{
	return json_read_true(object, "holds");
}

static int widest(const json_t *walls, const char *key, const char *title)
{
	size_t widest = strlen(title);
	for JSON_EACH(wall, walls)
		if (strlen(json_read_text(wall, key)) > widest)
			widest = strlen(json_read_text(wall, key));
	return (int)widest;
}

static void print_walls(const json_t *walls)
{
	int name = widest(walls, "wall", "WALL"), mechanism = widest(walls, "mechanism", "MECHANISM");
	printf("\n  ");
	print_painted(DIM, "WALL", name + 2);
	print_painted(DIM, "MECHANISM", mechanism + 2);
	print_painted(DIM, "HOLDS", 7);
	print_painted(DIM, "NOTE", 0);
	putchar('\n');
	for JSON_EACH(wall, walls) {
		printf("  ");
		print_painted(PLAIN, json_read_text(wall, "wall"), name + 2);
		print_painted(PLAIN, json_read_text(wall, "mechanism"), mechanism + 2);
		print_painted(holds(wall) ? GREEN : RED, holds(wall) ? "yes" : "no", 7);
		print_painted(PLAIN, json_read_text(wall, "found"), 0);
		putchar('\n');
	}
}

/* One line: all of it, how much of it, or why none. */
static void print_verdict(const json_t *driver)
{
	const char *reason = json_read_text(json_object_get(driver, "error"), "reason");
	unsigned held = 0, all = 0;
	for JSON_EACH(wall, json_object_get(driver, "walls")) {
		held += holds(wall);
		all++;
	}
	if (holds(driver)) {
		print_painted(GREEN, "holds every wall", 0);
	} else if (*reason) {
		print_painted(RED, "does not work here: ", 0);
		report_untrusted(stdout, reason);
	} else {
		print_painted(RED, "does not hold every wall", 0);
		printf(": %u of %u", held, all);
	}
	putchar('\n');
}

/* Its end. What is to be typed is one. */
static const char *end_of_word(const char *word)
{
	const char *quoted = *word == '`' ? strchr(word + 1, '`') : NULL;
	word = quoted ? quoted : word;
	return word + strcspn(word, " ");
}

/* What there is to do about something, if there is: in as many lines as it takes. */
static void print_advice(const char *what, const char *advice)
{
	if (!*advice)
		return;
	int column = printf("  %s:", what);
	for (const char *word = advice, *end; *word; word = end + (*end == ' ')) {
		struct text one = { 0 };
		end = end_of_word(word);
		column += 1 + snprintf(one.bytes, sizeof(one.bytes), "%.*s", (int)(end - word), word);
		if (column > COLUMNS)
			column = printf("\n   ") + (int)strlen(one.bytes);
		putchar(' ');
		report_untrusted(stdout, one.bytes);
	}
	putchar('\n');
}

static unsigned print_fix(unsigned printed, const char *what, const char *fix)
{
	if (!*fix)
		return printed;
	if (!printed)
		printf("\nTo fix:\n");
	print_advice(what, fix);
	return printed + 1;
}

static void print_fixes(const json_t *driver)
{
	struct text before = { 0 };
	const json_t *error = json_object_get(driver, "error");
	unsigned printed = print_fix(0, json_read_text(driver, "name"), json_read_text(error, "remediation"));
	for JSON_EACH(wall, json_object_get(driver, "walls")) {
		const char *fix = json_read_text(wall, "fix");
		/* One cause often brings down several walls. */
		if (holds(wall) || !strcmp(fix, before.bytes))
			continue;
		printed = print_fix(printed, json_read_text(wall, "wall"), fix);
		snprintf(before.bytes, sizeof(before.bytes), "%s", fix);
	}
}

/* One line: whether, or why not. */
static void print_hosts(const json_t *hosts)
{
	if (!hosts)
		return;
	printf("\nA network of listed hosts: ");
	print_painted(holds(hosts) ? GREEN : RED, holds(hosts) ? "yes" : "no", 0);
	if (!holds(hosts)) {
		printf(" (");
		report_untrusted(stdout, json_read_text(hosts, "found"));
		putchar(')');
	}
	putchar('\n');
	print_advice("to fix", json_read_text(hosts, "fix"));
}

/* One line, and what would give more. */
static void print_limits(const json_t *limits)
{
	printf("\nLimits of a command's whole tree: ");
	report_untrusted(stdout, json_read_text(limits, "mechanism"));
	if (*json_read_text(limits, "place")) {
		printf(", in ");
		report_untrusted(stdout, json_read_text(limits, "place"));
	} else {
		printf(" (");
		report_untrusted(stdout, json_read_text(limits, "found"));
		putchar(')');
	}
	putchar('\n');
	print_advice("for more", json_read_text(limits, "fix"));
}

static void print_git(const char *names)
{
	if (!*names)
		return;
	printf("\nSettings of your git that do not hold inside, since they would run or redirect something, or need "
	       "what is not there:\n");
	print_advice("left out", names);
}

static const json_t *find_driver(const json_t *drivers, const char *name)
{
	for JSON_EACH(driver, drivers)
		if (!strcmp(json_read_text(driver, "name"), name))
			return driver;
	return NULL;
}

/* The strongest that works at all and has walls, by the order of the report. */
static const char *find_working(const json_t *drivers)
{
	for JSON_EACH(driver, drivers)
		for JSON_EACH(wall, json_object_get(driver, "walls"))
			if (json_read_true(driver, "works") && holds(wall) &&
			    !strcmp(json_read_text(wall, "wall"), "filesystem"))
				return json_read_text(driver, "name");
	return NULL;
}

static void print_missing(const json_t *driver)
{
	const char *separator = "";
	for JSON_EACH(wall, json_object_get(driver, "walls"))
		if (!holds(wall)) {
			printf("%s", separator);
			report_untrusted(stdout, json_read_text(wall, "wall"));
			separator = ", ";
		}
}

/* What works, what does not, and what to do: one sentence. */
static void print_summary(const json_t *report)
{
	const json_t *drivers = json_object_get(report, "drivers"), *limits = json_object_get(report, "limits");
	const json_t *driver = find_driver(drivers, json_read_text(report, "default_driver"));
	const json_t *hosts = json_object_get(driver, "listed_hosts");
	const char *other = find_working(drivers);
	bool has_hosts = !hosts || holds(hosts), has_groups = *json_read_text(limits, "place");
	if (!json_read_true(driver, "works")) {
		print_painted(RED, "cordon run does not work here as it is", 0);
		printf(": ");
		report_untrusted(stdout, json_read_text(json_object_get(driver, "error"), "reason"));
		printf("; see \"To fix\" below");
		if (other)
			printf(", or use --driver %s, which holds less", other);
		printf(".\n\n");
		return;
	}
	if (holds(driver) && has_hosts) {
		print_painted(GREEN, "Everything works here", 0);
	} else if (holds(driver)) {
		print_painted(RED, "All walls hold here, but no network of listed hosts can be had", 0);
		printf(" (--net HOST:PORT); see \"to fix\" below");
	} else {
		print_painted(RED, "Commands run here, but not every wall holds", 0);
		printf(": ");
		print_missing(driver);
		printf("; see \"To fix\" below");
	}
	printf(has_groups ? ".\n\n"
	                  : "; without a control group, memory is only watched and the processor not limited: see "
	                    "\"for more\".\n\n");
}

static void print_system(const json_t *report)
{
	struct utsname system = { .sysname = "" };
	uname(&system);
	printf("%s ", system.sysname);
	report_untrusted(stdout, json_read_text(report, "kernel"));
	if (!strcmp(system.sysname, "Linux"))
		printf(", Landlock ABI %ld", json_read_number(report, "landlock_abi"));
	printf("\n\n");
}

static void print_report(const json_t *report)
{
	const json_t *drivers = json_object_get(report, "drivers");
	const char *chosen = json_read_text(report, "default_driver");
	print_summary(report);
	print_system(report);
	print_painted(BOLD, *chosen ? chosen : "no driver", 0);
	printf(" (default): ");
	for JSON_EACH(driver, drivers) {
		if (strcmp(json_read_text(driver, "name"), chosen))
			continue;
		print_verdict(driver);
		print_walls(json_object_get(driver, "walls"));
		print_fixes(driver);
		print_hosts(json_object_get(driver, "listed_hosts"));
	}
	print_limits(json_object_get(report, "limits"));
	print_git(json_read_text(report, "git_settings_left_out"));
	if (json_array_size(drivers) > 1)
		printf("\nOther drivers:\n");
	for JSON_EACH(other, drivers) {
		if (!strcmp(json_read_text(other, "name"), chosen))
			continue;
		printf("  ");
		print_painted(BOLD, json_read_text(other, "name"), 12);
		print_verdict(other);
	}
}

/* A line, and under it what else there is to know. */
static void print_agents(const json_t *found)
{
	if (json_array_size(found))
		printf("\nAgents that are set up:\n");
	for JSON_EACH(agent, found) {
		const char *fault = json_read_text(agent, "fault"), *version = json_read_text(agent, "version");
		printf("  %-12s", json_read_text(agent, "agent"));
		report_untrusted(stdout, *fault ? fault : "as it was set up");
		if (*fault)
			printf("; run cordon setup %s", json_read_text(agent, "agent"));
		else if (*version)
			printf(", version %s", version);
		putchar('\n');
		for JSON_EACH(remark, json_object_get(agent, "remarks")) {
			printf("  ");
			print_advice("          note", json_read_string(remark));
		}
		if (*json_read_text(agent, "outside"))
			print_advice("            not in cordon", json_read_text(agent, "outside"));
	}
}

/* The report with what became of the agents. */
static int look_at_agents(json_t *report, struct cordon_error *err)
{
	struct arena arena = { 0 };
	const char *home = getenv("HOME");
	char here[CLI_PATH_SIZE];
	if (cli_absolute(".", NULL, here, err) < 0)
		return -1;
	json_t *found = home && *home == '/' ? setup_look(&arena, home, here) : json_array();
	arena_free(&arena);
	return json_object_set_new(report, "agents", found) == 0 ? 0 : fail_oom(err);
}

static int examine(const struct options *options, bool *ret_holds, struct cordon_error *err)
{
	struct cordon *cordon = NULL;
	auto_free char *text = NULL;
	int failed = cli_open(options, &cordon, err) < 0 || cordon_doctor(cordon, &text, ret_holds, err) < 0;
	cordon_unref(cordon);
	if (failed)
		return -1;
	auto_json json_t *report = json_read(text);
	if (!report)
		return fail_oom(err);
	if (look_at_agents(report, err) < 0)
		return -1;
	auto_free char *whole = json_dumps(report, JSON_COMPACT);
	if (!whole)
		return fail_oom(err);
	json_read_say(whole, options_flag(options, "json"), print_report);
	if (!options_flag(options, "json"))
		print_agents(json_object_get(report, "agents"));
	return 0;
}

int cli_doctor(char **words)
{
	struct options options;
	struct cordon_error err;
	bool all_hold = false;
	int status;
	if (!cli_options(COMMAND_DOCTOR, words, 0, &options, &status))
		return status;
	if (examine(&options, &all_hold, &err) < 0) {
		report_error(&err, options_flag(&options, "json"));
		status = STATUS_REFUSED;
	} else {
		status = all_hold ? 0 : 1;
	}
	options_free(&options);
	return status;
}

/* `cordon doctor`: which walls hold here. The library tries them for real and answers in JSON; this lays it out for
 * people: the default driver wall by wall, the others in a line each, and what to do about what does not hold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "door/cli.h"
#include "door/json-indent.h"
#include "door/json-look.h"
#include "door/report.h"

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
#define TEXT(object, key) json_look_text(json_look_member(object, key), (struct text){ 0 }.bytes, sizeof(struct text))
#define EACH(element, array) (const char *element = json_look_first(array); element; element = json_look_next(element))

static bool holds(const char *object)
{
	return json_look_true(json_look_member(object, "holds"));
}

static int widest(const char *walls, const char *key, const char *title)
{
	size_t widest = strlen(title);
	for EACH(wall, walls)
		if (strlen(TEXT(wall, key)) > widest)
			widest = strlen(TEXT(wall, key));
	return (int)widest;
}

static void print_walls(const char *walls)
{
	int name = widest(walls, "wall", "WALL"), mechanism = widest(walls, "mechanism", "MECHANISM");
	printf("\n  ");
	print_painted(DIM, "WALL", name + 2);
	print_painted(DIM, "MECHANISM", mechanism + 2);
	print_painted(DIM, "HOLDS", 7);
	print_painted(DIM, "NOTE", 0);
	putchar('\n');
	for EACH(wall, walls) {
		printf("  ");
		print_painted(PLAIN, TEXT(wall, "wall"), name + 2);
		print_painted(PLAIN, TEXT(wall, "mechanism"), mechanism + 2);
		print_painted(holds(wall) ? GREEN : RED, holds(wall) ? "yes" : "no", 7);
		print_painted(PLAIN, TEXT(wall, "found"), 0);
		putchar('\n');
	}
}

/* One line: all of it, how much of it, or why none. */
static void print_verdict(const char *driver)
{
	const char *reason = TEXT(json_look_member(driver, "error"), "reason");
	unsigned held = 0, all = 0;
	for EACH(wall, json_look_member(driver, "walls")) {
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
		printf("\nTo mend:\n");
	print_advice(what, fix);
	return printed + 1;
}

static void print_fixes(const char *driver)
{
	struct text before = { 0 };
	const char *error = json_look_member(driver, "error");
	unsigned printed = print_fix(0, TEXT(driver, "name"), TEXT(error, "remediation"));
	for EACH(wall, json_look_member(driver, "walls")) {
		const char *fix = TEXT(wall, "fix");
		/* One cause often brings down several walls. */
		if (holds(wall) || !strcmp(fix, before.bytes))
			continue;
		printed = print_fix(printed, TEXT(wall, "wall"), fix);
		snprintf(before.bytes, sizeof(before.bytes), "%s", fix);
	}
}

/* One line: whether, or why not. */
static void print_hosts(const char *hosts)
{
	if (!hosts)
		return;
	printf("\nA network of listed hosts: ");
	print_painted(holds(hosts) ? GREEN : RED, holds(hosts) ? "yes" : "no", 0);
	if (!holds(hosts)) {
		printf(" (");
		report_untrusted(stdout, TEXT(hosts, "found"));
		putchar(')');
	}
	putchar('\n');
	print_advice("to mend", TEXT(hosts, "fix"));
}

/* One line, and what would give more. */
static void print_limits(const char *limits)
{
	printf("\nLimits of a command's whole tree: ");
	report_untrusted(stdout, TEXT(limits, "mechanism"));
	if (*TEXT(limits, "place")) {
		printf(", in ");
		report_untrusted(stdout, TEXT(limits, "place"));
	} else {
		printf(" (");
		report_untrusted(stdout, TEXT(limits, "found"));
		putchar(')');
	}
	putchar('\n');
	print_advice("for more", TEXT(limits, "fix"));
}

static void print_report(const char *report)
{
	const char *drivers = json_look_member(report, "drivers");
	const char *chosen = TEXT(report, "default_driver");
	printf("Linux ");
	report_untrusted(stdout, TEXT(report, "kernel"));
	printf(", Landlock ABI %ld\n\n", json_look_number(json_look_member(report, "landlock_abi")));
	print_painted(BOLD, *chosen ? chosen : "no driver", 0);
	printf(" (default): ");
	for EACH(driver, drivers) {
		if (strcmp(TEXT(driver, "name"), chosen))
			continue;
		print_verdict(driver);
		print_walls(json_look_member(driver, "walls"));
		print_fixes(driver);
		print_hosts(json_look_member(driver, "listed_hosts"));
	}
	print_limits(json_look_member(report, "limits"));
	printf("\nOther drivers:\n");
	for EACH(other, drivers) {
		if (!strcmp(TEXT(other, "name"), chosen))
			continue;
		printf("  ");
		print_painted(BOLD, TEXT(other, "name"), 12);
		print_verdict(other);
	}
}

static int examine(const struct options *options, bool *ret_holds, struct cordon_error *err)
{
	struct cordon *cordon = NULL;
	auto_free char *text = NULL;
	int failed = cli_open(options, &cordon, err) < 0 || cordon_doctor(cordon, &text, ret_holds, err) < 0;
	cordon_unref(cordon);
	if (failed)
		return -1;
	if (options_flag(options, "json"))
		json_indent(stdout, text, true);
	else
		print_report(text);
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

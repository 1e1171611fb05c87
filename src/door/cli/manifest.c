/* `cordon manifest check`: whether a tool's manifest is valid, and whether this machine can hold what it declares. The
 * library checks it and answers in JSON; this formats it. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/path-given.h"
#include "base/text.h"
#include "door/cli/cli.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"

#define LABEL_WIDTH 12

static void print_text(const json_t *value)
{
	report_untrusted(stdout, json_read_string(value));
}

/* The label is printed before the first. */
static void print_label(const char *label, bool first)
{
	printf("  %-*s", LABEL_WIDTH, first ? label : "");
}

static void print_list(const char *label, const json_t *array)
{
	bool first = true;
	for JSON_EACH(element, array) {
		print_label(label, first);
		print_text(element);
		putchar('\n');
		first = false;
	}
}

static void print_patterns(const json_t *patterns)
{
	bool first = true;
	for JSON_EACH(pattern, patterns) {
		const char *before = "";
		print_label("arguments", first);
		if (!json_array_size(pattern))
			fputs("none", stdout);
		for JSON_EACH(word, pattern) {
			fputs(before, stdout);
			print_text(word);
			before = " ";
		}
		putchar('\n');
		first = false;
	}
	if (first) {
		print_label("arguments", true);
		puts("any");
	}
}

static void format_number(uint64_t number, char *text)
{
	snprintf(text, TEXT_AMOUNT_SIZE, "%llu", (unsigned long long)number);
}

static void print_limits(const json_t *limits)
{
	static const struct {
		const char *key, *name;
		void (*format)(uint64_t number, char *text);
	} rows[] = {
		{ "memory_bytes", "memory", text_format_size },
		{ "cpu_percent", "cpu", format_number },
		{ "processes", "processes", format_number },
		{ "disk_bytes", "disk", text_format_size },
		{ "wall_ms", "timeout", text_format_duration },
		{ "stdout_bytes", "max_output", text_format_size },
		{ "open_files", "open_files", format_number },
		{ "tmp_bytes", "tmp", text_format_size },
	};
	char text[TEXT_AMOUNT_SIZE];
	bool first = true;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const json_t *limit = json_object_get(limits, rows[i].key);
		if (!limit)
			continue;
		if (json_is_string(limit))
			snprintf(text, sizeof(text), "%s", "none");
		else
			rows[i].format((uint64_t)json_integer_value(limit), text);
		print_label("limits", first);
		printf("%s %s\n", rows[i].name, text);
		first = false;
	}
}

static void print_manifest(const json_t *manifest)
{
	const json_t *capabilities = json_object_get(manifest, "capabilities");
	const char *description = json_read_text(manifest, "description");
	print_text(json_object_get(manifest, "name"));
	if (*description) {
		fputs(": ", stdout);
		report_untrusted(stdout, description);
	}
	putchar('\n');
	print_list("programs", json_object_get(capabilities, "programs"));
	print_patterns(json_object_get(manifest, "argv"));
	print_list("reads", json_object_get(capabilities, "fs_read"));
	print_list("writes", json_object_get(capabilities, "fs_write"));
	print_list("variables", json_object_get(manifest, "env_passthrough"));
	print_list("hosts", json_object_get(capabilities, "hosts"));
	print_limits(json_object_get(capabilities, "limits"));
	fputs("This machine can hold it, by the driver ", stdout);
	print_text(json_object_get(manifest, "driver"));
	fputs(".\n", stdout);
}

static int check(const struct options *options, const char *file, struct cordon_error *err)
{
	struct cordon *cordon = NULL;
	auto_free char *text = NULL;
	char room[CLI_PATH_SIZE];
	const char *why, *given = path_given(file, room, sizeof(room), &why);
	if (!given)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, file, "%s", why);
	file = given;
	int failed = cli_open(options, &cordon, err) < 0 || cordon_manifest_check(cordon, file, &text, err) < 0;
	cordon_unref(cordon);
	if (failed)
		return -1;
	json_read_say(text, options_flag(options, "json"), print_manifest);
	return 0;
}

/* The words after `manifest`: what to do, and with which file. */
static int find_file(const struct options *options, const char **ret_file, struct cordon_error *err)
{
	const char *verb = options->operand_count ? options->operands[0] : NULL;
	if (!verb || strcmp(verb, "check"))
		fail(err, CORDON_E_INVALID_REQUEST, 0, verb,
		     verb ? "cordon manifest has no such command" : "nothing was asked for");
	else if (options->operand_count < 2)
		fail(err, CORDON_E_INVALID_REQUEST, 0, NULL, "no file was named");
	else {
		*ret_file = options->operands[1];
		return 0;
	}
	return fail_remedy(err, "write: cordon manifest check FILE");
}

int cli_manifest(char **words)
{
	struct options options;
	struct cordon_error err;
	const char *file = NULL;
	int status;
	if (!cli_options(COMMAND_MANIFEST, words, 2, &options, &status))
		return status;
	bool json = options_flag(&options, "json");
	status = 0;
	if (find_file(&options, &file, &err) < 0)
		status = STATUS_USAGE;
	else if (check(&options, file, &err) < 0)
		status = STATUS_REFUSED;
	if (status)
		report_error(&err, json);
	options_free(&options);
	return status;
}

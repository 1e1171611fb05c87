/* `cordon config`. What is in force is shown as a file would say it, with where each part comes from. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/visible.h"
#include "door/cli/action.h"
#include "door/cli/config-rows.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"

#define PROJECT_NAME ".cordon.toml"
#define FROM_COLUMN 40

/* ---- show ------------------------------------------------------------------------------------------------------- */

/* JSON's texts, numbers and lists are TOML's. Returns how many bytes it took. */
static size_t print_value(const json_t *value)
{
	auto_free char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	auto_free char *safe = text ? visible_json(text) : NULL;
	fputs(safe ? safe : "", stdout);
	return safe ? strlen(safe) : 0;
}

static void print_from(size_t column, const char *from)
{
	if (strcmp(from, "default") != 0) {
		printf("%*s# ", (int)(column < FROM_COLUMN ? FROM_COLUMN - column : 1), "");
		report_untrusted(stdout, from);
	}
	putchar('\n');
}

static void print_rules(const json_t *rules)
{
	static const char *const keys[] = { "tool", "match", "decision" };
	for JSON_EACH(rule, rules) {
		print_from((size_t)printf("\n[[policy.rules]]") - 1, json_read_text(rule, "from"));
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
			const json_t *value = json_object_get(rule, keys[i]);
			if (!json_is_string(value))
				continue;
			printf("%s = ", keys[i]);
			print_value(value);
			putchar('\n');
		}
	}
}

/* `key` as it is to be written. */
static void print_setting(const json_t *setting, const char *key)
{
	const json_t *value = json_object_get(setting, "value");
	if (!strcmp(json_read_text(setting, "key"), "policy.rules")) {
		print_rules(value);
		return;
	}
	bool is_set = value && !json_is_null(value), has_secrets = json_object_size(value) > 0;
	size_t column =
		(size_t)printf("%s%s%s", is_set && !has_secrets ? "" : "# ", key, is_set ? " = " : " is not set");
	column += is_set ? print_value(value) : 0;
	print_from(column, json_read_text(setting, "from"));
}

/* A section of any number of tables: [SECTION.NAME] or [[SECTION]]. */
static void print_tables(const json_t *json, const char *section, bool is_named)
{
	const char *key;
	json_t *value;
	for JSON_EACH(table, json_object_get(json, section)) {
		size_t column = (size_t)printf(is_named ? "\n[%s." : "\n[[%s", section) - 1;
		if (is_named)
			report_untrusted(stdout, json_read_text(table, "table"));
		column += is_named ? strlen(json_read_text(table, "table")) : 0;
		print_from(column + (size_t)printf(is_named ? "]" : "]]"), json_read_text(table, "from"));
		json_object_foreach((json_t *)table, key, value) {
			if (!strcmp(key, "table") || !strcmp(key, "from"))
				continue;
			printf("%s = ", key);
			print_value(value);
			putchar('\n');
		}
	}
}

static void print_shown(const json_t *json)
{
	char section[64] = "";
	const json_t *note = json_object_get(json, "note");
	for JSON_EACH(file, json_object_get(json, "files")) {
		const char *in_force = json_read_text(file, "in_force"), *name = json_read_text(file, "file");
		printf("# %s: ", json_read_text(file, "layer"));
		report_untrusted(stdout, name);
		printf("%s", !*in_force ? " (not there)" : strcmp(in_force, name) ? " (the last good version)" : "");
		putchar('\n');
	}
	if (json_is_string(note)) {
		printf("# ");
		report_untrusted(stdout, json_read_text(json, "note"));
		putchar('\n');
	}
	for JSON_EACH(setting, json_object_get(json, "settings")) {
		const char *key = json_read_text(setting, "key");
		size_t length = strcspn(key, ".");
		if (strncmp(section, key, length) != 0 || section[length]) {
			snprintf(section, sizeof(section), "%.*s", (int)length, key);
			printf("\n[%s]\n", section);
		}
		print_setting(setting, key + length + 1);
	}
	print_tables(json, "credentials", true);
	print_tables(json, "gateway", false);
	for JSON_EACH(block, json_object_get(json, "sessions")) {
		print_from((size_t)printf("\n[[session]]") - 1, json_read_text(block, "from"));
		printf("match = ");
		print_value(json_object_get(block, "match"));
		putchar('\n');
		for JSON_EACH(inner, json_object_get(block, "settings"))
			print_setting(inner, json_read_text(inner, "key"));
	}
}

static int act_show(struct cordon *cordon, const struct options *options, const char *operand, struct cordon_error *err)
{
	(void)operand;
	char workspace[CLI_PATH_SIZE];
	auto_free char *json = NULL;
	const char *named = options_value(options, "workspace");
	if (cli_absolute(named ? named : ".", NULL, workspace, err) < 0 ||
	    cordon_config_show(cordon, workspace, &json, err) < 0)
		return -1;
	json_read_say(json, options_flag(options, "json"), print_shown);
	return 0;
}

/* ---- check ------------------------------------------------------------------------------------------------------ */

static void say_good(const struct options *options, const char *what)
{
	struct json json;
	if (!options_flag(options, "json")) {
		report_untrusted(stdout, what);
		printf(": good\n");
		return;
	}
	json_init(&json);
	json_object_begin(&json);
	json_key_bool(&json, "good", true);
	json_object_end(&json);
	auto_free char *text = json_take(&json);
	printf("%s\n", text ? text : "");
}

static int check(struct cordon *cordon, const char *file, struct cordon_error *err)
{
	char path[CLI_PATH_SIZE];
	if (cli_absolute(file ? file : PROJECT_NAME, NULL, path, err) < 0 ||
	    (!file && cordon_config_check(cordon, NULL, err) < 0))
		return -1;
	if (!file && faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return cordon_config_check(cordon, path, err);
}

/* One file, or all that a command in the current directory would read. */
static int act_check(struct cordon *cordon, const struct options *options, const char *file, struct cordon_error *err)
{
	if (check(cordon, file, err) == 0) {
		say_good(options, file ? file : "the configuration");
		return 0;
	}
	if (err->class != CORDON_E_CONFIG_INVALID)
		return -1;
	report_error(err, options_flag(options, "json"));
	return 1;
}

/* ---- docs ------------------------------------------------------------------------------------------------------- */

static int act_docs(struct cordon *cordon, const struct options *options, const char *operand, struct cordon_error *err)
{
	(void)operand;
	(void)cordon;
	(void)options;
	(void)err;
	config_print_sample();
	return 0;
}

int cli_config(char **words)
{
	static const struct action actions[] = {
		{ "show", NULL, false, "workspace", act_show },
		{ "check", "", false, NULL, act_check },
		{ "docs", NULL, false, NULL, act_docs },
	};
	return action_run(COMMAND_CONFIG, actions, ARRAY_SIZE(actions), words);
}

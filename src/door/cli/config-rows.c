/* The rows as text, and the sample file. Nothing here needs the library, so that the program which makes the manual can
 * use it. */
#include "door/cli/config-rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define WIDTH 100

const char *const config_kind_texts[] = {
#define CONFIG_TYPE(id, must_be) must_be,
#include "cordon-config.def"
};

/* What a row's way to be narrowed means for a project's file. */
#define PROJECT_ANY ""
#define PROJECT_SAME ""
#define PROJECT_FALSE "A project can set it to false."
#define PROJECT_LESS "A project can set it to less."
#define PROJECT_SUBSET "A project can choose fewer."
#define PROJECT_WITHIN "A project can choose what is within it."
#define PROJECT_ADD "A project can add to it."
#define PROJECT_JUDGE "A project can add rules that deny or ask."
#define WAITS_NEXT_COMMAND false
#define WAITS_NEXT_START true

const struct config_text config_texts[] = {
#define CONFIG(section, key, type, values, least, most, fallback, example, narrows, project, reload, help, more) \
	{ #section, #key, KIND_##type, values, least, most, fallback, example, \
	  project ? PROJECT_##narrows : "A project cannot set it.", WAITS_##reload, help, more },
#include "cordon-config.def"
};
const size_t config_text_count = ARRAY_SIZE(config_texts);

const struct config_section_text config_section_texts[] = {
#define CONFIG_SECTION(name, in_session, help, example) { #name, help, example },
#include "cordon-config.def"
};
const size_t config_section_text_count = ARRAY_SIZE(config_section_texts);

void config_text_range(const struct config_text *text, char ret_range[CONFIG_RANGE_SIZE])
{
	char least[TEXT_AMOUNT_SIZE], most[TEXT_AMOUNT_SIZE];
	void (*format)(uint64_t, char *) = text->kind == KIND_SIZE ? text_format_size : text_format_duration;
	*ret_range = '\0';
	if (text->kind == KIND_NUMBER || text->kind == KIND_PERCENT) {
		snprintf(ret_range, CONFIG_RANGE_SIZE, "From %" PRIu64 " to %" PRIu64, text->least, text->most);
	} else if (text->kind == KIND_SIZE || text->kind == KIND_DURATION) {
		format(text->least, least);
		format(text->most, most);
		snprintf(ret_range, CONFIG_RANGE_SIZE, "From %s to %s", least, most);
	}
}

/* ---- the sample ------------------------------------------------------------------------------------------------- */

bool config_text_repeats(const struct config_text *row)
{
	return !strcmp(row->section, "credentials") || !strcmp(row->section, "gateway");
}

/* Prose, as lines that begin with "# ". */
static void print_comment(const char *text)
{
	size_t column = 0;
	while (*text) {
		size_t length = strcspn(text, " ");
		bool breaks = column && column + 1 + length > WIDTH;
		printf("%s%.*s", !column ? "# " : breaks ? "\n# " : " ", (int)length, text);
		column = (column && !breaks ? column + 1 : 2) + length;
		text += length;
		text += strspn(text, " ");
	}
	if (column)
		putchar('\n');
}

/* Settings, each line after a "#"; a long list continues on the next line. */
static void print_setting(const char *key, const char *value)
{
	size_t column = (size_t)printf("#%s =", key);
	while (*value) {
		size_t length = strcspn(value, " ");
		bool breaks = *value == '"' && column + 1 + length > WIDTH;
		column = (breaks ? 0 : column) + (size_t)printf("%s%.*s", breaks ? "\n#" : " ", (int)length, value);
		value += length;
		value += strspn(value, " ");
	}
	putchar('\n');
}

static void print_lines(const char *text)
{
	for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
		printf("#%.*s\n", (int)strcspn(text, "\n"), text);
}

static void print_row(const struct config_text *row)
{
	char text[1024], range[CONFIG_RANGE_SIZE];
	config_text_range(row, range);
	putchar('\n');
	/* Of a table that repeats there is an example of the whole; to set all its keys would be wrong. */
	if (config_text_repeats(row))
		snprintf(text, sizeof(text), "%s: %s.%s%s", row->key, row->help, *row->more ? " " : "", row->more);
	else
		snprintf(text, sizeof(text), "%c%s.%s%s", row->help[0] - 'a' + 'A', row->help + 1,
		         *row->more ? " " : "", row->more);
	print_comment(text);
	snprintf(text, sizeof(text), "%s%s%s%s.", *row->values ? "One of: " : "", *row->values ? row->values : range,
	         *row->values && row->kind != KIND_ENUM ? "; or " : "",
	         *row->values && row->kind != KIND_ENUM ? config_kind_texts[row->kind] : "");
	if (*row->values || *range)
		print_comment(text);
	if (*row->fallback && *row->example) {
		snprintf(text, sizeof(text), "Such as: %s = %s", row->key, row->example);
		print_comment(text);
	}
	if (row->kind == KIND_RULES)
		print_lines(row->example);
	else if (!config_text_repeats(row))
		print_setting(row->key, *row->fallback ? row->fallback : row->example);
}

void config_print_sample(void)
{
	print_comment("cordon's configuration: every setting, commented out, with its default or an example. Remove "
	              "the # before "
	              "a setting to set it. See cordon.toml(5).");
	for (size_t i = 0; i < config_section_text_count; i++) {
		const struct config_section_text *section = &config_section_texts[i];
		putchar('\n');
		print_comment(section->help);
		if (*section->example)
			print_lines(section->example);
		else
			printf("[%s]\n", section->name);
		for (size_t j = 0; j < config_text_count; j++)
			if (!strcmp(config_texts[j].section, section->name))
				print_row(&config_texts[j]);
	}
}

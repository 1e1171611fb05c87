/* Manual pages: see roff.h. */
#include "door/cli/roff.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "door/cli/config-rows.h"

/* roff takes a dash for a hyphen, a backslash for itself, and a line that begins with "." or "'" for a request. */
void roff_print(const char *text)
{
	if (*text == '.' || *text == '\'')
		printf("\\&");
	for (; *text; text++) {
		if (*text == '-')
			printf("\\-");
		else if (*text == '\\')
			printf("\\e");
		else if (*text == '\'')
			printf("\\(aq");
		else
			putchar(*text);
	}
}

void roff_print_sentence(const char *phrase)
{
	char first[] = { phrase[0], '\0' };
	if (first[0] >= 'a' && first[0] <= 'z')
		first[0] = (char)(first[0] - 'a' + 'A');
	roff_print(first);
	roff_print(phrase + 1);
}

static void print_sentence(const char *before, const char *text, const char *after)
{
	if (!*text)
		return;
	roff_print(before);
	roff_print(text);
	printf("%s\n", after);
}

/* Lines that stay as they are. */
static void print_example(const char *text)
{
	printf(".PP\n.in +4n\n.EX\n");
	while (*text) {
		char line[256];
		size_t length = strcspn(text, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)length, text);
		roff_print(line);
		printf("\n");
		text += length + (text[length] == '\n');
	}
	printf(".EE\n.in\n");
}

static void print_setting(const struct config_text *row)
{
	char range[CONFIG_RANGE_SIZE];
	config_text_range(row, range);
	printf(".TP\n\\fB");
	roff_print(row->key);
	printf("\\fR\n");
	roff_print_sentence(row->help);
	printf(".\n");
	print_sentence("", row->more, "");
	printf(".br\n");
	if (row->kind != KIND_ENUM) {
		roff_print_sentence(config_kind_texts[row->kind]);
		printf(*row->values ? "; or one of:\n" : ".\n");
	}
	print_sentence(row->kind == KIND_ENUM ? "One of: " : "", row->values, ".");
	print_sentence("", range, ".");
	print_sentence("", row->project, "");
	if (row->waits)
		printf("A change takes effect when cordon is started next.\n");
	if (*row->fallback) {
		printf(".br\n");
		print_sentence("Default: ", row->fallback, "");
	}
	if (row->kind == KIND_RULES) {
		print_example(row->example);
	} else if (*row->example && *row->fallback) {
		printf(".br\n");
		print_sentence("Example: ", row->example, "");
	}
}

void roff_print_settings(void)
{
	for (size_t i = 0; i < config_section_text_count; i++) {
		const struct config_section_text *section = &config_section_texts[i];
		bool is_list = !strncmp(section->example, "[[", 2), is_named = *section->example && !is_list;
		printf(".SS %s%s%s\n", is_list ? "[[" : "[", section->name, is_list ? "]]" : is_named ? ".NAME]" : "]");
		print_sentence("", section->help, "");
		if (*section->example)
			print_example(section->example);
		for (size_t j = 0; j < config_text_count; j++)
			if (!strcmp(config_texts[j].section, section->name))
				print_setting(&config_texts[j]);
	}
}

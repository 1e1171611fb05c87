/* Parsing by the one table of options (options.def).
 *
 * The words are only sorted here: what a value means, and whether it is a good one, is the library's to say, so that
 * every door refuses the same things with the same words. Nothing is applied before all words are read, which is why
 * `--json` counts wherever it stands. */
#include "door/cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

const struct option options_table[] = {
#define OPTION(letter, name, metavar, actor, repeats, completion, values, commands, group, help, more)                 \
	{ letter, name,     metavar,       OPTION_##actor, repeats, COMPLETE_##completion,                             \
	  values, commands, GROUP_##group, help,           more },
#include "door/cli/options.def"
#undef OPTION
};
const size_t options_table_count = ARRAY_SIZE(options_table);

const char *const option_group_names[] = {
	[GROUP_PLACE] = "Place and command",
	[GROUP_GRANTS] = "What it may reach",
	[GROUP_ENVIRONMENT] = "Environment",
	[GROUP_LIMITS] = "Limits",
	[GROUP_SESSIONS] = "Sessions",
	[GROUP_JOBS] = "Jobs",
	[GROUP_FILES] = "Files",
	[GROUP_LEDGER] = "The ledger",
	[GROUP_WALLS] = "Walls",
	[GROUP_OUTPUT] = "Output",
};
_Static_assert(ARRAY_SIZE(option_group_names) == GROUP_MAX, "every group has a name");

/* These start a program, whose options must not be taken for cordon's. */
#define ENDS_AT_FIRST_OPERAND (ON_RUN | ON_PROFILE | ON_SHELL)

static bool is_program(enum command_id command, const struct options *options)
{
	return ENDS_AT_FIRST_OPERAND & 1u << command ||
	       (command == COMMAND_JOB && options->operand_count && !strcmp(options->operands[0], "start"));
}

void option_spell(const struct option *option, char *text, size_t size)
{
	char letter[] = { '-', option->letter, '\0' };
	snprintf(text, size, "%s%s%s%s%s%s", option->letter ? letter : "", option->letter && *option->name ? ", " : "",
	         *option->name ? "--" : "", option->name, option->metavar ? " " : "",
	         option->metavar ? option->metavar : "");
}

/* A word that begins with a dash, taken apart. */
struct spelled {
	const char *name, *attached;
	size_t length;
	bool is_short;
};

static struct spelled spell_out(const char *word)
{
	struct spelled spelled = { .is_short = word[1] != '-' };
	if (spelled.is_short) {
		spelled.name = word + 1;
		spelled.length = 1;
		spelled.attached = word[2] ? word + 2 : NULL;
	} else {
		spelled.name = word + 2;
		spelled.length = strcspn(spelled.name, "=");
		spelled.attached = spelled.name[spelled.length] ? spelled.name + spelled.length + 1 : NULL;
	}
	return spelled;
}

static bool is_called(const struct option *option, const struct spelled *spelled)
{
	if (spelled->is_short)
		return option->letter == spelled->name[0];
	return *option->name && !strncmp(option->name, spelled->name, spelled->length) &&
	       !option->name[spelled->length];
}

static const struct option *find(enum command_id command, const struct spelled *spelled)
{
	for (size_t i = 0; i < options_table_count; i++)
		if (options_table[i].commands & 1u << command && is_called(&options_table[i], spelled))
			return &options_table[i];
	return NULL;
}

/* The value is not repeated in the message: it may be a secret. */
static int fail_unknown(struct cordon_error *err, enum command_id command, const struct spelled *spelled)
{
	const char *names[ARRAY_SIZE(options_table)];
	char word[64];
	size_t count = 0;
	for (size_t i = 0; i < options_table_count; i++)
		if (options_table[i].commands & 1u << command && *options_table[i].name)
			names[count++] = options_table[i].name;
	snprintf(word, sizeof(word), "%.*s", (int)spelled->length, spelled->name);
	/* An option of another command is not misspelt. */
	bool is_known = false;
	for (size_t i = 0; i < options_table_count; i++)
		is_known |= !strcmp(options_table[i].name, word);
	const char *nearest = spelled->is_short || is_known ? NULL : text_nearest(word, names, count);
	char subject[80];
	snprintf(subject, sizeof(subject), "%s%s", spelled->is_short ? "-" : "--", word);
	fail(err, CORDON_E_INVALID_REQUEST, 0, subject, "unknown option of cordon %s", commands[command].name);
	if (nearest)
		return fail_remedy(err, "did you mean --%s?", nearest);
	if (command == COMMAND_AGENT)
		return fail_remedy(err, "the agent's own options come after --: cordon agent NAME -- %s", subject);
	return fail_remedy(err, "see cordon help %s", commands[command].name);
}

static int take_option(struct options *options, enum command_id command, char ***words, struct cordon_error *err)
{
	struct spelled spelled = spell_out(**words);
	const struct option *option = find(command, &spelled);
	if (!option)
		return fail_unknown(err, command, &spelled);
	char written[64];
	option_spell(option, written, sizeof(written));
	const char *value = "true";
	if (!option->metavar && spelled.attached) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, written, "this option takes no value");
		return fail_remedy(err, "leave out what follows it");
	}
	if (option->metavar) {
		value = spelled.attached;
		/* A lone "--" ends the options; to give that as a value, write `--opt=--`. */
		if (!value && (*words)[1] && strcmp((*words)[1], "--"))
			value = *++*words;
		if (!value) {
			fail(err, CORDON_E_INVALID_REQUEST, 0, written, "this option needs a value");
			return fail_remedy(err, "see cordon help %s", commands[command].name);
		}
	}
	options->given[options->given_count++] = (struct option_given){ option, value };
	return 0;
}

int options_parse(enum command_id command, char **words, struct options *ret_options, struct cordon_error *err)
{
	size_t count = 0;
	while (words[count])
		count++;
	struct options options = {
		.given = calloc(count + 1, sizeof(*options.given)),
		.operands = calloc(count + 1, sizeof(*options.operands)),
	};
	if (!options.given || !options.operands) {
		options_free(&options);
		return fail_oom(err);
	}
	for (; *words; words++) {
		if (!strcmp(*words, "--")) {
			words++;
			break;
		}
		if ((*words)[0] == '-' && (*words)[1]) {
			if (take_option(&options, command, &words, err) < 0) {
				options_free(&options);
				return -1;
			}
			continue;
		}
		if (is_program(command, &options))
			break;
		options.operands[options.operand_count++] = *words;
	}
	while (*words)
		options.operands[options.operand_count++] = *words++;
	*ret_options = options;
	return 0;
}

void options_free(struct options *options)
{
	free(options->given);
	free(options->operands);
	*options = (struct options){ 0 };
}

const char *options_value(const struct options *options, const char *name)
{
	for (size_t i = options->given_count; i-- > 0;) {
		const struct option *option = options->given[i].option;
		char letter[] = { option->letter, '\0' };
		if (!strcmp(*option->name ? option->name : letter, name))
			return options->given[i].value;
	}
	return NULL;
}

bool options_want_json(char **words)
{
	for (; *words && strcmp(*words, "--"); words++)
		if (!strcmp(*words, "--json"))
			return true;
	return false;
}
